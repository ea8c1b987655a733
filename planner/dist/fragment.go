package dist

import (
	"fmt"
	"slices"
	"strconv"

	"manta/planner/kernel"
	"manta/planner/plan"
	"manta/planner/split"
)

// Fragment is the SQL of a stage for one of its tasks.
type Fragment struct {
	SQL     string
	Types   []string      // DuckDB types of the columns; nil if they are the text's own
	Routing map[*Edge]int // Hash and Range edges: the column that holds the partition number
	Inputs  []*Input      // with the views that the text reads
	Files   []string      // that the text reads
}

// Names gives what a fragment's text needs from outside.
type Names struct {
	View   func(*Edge) string          // the view through which this task reads an edge
	Shares func(files []string) []File // the row groups of files
}

// File describes a source file for splitting.
type File = split.File

// Fragment prints the fragment of one of the stage's tasks.
func (s *Stage) Fragment(task int, names Names, partitions int) (*Fragment, error) {
	f := &Fragment{Routing: map[*Edge]int{}}
	root := s.bind(s.Root, task, names, f)

	// Columns that no edge carries are not computed, and the others leave as they travel.
	needed := s.needed()
	exprs := make([]plan.Expr, len(needed))
	same, native := true, len(s.Outputs) == 1 && s.Outputs[0].Native()
	for i, t := range s.Root.Types() {
		exprs[i] = &plan.Ref{Index: i, T: t}
		to := travelType(t)
		switch {
		case native:
			continue
		case !needed[i]:
			exprs[i], same = &plan.Const{Value: plan.NullOf(to)}, false
		case !to.Equal(t) && !odd(t):
			exprs[i], same = &plan.Cast{Child: exprs[i], T: to}, false
		case !to.Equal(t):
			exprs[i], same = &plan.Raw{SQL: leaving("{0}", t), Params: []plan.Expr{exprs[i]}, T: to}, false
		}
		f.Types = append(f.Types, to.String())
	}
	var extra []plan.Expr
	for _, e := range s.Outputs {
		if e.Kind != Hash && e.Kind != Range {
			continue
		}
		f.Routing[e] = len(exprs) + len(extra)
		f.Types = append(f.Types, plan.UInteger.String())
		if e.Kind == Range {
			extra = append(extra, e.Keys[0])
		} else {
			extra = append(extra, partition(e.Keys, partitions))
		}
	}
	// Partition numbers are of the values as they are here, not as they travel.
	if !same {
		root, extra = &plan.Project{Child: root, Exprs: append(exprs, extra...)}, nil
	}
	var err error
	f.SQL, err = plan.PrintFragment(root, nil, extra)
	return f, err
}

// partition is the number of the partition that a row's keys belong to. Both
// sides of a join have keys of the same types, and DuckDB's hash of equal values
// of one type is the same in every process of one version.
func partition(keys []plan.Expr, partitions int) plan.Expr {
	text := "CAST(hash("
	for i := range keys {
		if i > 0 {
			text += ", "
		}
		text += "{" + strconv.Itoa(i) + "}"
	}
	return &plan.Raw{SQL: fmt.Sprintf("%s) %% %d AS UINTEGER)", text, partitions), Params: keys, T: plan.UInteger}
}

// Setup are statements to be run before the fragment, on the same connection.
func (s *Stage) Setup() []string {
	outer := false
	plan.Walk(s.Root, func(n plan.Node) bool {
		j, ok := n.(*plan.Join)
		outer = outer || ok && j.Type != plan.Inner && !slices.ContainsFunc(j.Conds, func(c plan.JoinCond) bool {
			return c.Op == plan.Eq || c.Op == plan.NotDistinctFrom
		})
		return !outer
	})
	if outer {
		return []string{kernel.NoRangeMergeJoin}
	}
	return nil
}

// bind puts a task's own views and file ranges into the fragment.
func (s *Stage) bind(n plan.Node, task int, names Names, f *Fragment) plan.Node {
	switch n := n.(type) {
	case *Input:
		in := &Input{Edge: n.Edge, View: names.View(n.Edge)}
		f.Inputs = append(f.Inputs, in)
		return in
	case *Scan:
		if !n.Split {
			f.Files = append(f.Files, n.Get.Files...)
			return n.Get
		}
		ranges := split.Split(names.Shares(n.Get.Files), s.Tasks)[task]
		if len(ranges) == 0 {
			return &plan.Empty{Out: n.Types()}
		}
		get := *n.Get
		for _, r := range ranges {
			end := r.End
			if r.Whole {
				end = -1
			}
			get.Ranges = append(get.Ranges, plan.FileRange{File: r.Path, First: r.First, Last: end})
			f.Files = append(f.Files, r.Path)
		}
		return &get
	}
	children := n.Children()
	if len(children) == 0 {
		return n
	}
	bound := make([]plan.Node, len(children))
	for i, c := range children {
		bound[i] = s.bind(c, task, names, f)
	}
	return n.WithChildren(bound)
}
