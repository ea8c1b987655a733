package sort

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	exchange "manta/shuffle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Every mode sorts more than its sorters hold; concat fails with its limit. Nothing is left.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	r, err := Run(context.Background(), Options{
		Bytes: 40 << 20, Memory: 64 << 20, Cores: 2, Dir: dir, Modes: exchange.Modes,
	})
	require.NoError(t, err)
	require.Len(t, r.Results, len(exchange.Modes))
	for _, x := range r.Results {
		if x.Mode == exchange.Concat {
			require.Contains(t, x.Error, "too large for mode concat")
			continue
		}
		require.Empty(t, x.Error, x.Mode)
		require.True(t, x.Validated)
		require.Equal(t, int64(40<<20)/recordBytes, x.Records)
		require.Positive(t, x.BytesSpilled, x.Mode)
		require.LessOrEqual(t, x.ExchangePeakMiB, x.ExchangeMiB)
		require.Positive(t, x.ExchangePeakMiB)
		require.Positive(t, x.GBpsPerCore)
		require.Positive(t, x.OfLimit)
		require.Less(t, x.LargestRange, 1.4)
		require.Zero(t, x.Watchdog)
	}
	var text bytes.Buffer
	r.WriteTable(&text)
	require.Contains(t, text.String(), "object-store")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// A sorter gives what a sort in memory gives, with no run, few and many, and with equal keys.
func TestSorter(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{0, 1, 9, 10, 11, 95, 1000} {
		var want [][]byte
		dir := t.TempDir()
		s := newSorter(dir, 10*(recordBytes+entryBytes))
		for range 2 { // it can be used again
			want = want[:0]
			for at := 0; at < n; {
				part := make([]byte, 0, 7*recordBytes)
				for ; at < n && len(part) < cap(part); at++ {
					r := make([]byte, recordBytes)
					r[random.IntN(keyBytes)] = byte(random.IntN(3))
					r[recordBytes-1] = byte(at)
					part = append(part, r...)
					want = append(want, r)
				}
				require.NoError(t, s.add(part))
			}
			slices.SortFunc(want, bytes.Compare)
			var got bytes.Buffer
			require.NoError(t, s.finish(&got))
			require.True(t, bytes.Equal(bytes.Join(want, nil), got.Bytes()))
			left, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Empty(t, left)
		}
	}
}

// What is not the sorted input is noticed.
func TestValidate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	made, err := generate(path, 1, 50)
	require.NoError(t, err)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	_, err = validate([]string{path})
	require.ErrorContains(t, err, "out of order")

	s := newSorter(dir, 1<<20)
	require.NoError(t, s.add(data))
	var sorted bytes.Buffer
	require.NoError(t, s.finish(&sorted))
	split := 20 * recordBytes
	parts := []string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}
	require.NoError(t, os.WriteFile(parts[0], sorted.Bytes()[:split], 0o600))
	require.NoError(t, os.WriteFile(parts[1], sorted.Bytes()[split:], 0o600))
	got, err := validate(parts)
	require.NoError(t, err)
	require.Equal(t, made, got)
	_, err = validate([]string{parts[1], parts[0]})
	require.ErrorContains(t, err, "out of order")

	changed := bytes.Clone(sorted.Bytes())
	changed[recordBytes-1] ^= 1
	require.NoError(t, os.WriteFile(path, changed, 0o600))
	got, err = validate([]string{path})
	require.NoError(t, err)
	require.NotEqual(t, made, got, "another record")
	require.NoError(t, os.WriteFile(path, sorted.Bytes()[:len(changed)-1], 0o600))
	_, err = validate([]string{path})
	require.Error(t, err, "a piece of a record")
}

func TestOptions(t *testing.T) {
	for _, o := range []Options{{Bytes: 5}, {Memory: 1 << 20}, {Runs: -1}, {Cores: -1}, {Ranges: -1}, {Modes: []exchange.Mode{"x"}}} {
		require.Error(t, o.Validate(), "%+v", o)
	}
	o := Options{Bytes: 10 << 30, Memory: 2 << 30, Cores: 2}
	require.NoError(t, o.Validate())
	require.Equal(t, 2, o.ranges(exchange.Streaming))
	n := int64(o.ranges(exchange.Disk))
	require.Less(t, o.Bytes/n*(recordBytes+entryBytes)/recordBytes, o.sorterMemory(), "a range of mean size fits")
}
