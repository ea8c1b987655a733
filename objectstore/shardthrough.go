package objectstore

// putThrough writes a small value that found no room in memory to Badger, as a segment of its own.
func (s *Store) putThrough(sh *shard, id ID, owner string, label uint16, size int, parts [][]byte) error {
	sh.mu.Lock()
	sh.seq++
	seq := sh.seq
	sh.mu.Unlock()
	image := make([]byte, 0, size+dirEntry+dirFooter+len(owner)+4)
	for _, p := range parts {
		image = append(image, p...)
	}
	sum := checksum32(image)
	data := appendDirectory(image, []dirItem{{id: id, size: uint32(size), sum: sum, owner: owner}})

	s.mu.Lock()
	err := s.begin()
	s.mu.Unlock()
	if err != nil {
		return err
	}
	defer s.end()
	s.indexed.Add(1) // before the write, or the index could be reset between it and the object
	if err := s.index.write([]indexOp{{key: segmentKey(sh.num, seq), value: data}}); err != nil {
		s.indexed.Add(-1)
		s.mu.Lock()
		defer s.mu.Unlock()
		full := s.full(int64(size))
		full.Cause = err
		return full
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	seg := &segment{end: size, size: int64(len(data))}
	sh.number(seg)
	seg.seq = seq
	sh.enterStore(seg, 1)
	if sh.closed {
		sh.bury(seg)
		return ErrClosed
	}
	if _, err := sh.refs.Add(id, owner, spot{segment: seg.num, size: uint32(size), sum: sum, label: label}); err != nil {
		sh.bury(seg)
		return holdError(err, id, owner)
	}
	sh.counted(seg, size)
	sh.storedLive += seg.size
	return nil
}
