package objectstore

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
)

// ID names an object. It is 127 random bits, so ids made by different nodes do not meet, and one bit that says
// whether the value is a small one.
type ID [16]byte

func newID(small bool) (id ID) {
	// The global source of math/rand/v2 is ChaCha8 seeded by the system: unpredictable, and ten times
	// cheaper than a system call for every small object.
	binary.BigEndian.PutUint64(id[:8], rand.Uint64())
	binary.BigEndian.PutUint64(id[8:], rand.Uint64())
	id[15] &^= 1
	if small {
		id[15] |= 1
	}
	return id
}

func (id ID) small() bool { return id[15]&1 == 1 }

// String returns the id as 32 hexadecimal digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// MarshalText and UnmarshalText make ids what String writes, in JSON for example.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

func (id *ID) UnmarshalText(b []byte) (err error) {
	*id, err = ParseID(string(b))
	return err
}

// ParseID reads what String wrote.
func ParseID(s string) (id ID, err error) {
	if len(s) != hex.EncodedLen(len(id)) {
		return id, fmt.Errorf("objectstore: %q is not an object id", s)
	}
	if _, err := hex.Decode(id[:], []byte(s)); err != nil {
		return ID{}, fmt.Errorf("objectstore: %q is not an object id", s)
	}
	return id, nil
}

// IDFromBytes reads an id from its 16 bytes, as messages carry it.
func IDFromBytes(b []byte) (id ID, err error) {
	if len(b) != len(id) {
		return id, fmt.Errorf("objectstore: an object id has %d bytes, not %d", len(id), len(b))
	}
	return ID(b), nil
}
