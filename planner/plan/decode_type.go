package plan

// plainTypes are the types without parameters, by DuckDB's name; those that only functions' signatures name are absent.
var plainTypes = map[string]bool{
	"BOOLEAN": true, "TINYINT": true, "SMALLINT": true, "INTEGER": true, "BIGINT": true, "HUGEINT": true,
	"UTINYINT": true, "USMALLINT": true, "UINTEGER": true, "UBIGINT": true, "UHUGEINT": true, "FLOAT": true,
	"DOUBLE": true, "VARCHAR": true, "BLOB": true, "BIT": true, "BIGNUM": true, "DATE": true, "TIME": true,
	"TIME_NS": true, "TIME WITH TIME ZONE": true, "TIMESTAMP": true, "TIMESTAMP_S": true, "TIMESTAMP_MS": true,
	"TIMESTAMP_NS": true, "TIMESTAMP WITH TIME ZONE": true, "INTERVAL": true, "UUID": true, "NULL": true, "LAMBDA": true,
}

func decodeTypes(list []any) []Type {
	out := make([]Type, len(list))
	for i, v := range list {
		out[i] = decodeType(v)
	}
	return out
}

func decodeType(v any) Type {
	o := asObject(v, "a type")
	t := Type{ID: o.text("id")}
	info := o.take("type_info")
	o.done()
	if info == nil {
		if !plainTypes[t.ID] {
			fail(unsupported("type %s", t.ID))
		}
		return t
	}
	i := asObject(info, "type "+t.ID)
	alias := i.text("alias")
	if extra := i.take("extension_info"); extra != nil {
		fail(unsupported("a modified type %s", t.ID))
	}
	switch kind := i.text("type"); kind + " " + t.ID {
	case "DECIMAL_TYPE_INFO DECIMAL":
		t.Width, t.Scale = i.integer("width"), i.integer("scale")
	case "LIST_TYPE_INFO LIST", "LIST_TYPE_INFO MAP":
		child := decodeType(i.take("child_type"))
		t.Child = &child
		if t.ID == "MAP" && len(child.Fields) != 2 {
			fail(malformed("a MAP of %s", child))
		}
	case "ARRAY_TYPE_INFO ARRAY":
		child := decodeType(i.take("child_type"))
		t.Child, t.Size = &child, i.integer("size")
	case "STRUCT_TYPE_INFO STRUCT", "STRUCT_TYPE_INFO UNION", "STRUCT_TYPE_INFO VARIANT":
		t.Fields = decodeFields(i.list("child_types"), "first", "second")
		switch t.ID {
		case "UNION": // the first is DuckDB's tag
			t.Fields = t.Fields[min(1, len(t.Fields)):]
		case "VARIANT":
			t.Fields = nil
		}
	case "ENUM_TYPE_INFO ENUM":
		i.ignore("values_count")
		for _, l := range i.list("values") {
			s, ok := l.(string)
			if !ok {
				fail(malformed("an ENUM label is not text"))
			}
			t.Labels = append(t.Labels, s)
		}
	case "STRING_TYPE_INFO VARCHAR": // the plan's functions already apply the collation
		i.ignore("collation")
	case "GENERIC_TYPE_INFO VARCHAR":
		if alias != "JSON" {
			fail(unsupported("type %s", alias))
		}
		t.Alias, alias = alias, ""
	default:
		fail(unsupported("type %s with %s", t.ID, kind))
	}
	if alias != "" {
		fail(unsupported("type %s", alias))
	}
	i.done()
	return t
}

func decodeFields(list []any, name, typ string) []Field {
	out := make([]Field, len(list))
	for i, v := range list {
		o := asObject(v, "a field")
		out[i] = Field{o.text(name), decodeType(o.take(typ))}
		o.done()
	}
	return out
}
