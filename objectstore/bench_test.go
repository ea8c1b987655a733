package objectstore

import (
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// Run with: go test -run=NONE -bench=. ./objectstore
// BenchmarkCopy is the machine's limit for a put: one copy of the value.

func benchStore(b *testing.B, limit int64) *Store {
	s, err := Open(Config{Dir: b.TempDir(), MemoryLimit: limit})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, s.Close()) })
	return s
}

var benchSizes = []int{100, 10 << 10, 1 << 20, 8 << 20, 100 << 20}

func BenchmarkCopy(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(bytesText(int64(n)), func(b *testing.B) {
			from, to := value(1, n), make([]byte, n)
			b.SetBytes(int64(n))
			for b.Loop() {
				copy(to, from)
			}
		})
	}
}

// One value at a time: put, released at once.
func BenchmarkPutRelease(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(bytesText(int64(n)), func(b *testing.B) {
			s := benchStore(b, 1<<30)
			v := value(1, n)
			b.SetBytes(int64(n))
			for b.Loop() {
				id, err := s.Put("job", v)
				if err == nil {
					err = s.Release(id, "job")
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Values that stay until their job ends, in memory or wherever there is room.
func BenchmarkPutKeep(b *testing.B) {
	for _, n := range []int{100, 10 << 10} {
		b.Run(bytesText(int64(n)), func(b *testing.B) {
			s := benchStore(b, 256<<20)
			v := value(1, n)
			b.SetBytes(int64(n))
			for b.Loop() {
				if _, err := s.Put("job", v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkGet(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(bytesText(int64(n)), func(b *testing.B) {
			s := benchStore(b, 1<<30)
			id := put(b, s, "job", value(1, n))
			b.SetBytes(int64(n))
			for b.Loop() {
				o, err := s.Get(id)
				if err != nil {
					b.Fatal(err)
				}
				o.Release()
			}
		})
	}
}

// Small values from Badger, none of them in memory.
func BenchmarkGetFromBadger(b *testing.B) {
	for _, n := range []int{100, 10 << 10} {
		b.Run(bytesText(int64(n)), func(b *testing.B) {
			s := benchStore(b, 1<<20)
			w, err := s.Create("writer", 1<<20) // takes all the memory
			require.NoError(b, err)
			defer w.Abort()
			ids := make([]ID, 2000)
			for i := range ids {
				ids[i] = put(b, s, "job", value(uint64(i), n))
			}
			b.SetBytes(int64(n))
			for i := 0; b.Loop(); i++ {
				o, err := s.Get(ids[i%len(ids)])
				if err != nil {
					b.Fatal(err)
				}
				o.Release()
			}
		})
	}
}

// Sixteen times the memory limit, written, read back and released.
func BenchmarkSpillRestore(b *testing.B) {
	for _, n := range []int{1 << 20, 8 << 20} {
		for _, how := range []string{"put", "put+get", "put+stream"} {
			b.Run(fmt.Sprintf("%s/%s", how, bytesText(int64(n))), func(b *testing.B) {
				const limit = 64 << 20
				s := benchStore(b, limit)
				v := value(1, n)
				ids := make([]ID, 16*limit/n)
				b.SetBytes(16 * limit)
				for i := 0; b.Loop(); i++ {
					job := fmt.Sprint(i)
					for j := range ids {
						ids[j] = put(b, s, job, v)
					}
					for _, id := range ids {
						switch how {
						case "put+get":
							o, err := s.Get(id)
							if err != nil {
								b.Fatal(err)
							}
							o.Release()
						case "put+stream":
							r, err := s.NewReader(id)
							if err == nil {
								_, err = io.Copy(io.Discard, r)
							}
							if err != nil {
								b.Fatal(err)
							}
							_ = r.Close()
						}
					}
					s.ReleaseOwner(job)
				}
			})
		}
	}
}

func BenchmarkOpenClose(b *testing.B) {
	dir := b.TempDir()
	for b.Loop() {
		s, err := Open(Config{Dir: dir})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// With one small value that reaches Badger.
func BenchmarkOpenBadgerClose(b *testing.B) {
	dir := b.TempDir()
	for b.Loop() {
		s, err := Open(Config{Dir: dir})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.index.open(); err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
