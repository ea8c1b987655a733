package kernel

import (
	"encoding/json"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// FromLossless returns the batch, of an instance with LosslessArrow, with the types that a reader without DuckDB
// expects. It borrows b and returns retained. Nested columns are converted too.
//
//	BOOLEAN                                            Boolean
//	HUGEINT                                            Decimal128(38, 0), without copying; 39-digit values keep their bits
//	UHUGEINT, UUID, BIT, BIGNUM, TIME WITH TIME ZONE   text, as DuckDB prints it
//
// Every other column is passed on as it is.
func FromLossless(b arrow.RecordBatch) (arrow.RecordBatch, error) {
	schema := FromLosslessSchema(b.Schema())
	columns := make([]arrow.Array, b.NumCols())
	for i, column := range b.Columns() {
		data, err := plainData(b.Schema().Field(i), column.Data())
		if err != nil {
			return nil, fmt.Errorf("kernel: column %s: %w", b.ColumnName(i), err)
		}
		columns[i] = array.MakeFromData(data)
		data.Release()
		defer columns[i].Release()
	}
	return array.NewRecordBatch(schema, columns, b.NumRows()), nil
}

// FromLosslessSchema returns the schema of FromLossless's batches.
func FromLosslessSchema(s *arrow.Schema) *arrow.Schema {
	fields := make([]arrow.Field, s.NumFields())
	for i, f := range s.Fields() {
		fields[i] = plainField(f)
	}
	meta := s.Metadata()
	return arrow.NewSchema(fields, &meta)
}

// extension returns the name of DuckDB's type behind a field of lossless storage, or "".
func extension(f arrow.Field) string {
	switch name, _ := f.Metadata.GetValue(ipc.ExtensionTypeKeyName); name {
	case "arrow.bool8":
		return "bool8"
	case "arrow.uuid":
		return "uuid"
	case "arrow.opaque":
		var opaque struct {
			Type   string `json:"type_name"`
			Vendor string `json:"vendor_name"`
		}
		text, _ := f.Metadata.GetValue(ipc.ExtensionMetadataKeyName)
		if json.Unmarshal([]byte(text), &opaque) == nil && opaque.Vendor == "DuckDB" {
			return opaque.Type
		}
	}
	return ""
}

func plainField(f arrow.Field) arrow.Field {
	plain := func(t arrow.DataType) arrow.Field { return arrow.Field{Name: f.Name, Type: t, Nullable: f.Nullable} }
	switch extension(f) {
	case "bool8":
		return plain(arrow.FixedWidthTypes.Boolean)
	case "hugeint":
		return plain(&arrow.Decimal128Type{Precision: 38})
	case "uhugeint", "uuid", "bit", "bignum", "time_tz":
		return plain(arrow.BinaryTypes.String)
	}
	// A type's name is no business of the reader's: some programs know it and some do not.
	f = mapChildren(f, plainField)
	f.Metadata = arrow.Metadata{}
	return f
}

// plainData borrows data and returns retained.
func plainData(f arrow.Field, data arrow.ArrayData) (arrow.ArrayData, error) {
	to := plainField(f).Type
	switch kind := extension(f); kind {
	case "bool8":
		return packBooleans(data), nil
	case "hugeint":
		return array.NewData(to, data.Len(), data.Buffers(), nil, data.NullN(), data.Offset()), nil
	case "uhugeint", "uuid", "bit", "bignum", "time_tz":
		return textData(kind, data)
	}
	nested, ok := f.Type.(arrow.NestedType)
	if !ok {
		data.Retain()
		return data, nil
	}
	children := make([]arrow.ArrayData, len(data.Children()))
	for i, child := range data.Children() {
		plain, err := plainData(nested.Fields()[i], child) // of a map: its entries, as a struct
		if err != nil {
			return nil, err
		}
		defer plain.Release()
		children[i] = plain
	}
	return array.NewData(to, data.Len(), data.Buffers(), children, data.NullN(), data.Offset()), nil
}

func packBooleans(data arrow.ArrayData) arrow.ArrayData {
	bytes := array.NewInt8Data(data)
	defer bytes.Release()
	b := array.NewBooleanBuilder(memory.DefaultAllocator)
	defer b.Release()
	b.Reserve(bytes.Len())
	for i := range bytes.Len() {
		if bytes.IsNull(i) {
			b.UnsafeAppendBoolToBitmap(false)
		} else {
			b.UnsafeAppend(bytes.Value(i) != 0)
		}
	}
	return takeData(b.NewArray())
}

func textData(kind string, data arrow.ArrayData) (arrow.ArrayData, error) {
	values := array.MakeFromData(data)
	defer values.Release()
	b := array.NewStringBuilder(memory.DefaultAllocator)
	defer b.Release()
	for i := range values.Len() {
		if values.IsNull(i) {
			b.AppendNull()
			continue
		}
		var raw []byte
		switch v := values.(type) {
		case *array.Binary:
			raw = v.Value(i)
		case *array.FixedSizeBinary:
			raw = v.Value(i)
		default:
			return nil, fmt.Errorf("a %s as %s", kind, v.DataType())
		}
		text, err := valueText(kind, raw)
		if err != nil {
			return nil, err
		}
		b.Append(text)
	}
	return takeData(b.NewArray()), nil
}

// takeData takes an array and returns its data, retained.
func takeData(a arrow.Array) arrow.ArrayData {
	defer a.Release()
	a.Data().Retain()
	return a.Data()
}
