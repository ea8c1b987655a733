package block

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// Whether an IPC reader gives an extension type or its storage depends on which
// extensions the program has registered, in whatever package. A block's reader
// gets the types of its schema all the same: the memory of the two is equal.

// sameStorage reports whether columns of the two types have the same memory.
func sameStorage(a, b arrow.DataType) bool {
	a, b = storage(a), storage(b)
	an, ok := a.(arrow.NestedType)
	if !ok {
		return arrow.TypeEqual(a, b)
	}
	bn, ok := b.(arrow.NestedType)
	if !ok || a.ID() != b.ID() || len(an.Fields()) != len(bn.Fields()) || fixedSize(a) != fixedSize(b) {
		return false
	}
	if a.ID() == arrow.DENSE_UNION || a.ID() == arrow.SPARSE_UNION {
		return arrow.TypeEqual(a, b)
	}
	for i, f := range an.Fields() {
		g := bn.Fields()[i]
		if a.ID() == arrow.STRUCT && f.Name != g.Name || !sameStorage(f.Type, g.Type) {
			return false
		}
	}
	return true
}

func storage(t arrow.DataType) arrow.DataType {
	for {
		e, ok := t.(arrow.ExtensionType)
		if !ok {
			return t
		}
		t = e.StorageType()
	}
}

func fixedSize(t arrow.DataType) int32 {
	if l, ok := t.(*arrow.FixedSizeListType); ok {
		return l.Len()
	}
	return 0
}

// as gives a column the type t, which has the same storage; it borrows the column and returns retained.
func as(column arrow.Array, t arrow.DataType) arrow.Array {
	if arrow.TypeEqual(column.DataType(), t) {
		column.Retain()
		return column
	}
	data := dataAs(column.Data(), t)
	defer data.Release()
	return array.MakeFromData(data)
}

func dataAs(data arrow.ArrayData, t arrow.DataType) arrow.ArrayData {
	children := data.Children()
	if nested, ok := storage(t).(arrow.NestedType); ok && len(nested.Fields()) == len(children) {
		typed := make([]arrow.ArrayData, len(children))
		for i, f := range nested.Fields() {
			typed[i] = dataAs(children[i], f.Type)
			defer typed[i].Release()
		}
		children = typed
	}
	if d, ok := data.Dictionary().(*array.Data); ok && d != nil {
		return array.NewDataWithDictionary(t, data.Len(), data.Buffers(), data.NullN(), data.Offset(), d)
	}
	return array.NewData(t, data.Len(), data.Buffers(), children, data.NullN(), data.Offset())
}
