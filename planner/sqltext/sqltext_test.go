package sqltext

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestTokens(t *testing.T) {
	for sql, want := range map[string]string{
		"SELECT a1, 'it''s' -- x\n;":  "[SELECT a1 , 'it''s' ;]",
		`"a""b".c E'\'' 'x\' y`:       `["a""b" . c E'\'' 'x\' y]`,
		"$$a ' b$$ $t$ $$ $t$ $1":     "[$$a ' b$$ $t$ $$ $t$ $ 1]",
		"a/* b /* c */ d */e /* open": "[a e]",
		"größe::INT 'open":            "[größe : : INT 'open]",
		"f(x[1], {'a': (2)})":         "[f ( x [ 1 ] , { 'a' : ( 2 ) } )]",
	} {
		var got []string
		for _, tok := range Tokens(sql) {
			got = append(got, tok.Text)
			require.Equal(t, tok.Text, sql[tok.From:tok.To])
		}
		require.Equal(t, want, fmt.Sprint(got), sql)
	}
	depths := []int{}
	for _, tok := range Tokens("a(b(c)d)e)") {
		depths = append(depths, tok.Depth)
	}
	require.Equal(t, []int{0, 0, 1, 1, 2, 1, 1, 0, 0, 0}, depths)
}

// Tokens never overlap, and nothing between them is more than blanks and comments, whatever the text.
func TestTokensOfAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sql := rapid.StringOfN(rapid.SampledFrom([]rune("aE'\"$-/* \n;(),é1")), 0, 40, -1).Draw(t, "sql")
		at := 0
		for _, tok := range Tokens(sql) {
			require.GreaterOrEqual(t, tok.From, at)
			require.Greater(t, tok.To, tok.From)
			require.LessOrEqual(t, tok.To, len(sql))
			at = tok.To
		}
	})
}
