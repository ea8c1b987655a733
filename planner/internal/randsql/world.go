package randsql

import (
	"fmt"

	"pgregory.net/rapid"
)

// World is a random set of the tables that a Statement reads: for each, the queries that make its files.
type World map[string][]string

// Draw draws the tables: column types, row counts down to none, NULLs, NaN,
// duplicates, one value that most rows have, and how the rows are spread over files.
func Draw(t *rapid.T) World {
	number := rapid.SampledFrom([]string{"INTEGER", "SMALLINT", "BIGINT", "DECIMAL(9,0)"})
	kinds := map[string]string{
		"x": number.Draw(t, "type of x"), "y": number.Draw(t, "type of y"),
		"d": rapid.SampledFrom([]string{"DECIMAL(8,2)", "DOUBLE", "BIGINT"}).Draw(t, "type of d"),
	}
	w := World{}
	for _, table := range []struct {
		name string
		most int
	}{{"a", 40}, {"b", 12}, {"e", 0}, {"big", 400}} {
		name, most := table.name, table.most
		rows := 0
		if most > 0 {
			rows = rapid.IntRange(0, most).Draw(t, "rows of "+name)
		}
		modulus := func(column string) int { return rapid.IntRange(1, 50).Draw(t, "values of "+name+"."+column) }
		value := func(column, special string) string {
			m := modulus(column)
			return fmt.Sprintf("CASE WHEN hash(i, '%s') %% 11 = 0 THEN NULL WHEN hash(i, '%s skew') %% 10 < %d THEN 1 %s ELSE (hash(i, '%s') %% %d)::INTEGER END::%s AS %s",
				column, column, rapid.SampledFrom([]int{0, 0, 6}).Draw(t, "skew"), special, column, m, kinds[column], column)
		}
		special := ""
		if kinds["d"] == "DOUBLE" {
			special = "WHEN hash(i, 'nan') % 13 = 0 THEN 'nan'::DOUBLE"
		}
		row := value("x", "") + ", " + value("y", "") + ", " +
			fmt.Sprintf("CASE WHEN hash(i, 's') %% 7 > 0 THEN 's' || hash(i, 's') %% %d END AS s, ", modulus("s")) + value("d", special)
		files := rapid.IntRange(1, 5).Draw(t, "files of "+name)
		for f := range files {
			w[name] = append(w[name], fmt.Sprintf("SELECT %s FROM range(%d, %d) r(i)", row, rows*f/files, rows*(f+1)/files))
		}
	}
	return w
}
