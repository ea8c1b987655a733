package tpc

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Tolerance is the largest relative difference of two values of a Divided column that pass as equal.
const Tolerance = 1e-9

// Report is what a comparison that found no difference saw.
type Report struct {
	Rows        int
	Approximate int // values of Divided columns that were equal only within Tolerance
}

// Difference is the first difference that a comparison found.
type Difference struct {
	Row    int    // from 1, in the wanted result unless the row is extra; 0 = no particular row
	Column string // "" = the whole row, or no particular row
	Want   string
	Got    string
	What   string // says in a few words what kind of difference it is
}

// Error is one line.
func (d *Difference) Error() string {
	var b strings.Builder
	b.WriteString(d.What)
	if d.Row > 0 {
		fmt.Fprintf(&b, ", row %d", d.Row)
	}
	if d.Column != "" {
		fmt.Fprintf(&b, ", column %s", d.Column)
	}
	fmt.Fprintf(&b, ": want %s, got %s", short(d.Want), short(d.Got))
	return b.String()
}

func short(s string) string {
	const most = 200
	s = strings.ReplaceAll(s, null, "NULL")
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}

// Compare compares got with want, of one query. An error is a *Difference.
func Compare(rule Rule, want, got *Result) (Report, error) {
	if err := compareHeads(want, got); err != nil {
		return Report{}, err
	}
	w, err := tableOf(want)
	if err != nil {
		return Report{}, err
	}
	g, err := tableOf(got)
	if err != nil {
		return Report{}, err
	}
	return compareTables(rule, w, g)
}

func compareHeads(want, got *Result) error {
	names := func(r *Result) (out []string) {
		for _, f := range r.Schema.Fields() {
			out = append(out, f.Name)
		}
		return out
	}
	w, g := names(want), names(got)
	if !slices.Equal(w, g) {
		return &Difference{What: "column names differ", Want: strings.Join(w, "|"), Got: strings.Join(g, "|")}
	}
	if len(want.Types) != len(got.Types) {
		return &Difference{What: "numbers of types differ", Want: strings.Join(want.Types, "|"), Got: strings.Join(got.Types, "|")}
	}
	for i, t := range want.Types {
		if got.Types[i] != t {
			return &Difference{What: "types differ", Column: w[i], Want: t, Got: got.Types[i]}
		}
	}
	return nil
}

// compareTables compares rows as multisets, then the sequence of order keys.
func compareTables(rule Rule, want, got *table) (Report, error) {
	report := Report{Rows: len(want.rows)}
	left := map[string][]int{} // by exact key: rows of want without a partner
	for i, row := range want.rows {
		key := exactKey(rule, row)
		left[key] = append(left[key], i)
	}
	missing := make([]bool, len(want.rows))
	for i := range missing {
		missing[i] = true
	}
	extra := -1
	for i, row := range got.rows {
		key := exactKey(rule, row)
		at := slices.IndexFunc(left[key], func(w int) bool { _, ok := near(rule, want.rows[w], row); return ok })
		if at < 0 {
			if extra < 0 {
				extra = i
			}
			continue
		}
		w := left[key][at]
		left[key] = slices.Delete(left[key], at, at+1)
		missing[w] = false
		approximate, _ := near(rule, want.rows[w], row)
		report.Approximate += approximate
	}
	if err := unmatched(want, got, slices.Index(missing, true), extra); err != nil {
		return report, err
	}
	for i := range want.rows {
		for _, c := range rule.Order {
			if w, g := want.rows[i][c], got.rows[i][c]; w != g && !nearKey(rule, c, w, g) {
				return report, &Difference{What: "wrong order", Row: i + 1, Column: want.names[c], Want: w, Got: g}
			}
		}
	}
	return report, nil
}

// exactKey is the part of a row that must be equal to the last bit.
func exactKey(rule Rule, row []string) string {
	var b strings.Builder
	for i, v := range row {
		if !slices.Contains(rule.Divided, i) {
			b.WriteString(strconv.Itoa(len(v)))
			b.WriteByte(':')
			b.WriteString(v)
		}
	}
	return b.String()
}

// near says whether the Divided columns of two rows are equal, and how many of them only within Tolerance.
func near(rule Rule, want, got []string) (approximate int, ok bool) {
	for _, c := range rule.Divided {
		if want[c] == got[c] {
			continue
		}
		if !closeTo(want[c], got[c]) {
			return 0, false
		}
		approximate++
	}
	return approximate, true
}

func closeTo(want, got string) bool {
	w, err1 := strconv.ParseFloat(want, 64)
	g, err2 := strconv.ParseFloat(got, 64)
	return err1 == nil && err2 == nil && math.Abs(w-g) <= Tolerance*max(math.Abs(w), math.Abs(g))
}

// nearKey says whether two values of an order key are equal within Tolerance, in a column where it applies.
func nearKey(rule Rule, column int, want, got string) bool {
	return slices.Contains(rule.Divided, column) && closeTo(want, got)
}

// unmatched describes the first rows without a partner, -1 meaning none.
func unmatched(want, got *table, missing, extra int) error {
	switch {
	case missing < 0 && extra < 0:
		return nil
	case extra < 0:
		return &Difference{What: fmt.Sprintf("%d rows instead of %d", len(got.rows), len(want.rows)), Row: missing + 1,
			Want: strings.Join(want.rows[missing], "|"), Got: "no such row"}
	case missing < 0:
		return &Difference{What: fmt.Sprintf("%d rows instead of %d", len(got.rows), len(want.rows)), Row: extra + 1,
			Want: "no such row", Got: strings.Join(got.rows[extra], "|")}
	}
	w, g := want.rows[missing], got.rows[extra]
	var differing []int
	for i := range w {
		if w[i] != g[i] {
			differing = append(differing, i)
		}
	}
	if len(differing) == 1 {
		c := differing[0]
		return &Difference{What: "values differ", Row: missing + 1, Column: want.names[c], Want: w[c], Got: g[c]}
	}
	return &Difference{What: "rows differ", Row: missing + 1, Want: strings.Join(w, "|"), Got: strings.Join(g, "|")}
}
