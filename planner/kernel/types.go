package kernel

import (
	"fmt"
	"strings"

	duckdb "github.com/duckdb/duckdb-go-bindings"
)

// plainTypes are DuckDB's names of the types without parameters.
var plainTypes = map[duckdb.Type]string{
	duckdb.TypeBoolean: "BOOLEAN", duckdb.TypeTinyInt: "TINYINT", duckdb.TypeSmallInt: "SMALLINT",
	duckdb.TypeInteger: "INTEGER", duckdb.TypeBigInt: "BIGINT", duckdb.TypeHugeInt: "HUGEINT",
	duckdb.TypeUTinyInt: "UTINYINT", duckdb.TypeUSmallInt: "USMALLINT", duckdb.TypeUInteger: "UINTEGER",
	duckdb.TypeUBigInt: "UBIGINT", duckdb.TypeUHugeInt: "UHUGEINT", duckdb.TypeFloat: "FLOAT",
	duckdb.TypeDouble: "DOUBLE", duckdb.TypeVarchar: "VARCHAR", duckdb.TypeBlob: "BLOB", duckdb.TypeBit: "BIT",
	duckdb.TypeBigNum: "BIGNUM", duckdb.TypeUUID: "UUID", duckdb.TypeDate: "DATE", duckdb.TypeTime: "TIME",
	duckdb.TypeTimeNS: "TIME_NS", duckdb.TypeTimeTZ: "TIME WITH TIME ZONE", duckdb.TypeTimestamp: "TIMESTAMP",
	duckdb.TypeTimestampS: "TIMESTAMP_S", duckdb.TypeTimestampMS: "TIMESTAMP_MS",
	duckdb.TypeTimestampNS: "TIMESTAMP_NS", duckdb.TypeTimestampTZ: "TIMESTAMP WITH TIME ZONE",
	duckdb.TypeInterval: "INTERVAL", duckdb.TypeSQLNull: `"NULL"`, duckdb.TypeVariant: "VARIANT",
	duckdb.TypeGeometry: "GEOMETRY",
}

// typeName returns DuckDB's own spelling of a type.
func typeName(t duckdb.LogicalType) string {
	if alias := duckdb.LogicalTypeGetAlias(t); alias != "" {
		return alias
	}
	child := func(c duckdb.LogicalType) string {
		defer duckdb.DestroyLogicalType(&c)
		return typeName(c)
	}
	id := duckdb.GetTypeId(t)
	switch id {
	case duckdb.TypeDecimal:
		return fmt.Sprintf("DECIMAL(%d,%d)", duckdb.DecimalWidth(t), duckdb.DecimalScale(t))
	case duckdb.TypeList:
		return child(duckdb.ListTypeChildType(t)) + "[]"
	case duckdb.TypeArray:
		return fmt.Sprintf("%s[%d]", child(duckdb.ArrayTypeChildType(t)), duckdb.ArrayTypeArraySize(t))
	case duckdb.TypeMap:
		return fmt.Sprintf("MAP(%s, %s)", child(duckdb.MapTypeKeyType(t)), child(duckdb.MapTypeValueType(t)))
	case duckdb.TypeStruct:
		members := make([]string, duckdb.StructTypeChildCount(t))
		for i := range members {
			at := duckdb.IdxT(i)
			members[i] = member(duckdb.StructTypeChildName(t, at), child(duckdb.StructTypeChildType(t, at)))
		}
		return "STRUCT(" + strings.Join(members, ", ") + ")"
	case duckdb.TypeUnion:
		members := make([]string, duckdb.UnionTypeMemberCount(t))
		for i := range members {
			at := duckdb.IdxT(i)
			members[i] = member(duckdb.UnionTypeMemberName(t, at), child(duckdb.UnionTypeMemberType(t, at)))
		}
		return "UNION(" + strings.Join(members, ", ") + ")"
	case duckdb.TypeEnum:
		values := make([]string, duckdb.EnumDictionarySize(t))
		for i := range values {
			values[i] = QuoteString(duckdb.EnumDictionaryValue(t, duckdb.IdxT(i)))
		}
		return "ENUM(" + strings.Join(values, ", ") + ")"
	}
	if name, ok := plainTypes[id]; ok {
		return name
	}
	return fmt.Sprintf("UNKNOWN(%d)", id)
}

// member is one member of a struct or union; an unnamed struct has members without names.
func member(name, typ string) string {
	if name == "" {
		return typ
	}
	return QuoteIdent(name) + " " + typ
}
