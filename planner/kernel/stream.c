// manta_stream(id): the table function that reads a registered stream.
//
// DuckDB's own way to read an Arrow stream from C (duckdb_arrow_scan) promises DuckDB that the stream applies the
// projections and filters pushed into the scan, and then does not tell it which: any query but SELECT * reads wrong
// columns. This function takes projections only, and applies them.
//
// A batch is handed to DuckDB in slices of a vector's size, column by column, without copying what DuckDB can use in
// place. Every column of every slice shares the ownership of its batch, because DuckDB may keep one column's vector
// longer than another's.
#include "kernel.h"
#include "_cgo_export.h"

#include <stdatomic.h>
#include <string.h>

typedef uint64_t idx;

extern manta_handle duckdb_schema_from_arrow(manta_handle connection, struct ArrowSchema *schema, manta_handle *out);
extern manta_handle duckdb_data_chunk_from_arrow(manta_handle connection, struct ArrowArray *array,
                                                 manta_handle converted, manta_handle *out);
extern void duckdb_destroy_arrow_converted_schema(manta_handle *schema);
extern void duckdb_destroy_data_chunk(manta_handle *chunk);
extern manta_handle duckdb_data_chunk_get_vector(manta_handle chunk, idx column);
extern void duckdb_data_chunk_set_size(manta_handle chunk, idx size);
extern manta_handle duckdb_vector_get_column_type(manta_handle vector);
extern void duckdb_vector_reference_vector(manta_handle to, manta_handle from);
extern idx duckdb_vector_size(void);
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
extern void duckdb_table_function_get_client_context(manta_handle info, manta_handle *out);
extern idx duckdb_client_context_get_connection_id(manta_handle context);
extern void duckdb_destroy_client_context(manta_handle *context);
extern void duckdb_connection_get_client_context(manta_handle connection, manta_handle *out);
extern manta_handle duckdb_bind_get_parameter(manta_handle info, idx index);
extern int64_t duckdb_get_int64(manta_handle value);
extern void duckdb_destroy_value(manta_handle *value);
extern void duckdb_bind_add_result_column(manta_handle info, const char *name, manta_handle type);
extern void duckdb_bind_set_bind_data(manta_handle info, void *data, void (*destroy)(void *));
extern void duckdb_bind_set_error(manta_handle info, const char *error);
extern void *duckdb_init_get_bind_data(manta_handle info);
extern void duckdb_init_set_init_data(manta_handle info, void *data, void (*destroy)(void *));
extern idx duckdb_init_get_column_count(manta_handle info);
extern idx duckdb_init_get_column_index(manta_handle info, idx column);
extern void duckdb_init_set_error(manta_handle info, const char *error);
extern void *duckdb_function_get_init_data(manta_handle info);
extern void duckdb_function_set_error(manta_handle info, const char *error);

struct column {
	char *name;
	manta_handle type;      // logical type
	manta_handle converted; // how DuckDB reads a struct of this one column
};

struct manta_stream {
	uintptr_t id; // of the Go side
	idx n;
	manta_handle connection; // the one that registered it
	idx connection_id;
	struct column columns[];
};

struct manta_stream *manta_stream_new(uintptr_t id, idx columns) {
	struct manta_stream *s = calloc(1, sizeof *s + columns * sizeof(struct column));
	s->id = id;
	s->n = columns;
	return s;
}

manta_handle manta_stream_column(struct manta_stream *s, manta_handle connection, idx i, const char *name,
                                 struct ArrowSchema *schema, struct ArrowArray *empty) {
	struct column *c = &s->columns[i];
	manta_handle context = NULL, chunk = NULL;
	duckdb_connection_get_client_context(connection, &context);
	s->connection = connection;
	s->connection_id = duckdb_client_context_get_connection_id(context);
	duckdb_destroy_client_context(&context);
	c->name = strdup(name);
	manta_handle failed = duckdb_schema_from_arrow(connection, schema, &c->converted);
	if (failed == NULL) {
		failed = duckdb_data_chunk_from_arrow(connection, empty, c->converted, &chunk);
	}
	if (failed == NULL) {
		c->type = duckdb_vector_get_column_type(duckdb_data_chunk_get_vector(chunk, 0));
	}
	if (chunk != NULL) {
		duckdb_destroy_data_chunk(&chunk);
	}
	if (schema->release != NULL) {
		schema->release(schema);
	}
	if (empty->release != NULL) {
		empty->release(empty);
	}
	return failed;
}

void manta_stream_free(struct manta_stream *s) {
	for (idx i = 0; i < s->n; i++) {
		struct column *c = &s->columns[i];
		free(c->name);
		if (c->type != NULL) {
			duckdb_destroy_logical_type(&c->type);
		}
		if (c->converted != NULL) {
			duckdb_destroy_arrow_converted_schema(&c->converted);
		}
	}
	free(s);
}

// batch is a batch of the stream, owned by the scan and by every slice that DuckDB still holds.
struct batch {
	atomic_int owners;
	struct ArrowArray array;
};

static void batch_release(struct batch *b) {
	if (b != NULL && atomic_fetch_sub(&b->owners, 1) == 1) {
		if (b->array.release != NULL) {
			b->array.release(&b->array);
		}
		free(b);
	}
}

// slice is one column of one slice, as the single child of a struct.
struct slice {
	struct batch *batch;
	struct ArrowArray child;
	struct ArrowArray *children[1];
	const void *buffers[1];
};

static void slice_release(struct ArrowArray *array) {
	struct slice *s = array->private_data;
	array->release = NULL;
	batch_release(s->batch);
	free(s);
}

static void release_nothing(struct ArrowArray *array) {
	array->release = NULL;
}

static struct ArrowArray slice_of(struct batch *b, idx column, int64_t from, int64_t rows) {
	struct slice *s = calloc(1, sizeof *s);
	s->batch = b;
	atomic_fetch_add(&b->owners, 1);
	s->child = *b->array.children[column];
	s->child.offset += from;
	s->child.length = rows;
	if (s->child.null_count != 0) {
		s->child.null_count = -1; // unknown
	}
	s->child.release = release_nothing; // the batch releases it
	s->children[0] = &s->child;
	return (struct ArrowArray){.length = rows, .n_buffers = 1, .n_children = 1, .buffers = s->buffers,
	                           .children = s->children, .release = slice_release, .private_data = s};
}

// scan is the state of one scan of a stream.
struct scan {
	struct manta_stream *stream;
	struct batch *batch; // the current one, or NULL
	int64_t at;          // its first row that was not handed out
	idx n;
	idx columns[]; // the projected ones
};

static void scan_free(void *data) {
	struct scan *scan = data;
	batch_release(scan->batch);
	free(scan);
}

static void bind(manta_handle info) {
	manta_handle value = duckdb_bind_get_parameter(info, 0), context = NULL;
	struct manta_stream *s = mantaStreamFind((uintptr_t)duckdb_get_int64(value));
	duckdb_destroy_value(&value);
	duckdb_table_function_get_client_context(info, &context);
	if (s == NULL || s->connection_id != duckdb_client_context_get_connection_id(context)) {
		duckdb_bind_set_error(info, "no stream of this number on this connection");
	} else {
		for (idx i = 0; i < s->n; i++) {
			duckdb_bind_add_result_column(info, s->columns[i].name, s->columns[i].type);
		}
		duckdb_bind_set_bind_data(info, s, NULL);
	}
	duckdb_destroy_client_context(&context);
}

static void init(manta_handle info) {
	struct manta_stream *s = duckdb_init_get_bind_data(info);
	if (mantaStreamOpen(s->id) != 0) {
		duckdb_init_set_error(info, "the view of a stream was read twice");
		return;
	}
	idx n = duckdb_init_get_column_count(info);
	struct scan *scan = calloc(1, sizeof *scan + n * sizeof(idx));
	scan->stream = s;
	scan->n = n;
	for (idx i = 0; i < n; i++) {
		scan->columns[i] = duckdb_init_get_column_index(info, i);
	}
	duckdb_init_set_init_data(info, scan, scan_free);
}

// fail takes the error and reports it.
static void fail(manta_handle info, manta_handle error) {
	duckdb_function_set_error(info, duckdb_error_data_message(error));
	duckdb_destroy_error_data(&error);
}

static void read(manta_handle info, manta_handle output) {
	struct scan *scan = duckdb_function_get_init_data(info);
	struct manta_stream *s = scan->stream;
	if (scan->batch != NULL && scan->at >= scan->batch->array.length) {
		batch_release(scan->batch);
		scan->batch = NULL;
	}
	if (scan->batch == NULL) {
		struct batch *b = calloc(1, sizeof *b);
		atomic_init(&b->owners, 1);
		if (mantaStreamNext(s->id, &b->array) != 0) {
			free(b);
			duckdb_function_set_error(info, "the stream failed"); // the Go side keeps the real error
			return;
		}
		if (b->array.release == NULL) { // the end
			free(b);
			duckdb_data_chunk_set_size(output, 0);
			return;
		}
		scan->batch = b;
		scan->at = 0;
	}
	int64_t rows = scan->batch->array.length - scan->at;
	if (rows > (int64_t)duckdb_vector_size()) {
		rows = (int64_t)duckdb_vector_size();
	}
	for (idx i = 0; i < scan->n; i++) {
		if (scan->columns[i] >= s->n) {
			continue; // a column that nobody reads, as in count(*)
		}
		struct ArrowArray array = slice_of(scan->batch, scan->columns[i], scan->at, rows);
		manta_handle chunk = NULL;
		manta_handle failed =
		    duckdb_data_chunk_from_arrow(s->connection, &array, s->columns[scan->columns[i]].converted, &chunk);
		if (array.release != NULL) {
			array.release(&array);
		}
		if (failed != NULL) {
			fail(info, failed);
			return;
		}
		duckdb_vector_reference_vector(duckdb_data_chunk_get_vector(output, i), duckdb_data_chunk_get_vector(chunk, 0));
		duckdb_destroy_data_chunk(&chunk);
	}
	duckdb_data_chunk_set_size(output, (idx)rows);
	scan->at += rows;
}

int manta_register_stream_function(manta_handle connection) {
	manta_handle bigint = duckdb_create_logical_type(TYPE_BIGINT);
	manta_handle function = duckdb_create_table_function();
	duckdb_table_function_set_name(function, "manta_stream");
	duckdb_table_function_add_parameter(function, bigint);
	duckdb_table_function_set_bind(function, bind);
	duckdb_table_function_set_init(function, init);
	duckdb_table_function_set_function(function, read);
	duckdb_table_function_supports_projection_pushdown(function, true);
	int failed = duckdb_register_table_function(connection, function);
	duckdb_destroy_table_function(&function);
	duckdb_destroy_logical_type(&bigint);
	return failed;
}
