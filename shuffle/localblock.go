package shuffle

import (
	"fmt"

	"manta/actors"
	"manta/objectstore"
	"manta/shuffle/shufflepb"
)

// localBlock is a block on this node, open for reading.
type localBlock interface {
	size() int64
	// part returns bytes [from, to), which stay valid until the returned share is released.
	part(from, to int64) (*shared, error)
	// unsummed says that its reader does not know its checksum.
	unsummed() bool
	close()
}

// openBlock opens the block that a request names. Requests come from other nodes: everything in them is checked.
func (s *Service) openBlock(req *shufflepb.Fetch) (localBlock, error) {
	ref := req.GetRef()
	if len(ref.GetObject()) > 0 {
		id, err := objectstore.IDFromBytes(ref.GetObject())
		if err != nil {
			return nil, fmt.Errorf("%w: %v", ErrEdge, err)
		}
		o, err := s.node.Store().Get(id)
		if err != nil {
			return nil, err
		}
		return &objectBlock{hold: share(o.Bytes(), o.Release)}, nil
	}
	f, err := s.file(actors.JobID(req.GetJob()), fileKey{req.GetEdge(), req.GetProducer()})
	if err != nil {
		return nil, err
	}
	if err := f.check(ref); err != nil {
		return nil, err
	}
	return &rangeBlock{s: s, f: f, at: ref.GetOffset(), n: ref.GetSize()}, nil
}

// file finds a producer's file; it never makes a job known.
func (s *Service) file(id actors.JobID, k fileKey) (*spillFile, error) {
	s.mu.Lock()
	j := s.jobs[id]
	s.mu.Unlock()
	if j == nil {
		return nil, fmt.Errorf("%w: %s", ErrJobEnded, id)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	f := j.files[k]
	if f == nil {
		return nil, fmt.Errorf("%w: no file of producer %d of edge %d", ErrEdge, k.producer, k.edge)
	}
	return f, nil
}

// objectBlock is an object of the store, pinned.
type objectBlock struct{ hold *shared }

func (b *objectBlock) size() int64 { return b.hold.size }

func (b *objectBlock) part(from, to int64) (*shared, error) {
	b.hold.refs.Add(1)
	return share(b.hold.parts[0][from:to], b.hold.release), nil
}

func (b *objectBlock) unsummed() bool { return true }

func (b *objectBlock) close() { b.hold.release() }

// rangeBlock is a range of a file.
type rangeBlock struct {
	s     *Service
	f     *spillFile
	at, n int64
}

func (b *rangeBlock) size() int64 { return b.n }

func (b *rangeBlock) part(from, to int64) (*shared, error) {
	buf := b.s.mem.Allocate(int(to - from))
	if _, err := b.f.f.ReadAt(buf, b.at+from); err != nil {
		b.s.mem.Free(buf)
		return nil, fmt.Errorf("shuffle: mode %s: %w", Disk, err)
	}
	return share(buf, func() { b.s.mem.Free(buf) }), nil
}

func (b *rangeBlock) unsummed() bool { return false }

func (b *rangeBlock) close() {}

// fate is what becomes of references that are given back.
type fate uint8

const (
	spent  fate = iota // their reader has read them, or wants none of them
	missed             // it failed, or was lost; another one may come for them
)

// releaseHere gives back references to objects of this node.
func (s *Service) releaseHere(refs []*shufflepb.Ref, how fate) {
	for _, r := range refs {
		if id, err := objectstore.IDFromBytes(r.GetObject()); err == nil {
			if s.node.Store().Release(id, r.GetHolder()) == nil && how == spent { // else it is gone already, at the end of a job
				s.wasRead(r)
			}
		}
	}
}
