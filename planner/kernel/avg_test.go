package kernel

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// An average from partial sums and counts has the bits of DuckDB's own, for every type that AvgFinal knows.
func TestAvgFinalIsBitEqual(t *testing.T) {
	db := open(t, Config{})
	c := connect(t, db)
	const r = "((hash(i * 7 + %d) %% 2000000001)::BIGINT - 1000000000)"
	values := map[string]string{
		"SMALLINT":      "r % 30000",
		"INTEGER":       "r",
		"BIGINT":        "r * 9000000000",
		"HUGEINT":       "r::HUGEINT * 1000000007 * 1000000000000",
		"DECIMAL(4,1)":  "(r % 9999) / 10",
		"DECIMAL(4,0)":  "r % 9999",
		"DECIMAL(9,2)":  "(r % 999999999) / 100",
		"DECIMAL(15,2)": "r / 100",
		"DECIMAL(18,7)": "r::DECIMAL(18,7)",
		"DECIMAL(30,5)": "r::HUGEINT * 100000000000000",
		"DECIMAL(38,0)": "r::HUGEINT * 100000000000000000000000",
	}
	for scale := range maxAvgScale + 1 {
		values[fmt.Sprintf("DECIMAL(38,%d)", scale)] = "r / 1000000000000"
	}
	for typ, value := range values {
		for seed := range 5 {
			final, ok := AvgFinal(typ, "sum(s)", "sum(n)")
			require.True(t, ok)
			data := fmt.Sprintf("SELECT i %% 97 AS g, i %% 5 AS p, CASE WHEN i %% 97 = 3 OR i %% 11 = 0 THEN NULL ELSE (%s)::%s END AS x "+
				"FROM (SELECT i, "+r+" AS r FROM range(10000) t(i))", value, typ, seed)
			got := texts(t, c, fmt.Sprintf("WITH d AS MATERIALIZED (%s), parts AS (SELECT g, p, sum(x) AS s, count(x) AS n FROM d GROUP BY g, p), "+
				"a AS (SELECT g, %s AS v FROM parts GROUP BY g), b AS (SELECT g, avg(x) AS v FROM d GROUP BY g) "+
				"SELECT count(*), count(a.v), count(*) FILTER (WHERE a.v IS DISTINCT FROM b.v) FROM a JOIN b USING (g)", data, final))
			require.Equal(t, []string{"97|96|0"}, got, typ)
		}
	}
}

func TestAvgFinalKnowsItsTypes(t *testing.T) {
	_, ok := AvgFinal("DOUBLE", "s", "n")
	require.True(t, ok)
	for _, typ := range []string{"INTERVAL", "TIMESTAMP", "DATE", "VARCHAR", "DECIMAL", "DECIMAL(38,23)", "UHUGEINT", "FLOAT"} {
		_, ok := AvgFinal(typ, "s", "n")
		require.False(t, ok, typ)
	}
}

func TestAverageOfNothingAndOfTheWrongType(t *testing.T) {
	db := open(t, Config{})
	c := connect(t, db)
	require.Equal(t, []string{"(null)|(null)|(null)|2.5"}, texts(t, c,
		"SELECT manta_avg(1::HUGEINT, 0), manta_avg(NULL::HUGEINT, 3), manta_avg(1::HUGEINT, NULL), manta_avg(5::HUGEINT, 2)"))
	require.Equal(t, []string{"5000|0"}, texts(t, c,
		"SELECT count(*), count(v) FROM (SELECT manta_avg(CASE WHEN i % 2 = 0 THEN NULL ELSE 1::HUGEINT END, (i + 1) % 2) AS v FROM range(5000) t(i))"))
	_, err := tryTexts(c, "SELECT manta_avg(1.5, 2)")
	require.ErrorContains(t, err, "HUGEINT")
}
