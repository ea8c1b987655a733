package planner

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"manta/actors"
	"manta/planner/dist"
	"manta/planner/kernel"
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
		return toStatus(err)
	}
	return toStatus(r.run(stream.Context()))
}

// Explain plans a query for a client; see wire.SQLServer.
func (s *Service) Explain(ctx context.Context, req *wire.QueryRequest) (*wire.ExplainReply, error) {
	r, err := s.newRun(req, nil)
	if err != nil {
		return nil, toStatus(err)
	}
	if err := r.place(); err != nil {
		return nil, toStatus(err)
	}
	at := r.placement()
	at.explain = true
	if r.query, err = s.prepare(ctx, req, at); err != nil {
		return nil, toStatus(err)
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
		b.WriteString(dist.Explain(plan, func(e *dist.Edge) string { return string(mode(e, r.mode)) }, func(s *dist.Stage) []string { return taskLines(did[s.ID]) }))
	}
	return b.String()
}

func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// toStatus makes an RPC error of an error: one line, and a code for its kind.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	var sql *kernel.Error
	code := codes.FailedPrecondition
	switch {
	case errors.Is(err, actors.ErrNodeDead), errors.Is(err, shuffle.ErrPeer):
		code = codes.Unavailable // also when the error is that of a task that was cancelled because of it
	case errors.Is(err, context.Canceled), errors.Is(err, actors.ErrJobStopped):
		code = codes.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		code = codes.DeadlineExceeded
	case errors.As(err, &sql):
		code = codes.InvalidArgument
	}
	return status.Error(code, message(err))
}

// message is an error as one line for a user: with the position in the query where there is one.
func message(err error) string {
	text := strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), "\n", "; ")), " ")
	// DuckDB's advice on memory is about settings that a user here does not have.
	if advice := strings.Index(text, " Possible solutions:"); advice >= 0 && strings.Contains(text, "Out of Memory Error") {
		text = strings.TrimRight(text[:advice], "; ") + "; give the nodes more memory, or use fewer partitions"
	}
	if limit := strings.Index(text, " This limit was set by the 'max_temp_directory_size'"); limit >= 0 {
		text = strings.TrimRight(text[:limit], "; .") + "; the disk of the node's data folder is full, or give the nodes more memory"
	}
	if strings.Contains(text, "No magic bytes found") {
		text += ": it is no Parquet file"
	}
	var sql *kernel.Error
	if errors.As(err, &sql) && sql.Position > 0 {
		text += fmt.Sprintf(" (at character %d of the query)", sql.Position)
	}
	return text
}
