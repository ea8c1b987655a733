package objectstore

import (
	"strings"
	"sync"
)

// labels numbers what made the small values, for a number of two bytes is all that there is room for beside each.
// What makes values are an application's tasks and stages: few, and the same again and again.
type labels struct {
	mu      sync.RWMutex
	numbers map[string]uint16 // guarded by mu
	texts   []string          // by number; guarded by mu
}

const (
	mostLabels  = 4096 // of them; the values of others have none
	labelLength = 64   // of what is kept of one, in bytes
)

// number gives a text its number. It is 0 for none, and for what is one too many.
func (l *labels) number(text string) uint16 {
	if text == "" {
		return 0
	}
	if len(text) > labelLength {
		text = strings.ToValidUTF8(text[:labelLength], "")
	}
	l.mu.RLock()
	n, ok := l.numbers[text]
	l.mu.RUnlock()
	if ok {
		return n
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if n, ok := l.numbers[text]; ok {
		return n
	}
	if len(l.texts) == 0 {
		l.numbers, l.texts = map[string]uint16{}, []string{""}
	}
	if len(l.texts) > mostLabels {
		return 0
	}
	n, text = uint16(len(l.texts)), strings.Clone(text)
	l.numbers[text] = n
	l.texts = append(l.texts, text)
	return n
}

// text gives the text of a number.
func (l *labels) text(n uint16) string {
	if n == 0 {
		return ""
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.texts[n]
}
