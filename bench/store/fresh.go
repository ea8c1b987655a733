package store

import (
	"time"

	"manta/objectstore"
)

// freshMemory measures putting, and copying, into memory that the process did not have before: the system has to find and clear
// each page.
func (m *measurement) freshMemory() error {
	n := int(max(1, min(256<<20/m.size, 256)))
	total := int64(n) * m.size
	if err := touch(total * 5 / 4); err != nil {
		return err
	}
	var memcpy, put []float64
	for range min(m.o.Rounds, 3) {
		to, free, err := mapMemory(total)
		if err != nil {
			return err
		}
		start := time.Now()
		err = m.split(n, func(i int) error {
			copy(to[int64(i)*m.size:int64(i+1)*m.size], m.src)
			return nil
		})
		memcpy = append(memcpy, float64(total)/time.Since(start).Seconds()/1e9)
		free()
		if err != nil {
			return err
		}

		s, err := objectstore.Open(objectstore.Config{Dir: m.fresh(), MemoryLimit: total*5/4 + 64<<20})
		if err != nil {
			return err
		}
		start = time.Now()
		err = m.split(n, func(int) error {
			_, err := s.Put("job", m.src)
			return err
		})
		put = append(put, float64(total)/time.Since(start).Seconds()/1e9)
		s.Close()
		if err != nil {
			return err
		}
	}
	m.r.MemcpyFreshGBps, m.r.PutFreshGBps = median(memcpy), median(put)
	return nil
}

// touch has the machine find n bytes of memory: a virtual one has not all that it shows before it was used once, which
// takes longer than anything measured here.
func touch(n int64) error {
	b, free, err := mapMemory(n)
	if err != nil {
		return err
	}
	defer free()
	for at := int64(0); at < n; at += 4096 {
		b[at] = 1
	}
	return nil
}
