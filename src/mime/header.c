/*
 * header.c - the header of a message or part.
 *
 * Runs in: children that parse.  Blocks only on the file.
 *
 * gmime never sees this header: there the last Subject wins, From lists are
 * joined, a NUL ends a value, and group addresses in each other overflow the
 * stack.  Here the first header of a name counts, a leading mbox line is
 * skipped, and a line that is no header ends the header when no header
 * follows it (L168).  Length is no danger: only what is asked for is kept.
 */
#include "mime/header.h"

#include "base/buf.h"
#include "base/text.h"
#include "base/xmem.h"
#include "mime/charset.h"
#include "mime/detect.h"

/* With the blanks before the colon; it fits the smallest chunk. */
#define NAME_MAX_BYTES ((size_t)1024)

static const struct {
	const char *name;
	size_t len;
} names[HEADER_COUNT] = {
#define X(symbol, name) [symbol] = { name, sizeof(name) - 1 },
	HEADERS(X)
#undef X
};

struct reader {
	struct arena *arena;
	struct lines lines;
	struct headers *h;
	size_t max_address, max_bytes, kept;
	enum header_id id; /* of the field that is being read */
	bool is_full;	   /* the rest of it is left out */
	struct buf value;
};

enum header_id
header_id(const char *name, size_t len)
{
	int i;

	for (i = 0; i < HEADER_COUNT; i++)
		if (names[i].len == len &&
		    strncasecmp(names[i].name, name, len) == 0)
			break;
	return (enum header_id)i;
}

static bool
header_is_blank(unsigned char c)
{
	return c == ' ' || c == '\t';
}

static void
unfold_into(char *out, size_t *out_len, const char *raw, size_t len)
{
	size_t i, n = *out_len;

	for (i = 0; i < len; i++)
		if (raw[i] != '\r' && raw[i] != '\n' && raw[i] != '\0')
			out[n++] = raw[i];
	*out_len = n;
}

static struct field
header_trimmed(char *value, size_t len)
{
	while (len > 0 && header_is_blank((unsigned char)value[len - 1]))
		len--;
	value[len] = '\0';
	while (len > 0 && header_is_blank((unsigned char)*value)) {
		value++;
		len--;
	}
	return (struct field){ value, len };
}

struct field
header_unfold(struct arena *arena, const char *raw, size_t len)
{
	char *value = arena_alloc(arena, len + 1);
	size_t n = 0;

	unfold_into(value, &n, raw, len);
	return header_trimmed(value, n);
}

/* The same, and where its value begins. */
static size_t
name_length(const unsigned char *p, size_t max, size_t *value_at)
{
	size_t len = max < NAME_MAX_BYTES ? max : NAME_MAX_BYTES;
	size_t n = 0, i;

	while (n < len && p[n] > 0x20 && p[n] < 0x7F && p[n] != ':')
		n++;
	for (i = n; i < len && header_is_blank(p[i]); i++)
		;
	if (n == 0 || i == len || p[i] != ':')
		return 0;
	*value_at = i + 1;
	return n;
}

size_t
header_name_length(const unsigned char *line, size_t len)
{
	size_t at;

	return name_length(line, len, &at);
}

static bool
is_address_header(enum header_id id)
{
	return id <= HEADER_SENDER;
}

static void
add_value(struct reader *r, const unsigned char *p, size_t len)
{
	size_t max = is_address_header(r->id) ? r->max_address : r->max_bytes;

	if (r->id == HEADER_COUNT || r->is_full)
		return;
	if (r->kept + r->value.len + len > r->max_bytes ||
	    r->value.len + len > max) {
		r->h->is_cut = r->is_full = true;
		return;
	}
	buf_reserve(&r->value, len + 1);
	unfold_into(r->value.data, &r->value.len, (const char *)p, len);
}

static void
end_field(struct reader *r)
{
	char *copy;

	if (r->id == HEADER_COUNT)
		return;
	copy = arena_strndup(r->arena, buf_str(&r->value), r->value.len);
	r->h->fields[r->id] = header_trimmed(copy, r->value.len);
	r->kept += r->value.len;
	r->id = HEADER_COUNT;
	r->is_full = false;
	buf_reset(&r->value);
}

/* "From ann@example.org Tue Mar  3", but not "From : ann@example.org". */
static bool
is_mbox_line(const struct line *line)
{
	const unsigned char *p = line->p, *end = p + line->len;

	if (p < end && *p == '>')
		p++;
	if (end - p < 6 || memcmp(p, "From ", 5) != 0)
		return false;
	for (p += 5; p < end && header_is_blank(*p); p++)
		;
	return p < end && *p != ':';
}

/* "--b", though no blank line told the end of the header. */
static bool
header_is_boundary(const struct line *line)
{
	return line->len > 3 && memcmp(line->p, "--", 2) == 0;
}

/*
 * Whether a field follows `line`, so that it is a slip.  Lines that continue a
 * slip at the very beginning belong to it.
 */
static bool
is_header_next(const struct reader *r, const struct line *line, bool is_first)
{
	unsigned char *scratch;
	struct lines peek;
	struct line next;
	size_t at;
	bool is_header, is_behind = line->is_end;

	/* Enough of it is in the window already, nearly always. */
	if (is_behind && r->lines.left >= NAME_MAX_BYTES && !is_first)
		return name_length(r->lines.p, NAME_MAX_BYTES, &at) > 0;
	scratch = r->lines.scratch == NULL ? NULL : xmalloc(SOURCE_CHUNK);
	lines_init(&peek, r->lines.src, r->lines.offset - r->lines.left,
	    r->lines.end, scratch);
	while ((is_header = lines_next(&peek, &next)) &&
	       (!is_behind || (is_first && header_is_blank(next.p[0]) &&
				  !line_is_blank(&next))))
		is_behind = next.is_end; /* what is left of this line */
	is_header = is_header && name_length(next.p, next.len, &at) > 0;
	free(scratch);
	return is_header;
}

/* false: the line belongs to the body. */
static bool
header_read_line(struct reader *r, const struct line *line, bool is_first)
{
	size_t n, at = 0, blanks = 0;

	if (!line->is_start || (header_is_blank(line->p[0]) && !is_first)) {
		add_value(r, line->p, line->len);
		return true;
	}
	/* A first line continues nothing: it is a field all the same, */
	while (blanks < line->len && header_is_blank(line->p[blanks]))
		blanks++;
	n = name_length(line->p + blanks, line->len - blanks, &at);
	at += blanks;
	end_field(r); /* what is left of a slip belongs to no field */
	/* or what was left of one; a boundary begins a part, though. */
	if (n == 0)
		return (!is_first || blanks > 0) && !header_is_boundary(line) &&
		       is_header_next(r, line, is_first);
	r->id = header_id((const char *)line->p + blanks, n);
	if (r->id != HEADER_COUNT && r->h->fields[r->id].value != NULL)
		r->id = HEADER_COUNT; /* the first one counts */
	add_value(r, line->p + at, line->len - at);
	return true;
}

/* Ids are compared, not read: their bytes stay. */
static bool
is_for_people(enum header_id id)
{
	return id <= HEADER_DATE || id == HEADER_CONTENT_TYPE ||
	    id == HEADER_DISPOSITION || id == HEADER_LOCATION;
}

static bool
is_foreign(const struct field *f)
{
	unsigned char all = 0;
	bool has_escape;
	size_t i;

	if (f->value == NULL)
		return false;
	for (i = 0; i < f->len; i++)
		all |= (unsigned char)f->value[i];
	has_escape = memchr(f->value, '\x1b', f->len) != NULL;
	return (all >= 0x80 && !text_is_utf8(f->value, f->len)) ||
	    (has_escape && detect_escapes(f->value, f->len) !=
	    CHARSET_GUESSED);
}

void
headers_to_utf8(struct arena *arena, struct headers *h, enum charset hint)
{
	bool is_wanted[HEADER_COUNT];
	struct buf sample = BUF_INIT;
	enum charset charset;
	struct field *f;
	const char *text;
	size_t len;
	int i;

	for (i = 0; i < HEADER_COUNT; i++) {
		f = &h->fields[i];
		is_wanted[i] = is_for_people((enum header_id)i) &&
		    is_foreign(f);
		if (is_wanted[i])
			buf_add(&sample, f->value, f->len);
	}
	if (sample.len > 0) {
		charset = charset_of_raw(sample.data, sample.len, hint);
		for (i = 0; i < HEADER_COUNT; i++) {
			if (!is_wanted[i])
				continue;
			f = &h->fields[i];
			text = charset_convert(arena, charset, f->value,
			    f->len, &len);
			f->value = arena_strndup(arena, text, len);
			f->len = len;
		}
	}
	buf_release(&sample);
}

static bool
is_known_field(const struct line *line)
{
	size_t n = header_name_length(line->p, line->len);

	return n > 0 && header_id((const char *)line->p, n) != HEADER_COUNT;
}

uint64_t
headers_begin(struct source *src)
{
	unsigned char *scratch;
	uint64_t begin = 0;
	unsigned n_fields = 0;
	struct lines lines;
	struct line line;

	scratch = src->mem != NULL ? NULL : xmalloc(SOURCE_CHUNK);
	lines_init(&lines, src, 0, src->size, scratch);
	while (lines_next(&lines, &line) && n_fields < 2) {
		if (n_fields == 0 && line_is_blank(&line)) {
			begin = line.offset + line.len;
			continue;
		}
		if (begin == 0)
			break;
		/* Folds of the first field. */
		if (n_fields > 0 && header_is_blank(line.p[0]) &&
		    !line_is_blank(&line))
			continue;
		if (!is_known_field(&line))
			break;
		n_fields++;
	}
	free(scratch);
	return n_fields == 2 ? begin : 0;
}

void
headers_scan(struct arena *arena, struct source *src, uint64_t offset,
    uint64_t end, size_t max_address, size_t max_bytes, struct headers *h)
{
	struct reader r = { .arena = arena, .h = h, .value = BUF_INIT,
		.max_address = max_address, .max_bytes = max_bytes,
		.id = HEADER_COUNT };
	unsigned char *scratch;
	struct line line;
	bool is_first = true, is_mbox = false;

	*h = (struct headers){ .body = end, .end = end };
	scratch = src->mem != NULL ? NULL : xmalloc(SOURCE_CHUNK);
	lines_init(&r.lines, src, offset, end, scratch);
	while (lines_next(&r.lines, &line)) {
		if (is_first && line.offset == offset && is_mbox_line(&line)) {
			is_mbox = true;
			continue;
		}
		if (is_mbox && !line.is_start && is_first)
			continue;
		if ((line.p[0] == '\n' || line.p[0] == '\r') &&
		    line_is_blank(&line)) {
			h->body = line.offset + line.len;
			break;
		}
		if (!header_read_line(&r, &line, is_first)) {
			h->body = line.offset;
			break;
		}
		is_first = false;
	}
	end_field(&r);
	buf_release(&r.value);
	free(scratch);
}
