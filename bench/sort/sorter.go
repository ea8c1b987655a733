package sort

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"io"
	"os"
	"slices"
)

// sorter sorts records within a fixed memory: what does not fit is written as sorted runs, which are merged at the end.
type sorter struct {
	dir     string
	data    []byte  // records, up to its capacity
	entries []entry // of the records in data
	runs    []*os.File
	spilled int64
}

// entry stands for a record while sorting: most comparisons need no more than the first bytes.
type entry struct {
	prefix uint64
	at     uint32 // record in data
}

const entryBytes = 16

// newSorter makes a sorter that uses about memory bytes.
func newSorter(dir string, memory int64) *sorter {
	n := max(memory/(recordBytes+entryBytes), 1)
	return &sorter{dir: dir, data: make([]byte, 0, n*recordBytes), entries: make([]entry, 0, n)}
}

// add takes whole records.
func (s *sorter) add(records []byte) error {
	for len(records) > 0 {
		if len(s.data) == cap(s.data) {
			if err := s.spill(); err != nil {
				return err
			}
		}
		n := min(len(records), cap(s.data)-len(s.data))
		for at := 0; at < n; at += recordBytes {
			s.entries = append(s.entries, entry{binary.BigEndian.Uint64(records[at:]), uint32(len(s.entries))})
		}
		s.data = append(s.data, records[:n]...)
		records = records[n:]
	}
	return nil
}

func (s *sorter) record(e entry) []byte {
	at := int(e.at) * recordBytes
	return s.data[at : at+recordBytes]
}

// order sorts what is in memory.
func (s *sorter) order() {
	slices.SortFunc(s.entries, func(a, b entry) int {
		if a.prefix != b.prefix {
			return cmp.Compare(a.prefix, b.prefix)
		}
		return bytes.Compare(s.record(a), s.record(b))
	})
}

// write writes what is in memory, in order, and forgets it.
func (s *sorter) write(w io.Writer) error {
	s.order()
	out := bufio.NewWriterSize(w, 1<<20)
	for _, e := range s.entries {
		if _, err := out.Write(s.record(e)); err != nil {
			return err
		}
	}
	s.data, s.entries = s.data[:0], s.entries[:0]
	return out.Flush()
}

// spill writes a run.
func (s *sorter) spill() error {
	f, err := os.CreateTemp(s.dir, "run-*")
	if err != nil {
		return err
	}
	s.runs = append(s.runs, f)
	s.spilled += int64(len(s.data))
	return s.write(f)
}

// finish writes everything in order and empties the sorter.
func (s *sorter) finish(w io.Writer) error {
	defer s.reset()
	if len(s.runs) == 0 {
		return s.write(w)
	}
	if len(s.data) > 0 {
		if err := s.spill(); err != nil {
			return err
		}
	}
	return s.merge(w)
}

// merge writes the runs in order: a heap of their heads.
func (s *sorter) merge(w io.Writer) error {
	// The memory of the records, which is free now, is for reading ahead.
	ahead := min(max(cap(s.data)/len(s.runs), recordBytes), 4<<20)
	heap := make([]*head, 0, len(s.runs))
	for _, f := range s.runs {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
		h := &head{in: bufio.NewReaderSize(f, ahead)}
		if ok, err := h.next(); err != nil {
			return err
		} else if ok {
			heap = append(heap, h)
		}
	}
	for i := len(heap)/2 - 1; i >= 0; i-- {
		sink(heap, i)
	}
	out := bufio.NewWriterSize(w, 1<<20)
	for len(heap) > 0 {
		if _, err := out.Write(heap[0].record[:]); err != nil {
			return err
		}
		ok, err := heap[0].next()
		if err != nil {
			return err
		}
		if !ok {
			heap[0] = heap[len(heap)-1]
			heap = heap[:len(heap)-1]
		}
		sink(heap, 0)
	}
	return out.Flush()
}

// head is the next record of a run.
type head struct {
	in     *bufio.Reader
	prefix uint64
	record [recordBytes]byte
}

func (h *head) next() (bool, error) {
	if _, err := io.ReadFull(h.in, h.record[:]); err == io.EOF {
		return false, nil
	} else if err != nil {
		return false, err
	}
	h.prefix = binary.BigEndian.Uint64(h.record[:])
	return true, nil
}

func (h *head) before(o *head) bool {
	if h.prefix != o.prefix {
		return h.prefix < o.prefix
	}
	return bytes.Compare(h.record[:], o.record[:]) < 0
}

// sink puts item i where it belongs.
func sink(heap []*head, i int) {
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(heap); c++ {
			if heap[c].before(heap[least]) {
				least = c
			}
		}
		if least == i {
			return
		}
		heap[i], heap[least] = heap[least], heap[i]
		i = least
	}
}

// reset forgets everything; the memory stays for the next range.
func (s *sorter) reset() {
	for _, f := range s.runs {
		_ = f.Close()
		_ = os.Remove(f.Name())
	}
	s.runs, s.data, s.entries = nil, s.data[:0], s.entries[:0]
}
