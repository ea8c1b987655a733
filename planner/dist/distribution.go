package dist

import (
	"fmt"
	"slices"
	"strings"

	"manta/planner/plan"
)

// Kind is how rows are spread over tasks.
type Kind int

// Kinds of distribution.
const (
	Single      Kind = iota // one task has all rows
	Partitioned             // each row is at exactly one of N tasks
	Replicated              // every task has all rows, in any order
)

// Distribution is how an operator's output is spread over the tasks that compute it.
type Distribution struct {
	Kind Kind
	// Keys, when Partitioned and not nil, are the keys whose hash decides a row's
	// task, in the order in which they are hashed. Without keys nothing is known
	// of where a row is.
	Keys []Key
}

// Key is one hashed value: expressions over the output columns that all give
// that value in every row. Rows that are equal in one of them are at one task,
// provided that they are equal in the other keys too.
type Key []plan.Expr

// hashed is the distribution of rows that have just been hashed by the expressions.
func hashed(keys []plan.Expr) Distribution {
	d := Distribution{Kind: Partitioned}
	for _, k := range keys {
		d.Keys = append(d.Keys, Key{k})
	}
	return d
}

// String is for EXPLAIN.
func (d Distribution) String() string {
	switch d.Kind {
	case Single:
		return "single"
	case Replicated:
		return "replicated"
	}
	if d.Keys == nil {
		return "arbitrary"
	}
	parts := make([]string, len(d.Keys))
	for i, k := range d.Keys {
		parts[i] = canonical(k[0])
	}
	return "hash(" + strings.Join(parts, ", ") + ")"
}

// rewrite gives the distribution after an operator that outputs other columns:
// to says what becomes of an expression over the input, nil when the output does
// not have it. A key that is lost leaves the rows where they are, but no longer
// known to be there.
func (d Distribution) rewrite(to func(plan.Expr) plan.Expr) Distribution {
	if d.Keys == nil {
		return d
	}
	out := Distribution{Kind: d.Kind}
	for _, k := range d.Keys {
		var kept Key
		for _, e := range k {
			if m := to(e); m != nil {
				kept = kept.add(m)
			}
		}
		if kept == nil {
			return Distribution{Kind: d.Kind}
		}
		out.Keys = append(out.Keys, kept)
	}
	return out
}

// keep is rewrite for an operator that outputs the given input columns, starting at output column first.
func (d Distribution) keep(columns []int, first int) Distribution {
	return d.rewrite(keeper(columns, first))
}

// keeper maps expressions over an input to expressions over an output that has
// the input's columns at the positions first, first+1, …
func keeper(columns []int, first int) func(plan.Expr) plan.Expr {
	return func(e plan.Expr) plan.Expr {
		for _, r := range plan.RefsOf(e) {
			if !slices.Contains(columns, r) {
				return nil
			}
		}
		return plan.MapRefs(e, func(r *plan.Ref) plan.Expr {
			return &plan.Ref{Index: first + slices.Index(columns, r.Index), T: r.T}
		})
	}
}

// has reports whether one of the key's expressions is e.
func (k Key) has(e plan.Expr) bool {
	want := canonical(e)
	return slices.ContainsFunc(k, func(x plan.Expr) bool { return canonical(x) == want })
}

// add is the key with one more expression of the same value.
func (k Key) add(e plan.Expr) Key {
	if k.has(e) {
		return k
	}
	return append(slices.Clip(k), e)
}

// by reports whether the rows are hashed by exactly these expressions, in this order.
func (d Distribution) by(keys []plan.Expr) bool {
	return d.Kind == Partitioned && d.Keys != nil && len(d.Keys) == len(keys) &&
		!slices.ContainsFunc(plan.Range(len(keys)), func(i int) bool { return !d.Keys[i].has(keys[i]) })
}

// within reports whether rows that are equal in all of the expressions are at one task.
func (d Distribution) within(exprs []plan.Expr) bool {
	if d.Kind != Partitioned {
		return true
	}
	if d.Keys == nil {
		return false
	}
	for _, k := range d.Keys {
		if !slices.ContainsFunc(exprs, k.has) {
			return false
		}
	}
	return true
}

// canonical is a text that is the same for two expressions only if they always
// give the same value. Expressions it does not look into are equal to themselves only.
func canonical(e plan.Expr) string {
	switch e := e.(type) {
	case *plan.Ref:
		return fmt.Sprintf("c%d", e.Index)
	case *plan.Const:
		if e.Value.Null || len(e.Value.Children) > 0 || e.Value.Type.ID == "INTERVAL" {
			break
		}
		return fmt.Sprintf("%s %q", e.Value.Type, e.Value.Text)
	case *plan.Cast:
		return fmt.Sprintf("cast(%s as %s, %t)", canonical(e.Child), e.T, e.Try)
	case *plan.Func:
		if e.Lambda != nil || plan.IsVolatile(e) {
			break
		}
		parts := make([]string, len(e.Params))
		for i, p := range e.Params {
			parts[i] = canonical(p)
		}
		return fmt.Sprintf("%s(%s)%s", e.Name, strings.Join(parts, ", "), e.T)
	}
	return fmt.Sprintf("%T@%p", e, e)
}
