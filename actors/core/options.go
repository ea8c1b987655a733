package core

import (
	"fmt"
	"strconv"
	"strings"
)

// Options say how something runs. They are comparable, so that tasks that want the same share a class.
type Options struct {
	Demand
	Name       string // of a task: for people; of an actor: to be found by
	Retries    int    // attempts after a system failure; -1 without limit
	RetryApp   bool   // the function's own errors too
	RetryOn    string // only these, by registered names: "a,b"
	Timeout    int64  // nanoseconds of one attempt; 0 = none
	Window     int64  // a stream's items ahead of the slowest reader
	Readers    int32  // a stream's readers
	Restarts   int    // an actor's; -1 without limit
	GetOrMake  bool   // an actor of that name may exist
	Detached   bool   // an actor that outlives its handles and its job
	MaxPending int    // an actor's calls that are not done; 0 = no limit
	Parallel   int    // an actor's calls at once
	AnyOrder   bool   // an actor's calls need not begin in the order in which they were made
	Lane       string // a call's concurrency group
	Lanes      string // an actor's concurrency groups: "name=limit,…"
	Bundles    string // a group's: CPU milli each, "1000,500,…"
	Layout     Layout // a group's
	Gang       ID     // the gang that a task belongs to: the first of its tasks
	GangSize   int32
}

// Demand is what a task needs of a node. CPU and custom resources are in thousandths.
type Demand struct {
	CPU      int64
	Memory   int64
	Custom   string // "gpu=1000,…", sorted
	Labels   string // "zone=a,disk!=hdd,…": all must hold
	Node     NodeID // where it must run, or with Soft should
	Soft     bool
	Spread   bool
	Group    ID // a placement group and
	Bundle   int32
	Priority int32 // higher first, within the job
}

// Layout is how a group's bundles lie on nodes.
type Layout uint8

const (
	Pack Layout = iota
	SpreadOut
	StrictPack
	StrictSpread
)

// customOf parses Demand.Custom.
func customOf(s string) map[string]int64 {
	if s == "" {
		return nil
	}
	m := make(map[string]int64)
	for part := range strings.SplitSeq(s, ",") {
		name, text, _ := strings.Cut(part, "=")
		n, _ := strconv.ParseInt(text, 10, 64)
		m[name] += n
	}
	return m
}

// matches says whether labels satisfy a selector.
func matches(labels map[string]string, selector string) bool {
	if selector == "" {
		return true
	}
	for part := range strings.SplitSeq(selector, ",") {
		if k, v, ok := strings.Cut(part, "!="); ok {
			if labels[k] == v {
				return false
			}
		} else if k, v, _ := strings.Cut(part, "="); labels[k] != v {
			return false
		}
	}
	return true
}

func (d Demand) String() string {
	s := fmt.Sprintf("%g CPU", float64(d.CPU)/1000)
	if d.Memory > 0 {
		s += fmt.Sprintf(", %d bytes of memory", d.Memory)
	}
	if d.Custom != "" {
		s += ", " + d.Custom
	}
	if d.Labels != "" {
		s += " on a node with " + d.Labels
	}
	if d.Node != "" {
		s += " on node " + string(d.Node)
	}
	return s
}
