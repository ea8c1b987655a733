package shuffle

import (
	"context"
	"errors"
	"strings"

	"manta/actors"
)

// failureText bounds the text of an error on its way.
const failureText = 4 << 10

// failureKinds are the errors that keep their identity between nodes, by their letter on the wire.
var failureKinds = []struct {
	letter byte
	err    error
}{
	{'e', ErrJobEnded}, {'p', ErrProducer}, {'r', ErrReader}, {'c', ErrPeer}, {'d', actors.ErrNodeDead}, {'k', context.Canceled},
	{'b', ErrEdge}, {'x', ErrCorrupt}, {'t', ErrConcat},
}

// farError is an error of another node: its text, and which of ours it is.
type farError struct {
	text  string
	kinds []error
}

func (e *farError) Error() string   { return e.text }
func (e *farError) Unwrap() []error { return e.kinds }

func encodeFailure(err error) []byte {
	var b strings.Builder
	for _, k := range failureKinds {
		if errors.Is(err, k.err) {
			b.WriteByte(k.letter)
		}
	}
	b.WriteByte(' ')
	text := err.Error()
	if len(text) > failureText {
		text = text[:failureText] + " … (cut)"
	}
	b.WriteString(text)
	return []byte(b.String())
}

func decodeFailure(data []byte) error {
	letters, text, _ := strings.Cut(string(data), " ")
	e := &farError{text: text}
	for _, k := range failureKinds {
		if strings.IndexByte(letters, k.letter) >= 0 {
			e.kinds = append(e.kinds, k.err)
		}
	}
	return e
}
