package split

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Every row is read by exactly one task, and no share is further from the ideal than one row group.
func TestSplitCoversEveryRowOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var files []File
		var total, widest int64
		for i := range rapid.IntRange(0, 4).Draw(t, "files") {
			f := File{Path: fmt.Sprint(i)}
			for range rapid.IntRange(0, 6).Draw(t, "groups") {
				g := RowGroup{Rows: rapid.Int64Range(0, 9).Draw(t, "rows")}
				if g.Rows > 0 {
					g.Bytes = rapid.Int64Range(1, 1000).Draw(t, "bytes")
				}
				f.Groups = append(f.Groups, g)
				total += g.Bytes + 1
				widest = max(widest, g.Bytes+1)
			}
			files = append(files, f)
		}
		n := rapid.IntRange(1, 9).Draw(t, "tasks")
		shares := Split(files, n)
		require.Len(t, shares, n)

		seen := map[string]map[int64]bool{}
		for _, share := range shares {
			for _, r := range share {
				require.Less(t, r.First, r.End)
				if seen[r.Path] == nil {
					seen[r.Path] = map[int64]bool{}
				}
				for row := r.First; row < r.End; row++ {
					require.False(t, seen[r.Path][row], "row read twice")
					seen[r.Path][row] = true
				}
			}
		}
		for _, f := range files {
			require.Len(t, seen[f.Path], int(f.Rows()))
			for _, share := range shares {
				for _, r := range share {
					if r.Path == f.Path {
						require.Equal(t, r.First == 0 && r.End == f.Rows(), r.Whole)
					}
				}
			}
		}
		for _, share := range shares {
			require.LessOrEqual(t, weigh(files, share), total/int64(n)+widest+1)
		}
	})
}

// weigh sums the bytes of the row groups that a share reads.
func weigh(files []File, share []Range) int64 {
	var sum int64
	for _, r := range share {
		for _, f := range files {
			if f.Path != r.Path {
				continue
			}
			var at int64
			for _, g := range f.Groups {
				if g.Rows > 0 && at >= r.First && at < r.End {
					sum += g.Bytes
				}
				at += g.Rows
			}
		}
	}
	return sum
}

func TestSplitSharesOneFile(t *testing.T) {
	f := File{Path: "f", Groups: []RowGroup{{10, 100}, {10, 100}, {10, 100}, {10, 100}}}
	require.Equal(t, [][]Range{{{"f", 0, 20, false}}, {{"f", 20, 40, false}}}, Split([]File{f}, 2))
	require.Equal(t, [][]Range{{{"f", 0, 40, true}}}, Split([]File{f}, 1))
}
