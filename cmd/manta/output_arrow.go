package main

import (
	"bufio"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// arrowWriter writes an Arrow IPC stream.
type arrowWriter struct {
	out *bufio.Writer
	ipc *ipc.Writer
}

func (a *arrowWriter) begin(s *arrow.Schema) error {
	a.ipc = ipc.NewWriter(a.out, ipc.WithSchema(s))
	return nil
}

func (a *arrowWriter) rows(b arrow.RecordBatch) error {
	if err := a.ipc.Write(b); err != nil {
		return err
	}
	return a.out.Flush()
}

func (a *arrowWriter) end() error {
	if err := a.ipc.Close(); err != nil {
		return err
	}
	return a.out.Flush()
}

// parquetWriter writes a Parquet file.
type parquetWriter struct {
	out  *bufio.Writer
	file *pqarrow.FileWriter
}

func (p *parquetWriter) begin(s *arrow.Schema) (err error) {
	props := parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Snappy))
	// The file writer closes what it writes to when it can; the standard output stays open.
	p.file, err = pqarrow.NewFileWriter(s, struct{ io.Writer }{p.out}, props, pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
	if err != nil {
		return fmt.Errorf("these columns can't be written as Parquet: %w", err)
	}
	return nil
}

func (p *parquetWriter) rows(b arrow.RecordBatch) error { return p.file.WriteBuffered(b) }

func (p *parquetWriter) end() error {
	if err := p.file.Close(); err != nil {
		return err
	}
	return p.out.Flush()
}
