package tpc

import (
	"context"
	"flag"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"manta/planner/dist"
	"manta/planner/dist/disttest"
)

var long = flag.Bool("long", false, "run every query under every setting, and every plan with a mistake that is none")

// TestCheckNoticesMutants makes one mistake at a time in the plan of every query, and asks the checker.
func TestCheckNoticesMutants(t *testing.T) {
	for suite, dir := range map[*Suite]string{H: shared, DS: sharedDS(t)} {
		t.Run(suite.Name, func(t *testing.T) {
			r := disttest.New(t)
			tables, err := suite.TablesIn(dir)
			require.NoError(t, err)
			for name, glob := range tables {
				r.View(name, glob)
			}
			queries, err := suite.Queries()
			require.NoError(t, err)
			var tally disttest.Tally
			if *long {
				tally.Most = 3
			}
			for i, sql := range queries {
				for k, o := range disttest.Variants() {
					if o.Partitions == 1 || !*long && k != 1+i%5 {
						continue
					}
					p, files := r.Place(sql, o)
					require.NoError(t, dist.Check(p), fmt.Sprint(suite.Title, " query ", i+1))
					tally.Check(r, sql, p, files)
				}
			}
			tally.Require(t, suite.NumQueries)
		})
	}
}

// sharedDS is a directory with data of TPC-DS of scale factor 0.01, for all tests.
func sharedDS(t *testing.T) string {
	dir := shared + "-ds"
	require.NoError(t, DS.Generate(context.Background(), dir, 0.01, 2))
	return dir
}
