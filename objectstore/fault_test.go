package objectstore

import (
	"errors"
	"io"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// faultyFiles is the real file system with switches that make it fail.
type faultyFiles struct {
	osFiles
	create, write, read, truncate, remove atomic.Pointer[error]
	short                                 atomic.Bool        // writes half and says so without an error
	partial                               atomic.Bool        // writes half before a write error
	flip                                  atomic.Bool        // one byte of each read is wrong
	noSpace                               atomic.Bool        // nothing is left, and nobody knows of how much
	used                                  atomic.Int64       // percent of the disk
	slow, slowRead                        atomic.Int64       // nanoseconds that a write, a read takes at least
	block                                 chan chan struct{} // when not nil, each write waits for an answer
}

func set(p *atomic.Pointer[error], err error) {
	if err == nil {
		p.Store(nil)
		return
	}
	p.Store(&err)
}

func failing(p *atomic.Pointer[error]) error {
	if err := p.Load(); err != nil {
		return *err
	}
	return nil
}

func (f *faultyFiles) Create(path string) (file, error) {
	if err := failing(&f.create); err != nil {
		return nil, err
	}
	real, err := f.osFiles.Create(path)
	if err != nil {
		return nil, err
	}
	return &faultyFile{real, f}, nil
}

func (f *faultyFiles) Remove(path string) error {
	if err := failing(&f.remove); err != nil {
		return err
	}
	return f.osFiles.Remove(path)
}

func (f *faultyFiles) Open(path string) (file, error) {
	if err := failing(&f.create); err != nil {
		return nil, err
	}
	real, err := f.osFiles.Open(path)
	if err != nil {
		return nil, err
	}
	return &faultyFile{real, f}, nil
}

func (f *faultyFiles) Space(dir string) (free, total int64, err error) {
	if f.noSpace.Load() {
		return 0, 0, nil
	}
	if percent := f.used.Load(); percent > 0 {
		return 100<<30 - percent<<30, 100 << 30, nil
	}
	return 50 << 30, 100 << 30, nil
}

type faultyFile struct {
	file
	on *faultyFiles
}

func (f *faultyFile) WriteAt(p []byte, off int64) (int, error) {
	if f.on.block != nil {
		answer := make(chan struct{})
		f.on.block <- answer
		<-answer
	}
	time.Sleep(time.Duration(f.on.slow.Load()))
	if err := failing(&f.on.write); err != nil {
		n := 0
		if f.on.partial.Load() {
			n, _ = f.file.WriteAt(p[:len(p)/2], off)
		}
		return n, err
	}
	if f.on.short.Load() {
		return f.file.WriteAt(p[:len(p)/2], off)
	}
	return f.file.WriteAt(p, off)
}

func (f *faultyFile) ReadAt(p []byte, off int64) (int, error) {
	time.Sleep(time.Duration(f.on.slowRead.Load()))
	if err := failing(&f.on.read); err != nil {
		return 0, err
	}
	n, err := f.file.ReadAt(p, off)
	if f.on.flip.Load() && n > 0 {
		p[n/2] ^= 1
	}
	return n, err
}

func (f *faultyFile) Truncate(n int64) error {
	if err := failing(&f.on.truncate); err != nil {
		return err
	}
	return f.file.Truncate(n)
}

// fill puts values of 100,000 bytes until 30 are there, three times the memory limit.
func fill(t *testing.T, s *Store) (ids []ID) {
	for i := range 30 {
		ids = append(ids, put(t, s, "job", value(uint64(i), 100_000)))
	}
	return ids
}

func TestDiskRefusesWrites(t *testing.T) {
	for _, c := range []struct {
		name string
		fail func(*faultyFiles, error)
		want error
	}{
		{"no space", func(f *faultyFiles, err error) { set(&f.write, err) }, syscall.ENOSPC},
		{"no space half way", func(f *faultyFiles, err error) { f.partial.Store(true); set(&f.write, err) }, syscall.ENOSPC},
		{"no space half way and no truncate", func(f *faultyFiles, err error) {
			f.partial.Store(true)
			set(&f.write, err)
			set(&f.truncate, err)
		}, syscall.ENOSPC},
		{"i/o error", func(f *faultyFiles, err error) { set(&f.write, err) }, syscall.EIO},
		{"short write", func(f *faultyFiles, err error) { f.short.Store(err != nil) }, io.ErrShortWrite},
		{"no file", func(f *faultyFiles, err error) { set(&f.create, err); set(&f.write, err) }, syscall.EMFILE},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := &faultyFiles{}
			s := open(t, func(cfg *Config) { cfg.files, cfg.Wait, cfg.SpillFile = files, 100*time.Millisecond, 400_000 })
			var early []ID // on disk, in part, before the fault
			for i := range 15 {
				early = append(early, put(t, s, "job", value(uint64(i), 100_000)))
			}
			require.Positive(t, s.Stats().Spilled.Objects)

			c.fail(files, c.want)
			var full error
			var late []ID
			for i := 15; full == nil; i++ {
				require.Less(t, i, 40, "the store takes more than fits")
				var id ID
				if id, full = s.Put("job", value(uint64(i), 100_000)); full == nil {
					late = append(late, id)
				}
			}
			require.ErrorIs(t, full, ErrFull)
			require.ErrorIs(t, full, c.want)
			require.NotEmpty(t, s.Stats().Trouble)
			for i, id := range late { // nothing was lost for want of disk
				requireValue(t, s, id, value(uint64(15+i), 100_000))
			}
			// What is on disk stays readable. There is no room to restore it, so read it as a stream.
			for i, id := range early {
				r, err := s.NewReader(id)
				require.NoError(t, err)
				got, err := io.ReadAll(r)
				require.NoError(t, err)
				require.Equal(t, value(uint64(i), 100_000), got)
				require.NoError(t, r.Close())
			}

			c.fail(files, nil)
			require.Eventually(t, func() bool {
				_, err := s.Put("job", value(99, 100_000))
				return err == nil && s.Stats().Trouble == "" // a Put that found room says nothing about the disk
			}, 30*time.Second, 5*time.Millisecond, "the store does not recover")
			for i, id := range early {
				requireValue(t, s, id, value(uint64(i), 100_000))
			}
			s.ReleaseOwner("job")
			requireEmpty(t, s)
		})
	}
}

func TestBadReadsAreLost(t *testing.T) {
	for name, fail := range map[string]func(*faultyFiles, bool){
		"flipped byte": func(f *faultyFiles, on bool) { f.flip.Store(on) },
		"i/o error": func(f *faultyFiles, on bool) {
			if on {
				set(&f.read, syscall.EIO)
			} else {
				set(&f.read, nil)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			files := &faultyFiles{}
			s := open(t, func(cfg *Config) { cfg.files = files })
			ids := fill(t, s)
			fail(files, true)
			lost := 0
			for i, id := range ids {
				o, err := s.Get(id)
				if err != nil {
					require.ErrorIs(t, err, ErrLost)
					r, err := s.NewReader(id)
					require.NoError(t, err)
					_, err = io.Copy(io.Discard, r)
					require.ErrorIs(t, err, ErrLost)
					require.NoError(t, r.Close())
					lost++
					continue
				}
				require.Equal(t, value(uint64(i), 100_000), o.Bytes())
				o.Release()
			}
			require.Greater(t, lost, 15)
			fail(files, false)
			for i, id := range ids {
				requireValue(t, s, id, value(uint64(i), 100_000))
			}
			s.ReleaseOwner("job")
			requireEmpty(t, s)
		})
	}
}

func TestFileThatCannotBeRemovedIsTriedAgain(t *testing.T) {
	files := &faultyFiles{}
	s := open(t, func(cfg *Config) { cfg.files = files })
	fill(t, s)
	set(&files.remove, syscall.EBUSY)
	s.ReleaseOwner("job")
	time.Sleep(20 * time.Millisecond)
	require.Positive(t, s.Stats().DiskFiles)
	set(&files.remove, nil)
	requireEmpty(t, s)
}

// A disk with next to nothing left must not be handed to Badger, which maps its files.
func TestIndexKeepsOffAFullDisk(t *testing.T) {
	files := &faultyFiles{}
	s := open(t, func(cfg *Config) { cfg.files, cfg.MemoryLimit, cfg.Wait = files, 64<<10, 100*time.Millisecond })
	files.noSpace.Store(true)
	var ids []ID
	var full error
	for i := 0; full == nil; i++ {
		require.Less(t, i, 100)
		var id ID
		if id, full = s.Put("job", value(uint64(i), 1000)); full == nil {
			ids = append(ids, id)
		}
	}
	require.ErrorIs(t, full, ErrFull)
	require.ErrorContains(t, full, "the disk has only")
	require.Nil(t, s.index.db)
	for i, id := range ids {
		requireValue(t, s, id, value(uint64(i), 1000))
	}
	files.noSpace.Store(false)
	require.Eventually(t, func() bool { _, err := s.Put("job", value(0, 1000)); return err == nil }, time.Minute, time.Millisecond)
	s.ReleaseOwner("job")
	requireEmpty(t, s)
}

func TestWriterStraightToDiskFails(t *testing.T) {
	files := &faultyFiles{}
	s := open(t, func(cfg *Config) { cfg.files = files })
	w, err := s.Create("job", 2<<20)
	require.NoError(t, err)
	_, err = w.Write(value(1, 1<<20))
	require.NoError(t, err)
	set(&files.write, syscall.ENOSPC)
	_, err = w.Write(value(2, 1<<20))
	require.ErrorIs(t, err, ErrFull)
	require.ErrorIs(t, err, syscall.ENOSPC)
	_, err = w.Seal()
	require.True(t, errors.Is(err, syscall.ENOSPC), "Seal repeats why: %v", err)
	w.Abort()
	requireEmpty(t, s)

	set(&files.write, nil)
	set(&files.create, syscall.EACCES)
	_, err = s.Create("job", 2<<20)
	require.ErrorIs(t, err, ErrFull)
	require.ErrorIs(t, err, syscall.EACCES)
	requireEmpty(t, s)
}

// A value that is released, and one that is read, while they are being written to disk.
func TestUseDuringSpill(t *testing.T) {
	files := &faultyFiles{block: make(chan chan struct{})}
	t.Cleanup(func() { close(files.block) }) // once the store is closed
	s := open(t, func(cfg *Config) { cfg.files = files })
	var ids []ID
	for i := range 9 { // 936 KiB: one must go to disk
		ids = append(ids, put(t, s, "job", value(uint64(i), 100_000)))
	}
	header := <-files.block // the oldest is being written
	o, err := s.Get(ids[0])
	require.NoError(t, err)
	require.NoError(t, s.Release(ids[0], "job"))
	require.Equal(t, value(0, 100_000), o.Bytes())
	o.Release()
	require.Equal(t, int64(8), s.Stats().Objects)
	require.Equal(t, 9*capacityFor(100_000, 1<<20), s.Stats().MemoryUsed, "its bytes stay until they are written")
	check(t, s)
	close(header)
	close(<-files.block) // the value

	header = <-files.block // the next oldest
	o, err = s.Get(ids[1])
	require.NoError(t, err)
	close(header)
	go func() {
		for answer := range files.block {
			close(answer)
		}
	}()
	require.Eventually(t, func() bool { return s.Stats().Spills >= 2 }, time.Minute, time.Millisecond)
	check(t, s)
	require.Equal(t, value(1, 100_000), o.Bytes())
	o.Release()
	requireValue(t, s, ids[1], value(1, 100_000))
	s.ReleaseOwner("job")
	requireEmpty(t, s)
}
