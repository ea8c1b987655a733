package kernel

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
)

// batches is a stream of given batches, which it takes.
type batches struct {
	schema *arrow.Schema
	list   []arrow.RecordBatch
}

func (b *batches) Schema() *arrow.Schema { return b.schema }
func (b *batches) Next() (arrow.RecordBatch, error) {
	if len(b.list) == 0 {
		return nil, io.EOF
	}
	next := b.list[0]
	b.list = b.list[1:]
	return next, nil
}
func (b *batches) Close() {
	for _, x := range b.list {
		x.Release()
	}
	b.list = nil
}

// collect runs a query and returns its result as one batch of all rows.
func collect(t *testing.T, c *Conn, sql string) (*arrow.Schema, arrow.RecordBatch) {
	t.Helper()
	rows, err := c.Query(context.Background(), sql)
	require.NoError(t, err)
	defer rows.Close()
	columns := make([][]arrow.Array, rows.Schema().NumFields())
	n := int64(0)
	for {
		b, err := rows.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		defer b.Release()
		n += b.NumRows()
		for i := range columns {
			columns[i] = append(columns[i], b.Column(i))
		}
	}
	whole := make([]arrow.Array, len(columns))
	for i := range columns {
		whole[i], err = array.Concatenate(columns[i], memory.DefaultAllocator)
		require.NoError(t, err)
		defer whole[i].Release()
	}
	return rows.Schema(), array.NewRecordBatch(rows.Schema(), whole, n)
}

// values gives, for each type, an expression over the BIGINT i.
var values = map[string]string{
	"BOOLEAN":   "i % 3 = 0",
	"TINYINT":   "i % 100 - 50",
	"SMALLINT":  "i - 300",
	"INTEGER":   "i * 1000 - 7",
	"BIGINT":    "i * 10000000000",
	"HUGEINT":   "i::HUGEINT * 100000000000000000000 - 5",
	"UTINYINT":  "i % 250",
	"USMALLINT": "i",
	"UINTEGER":  "i * 3",
	"UBIGINT":   "18446744073709551615 - i::UBIGINT",
	"UHUGEINT":  "340282366920938463463374607431768211455::UHUGEINT - i::UHUGEINT",
	"FLOAT":     "i / 3",
	"DOUBLE":    "i / 7",

	"DECIMAL(4,1)":   "i % 100 / 10",
	"DECIMAL(9,2)":   "i / 100",
	"DECIMAL(18,3)":  "i * 123456 / 1000",
	"DECIMAL(38,10)": "i::DECIMAL(38,10) * -12345678901234",

	"VARCHAR":  "CASE i % 3 WHEN 0 THEN '' ELSE 'text of row ' || i || repeat('x', (i % 20)::INT) END",
	"BLOB":     "('b' || i)::BLOB",
	"BIT":      "right(i::INTEGER::BIT::VARCHAR, (i % 20 + 1)::INT)",
	"BIGNUM":   "CASE i % 3 WHEN 0 THEN '-' ELSE '' END || (i + 1) || '00000000000000000000000000000000000000000000'",
	"UUID":     "make_uuid(i)",
	"JSON":     `'{"a":' || i || '}'`,
	"GEOMETRY": "'POINT (' || i || ' 2)'",

	"DATE":                     "DATE '1992-01-01' + i::INT",
	"TIME":                     "TIME '00:00:00' + to_seconds(i % 86400)",
	"TIME_NS":                  "'12:00:00.123456' || lpad((i % 1000)::VARCHAR, 3, '0')",
	"TIME WITH TIME ZONE":      "'12:34:56.7' || (i % 9) || CASE i % 4 WHEN 0 THEN '+00' WHEN 1 THEN '-03:30' WHEN 2 THEN '+15:59:59' ELSE '+01' END",
	"TIMESTAMP":                "TIMESTAMP '2000-01-01' + to_seconds(i)",
	"TIMESTAMP_S":              "TIMESTAMP '2000-01-01' + to_seconds(i)",
	"TIMESTAMP_MS":             "TIMESTAMP '2000-01-01' + to_milliseconds(i)",
	"TIMESTAMP_NS":             "make_timestamp_ns(i * 1000000007)",
	"TIMESTAMP WITH TIME ZONE": "TIMESTAMP '2000-01-01' + to_seconds(i)",
	"INTERVAL":                 "to_months(i % 50) - to_days(i::INT) + to_microseconds(i * 77)",

	"ENUM('a', 'b)', 'c''')": "['a', 'b)', 'c'''][i % 3 + 1]",
	"ENUM('a', 'b')[]":       "['a', 'b']",
	"BOOLEAN[]":              "[i % 2 = 0, NULL]",
	"INTEGER[]":              "CASE i % 5 WHEN 0 THEN [] WHEN 1 THEN NULL WHEN 2 THEN [i, NULL] ELSE [i, i + 1, i + 2] END",
	"VARCHAR[]":              "['list of ' || i, NULL, 'x']",
	"INTEGER[][]":            "[[i], [], NULL, [i, i]]",
	"UUID[]":                 "[make_uuid(i)]",
	"BIT[]":                  "[i::INT::BIT]",
	"TIME WITH TIME ZONE[]":  "['12:34:56+02']",
	"JSON[]":                 `['{"a":1}']`,
	"INTERVAL[]":             "[to_days(i::INT)]",
	"DECIMAL(18,3)[]":        "[i / 10]",
	"INTEGER[3]":             "[i, i + 1, NULL]",
	"VARCHAR[2]":             "['array of ' || i, 'b']",
	"HUGEINT[2]":             "[i, -i]",
	"INTEGER[2][]":           "[[i, NULL], NULL, [i, i]]",
	"INTEGER[2][2]":          "[[i, NULL], [i, i]]",

	`STRUCT("a" INTEGER, "b" VARCHAR)`:                           "{'a': i, 'b': 'struct ' || i}",
	`STRUCT("a" STRUCT("b" STRUCT("c" VARCHAR, "d" INTEGER[])))`: "{'a': CASE WHEN i % 3 = 0 THEN NULL ELSE {'b': {'c': 'deep ' || i, 'd': [i]}} END}",
	`STRUCT("a" INTEGER[], "b" STRUCT("c" DATE, "d" HUGEINT))[]`: "[{'a': [i, NULL], 'b': {'c': DATE '2000-01-01' + i::INT, 'd': i}}, NULL]",
	`STRUCT("e ""f" ENUM('x', 'y'), "u" UHUGEINT, "v" BOOLEAN)`:  `{'e "f': 'x', 'u': i, 'v': i % 2 = 0}`,
	`STRUCT("a" INTEGER)[2]`:                                     "[{'a': i}, NULL]",
	"MAP(VARCHAR, INTEGER)":                                      "map(['k' || i, 'l'], [i, NULL])",
	"MAP(INTEGER, VARCHAR[])":                                    "map([i], [['x' || i, NULL]])",
	`MAP(UUID, STRUCT("h" HUGEINT))`:                             "map([make_uuid(i)], [{'h': i}])",
}

const makeUUID = "CREATE TEMP MACRO make_uuid(i) AS ('00000000-0000-4000-8000-' || lpad(i::VARCHAR, 12, '0'))::UUID"

// sample returns a query for 5,000 rows of (c of the type, i), every seventh of them NULL.
func sample(typ, value string) string {
	condition := "NULL"
	if strings.HasSuffix(typ, "2]") || strings.HasSuffix(typ, "3]") { // CASE does not know arrays
		condition = "NULL::" + strings.NewReplacer("[2]", "[]", "[3]", "[]").Replace(typ)
	}
	return fmt.Sprintf("SELECT CAST(CASE WHEN i %% 7 = 0 THEN %s ELSE %s END AS %s) AS c, i FROM range(5000) r(i)", condition, value, typ)
}

// Every type comes back as it went out, from whole batches longer than a vector and from slices that begin anywhere.
func TestEveryTypeTravels(t *testing.T) {
	db := open(t, Config{LosslessArrow: true})
	c := connect(t, db)
	require.NoError(t, c.Exec(context.Background(), makeUUID))
	for typ, value := range values {
		t.Run(typ, func(t *testing.T) {
			query := sample(typ, value)
			columns, err := c.Describe(context.Background(), query)
			require.NoError(t, err)
			require.Equal(t, typ, columns[0].Type)
			want := texts(t, c, "SELECT typeof(c), c::VARCHAR, i FROM ("+query+")")
			travels, ok := ExchangeType(typ)
			require.True(t, ok)
			schema, whole := collect(t, c, fmt.Sprintf("SELECT c::%s AS c, i FROM (%s)", travels, query))
			defer whole.Release()
			for _, from := range []int64{0, 1, 13} {
				slice := whole.NewSlice(from, whole.NumRows()-from)
				drop, err := c.RegisterStream("s", &batches{schema, []arrow.RecordBatch{slice}})
				require.NoError(t, err)
				back := "s"
				if travels != typ {
					back = fmt.Sprintf("(SELECT c0::%s AS c, i FROM s t(c0, i))", typ)
				}
				got := texts(t, c, "SELECT typeof(c), c::VARCHAR, i FROM "+back)
				require.Equal(t, want[from:len(want)-int(from)], got)
				drop()
			}
		})
	}
}

func TestExchangeType(t *testing.T) {
	for typ, want := range map[string]string{
		"INTEGER":                               "INTEGER",
		"TIMESTAMP WITH TIME ZONE[]":            "TIMESTAMP WITH TIME ZONE[]",
		"ENUM('a', 'b')":                        "VARCHAR",
		`MAP(ENUM('(', ')''', '"'), DOUBLE[2])`: "MAP(VARCHAR, DOUBLE[2])",
		`STRUCT("ENUM('x')" ENUM('x')[], "VARIANT" INTEGER)`: `STRUCT("ENUM('x')" VARCHAR[], "VARIANT" INTEGER)`,
		"VARIANT":             "",
		`UNION("a" INTEGER)`:  "",
		`STRUCT("a" VARIANT)`: "",
		"mood[]":              "",
		`"NULL"`:              "",
		`STRUCT("NULL" JSON)`: `STRUCT("NULL" JSON)`,
	} {
		got, ok := ExchangeType(typ)
		require.Equal(t, want != "", ok, typ)
		if ok {
			require.Equal(t, want, got)
		}
	}
}

func TestWhatCannotTravelIsRefused(t *testing.T) {
	db := open(t, Config{})
	c := connect(t, db)
	for _, value := range []string{"'a'::ENUM('a', 'b')", "['a'::ENUM('a', 'b')]", "union_value(a := 1)", "[{'u': union_value(a := 1)}]"} {
		rows, err := c.Query(context.Background(), "SELECT "+value)
		require.NoError(t, err)
		schema := rows.Schema()
		rows.Close()
		_, err = c.RegisterStream("s", &batches{schema, nil})
		require.ErrorContains(t, err, "does not travel")
	}
}

// What a Go program sees of a lossless result is what DuckDB prints.
func TestFromLossless(t *testing.T) {
	db := open(t, Config{LosslessArrow: true})
	c := connect(t, db)
	require.NoError(t, c.Exec(context.Background(), makeUUID))
	for _, typ := range []string{"BOOLEAN", "HUGEINT", "UHUGEINT", "UUID", "BIT", "BIGNUM", "TIME WITH TIME ZONE", "VARCHAR"} {
		query := sample(typ, values[typ])
		want := texts(t, c, "SELECT c::VARCHAR, i FROM ("+query+")")
		_, whole := collect(t, c, query)
		plain, err := FromLossless(whole.NewSlice(3, whole.NumRows()))
		require.NoError(t, err)
		require.True(t, plain.Schema().Equal(FromLosslessSchema(whole.Schema())))
		require.Equal(t, want[3:], batchTexts(plain), typ)
	}
	_, whole := collect(t, c, "SELECT [true, NULL], {'u': make_uuid(7), 'm': map([1], [5::HUGEINT])}, ['1'::BIT]::BIT[1]")
	plain, err := FromLossless(whole)
	require.NoError(t, err)
	require.Equal(t, []string{`[true,null]|{"m":[{"key":1,"value":"5"}],"u":"00000000-0000-4000-8000-000000000007"}|["1"]`}, batchTexts(plain))
}
