package kernel

/*
#include "kernel.h"
*/
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/cdata"
	"github.com/apache/arrow-go/v18/arrow/ipc"
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
	schema, err := cdata.ImportCArrowSchema(schemaOf(&out))
	if err != nil {
		return nil, nil, fmt.Errorf("kernel: result schema: %w", err)
	}
	return storageSchema(schema), typeNames, nil
}

// arrowError takes an error that DuckDB's Arrow functions return.
func arrowError(failed C.manta_handle) error {
	defer C.duckdb_destroy_error_data(&failed)
	return newError(C.GoString(C.duckdb_error_data_message(failed)))
}

// storageSchema replaces extension types by their storage, keeping the extension's name and parameters as metadata
// of the field. Whether Arrow knows an extension depends on what else the process imports; the kernel's schemas do not.
func storageSchema(s *arrow.Schema) *arrow.Schema {
	fields := make([]arrow.Field, s.NumFields())
	for i, f := range s.Fields() {
		fields[i] = storageField(f)
	}
	meta := s.Metadata()
	return arrow.NewSchema(fields, &meta)
}

func storageField(f arrow.Field) arrow.Field {
	switch t := f.Type.(type) {
	case arrow.ExtensionType:
		keys := append(append([]string{}, f.Metadata.Keys()...), ipc.ExtensionTypeKeyName, ipc.ExtensionMetadataKeyName)
		values := append(append([]string{}, f.Metadata.Values()...), t.ExtensionName(), t.Serialize())
		f.Type, f.Metadata = t.StorageType(), arrow.NewMetadata(keys, values)
		return storageField(f)
	case *arrow.ListType:
		f.Type = arrow.ListOfField(storageField(t.ElemField()))
	case *arrow.LargeListType:
		f.Type = arrow.LargeListOfField(storageField(t.ElemField()))
	case *arrow.FixedSizeListType:
		f.Type = arrow.FixedSizeListOfField(t.Len(), storageField(t.ElemField()))
	case *arrow.MapType:
		m := arrow.MapOfFields(storageField(t.KeyField()), storageField(t.ItemField()))
		m.KeysSorted = t.KeysSorted
		f.Type = m
	case *arrow.StructType:
		f.Type = arrow.StructOf(storageFields(t.Fields())...)
	case *arrow.SparseUnionType:
		f.Type = arrow.SparseUnionOf(storageFields(t.Fields()), t.TypeCodes())
	case *arrow.DenseUnionType:
		f.Type = arrow.DenseUnionOf(storageFields(t.Fields()), t.TypeCodes())
	}
	return f
}

func storageFields(fields []arrow.Field) []arrow.Field {
	out := make([]arrow.Field, len(fields))
	for i, f := range fields {
		out[i] = storageField(f)
	}
	return out
}
