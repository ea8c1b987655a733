package dist

import (
	"testing"

	"github.com/stretchr/testify/require"

	"manta/planner/plan"
)

// The text of a conversion has places for its argument, and must not have them in names.
func TestNamesThatAConversionWouldTake(t *testing.T) {
	named := func(name string) plan.Type {
		return plan.StructOf(plan.Field{Name: name, Type: plan.Type{ID: "ENUM"}})
	}
	row := func(t plan.Type) plan.Type { return plan.StructOf(plan.Field{Type: t}) }
	list := func(t plan.Type) plan.Type { return plan.Type{ID: "LIST", Child: &t} }
	require.False(t, unspelled(named("{0}")), "a cast has no places")
	require.False(t, unspelled(row(named("a"))))
	require.True(t, unspelled(row(named("{0}"))))
	require.True(t, unspelled(list(row(list(named("{7}"))))))
	require.True(t, unspelled(plan.Type{ID: "UNION", Fields: []plan.Field{{Name: "a", Type: named("{0}")}}}))
}
