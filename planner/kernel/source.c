// manta_source(reader, options, files, rows, columns): a table function that stands in for a reader while a query is
// planned. DuckDB can't write down the plans of its CSV and JSON readers, but can those of a function with constant
// arguments. columns is a struct of NULLs whose names and types are those of the source; rows is an estimate. It can't
// be run.
#include "kernel.h"

typedef uint64_t idx;

extern manta_handle duckdb_create_logical_type(int type);
extern void duckdb_destroy_logical_type(manta_handle *type);
extern manta_handle duckdb_create_table_function(void);
extern void duckdb_destroy_table_function(manta_handle *function);
extern void duckdb_table_function_set_name(manta_handle function, const char *name);
extern void duckdb_table_function_add_parameter(manta_handle function, manta_handle type);
extern void duckdb_table_function_set_bind(manta_handle function, void (*f)(manta_handle info));
extern void duckdb_table_function_set_init(manta_handle function, void (*f)(manta_handle info));
extern void duckdb_table_function_set_function(manta_handle function, void (*f)(manta_handle info, manta_handle out));
extern void duckdb_table_function_supports_projection_pushdown(manta_handle function, bool pushdown);
extern int duckdb_register_table_function(manta_handle connection, manta_handle function);
extern manta_handle duckdb_bind_get_parameter(manta_handle info, idx index);
extern int64_t duckdb_get_int64(manta_handle value);
extern manta_handle duckdb_get_value_type(manta_handle value);
extern void duckdb_destroy_value(manta_handle *value);
extern void duckdb_bind_add_result_column(manta_handle info, const char *name, manta_handle type);
extern void duckdb_bind_set_cardinality(manta_handle info, idx cardinality, bool exact);
extern idx duckdb_struct_type_child_count(manta_handle type);
extern char *duckdb_struct_type_child_name(manta_handle type, idx index);
extern manta_handle duckdb_struct_type_child_type(manta_handle type, idx index);
extern void duckdb_free(void *p);
extern void duckdb_init_set_error(manta_handle info, const char *error);
extern void duckdb_function_set_error(manta_handle info, const char *error);

static void bind(manta_handle info) {
	manta_handle rows = duckdb_bind_get_parameter(info, 3), columns = duckdb_bind_get_parameter(info, 4);
	manta_handle type = duckdb_get_value_type(columns); // lives as long as the value
	idx n = duckdb_struct_type_child_count(type);
	for (idx i = 0; i < n; i++) {
		char *name = duckdb_struct_type_child_name(type, i);
		manta_handle t = duckdb_struct_type_child_type(type, i);
		duckdb_bind_add_result_column(info, name, t);
		duckdb_destroy_logical_type(&t);
		duckdb_free(name);
	}
	duckdb_bind_set_cardinality(info, (idx)duckdb_get_int64(rows), false);
	duckdb_destroy_value(&rows);
	duckdb_destroy_value(&columns);
}

static void init(manta_handle info) { duckdb_init_set_error(info, "a source that is only planned with was run"); }

static void run(manta_handle info, manta_handle out) { duckdb_function_set_error(info, "a source has no rows"); }

int manta_register_source_function(manta_handle connection) {
	manta_handle any = duckdb_create_logical_type(TYPE_ANY), text = duckdb_create_logical_type(TYPE_VARCHAR),
	             bigint = duckdb_create_logical_type(TYPE_BIGINT);
	manta_handle function = duckdb_create_table_function();
	duckdb_table_function_set_name(function, "manta_source");
	duckdb_table_function_add_parameter(function, text);
	duckdb_table_function_add_parameter(function, text);
	duckdb_table_function_add_parameter(function, any);
	duckdb_table_function_add_parameter(function, bigint);
	duckdb_table_function_add_parameter(function, any);
	duckdb_table_function_set_bind(function, bind);
	duckdb_table_function_set_init(function, init);
	duckdb_table_function_set_function(function, run);
	duckdb_table_function_supports_projection_pushdown(function, true);
	int failed = duckdb_register_table_function(connection, function);
	duckdb_destroy_table_function(&function);
	duckdb_destroy_logical_type(&any);
	duckdb_destroy_logical_type(&text);
	duckdb_destroy_logical_type(&bigint);
	return failed;
}
