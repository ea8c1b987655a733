package kernel

import (
	"fmt"
	"strconv"
	"strings"
)

// maxAvgScale is the largest power of ten that a double has whole. Beyond it DuckDB's bits depend on how it rounds.
const maxAvgScale = 22

// AvgFinal returns the SQL expression that puts avg(x) together, with the same bits as DuckDB's own, from
// sum = sum(x) and count = count(x), each of which may itself be a sum over partial results. argType is DuckDB's name
// of the type of x as avg sees it (the plan's casts included); sum must have the type that DuckDB's sum gives, which
// summing partial sums keeps. The result is NULL when count is 0.
//
//	INTEGER, BIGINT, HUGEINT, DECIMAL of more than 4 digits   manta_avg: the state is a 128-bit integer and the
//	                                                          division is done in long double
//	SMALLINT, DECIMAL of up to 4 digits                       manta_avg_small: a 64-bit integer and double
//	DOUBLE                                                    sum / count; as equal as the order of additions is
//
// For every other type, and a DECIMAL of more than 22 digits behind the point, ok is false: avg over times and intervals is an integer division of a state that sum does not
// give, and the remaining numbers are cast to one of the types above before they are averaged.
func AvgFinal(argType, sum, count string) (expr string, ok bool) {
	name, args, _ := strings.Cut(argType, "(")
	switch name {
	case "INTEGER", "BIGINT", "HUGEINT":
		return fmt.Sprintf("manta_avg(%s, CAST(%s AS BIGINT))", sum, count), true
	case "SMALLINT":
		return fmt.Sprintf("manta_avg_small(%s, CAST(%s AS BIGINT))", sum, count), true
	case "DECIMAL":
		width, scale, _ := strings.Cut(strings.TrimSuffix(args, ")"), ",")
		w, err := strconv.Atoi(strings.TrimSpace(width))
		if err != nil {
			return "", false
		}
		if s, err := strconv.Atoi(strings.TrimSpace(scale)); err != nil || s > maxAvgScale {
			return "", false
		}
		f := "manta_avg"
		if w <= 4 {
			f = "manta_avg_small"
		}
		return fmt.Sprintf("%s(%s, CAST(%s AS BIGINT))", f, sum, count), true
	case "DOUBLE":
		return fmt.Sprintf("(%s / CAST(%s AS DOUBLE))", sum, count), true
	}
	return "", false
}
