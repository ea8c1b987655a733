package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	"manta/objectstore"
)

// Many is what a great number of small values took, put by two callers and read by two.
type Many struct {
	Objects        int64   `json:"objects"`
	ValueBytes     int64   `json:"value_bytes"`
	MemoryLimit    int64   `json:"memory_limit_bytes"`
	MemoryPeak     int64   `json:"memory_peak_bytes"`
	PutPerS        float64 `json:"put_per_s"`
	HotGetPerS     float64 `json:"hot_get_per_s"`
	ColdGetPerS    float64 `json:"cold_get_per_s"` // in random order over all; each is checked
	IndexBytes     float64 `json:"index_bytes_per_object"`
	RSSBytes       float64 `json:"rss_bytes_per_object"`      // all that the process grew by, its ids included
	RSSAnonBytes   float64 `json:"rss_anon_bytes_per_object"` // of it, what is not pages of files
	ReleaseSeconds float64 `json:"release_s"`
	RSSMiBAfter    float64 `json:"rss_mib_after_release"`
	DiskAfter      int64   `json:"disk_bytes_after_release"`
}

const manyValue = 100

func manyBytes(b []byte, i int64) {
	for at := 0; at+8 <= len(b); at += 8 {
		binary.LittleEndian.PutUint64(b[at:], uint64(i)*0x9e3779b97f4a7c15+uint64(at))
	}
}

func measureMany(ctx context.Context, dir string, n int64) (*Many, error) {
	m := &Many{Objects: n, ValueBytes: manyValue, MemoryLimit: 64 << 20}
	s, err := objectstore.Open(objectstore.Config{Dir: dir, MemoryLimit: m.MemoryLimit})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	const callers = 2
	ids := make([]objectstore.ID, n)
	clear(ids) // touch them: they are the caller's, not the store's
	debug.FreeOSMemory()
	before, beforeAnon := rss()
	rate := func(count int64, do func(c int, i int64) error) (float64, error) {
		errs := make([]error, callers)
		var wg sync.WaitGroup
		start := time.Now()
		for c := range callers {
			wg.Go(func() {
				for i := int64(c); i < count && errs[c] == nil; i += callers {
					if i&0xffff < callers && ctx.Err() != nil {
						errs[c] = context.Cause(ctx)
						return
					}
					errs[c] = do(c, i)
				}
			})
		}
		wg.Wait()
		return float64(count) / time.Since(start).Seconds(), errors.Join(errs...)
	}
	var scratch [callers][2][manyValue]byte
	if m.PutPerS, err = rate(n, func(c int, i int64) (err error) {
		b := scratch[c][0][:]
		manyBytes(b, i)
		ids[i], err = s.Put("job", b)
		return err
	}); err != nil {
		return nil, err
	}
	debug.FreeOSMemory()
	after, afterAnon := rss()
	m.RSSBytes, m.RSSAnonBytes = float64(after-before)/float64(n), float64(afterAnon-beforeAnon)/float64(n)
	m.IndexBytes = float64(s.Stats().IndexBytes) / float64(n)
	get := func(c int, i int64) error {
		o, err := s.Get(ids[i])
		if err != nil {
			return err
		}
		defer o.Release()
		want := scratch[c][0][:]
		manyBytes(want, i)
		if !bytes.Equal(want, o.Bytes()) {
			return fmt.Errorf("object %d differs", i)
		}
		return nil
	}
	if m.ColdGetPerS, err = rate(min(n, 1_000_000), func(c int, _ int64) error { return get(c, rand.Int64N(n)) }); err != nil {
		return nil, err
	}
	hot := min(n, 100_000) // the first round of them reads them back
	for range 3 {
		if m.HotGetPerS, err = rate(1_000_000, func(c int, i int64) error {
			o, err := s.Get(ids[i%hot])
			if err == nil {
				o.Release()
			}
			return err
		}); err != nil {
			return nil, err
		}
	}
	m.MemoryPeak = s.Stats().MemoryPeak
	start := time.Now()
	s.ReleaseOwner("job")
	m.ReleaseSeconds = time.Since(start).Seconds()
	for range 500 {
		if st := s.Stats(); st.MemoryUsed == 0 && st.BadgerBytes == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	debug.FreeOSMemory()
	after, _ = rss()
	m.RSSMiBAfter = float64(after-before) / (1 << 20)
	st := s.Stats()
	m.DiskAfter = st.DiskBytes + st.BadgerBytes
	return m, nil
}

// Through is what it took to write much more than there is memory for, and to read it back.
type Through struct {
	Bytes       int64   `json:"bytes"`
	ValueBytes  int64   `json:"value_bytes"`
	MemoryLimit int64   `json:"memory_limit_bytes"`
	PeakRSSMiB  float64 `json:"peak_rss_mib"` // of the whole process
	WriteGBps   float64 `json:"write_gbps"`
	ReadGBps    float64 `json:"read_gbps"` // checked byte by byte
	DiskWrite   float64 `json:"disk_write_gbps"`
	DiskRead    float64 `json:"disk_read_gbps"`
	DiskAfter   int64   `json:"disk_bytes_after_release"`
}

func measureThrough(ctx context.Context, dir string, total int64) (*Through, error) {
	t := &Through{Bytes: total, ValueBytes: 8 << 20, MemoryLimit: total / 10}
	m := &measurement{size: t.ValueBytes, callers: 2, src: source(t.ValueBytes), fresh: func() string { return dir + "-files" }}
	if err := m.files(total / 2); err != nil {
		return nil, err
	}
	t.DiskWrite, t.DiskRead = m.r.DiskWriteGBps, m.r.DiskReadGBps
	debug.FreeOSMemory()
	resetPeak()
	s, err := objectstore.Open(objectstore.Config{Dir: dir, MemoryLimit: t.MemoryLimit})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	n := int(total / t.ValueBytes)
	ids := make([]objectstore.ID, n)
	start := time.Now()
	// Each value begins with its number, so that no two are the same.
	if err := m.split(n, func(i int) (err error) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		ids[i], err = s.Put("job", binary.LittleEndian.AppendUint64(nil, uint64(i)), m.src[8:])
		return err
	}); err != nil {
		return nil, err
	}
	t.WriteGBps = float64(total) / time.Since(start).Seconds() / 1e9
	if err := uncache(dir); err != nil {
		return nil, err
	}
	start = time.Now()
	if err := m.split(n, func(i int) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		o, err := s.Get(ids[i])
		if err != nil {
			return err
		}
		defer o.Release()
		if b := o.Bytes(); binary.LittleEndian.Uint64(b) != uint64(i) || !bytes.Equal(b[8:], m.src[8:]) {
			return fmt.Errorf("object %d differs", i)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	t.ReadGBps = float64(total) / time.Since(start).Seconds() / 1e9
	t.PeakRSSMiB = float64(peakRSS()) / (1 << 20)
	s.ReleaseOwner("job")
	for range 500 {
		if s.Stats().DiskBytes == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.DiskAfter = s.Stats().DiskBytes
	return t, nil
}
