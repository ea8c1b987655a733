package planner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"unicode/utf8"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"manta/actors"
	"manta/planner/wire"
)

// Config says which cluster a Client uses.
type Config struct {
	// Head is the address of a running head. When it is empty, Connect starts an
	// embedded cluster in this process, and Close ends it.
	Head  string
	Token string // the cluster's shared secret, when it has one; then all connections are TLS

	// The rest describes the embedded cluster.
	Nodes    int    // nodes; default 1. Rows between two nodes cross the real data plane.
	CPUs     int    // slots of each node; default: the machine's CPUs divided by Nodes, at least 1
	Memory   int64  // bytes of each node; default DefaultMemory
	MaxSpill int64  // of each node, see NodeConfig
	DataDir  string // default: temporary folders
	Logger   *slog.Logger

	BatchRows int // for tests: the most rows of a batch on its way; 0: as many as are fast
}

// Client runs SQL on a cluster. It is safe for concurrent use.
type Client struct {
	conn     *grpc.ClientConn
	sql      wire.SQLClient
	embedded *Embedded // nil when the cluster is elsewhere
	folder   string    // where relative paths begin on the cluster, if it is another process on this machine
}

// Connect reaches the head, or starts an embedded cluster when no head is given.
func Connect(ctx context.Context, c Config) (*Client, error) {
	client := &Client{}
	head := c.Head
	if head == "" {
		cluster, err := StartEmbedded(ctx, c)
		if err != nil {
			return nil, err
		}
		client.embedded = cluster
		head = cluster.Nodes[0].Address()
	}
	conn, err := actors.Dial(ctx, head, c.Token)
	if err != nil {
		client.Close()
		return nil, err
	}
	client.conn, client.sql = conn, wire.NewSQLClient(conn)
	if client.embedded == nil && loopback(head) {
		client.folder = searchPath()
	}
	return client, nil
}

// Close disconnects, and ends the embedded cluster if there is one. Running
// queries of this client are cancelled.
func (c *Client) Close() error {
	var err error
	if c.conn != nil {
		err = c.conn.Close()
	}
	if c.embedded != nil {
		if e := c.embedded.Close(); err == nil {
			err = e
		}
	}
	return err
}

// Embedded is the cluster in this process, or nil.
func (c *Client) Embedded() *Embedded { return c.embedded }

// Options are a query's own.
type Options struct {
	Shuffle    string            // auto (the default), streaming, object-store, disk or concat
	Partitions int               // tasks of a partitioned stage; 0: one for each slot of the cluster
	Tables     map[string]string // table name to a file or a glob of Parquet, CSV or JSON files
	// ReplicateBytes is the size up to which a scanned table is read whole by
	// every task, and BroadcastBytes that up to which one side of a join is sent
	// to every task, and rows that are to be sorted to one; all are estimates. Nil: the defaults.
	ReplicateBytes *int64
	BroadcastBytes *int64
	Label          string // shown in the job list in place of the SQL
	// Distribute is auto, which runs a query in one task on one node when that is
	// expected to be faster, or always. Default: always when any of Shuffle (but
	// auto), Partitions, ReplicateBytes and BroadcastBytes is set, else auto.
	Distribute string

	analyze bool
}

// Query starts one SELECT and returns when its columns are known. The rows
// follow through the Result, which must be released; ending ctx cancels the
// query on every node.
func (c *Client) Query(ctx context.Context, sql string, o Options) (*Result, error) {
	if err := checkText(sql, o); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stream, err := c.sql.Query(ctx, c.request(sql, o))
	if err != nil {
		cancel(nil)
		return nil, remoteError(err)
	}
	r, err := newResult(ctx, stream, cancel)
	if err != nil {
		cancel(nil)
		return nil, c.hint(err)
	}
	return r, nil
}

// Explain tells how the cluster would run a query: its stages, the exchanges
// between them with distribution and mode, and how scans are split.
func (c *Client) Explain(ctx context.Context, sql string, o Options) (string, error) {
	if err := checkText(sql, o); err != nil {
		return "", err
	}
	reply, err := c.sql.Explain(ctx, c.request(sql, o))
	if err != nil {
		return "", c.hint(remoteError(err))
	}
	return reply.Text, nil
}

// ExplainAnalyze runs a query, drops its rows, and tells what Explain tells
// together with what each task did and where.
func (c *Client) ExplainAnalyze(ctx context.Context, sql string, o Options) (string, error) {
	o.analyze = true
	r, err := c.Query(ctx, sql, o)
	if err != nil {
		return "", err
	}
	defer r.Release()
	for r.Next() {
	}
	return r.explain, r.Err()
}

// Memory tells what the object stores of all living nodes have, with the largest objects of each.
func (c *Client) Memory(ctx context.Context, largest int) ([]actors.NodeMemory, error) {
	return actors.ListMemory(ctx, c.conn, largest)
}

// Nodes lists the nodes of the cluster, dead ones too for some time.
func (c *Client) Nodes(ctx context.Context) ([]actors.NodeInfo, error) {
	return actors.ListNodes(ctx, c.conn)
}

// Jobs lists the running jobs and the latest ended ones.
func (c *Client) Jobs(ctx context.Context) ([]actors.JobInfo, error) {
	return actors.ListJobs(ctx, c.conn)
}

// Tasks lists up to limit tasks that have not ended, with what they wait for.
func (c *Client) Tasks(ctx context.Context, limit int) ([]actors.RunInfo, error) {
	return actors.ListTasks(ctx, c.conn, limit)
}

// Actors lists up to limit actors that are not dead.
func (c *Client) Actors(ctx context.Context, limit int) ([]actors.ActorInfo, error) {
	return actors.ListActors(ctx, c.conn, limit)
}

// StopJob ends a job on every node.
func (c *Client) StopJob(ctx context.Context, id actors.JobID, reason string) error {
	return actors.StopJob(ctx, c.conn, id, reason)
}

// checkText refuses what neither DuckDB nor a message can hold.
func checkText(sql string, o Options) error {
	if !utf8.ValidString(sql) {
		return errors.New("planner: the query is not UTF-8 text")
	}
	for name, glob := range o.Tables {
		if !utf8.ValidString(name) || !utf8.ValidString(glob) {
			return fmt.Errorf("planner: table %q=%q is not UTF-8 text", name, glob)
		}
	}
	return nil
}

func (c *Client) request(sql string, o Options) *wire.QueryRequest {
	return &wire.QueryRequest{Sql: sql, Options: &wire.QueryOptions{
		Shuffle:        o.Shuffle,
		Partitions:     uint32(min(max(o.Partitions, 0), math.MaxUint32)),
		Tables:         o.Tables,
		ReplicateBytes: o.ReplicateBytes,
		BroadcastBytes: o.BroadcastBytes,
		Label:          o.Label,
		Folder:         c.folder,
		Distribute:     o.Distribute,
		Analyze:        o.analyze,
	}}
}

// QueryError is an error that the head answered; Error is its one line.
type QueryError struct {
	Message string
	// Quote is the line of the query that the error is about, and a caret below
	// the place, as two lines; empty where nobody knows the place.
	Quote string
	cause error // the RPC's status
}

func (e *QueryError) Error() string { return e.Message }

// Unwrap gives the RPC's status error.
func (e *QueryError) Unwrap() error { return e.cause }

// remoteError takes the message out of an RPC error.
func remoteError(err error) error {
	if err == nil {
		return nil
	}
	if st, ok := status.FromError(err); ok {
		message := st.Message()
		// The head says Unavailable of other nodes only in messages of its own.
		if st.Code() == codes.Unavailable && strings.HasPrefix(message, "error reading from server") {
			message = "the head ended before the query did"
		}
		message, quote, _ := strings.Cut(message, "\n")
		return &QueryError{Message: message, Quote: quote, cause: err}
	}
	return fmt.Errorf("planner: %w", err)
}
