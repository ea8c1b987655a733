package disttest

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"manta/planner/dist"
	"manta/planner/plan"
)

// Tally counts mutants, by kind.
type Tally struct {
	Noticed map[string]int // the checker refuses them
	Proved  map[string]int // it lets them pass, and a proof says that they give the same rows
	Ran     int            // mutants that passed, and whose rows were compared
	// Most is how many of those run for one plan; not those whose rows have
	// floating-point numbers, which depend on the order in which they are added.
	Most int
}

// Check makes every mutant of a plan. dist.Check must notice it, unless its rows
// are proved to meet where they have to. Such mutants run, too.
func (y *Tally) Check(r *Rig, sql string, p *dist.Plan, files map[string]dist.File) {
	if y.Noticed == nil {
		y.Noticed, y.Proved = map[string]int{}, map[string]int{}
	}
	require.NoError(r.T, Proof(p), "%s\n%s", sql, text(p))
	var passed []Mutant
	for _, m := range Mutants(p) {
		m.With(func() {
			if dist.Check(p) != nil {
				y.Noticed[m.Kind]++
				return
			}
			if err := Proof(p); err != nil || m.Fatal() {
				r.T.Errorf("not noticed: %s (%v)\n%s\n%s", m.What, err, sql, text(p))
			}
			y.Proved[m.Kind]++
			passed = append(passed, m)
		})
	}
	require.NoError(r.T, dist.Check(p), sql)
	passed = passed[:min(len(passed), y.Most)]
	if slices.ContainsFunc(p.Result.Types, func(t plan.Type) bool { return t.ID == "DOUBLE" || t.ID == "FLOAT" }) {
		passed = nil
	}
	var want []string
	for _, m := range passed {
		if want == nil {
			rows, err := r.Unchecked(p, files)
			if err != nil {
				return // a statement whose data is an error
			}
			sort.Strings(rows)
			want = rows
		}
		m.With(func() {
			got, err := r.Unchecked(p, files)
			sort.Strings(got)
			if err != nil || !slices.Equal(want, got) {
				r.T.Errorf("other rows: %s (%v)\n%s\n%s", m.What, err, sql, text(p))
			}
			y.Ran++
		})
	}
}

// Require fails unless more removed exchanges than that were noticed.
func (y *Tally) Require(t *testing.T, removed int) {
	t.Helper()
	t.Log(y)
	require.Greater(t, y.Noticed[Removed], removed)
}

func text(p *dist.Plan) string { return dist.Explain(p, func(*dist.Edge) string { return "" }, nil) }

func (y *Tally) String() string {
	var b strings.Builder
	for _, k := range slices.Compact(slices.Sorted(maps.Keys(merged(y.Noticed, y.Proved)))) {
		fmt.Fprintf(&b, "%s: %d noticed, %d proved right\n", k, y.Noticed[k], y.Proved[k])
	}
	fmt.Fprintf(&b, "%d of those ran", y.Ran)
	return b.String()
}

func merged(a, b map[string]int) map[string]int {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}
