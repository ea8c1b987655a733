package planner

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc"

	"manta/planner/dist"
	"manta/planner/wire"
	"manta/shuffle"
)

// Auto is the exchange mode that is chosen for each edge.
const Auto shuffle.Mode = "auto"

// parseMode accepts the modes of shuffle, auto, and nothing, which is auto.
func parseMode(s string) (shuffle.Mode, error) {
	if s == "" || s == string(Auto) {
		return Auto, nil
	}
	m, err := shuffle.ParseMode(s)
	if err != nil {
		return "", fmt.Errorf("planner: unknown exchange mode %q; use auto, streaming, object-store, disk or concat", s)
	}
	return m, nil
}

// CheckMode reports a name that is no exchange mode.
func CheckMode(s string) error {
	_, err := parseMode(s)
	return err
}

// maxPartitions bounds the tasks of a stage: each is a thread while it runs.
const maxPartitions = 1024

// Query runs one query for a client; see wire.SQLServer.
func (s *Service) Query(req *wire.QueryRequest, stream grpc.ServerStreamingServer[wire.QueryEvent]) error {
	r, err := s.newRun(req, stream)
	if err != nil {
		return toStatus(err, req.Sql)
	}
	return toStatus(r.pointed(r.run(stream.Context())), r.text())
}

// text is the query's text, where errors point into it.
func (r *run) text() string {
	if r.query != nil && r.query.sql != r.req.Sql {
		return "" // they point into the text that it stands for
	}
	return r.req.Sql
}

// Explain plans a query for a client; see wire.SQLServer.
func (s *Service) Explain(ctx context.Context, req *wire.QueryRequest) (*wire.ExplainReply, error) {
	r, err := s.newRun(req, nil)
	if err != nil {
		return nil, toStatus(err, req.Sql)
	}
	if err := r.place(); err != nil {
		return nil, toStatus(err, req.Sql)
	}
	at := r.placement()
	at.explain = true
	if r.query, err = s.prepare(ctx, req, at); err != nil {
		return nil, toStatus(err, req.Sql)
	}
	return &wire.ExplainReply{Text: r.explain(nil)}, nil
}

// explain describes the query's plan, and what the tasks of each stage did, when they have run.
func (r *run) explain(did map[int]*wire.StageStats) string {
	var b strings.Builder
	plan := r.query.plan
	if plan == nil {
		fmt.Fprintf(&b, "Not distributed: the query runs as it is written, in one task with %s on node %s: %s.\n",
			counted(r.whole.CPUs, "thread"), r.whole.ID, r.query.fallback)
	}
	if r.query.instead != nil {
		b.WriteString("Distributed (--distribute always) it would run so:\n")
		plan = r.query.instead
	}
	if plan == nil && did != nil {
		for _, line := range taskLines(did[0]) {
			fmt.Fprintf(&b, "  | %s\n", line)
		}
		return b.String()
	}
	fmt.Fprintf(&b, "Exchange mode %s, %s, %s.\n", r.mode, counted(len(r.nodes), "node"), counted(r.partitions, "partition"))
	if plan != nil {
		mode := func(e *dist.Edge) string { return r.choose(e).String() }
		b.WriteString(dist.Explain(plan, mode, func(s *dist.Stage) []string { return append(skewLines(s, did), taskLines(did[s.ID])...) }))
	}
	return b.String()
}

func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
