package sort

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"

	"github.com/zeebo/xxh3"
)

const (
	recordBytes = 100
	keyBytes    = 10
)

// summary is what must be the same of the input and the output.
type summary struct {
	Records int64
	Sum     uint64 // of the records' hashes
}

func (s *summary) add(o summary) {
	s.Records += o.Records
	s.Sum += o.Sum
}

func (s *summary) see(record []byte) {
	s.Records++
	s.Sum += xxh3.Hash(record)
}

// generate writes n records: a random key, the number of the record, and filler that depends on both.
func generate(path string, seed uint64, n int64) (s summary, err error) {
	f, err := os.Create(path)
	if err != nil {
		return s, err
	}
	out := bufio.NewWriterSize(f, 1<<20)
	random := rand.New(rand.NewPCG(seed, 99))
	var r [recordBytes]byte
	for i := range n {
		binary.BigEndian.PutUint64(r[:], random.Uint64())
		binary.BigEndian.PutUint16(r[8:], uint16(random.Uint32()))
		binary.BigEndian.PutUint64(r[keyBytes:], seed<<48|uint64(i))
		for at := keyBytes + 8; at < recordBytes; at += 8 {
			var word [8]byte
			binary.LittleEndian.PutUint64(word[:], (uint64(i)+seed)*0x9E3779B97F4A7C15+uint64(at))
			copy(r[at:], word[:])
		}
		s.see(r[:])
		if _, err := out.Write(r[:]); err != nil {
			_ = f.Close()
			return s, err
		}
	}
	if err := out.Flush(); err != nil {
		_ = f.Close()
		return s, err
	}
	return s, f.Close()
}

// sample reads n records from all over a file.
func sample(path string, n int) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	records := info.Size() / recordBytes
	n = int(min(int64(n), records))
	out := make([]byte, n*recordBytes)
	for i := range n {
		at := records * int64(i) / int64(n)
		if _, err := f.ReadAt(out[i*recordBytes:(i+1)*recordBytes], at*recordBytes); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// validate reads the output, file by file, and refuses what is out of order.
func validate(paths []string) (s summary, err error) {
	last := make([]byte, 0, recordBytes)
	for _, path := range paths {
		if err := validateFile(path, &last, &s); err != nil {
			return s, err
		}
	}
	return s, nil
}

func validateFile(path string, last *[]byte, s *summary) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<20)
	var r [recordBytes]byte
	for {
		if _, err := io.ReadFull(in, r[:]); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("bench: output %s: %w", path, err)
		}
		if len(*last) > 0 && bytes.Compare((*last)[:keyBytes], r[:keyBytes]) > 0 {
			return fmt.Errorf("bench: record %d of the output is out of order", s.Records)
		}
		*last = append((*last)[:0], r[:]...)
		s.see(r[:])
	}
}
