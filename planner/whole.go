package planner

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/dustin/go-humanize"

	"manta/actors"
	"manta/planner/dist"
	"manta/planner/plan"
	"manta/shuffle"
)

// A query too small to gain from several nodes runs as it is written, in one
// task on one node, in an instance of DuckDB that uses a thread for each of the
// node's slots. So does a query that cannot be distributed. The task holds one slot,
// not all of them: short queries would wait until a long one has ended. Those threads
// serve all such queries of the node, so the most that runs beyond the slots is one
// thread for each of them, however many queries there are.

// How a query may run, by QueryOptions.distribute.
const (
	distributeAuto   = "auto"   // whole when that is expected to be faster
	distributeAlways = "always" // whole only when it cannot be distributed
)

func checkDistribute(s string) error {
	switch s {
	case "", distributeAuto, distributeAlways:
		return nil
	}
	return fmt.Errorf("planner: unknown distribution %q; use auto or always", s)
}

// CheckDistribute reports a text that Options.Distribute does not take.
func CheckDistribute(s string) error { return checkDistribute(s) }

// smallQuery is how many bytes several nodes do not read sooner than one: setting
// up stages and exchanges takes as long as one slot needs for about so much.
const smallQuery = 8 << 20

// whole says why a query runs whole, or gives "". It reads so many bytes, and
// work are those and what its joins give. For the memory of one node only what is
// read counts: what a join gives is seldom kept, and most often far less than DuckDB expects.
func whole(bytes, work float64, at placement) string {
	switch {
	case at.always:
		return ""
	case work <= smallQuery:
		return fmt.Sprintf("it reads about %s, and several tasks would not make that faster", humanize.IBytes(uint64(bytes)))
	case at.nodes == 1 && bytes <= 2*float64(wholeMemory(at.whole.MemoryBytes)):
		return "there is one node, and it has the memory"
	}
	return ""
}

// scanned estimates the bytes of the columns that a plan reads, before compression.
func scanned(root plan.Node, files map[string]dist.File) float64 {
	var sum float64
	plan.Walk(root, func(n plan.Node) bool {
		if get, ok := n.(*plan.Get); ok && len(get.Source) > 0 {
			share := min(1, float64(len(get.Read))/float64(len(get.Source)))
			for _, path := range get.Files {
				sum += share * float64(files[path].Bytes())
			}
		}
		return true
	})
	return sum
}

// joined estimates the bytes of what a plan's joins give: a product of small tables is not small.
func joined(rows map[plan.Node]int64) float64 {
	const rowBytes = 16
	var sum float64
	for n, r := range rows {
		switch n.(type) {
		case *plan.Join, *plan.Cross:
			sum += rowBytes * float64(r)
		}
	}
	return sum
}

// placement is what planning has to know of the cluster.
type placement struct {
	partitions int
	nodes      int
	whole      actors.NodeInfo // where a query that is not distributed runs
	always     bool            // the client wants it distributed
	asWritten  error           // why it must not be
	explain    bool            // make the distributed plan even if it is not to be run
}

// placement describes the cluster as it is to the planner. Who sets anything of
// the exchanges wants to have some.
func (r *run) placement() placement {
	o := r.req.Options
	return placement{
		partitions: r.partitions, nodes: len(r.nodes), whole: r.whole, asWritten: r.asWritten,
		always: o.Distribute == distributeAlways ||
			o.Distribute == "" && (r.mode != Auto || o.Partitions > 0 || o.ReplicateBytes != nil || o.BroadcastBytes != nil),
	}
}

// DuckDB does not look at every row of every table: not at those that would meet
// nothing in a join, say. A task may, and meet a value that cannot be cast. Whether
// that is an error of the query is for DuckDB to say, which then runs it as it is
// written.

// dataError begins an error of DuckDB about a value.
var dataError = regexp.MustCompile(`: (Conversion|Invalid Input|Out of Range|Invalid type|Mismatch Type|Divide by Zero|Decimal) Error: `)

// maxSecondLook bounds the work of a query that is run as it is written after it failed.
const maxSecondLook = 4 << 30

// secondLook says whether a query whose tasks failed with err is to be run as it is written.
func (r *run) secondLook(err error) bool {
	_, ofTask := errors.AsType[*actors.TaskError](err)
	ofTask = ofTask || errors.Is(err, shuffle.ErrProducer) // the reader of the result may hear of it before the task has ended
	return ofTask && dataError.MatchString(err.Error()) && r.asWritten == nil && !r.out.opened.Load() &&
		r.query.plan != nil && r.query.work <= maxSecondLook
}

// wholeNode is the node for a task that is a query of its own: one with most
// slots, and of those the one with least to do.
func wholeNode(nodes []actors.NodeInfo) actors.NodeInfo {
	best := nodes[0]
	for _, n := range nodes[1:] {
		if n.CPUs > best.CPUs || n.CPUs == best.CPUs && n.RunningTasks < best.RunningTasks {
			best = n
		}
	}
	return best
}
