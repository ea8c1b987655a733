// Declarations shared by the Go and C files of this package. The DuckDB functions are declared here because the
// bindings either hide them behind a build tag or offer them to Go only; the library linked by the bindings has them.
#ifndef MANTA_KERNEL_H
#define MANTA_KERNEL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

typedef void *manta_handle; // any of DuckDB's opaque handles

enum { TYPE_BIGINT = 5, TYPE_DOUBLE = 11, TYPE_HUGEINT = 16, TYPE_VARCHAR = 17, TYPE_DECIMAL = 19, TYPE_ANY = 34 }; // DUCKDB_TYPE

// The Arrow C data interface, as its specification fixes it.
struct ArrowSchema {
	const char *format;
	const char *name;
	const char *metadata;
	int64_t flags;
	int64_t n_children;
	struct ArrowSchema **children;
	struct ArrowSchema *dictionary;
	void (*release)(struct ArrowSchema *);
	void *private_data;
};

struct ArrowArray {
	int64_t length;
	int64_t null_count;
	int64_t offset;
	int64_t n_buffers;
	int64_t n_children;
	const void **buffers;
	struct ArrowArray **children;
	struct ArrowArray *dictionary;
	void (*release)(struct ArrowArray *);
	void *private_data;
};

// Arrow out.
extern manta_handle duckdb_to_arrow_schema(manta_handle options, manta_handle *types, const char **names,
                                           uint64_t count, struct ArrowSchema *out);
extern manta_handle duckdb_data_chunk_to_arrow(manta_handle options, manta_handle chunk, struct ArrowArray *out);
extern const char *duckdb_error_data_message(manta_handle error);
extern void duckdb_destroy_error_data(manta_handle *error);

// A stream that DuckDB reads: see stream.c.
struct manta_stream;
struct manta_stream *manta_stream_new(uintptr_t id, uint64_t columns);
// Sets a column: its name, the schema of a struct with this one column, and an empty array of that struct. Takes
// schema and empty. Returns an error of DuckDB, or NULL.
manta_handle manta_stream_column(struct manta_stream *s, manta_handle connection, uint64_t column, const char *name,
                                 struct ArrowSchema *schema, struct ArrowArray *empty);
void manta_stream_free(struct manta_stream *s);
// Registers the table function that reads streams. Returns 0 on success.
int manta_register_stream_function(manta_handle connection);

// Registers the table function that stands in for readers: see source.c. Returns 0 on success.
int manta_register_source_function(manta_handle connection);

// Scalar functions: see avg.c. Returns 0 on success.
int manta_register_functions(manta_handle connection);

#endif
