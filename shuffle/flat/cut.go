package flat

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrCorrupt is the error of bytes that are no batch of the layout.
var ErrCorrupt = errors.New("flat: not a batch")

const align = 8

// maxLength bounds the rows of an array, so that sums and products of lengths do not overflow.
const maxLength = 1 << 40

// Cut returns the lengths of the parts that follow a head in a batch of size bytes, all in all and with padding as parts of their
// own. into is reused.
func (l *Layout) Cut(head []byte, size int64, into []int) ([]int, error) {
	if len(head) != l.HeadBytes() || size < int64(len(head)) {
		return nil, fmt.Errorf("%w: %d bytes", ErrCorrupt, size)
	}
	c := cutter{words: head, left: size - int64(len(head)), parts: into[:0]}
	rows := c.word()
	for i := range l.nodes {
		c.array(&l.nodes[i], rows)
	}
	switch {
	case c.err != nil:
		return nil, c.err
	case c.left != 0:
		return nil, fmt.Errorf("%w: %d bytes too many", ErrCorrupt, c.left)
	}
	return c.parts, nil
}

// cutter walks a head. After an error it does nothing.
type cutter struct {
	words []byte
	left  int64 // bytes that are not given to a part yet
	parts []int
	err   error
}

func (c *cutter) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("%w: "+format, append([]any{ErrCorrupt}, args...)...)
	}
}

// word is the next one, a length.
func (c *cutter) word() int64 {
	w := binary.LittleEndian.Uint64(c.words)
	c.words = c.words[8:]
	if w > maxLength {
		c.fail("a length of %d", w)
		return 0
	}
	return int64(w)
}

// part takes n values of some bytes each.
func (c *cutter) part(n, width int64) {
	if c.err != nil || n == 0 || width == 0 {
		return
	}
	if n > c.left/width {
		c.fail("%d values of %d bytes in %d", n, width, c.left)
		return
	}
	n *= width
	c.parts = append(c.parts, int(n))
	pad := -n & (align - 1)
	if c.left -= n + pad; c.left < 0 {
		c.fail("no padding")
		return
	}
	if pad > 0 {
		c.parts = append(c.parts, int(pad))
	}
}

func (c *cutter) array(n *node, length int64) {
	if c.err != nil {
		return
	}
	if n.kind == nothing {
		if n.full && length > 0 {
			c.fail("%d nulls where none may be", length)
		}
		return
	}
	nulls := c.word()
	if nulls > length || nulls > 0 && n.full {
		c.fail("%d nulls of %d", nulls, length)
		return
	}
	if nulls > 0 {
		c.part((length+7)/8, 1)
	}
	switch n.kind {
	case bits:
		c.part((length+7)/8, 1)
	case fixed:
		c.part(length, int64(n.width))
	case text:
		bytes := c.word()
		c.part(length+1, int64(n.width))
		c.part(bytes, 1)
	case list:
		values := c.word()
		c.part(length+1, int64(n.width))
		c.array(&n.children[0], values)
	case group:
		for i := range n.children {
			c.array(&n.children[i], length)
		}
	case tuples:
		if n.width > 0 && length > maxLength/int64(n.width) {
			c.fail("%d lists of %d values", length, n.width)
			return
		}
		c.array(&n.children[0], length*int64(n.width))
	}
}
