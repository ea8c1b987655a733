package dist

import (
	"fmt"
	"strings"

	"manta/planner/plan"
)

// Explain describes a plan for a reader: each stage with its tasks and
// operators, and each edge with its distribution, its mode and the estimate of
// what it moves. mode names an edge's exchange mode; detail, when not nil, adds
// lines to a stage.
func Explain(p *Plan, mode func(*Edge) string, detail func(*Stage) []string) string {
	var b strings.Builder
	for i := len(p.Stages) - 1; i >= 0; i-- {
		s := p.Stages[i]
		tasks := "1 task"
		if s.Tasks > 1 {
			tasks = fmt.Sprintf("%d tasks", s.Tasks)
		}
		fmt.Fprintf(&b, "Stage %d, %s", s.ID, tasks)
		if s.Name != "" {
			fmt.Fprintf(&b, ", %s", s.Name)
		}
		b.WriteString("\n")
		for _, e := range s.Outputs {
			to := "the client"
			if e.To != nil {
				to = fmt.Sprintf("stage %d", e.To.ID)
			}
			kind := e.Kind.String() + keyText(e)
			if e.Source > 0 {
				kind += fmt.Sprintf(" from task %d", e.Source-1)
			}
			fmt.Fprintf(&b, "  => edge %d to %s: %s, %s, ~%s rows, ~%s\n",
				e.ID, to, kind, mode(e), count(e.Rows), size(e.Bytes()))
		}
		explainNode(&b, s.Root, 1, p, s)
		if detail != nil {
			for _, line := range detail(s) {
				fmt.Fprintf(&b, "  | %s\n", line)
			}
		}
	}
	for _, n := range p.Notes {
		fmt.Fprintf(&b, "Note: %s.\n", n)
	}
	return b.String()
}

func keyText(e *Edge) string {
	var keys []string
	switch e.Kind {
	case Hash:
		for _, k := range e.Keys {
			keys = append(keys, canonical(k))
		}
	case Range:
		for _, k := range e.Order {
			keys = append(keys, canonical(k.Expr))
		}
	default:
		return ""
	}
	return "(" + strings.Join(keys, ", ") + ")"
}

func explainNode(b *strings.Builder, n plan.Node, depth int, p *Plan, s *Stage) {
	fmt.Fprintf(b, "%s%s\n", strings.Repeat("  ", depth), describe(n, s))
	if part, ok := n.(*Partial); ok {
		n = part.Op
	}
	for _, c := range n.Children() {
		explainNode(b, c, depth+1, p, s)
	}
}

// describe is one operator in one line.
func describe(n plan.Node, s *Stage) string {
	switch n := n.(type) {
	case *Input:
		return fmt.Sprintf("edge %d from stage %d: %s", n.Edge.ID, n.Edge.From.ID, n.Edge.Kind)
	case *Partial:
		return "Partial" + describe(n.Op, s)
	case *Scan:
		return describeScan(n, s)
	case *plan.Join:
		return fmt.Sprintf("%sJoin on %d conditions", joinNames[n.Type], len(n.Conds))
	case *plan.Aggregate:
		names := make([]string, len(n.Aggs))
		for i, a := range n.Aggs {
			names[i] = a.Name
		}
		return fmt.Sprintf("Aggregate by %d groups: %s", len(n.Groups), strings.Join(names, ", "))
	case *plan.TopN:
		return fmt.Sprintf("TopN %d", n.Limit)
	}
	return opName(n)
}

func describeScan(n *Scan, s *Stage) string {
	files := n.Get.Files
	text := "Scan"
	switch len(files) {
	case 0:
		text += " of no file"
	case 1:
		text += " " + files[0]
	default:
		text += fmt.Sprintf(" %s and %d more files", files[0], len(files)-1)
	}
	switch {
	case n.Split && n.Get.Text != nil && len(files) == 1:
		text += ", by one task, for a line break in quotes looks like the end of a row"
	case n.Split && n.Get.Text != nil:
		text += fmt.Sprintf(", split in %d by whole files", s.Tasks)
	case n.Split:
		text += fmt.Sprintf(", split in %d by row groups", s.Tasks)
	case s.Tasks > 1:
		text += ", whole in every task"
	}
	if k := len(n.Get.Filters); k > 0 {
		text += fmt.Sprintf(", %d filters", k)
	}
	return text
}

var joinNames = map[plan.JoinType]string{
	plan.Inner: "Inner", plan.Left: "Left", plan.Right: "Right", plan.Full: "Full", plan.Semi: "Semi", plan.Anti: "Anti",
	plan.RightSemi: "RightSemi", plan.RightAnti: "RightAnti", plan.Mark: "Mark", plan.Single: "Single",
}

func count(rows float64) string {
	switch {
	case rows >= 1e9:
		return fmt.Sprintf("%.1fG", rows/1e9)
	case rows >= 1e6:
		return fmt.Sprintf("%.1fM", rows/1e6)
	case rows >= 1e4:
		return fmt.Sprintf("%.0fk", rows/1e3)
	}
	return fmt.Sprintf("%.0f", rows)
}

func size(bytes float64) string {
	switch {
	case bytes >= 1<<30:
		return fmt.Sprintf("%.1f GiB", bytes/(1<<30))
	case bytes >= 1<<20:
		return fmt.Sprintf("%.1f MiB", bytes/(1<<20))
	}
	return fmt.Sprintf("%.1f KiB", bytes/(1<<10))
}
