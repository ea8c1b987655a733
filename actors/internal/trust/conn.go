package trust

import (
	"crypto/tls"
	"net"
	"sync"
	"time"
)

const (
	recordBytes = 16 << 10  // of payload, at most
	gatherBytes = 128 << 10 // what a call to the system writes, about
	readBytes   = 64 << 10  // what one reads, at most
	goodbye     = 10 * time.Millisecond
)

// Conn is a byte stream over TLS. One goroutine may read while another writes, and others set deadlines and close.
type Conn struct {
	records records
	tls     *tls.Conn
	writing sync.Mutex // held by Write and CloseWrite, all the way to the system
}

func newConn(conn net.Conn, begun []byte) *Conn {
	return &Conn{records: records{Conn: conn, in: begun}}
}

// Read reads what has arrived.
func (c *Conn) Read(p []byte) (int, error) { return c.tls.Read(p) }

// Write writes all of p, or the connection is of no use for writing any more.
func (c *Conn) Write(p []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if len(p) <= recordBytes {
		return c.tls.Write(p)
	}
	c.records.gather()
	n, err := c.tls.Write(p)
	if ferr := c.records.flush(); err == nil && ferr != nil {
		n, err = 0, ferr
	}
	return n, err
}

// CloseWrite says that nothing more will be written. It waits for what was written before.
func (c *Conn) CloseWrite() error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := c.sayClosed(); err != nil {
		return err
	}
	if half, ok := c.records.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

func (c *Conn) sayClosed() error {
	c.records.gather()
	err := c.tls.CloseWrite()
	if ferr := c.records.flush(); err == nil {
		err = ferr
	}
	return err
}

// Close ends both directions, and whatever reads or writes. The other end is told if there is room for that.
func (c *Conn) Close() error {
	if c.writing.TryLock() {
		_ = c.records.Conn.SetWriteDeadline(time.Now().Add(goodbye))
		_ = c.sayClosed()
		c.writing.Unlock()
	}
	return c.records.Conn.Close()
}

func (c *Conn) LocalAddr() net.Addr                { return c.records.LocalAddr() }
func (c *Conn) RemoteAddr() net.Addr               { return c.records.RemoteAddr() }
func (c *Conn) SetDeadline(t time.Time) error      { return c.records.Conn.SetDeadline(t) }
func (c *Conn) SetReadDeadline(t time.Time) error  { return c.records.Conn.SetReadDeadline(t) }
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.records.Conn.SetWriteDeadline(t) }

// records is the connection below TLS. It turns many small reads and writes of the system into few large ones.
type records struct {
	net.Conn

	// Of the reader.
	in    []byte // read from the system and not by TLS
	inBuf []byte // what in lies in

	mu  sync.Mutex
	out []byte // guarded by mu; gathered, not written
	on  bool   // guarded by mu: gathering
	err error  // guarded by mu; of the first write that failed
}

// outBufs holds buffers for out: *[]byte. A connection has one while it writes much.
var outBufs = sync.Pool{New: func() any {
	b := make([]byte, 0, gatherBytes+2*recordBytes)
	return &b
}}

func (r *records) Read(p []byte) (int, error) {
	if len(r.in) == 0 {
		if r.inBuf == nil {
			r.inBuf = make([]byte, 4<<10)
		}
		n, err := r.Conn.Read(r.inBuf)
		if n == 0 {
			return 0, err
		}
		r.in = r.inBuf[:n]
		if n == len(r.inBuf) && n < readBytes { // much comes: larger from now on
			r.inBuf = make([]byte, 2*n)
		}
	}
	n := copy(p, r.in)
	r.in = r.in[n:]
	return n, nil
}

func (r *records) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return 0, r.err
	}
	if !r.on {
		n, err := r.Conn.Write(p)
		r.err = err
		return n, err
	}
	r.out = append(r.out, p...)
	if len(r.out) >= gatherBytes {
		r.writeOut()
	}
	return len(p), r.err
}

// gather keeps what is written until flush, or until it is much.
func (r *records) gather() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.on = true
	r.out = (*outBufs.Get().(*[]byte))[:0]
}

func (r *records) flush() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil && len(r.out) > 0 {
		r.writeOut()
	}
	out := r.out
	outBufs.Put(&out)
	r.out, r.on = nil, false
	return r.err
}

func (r *records) writeOut() {
	_, r.err = r.Conn.Write(r.out)
	r.out = r.out[:0]
}

// SetWriteDeadline does nothing: TLS sets one of its own around its goodbye. Those of the user go past it.
func (r *records) SetWriteDeadline(time.Time) error { return nil }
