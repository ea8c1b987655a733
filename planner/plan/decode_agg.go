package plan

import (
	"encoding/json"
	"strings"
)

// agg reads an aggregate; its bind data becomes arguments.
func (s scope) agg(v any) *Agg {
	o, class, _ := open(v)
	if class != "BOUND_AGGREGATE" {
		fail(unsupported("%s as an aggregate", class))
	}
	a := &Agg{Name: o.text("name"), T: decodeType(o.take("return_type")), Params: s.exprs(o.list("children"))}
	o.what = "aggregate " + a.Name
	switch kind := o.text("aggregate_type"); kind {
	case "NON_DISTINCT":
	case "DISTINCT":
		a.Distinct = true
	default:
		fail(unsupported("aggregate type %s", kind))
	}
	if f := o.take("filter"); f != nil {
		a.Filter = s.expr(f)
	}
	if by := o.take("order_bys"); by != nil {
		a.Order = s.orderModifier(by)
	}
	a.Params = append(a.Params, aggData(o, a.Name, a.T)...)
	a.Name = aggName(a.Name)
	o.ignore("alias")
	o.done()
	return a
}

// aggName is the name to call: the optimizer has its own sum.
func aggName(name string) string {
	if name == "sum_no_overflow" {
		return "sum"
	}
	return name
}

// aggData takes the keys that aggregates and aggregate windows share, and gives the arguments that the bind data holds.
func aggData(o *object, name string, result Type) []Expr {
	given := o.list("original_arguments")
	o.ignore("arguments", "catalog_name", "schema_name", "has_serialize")
	v, ok := o.maybe("function_data")
	if !ok {
		return nil
	}
	data := asObject(v, "bind data of "+name)
	var args []Expr
	switch name {
	case "string_agg", "listagg", "group_concat":
		if sep, ok := data.maybe("separator"); ok {
			text, ok := sep.(string)
			if !ok {
				fail(malformed("a separator is not text"))
			}
			args = append(args, &Const{Text(text)})
		}
	case "bitstring_agg":
		for _, key := range []string{"min", "max"} {
			if v, ok := data.maybe(key); ok {
				args = append(args, &Const{decodeValue(v)})
			}
		}
	case "median", "mad":
		data.ignore("quantiles", "order", "desc")
	case "approx_quantile":
		args = append(args, &Const{fractions(data, len(given) > 1 && isListType(given[1]), Float)})
	case "quantile_cont", "quantile_disc", "quantile", "reservoir_quantile":
		args = append(args, &Const{fractions(data, len(given) > 1 && isListType(given[1]), Double)})
		if size, ok := data.maybe("sample_size"); ok {
			n, ok := size.(json.Number)
			if !ok {
				fail(malformed("a sample size is %v", size))
			}
			args = append(args, &Const{Value{Type: Integer, Text: n.String()}})
		}
	}
	data.done()
	return args
}

func isListType(v any) bool { return asObject(v, "a type").fields["id"] == "LIST" }

// fractions gives the quantiles as a number or a list of numbers, those that are not values as the plain type. A negative
// one counts from the highest value.
func fractions(data *object, list bool, plain Type) Value {
	data.ignore("order")
	desc := false
	if v, ok := data.maybe("desc"); ok {
		desc, _ = v.(bool)
	}
	var values []Value
	for _, q := range data.list("quantiles") {
		var v Value
		if _, ok := q.(json.Number); ok {
			v = Value{Type: plain, Text: floatText(q)}
		} else {
			v = decodeValue(q)
		}
		if desc {
			v = fromTop(v)
		}
		values = append(values, v)
	}
	if !list && len(values) == 1 {
		return values[0]
	}
	if !list || len(values) == 0 {
		fail(unsupported("%d quantiles in one number", len(values)))
	}
	return Value{Type: ListOf(values[0].Type), Children: values}
}

// fromTop turns fraction q in descending order into what SQL calls -q; 0, which has no sign, is the highest value.
func fromTop(v Value) Value {
	switch {
	case v.Null:
	case strings.Trim(v.Text, "0.") == "":
		return Value{Type: Double, Text: "1"}
	case !strings.HasPrefix(v.Text, "-"):
		v.Text = "-" + v.Text
	}
	return v
}

var windowNames = map[string]string{
	"WINDOW_ROW_NUMBER": "row_number", "WINDOW_RANK": "rank", "WINDOW_RANK_DENSE": "dense_rank",
	"WINDOW_NTILE": "ntile", "WINDOW_PERCENT_RANK": "percent_rank", "WINDOW_CUME_DIST": "cume_dist",
	"WINDOW_FIRST_VALUE": "first_value", "WINDOW_LAST_VALUE": "last_value", "WINDOW_NTH_VALUE": "nth_value",
	"WINDOW_LEAD": "lead", "WINDOW_LAG": "lag", "WINDOW_FILL": "fill",
}

// window reads a window function.
func (s scope) window(v any) *WindowExpr {
	o, class, kind := open(v)
	if class != "BOUND_WINDOW" {
		fail(unsupported("%s as a window function", class))
	}
	w := &WindowExpr{
		T: decodeType(o.take("return_type")), Params: s.exprs(o.list("children")),
		Partitions: s.exprs(o.list("partitions")), Order: s.orders(o.list("orders")), ArgOrder: s.orders(o.list("arg_orders")),
		IgnoreNulls: o.flag("ignore_nulls"), Distinct: o.flag("distinct"),
	}
	if f := o.take("filters"); f != nil {
		w.Filter = s.expr(f)
	}
	if kind == "WINDOW_AGGREGATE" {
		name := o.text("name")
		w.Params = append(w.Params, aggData(o, name, w.T)...)
		w.Name = aggName(name)
	} else if w.Name = windowNames[kind]; w.Name == "" {
		fail(unsupported("window function %s", kind))
	}
	for _, key := range []string{"offset_expr", "default_expr"} {
		if v := o.take(key); v != nil {
			w.Params = append(w.Params, s.expr(v))
		} else if key == "offset_expr" && o.fields["default_expr"] != nil {
			w.Params = append(w.Params, &Const{Int(BigInt, 1)})
		}
	}
	w.Frame = s.frame(o)
	o.ignore("alias")
	o.done()
	return w
}

func (s scope) frame(o *object) Frame {
	var f Frame
	start, end := o.text("start"), o.text("end")
	f.Start = s.bound(&f, start, o.take("start_expr"))
	f.End = s.bound(&f, end, o.take("end_expr"))
	if f.Unit == "" {
		f.Unit = "RANGE"
	}
	switch x := o.text("exclude_clause"); x {
	case "NO_OTHER":
	case "CURRENT_ROW", "GROUP", "TIES":
		f.Exclude = strings.ReplaceAll(x, "_", " ")
	default:
		fail(unsupported("EXCLUDE %s", x))
	}
	return f
}

// bound reads one end of a frame; the words after the last "_" name the frame's unit. DuckDB has already added a RANGE
// bound's distance to the sort key, so only the second operand is what SQL says.
func (s scope) bound(f *Frame, name string, offset any) Bound {
	for _, unit := range []string{"ROWS", "RANGE", "GROUPS"} {
		if base, ok := strings.CutSuffix(name, "_"+unit); ok {
			if f.Unit != "" && f.Unit != unit {
				fail(unsupported("a frame in %s and %s", f.Unit, unit))
			}
			f.Unit, name = unit, base
		}
	}
	var b Bound
	switch name {
	case "UNBOUNDED_PRECEDING":
		return b
	case "UNBOUNDED_FOLLOWING":
		b.Kind = UnboundedFollowing
		return b
	case "CURRENT_ROW":
		b.Kind = CurrentRow
		return b
	case "EXPR_PRECEDING":
		b.Kind = Preceding
	case "EXPR_FOLLOWING":
		b.Kind = Following
	default:
		fail(unsupported("frame bound %s", name))
	}
	b.Offset = s.expr(offset)
	if f.Unit == "RANGE" {
		if wider, ok := b.Offset.(*Cast); ok && !wider.Try {
			b.Offset = wider.Child // the sum of decimals, as wide as the other bound's
		}
		sum, ok := b.Offset.(*Func)
		if !ok || len(sum.Params) != 2 || sum.Name != "+" && sum.Name != "-" {
			fail(unsupported("a RANGE bound that is not key + n"))
		}
		b.Offset = sum.Params[1]
	}
	return b
}
