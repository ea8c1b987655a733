// Package sqltext cuts SQL text into tokens, for what has to be done to a query's
// own text: DuckDB parses, but tells nobody where in the text it found what.
package sqltext

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Token is a word, a quoted name, a string, or one character of something else.
type Token struct {
	From, To int // bytes of the text
	Text     string
	Depth    int // of brackets around it; a bracket counts as outside of itself
}

// Is reports whether a token is that word, in whatever case, or that character.
func (t Token) Is(word string) bool { return strings.EqualFold(t.Text, word) }

// Tokens are the tokens of a text, without blanks and comments. A string or a
// comment that does not end is a token to the end of the text.
func Tokens(sql string) []Token {
	var out []Token
	depth := 0
	for at := 0; at < len(sql); {
		r, size := utf8.DecodeRuneInString(sql[at:])
		if unicode.IsSpace(r) {
			at += size
			continue
		}
		if end := comment(sql, at); end > at {
			at = end
			continue
		}
		end := token(sql, at, r, size)
		t := Token{From: at, To: end, Text: sql[at:end], Depth: depth}
		switch t.Text {
		case "(", "[", "{":
			depth++
		case ")", "]", "}":
			depth = max(depth-1, 0)
			t.Depth = depth
		}
		out = append(out, t)
		at = end
	}
	return out
}

// comment gives the end of a comment that begins at a position, else the position.
func comment(sql string, at int) int {
	switch rest := sql[at:]; {
	case strings.HasPrefix(rest, "--"):
		if n := strings.IndexByte(rest, '\n'); n >= 0 {
			return at + n + 1
		}
		return len(sql)
	case strings.HasPrefix(rest, "/*"):
		nested := 0
		for i := 0; i+1 < len(rest); i++ {
			switch rest[i : i+2] {
			case "/*":
				nested++
				i++
			case "*/":
				nested--
				i++
			}
			if nested == 0 {
				return at + i + 1
			}
		}
		return len(sql)
	}
	return at
}

// token gives the end of the token that begins at a position with r.
func token(sql string, at int, r rune, size int) int {
	switch {
	case r == '\'' || r == '"':
		return quoted(sql, at, byte(r), false)
	case (r == 'e' || r == 'E') && at+1 < len(sql) && sql[at+1] == '\'':
		return quoted(sql, at+1, '\'', true)
	case r == '$':
		if end := dollars(sql, at); end > at {
			return end
		}
	case word(r):
		for end := at + size; ; {
			r, n := utf8.DecodeRuneInString(sql[end:])
			if n == 0 || !word(r) && r != '$' {
				return end
			}
			end += n
		}
	}
	return at + size
}

func word(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// quoted gives the end of what begins at a position with a quote; a doubled quote
// stands for itself, and where escapes says so, what follows a backslash does.
func quoted(sql string, at int, quote byte, escapes bool) int {
	for i := at + 1; i < len(sql); i++ {
		switch {
		case escapes && sql[i] == '\\':
			i++
		case sql[i] == quote && i+1 < len(sql) && sql[i+1] == quote:
			i++
		case sql[i] == quote:
			return i + 1
		}
	}
	return len(sql)
}

// dollars gives the end of a string between $tag$ and $tag$ that begins at a position, else the position.
func dollars(sql string, at int) int {
	n := strings.IndexByte(sql[at+1:], '$')
	if n < 0 {
		return at
	}
	tag := sql[at : at+n+2]
	for _, r := range tag[1 : len(tag)-1] {
		if !word(r) {
			return at
		}
	}
	end := strings.Index(sql[at+len(tag):], tag)
	if end < 0 {
		return len(sql)
	}
	return at + 2*len(tag) + end
}
