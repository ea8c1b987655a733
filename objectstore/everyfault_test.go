package objectstore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// nthFault lets one call of the file system fail, counted over all kinds of calls, or over one.
type nthFault struct {
	osFiles
	mu     sync.Mutex
	calls  int
	at     int // which call fails; 0: none
	fault  string
	only   string // the kind of calls that counts; "": all
	failed string // which kind of call did
}

// hit counts a call and returns what it should do wrong.
func (n *nthFault) hit(kind string) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.only != "" && kind != n.only {
		return "", nil
	}
	n.calls++
	if n.calls != n.at {
		return "", nil
	}
	n.failed = kind
	switch n.fault {
	case "no space":
		return n.fault, syscall.ENOSPC
	case "i/o error":
		return n.fault, syscall.EIO
	}
	return n.fault, nil
}

func (n *nthFault) open(kind, path string, do func(string) (file, error)) (file, error) {
	if _, err := n.hit(kind); err != nil {
		return nil, err
	}
	f, err := do(path)
	if err != nil {
		return nil, err
	}
	return &nthFile{f, n}, nil
}

func (n *nthFault) Create(path string) (file, error) {
	return n.open("create", path, n.osFiles.Create)
}
func (n *nthFault) Open(path string) (file, error) { return n.open("open", path, n.osFiles.Open) }

func (n *nthFault) Remove(path string) error {
	if _, err := n.hit("remove"); err != nil {
		return err
	}
	return n.osFiles.Remove(path)
}

func (n *nthFault) Space(dir string) (free, total int64, err error) {
	if fault, err := n.hit("space"); err != nil {
		if fault == "no space" {
			return 0, 100 << 30, nil
		}
		return 0, 0, err
	}
	return 50 << 30, 100 << 30, nil
}

type nthFile struct {
	file
	n *nthFault
}

func (f *nthFile) WriteAt(p []byte, off int64) (int, error) {
	fault, err := f.n.hit("write")
	switch {
	case fault == "slow":
		time.Sleep(20 * time.Millisecond)
	case fault == "short", err != nil: // half of it is written
		written, _ := f.file.WriteAt(p[:len(p)/2], off)
		return written, err
	}
	return f.file.WriteAt(p, off)
}

func (f *nthFile) ReadAt(p []byte, off int64) (int, error) {
	fault, err := f.n.hit("read")
	switch {
	case fault == "slow":
		time.Sleep(20 * time.Millisecond)
	case err != nil:
		return 0, err
	case fault == "short":
		return f.file.ReadAt(p[:len(p)/2], off)
	}
	return f.file.ReadAt(p, off)
}

func (f *nthFile) Truncate(size int64) error {
	if _, err := f.n.hit("truncate"); err != nil {
		return err
	}
	return f.file.Truncate(size)
}

func (f *nthFile) Size() (int64, error) {
	if _, err := f.n.hit("size"); err != nil {
		return 0, err
	}
	return f.file.Size()
}

// story uses every part of the store that touches the disk. Whatever fails in it, a call gives the right value
// or an error that says so.
func story(t *testing.T, files *nthFault) {
	cfg := Config{
		Dir: t.TempDir(), MemoryLimit: 256 << 10, InlineMax: 1000, SpillFile: 120_000, Recover: true, SpillWriters: 1,
		Wait: 2 * time.Second, flushWindow: time.Millisecond, files: files,
	}
	fine := func(err error) bool {
		if err == nil {
			return true
		}
		require.True(t, errors.Is(err, ErrFull) || errors.Is(err, ErrLost) || errors.Is(err, ErrNotFound), "%v", err)
		return false
	}
	s, err := Open(cfg)
	if err != nil {
		require.NotEmpty(t, files.failed, "%v", err)
		return
	}
	values := map[ID][]byte{}
	lost := 0
	look := func(s *Store, mayMiss int) {
		for id, v := range values {
			o, err := s.Get(id)
			if !fine(err) {
				lost++
				r, err := s.NewReader(id)
				if fine(err) {
					got, err := io.ReadAll(r)
					require.True(t, !fine(err) || bytes.Equal(v, got))
					require.NoError(t, r.Close())
				}
				continue
			}
			require.True(t, bytes.Equal(v, o.Bytes()))
			o.Release()
		}
		require.LessOrEqual(t, lost, mayMiss, "after a failed %s", files.failed)
		lost = 0
	}
	for i := range 40 {
		n := 20_000
		switch {
		case i%4 == 1:
			n = 100 + i
		case i == 20:
			n = 300_000 // straight to disk
		}
		v := value(uint64(i), n)
		id, err := s.Put(fmt.Sprint("job ", i%2), v)
		if fine(err) {
			values[id] = v
		}
	}
	look(s, 2)
	s.ReleaseOwner("job 1") // half of everything: files get compacted
	for id := range values {
		if !s.Has(id) {
			delete(values, id)
		}
	}
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.disk.victim() == nil && len(s.disk.garbage) == 0 && len(s.changes) == 0
	}, 10*time.Second, time.Millisecond)
	look(s, 2)
	check(t, s)
	if err := s.Close(); err != nil {
		require.NotEmpty(t, files.failed, "%v", err)
	}
	failedInClose := files.failed
	again, err := Open(cfg)
	if err != nil {
		require.NotEmpty(t, files.failed, "%v", err)
		if again, err = Open(cfg); err != nil {
			t.Fatalf("a fault that is over still keeps the store from opening: %v", err)
		}
	}
	if failedInClose == "" {
		look(again, len(again.Recovery().Lost)+2)
	} else {
		look(again, len(values)) // what a failing disk did not take when the store closed is gone
	}
	check(t, again)
	again.ReleaseOwner("job 0")
	requireEmpty(t, again)
	if err := again.Close(); err != nil {
		require.NotEmpty(t, files.failed, "%v", err)
	}
}

// One fault at every call of the file system that the story makes, for each kind of fault.
func TestAFaultAtEveryCall(t *testing.T) {
	count := &nthFault{}
	story(t, count)
	step := max(count.calls/6, 1)
	if *long {
		step = 1
	}
	kinds := map[string]int{}
	for k, fault := range []string{"no space", "i/o error", "short", "slow"} {
		for at := 1 + k*step/4; at <= count.calls; at += step {
			files := &nthFault{at: at, fault: fault}
			t.Run(fmt.Sprintf("%s at call %d", fault, at), func(t *testing.T) { story(t, files) })
			kinds[files.failed]++
		}
	}
	t.Logf("%d calls; failed: %v", count.calls, kinds)
}

// A disk that is always slow: everything takes longer, and nothing fails.
func TestSlowDisk(t *testing.T) {
	files := &faultyFiles{}
	files.slow.Store(int64(3 * time.Millisecond))
	s := open(t, func(c *Config) { c.files, c.Wait = files, 2*time.Second })
	for i, id := range fill(t, s) {
		requireValue(t, s, id, value(uint64(i), 100_000))
	}
	s.ReleaseOwner("job")
	requireEmpty(t, s)
}

// Above 95 % of the disk nothing is spilled, what is there can be read, and all goes on when space returns.
func TestFullDisk(t *testing.T) {
	files := &faultyFiles{}
	s := open(t, func(c *Config) { c.files, c.Wait = files, 200*time.Millisecond })
	ids := fill(t, s)
	before := s.Stats().BytesSpilled
	files.used.Store(96)
	time.Sleep(2 * spaceEvery)
	var full error
	var late []ID
	for i := 0; full == nil; i++ {
		require.Less(t, i, 30)
		var id ID
		if id, full = s.Put("job", value(uint64(100+i), 100_000)); full == nil {
			late = append(late, id)
		}
	}
	require.ErrorIs(t, full, ErrFull)
	require.ErrorContains(t, full, "96 % full")
	require.Contains(t, s.Stats().Trouble, "96 % full")
	require.LessOrEqual(t, s.Stats().BytesSpilled, before+200_000, "one or two may have been under way")
	for i, id := range ids {
		r, err := s.NewReader(id)
		require.NoError(t, err)
		got, err := io.ReadAll(r)
		require.NoError(t, err)
		require.True(t, bytes.Equal(value(uint64(i), 100_000), got))
		require.NoError(t, r.Close())
	}
	files.used.Store(94)
	require.Eventually(t, func() bool { _, err := s.Put("job", value(1, 100_000)); return err == nil }, time.Minute, time.Millisecond)
	for i, id := range late {
		requireValue(t, s, id, value(uint64(100+i), 100_000))
	}
	require.Empty(t, s.Stats().Trouble)
	s.ReleaseOwner("job")
	requireEmpty(t, s)
}
