package block

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// ErrCorrupt is the error of bytes that are no block.
var ErrCorrupt = errors.New("block: not a valid Arrow IPC stream")

// ErrSchema is the error of a block whose columns have other types than the reader's schema.
var ErrSchema = errors.New("block: schema mismatch")

// Reader gives the batches of one block, one after another.
type Reader struct {
	ipc    *ipc.Reader
	whole  *memory.Buffer
	schema *arrow.Schema
}

// Decode reads the block data. Its batches get the given schema, whose types must be the block's; nil is the block's own. free runs once, when the
// Reader is closed and the last batch is released; data must not change until then. On error free has run.
func Decode(data []byte, schema *arrow.Schema, free func()) (*Reader, error) {
	whole := memory.NewBufferWithAllocator(data, freeFunc(free))
	r := &Reader{whole: whole, schema: schema}
	var err error
	r.ipc, err = ipc.NewReaderFromMessageReader(&messages{whole: whole, refs: 1})
	if err != nil {
		whole.Release()
		return nil, fmt.Errorf("%w: %v", ErrCorrupt, err)
	}
	if schema == nil {
		r.schema = r.ipc.Schema()
		return r, nil
	}
	if err := sameTypes(r.ipc.Schema(), schema); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// Next returns the next batch, retained, or io.EOF.
func (r *Reader) Next() (arrow.RecordBatch, error) {
	if !r.ipc.Next() {
		if err := r.ipc.Err(); err != nil {
			return nil, fmt.Errorf("%w: %v", ErrCorrupt, err)
		}
		return nil, io.EOF
	}
	b := r.ipc.RecordBatch()
	columns := make([]arrow.Array, b.NumCols())
	for i, c := range b.Columns() {
		columns[i] = as(c, r.schema.Field(i).Type)
		defer columns[i].Release()
	}
	return array.NewRecordBatch(r.schema, columns, b.NumRows()), nil
}

// Close ends reading. Batches that were returned stay valid.
func (r *Reader) Close() {
	r.ipc.Release()
	r.whole.Release()
}

func sameTypes(got, want *arrow.Schema) error {
	if got.NumFields() != want.NumFields() {
		return fmt.Errorf("%w: %d columns where %d are due", ErrSchema, got.NumFields(), want.NumFields())
	}
	for i, f := range got.Fields() {
		if w := want.Field(i); !sameStorage(f.Type, w.Type) {
			return fmt.Errorf("%w: column %d (%s) has type %s where %s is due", ErrSchema, i, w.Name, f.Type, w.Type)
		}
	}
	return nil
}

// freeFunc is an allocator that only frees: how an Arrow buffer tells us that it is done with foreign memory.
type freeFunc func()

func (f freeFunc) Allocate(int) []byte           { panic("block: foreign memory cannot grow") }
func (f freeFunc) Reallocate(int, []byte) []byte { panic("block: foreign memory cannot grow") }
func (f freeFunc) Free([]byte) {
	if f != nil {
		f()
	}
}

// messages cuts a block into IPC messages that point into it.
type messages struct {
	whole *memory.Buffer
	at    int
	cur   *ipc.Message
	refs  int32
}

func (m *messages) Retain() { atomic.AddInt32(&m.refs, 1) }

func (m *messages) Release() {
	if atomic.AddInt32(&m.refs, -1) == 0 && m.cur != nil {
		m.cur.Release()
		m.cur = nil
	}
}

const continuation = 0xFFFFFFFF

// Message returns the next message, valid until the next call.
func (m *messages) Message() (*ipc.Message, error) {
	data := m.whole.Bytes()
	if len(data)-m.at < 8 {
		return nil, io.ErrUnexpectedEOF
	}
	if binary.LittleEndian.Uint32(data[m.at:]) != continuation {
		return nil, errors.New("no message where one is due")
	}
	size := int(int32(binary.LittleEndian.Uint32(data[m.at+4:])))
	m.at += 8
	if size == 0 {
		return nil, io.EOF
	}
	if size < 8 || size > len(data)-m.at {
		return nil, fmt.Errorf("a message header of %d bytes", size)
	}
	header := memory.NewBufferBytes(data[m.at : m.at+size])
	m.at += size
	length, err := bodyLength(header)
	if err != nil {
		return nil, err
	}
	if length < 0 || length > int64(len(data)-m.at) {
		return nil, fmt.Errorf("a message body of %d bytes", length)
	}
	body := memory.SliceBuffer(m.whole, m.at, int(length))
	defer body.Release()
	m.at += int(length)
	if m.cur != nil {
		m.cur.Release()
	}
	m.cur = ipc.NewMessage(header, body)
	return m.cur, nil
}

// bodyLength reads the length out of a message header, whose bytes may be anything.
func bodyLength(header *memory.Buffer) (n int64, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a bad message header: %v", p)
		}
	}()
	empty := memory.NewBufferBytes(nil)
	m := ipc.NewMessage(header, empty)
	defer m.Release()
	return m.BodyLen(), nil
}
