package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"manta/objectstore"
)

// measurement is one size with one number of callers.
type measurement struct {
	o       Options
	src     []byte // one value; read only
	size    int64
	callers int
	fresh   func() string
	r       Result
}

const (
	smallMax = objectstore.DefaultInlineMax
	// memoryFor bounds what all callers together have in memory at a time.
	memoryFor = 2 << 30
)

// parallel is how many values of the size may be in memory at a time.
func (m *measurement) parallel() int { return int(max(1, min(int64(m.callers), memoryFor/m.size))) }

func (m *measurement) run(ctx context.Context) (Result, error) {
	m.r = Result{ValueBytes: m.size, Callers: m.callers}
	steps := []func() error{m.memory, m.readers}
	if m.size > smallMax {
		steps = append(steps, m.freshMemory)
	}
	if m.size <= smallMax {
		steps = append(steps, m.small)
	}
	steps = append(steps, m.disk)
	for _, step := range steps {
		if ctx.Err() != nil {
			return m.r, context.Cause(ctx)
		}
		if err := step(); err != nil {
			return m.r, err
		}
	}
	m.r.RSSMiB = float64(peakRSS()) / (1 << 20)
	return m.r, nil
}

// each calls do from all callers until the time of a round is over, and returns calls per second.
func (m *measurement) each(do func(caller int) error) (float64, error) {
	return m.eachUpTo(math.MaxInt, do)
}

// eachUpTo is each of at most so many calls of each caller.
func (m *measurement) eachUpTo(most int, do func(caller int) error) (float64, error) {
	var calls atomic.Int64
	errs := make([]error, m.callers)
	var wg sync.WaitGroup
	start := time.Now()
	for c := range m.callers {
		wg.Go(func() {
			for n := 0; n < most; n++ {
				if n&7 == 0 && n > 0 && time.Since(start) > m.o.Round || m.size > smallMax && n > 0 && time.Since(start) > m.o.Round {
					break
				}
				if errs[c] = do(c); errs[c] != nil {
					break
				}
				calls.Add(1)
			}
		})
	}
	wg.Wait()
	return float64(calls.Load()) / time.Since(start).Seconds(), errors.Join(errs...)
}

// memory compares put and get with copying and reading.
func (m *measurement) memory() error {
	s, err := objectstore.Open(objectstore.Config{Dir: m.fresh(), MemoryLimit: max(256<<20, int64(m.parallel()+1)*m.size*9/8)})
	if err != nil {
		return err
	}
	defer s.Close()
	room := make(chan []byte, m.parallel()) // where copies go
	for range cap(room) {
		b, free, err := mapMemory(m.size)
		if err != nil {
			return err
		}
		defer free()
		copy(b, m.src) // touch it
		room <- b
	}
	held, err := s.Put("held", m.src)
	if err != nil {
		return err
	}
	latencies := make([][]time.Duration, m.callers)
	var sums [64]uint64
	gb := float64(m.size) / 1e9
	var memcpy, put, read, get []float64
	for round := range m.o.Rounds + 1 { // the first one warms up
		for _, step := range []struct {
			rates *[]float64
			do    func(int) error
		}{
			{&memcpy, func(int) error {
				b := <-room
				copy(b, m.src)
				room <- b
				return nil
			}},
			{&put, func(c int) error {
				start := time.Now()
				id, err := s.Put("put", m.src)
				if err != nil {
					return err
				}
				if round > 0 {
					latencies[c] = append(latencies[c], time.Since(start))
				}
				return s.Release(id, "put")
			}},
			{&read, func(c int) error {
				sums[c&63] += sum(m.src)
				return nil
			}},
			{&get, func(c int) error {
				o, err := s.Get(held)
				if err == nil {
					sums[c&63] += sum(o.Bytes())
					o.Release()
				}
				return err
			}},
		} {
			rate, err := m.each(step.do)
			if err != nil {
				return err
			}
			if round > 0 {
				*step.rates = append(*step.rates, rate*gb)
			}
		}
	}
	m.r.MemcpyGBps, m.r.PutGBps, m.r.ReadGBps, m.r.GetGBps = median(memcpy), median(put), median(read), median(get)
	all := slices.Concat(latencies...)
	slices.Sort(all)
	if len(all) > 0 {
		m.r.PutP99us = float64(all[len(all)*99/100].Nanoseconds()) / 1e3
	}
	return nil
}

// readers looks what memory 100 readers of one object take.
func (m *measurement) readers() error {
	s, err := objectstore.Open(objectstore.Config{Dir: m.fresh(), MemoryLimit: max(64<<20, m.size*5/4)})
	if err != nil {
		return err
	}
	defer s.Close()
	id, err := s.Put("job", m.src)
	if err != nil {
		return err
	}
	before := s.Stats()
	var first *byte
	for range 100 {
		o, err := s.Get(id)
		if err != nil {
			return err
		}
		defer o.Release()
		at := unsafe.SliceData(o.Bytes())
		if first != nil && at != first {
			m.r.GetCopiesBytes += m.size
		}
		first = at
	}
	after := s.Stats()
	m.r.GetCopiesBytes += after.MemoryMapped - before.MemoryMapped + after.MemoryUsed - before.MemoryUsed
	return nil
}

// small measures values that stay. They fit into memory; the first round finds it fresh, the others find what those
// before gave back.
func (m *measurement) small() error {
	const limit = 1 << 30
	if err := touch(limit); err != nil {
		return err
	}
	s, err := objectstore.Open(objectstore.Config{Dir: m.fresh(), MemoryLimit: limit})
	if err != nil {
		return err
	}
	defer s.Close()
	most := limit / 4 * 3 / int(max(m.size, 128)) / m.callers // below what has any written to disk
	ids := make([][]objectstore.ID, m.callers)
	var puts, gets []float64
	for round := range m.o.Rounds + 1 {
		if round > 0 {
			s.ReleaseOwner(fmt.Sprint("job ", round-1))
			clear(ids)
		}
		owner := fmt.Sprint("job ", round)
		rate, err := m.eachUpTo(most, func(c int) error {
			id, err := s.Put(owner, m.src)
			ids[c] = append(ids[c], id)
			return err
		})
		if err != nil {
			return err
		}
		if round == 0 {
			m.r.SmallPutFreshPerS = rate
		} else {
			puts = append(puts, rate)
		}
	}
	st := s.Stats()
	m.r.IndexBytes = float64(st.IndexBytes) / float64(st.Objects)
	all := slices.Concat(ids...)
	for range m.o.Rounds {
		rate, err := m.each(func(int) error {
			o, err := s.Get(all[rand.IntN(len(all))])
			if err == nil {
				o.Release()
			}
			return err
		})
		if err != nil {
			return err
		}
		gets = append(gets, rate)
	}
	m.r.SmallPutPerS, m.r.SmallGetPerS = median(puts), median(gets)
	return nil
}

// disk writes four times more than there is memory for, reads it back, and does the same with plain files.
func (m *measurement) disk() error {
	total := max(m.o.Spill, 4*m.size)
	n := int(total / m.size)
	if n > 2_000_000 {
		n = 2_000_000
	}
	total = int64(n) * m.size
	limit := max(total/4, m.size*5/4, 16<<20)
	dir := m.fresh()
	s, err := objectstore.Open(objectstore.Config{Dir: dir, MemoryLimit: limit})
	if err != nil {
		return err
	}
	defer s.Close()
	// Memory that was never touched costs more than anything measured here, so it is touched before.
	for range int(limit / max(m.size, 1<<10)) {
		if _, err := s.Put("warm", m.src); err != nil {
			return err
		}
	}
	s.ReleaseOwner("warm")
	ids := make([]objectstore.ID, n)
	start := time.Now()
	if err := m.split(n, func(i int) (err error) {
		ids[i], err = s.Put("job", m.src)
		return err
	}); err != nil {
		return err
	}
	if written := total - limit; written > 0 {
		m.r.SpillGBps = float64(written) / time.Since(start).Seconds() / 1e9
	}
	get := func(i int) error {
		o, err := s.Get(ids[i])
		if err == nil {
			o.Release()
		}
		return err
	}
	// What was put last is only in memory. Reading the first ones has it written, which is not to be measured again.
	first := min(int(limit/m.size)+1, n/2)
	if err := m.split(first, get); err != nil {
		return err
	}
	if err := uncache(dir); err != nil {
		return err
	}
	start = time.Now()
	if err := m.split(n-first, func(i int) error { return get(first + i) }); err != nil {
		return err
	}
	m.r.RestoreGBps = float64(int64(n-first)*m.size) / time.Since(start).Seconds() / 1e9
	return m.files(total)
}

// files measures the disk itself: one file for each caller, written and read in pieces of at most 8 MiB.
func (m *measurement) files(total int64) error {
	dir := m.fresh()
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	piece := min(max(m.size, 1<<20), 8<<20)
	per := int(max(total/int64(m.callers)/piece, 1))
	src := m.src
	for int64(len(src)) < piece {
		src = append(src[:len(src):len(src)], src...)
	}
	all := func(do func(f *os.File) error) (float64, error) {
		errs := make([]error, m.callers)
		var wg sync.WaitGroup
		start := time.Now()
		for c := range m.callers {
			wg.Go(func() {
				f, err := os.OpenFile(filepath.Join(dir, fmt.Sprint(c)), os.O_RDWR|os.O_CREATE, 0o600)
				if err == nil {
					err = errors.Join(do(f), f.Close())
				}
				errs[c] = err
			})
		}
		wg.Wait()
		return float64(int64(m.callers*per)*piece) / time.Since(start).Seconds() / 1e9, errors.Join(errs...)
	}
	var err error
	if m.r.DiskWriteGBps, err = all(func(f *os.File) error {
		for range per {
			if _, err := f.Write(src[:piece]); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	if err := uncache(dir); err != nil {
		return err
	}
	m.r.DiskReadGBps, err = all(func(f *os.File) error {
		b := make([]byte, piece)
		for range per {
			if _, err := io.ReadFull(f, b); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

// split does n things, shared among the callers.
func (m *measurement) split(n int, do func(i int) error) error {
	errs := make([]error, m.callers)
	var wg sync.WaitGroup
	for c := range m.callers {
		wg.Go(func() {
			for i := c; i < n && errs[c] == nil; i += m.callers {
				errs[c] = do(i)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// source returns a value that does not compress.
func source(size int64) []byte {
	r := rand.NewChaCha8([32]byte{1})
	b := make([]byte, size)
	_, _ = r.Read(b)
	return b
}

// sum reads all bytes, in four chains so that adding is not the limit.
func sum(b []byte) uint64 {
	var s0, s1, s2, s3 uint64
	for ; len(b) >= 32; b = b[32:] {
		s0 += binary.LittleEndian.Uint64(b)
		s1 += binary.LittleEndian.Uint64(b[8:])
		s2 += binary.LittleEndian.Uint64(b[16:])
		s3 += binary.LittleEndian.Uint64(b[24:])
	}
	for _, c := range b {
		s0 += uint64(c)
	}
	return s0 + s1 + s2 + s3
}
