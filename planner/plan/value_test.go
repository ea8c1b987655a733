package plan_test

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"manta/planner/plan"
)

// drawInteger draws a whole number in [low, high] that is often at an edge.
func drawInteger(t *rapid.T, low, high *big.Int) string {
	span := new(big.Int).Sub(high, low)
	bytes := rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "bytes")
	n := new(big.Int).Mod(new(big.Int).SetBytes(bytes), span.Add(span, big.NewInt(1)))
	switch rapid.IntRange(0, 5).Draw(t, "edge") {
	case 0:
		return low.String()
	case 1:
		return high.String()
	case 2:
		if low.Sign() < 0 {
			return "0"
		}
	}
	return n.Add(n, low).String()
}

func power(base, exp int64) *big.Int {
	return new(big.Int).Exp(big.NewInt(base), big.NewInt(exp), nil)
}

// signed and unsigned are the limits of whole numbers of so many bits.
func signed(bits int64) (low, high *big.Int) {
	half := power(2, bits-1)
	return new(big.Int).Neg(half), new(big.Int).Sub(half, big.NewInt(1))
}

func unsigned(bits int64) (low, high *big.Int) {
	return big.NewInt(0), new(big.Int).Sub(power(2, bits), big.NewInt(1))
}

func drawScalar(t *rapid.T) plan.Value {
	number := func(typ plan.Type, low, high *big.Int) plan.Value {
		return plan.Value{Type: typ, Text: drawInteger(t, low, high)}
	}
	between := func(id string, low, high int64) plan.Value {
		return number(plan.Type{ID: id}, big.NewInt(low), big.NewInt(high))
	}
	const year = 365 * 24 * 3600
	switch rapid.IntRange(0, 19).Draw(t, "kind") {
	case 0, 1:
		bits := rapid.SampledFrom([]int64{8, 16, 32, 64, 128}).Draw(t, "bits")
		low, high := signed(bits)
		return number(map[int64]plan.Type{8: plan.TinyInt, 16: plan.SmallInt, 32: plan.Integer, 64: plan.BigInt, 128: plan.HugeInt}[bits], low, high)
	case 2:
		bits := rapid.SampledFrom([]int64{8, 16, 32, 64, 128}).Draw(t, "bits")
		low, high := unsigned(bits)
		return number(map[int64]plan.Type{8: plan.UTinyInt, 16: plan.USmallInt, 32: plan.UInteger, 64: plan.UBigInt, 128: plan.UHugeInt}[bits], low, high)
	case 3, 4:
		width := rapid.IntRange(1, 38).Draw(t, "width")
		high := new(big.Int).Sub(power(10, int64(width)), big.NewInt(1))
		return number(plan.Decimal(width, rapid.IntRange(0, width).Draw(t, "scale")), new(big.Int).Neg(high), high)
	case 5:
		return plan.Bool(rapid.Bool().Draw(t, "b"))
	case 6:
		return plan.Text(rapid.StringOf(rapid.RuneFrom([]rune("ab'\\\"\x00\n☃%{}0"))).Draw(t, "text"))
	case 7:
		f := rapid.Float64().Draw(t, "f")
		if f == 0 || math.Abs(f) >= 1e15 || math.Abs(f) < 1e-4 { // many spellings
			f = 0.5
		}
		text := strconv.FormatFloat(f, 'f', -1, 64)
		if f == math.Trunc(f) {
			text += ".0"
		}
		return plan.Value{Type: plan.Double, Text: text}
	case 8:
		return plan.Value{Type: plan.Double, Text: rapid.SampledFrom([]string{"nan", "inf", "-inf"}).Draw(t, "f")}
	case 9:
		return between("DATE", -4000000, 5000000)
	case 10:
		return plan.Value{Type: plan.Date, Text: rapid.SampledFrom([]string{"2147483647", "-2147483647"}).Draw(t, "inf")}
	case 11:
		id := rapid.SampledFrom([]string{"TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "TIMESTAMP_NS"}).Draw(t, "id")
		return between(id, -200*year*1e6, 290*year*1e6)
	case 12:
		return between("TIMESTAMP_MS", -2000*year*1e3, 20000*year*1e3)
	case 13:
		return between("TIMESTAMP_S", -2000*year, 20000*year)
	case 14:
		id := rapid.SampledFrom([]string{"TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "TIMESTAMP_NS", "TIMESTAMP_MS", "TIMESTAMP_S"}).Draw(t, "id")
		return plan.Value{Type: plan.Type{ID: id}, Text: rapid.SampledFrom([]string{"9223372036854775807", "-9223372036854775807"}).Draw(t, "inf")}
	case 15:
		return between("TIME", 0, 24*3600*1e6)
	case 16:
		micros := rapid.Int64Range(0, 24*3600*1e6-1).Draw(t, "micros")
		offset := rapid.Int64Range(-57599, 57599).Draw(t, "offset")
		return plan.Value{Type: plan.Type{ID: "TIME WITH TIME ZONE"}, Text: strconv.FormatInt(micros<<24+57599-offset, 10)}
	case 17:
		n := func(s string) int64 { return rapid.Int64Range(-1000000, 1000000).Draw(t, s) }
		return plan.Value{Type: plan.Type{ID: "INTERVAL"}, Interval: plan.Interval{Months: n("m"), Days: n("d"), Micros: n("u")}}
	case 18:
		low, high := signed(128)
		return number(plan.Type{ID: "UUID"}, low, high)
	default:
		return plan.Value{Type: plan.Type{ID: "ENUM", Labels: []string{"a", "it's", ""}}, Text: strconv.Itoa(rapid.IntRange(0, 2).Draw(t, "label"))}
	}
}

// drawLike draws another value of the same type, so that lists have one type.
func drawLike(t *rapid.T, v plan.Value) plan.Value {
	if rapid.Bool().Draw(t, "null") {
		return plan.NullOf(v.Type)
	}
	return v
}

func drawValue(t *rapid.T) plan.Value {
	v := drawScalar(t)
	for range rapid.IntRange(0, 2).Draw(t, "depth") {
		inner := v.Type
		switch rapid.IntRange(0, 4).Draw(t, "nesting") {
		case 0:
			list := plan.Value{Type: plan.ListOf(v.Type)}
			for range rapid.IntRange(0, 3).Draw(t, "length") {
				list.Children = append(list.Children, drawLike(t, v))
			}
			v = list
		case 1:
			v = plan.Value{Type: plan.Type{ID: "ARRAY", Child: &inner, Size: 2}, Children: []plan.Value{v, drawLike(t, v)}}
		case 2:
			v = plan.Value{
				Type:     plan.StructOf(plan.Field{Name: "a", Type: v.Type}, plan.Field{Name: `b "c`, Type: plan.Integer}),
				Children: []plan.Value{drawLike(t, v), plan.Int(plan.Integer, 7)},
			}
		case 3:
			entry := plan.StructOf(plan.Field{Name: "key", Type: plan.Integer}, plan.Field{Name: "value", Type: v.Type})
			m := plan.Value{Type: plan.Type{ID: "MAP", Child: &entry}}
			for i := range rapid.IntRange(0, 2).Draw(t, "entries") {
				m.Children = append(m.Children, plan.Value{Type: entry, Children: []plan.Value{plan.Int(plan.Integer, int64(i)), drawLike(t, v)}})
			}
			v = m
		case 4:
			typ := plan.Type{ID: "UNION", Fields: []plan.Field{{Name: "n", Type: plan.Integer}, {Name: "v", Type: v.Type}}}
			v = plan.Value{Type: typ, Member: 1, Children: []plan.Value{v}}
		}
	}
	return v
}

// TestValues prints constants, lets DuckDB fold and serialize them, and reads them back.
func TestValues(t *testing.T) {
	in := open(t, "")
	rapid.Check(t, func(t *rapid.T) {
		v := drawValue(t)
		sql, err := new(plan.Printer).Expr(&plan.Const{Value: v}, nil)
		require.NoError(t, err)
		text, err := in.planning.Plan(context.Background(), "SELECT "+sql)
		require.NoError(t, err, sql)
		root, err := plan.Decode(text)
		require.NoError(t, err, sql)
		p, ok := root.(*plan.Project)
		require.True(t, ok, sql)
		c, ok := p.Exprs[0].(*plan.Const)
		require.True(t, ok, "%s is not folded", sql)
		require.Equal(t, v.Type.String(), c.Value.Type.String(), sql)
		require.Equal(t, show(v), show(c.Value), sql)
	})
}

// show writes a value without the types, so that only what it says is compared.
func show(v plan.Value) string {
	switch {
	case v.Null:
		return "NULL"
	case v.Type.ID == "INTERVAL":
		return fmt.Sprint(v.Interval)
	case v.Children == nil:
		return v.Text
	}
	text := strconv.Itoa(v.Member) + "("
	for _, c := range v.Children {
		text += show(c) + ";"
	}
	return text + ")"
}
