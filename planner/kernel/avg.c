// manta_avg and manta_avg_small: the last step of DuckDB's avg(), so that an average put together from partial sums
// and counts has the same bits as one computed at once. See AvgFinal for which argument types need which.
#include "kernel.h"

typedef uint64_t idx;
typedef struct {
	uint64_t lower;
	int64_t upper;
} hugeint;

extern manta_handle duckdb_create_scalar_function(void);
extern void duckdb_destroy_scalar_function(manta_handle *function);
extern void duckdb_scalar_function_set_name(manta_handle function, const char *name);
extern void duckdb_scalar_function_add_parameter(manta_handle function, manta_handle type);
extern void duckdb_scalar_function_set_return_type(manta_handle function, manta_handle type);
extern void duckdb_scalar_function_set_function(manta_handle function,
                                                void (*f)(manta_handle info, manta_handle input, manta_handle output));
extern void duckdb_scalar_function_set_error(manta_handle info, const char *error);
extern int duckdb_register_scalar_function(manta_handle connection, manta_handle function);
extern manta_handle duckdb_create_logical_type(int type);
extern void duckdb_destroy_logical_type(manta_handle *type);
extern int duckdb_get_type_id(manta_handle type);
extern int duckdb_decimal_internal_type(manta_handle type);
extern uint8_t duckdb_decimal_scale(manta_handle type);
extern idx duckdb_data_chunk_get_size(manta_handle chunk);
extern manta_handle duckdb_data_chunk_get_vector(manta_handle chunk, idx column);
extern manta_handle duckdb_vector_get_column_type(manta_handle vector);
extern void *duckdb_vector_get_data(manta_handle vector);
extern uint64_t *duckdb_vector_get_validity(manta_handle vector);
extern void duckdb_vector_ensure_validity_writable(manta_handle vector);

static bool valid(const uint64_t *mask, idx row) {
	return mask == NULL || (mask[row / 64] >> (row % 64) & 1) != 0;
}

// DuckDB's conversion of a 128-bit integer. It multiplies the upper half by 2^64 - 1, not by 2^64; the same bits
// need the same step.
static long double to_long_double(hugeint v) {
	if (v.upper == -1) {
		return -(long double)(UINT64_MAX - v.lower) - 1;
	}
	return (long double)v.lower + (long double)v.upper * (long double)UINT64_MAX;
}

// scale_of reports the power of ten that the column's 128-bit integers are multiplied by, or -1 for another type.
static double scale_of(manta_handle vector) {
	manta_handle type = duckdb_vector_get_column_type(vector);
	double scale = -1;
	if (duckdb_get_type_id(type) == TYPE_HUGEINT) {
		scale = 1;
	} else if (duckdb_get_type_id(type) == TYPE_DECIMAL && duckdb_decimal_internal_type(type) == TYPE_HUGEINT) {
		scale = 1;
		for (int i = duckdb_decimal_scale(type); i > 0; i--) {
			scale *= 10;
		}
	}
	duckdb_destroy_logical_type(&type);
	return scale;
}

static void average(manta_handle info, manta_handle input, manta_handle output, bool small) {
	manta_handle sums = duckdb_data_chunk_get_vector(input, 0), counts = duckdb_data_chunk_get_vector(input, 1);
	double scale = scale_of(sums);
	if (scale < 0) {
		duckdb_scalar_function_set_error(info, "the sum must be a HUGEINT or a DECIMAL of more than 18 digits");
		return;
	}
	const hugeint *sum = duckdb_vector_get_data(sums);
	const int64_t *count = duckdb_vector_get_data(counts);
	const uint64_t *sum_valid = duckdb_vector_get_validity(sums), *count_valid = duckdb_vector_get_validity(counts);
	double *result = duckdb_vector_get_data(output);
	uint64_t *result_valid = NULL;
	for (idx row = 0, n = duckdb_data_chunk_get_size(input); row < n; row++) {
		if (!valid(sum_valid, row) || !valid(count_valid, row) || count[row] == 0) {
			if (result_valid == NULL) {
				duckdb_vector_ensure_validity_writable(output);
				result_valid = duckdb_vector_get_validity(output);
			}
			result_valid[row / 64] &= ~((uint64_t)1 << (row % 64));
		} else if (small) {
			result[row] = (double)(int64_t)sum[row].lower / ((double)count[row] * scale);
		} else {
			result[row] = (double)(to_long_double(sum[row]) / ((long double)count[row] * (long double)scale));
		}
	}
}

static void average_large(manta_handle info, manta_handle input, manta_handle output) {
	average(info, input, output, false);
}

static void average_small(manta_handle info, manta_handle input, manta_handle output) {
	average(info, input, output, true);
}

static int register_average(manta_handle connection, const char *name,
                            void (*f)(manta_handle, manta_handle, manta_handle)) {
	manta_handle any = duckdb_create_logical_type(TYPE_ANY), bigint = duckdb_create_logical_type(TYPE_BIGINT),
	             real = duckdb_create_logical_type(TYPE_DOUBLE);
	manta_handle function = duckdb_create_scalar_function();
	duckdb_scalar_function_set_name(function, name);
	duckdb_scalar_function_add_parameter(function, any);
	duckdb_scalar_function_add_parameter(function, bigint);
	duckdb_scalar_function_set_return_type(function, real);
	duckdb_scalar_function_set_function(function, f);
	int failed = duckdb_register_scalar_function(connection, function);
	duckdb_destroy_scalar_function(&function);
	duckdb_destroy_logical_type(&any);
	duckdb_destroy_logical_type(&bigint);
	duckdb_destroy_logical_type(&real);
	return failed;
}

int manta_register_functions(manta_handle connection) {
	if (register_average(connection, "manta_avg", average_large) != 0) {
		return 1;
	}
	return register_average(connection, "manta_avg_small", average_small);
}
