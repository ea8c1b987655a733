package scheduler

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

var (
	// ErrNoNode: no node takes tasks.
	ErrNoNode = errors.New("scheduler: no node takes tasks")
	// ErrNodeGone: the node that the task is bound to is not there.
	ErrNodeGone = errors.New("scheduler: node is gone")
	// ErrNoSlots: the node that the task is bound to takes no tasks.
	ErrNoSlots = errors.New("scheduler: node takes no tasks")
	// ErrPlaced: the task was placed before.
	ErrPlaced = errors.New("scheduler: task was placed before")
)

// Placement knows the cluster's nodes and which open task is on which of them.
type Placement struct {
	nodes map[string]*placeNode
	tasks map[string]*placeTask
	jobs  map[string]map[string]struct{} // open tasks of a job
}

type placeNode struct {
	slots     int
	suspended bool
	tasks     map[string]struct{}
}

type placeTask struct{ job, node string }

// NewPlacement gives a placement without nodes.
func NewPlacement() *Placement {
	return &Placement{
		nodes: make(map[string]*placeNode),
		tasks: make(map[string]*placeTask),
		jobs:  make(map[string]map[string]struct{}),
	}
}

// AddNode adds a node. Without slots it takes no tasks.
func (p *Placement) AddNode(id string, slots int) {
	if _, ok := p.nodes[id]; !ok {
		p.nodes[id] = &placeNode{slots: slots, tasks: make(map[string]struct{})}
	}
}

// Suspend keeps a node from being chosen, while it is silent. Tasks bound to it
// still go there.
func (p *Placement) Suspend(id string, suspended bool) {
	if n, ok := p.nodes[id]; ok {
		n.suspended = suspended
	}
}

// RemoveNode forgets a node. It gives the tasks that are lost with it, sorted;
// they are open no more.
func (p *Placement) RemoveNode(id string) (lost []string) {
	n, ok := p.nodes[id]
	if !ok {
		return nil
	}
	delete(p.nodes, id)
	lost = slices.Sorted(maps.Keys(n.tasks))
	for _, task := range lost {
		p.Done(task)
	}
	return lost
}

// Place chooses the node of a task: the one it is bound to, or else the one with
// the fewest open tasks per slot.
func (p *Placement) Place(job, task, bound string) (node string, err error) {
	if _, ok := p.tasks[task]; ok {
		return "", fmt.Errorf("%w: %s", ErrPlaced, task)
	}
	node = bound
	if bound == "" {
		if node = p.leastLoaded(); node == "" {
			return "", ErrNoNode
		}
	}
	n, ok := p.nodes[node]
	switch {
	case !ok:
		return "", fmt.Errorf("%w: %s", ErrNodeGone, node)
	case n.slots == 0:
		return "", fmt.Errorf("%w: %s", ErrNoSlots, node)
	}
	n.tasks[task] = struct{}{}
	p.tasks[task] = &placeTask{job: job, node: node}
	if p.jobs[job] == nil {
		p.jobs[job] = make(map[string]struct{})
	}
	p.jobs[job][task] = struct{}{}
	return node, nil
}

// Done ends an open task. It is false when the task was not open: every task
// ends once.
func (p *Placement) Done(task string) bool {
	t, ok := p.tasks[task]
	if !ok {
		return false
	}
	delete(p.tasks, task)
	if n, ok := p.nodes[t.node]; ok {
		delete(n.tasks, task)
	}
	delete(p.jobs[t.job], task)
	if len(p.jobs[t.job]) == 0 {
		delete(p.jobs, t.job)
	}
	return true
}

// Open gives a job's open tasks, sorted.
func (p *Placement) Open(job string) []string {
	return slices.Sorted(maps.Keys(p.jobs[job]))
}

// Load counts the open tasks of a node.
func (p *Placement) Load(node string) int {
	if n, ok := p.nodes[node]; ok {
		return len(n.tasks)
	}
	return 0
}

// Slots counts the slots of all nodes.
func (p *Placement) Slots() (total int) {
	for _, n := range p.nodes {
		total += n.slots
	}
	return total
}

func (p *Placement) leastLoaded() (best string) {
	var b *placeNode
	for id, n := range p.nodes {
		if n.slots == 0 || n.suspended {
			continue
		}
		// Compare tasks per slot without division; ties go to the lower id.
		if b != nil {
			l, r := len(n.tasks)*b.slots, len(b.tasks)*n.slots
			if l > r || l == r && id > best {
				continue
			}
		}
		best, b = id, n
	}
	return best
}
