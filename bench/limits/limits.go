// Package limits measures what a machine does without Manta, to have something to compare with.
package limits

import (
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

const chunk = 1 << 20 // of writes and reads

// Rate is GB (10^9 bytes) a second.
func Rate(bytes int64, d time.Duration) float64 { return float64(bytes) / 1e9 / d.Seconds() }

// PerCore is GB for each second of processor time that do takes for the bytes.
func PerCore(bytes int64, do func() error) (float64, error) {
	before := ThisProcess().CPU
	err := do()
	return Rate(bytes, max(ThisProcess().CPU-before, 1)), err
}

// Memcpy copies between buffers that no cache holds.
func Memcpy(threads int, bytes int64) float64 {
	const size = 64 << 20
	rounds := max(1, bytes/size/int64(threads))
	var start time.Time
	var ready, done sync.WaitGroup
	gate := make(chan struct{})
	for range threads {
		ready.Add(1)
		done.Go(func() {
			a, b := make([]byte, size), make([]byte, size)
			for i := range b { // memory that was never written is all one page
				b[i] = byte(i)
			}
			copy(a, b)
			ready.Done()
			<-gate
			for range rounds {
				copy(a, b)
			}
		})
	}
	ready.Wait()
	start = time.Now()
	close(gate)
	done.Wait()
	return Rate(size*rounds*int64(threads), time.Since(start))
}

// TCP sends bytes through one connection over loopback.
func TCP(bytes int64) (float64, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	out, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		return 0, err
	}
	defer out.Close()
	in, err := listener.Accept()
	if err != nil {
		return 0, err
	}
	defer in.Close()
	var g errgroup.Group
	start := time.Now()
	g.Go(func() error {
		defer out.Close()
		data := make([]byte, chunk)
		for left := bytes; left > 0; left -= chunk {
			if _, err := out.Write(data[:min(left, chunk)]); err != nil {
				return err
			}
		}
		return nil
	})
	g.Go(func() error {
		defer in.Close()
		data := make([]byte, chunk)
		for {
			if _, err := in.Read(data); err != nil {
				if err == io.EOF {
					return nil
				}
				return err
			}
		}
	})
	err = g.Wait()
	return Rate(bytes, time.Since(start)), err
}

// Disk writes a file and reads it, as an exchange does: through the system's cache, without waiting for the device.
func Disk(dir string, bytes int64) (write, read float64, err error) {
	f, err := os.CreateTemp(dir, "manta-bench-")
	if err != nil {
		return 0, 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	data := make([]byte, chunk)
	start := time.Now()
	for left := bytes; left > 0; left -= chunk {
		if _, err := f.Write(data[:min(left, chunk)]); err != nil {
			return 0, 0, err
		}
	}
	write = Rate(bytes, time.Since(start))
	start = time.Now()
	for at := int64(0); at < bytes; at += chunk {
		if _, err := f.ReadAt(data[:min(bytes-at, chunk)], at); err != nil {
			return 0, 0, err
		}
	}
	return write, Rate(bytes, time.Since(start)), nil
}

// Spin counts steps of simple arithmetic on all cores, in 10^9 a second.
func Spin() float64 {
	const steps = 10_000_000
	n := runtime.NumCPU()
	var wg sync.WaitGroup
	start := time.Now()
	for i := range n {
		wg.Go(func() {
			x := uint64(i + 1)
			for range steps {
				x ^= x << 13
				x ^= x >> 7
				x ^= x << 17
			}
			spun.Store(&i, x)
		})
	}
	wg.Wait()
	spun.Clear()
	return float64(steps) * float64(n) / 1e9 / time.Since(start).Seconds()
}

// spun keeps the compiler from leaving the work out.
var spun sync.Map
