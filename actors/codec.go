package actors

import (
	"bytes"
	"fmt"
	"reflect"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/fxamacker/cbor/v2"
	"google.golang.org/protobuf/proto"

	"manta/actors/core"
)

// format is how a type's values are encoded.
type format uint8

const (
	asCBOR   format = iota
	asPlain         // CBOR, and within a process the value itself: it has no pointers but strings
	asBytes         // []byte: as they are
	asProto         // a protobuf message
	asBatch         // an Arrow record batch: IPC, in the store, where it is used on its node
	asReader        // an Arrow record reader: IPC, read to its end
	asInts          // []int or []int64: varints, which is many times faster than CBOR
	asFloats        // []float64: little-endian
)

// codec is how values of one type travel.
type codec struct {
	format format
	refs   bool // it may have references in it
	typ    reflect.Type
}

var (
	codecs     sync.Map // reflect.Type -> *codec
	protoType  = reflect.TypeFor[proto.Message]()
	batchType  = reflect.TypeFor[arrow.RecordBatch]()
	readerType = reflect.TypeFor[array.RecordReader]()
	innerType  = reflect.TypeFor[inner]()
	encoding   = must(cbor.EncOptions{Time: cbor.TimeRFC3339Nano}.EncMode())
	decoding   = must(cbor.DecOptions{MaxArrayElements: 1<<31 - 1, MaxMapPairs: 1<<31 - 1, MaxNestedLevels: 256}.DecMode())
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// inner is a handle inside a value: a *Ref, *Stream or *Handle.
type inner interface {
	shared() core.ID
	bind(rt *engine, job JobID)
}

func codecOf[T any]() *codec {
	typ := reflect.TypeFor[T]()
	if c, ok := codecs.Load(typ); ok {
		return c.(*codec)
	}
	c := &codec{typ: typ}
	switch {
	case typ == reflect.TypeFor[[]byte]():
		c.format = asBytes
	case typ.Implements(batchType):
		c.format = asBatch
	case typ.Implements(readerType):
		c.format = asReader
	case typ.Implements(protoType):
		c.format = asProto
	case typ == reflect.TypeFor[[]int](), typ == reflect.TypeFor[[]int64]():
		c.format = asInts
	case typ == reflect.TypeFor[[]float64]():
		c.format = asFloats
	case plain(typ):
		c.format = asPlain
	default:
		c.refs = mayRefer(typ, map[reflect.Type]bool{})
	}
	codecs.Store(typ, c)
	return c
}

// plain says whether a copy of a value of the type shares nothing that can be changed.
func plain(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16,
		reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64, reflect.String:
		return true
	case reflect.Array:
		return t.Size() <= 1024 && plain(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); !f.IsExported() || f.Tag != "" || !plain(f.Type) { // else CBOR would drop or rename it
				return false
			}
		}
		return t.Size() <= 1024
	}
	return false
}

// plainBytes is about how many bytes a plain value takes.
func plainBytes(c *codec, v any) int64 {
	switch s := v.(type) {
	case string:
		return int64(len(s))
	case int, bool, int64, float64:
		return 8
	}
	return stringBytes(reflect.ValueOf(v))
}

func stringBytes(v reflect.Value) (n int64) {
	switch v.Kind() {
	case reflect.String:
		return int64(v.Len())
	case reflect.Struct:
		for i := range v.NumField() {
			n += stringBytes(v.Field(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			n += stringBytes(v.Index(i))
		}
	default:
		return int64(v.Type().Size())
	}
	return n
}

// mayRefer says whether a value of the type may have a handle in it.
func mayRefer(t reflect.Type, seen map[reflect.Type]bool) bool {
	if t.Implements(innerType) {
		return true
	}
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return mayRefer(t.Elem(), seen)
	case reflect.Map:
		return mayRefer(t.Elem(), seen) || mayRefer(t.Key(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if mayRefer(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}

// walk visits the handles in a value.
func walk(v reflect.Value, f func(inner)) {
	if v.Type().Implements(innerType) {
		if v.Kind() != reflect.Pointer || !v.IsNil() {
			f(v.Interface().(inner))
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			walk(v.Elem(), f)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			walk(v.Index(i), f)
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			walk(it.Key(), f)
			walk(it.Value(), f)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				walk(v.Field(i), f)
			}
		}
	}
}

// plainValue is a value that can be shared within the process.
type plainValue[T any] struct{ v T }

func (p *plainValue[T]) Encode() ([]byte, error) { return encoding.Marshal(p.v) }

// encode gives a value's bytes and the objects that it refers to.
func (c *codec) encode(v any) (data []byte, contains []core.ID, err error) {
	switch c.format {
	case asBytes:
		return v.([]byte), nil, nil
	case asProto:
		data, err = proto.Marshal(v.(proto.Message))
	case asBatch:
		data, err = encodeBatch(v.(arrow.RecordBatch))
	case asReader:
		data, err = encodeReader(v.(array.RecordReader))
	case asInts, asFloats:
		data = encodeNumbers(v)
	default:
		if c.refs {
			walk(reflect.ValueOf(v), func(h inner) { contains = append(contains, h.shared()) })
		}
		data, err = encoding.Marshal(v)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("actors: a value of type %v cannot travel: %w", c.typ, err)
	}
	return data, contains, nil
}

// decode gives the value of the bytes. They are borrowed; []byte is copied when shared is set.
func decode[T any](rt *engine, job JobID, data []byte, shared bool) (v T, err error) {
	c := codecOf[T]()
	switch c.format {
	case asBytes:
		if shared {
			data = bytes.Clone(data)
		}
		return any(data).(T), nil
	case asProto:
		m := reflect.New(c.typ.Elem()).Interface().(proto.Message)
		if err = proto.Unmarshal(data, m); err == nil {
			return m.(T), nil
		}
	case asBatch:
		b, err := decodeBatch(data)
		if err == nil {
			return b.(T), nil
		}
		return v, err
	case asReader:
		if shared {
			data = bytes.Clone(data)
		}
		r, err := ipc.NewReader(bytes.NewReader(data))
		if err == nil {
			return any(r).(T), nil
		}
		return v, err
	case asInts, asFloats:
		err = decodeNumbers(data, &v)
	default:
		if err = decoding.Unmarshal(data, &v); err == nil && c.refs {
			walk(reflect.ValueOf(&v).Elem(), func(h inner) { h.bind(rt, job) })
		}
	}
	if err != nil {
		return v, fmt.Errorf("actors: not a value of type %v: %w", c.typ, err)
	}
	return v, nil
}

func encodeBatch(b arrow.RecordBatch) ([]byte, error) {
	var buf bytes.Buffer
	w := ipc.NewWriter(&buf, ipc.WithSchema(b.Schema()))
	if err := w.Write(b); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

func encodeReader(r array.RecordReader) ([]byte, error) {
	var buf bytes.Buffer
	w := ipc.NewWriter(&buf, ipc.WithSchema(r.Schema()))
	for r.Next() {
		if err := w.Write(r.RecordBatch()); err != nil {
			return nil, err
		}
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// decodeBatch gives the batch retained.
func decodeBatch(data []byte) (arrow.RecordBatch, error) {
	r, err := ipc.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	defer r.Release()
	if !r.Next() {
		if r.Err() != nil {
			return nil, r.Err()
		}
		return nil, fmt.Errorf("actors: no batch")
	}
	b := r.RecordBatch()
	b.Retain()
	return b, nil
}

// batchBytes is about how much memory a batch has.
func batchBytes(b arrow.RecordBatch) (n int64) {
	for _, col := range b.Columns() {
		n += arrayBytes(col.Data())
	}
	return n
}

func arrayBytes(d arrow.ArrayData) (n int64) {
	for _, b := range d.Buffers() {
		if b != nil {
			n += int64(b.Len())
		}
	}
	for _, child := range d.Children() {
		n += arrayBytes(child)
	}
	return n
}
