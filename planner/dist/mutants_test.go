package dist_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"manta/planner/dist"
	"manta/planner/dist/disttest"
	"manta/planner/internal/fixture"
)

// TestCheckNoticesMutants makes one mistake at a time in a plan, and asks the
// checker. What it lets pass must give the same rows.
func TestCheckNoticesMutants(t *testing.T) {
	r, _ := setup(t)
	tally := disttest.Tally{Most: 1}
	if *long {
		tally.Most = 1000
	}
	for i, q := range fixture.Queries() {
		for k, o := range disttest.Variants() {
			if o.Partitions == 1 || !*long && (i+k)%5 != 0 {
				continue
			}
			p, files := r.Place(q.SQL, o)
			require.NoError(t, dist.Check(p), q.Name)
			tally.Check(r, q.SQL, p, files)
		}
	}
	tally.Require(t, 100)
}
