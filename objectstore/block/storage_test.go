package block

import (
	"bytes"
	"io"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	_ "github.com/apache/arrow-go/v18/arrow/extensions" // registers arrow.uuid and others
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
)

// A program that knows an extension type reads the same columns as one that does not.
func TestRegisteredExtensionsDoNotShow(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	named := func(name string, typ arrow.DataType, extension, detail string) arrow.Field {
		return arrow.Field{Name: name, Type: typ, Nullable: true,
			Metadata: arrow.NewMetadata([]string{ipc.ExtensionTypeKeyName, ipc.ExtensionMetadataKeyName}, []string{extension, detail})}
	}
	uuid := named("u", &arrow.FixedSizeBinaryType{ByteWidth: 16}, "arrow.uuid", "")
	bool8 := named("b", arrow.PrimitiveTypes.Int8, "arrow.bool8", "")
	element := uuid
	element.Name = "item"
	schema := arrow.NewSchema([]arrow.Field{uuid, bool8, {Name: "l", Type: arrow.ListOfField(element), Nullable: true}}, nil)

	build := array.NewRecordBuilder(mem, schema)
	defer build.Release()
	id := bytes.Repeat([]byte{7}, 16)
	build.Field(0).(*array.FixedSizeBinaryBuilder).Append(id)
	build.Field(1).(*array.Int8Builder).Append(1)
	list := build.Field(2).(*array.ListBuilder)
	list.Append(true)
	list.ValueBuilder().(*array.FixedSizeBinaryBuilder).Append(id)
	batch := build.NewRecordBatch()
	defer batch.Release()

	var data bytes.Buffer
	w := ipc.NewWriter(&data, ipc.WithSchema(schema), ipc.WithAllocator(mem))
	require.NoError(t, w.Write(batch))
	require.NoError(t, w.Close())
	plain, err := ipc.NewReader(bytes.NewReader(data.Bytes()))
	require.NoError(t, err)
	require.Equal(t, arrow.EXTENSION, plain.Schema().Field(0).Type.ID(), "the extension is registered here")
	plain.Release()

	r, err := Decode(data.Bytes(), schema, nil)
	require.NoError(t, err)
	defer r.Close()
	got, err := r.Next()
	require.NoError(t, err)
	defer got.Release()
	require.True(t, array.RecordEqual(batch, got))
	require.IsType(t, &array.FixedSizeBinary{}, got.Column(0))
	require.IsType(t, &array.Int8{}, got.Column(1))
	_, err = r.Next()
	require.Equal(t, io.EOF, err)

	_, err = Decode(data.Bytes(), arrow.NewSchema([]arrow.Field{bool8, uuid, schema.Field(2)}, nil), nil)
	require.ErrorIs(t, err, ErrSchema)
}
