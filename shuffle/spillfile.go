package shuffle

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"manta/objectstore/block"
	"manta/shuffle/shufflepb"
)

// spillFile is one producer's file, of disk mode or of a jam in streaming: blocks, or batches as they cross (format.go), one
// after another. One goroutine appends; once flushed, any number read.
type spillFile struct {
	f    *os.File
	path string
	out  *bufio.Writer
	at   int64        // written so far; the writer's
	size atomic.Int64 // readable
}

// newFile makes the file of a producer and registers it with the job, which removes it.
func (j *job) newFile(s *Service, k fileKey) (*spillFile, error) {
	dir, err := j.folder(s)
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(dir, "rows-*.arrow")
	if err != nil {
		return nil, fmt.Errorf("shuffle: mode %s: %w", Disk, err)
	}
	sf := &spillFile{f: f, path: f.Name(), out: bufio.NewWriterSize(f, 256<<10)}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ended {
		sf.remove()
		return nil, fmt.Errorf("%w: %s", ErrJobEnded, j.id)
	}
	if j.files[k] != nil {
		sf.remove()
		return nil, fmt.Errorf("%w: producer %d of edge %d has a file", ErrEdge, k.producer, k.edge)
	}
	j.files[k] = sf
	return sf, nil
}

// append writes batches (borrowed) as one block and returns where it is.
func (f *spillFile) append(mem memory.Allocator, schema *arrow.Schema, batches []arrow.RecordBatch) (*shufflepb.Ref, error) {
	return f.put(func(w io.Writer) error { return block.EncodeTo(w, mem, schema, batches...) })
}

// appendBlock writes what is encoded already.
func (f *spillFile) appendBlock(parts [][]byte) (*shufflepb.Ref, error) {
	return f.put(func(w io.Writer) error {
		for _, p := range parts {
			if _, err := w.Write(p); err != nil {
				return err
			}
		}
		return nil
	})
}

func (f *spillFile) put(write func(io.Writer) error) (*shufflepb.Ref, error) {
	w := &summer{w: f.out}
	if err := write(w); err != nil {
		return nil, err
	}
	ref := &shufflepb.Ref{Offset: f.at, Size: w.n, Sum: w.digest.sum()}
	f.at += w.n
	return ref, nil
}

// read returns a block that was flushed, in memory of mem.
func (f *spillFile) read(mem memory.Allocator, ref *shufflepb.Ref) ([]byte, error) {
	data := mem.Allocate(int(ref.Size))
	_, err := f.f.ReadAt(data, ref.Offset)
	if err == nil && sumOf(data) != ref.Sum {
		err = fmt.Errorf("%w: %d bytes at %d", ErrCorrupt, ref.Size, ref.Offset)
	}
	if err != nil {
		mem.Free(data)
		return nil, err
	}
	return data, nil
}

// flush makes everything that was appended readable.
func (f *spillFile) flush() error {
	if err := f.out.Flush(); err != nil {
		return err
	}
	f.size.Store(f.at)
	return nil
}

// check refuses a range that is not in the file.
func (f *spillFile) check(ref *shufflepb.Ref) error {
	size := f.size.Load()
	if ref.GetOffset() < 0 || ref.GetSize() < 0 || ref.GetSize() > size || ref.GetOffset() > size-ref.GetSize() {
		return fmt.Errorf("%w: range of %d bytes at %d in a file of %d", ErrEdge, ref.GetSize(), ref.GetOffset(), size)
	}
	return nil
}

// remove ends the file; reads that are under way fail.
func (f *spillFile) remove() {
	_ = f.f.Close()
	_ = os.Remove(f.path)
}

// summer counts and sums what passes.
type summer struct {
	w io.Writer
	n int64
	digest
}

func (s *summer) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	s.n += int64(n)
	s.add(p[:n])
	return n, err
}
