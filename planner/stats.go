package planner

import (
	"time"

	"manta/planner/wire"
	"manta/shuffle"
)

// QueryStats tells what a query did.
type QueryStats struct {
	Stages, Tasks int
	TasksKept     int    // tasks that did not run again when the query started again, since what they had stored was kept
	Distributed   bool   // false: the original SQL ran as one fragment on one node
	Fallback      string // why it was not distributed
	// ParallelScan is the share of the bytes of all scanned files that several tasks read, each its part.
	ParallelScan float64
	// Exchange sums the counters of every exchange of the query, each counted once, at its writers. Its BytesSpilled holds
	// what the nodes' stores spilled meanwhile, too, be it for this query or for another.
	Exchange     shuffle.Counters
	PeakExchange int64 // bytes: the highest exchange memory that a node of the query has had since it last had no job
	PeakRSS      int64 // bytes: the highest resident memory that a process of the query has had since it started
	Restarts     int   // times that the query lost a node and started again; the rest is about the last attempt
	Stalls       int64 // times that the exchanges of a job stood still on a node of the query meanwhile; see shuffle.Config
	PlanTime     time.Duration
	Elapsed      time.Duration
	StageTasks   []StageStats // one for each stage
}

// StageStats tells what the tasks of one stage did.
type StageStats struct {
	Stage int
	Tasks []TaskStats
}

// TaskStats tells what one task did.
type TaskStats struct {
	Node        string
	Elapsed     time.Duration // from its start to its end, waits included
	RowsOut     int64
	ClosedEarly bool // its consumers had enough before it ended
	Inputs      map[uint32]shuffle.Counters
	Outputs     map[uint32]shuffle.Counters
}

func countersToWire(c shuffle.Counters) *wire.Counters {
	return &wire.Counters{
		Rows: c.Rows, Bytes: c.Bytes, Batches: c.Batches, Objects: c.Objects, References: c.References,
		ControlMessages: c.ControlMessages, BytesCopied: c.BytesCopied, BytesSpilled: c.BytesSpilled,
		CreditWaitNanos: int64(c.CreditWait), InputWaitNanos: int64(c.InputWait), PeakQueued: c.PeakQueued,
	}
}

func countersFromWire(c *wire.Counters) shuffle.Counters {
	return shuffle.Counters{
		Rows: c.GetRows(), Bytes: c.GetBytes(), Batches: c.GetBatches(), Objects: c.GetObjects(), References: c.GetReferences(),
		ControlMessages: c.GetControlMessages(), BytesCopied: c.GetBytesCopied(), BytesSpilled: c.GetBytesSpilled(),
		CreditWait: time.Duration(c.GetCreditWaitNanos()), InputWait: time.Duration(c.GetInputWaitNanos()), PeakQueued: c.GetPeakQueued(),
	}
}

func statsFromWire(s *wire.Stats) QueryStats {
	q := QueryStats{
		Stages: int(s.GetStages()), Tasks: int(s.GetTasks()), TasksKept: int(s.GetTasksKept()),
		Distributed: s.GetDistributed(), Fallback: s.GetFallback(), ParallelScan: s.GetParallelScan(),
		Exchange:     countersFromWire(s.GetExchange()),
		PeakExchange: s.GetPeakExchangeBytes(), PeakRSS: s.GetPeakRssBytes(),
		Restarts: int(s.GetRestarts()), Stalls: s.GetStalls(),
		PlanTime: time.Duration(s.GetPlanNanos()), Elapsed: time.Duration(s.GetElapsedNanos()),
	}
	for _, st := range s.GetStage() {
		stage := StageStats{Stage: int(st.Stage)}
		for _, t := range st.Tasks {
			stage.Tasks = append(stage.Tasks, TaskStats{
				Node: t.Node, Elapsed: time.Duration(t.ElapsedNanos), RowsOut: t.RowsOut, ClosedEarly: t.ClosedEarly,
				Inputs: edgeCounters(t.Inputs), Outputs: edgeCounters(t.Outputs),
			})
		}
		q.StageTasks = append(q.StageTasks, stage)
	}
	return q
}

func edgeCounters(list []*wire.EdgeCounters) map[uint32]shuffle.Counters {
	m := map[uint32]shuffle.Counters{}
	for _, e := range list {
		m[e.Edge] = countersFromWire(e.Counters)
	}
	return m
}
