package kernel

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
)

// storageSchema replaces extension types by their storage, keeping the extension's name and parameters as metadata
// of the field. Whether a batch that was read from elsewhere has extension types depends on what the process imports;
// DuckDB's schemas don't have them.
func storageSchema(s *arrow.Schema) *arrow.Schema {
	fields := make([]arrow.Field, s.NumFields())
	for i, f := range s.Fields() {
		fields[i] = storageField(f)
	}
	meta := s.Metadata()
	return arrow.NewSchema(fields, &meta)
}

func storageField(f arrow.Field) arrow.Field {
	if t, ok := f.Type.(arrow.ExtensionType); ok {
		keys := append(append([]string{}, f.Metadata.Keys()...), ipc.ExtensionTypeKeyName, ipc.ExtensionMetadataKeyName)
		values := append(append([]string{}, f.Metadata.Values()...), t.ExtensionName(), t.Serialize())
		f.Type, f.Metadata = t.StorageType(), arrow.NewMetadata(keys, values)
	}
	return mapChildren(f, storageField)
}

// toStorage takes a batch and returns it, retained, with the types of schema, a storage schema. ok is false, and the
// batch released, when its memory is laid out otherwise.
func toStorage(b arrow.RecordBatch, schema *arrow.Schema) (out arrow.RecordBatch, ok bool) {
	if b.Schema() == schema || sameTypes(b.Schema(), schema) {
		return b, true
	}
	defer b.Release()
	if !sameTypes(storageSchema(b.Schema()), schema) {
		return nil, false
	}
	columns := make([]arrow.Array, b.NumCols())
	for i, column := range b.Columns() {
		data := retyped(column.Data(), schema.Field(i).Type)
		columns[i] = array.MakeFromData(data)
		data.Release()
		defer columns[i].Release()
	}
	return array.NewRecordBatch(schema, columns, b.NumRows()), true
}

func sameTypes(a, b *arrow.Schema) bool {
	if a.NumFields() != b.NumFields() {
		return false
	}
	for i := range a.NumFields() {
		if !arrow.TypeEqual(a.Field(i).Type, b.Field(i).Type) {
			return false
		}
	}
	return true
}

// retyped borrows data and returns the same memory, retained, under another type of the same layout.
func retyped(data arrow.ArrayData, t arrow.DataType) arrow.ArrayData {
	children := make([]arrow.ArrayData, len(data.Children()))
	for i, child := range data.Children() {
		children[i] = retyped(child, t.(arrow.NestedType).Fields()[i].Type)
		defer children[i].Release()
	}
	return array.NewData(t, data.Len(), data.Buffers(), children, data.NullN(), data.Offset())
}
