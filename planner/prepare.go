package planner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"manta/planner/dist"
	"manta/planner/kernel"
	"manta/planner/plan"
	"manta/planner/split"
	"manta/planner/sqltext"
	"manta/planner/wire"
)

type batch = arrow.RecordBatch

// prepared is a query that is ready to run.
type prepared struct {
	sql      string   // the query's own, or what it stands for
	text     string   // sql, as it is planned
	names    []string // of the result's columns
	types    []string // DuckDB's
	travel   []string // the types that the last stage's rows have on their way; nil if they are the query's own
	session  string   // the statement that gives a connection the settings of the planning one
	setup    []string // session, and the statements that make the tables known to a connection
	plan     *dist.Plan
	files    map[string]dist.File
	fallback string                // why the query runs as one task with its original text; empty when it is distributed
	planned  string                // DuckDB's plan, empty when it cannot be written down
	instead  *dist.Plan            // how it would be distributed, for EXPLAIN, when it could be and is not
	modes    map[*dist.Edge]choice // of the edges of plan; see run.choose
	graph    *graph                // of plan; see run.graph
	work     float64               // estimate of the bytes that it reads and that its joins give
}

// column names a fragment's column.
func column(i int) string { return "c" + strconv.Itoa(i) }

// prepare checks a query, plans it with DuckDB and distributes the plan.
func (s *Service) prepare(ctx context.Context, req *wire.QueryRequest, at placement) (*prepared, error) {
	db, err := s.plannerDB()
	if err != nil {
		return nil, err
	}
	conn, err := db.Connect()
	if err != nil {
		return nil, err
	}
	defer conn.Close()

	q := &prepared{sql: req.Sql, files: map[string]dist.File{}}
	if q.session, err = s.session(ctx, conn, req.Options.GetFolder()); err != nil {
		return nil, err
	}
	if err := conn.Exec(ctx, q.session); err != nil {
		return nil, err
	}
	real, err := tableViews(req.Options.GetTables())
	if err != nil {
		return nil, err
	}
	q.setup = append([]string{q.session}, real...)
	if q.sql, err = s.expand(ctx, req.Sql, q.setup); err != nil {
		return nil, err
	}
	views, err := planningViews(ctx, conn, req.Options.GetTables(), real)
	if err != nil {
		return nil, err
	}
	if q.sql != req.Sql {
		q.setup, views = append(q.setup, makeNoValues), append(views, makeNoValues)
	}
	if err := makeTables(ctx, conn, append(views, pivotByFilters)); err != nil {
		return nil, err
	}
	if err := s.analyze(ctx, conn, q, req, at); err != nil {
		if q.sql != req.Sql {
			err = unplaced(err)
		}
		return nil, err
	}
	return q, nil
}

// analyze finds out what a query gives, and how to run it.
func (s *Service) analyze(ctx context.Context, conn *kernel.Conn, q *prepared, req *wire.QueryRequest, at placement) error {
	q.text = q.sql
	if named, ok := standIns(ctx, conn, q.sql, manyReaders); ok {
		if _, err := conn.Describe(ctx, named); err == nil {
			q.text = named
		}
	}
	columns, err := checkSelect(ctx, conn, q.text)
	if err != nil {
		return err
	}
	for _, c := range columns {
		q.names, q.types = append(q.names, c.Name), append(q.types, c.Type)
	}
	estimates, err := conn.PlanCardinalities(ctx, q.text)
	if err != nil {
		return err
	}
	if err := checkEffects(estimates); err != nil {
		return err
	}
	if at.asWritten != nil {
		q.fallback = "a task met an error that DuckDB need not meet"
		q.planned, _, _ = planText(ctx, conn, q.text, estimates) // for the place of an error
		return checkAsWritten(estimates)
	}
	q.plan, err = s.distribute(ctx, conn, q, req, at, estimates)
	if q.plan != nil {
		q.travel = q.plan.Result.TravelTypes()
	}
	var unsupported *plan.UnsupportedError
	switch {
	case err == nil && q.fallback != "":
		q.plan, q.instead = nil, q.plan
	case err == nil:
	case errors.As(err, &unsupported):
		q.plan, q.fallback = nil, unsupported.What
	case errors.Is(err, kernel.ErrNotSerializable):
		q.plan, q.fallback = nil, err.Error()
	case outOfMemory(err): // a plan can be many times its text, which may well run
		q.plan, q.fallback = nil, "its plan takes more memory than there is for plans"
	default:
		return err
	}
	if q.plan == nil {
		if err := checkAsWritten(estimates); err != nil {
			return err
		}
	}
	return nil
}

// outOfMemory reports whether DuckDB had too little memory.
func outOfMemory(err error) bool {
	e, ok := errors.AsType[*kernel.Error](err)
	return ok && e.Type == "Out of Memory"
}

// checkSelect refuses everything but one SELECT, and gives the columns of that.
func checkSelect(ctx context.Context, conn *kernel.Conn, sql string) ([]kernel.Column, error) {
	switch s, err := conn.Statements(ctx, sql); {
	case err != nil && otherStatement(ctx, conn, sql):
		return nil, errors.New("planner: only SELECT can be run")
	case err != nil:
		return nil, err
	case s.Count == 0:
		return nil, errors.New("planner: the query is empty")
	case s.Count > 1:
		// DuckDB makes several of a PIVOT without IN. Where it is the only one
		// it has not been expanded, since it is a part of another statement.
		if n := statements(sqltext.Tokens(sql)); n > 1 {
			return nil, fmt.Errorf("planner: %d statements given; give one SELECT", n)
		}
		return nil, errors.New("planner: only SELECT can be run")
	case s.Kind != "SELECT":
		return nil, fmt.Errorf("planner: only SELECT can be run, and this is %s", s.Kind)
	default:
		return s.Columns, nil
	}
}

// otherStatement reports whether a text that cannot be bound is, to DuckDB's
// parser, something else than a SELECT.
func otherStatement(ctx context.Context, conn *kernel.Conn, sql string) bool {
	rows, err := conn.Query(ctx, "SELECT json_serialize_sql("+plan.Literal(sql)+")::VARCHAR")
	if err != nil {
		return false
	}
	defer rows.Close()
	other := false
	_ = each(rows, func(b batch) error {
		other = strings.Contains(b.Column(0).ValueStr(0), "Only SELECT statements")
		return nil
	})
	return other
}

// distribute makes the distributed plan of a query; estimates is DuckDB's EXPLAIN of
// it. A *plan.UnsupportedError or kernel.ErrNotSerializable means that it can only
// run as it is written. If it shall run so although it need not, q.fallback says
// why, and there is a plan only when it is to be explained.
func (s *Service) distribute(ctx context.Context, conn *kernel.Conn, q *prepared, req *wire.QueryRequest, at placement, estimates string) (*dist.Plan, error) {
	var err error
	if q.planned, estimates, err = planText(ctx, conn, q.text, estimates); err != nil {
		return nil, err
	}
	root, err := plan.Decode(q.planned)
	if err != nil {
		return nil, err
	}
	rows, err := plan.ReadCardinalities(root, estimates)
	if err != nil {
		return nil, err
	}
	if err := s.readFiles(ctx, conn, root, q.files); err != nil {
		return nil, err
	}
	bytes := scanned(root, q.files)
	q.work = bytes + joined(rows)
	if q.fallback = whole(bytes, q.work, at); q.fallback != "" && !at.explain {
		return nil, nil
	}
	partitions := at.partitions
	o := dist.Options{
		Partitions:     partitions,
		ReplicateBytes: dist.DefaultReplicateBytes,
		BroadcastBytes: dist.DefaultBroadcastBytes,
		SortBytes:      dist.DefaultSortBytes,
		Rows: func(n plan.Node) (float64, bool) {
			r, ok := rows[n]
			return float64(r), ok
		},
		FileBytes: func(paths []string) (bytes, rows int64) {
			for _, path := range paths {
				bytes += q.files[path].Bytes()
				rows += q.files[path].Rows()
			}
			return bytes, rows
		},
	}
	if v := req.Options.ReplicateBytes; v != nil {
		o.ReplicateBytes = *v
	}
	if v := req.Options.BroadcastBytes; v != nil {
		o.BroadcastBytes, o.SortBytes = *v, min(o.SortBytes, *v)
	}
	placed, err := dist.Place(root, o)
	if err != nil {
		return nil, err
	}
	p := dist.Cut(placed, partitions)
	if err := dist.Check(p); err != nil {
		// A plan that would give a wrong answer is not run; the text as it is written gives the right one.
		return nil, &plan.UnsupportedError{What: "the plan failed its check: " + err.Error()}
	}
	if err := p.Travels(); err != nil {
		return nil, err
	}
	for i, t := range p.Result.Types {
		if i >= len(q.types) || t.String() != q.types[i] {
			return nil, &plan.UnsupportedError{What: fmt.Sprintf("a result of type %s that is planned as %s", q.types, p.Result.Types)}
		}
	}
	// Every fragment must print before any runs.
	for _, stage := range p.Stages {
		if _, err := stage.Fragment(0, q.fragmentNames("x", 0), partitions); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// readFiles collects the row groups of all files that a plan reads.
func (s *Service) readFiles(ctx context.Context, conn *kernel.Conn, root plan.Node, into map[string]dist.File) error {
	var paths []string
	byRows := map[string]bool{} // may the file be cut between its row groups?
	var texts []string
	plan.Walk(root, func(n plan.Node) bool {
		if get, ok := n.(*plan.Get); ok && get.Text != nil {
			texts = append(texts, get.Files...)
		} else if ok {
			for _, path := range get.Files {
				before, seen := byRows[path]
				if !seen {
					paths = append(paths, path)
				}
				byRows[path] = get.RowSplittable() && (before || !seen)
			}
		}
		return true
	})
	for _, path := range texts {
		f, err := textFile(path)
		if err != nil {
			return err
		}
		into[path] = f
	}
	if len(paths) == 0 {
		return nil
	}
	// Fragments name single files, and DuckDB takes every name for a pattern.
	for _, path := range paths {
		if strings.ContainsAny(path, "*?[") {
			return &plan.UnsupportedError{What: "file " + path + ", whose name is a pattern"}
		}
	}
	files, err := s.footers.of(ctx, conn, paths)
	if err != nil {
		return err
	}
	for _, f := range files {
		if !byRows[f.Path] {
			f.Groups = []split.RowGroup{{Rows: f.Rows(), Bytes: f.Bytes()}}
		}
		into[f.Path] = f
	}
	return nil
}

// fragmentNames gives the names that fragments of one job use.
func (q *prepared) fragmentNames(job string, task int) dist.Names {
	return dist.Names{
		View: func(e *dist.Edge) string { return fmt.Sprintf("manta_%s_%d_%d", job, e.ID, task) },
		Shares: func(paths []string) []dist.File {
			files := make([]dist.File, len(paths))
			for i, path := range paths {
				files[i] = q.files[path]
			}
			return files
		},
	}
}

// tableViews gives the statements that make named tables of files known to a connection.
func tableViews(tables map[string]string) ([]string, error) {
	seen := map[string]string{}
	var out []string
	for _, name := range tableNames(tables) {
		lower := strings.ToLower(name)
		if other, dup := seen[lower]; dup {
			return nil, fmt.Errorf("planner: tables %s and %s have one name", other, name)
		}
		seen[lower] = name
		if name == "" {
			return nil, fmt.Errorf("planner: a table of the files %q has no name", tables[name])
		}
		out = append(out, "CREATE TEMP VIEW "+plan.Ident(name)+" AS SELECT * FROM "+reader(tables[name]))
	}
	return out, nil
}

func tableNames(tables map[string]string) []string { return slices.Sorted(maps.Keys(tables)) }

// makeTables runs the statements of tableViews. Their errors are about a table's
// files; a position in them would point into no text of the user's.
func makeTables(ctx context.Context, conn *kernel.Conn, statements []string) error {
	for _, statement := range statements {
		if err := conn.Exec(ctx, statement); err != nil {
			return unplaced(err)
		}
	}
	return nil
}

// unplaced is an error of DuckDB without its position.
func unplaced(err error) error {
	var sql *kernel.Error
	if errors.As(err, &sql) {
		return &kernel.Error{Type: sql.Type, Message: sql.Message}
	}
	return err
}

// reader is the table function call for a file or a glob, by its ending.
func reader(glob string) string { return readerOf(glob) + "(" + plan.Literal(glob) + ")" }

const (
	readParquet = "read_parquet"
	readCSV     = "read_csv"
	readJSON    = "read_json"
	readNDJSON  = "read_ndjson"
)

func readerOf(glob string) string {
	lower := strings.TrimSuffix(strings.ToLower(glob), ".gz")
	switch {
	case strings.HasSuffix(lower, ".csv"), strings.HasSuffix(lower, ".tsv"):
		return readCSV
	case strings.HasSuffix(lower, ".json"), strings.HasSuffix(lower, ".jsonl"), strings.HasSuffix(lower, ".ndjson"):
		return readJSON
	}
	return readParquet
}

// each calls f with every batch, which it borrows.
func each(rows *kernel.Rows, f func(batch) error) error {
	for {
		b, err := rows.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		err = f(b)
		b.Release()
		if err != nil {
			return err
		}
	}
}
