package main

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestFloatText(t *testing.T) {
	for _, test := range []struct {
		f    float64
		want string
	}{
		{0, "0.0"}, {math.Copysign(0, -1), "-0.0"}, {1, "1.0"}, {-2.5, "-2.5"}, {1e15, "1000000000000000.0"}, {1e16, "1e+16"}, {1e-4, "0.0001"},
		{1e-5, "1e-05"}, {math.MaxFloat64, "1.7976931348623157e+308"}, {math.Inf(1), "inf"}, {math.Inf(-1), "-inf"}, {math.NaN(), "nan"},
	} {
		require.Equal(t, test.want, floatText(test.f, 64))
	}
	require.Equal(t, "0.1", floatText(float64(float32(0.1)), 32))
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.Float64().Draw(t, "f")
		text := floatText(f, 64)
		back, err := strconv.ParseFloat(text, 64)
		require.NoError(t, err)
		require.Equal(t, f, back)
		_, err = strconv.ParseInt(text, 10, 64)
		require.Error(t, err, "a float looks like one")
		require.True(t, json.Valid(appendFloat(nil, f, 64)))
	})
}

func TestIntervalText(t *testing.T) {
	for _, test := range []struct {
		v    arrow.MonthDayNanoInterval
		want string
	}{
		{arrow.MonthDayNanoInterval{}, "00:00:00"},
		{arrow.MonthDayNanoInterval{Months: 12}, "1 year"},
		{arrow.MonthDayNanoInterval{Months: -25}, "-2 years -1 month"},
		{arrow.MonthDayNanoInterval{Months: 1, Days: 2, Nanoseconds: 3e9}, "1 month 2 days 00:00:03"},
		{arrow.MonthDayNanoInterval{Nanoseconds: -1500e6}, "-00:00:01.5"},
		{arrow.MonthDayNanoInterval{Days: 1, Nanoseconds: 100 * 3600e9}, "1 day 100:00:00"},
		{arrow.MonthDayNanoInterval{Nanoseconds: 1000}, "00:00:00.000001"},
	} {
		require.Equal(t, test.want, intervalText(test.v))
	}
}

func TestVisible(t *testing.T) {
	require.Equal(t, "plain ü ☃", visible("plain ü ☃"))
	require.Equal(t, `a\nb\tc\rd\x00e\x1B[0m\x7F\x85`, visible("a\nb\tc\rd\x00e\x1b[0m\x7f\u0085"))
}

// Any text survives both formats.
func TestTextSurvives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", " ", `"`, ",", "\n", "a\rb", "\\", "</script>", "\u2028"})), 2, 4).Draw(t, "values")
		for _, v := range values {
			var back string
			require.NoError(t, json.Unmarshal(appendString([]byte{}, v), &back))
			require.Equal(t, v, back)
		}

		var out bytes.Buffer
		w := &csvWriter{out: bufio.NewWriter(&out)}
		for i, v := range values {
			w.field(i, v)
		}
		require.NoError(t, w.endLine())
		require.NoError(t, w.end())
		read, err := csv.NewReader(&out).Read()
		require.NoError(t, err)
		for i, v := range values { // the reader makes \n of \r\n in a field
			values[i] = strings.ReplaceAll(v, "\r\n", "\n")
		}
		require.Equal(t, values, read)
	})
}

// A dense union, which no query gives today, shows the value it holds, and NULL.
func TestUnionValue(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	b := array.NewDenseUnionBuilder(mem, arrow.DenseUnionOf([]arrow.Field{
		{Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, {Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
	}, []arrow.UnionTypeCode{0, 1}))
	defer b.Release()
	b.Append(1)
	b.Child(1).(*array.StringBuilder).Append("x")
	b.Append(0)
	b.Child(0).(*array.Int64Builder).AppendNull()
	b.Append(0)
	b.Child(0).(*array.Int64Builder).Append(7)
	a := b.NewArray()
	defer a.Release()
	var cells, values []string
	for i := range a.Len() {
		cells = append(cells, cell(a, i, "NULL"))
		values = append(values, string(appendJSON(nil, a, i)))
	}
	require.Equal(t, []string{"x", "NULL", "7"}, cells)
	require.Equal(t, []string{`"x"`, "null", "7"}, values)
}
