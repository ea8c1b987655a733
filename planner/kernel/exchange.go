package kernel

import "strings"

// ExchangeType returns the type that a column of DuckDB's type typ must have to travel: produced by [Rows] and read
// back through [Conn.RegisterStream], with LosslessArrow set on both sides, a column of that type arrives with the
// same type and values. It is typ itself for almost every type. An ENUM, also inside another type, travels as VARCHAR:
// cast to the returned type before the exchange and to typ after it. ok is false for a type that does not travel
// at all (UNION, VARIANT) or that is unknown here (a user's own type name).
//
// Without LosslessArrow these arrive as another type too: HUGEINT, UHUGEINT, UUID, BIT, BIGNUM, TIME WITH TIME ZONE,
// JSON. The setting belongs to the instance, not to the connection.
func ExchangeType(typ string) (travels string, ok bool) {
	var out, word strings.Builder
	ok = true
	flush := func() {
		if w := word.String(); w != "" && !knownWords[w] && strings.Trim(w, "0123456789") != "" {
			ok = false
		}
		out.WriteString(word.String())
		word.Reset()
	}
	for i := 0; i < len(typ); i++ {
		switch b := typ[i]; {
		case b == '"': // a member's name, or "NULL"
			end := quotedEnd(typ, i)
			if typ[i:end] == `"NULL"` && !strings.HasPrefix(typ[end:], " ") {
				ok = false
			}
			out.WriteString(typ[i:end])
			i = end - 1
		case b == '(' && word.String() == "ENUM":
			word.Reset()
			out.WriteString("VARCHAR")
			i = enumEnd(typ, i) - 1
		case b == ' ' || b == '(' || b == ')' || b == ',' || b == '[' || b == ']':
			flush()
			out.WriteByte(b)
		default:
			word.WriteByte(b)
		}
	}
	flush()
	return out.String(), ok
}

// knownWords are the words that names of types which travel are made of.
var knownWords = func() map[string]bool {
	words := map[string]bool{"DECIMAL": true, "STRUCT": true, "MAP": true, "JSON": true}
	for _, name := range plainTypes {
		for w := range strings.FieldsSeq(name) {
			words[w] = true
		}
	}
	delete(words, "VARIANT")
	return words
}()

// quotedEnd returns the index after the quoted text that starts at s[i]; a doubled quote is part of it.
func quotedEnd(s string, i int) int {
	quote := s[i]
	for i++; i < len(s); i++ {
		if s[i] != quote {
			continue
		}
		if i+1 < len(s) && s[i+1] == quote {
			i++
			continue
		}
		return i + 1
	}
	return len(s)
}

// enumEnd returns the index after the list of values whose parenthesis is s[i].
func enumEnd(s string, i int) int {
	for i++; i < len(s); i++ {
		switch s[i] {
		case '\'':
			i = quotedEnd(s, i) - 1
		case ')':
			return i + 1
		}
	}
	return len(s)
}
