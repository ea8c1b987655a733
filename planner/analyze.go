package planner

import (
	"fmt"
	"time"

	"manta/planner/dist"
	"manta/planner/wire"
	"manta/shuffle"
)

// skewLines tells how evenly the rows of a stage's edges were spread over the tasks that read them, for EXPLAIN ANALYZE.
func skewLines(s *dist.Stage, did map[int]*wire.StageStats) []string {
	var lines []string
	for _, e := range s.Outputs {
		if e.Kind != dist.Hash && e.Kind != dist.Range || e.Readers() < 2 {
			continue
		}
		parts := partitions(did[e.To.ID], uint32(e.ID))
		var rows int64
		for _, n := range parts {
			rows += n
		}
		if rows > 0 {
			lines = append(lines, fmt.Sprintf("edge %d: %d rows arrived, in the largest partition %.1f times the average",
				e.ID, rows, shuffle.Skew(parts)))
		}
	}
	return lines
}

// partitions is the rows that each task of a stage read from an edge.
func partitions(s *wire.StageStats, edge uint32) (rows []int64) {
	for _, t := range s.GetTasks() {
		for _, in := range t.Inputs {
			if in.Edge == edge {
				rows = append(rows, in.Counters.GetRows())
			}
		}
	}
	return rows
}

// taskLines tells what each task of a stage did, for EXPLAIN ANALYZE.
func taskLines(s *wire.StageStats) []string {
	if s == nil {
		return nil
	}
	var lines []string
	for _, t := range s.Tasks {
		if t.Served {
			lines = append(lines, fmt.Sprintf("task %d on %s: ran before, what it stored is kept", t.Index, t.Node))
			continue
		}
		var credit, input time.Duration
		var bytes int64
		for _, o := range t.Outputs {
			credit += time.Duration(o.Counters.CreditWaitNanos)
			bytes += o.Counters.Bytes
		}
		for _, in := range t.Inputs {
			input += time.Duration(in.Counters.InputWaitNanos)
		}
		line := fmt.Sprintf("task %d on %s: %v, %d rows out, %d bytes sent, waited %v for input and %v for credit",
			t.Index, t.Node, time.Duration(t.ElapsedNanos).Round(time.Millisecond), t.RowsOut, bytes,
			input.Round(time.Millisecond), credit.Round(time.Millisecond))
		if t.ClosedEarly {
			line += ", closed early"
		}
		lines = append(lines, line)
	}
	return lines
}
