package objectstore

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"unsafe"
)

// Mapping is where a value is for other processes of the node: the first Size bytes of a file.
type Mapping struct {
	Path string
	Size int64
}

// Mapping returns where another process finds the value. It is false for small values, which are cheaper to
// send, and without Config.Shared. The other process has to be done before the object is released: the memory
// is used again then.
func (o *Object) Mapping() (Mapping, bool) {
	if o.e == nil || o.released.Load() {
		return Mapping{}, false
	}
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	name, ok := o.s.pool.names[unsafe.SliceData(o.data)]
	return Mapping{name, o.size}, ok
}

// Foreign is a value of another process's store.
type Foreign struct {
	data   []byte
	mapped []byte
	once   sync.Once
}

// Map maps a value of another process's store, to be read only: the pages are that store's own.
func Map(m Mapping) (*Foreign, error) {
	f, err := os.Open(m.Path)
	if err != nil {
		return nil, fmt.Errorf("%w: map: %w", ErrNotFound, err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err == nil && (m.Size < 0 || st.Size() < m.Size) {
		err = fmt.Errorf("%s has %d bytes, not %d", m.Path, st.Size(), m.Size)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: map: %w", ErrLost, err)
	}
	b, err := mapFile(f, max(m.Size, 1), false)
	if err != nil {
		return nil, fmt.Errorf("objectstore: map %s: %w", m.Path, err)
	}
	return &Foreign{data: b[:m.Size:m.Size], mapped: b}, nil
}

// Bytes returns the value. It must not be used after Release; writing to it is a fault.
func (f *Foreign) Bytes() []byte { return f.data }

// Release unmaps the value. Further calls do nothing.
func (f *Foreign) Release() {
	f.once.Do(func() {
		f.data = nil
		_ = unmapMemory(f.mapped)
	})
}

// sharedFolder is where systems keep files that are only memory.
const sharedFolder = "/dev/shm"

const sharedPrefix = "manta-store-"

// sharedFiles makes memory that has a name: files in shared memory, and where there is none or no more of it,
// in the store's directory. Each store has a folder of its own with a lock in it, so that what a killed process
// left can be told from what is in use.
type sharedFiles struct {
	folders []string // in order of preference
	locks   []*os.File

	mu  sync.Mutex
	seq int // guarded by mu
}

func openShared(parents []string) (*sharedFiles, error) {
	m := &sharedFiles{}
	var errs []error
	for _, parent := range parents {
		sweepUnused(filepath.Join(parent, sharedPrefix+"*"))
		var unique [8]byte
		_, _ = rand.Read(unique[:])
		folder := filepath.Join(parent, sharedPrefix+hex.EncodeToString(unique[:]))
		err := os.Mkdir(folder, 0o700)
		if err == nil {
			var lock *os.File
			if lock, err = lockDir(folder); err == nil {
				m.folders, m.locks = append(m.folders, folder), append(m.locks, lock)
				continue
			}
			_ = os.Remove(folder)
		}
		errs = append(errs, err)
	}
	if len(m.folders) == 0 {
		return nil, errors.Join(errs...)
	}
	return m, nil
}

// get makes n bytes of memory that are sure to be there: a full /dev/shm is an error here, and not a fault later.
func (m *sharedFiles) get(n int64) (b []byte, name string, err error) {
	m.mu.Lock()
	m.seq++
	seq := m.seq
	m.mu.Unlock()
	var errs []error
	for _, folder := range m.folders {
		name = filepath.Join(folder, fmt.Sprintf("%08d", seq))
		if b, err = makeShared(name, n); err == nil {
			return b, name, nil
		}
		errs = append(errs, err)
	}
	return nil, "", errors.Join(errs...)
}

func makeShared(name string, n int64) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var b []byte
	if err = reserveFile(f, n); err == nil {
		b, err = mapFile(f, n, true)
	}
	if err != nil {
		_ = os.Remove(name)
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return b, nil
}

func (m *sharedFiles) close() error {
	var errs []error
	for i, folder := range m.folders {
		errs = append(errs, os.RemoveAll(folder), m.locks[i].Close())
	}
	return errors.Join(errs...)
}
