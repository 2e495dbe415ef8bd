/*
 * param.c - parameters of a statement in PostgreSQL's binary form.
 *
 * Runs in: every process with a database session.  Never blocks.
 */
#include "store/param.h"

#include "base/log.h"
#include "base/text.h"

/* ndim, flags, element type, dimension, lower bound */
#define ARRAY_HEADER 20
/* 1970 to 2000, PostgreSQL's epoch */
#define PG_EPOCH_SECS ((int64_t)946684800)
/* Years 1 and 9999: what any calendar, driver and person can show. */
#define TIME_MIN ((int64_t)-62135596800)
#define TIME_MAX ((int64_t)253402300799)

static const struct {
	enum pg_type type;
	unsigned array;
} array_types[] = {
	{ PG_BOOL, 1000 },
	{ PG_BYTEA, 1001 },
	{ PG_INT8, 1016 },
	{ PG_INT2, 1005 },
	{ PG_INT4, 1007 },
	{ PG_TEXT, 1009 },
	{ PG_TIMESTAMPTZ, 1185 },
	{ PG_UUID, 2951 },
	{ PG_TSVECTOR, 3643 },
	{ PG_JSONB, 3807 },
};

static unsigned
array_type(enum pg_type type)
{
	size_t i;

	for (i = 0; i < sizeof(array_types) / sizeof(array_types[0]); i++)
		if (array_types[i].type == type)
			return array_types[i].array;
	die_bug("no array type for type %d", (int)type);
}

int64_t
clamp_time(int64_t secs)
{
	if (secs < TIME_MIN)
		return TIME_MIN;
	return secs > TIME_MAX ? TIME_MAX : secs;
}

static int64_t
time_micros(int64_t secs)
{
	return (clamp_time(secs) - PG_EPOCH_SECS) * 1000000;
}

static void
store_u32be(char *to, uint32_t v)
{
	to[0] = (char)(v >> 24);
	to[1] = (char)(v >> 16);
	to[2] = (char)(v >> 8);
	to[3] = (char)v;
}

/* --- columns ---------------------------------------------------------------- */

void
column_init(struct column *c, enum pg_type type)
{
	*c = (struct column){ .type = type };
	column_reset(c);
}

void
column_release(struct column *c)
{
	buf_release(&c->bytes);
}

void
column_reset(struct column *c)
{
	buf_reset(&c->bytes);
	memset(buf_reserve(&c->bytes, ARRAY_HEADER), 0, ARRAY_HEADER);
	c->bytes.len = ARRAY_HEADER;
	c->n = 0;
	c->has_null = false;
}

void
column_null(struct column *c)
{
	buf_add_u32be(&c->bytes, UINT32_MAX);
	c->has_null = true;
	c->n++;
}

void
column_bool(struct column *c, bool v)
{
	buf_add_u32be(&c->bytes, 1);
	buf_addc(&c->bytes, v ? 1 : 0);
	c->n++;
}

void
column_int2(struct column *c, int16_t v)
{
	buf_add_u32be(&c->bytes, 2);
	buf_add_u16be(&c->bytes, (uint16_t)v);
	c->n++;
}

void
column_int4(struct column *c, int32_t v)
{
	buf_add_u32be(&c->bytes, 4);
	buf_add_u32be(&c->bytes, (uint32_t)v);
	c->n++;
}

void
column_int8(struct column *c, int64_t v)
{
	buf_add_u32be(&c->bytes, 8);
	buf_add_u64be(&c->bytes, (uint64_t)v);
	c->n++;
}

void
column_time(struct column *c, int64_t secs)
{
	column_int8(c, time_micros(secs));
}

void
column_bytes(struct column *c, const void *bytes, size_t len)
{
	buf_add_u32be(&c->bytes, (uint32_t)len);
	buf_add(&c->bytes, bytes, len);
	c->n++;
}

void
column_text(struct column *c, const char *s)
{
	if (s == NULL)
		column_null(c);
	else
		column_utf8(c, s, strlen(s));
}

/*
 * Text is valid where it comes from; should it not be, one bad letter must
 * not cost a batch of two hundred messages (L229).
 */
void
column_utf8(struct column *c, const char *s, size_t len)
{
	struct arena *arena;

	if (text_is_utf8(s, len)) {
		column_bytes(c, s, len);
		return;
	}
	arena = arena_new("bad text");
	s = text_clean(arena, s, len, &len);
	column_bytes(c, s, len);
	arena_free(&arena);
}

size_t
column_begin(struct column *c)
{
	size_t mark = c->bytes.len;

	buf_add_u32be(&c->bytes, 0);
	return mark;
}

void
column_end(struct column *c, size_t mark)
{
	store_u32be(c->bytes.data + mark,
	    (uint32_t)(c->bytes.len - mark - 4));
	c->n++;
}

/* --- parameters --------------------------------------------------------------- */

void
params_init(struct params *p)
{
	p->n = 0;
}

static void
param_add(
    struct params *p, unsigned type, const void *value, size_t len, int format)
{
	if (p->n == PARAMS_MAX)
		die_bug("more than %d parameters", PARAMS_MAX);
	p->types[p->n] = type;
	p->values[p->n] = value;
	p->lengths[p->n] = (int)len;
	p->formats[p->n] = format;
	p->n++;
}

static void
add_scalar(struct params *p, unsigned type, uint64_t v, unsigned len)
{
	char *to;
	unsigned i;

	if (p->n == PARAMS_MAX)
		die_bug("more than %d parameters", PARAMS_MAX);
	to = p->scalars[p->n];
	for (i = 0; i < len; i++)
		to[i] = (char)(v >> (8 * (len - 1 - i)));
	param_add(p, type, to, len, 1);
}

void
param_null(struct params *p, enum pg_type type)
{
	param_add(p, type, NULL, 0, 1);
}

void
param_null_array(struct params *p, enum pg_type type)
{
	param_add(p, array_type(type), NULL, 0, 1);
}

void
param_bool(struct params *p, bool v)
{
	add_scalar(p, PG_BOOL, v, 1);
}

void
param_int4(struct params *p, int32_t v)
{
	add_scalar(p, PG_INT4, (uint32_t)v, 4);
}

void
param_int8(struct params *p, int64_t v)
{
	add_scalar(p, PG_INT8, (uint64_t)v, 8);
}

void
param_time(struct params *p, int64_t secs)
{
	if (secs == 0)
		param_null(p, PG_TIMESTAMPTZ);
	else
		add_scalar(p, PG_TIMESTAMPTZ, (uint64_t)time_micros(secs), 8);
}

void
param_uuid(struct params *p, const struct uuid *v)
{
	if (v == NULL)
		param_null(p, PG_UUID);
	else
		param_add(p, PG_UUID, v->bytes, sizeof(v->bytes), 1);
}

void
param_text(struct params *p, const char *s)
{
	param_add(p, PG_TEXT, s, s != NULL ? strlen(s) : 0, 1);
}

void
param_bytes(struct params *p, const void *bytes, size_t len)
{
	param_add(p, PG_BYTEA, bytes, len, 1);
}

void
param_untyped(struct params *p, const char *s)
{
	param_add(p, 0, s, s != NULL ? strlen(s) : 0, 0);
}

void
param_column(struct params *p, struct column *c)
{
	char *header = c->bytes.data;

	if (c->n == 0) {
		/* An empty array has no dimensions. */
		store_u32be(header, 0);
		store_u32be(header + 4, 0);
		store_u32be(header + 8, (uint32_t)c->type);
		param_add(p, array_type(c->type), header, 12, 1);
		return;
	}
	store_u32be(header, 1);
	store_u32be(header + 4, c->has_null);
	store_u32be(header + 8, (uint32_t)c->type);
	store_u32be(header + 12, c->n);
	store_u32be(header + 16, 1);
	param_add(p, array_type(c->type), header, c->bytes.len, 1);
}
