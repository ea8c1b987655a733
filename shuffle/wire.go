package shuffle

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

// The names under which a node serves connections of the data plane.
const (
	linkService  = "shuffle.link"  // streaming channels of one node to another
	fetchService = "shuffle.fetch" // requests for blocks, and the blocks
)

// wire is one end of a connection of the data plane. One goroutine receives, one sends.
type wire struct {
	conn net.Conn

	// Of the receiver.
	in   *bufio.Reader
	left int64  // of the payload that is arriving, not read yet
	head []byte // scratch: of the batch that is arriving
	cuts []int  // scratch: its parts

	// Of the sender.
	heads   []byte
	buffers net.Buffers
	out     *bufio.Writer // in front of a connection that takes one buffer at a time; or nil

	once sync.Once
}

// inBuffer is enough for many small frames, and little enough that nearly all of a batch is read to where it belongs.
const inBuffer = 4 << 10

// outBuffer is a few records of TLS.
const outBuffer = 64 << 10

func newWire(conn net.Conn) *wire {
	w := &wire{conn: conn, in: bufio.NewReaderSize(conn, inBuffer)}
	if _, plain := conn.(*net.TCPConn); !plain {
		w.out = bufio.NewWriterSize(conn, outBuffer)
	}
	return w
}

// recv returns the next frame; what was not read of the payload before is dropped. io.EOF: the other end sends no more.
func (w *wire) recv() (f frame, err error) {
	for w.left > 0 {
		n, err := w.in.Discard(int(min(w.left, 1<<30)))
		w.left -= int64(n)
		if err != nil {
			return f, cutOff(err)
		}
	}
	var h [headerBytes]byte
	if _, err := io.ReadFull(w.in, h[:]); err != nil {
		return f, err
	}
	if err := f.parse(h[:]); err != nil {
		return f, err
	}
	w.left = f.size
	return f, nil
}

// read fills p from the payload.
func (w *wire) read(p []byte) error {
	if int64(len(p)) > w.left {
		return fmt.Errorf("%w: %d bytes of payload where %d are due", errFrame, w.left, len(p))
	}
	n, err := io.ReadFull(w.in, p)
	w.left -= int64(n)
	return cutOff(err)
}

// readBlock fills p from the payload and adds it to the checksum.
func (w *wire) readBlock(p []byte, sum *digest) error {
	for len(p) > 0 {
		chunk := p[:min(len(p), sumChunk)]
		if err := w.read(chunk); err != nil {
			return err
		}
		sum.add(chunk)
		p = p[len(chunk):]
	}
	return nil
}

// readBatch reads the payload, which is a batch, into memory of mem, and returns the checksum of its parts. What the head says must
// make up the size before that much memory is taken.
func (w *wire) readBatch(mem memory.Allocator, f *format) (p []byte, s uint32, err error) {
	var sum partSums
	size := w.left
	w.head = slices.Grow(w.head[:0], f.head())[:min(int64(f.head()), size)]
	if err := w.read(w.head); err != nil {
		return nil, 0, err
	}
	sum.add(w.head)
	if w.cuts, err = f.cut(w.head, size, w.cuts); err != nil {
		return nil, 0, err
	}
	p = mem.Allocate(int(size))
	copy(p, w.head)
	if err := w.readParts(p, len(w.head), w.cuts, &sum); err != nil {
		mem.Free(p)
		return nil, 0, err
	}
	return p, sum.sum(), nil
}

// readParts fills p, from a place on, with parts of such lengths.
func (w *wire) readParts(p []byte, at int, cuts []int, sum *partSums) error {
	for done := 0; done < len(cuts); {
		// So many parts, or whole chunks of one, as make a good read.
		n, next := 0, done
		for next < len(cuts) && n+min(cuts[next], sumChunk) <= sumChunk {
			n += min(cuts[next], sumChunk)
			if cuts[next] > sumChunk {
				break
			}
			next++
		}
		if err := w.read(p[at : at+n]); err != nil {
			return err
		}
		for ; done < next; done++ {
			sum.add(p[at : at+cuts[done]])
			at += cuts[done]
			n -= cuts[done]
		}
		if n > 0 {
			sum.add(p[at : at+n])
			at += n
			cuts[done] -= n
		}
	}
	return nil
}

// text returns the payload of a frame without rows, of at most limit bytes.
func (w *wire) text(limit int) ([]byte, error) {
	if w.left > int64(limit) {
		return nil, fmt.Errorf("%w: payload of %d bytes", errFrame, w.left)
	}
	p := make([]byte, w.left)
	return p, w.read(p)
}

// cutOff makes the end of a connection within a frame an error.
func cutOff(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// send writes frames with one call to the system, as far as that takes them, or through out where there is TLS. Their blocks stay the
// caller's.
func (w *wire) send(frames ...outgoing) error {
	w.heads = w.heads[:0]
	if need := len(frames) * headerBytes; cap(w.heads) < need {
		w.heads = make([]byte, 0, need) // never moved below: buffers point into it
	}
	all := w.buffers[:0]
	from := -1 // where the headers begin that nothing lies between
	for i := range frames {
		o := &frames[i]
		o.f.size = int64(len(o.text))
		if o.block != nil {
			o.f.size = o.block.size
		}
		at := len(w.heads)
		w.heads = o.f.appendTo(w.heads)
		if from >= 0 { // the last frame was a header alone
			all[len(all)-1] = w.heads[from:]
		} else {
			from = at
			all = append(all, w.heads[at:])
		}
		if o.block != nil || len(o.text) > 0 {
			from = -1
		}
		if len(o.text) > 0 {
			all = append(all, o.text)
		}
		if o.block != nil {
			all = append(all, o.block.parts...)
		}
	}
	w.buffers = all
	defer clear(w.buffers)
	if w.out == nil {
		_, err := all.WriteTo(w.conn)
		return err
	}
	for _, p := range all {
		if _, err := w.out.Write(p); err != nil {
			return err
		}
	}
	return w.out.Flush()
}

// end says that nothing more will be sent.
func (w *wire) end() error {
	c, ok := w.conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return c.CloseWrite()
}

// refuse tells the other end why the connection ends, and gives it a moment to read that.
func (w *wire) refuse(err error) {
	_ = w.conn.SetDeadline(time.Now().Add(time.Second))
	if w.send(outgoing{f: frame{kind: frameFail}, text: encodeFailure(err)}) == nil && w.end() == nil {
		_, _ = io.Copy(io.Discard, w.in)
	}
}

// close ends both directions, at once.
func (w *wire) close() { w.once.Do(func() { _ = w.conn.Close() }) }
