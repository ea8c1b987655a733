package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/pflag"

	"manta/planner"
)

// sizeFlag is a number of bytes: 4GiB, 512MiB, 1000000.
type sizeFlag int64

func (s *sizeFlag) String() string {
	if *s == 0 {
		return ""
	}
	return humanize.IBytes(uint64(*s))
}

func (s *sizeFlag) Set(text string) error {
	n, err := humanize.ParseBytes(text)
	if err != nil || n == 0 || n > 1<<60 {
		return fmt.Errorf("%q is no size; give one like 512MiB or 4GiB", text)
	}
	*s = sizeFlag(n)
	return nil
}

func (s *sizeFlag) Type() string { return "size" }

// tableFlags are the -t name=glob flags.
type tableFlags map[string]string

func (t *tableFlags) String() string { return "" }
func (t *tableFlags) Type() string   { return "name=glob" }

func (t *tableFlags) Set(text string) error {
	name, glob, ok := strings.Cut(text, "=")
	if !ok || name == "" || glob == "" {
		return fmt.Errorf("%q is no table; give name=file, name=folder/*.parquet or the like", text)
	}
	for other := range *t {
		if strings.EqualFold(other, name) {
			return fmt.Errorf("table %s is given twice", name)
		}
	}
	if *t == nil {
		*t = tableFlags{}
	}
	(*t)[name] = absolute(glob)
	return nil
}

// absolute makes a local path independent of the working folder: the nodes have their own.
func absolute(glob string) string {
	if strings.Contains(glob, "://") {
		return glob
	}
	if path, err := filepath.Abs(glob); err == nil {
		return path
	}
	return glob
}

// clusterFlags say which cluster a command uses.
type clusterFlags struct {
	head, token, dataDir string
	nodes, cpus          int
	memory, maxSpill     sizeFlag
}

const maxSpillUsage = "most that stage tasks, whole queries and the object store of a node may each spill (default: what the disk has)"

const tokenUsage = "the cluster's shared secret, which makes its connections TLS (better in MANTA_TOKEN)"

func (f *clusterFlags) addHead(flags *pflag.FlagSet) {
	flags.StringVar(&f.head, "head", os.Getenv("MANTA_HEAD"), "address of the head (or MANTA_HEAD)")
	f.addToken(flags)
}

// addToken adds --token. Its default is no matter for a help text.
func addToken(flags *pflag.FlagSet, token *string) {
	flags.StringVar(token, "token", os.Getenv("MANTA_TOKEN"), tokenUsage)
	flags.Lookup("token").DefValue = ""
}

func (f *clusterFlags) addToken(flags *pflag.FlagSet) {
	addToken(flags, &f.token)
}

// addEmbedded adds the flags of the cluster that is started when there is no head.
func (f *clusterFlags) addEmbedded(flags *pflag.FlagSet, nodes int) {
	f.addHead(flags)
	flags.IntVar(&f.nodes, "nodes", nodes, "nodes of the embedded cluster")
	flags.IntVar(&f.cpus, "cpus", 0, "slots of each of its nodes (default: the machine's CPUs, shared out)")
	flags.Var(&f.memory, "memory", "memory of each of its nodes (default 4 GiB)")
	flags.Var(&f.maxSpill, "max-spill", maxSpillUsage)
	flags.StringVar(&f.dataDir, "data-dir", "", "its data folder (default: a temporary one)")
}

func (f *clusterFlags) config() (planner.Config, error) {
	if f.nodes < 1 || f.nodes > 64 {
		return planner.Config{}, usagef("--nodes %d: an embedded cluster has 1 to 64 nodes", f.nodes)
	}
	if f.cpus < 0 {
		return planner.Config{}, usagef("--cpus %d: give at least 1", f.cpus)
	}
	return planner.Config{
		Head: f.head, Token: f.token, Nodes: f.nodes, CPUs: f.cpus, Memory: int64(f.memory), MaxSpill: int64(f.maxSpill), DataDir: f.dataDir,
	}, nil
}

// queryFlags are the options of a query.
type queryFlags struct {
	tables     tableFlags
	shuffle    string
	partitions int
	distribute string
	file       string
}

func (f *queryFlags) add(flags *pflag.FlagSet) {
	flags.VarP(&f.tables, "table", "t", "a table and its files; repeat for more")
	flags.StringVar(&f.shuffle, "shuffle", "auto", "exchange mode: auto, streaming, object-store, disk or concat")
	flags.IntVar(&f.partitions, "partitions", 0, "tasks of a partitioned stage (default: the cluster's slots)")
	flags.StringVar(&f.distribute, "distribute", "", "auto: one task on one node when that is faster; always (default: always with --shuffle or --partitions, else auto)")
	flags.StringVarP(&f.file, "file", "f", "", "read the query from this file")
}

func (f *queryFlags) options() (planner.Options, error) {
	if err := checkMode(f.shuffle); err != nil {
		return planner.Options{}, err
	}
	if f.partitions < 0 {
		return planner.Options{}, usagef("--partitions %d: give at least 1", f.partitions)
	}
	if err := planner.CheckDistribute(f.distribute); err != nil {
		return planner.Options{}, &usageError{err}
	}
	return planner.Options{Tables: f.tables, Shuffle: f.shuffle, Partitions: f.partitions, Distribute: f.distribute}, nil
}

func checkMode(mode string) error {
	if err := planner.CheckMode(mode); err != nil {
		return &usageError{err}
	}
	return nil
}

// report is an error for people: one line, and below it the part of the query that it is about.
func report(err error) string {
	text := oneLine(err)
	if query, ok := errors.AsType[*planner.QueryError](err); ok && query.Quote != "" {
		text += "\n" + query.Quote
	}
	return text
}

// oneLine is an error as one line, without the names of packages.
func oneLine(err error) string {
	text := strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
	for _, prefix := range []string{"planner: ", "actors: ", "shuffle: ", "objectstore: ", "kernel: ", "tpc: ", "bench: "} {
		text = strings.ReplaceAll(strings.TrimPrefix(text, prefix), ": "+prefix, ": ")
	}
	return text
}
