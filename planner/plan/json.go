package plan

import (
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// failure carries an error up through the decoder, which is deeply recursive; Decode turns it back.
type failure struct{ error }

func fail(err error) { panic(failure{err}) }

// object is one JSON object. Every key must be taken or ignored before done, so that nothing unknown is passed over.
type object struct {
	what   string // for errors
	fields map[string]any
}

func asObject(v any, what string) *object {
	m, ok := v.(map[string]any)
	if !ok {
		fail(malformed("%s is not an object", what))
	}
	return &object{what: what, fields: m}
}

func (o *object) take(key string) any {
	v, ok := o.fields[key]
	if !ok {
		fail(malformed("%s has no %s", o.what, key))
	}
	delete(o.fields, key)
	return v
}

// maybe takes the key if it is there.
func (o *object) maybe(key string) (any, bool) {
	v, ok := o.fields[key]
	delete(o.fields, key)
	return v, ok
}

func (o *object) ignore(keys ...string) {
	for _, k := range keys {
		delete(o.fields, k)
	}
}

func (o *object) done() {
	if len(o.fields) > 0 {
		fail(unsupported("key %s of %s", strings.Join(slices.Sorted(maps.Keys(o.fields)), ", "), o.what))
	}
}

func (o *object) object(key string) *object { return asObject(o.take(key), key+" of "+o.what) }

func (o *object) text(key string) string {
	s, ok := o.take(key).(string)
	if !ok {
		fail(malformed("%s of %s is not text", key, o.what))
	}
	return s
}

func (o *object) flag(key string) bool {
	b, ok := o.take(key).(bool)
	if !ok {
		fail(malformed("%s of %s is not a truth value", key, o.what))
	}
	return b
}

func (o *object) list(key string) []any { return asList(o.take(key), key+" of "+o.what) }

// number takes a whole number; DuckDB's "no index" is the highest of them.
func (o *object) number(key string) uint64 {
	n, ok := asNumber(o.take(key))
	if !ok {
		fail(malformed("%s of %s is not a whole number", key, o.what))
	}
	return n
}

func (o *object) integer(key string) int { return int(o.number(key)) }

func asList(v any, what string) []any {
	l, ok := v.([]any)
	if !ok {
		fail(malformed("%s is not a list", what))
	}
	return l
}

func asNumber(v any) (uint64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	u, err := strconv.ParseUint(n.String(), 10, 64)
	return u, err == nil
}

func asInts(v any, what string) []int {
	list := asList(v, what)
	out := make([]int, len(list))
	for i, e := range list {
		n, ok := asNumber(e)
		if !ok || n > 1<<31 {
			fail(malformed("%s holds something else than positions", what))
		}
		out[i] = int(n)
	}
	return out
}

// asWide reads a whole number of up to 128 bits, of which DuckDB writes the wide ones as two halves.
func asWide(v any, what string) *big.Int {
	switch v := v.(type) {
	case json.Number:
		if n, ok := new(big.Int).SetString(v.String(), 10); ok {
			return n
		}
	case map[string]any:
		o := asObject(v, what)
		upper, lower := asWide(o.take("upper"), what), asWide(o.take("lower"), what)
		o.done()
		return upper.Lsh(upper, 64).Add(upper, lower)
	}
	fail(malformed("%s is not a whole number", what))
	return nil
}

// parseJSON decodes with numbers as text. The words that DuckDB writes for NaN and the infinities are quoted already.
func parseJSON(text string) (any, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, malformed("%v", err)
	}
	return v, nil
}
