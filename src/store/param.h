/*
 * param.h - parameters of a statement in PostgreSQL's binary form.
 *
 * Private to src/store.  A batch goes to the server as one statement with an
 * array per column: nothing is quoted, nothing is parsed again.
 */
#ifndef STORE_PARAM_H
#define STORE_PARAM_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/uuid.h"

#include <stdbool.h>
#include <stdint.h>

/* Type OIDs of PostgreSQL; they never change. */
enum pg_type {
	PG_BOOL = 16,
	PG_BYTEA = 17,
	PG_INT8 = 20,
	PG_INT2 = 21,
	PG_INT4 = 23,
	PG_TEXT = 25,
	PG_TIMESTAMPTZ = 1184,
	PG_UUID = 2950,
	PG_TSVECTOR = 3614,
	PG_JSONB = 3802,
};

/* One column: an array that grows by elements. */
struct column {
	enum pg_type type;
	struct buf bytes; /* with room for the header in front */
	uint32_t n;
	bool has_null;
};

void column_init(struct column *c, enum pg_type type);
void column_release(struct column *c);
void column_reset(struct column *c);
void column_null(struct column *c);
void column_bool(struct column *c, bool v);
void column_int2(struct column *c, int16_t v);
void column_int4(struct column *c, int32_t v);
void column_int8(struct column *c, int64_t v);
/* Bent to the years 1 to 9999. */
int64_t clamp_time(int64_t secs);
/* Seconds since 1970; bent to what PostgreSQL and calendars can show. */
void column_time(struct column *c, int64_t secs);
/* Made valid UTF-8 if it is not; NULL is SQL NULL. */
void column_text(struct column *c, const char *s);
void column_utf8(struct column *c, const char *s, size_t len);
void column_bytes(struct column *c, const void *bytes, size_t len);
/* For a value built in place: its bytes are what is added to c->bytes
 * between the two. */
size_t column_begin(struct column *c);
void column_end(struct column *c, size_t mark);

#define PARAMS_MAX 64

/* Values stay where they are until the statement is sent; scalars are copied
 * into the struct. */
struct params {
	int n;
	unsigned types[PARAMS_MAX];
	const char *values[PARAMS_MAX];
	int lengths[PARAMS_MAX];
	int formats[PARAMS_MAX];
	char scalars[PARAMS_MAX][16];
};

void params_init(struct params *p);
void param_null(struct params *p, enum pg_type type);
void param_bool(struct params *p, bool v);
void param_int4(struct params *p, int32_t v);
void param_int8(struct params *p, int64_t v);
/* 0 is SQL NULL. */
void param_time(struct params *p, int64_t secs);
void param_uuid(struct params *p, const struct uuid *v); /* NULL allowed */
void param_text(struct params *p, const char *s);	 /* NULL allowed */
void param_bytes(struct params *p, const void *bytes, size_t len);
/* Text that the server casts to whatever is wanted there. */
void param_untyped(struct params *p, const char *s);
/* Writes the array's header; the column must live until it is sent. */
void param_column(struct params *p, struct column *c);
void param_null_array(struct params *p, enum pg_type type);

#endif
