package objectstore

// Put stores the concatenation of parts, copied once, and returns its id. The owner holds the object. Put waits
// for room and fails as Create does.
func (s *Store) Put(owner string, parts ...[]byte) (ID, error) {
	return s.PutLabelled(owner, "", parts...)
}

// PutLabelled is Put of an object with a label; see Writer.Label.
func (s *Store) PutLabelled(owner, label string, parts ...[]byte) (ID, error) {
	size := int64(0)
	for _, p := range parts {
		size += int64(len(p))
	}
	if size <= int64(s.cfg.InlineMax) {
		id := newID(true)
		if err := s.putSmall(id, owner, label, int(size), parts); err != nil {
			return ID{}, err
		}
		s.arrived(id)
		return id, nil
	}
	w, err := s.Create(owner, size)
	if err != nil {
		return ID{}, err
	}
	w.Label(label)
	for _, p := range parts {
		if _, err := w.Write(p); err != nil {
			return ID{}, err
		}
	}
	return w.Seal()
}
