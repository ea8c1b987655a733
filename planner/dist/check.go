package dist

import (
	"fmt"
	"slices"

	"manta/planner/plan"
)

// Check derives the distribution of every operator of a plan anew, from the
// stages, their task counts and the edges alone, and reports the first operator
// whose needs are not met. It shares with Place the meaning of a Distribution,
// and none of the decisions.
func Check(p *Plan) error {
	if p.Result == nil || p.Result.To != nil {
		return fmt.Errorf("dist: the plan has no edge to the client")
	}
	seen, sampled := map[*Stage]bool{}, map[*Stage]bool{}
	for _, s := range p.Stages {
		c := checker{stage: s, partitions: p.Partitions, seen: seen, sampled: sampled}
		if err := c.check(); err != nil {
			return fmt.Errorf("dist: stage %d: %w", s.ID, err)
		}
		seen[s] = true
	}
	if !seen[p.Result.From] {
		return fmt.Errorf("dist: the result comes from a stage that is not in the plan")
	}
	return nil
}

type checker struct {
	stage      *Stage
	partitions int
	seen       map[*Stage]bool
	sampled    map[*Stage]bool // what it gives depends on a sample
	inputs     []*Edge
	ordered    []*Edge // inputs that are read one after the other
	fromSample bool
}

func (c *checker) check() error {
	s := c.stage
	if s.Tasks != 1 && s.Tasks != c.partitions {
		return fmt.Errorf("%d tasks in a plan of %d partitions", s.Tasks, c.partitions)
	}
	d, err := c.derive(s.Root, true)
	if err != nil {
		return err
	}
	if s.Tasks > 1 && d.Kind != Partitioned {
		return fmt.Errorf("%d tasks would each give all rows", s.Tasks)
	}
	// A stage of one task has all its rows there, whatever its parts are called.
	if s.Tasks == 1 {
		d = Distribution{Kind: Single}
	}
	s.Dist = d
	if err := c.sampling(); err != nil {
		return err
	}
	if len(c.ordered) > 0 {
		if err := c.keepsOrder(); err != nil {
			return err
		}
	}
	for _, e := range s.Inputs {
		if !slices.Contains(c.inputs, e) {
			return fmt.Errorf("edge %d is sent and never read", e.ID)
		}
	}
	for _, e := range s.Outputs {
		if err := c.output(e); err != nil {
			return fmt.Errorf("edge %d: %w", e.ID, err)
		}
	}
	return nil
}

// output checks that what an edge does fits the tasks at its ends.
func (c *checker) output(e *Edge) error {
	if e.From != c.stage {
		return fmt.Errorf("it starts at another stage")
	}
	readers := e.Readers()
	if e.To == nil && slices.ContainsFunc(e.Types, odd) && !e.Native() {
		return fmt.Errorf("%d tasks give the client what only one can", e.From.Tasks)
	}
	switch e.Kind {
	case Gather:
		if readers != 1 {
			return fmt.Errorf("gather to %d tasks", readers)
		}
	case Hash:
		if readers != c.partitions || len(e.Keys) == 0 {
			return fmt.Errorf("hash by %d keys to %d tasks", len(e.Keys), readers)
		}
		if slices.ContainsFunc(e.Keys, plan.IsVolatile) {
			return fmt.Errorf("hash by a volatile key")
		}
	case Range:
		return c.rangeEdge(e)
	case InOrder:
		return fmt.Errorf("tasks in order are read by an edge from each")
	case Forward:
		if readers != e.From.Tasks {
			return fmt.Errorf("forward from %d tasks to %d", e.From.Tasks, readers)
		}
	case Pin:
		if readers != c.partitions || e.From.Tasks != 1 {
			return fmt.Errorf("pin from %d tasks to %d", e.From.Tasks, readers)
		}
	}
	return nil
}

// derive gives the distribution of an operator's output, or an error when its
// inputs are not as it needs them. root is set for the stage's last operator.
func (c *checker) derive(n plan.Node, root bool) (Distribution, error) {
	switch n := n.(type) {
	case *Input:
		return c.input(n.Edge)
	case *Scan:
		return c.scan(n)
	case *Partial:
		if !root {
			return Distribution{}, fmt.Errorf("a partial result is used as if it were whole")
		}
		return c.partial(n)
	case *Exchange, *SharedRef:
		return Distribution{}, fmt.Errorf("%T inside a stage", n)
	}
	if set, ok := n.(*plan.SetOp); ok {
		if err := c.inOrder(set); err != nil {
			return Distribution{}, err
		}
	}
	children := n.Children()
	in := make([]Distribution, len(children))
	for i, child := range children {
		d, err := c.derive(child, false)
		if err != nil {
			return Distribution{}, err
		}
		in[i] = d
	}
	if len(children) == 0 {
		return c.alone(n)
	}
	spread := slices.ContainsFunc(in, func(d Distribution) bool { return d.Kind == Partitioned })
	single := slices.ContainsFunc(in, func(d Distribution) bool { return d.Kind == Single })
	switch {
	case spread && single:
		return Distribution{}, fmt.Errorf("%s has rows of one task beside rows of several", opName(n))
	case single:
		return Distribution{Kind: Single}, nil
	case plan.Volatile(n):
		return Distribution{}, fmt.Errorf("%s computes a volatile function in several tasks", opName(n))
	case !spread:
		return c.replicated(n)
	}
	switch n := n.(type) {
	case *plan.Sample: // some of the rows, whichever
		c.fromSample = true
		return Distribution{Kind: Partitioned}, nil
	case *plan.OrderBy:
		return c.sorted(n)
	}
	return partitioned(n, in)
}

// input is the distribution that an edge gives its readers.
func (c *checker) input(e *Edge) (Distribution, error) {
	if e.To != c.stage || !c.seen[e.From] {
		return Distribution{}, fmt.Errorf("edge %d does not come from an earlier stage to this one", e.ID)
	}
	if slices.Contains(c.inputs, e) {
		return Distribution{}, fmt.Errorf("edge %d is read twice", e.ID)
	}
	if e.Source > 0 && !slices.Contains(c.ordered, e) {
		return Distribution{}, fmt.Errorf("edge %d has the rows of one task of several", e.ID)
	}
	c.inputs = append(c.inputs, e)
	c.fromSample = c.fromSample || c.sampled[e.From]
	if c.stage.Tasks == 1 && e.Kind != Forward {
		return Distribution{Kind: Single}, nil
	}
	switch e.Kind {
	case Hash:
		return hashed(e.Keys), nil
	case Broadcast:
		return Distribution{Kind: Replicated}, nil
	case Pin, Range:
		return Distribution{Kind: Partitioned}, nil
	case Forward:
		if e.From.Tasks == 1 {
			return Distribution{Kind: Single}, nil
		}
		return e.From.Dist, nil
	}
	return Distribution{Kind: Single}, nil
}

func (c *checker) scan(n *Scan) (Distribution, error) {
	switch ok, why := n.Get.Splittable(); {
	case c.stage.Tasks == 1:
		return Distribution{Kind: Single}, nil
	case !ok:
		return Distribution{}, fmt.Errorf("a scan in several tasks: %s", why)
	case n.Split:
		return Distribution{Kind: Partitioned}, nil
	}
	return Distribution{Kind: Replicated}, nil
}

// alone is the distribution of rows that come from the plan itself.
func (c *checker) alone(n plan.Node) (Distribution, error) {
	switch n.(type) {
	case *plan.DummyScan, *plan.Values, *plan.Empty:
		if c.stage.Tasks == 1 {
			return Distribution{Kind: Single}, nil
		}
		if plan.Volatile(n) {
			return Distribution{}, fmt.Errorf("volatile rows in several tasks")
		}
		return Distribution{Kind: Replicated}, nil
	}
	if c.stage.Tasks > 1 {
		return Distribution{}, fmt.Errorf("%s would run in several tasks", opName(n))
	}
	return Distribution{Kind: Single}, nil
}

// replicated checks an operator whose inputs are all replicated: every task must
// compute the same rows although its input arrives in an order of its own.
func (c *checker) replicated(n plan.Node) (Distribution, error) {
	switch n := n.(type) {
	case *plan.Filter, *plan.Project, *plan.Unnest, *plan.Cross, *plan.Join:
		return Distribution{Kind: Replicated}, nil
	case *plan.SetOp:
		if n.Kind == plan.Union && n.All {
			return Distribution{Kind: Replicated}, nil
		}
	}
	if c.stage.Tasks == 1 {
		return Distribution{Kind: Single}, nil
	}
	return Distribution{}, fmt.Errorf("%s is computed by every task, each over rows in another order", opName(n))
}

// partial checks an operator whose result is completed behind the next exchange.
func (c *checker) partial(n *Partial) (Distribution, error) {
	d, err := c.derive(n.Op.Children()[0], false)
	if err != nil {
		return Distribution{}, err
	}
	if agg, ok := n.Op.(*plan.Aggregate); ok && d.Kind == Partitioned {
		for _, a := range agg.Aggs {
			if a.Distinct && a.Name != "min" && a.Name != "max" && !d.within(a.Params) {
				return Distribution{}, fmt.Errorf("a partial %s of distinct values over rows that are %s: one value may be at several tasks", a.Name, d)
			}
		}
	}
	for _, e := range c.stage.Outputs {
		if e.Kind != Gather && e.Kind != Hash {
			return Distribution{}, fmt.Errorf("a partial result leaves by %s", e.Kind)
		}
		if !completes(e, n.Op) {
			return Distribution{}, fmt.Errorf("nothing completes the partial result of edge %d", e.ID)
		}
	}
	if d.Kind == Replicated {
		return Distribution{}, fmt.Errorf("a partial result of replicated rows counts them several times")
	}
	return Distribution{Kind: d.Kind}, nil
}

func opName(n plan.Node) string {
	name := fmt.Sprintf("%T", n)
	for i := len(name) - 1; i >= 0; i-- {
		if name[i] == '.' {
			return name[i+1:]
		}
	}
	return name
}
