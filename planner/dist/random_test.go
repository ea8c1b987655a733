package dist_test

import (
	"context"
	"errors"
	"flag"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"manta/planner/dist"
	"manta/planner/dist/disttest"
	"manta/planner/internal/randsql"
	"manta/planner/kernel"
)

var randomFor = flag.Duration("randomfor", 0, "how long to compare random statements; 0: a few")

// worthwhile is how long DuckDB may take for a statement that is compared. What is made of it may take much longer.
const worthwhile = 10 * time.Second

// worlds is the number of random sets of tables in a short run.
const worlds = 1

// TestRandomStatements compares random statements over random tables with what DuckDB answers in one process, however
// they are distributed. A failure is shrunk to a small statement, with rapid's seed to repeat it.
func TestRandomStatements(t *testing.T) {
	counts := map[string]int{}
	began := time.Now()
	for i := 0; i < worlds || time.Since(began) < *randomFor; i++ {
		// A world is a test of its own, so that its databases close with it.
		world := rapid.Custom(randsql.Draw).Example(i + int(*randomFor>>30)) // long runs see other worlds than short ones
		if !t.Run(strconv.Itoa(i), func(t *testing.T) { compareRandom(t, world, counts) }) {
			return
		}
	}
	t.Log(counts)
	require.Greater(t, counts["pass"], 10)
}

// compareRandom compares random statements over one set of tables, and counts what came of them.
func compareRandom(t *testing.T, world map[string][]string, counts map[string]int) {
	r := newCorpusRig(t)
	for name, queries := range world {
		r.Table(r.dir, name, queries...)
		require.NoError(t, r.oracle.Exec(context.Background(), r.Rig.Tables[len(r.Rig.Tables)-1]))
	}
	rapid.Check(t, func(t *rapid.T) {
		sql := randsql.Statement(t)
		o := dist.Options{
			Partitions:     rapid.SampledFrom([]int{1, 2, 3, 16}).Draw(t, "partitions"),
			BroadcastBytes: rapid.SampledFrom([]int64{0, 1000, 1 << 40}).Draw(t, "broadcast"),
			ReplicateBytes: rapid.SampledFrom([]int64{0, 0, 2000}).Draw(t, "replicate"),
		}
		want, err := disttest.AskWithin(r.oracle, sql, worthwhile)
		if err != nil {
			var e *kernel.Error
			if errors.As(err, &e) {
				counts["error "+e.Type]++
				if e.Type == "Parser" {
					t.Fatalf("%v: %s", err, sql)
				}
			}
			t.Skip(err) // of the data, which another plan need not meet, of the binder, or of the time
		}
		word, about := r.compare(sql, o, want, nil)
		counts[word]++
		if word == "whole" {
			t.Skip(about)
		}
		if word == "fails" && (strings.HasPrefix(about, "Conversion Error") || strings.HasPrefix(about, "Out of Range Error")) {
			// A task looks at rows that DuckDB does not look at. The coordinator then has it run the text as it is written.
			counts["data"]++
			t.Skip(about)
		}
		require.Equal(t, "pass", word, "%s\npartitions %d, broadcast %d, replicate %d\n%v\n%s", sql, o.Partitions, o.BroadcastBytes, o.ReplicateBytes, world, about)
	})
}
