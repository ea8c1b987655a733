package flat

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/zeebo/xxh3"
)

// Layout is how batches of one schema are written. Immutable.
type Layout struct {
	schema  *arrow.Schema
	types   uint64 // their fingerprint
	nodes   []node // the columns
	words   int    // of the head
	buffers int    // that arrays of the schema have at most
}

type kind uint8

const (
	nothing kind = iota // type null
	bits                // bool
	fixed
	text   // offsets and bytes
	list   // offsets, and one child; maps too
	group  // struct
	tuples // fixed-size list
)

// node is the type of one array.
type node struct {
	dt       arrow.DataType
	kind     kind
	width    int  // bytes of a value or an offset; of tuples, the values of each
	full     bool // nulls are not allowed
	children []node
}

// New makes the layout of a schema, or nil if one of its types has none.
func New(schema *arrow.Schema) *Layout {
	l := &Layout{schema: schema, types: Fingerprint(schema), words: 1}
	for _, f := range schema.Fields() {
		n, ok := l.node(f.Type)
		if !ok {
			return nil
		}
		l.nodes = append(l.nodes, n)
	}
	return l
}

func (l *Layout) node(dt arrow.DataType) (n node, ok bool) {
	n = node{dt: dt, width: 4}
	words, buffers := 1, 2
	switch t := storage(dt).(type) {
	case *arrow.NullType:
		n.kind, words, buffers = nothing, 0, 1
	case *arrow.BooleanType:
		n.kind = bits
	case *arrow.StringType, *arrow.BinaryType:
		n.kind, words, buffers = text, 2, 3
	case *arrow.LargeStringType, *arrow.LargeBinaryType:
		n.kind, n.width, words, buffers = text, 8, 2, 3
	case *arrow.ListType, *arrow.MapType:
		n.kind, words = list, 2
	case *arrow.LargeListType:
		n.kind, n.width, words = list, 8, 2
	case *arrow.StructType:
		n.kind, buffers = group, 1
	case *arrow.FixedSizeListType:
		n.kind, n.width, buffers = tuples, int(t.Len()), 1
	case *arrow.DictionaryType:
		return n, false
	case arrow.FixedWidthDataType:
		if t.BitWidth()%8 != 0 {
			return n, false
		}
		n.kind, n.width = fixed, t.BitWidth()/8
	default:
		return n, false
	}
	l.words += words
	l.buffers += buffers
	if t, nested := storage(dt).(arrow.NestedType); nested {
		for _, f := range t.Fields() {
			child, ok := l.node(f.Type)
			if !ok {
				return n, false
			}
			n.children = append(n.children, child)
		}
	}
	if storage(dt).ID() == arrow.MAP { // Arrow refuses to open a map whose entries or keys are null
		n.children[0].full = true
		n.children[0].children[0].full = true
	}
	return n, true
}

// HeadBytes is the length of a batch's head.
func (l *Layout) HeadBytes() int { return 8 * l.words }

func storage(dt arrow.DataType) arrow.DataType {
	for {
		e, ok := dt.(arrow.ExtensionType)
		if !ok {
			return dt
		}
		dt = e.StorageType()
	}
}

// Fingerprint is equal for schemas whose batches have the same memory: names, but those of struct fields, and extensions do
// not count.
func Fingerprint(schema *arrow.Schema) uint64 {
	var s strings.Builder
	for _, f := range schema.Fields() {
		describe(&s, f.Type)
	}
	return xxh3.HashString(s.String())
}

func describe(s *strings.Builder, dt arrow.DataType) {
	dt = storage(dt)
	nested, ok := dt.(arrow.NestedType)
	if _, union := dt.(arrow.UnionType); !ok || union {
		fmt.Fprintf(s, "%s;", dt)
		return
	}
	s.WriteString(dt.Name())
	if t, ok := dt.(*arrow.FixedSizeListType); ok {
		fmt.Fprintf(s, "[%d]", t.Len())
	}
	s.WriteByte('<')
	for _, f := range nested.Fields() {
		if dt.ID() == arrow.STRUCT {
			fmt.Fprintf(s, "%q:", f.Name)
		}
		describe(s, f.Type)
	}
	s.WriteString(">;")
}
