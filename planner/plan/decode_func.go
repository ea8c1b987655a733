package plan

import "strings"

// The functions whose bind data says something that the call must say.
var (
	datePart   = names("date_part", "datepart")
	listAggr   = names("list_aggregate", "list_aggr", "array_aggregate", "array_aggr", "aggregate")
	lambdaCall = names("list_transform", "list_apply", "array_transform", "array_apply", "apply",
		"list_filter", "array_filter", "filter", "list_reduce", "array_reduce", "reduce")
	fieldNames = names("struct_pack", "union_value") // from the return type
	aliasNames = names("struct_insert", "struct_update")
	// What these give is about the statement or the session that runs them, not about data.
	ofSession = names("current_query", "current_query_id", "current_transaction_id", "current_connection_id", "stats")
	decimalOp = names("+", "-", "*", "%", "add", "subtract", "multiply", "mod")
)

func names(list ...string) map[string]bool {
	m := map[string]bool{}
	for _, n := range list {
		m[n] = true
	}
	return m
}

// function reads a call. Whatever DuckDB keeps in the function's bind data becomes an ordinary argument.
func (s scope) function(o *object) Expr {
	f := &Func{Name: o.text("name"), T: decodeType(o.take("return_type"))}
	o.what = "function " + f.Name
	if ofSession[f.Name] {
		fail(unsupported("function %s", f.Name))
	}
	children := o.list("children")
	if f.Name == "alias" && len(children) == 1 {
		return s.aliasOf(o, children[0])
	}
	if aliasNames[f.Name] {
		for i, c := range children {
			name, _ := asObject(c, "an argument").fields["alias"].(string)
			if i == 0 {
				name = ""
			} else if name == "" {
				fail(unsupported("%s with an unnamed field", f.Name))
			}
			f.Names = append(f.Names, name)
		}
	}
	f.Params = s.exprs(children)
	if v, ok := o.maybe("function_data"); ok {
		s.bindData(f, asObject(v, "bind data of "+f.Name))
	}
	o.ignore("alias", "arguments", "original_arguments", "catalog_name", "schema_name", "has_serialize", "is_operator")
	o.done()
	return s.callable(f)
}

// bindData moves bind data into arguments.
func (s scope) bindData(f *Func, data *object) {
	switch {
	case decimalOp[f.Name]:
		data.ignore("check_overflow", "return_type", "arguments") // follow from the types
	case datePart[f.Name]:
		s.dateParts(f, data)
	case listAggr[f.Name]:
		s.listAggregate(f, data)
	case lambdaCall[f.Name]:
		s.lambdaData(f, data)
	case fieldNames[f.Name]:
		data.ignore("variable_return_type")
		if len(f.Params) > len(f.T.Fields) {
			fail(malformed("%s makes %s of %d values", f.Name, f.T, len(f.Params)))
		}
		for i := range f.Params {
			f.Names = append(f.Names, f.T.Fields[i].Name)
		}
	case f.Name == "nextval" || f.Name == "currval":
		data.ignore("sequence_create_info") // the name is an argument too
	case strings.HasPrefix(f.Name, "icu_collate_"):
		data.ignore("language", "country", "tag") // follow from the name
	default:
		data.ignore("variable_return_type") // is the return type
	}
	data.done()
}

func (s scope) dateParts(f *Func, data *object) {
	data.ignore("stype", "tz_setting", "cal_setting")
	v, ok := data.maybe("part_codes")
	if !ok {
		return
	}
	list := Value{Type: ListOf(Varchar)}
	for _, p := range asList(v, "the date parts") {
		name, ok := p.(string)
		if !ok {
			fail(malformed("a date part is not text"))
		}
		list.Children = append(list.Children, Text(strings.ToLower(name)))
	}
	f.Params = append([]Expr{&Const{list}}, f.Params...)
}

// listAggregate adds the arguments that the inner aggregate has folded.
func (s scope) listAggregate(f *Func, data *object) {
	v := data.take("bind_data")
	if v == nil {
		return
	}
	o := asObject(v, "bind data of "+f.Name)
	o.ignore("stype")
	inner := s.agg(o.take("aggr_expr"))
	o.done()
	if len(inner.Params) > 1 && len(f.Params) == 2 {
		f.Params = append(f.Params, inner.Params[1:]...)
	}
}

func (s scope) lambdaData(f *Func, data *object) {
	data.ignore("return_type")
	index, initial := data.flag("has_index"), data.flag("has_initial")
	body := data.take("lambda_expr")
	if body == nil {
		return // the list is NULL
	}
	l := &Lambda{Params: 1}
	own := 1
	if strings.HasSuffix(f.Name, "reduce") {
		l.Params = 2
		if initial {
			own = 2
		}
	}
	if index {
		l.Params++
	}
	if len(f.Params) < own {
		fail(malformed("%s with %d arguments", f.Name, len(f.Params)))
	}
	f.Params, l.Captures = f.Params[:own:own], f.Params[own:]
	l.Body = scope{d: s.d, columns: l.Params + len(l.Captures), lambda: l.Params}.expr(body)
	f.Lambda = l
}

// aliasOf is alias(x): a constant, since no alias survives printing.
func (s scope) aliasOf(o *object, child any) Expr {
	name, _ := asObject(child, "an argument").fields["alias"].(string)
	if name == "" {
		fail(unsupported("alias() of an unnamed expression"))
	}
	return &Const{Text(name)}
}

// callable replaces calls that only the optimizer may make.
func (s scope) callable(f *Func) Expr {
	if f.Name != "constant_or_null" {
		return f
	}
	if len(f.Params) < 2 {
		fail(malformed("constant_or_null with %d arguments", len(f.Params)))
	}
	c := &Case{T: f.T, Else: f.Params[0]}
	for _, p := range f.Params[1:] {
		c.Checks = append(c.Checks, CaseCheck{&Operator{IsNull, []Expr{p}, Boolean}, &Const{NullOf(f.T)}})
	}
	return c
}
