package shuffle

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSkew(t *testing.T) {
	require.Equal(t, 1.0, Skew([]int64{5, 5, 5}))
	require.Equal(t, 3.0, Skew([]int64{0, 9, 0}))
	require.Equal(t, 1.5, Skew([]int64{1, 3}))
	require.Zero(t, Skew([]int64{0, 0}))
	require.Zero(t, Skew(nil))
}
