package actors

import (
	"fmt"
	"sort"
	"strings"
	"time"

	"manta/actors/core"
)

// Option says how a task, an actor or a call runs. Those given to a declaration hold for every call of it; those of a
// call come on top.
type Option func(*core.Options)

// withOptions gives the base with options on top.
func withOptions(base *core.Options, opts []Option) *core.Options {
	if len(opts) == 0 {
		return base
	}
	o := *base
	for _, f := range opts {
		f(&o)
	}
	return &o
}

func milli(x float64) int64 { return int64(x*1000 + 0.5) }

// CPUs is how many CPUs it needs; default 1 for a task, and for an actor 1 to be placed and 0 while it lives. Parts of
// one are fine.
func CPUs(n float64) Option { return func(o *core.Options) { o.CPU = milli(n) } }

// Memory is how many bytes it needs. It decides where it runs; nobody enforces it.
func Memory(bytes int64) Option { return func(o *core.Options) { o.Demand.Memory = bytes } }

// Resource is how much of a custom resource it needs.
func Resource(name string, amount float64) Option {
	return func(o *core.Options) {
		parts := strings.FieldsFunc(o.Custom, func(r rune) bool { return r == ',' })
		parts = append(parts, fmt.Sprintf("%s=%d", name, milli(amount)))
		sort.Strings(parts)
		o.Custom = strings.Join(parts, ",")
	}
}

// Resources makes the value of a node's ResourcesLabel.
func Resources(amounts map[string]float64) string {
	var o core.Options
	for name, amount := range amounts {
		Resource(name, amount)(&o)
	}
	return o.Custom
}

// WithLabels runs it on a node whose labels match all selectors: "zone=a" or "disk!=hdd".
func WithLabels(selectors ...string) Option {
	return func(o *core.Options) { o.Demand.Labels = strings.Join(selectors, ",") }
}

// OnNode runs it on the node, and nowhere else: if the node is gone it fails with ErrUnschedulable.
func OnNode(id NodeID) Option {
	return func(o *core.Options) { o.Node, o.Soft = core.NodeID(id), false }
}

// NearNode runs it on the node; elsewhere only if that is gone or could never run it.
func NearNode(id NodeID) Option {
	return func(o *core.Options) { o.Node, o.Soft = core.NodeID(id), true }
}

// Spread runs such tasks on the nodes in turn.
func Spread() Option { return func(o *core.Options) { o.Demand.Spread = true } }

// InGroup runs it in a bundle of a placement group; -1 takes any.
func InGroup(g *PlacementGroup, bundle int) Option {
	return func(o *core.Options) { o.Group, o.Bundle = g.ref.e.id, int32(bundle) }
}

// Priority: within a job, higher goes first. Default 0.
func Priority(n int) Option { return func(o *core.Options) { o.Demand.Priority = int32(n) } }

// Retries is how often it is tried again after a failure of the system: a node that died. Default 3 for a task and 0
// for a call, which then runs at most once; -1 is without limit.
func Retries(n int) Option { return func(o *core.Options) { o.Retries = n } }

// RetryErrors has it tried again, within Retries, also when it gives one of these errors, or any if there are none. They
// must be registered (RegisterError).
func RetryErrors(errs ...error) Option {
	names := errorNames(errs)
	return func(o *core.Options) { o.RetryApp, o.RetryOn = true, names }
}

// Timeout bounds each attempt: its context ends, and it fails with ErrTaskTimeout.
func Timeout(d time.Duration) Option { return func(o *core.Options) { o.Timeout = int64(d) } }

// Window is how many items a stream's source may be ahead of its slowest reader. Default 64; 1 is lock-step.
func Window(items int) Option { return func(o *core.Options) { o.Window = max(int64(items), 1) } }

// Readers is how many readers a stream has, each of which gets every item. Default 1.
func Readers(n int) Option { return func(o *core.Options) { o.Readers = int32(n) } }

// Name is an actor's name in its job, or in the cluster if it is detached, by which Find finds it. For a task it is for people.
func Name(name string) Option { return func(o *core.Options) { o.Name = name } }

// GetOrCreate takes the actor of that Name if there is one; the arguments are not used then.
func GetOrCreate() Option { return func(o *core.Options) { o.GetOrMake = true } }

// Detached lets an actor outlive its handles and its job, until it is killed.
func Detached() Option { return func(o *core.Options) { o.Detached = true } }

// Restarts is how often an actor is made again after its node died. Its state is made anew. Default 0; -1 is without limit.
func Restarts(n int) Option { return func(o *core.Options) { o.Restarts = n } }

// Concurrency is how many calls of an actor run at once. Default 1.
func Concurrency(n int) Option { return func(o *core.Options) { o.Parallel = n } }

// ConcurrencyGroup gives an actor a group of that name in which so many calls run at once, beside the others; InConcurrencyGroup
// puts a method or a call into it.
func ConcurrencyGroup(name string, n int) Option {
	return func(o *core.Options) { o.Lanes += fmt.Sprintf("%s=%d,", name, n) }
}

// InConcurrencyGroup is for a method or a call.
func InConcurrencyGroup(name string) Option { return func(o *core.Options) { o.Lane = name } }

// MaxPendingCalls bounds an actor's calls that are not done; more fail with ErrPendingCalls. Default: no bound.
func MaxPendingCalls(n int) Option { return func(o *core.Options) { o.MaxPending = n } }

// OutOfOrder lets an actor's calls begin as soon as their arguments are there, whatever their order.
func OutOfOrder() Option { return func(o *core.Options) { o.AnyOrder = true } }
