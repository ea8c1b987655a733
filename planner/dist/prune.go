package dist

import (
	"slices"

	"manta/planner/plan"
)

// prune decides which columns every edge carries: those that its reader looks
// at. Positions stay as they are; see Input and Fragment.
func prune(p *Plan) {
	p.Result.Keep = plan.Range(len(p.Result.Types))
	for i := len(p.Stages) - 1; i >= 0; i-- { // readers before their producers
		s := p.Stages[i]
		reads(s.Root, s.needed(), func(in *Input, columns []bool) {
			in.Edge.Keep = nil
			for c, read := range columns {
				if read {
					in.Edge.Keep = append(in.Edge.Keep, c)
				}
			}
			if len(in.Edge.Keep) == 0 && len(columns) > 0 {
				in.Edge.Keep = []int{narrowest(in.Edge.Types)} // a batch without columns has no rows
			}
		})
	}
}

func narrowest(types []plan.Type) int {
	best := 0
	for i, t := range types {
		if typeBytes(t) < typeBytes(types[best]) {
			best = i
		}
	}
	return best
}

// needed marks the columns of the fragment's output that an edge carries or hashes.
func (s *Stage) needed() []bool {
	out := make([]bool, len(s.Root.Types()))
	for _, e := range s.Outputs {
		mark(out, e.Keep...)
		mark(out, plan.RefsOf(e.Keys...)...)
	}
	return out
}

func mark(columns []bool, which ...int) {
	for _, c := range which {
		columns[c] = true
	}
}

// reads calls f for every input below n with the columns that are looked at, when out are those of n's output.
func reads(n plan.Node, out []bool, f func(*Input, []bool)) {
	if in, ok := n.(*Input); ok {
		f(in, out)
		return
	}
	if p, ok := n.(*Partial); ok {
		n = p.Op
	}
	for i, need := range childColumns(n, out) {
		reads(n.Children()[i], need, f)
	}
}

// childColumns gives, for each child of n, the columns that n looks at to make the columns out of its output.
func childColumns(n plan.Node, out []bool) [][]bool {
	children := n.Children()
	need := make([][]bool, len(children))
	for i, c := range children {
		need[i] = make([]bool, len(c.Types()))
	}
	through := func(child int, keep []int, first int) {
		for i, k := range keep {
			need[child][k] = need[child][k] || out[first+i]
		}
	}
	use := func(child int, exprs ...plan.Expr) {
		mark(need[child], plan.RefsOf(exprs...)...)
	}
	switch n := n.(type) {
	case *plan.Project:
		for i, e := range n.Exprs {
			if out[i] || plan.IsVolatile(e) {
				use(0, e)
			}
		}
	case *plan.Filter:
		through(0, n.Keep, 0)
		use(0, n.Conds...)
	case *plan.Aggregate:
		use(0, plan.Exprs(n)...)
	case *plan.OrderBy:
		through(0, n.Keep, 0)
		use(0, plan.Exprs(n)...)
	case *plan.TopN, *plan.Limit, *plan.Window, *plan.Unnest:
		through(0, plan.Range(len(need[0])), 0)
		use(0, plan.Exprs(n)...)
	case *plan.Join:
		joinColumns(n, out, need)
	case *plan.Cross:
		through(0, plan.Range(len(need[0])), 0)
		through(1, plan.Range(len(need[1])), len(need[0]))
	case *plan.SetOp:
		for i := range need {
			if n.Kind == plan.Union && n.All {
				need[i] = slices.Clone(out)
			} else {
				all(need[i])
			}
		}
	default: // DISTINCT and whatever else compares or keeps whole rows
		for i := range need {
			all(need[i])
		}
	}
	return need
}

func joinColumns(n *plan.Join, out []bool, need [][]bool) {
	first := 0
	if n.Type != plan.RightSemi && n.Type != plan.RightAnti {
		for i, k := range n.LeftKeep {
			need[0][k] = need[0][k] || out[i]
		}
		first = len(n.LeftKeep)
	}
	if n.Type != plan.Semi && n.Type != plan.Anti && n.Type != plan.Mark {
		for i, k := range n.RightKeep {
			need[1][k] = need[1][k] || out[first+i]
		}
	}
	for _, c := range n.Conds {
		mark(need[0], plan.RefsOf(c.Left)...)
		mark(need[1], plan.RefsOf(c.Right)...)
	}
	if n.On != nil {
		for _, r := range plan.RefsOf(n.On) {
			if r < len(need[0]) {
				need[0][r] = true
			} else {
				need[1][r-len(need[0])] = true
			}
		}
	}
	if n.Type == plan.Single { // it counts its right side's rows
		all(need[1])
	}
}

func all(columns []bool) {
	for i := range columns {
		columns[i] = true
	}
}
