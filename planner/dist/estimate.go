package dist

import (
	"strconv"

	"manta/planner/plan"
)

func columnName(i int) string { return "c" + strconv.Itoa(i) }

// rowBytes estimates the bytes of a row of the given types in an Arrow batch.
func rowBytes(types []plan.Type) float64 {
	var sum float64
	for _, t := range types {
		sum += typeBytes(t)
	}
	return max(sum, 1)
}

func typeBytes(t plan.Type) float64 {
	switch t.ID {
	case "BOOLEAN":
		return 0.125
	case "TINYINT", "UTINYINT":
		return 1
	case "SMALLINT", "USMALLINT":
		return 2
	case "INTEGER", "UINTEGER", "FLOAT", "DATE":
		return 4
	case "DECIMAL", "HUGEINT", "UHUGEINT", "UUID", "INTERVAL":
		return 16
	case "VARCHAR", "BLOB", "BIT":
		return 24
	case "STRUCT", "UNION":
		var sum float64
		for _, f := range t.Fields {
			sum += typeBytes(f.Type)
		}
		return sum
	case "LIST", "ARRAY", "MAP":
		return 4 + 8*typeBytes(*t.Child)
	}
	return 8
}
