package kernel

/*
#include "kernel.h"
*/
import "C"

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/cdata"
	duckdb "github.com/duckdb/duckdb-go-bindings"
)

// The C structs of this package and of cdata have the same layout; both follow the Arrow C data interface.
func arrayOf(a *C.struct_ArrowArray) *cdata.CArrowArray {
	return (*cdata.CArrowArray)(unsafe.Pointer(a))
}
func schemaOf(s *C.struct_ArrowSchema) *cdata.CArrowSchema {
	return (*cdata.CArrowSchema)(unsafe.Pointer(s))
}

// resultSchema returns the Arrow schema of a result and DuckDB's names of its types.
func resultSchema(result *duckdb.Result, options duckdb.ArrowOptions) (*arrow.Schema, []string, error) {
	n := int(duckdb.ColumnCount(result))
	if n == 0 {
		return arrow.NewSchema(nil, nil), nil, nil
	}
	types := unsafe.Slice((*C.manta_handle)(C.calloc(C.size_t(n), C.size_t(unsafe.Sizeof(C.manta_handle(nil))))), n)
	names := unsafe.Slice((**C.char)(C.calloc(C.size_t(n), C.size_t(unsafe.Sizeof((*C.char)(nil))))), n)
	defer C.free(unsafe.Pointer(&types[0]))
	defer C.free(unsafe.Pointer(&names[0]))
	typeNames := make([]string, n)
	for i := range n {
		t := duckdb.ColumnLogicalType(result, duckdb.IdxT(i))
		defer duckdb.DestroyLogicalType(&t)
		typeNames[i] = typeName(t)
		types[i] = C.manta_handle(t.Ptr)
		names[i] = C.CString(duckdb.ColumnName(result, duckdb.IdxT(i)))
		defer C.free(unsafe.Pointer(names[i]))
	}
	var out C.struct_ArrowSchema
	if failed := C.duckdb_to_arrow_schema(C.manta_handle(options.Ptr), &types[0], &names[0], C.uint64_t(n), &out); failed != nil {
		return nil, nil, arrowError(failed)
	}
	meta := readMetadata(&out)
	schema, err := cdata.ImportCArrowSchema(schemaOf(&out)) // releases out
	if err != nil {
		return nil, nil, fmt.Errorf("kernel: result schema: %w", err)
	}
	fields := make([]arrow.Field, n)
	for i, f := range schema.Fields() {
		fields[i] = meta.children[i].restore(f)
	}
	return arrow.NewSchema(fields, nil), typeNames, nil
}

// arrowError takes an error that DuckDB's Arrow functions return.
func arrowError(failed C.manta_handle) error {
	defer C.duckdb_destroy_error_data(&failed)
	return newError(C.GoString(C.duckdb_error_data_message(failed)))
}

// metadata is the metadata of a field in C and of its children. cdata drops what the fields of a map have, and with it
// the names of DuckDB's own types.
type metadata struct {
	own      arrow.Metadata
	children []metadata
}

func readMetadata(s *C.struct_ArrowSchema) metadata {
	m := metadata{own: decodeMetadata(unsafe.Pointer(s.metadata))}
	for _, child := range unsafe.Slice(s.children, s.n_children) {
		m.children = append(m.children, readMetadata(child))
	}
	return m
}

// restore returns the field with the metadata of everything in it.
func (m metadata) restore(f arrow.Field) arrow.Field {
	f.Metadata = m.own
	at := m.children
	if f.Type.ID() == arrow.MAP {
		at = m.children[0].children // mapChildren passes the key and the value
	}
	return mapChildren(f, func(child arrow.Field) arrow.Field {
		next := at[0]
		at = at[1:]
		return next.restore(child)
	})
}

// decodeMetadata reads pairs of texts, each after its length, as the C data interface has them.
func decodeMetadata(p unsafe.Pointer) arrow.Metadata {
	if p == nil {
		return arrow.Metadata{}
	}
	number := func() int {
		n := binary.NativeEndian.Uint32(unsafe.Slice((*byte)(p), 4))
		p = unsafe.Add(p, 4)
		return int(n)
	}
	text := func() string {
		n := number()
		s := string(unsafe.Slice((*byte)(p), n))
		p = unsafe.Add(p, n)
		return s
	}
	n := number()
	keys, values := make([]string, n), make([]string, n)
	for i := range n {
		keys[i], values[i] = text(), text()
	}
	return arrow.NewMetadata(keys, values)
}

// mapChildren returns the field with the child fields of its type, if it has any, replaced by change; of a map, its
// key and its value.
func mapChildren(f arrow.Field, change func(arrow.Field) arrow.Field) arrow.Field {
	all := func(fields []arrow.Field) []arrow.Field {
		out := make([]arrow.Field, len(fields))
		for i, f := range fields {
			out[i] = change(f)
		}
		return out
	}
	switch t := f.Type.(type) {
	case *arrow.ListType:
		f.Type = arrow.ListOfField(change(t.ElemField()))
	case *arrow.LargeListType:
		f.Type = arrow.LargeListOfField(change(t.ElemField()))
	case *arrow.FixedSizeListType:
		f.Type = arrow.FixedSizeListOfField(t.Len(), change(t.ElemField()))
	case *arrow.MapType:
		m := arrow.MapOfFields(change(t.KeyField()), change(t.ItemField()))
		m.KeysSorted = t.KeysSorted
		f.Type = m
	case *arrow.StructType:
		f.Type = arrow.StructOf(all(t.Fields())...)
	case *arrow.SparseUnionType:
		f.Type = arrow.SparseUnionOf(all(t.Fields()), t.TypeCodes())
	case *arrow.DenseUnionType:
		f.Type = arrow.DenseUnionOf(all(t.Fields()), t.TypeCodes())
	}
	return f
}
