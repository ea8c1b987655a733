package objectstore

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestLabelsAreBounded(t *testing.T) {
	var l labels
	long := strings.Repeat("é", 60) + "a"
	for range 2 {
		require.Zero(t, l.number(""))
		require.Equal(t, long[:labelLength], l.text(l.number(long)))
		require.Equal(t, strings.Repeat("ä", 31)+"b", l.text(l.number(strings.Repeat("ä", 31)+"bä")))
		for i := range mostLabels - 2 {
			require.Equal(t, fmt.Sprint(i), l.text(l.number(fmt.Sprint(i))))
		}
		require.Zero(t, l.number("one too many"))
	}
	for _, text := range l.texts {
		require.True(t, utf8.ValidString(text))
	}
}
