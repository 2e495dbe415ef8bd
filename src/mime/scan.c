/*
 * scan.c - is this body harmless for gmime?
 *
 * Runs in: children that parse.  Blocks only on the file.
 *
 * gmime limits neither the number of parts (1.3 KB each) nor the size of their
 * headers (five times their bytes), and keeps what stands before and behind
 * the parts of a multipart in memory.  So the structure is followed here first,
 * roughly: the boundaries that were declared are known, a line that is one of
 * them begins a header, and a header may declare another.  Where gmime could
 * read a declaration differently from us, every line with two dashes counts.
 */
#include "mime/scan.h"

#include "base/buf.h"
#include "base/xmem.h"

#define DECLARATION_MAX ((size_t)65536) /* header bytes looked at */
#define BOUNDARY_MAX ((size_t)250)
#define SLOTS 4096u /* of the hash table; twice the boundaries */
#define DASHES_PER_PART 5 /* lines with dashes that are no boundaries */
#define COMPARISONS_MAX ((size_t)2000000)

struct scan {
	const struct mime_limits *limits;
	struct buf names;	 /* declared boundaries, each terminated */
	uint32_t slots[SLOTS];	 /* offset in names + 1 */
	size_t n_boundaries;
	bool is_vague;		 /* a declaration we may read differently */
	bool in_header;
	struct buf header;	 /* of the part, unfolded */
	size_t header_bytes, header_lines, all_header_bytes;
	size_t parts, dashes;
	bool is_outside;	 /* of any part: a preamble or epilogue */
	size_t outside_bytes;
	bool has_begin, has_ended; /* of the outermost multipart */
	uint64_t begin, end;
};

static uint32_t
hash(const unsigned char *p, size_t len)
{
	uint32_t h = 2166136261u;

	while (len-- > 0)
		h = (h ^ *p++) * 16777619u;
	return h;
}

/* The slot where it is or would be. */
static uint32_t *
find_slot(struct scan *s, const unsigned char *p, size_t len)
{
	uint32_t at = hash(p, len) & (SLOTS - 1);
	const char *name;

	for (; s->slots[at] != 0; at = (at + 1) & (SLOTS - 1)) {
		name = s->names.data + s->slots[at] - 1;
		if (strncmp(name, (const char *)p, len) == 0 &&
		    name[len] == '\0')
			break;
	}
	return &s->slots[at];
}

static void
declare(struct scan *s, const char *name, size_t len)
{
	uint32_t *slot;

	if (len == 0 || len > BOUNDARY_MAX || s->n_boundaries >= SLOTS / 2 ||
	    memchr(name, '\0', len) != NULL) {
		s->is_vague = true;
		return;
	}
	slot = find_slot(s, (const unsigned char *)name, len);
	if (*slot != 0)
		return;
	s->n_boundaries++;
	*slot = (uint32_t)s->names.len + 1;
	buf_add(&s->names, name, len);
	buf_addc(&s->names, '\0');
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* boundary = "..." or token, anything else is vague. */
static const char *
read_declaration(struct scan *s, const char *p, const char *end)
{
	const char *start;

	while (p < end && is_blank(*p))
		p++;
	if (p == end || *p != '=') {
		s->is_vague |= p < end && *p == '*';
		return p;
	}
	for (p++; p < end && is_blank(*p); p++)
		;
	if (p < end && *p == '"') {
		for (start = ++p; p < end && *p != '"'; p++)
			s->is_vague |= *p == '\\' || *p == '\r' || *p == '\n';
		s->is_vague |= p == end || p == start || is_blank(p[-1]);
	} else {
		for (start = p; p < end && *p != ';' && !is_blank(*p); p++)
			s->is_vague |= strchr("()\"\\,<>", *p) != NULL;
	}
	declare(s, start, (size_t)(p - start));
	return p;
}

static void
end_header(struct scan *s)
{
	const char *p = buf_str(&s->header), *end = p + s->header.len;
	bool has_declared = s->header_bytes > DECLARATION_MAX;

	for (; (p = memchr(p, '=', (size_t)(end - p))) != NULL; p++) {
		const char *q = p;

		while (q > s->header.data && (is_blank(q[-1]) || q[-1] == '*' ||
		    (q[-1] >= '0' && q[-1] <= '9')))
			q--;
		if (q - s->header.data >= 8 &&
		    strncasecmp(q - 8, "boundary", 8) == 0) {
			read_declaration(s, q, end);
			has_declared = true;
		}
	}
	s->is_vague |= s->header_bytes > DECLARATION_MAX;
	s->is_outside = has_declared;
	s->in_header = false;
	s->header_bytes = s->header_lines = 0;
	buf_reset(&s->header);
}

static const char *
header_line(struct scan *s, const struct line *line)
{
	if (line_is_blank(line)) {
		end_header(s);
		return NULL;
	}
	s->header_bytes += line->len;
	s->all_header_bytes += line->len;
	s->header_lines += line->is_end;
	if (s->header_bytes <= DECLARATION_MAX)
		buf_add(&s->header, line->p, line->len);
	if (s->header_bytes > s->limits->header_bytes ||
	    s->header_lines > s->limits->header_lines ||
	    s->all_header_bytes > 8 * s->limits->header_bytes)
		return "the header of a part is too long";
	return NULL;
}

/* The delimiter of the outermost multipart: the first that was declared. */
static void
note_outermost(struct scan *s, const struct line *line, bool is_last)
{
	if (!s->has_begin) {
		s->has_begin = true;
		s->begin = line->offset;
	}
	s->end = line->offset + line->len;
	s->has_ended = is_last;
}

/* Whether the line is a boundary; *is_last_r: the closing one. */
static bool
is_boundary(struct scan *s, const struct line *line, bool *is_last_r)
{
	const unsigned char *p = line->p + 2;
	size_t len = line->len - 2;
	uint32_t found = 0;

	while (len > 0 && is_blank((char)p[len - 1]))
		len--;
	*is_last_r = false;
	if (len > 0 && len <= BOUNDARY_MAX)
		found = *find_slot(s, p, len);
	if (found == 0 && len > 2 && len <= BOUNDARY_MAX + 2 &&
	    p[len - 1] == '-' && p[len - 2] == '-') {
		found = *find_slot(s, p, len - 2);
		*is_last_r = found != 0;
	}
	if (found == 1)
		note_outermost(s, line, *is_last_r);
	return found != 0 || (s->is_vague && s->has_begin);
}

static const char *
read_line(struct scan *s, const struct line *line)
{
	bool is_last;

	if (line->is_start && line->len >= 2 && line->p[0] == '-' &&
	    line->p[1] == '-') {
		/* gmime compares each with every boundary that is open. */
		if (++s->dashes > DASHES_PER_PART * s->limits->parts ||
		    (s->n_boundaries > s->limits->depth &&
		    s->dashes * s->n_boundaries > COMPARISONS_MAX))
			return "too many lines that look like boundaries";
		if (is_boundary(s, line, &is_last)) {
			if (s->in_header)
				end_header(s);
			s->in_header = !is_last;
			s->is_outside = is_last;
			s->outside_bytes = 0;
			if (++s->parts > s->limits->parts)
				return "too many parts";
			return NULL;
		}
	}
	if (s->in_header)
		return header_line(s, line);
	if (s->is_outside && s->has_begin &&
	    (s->outside_bytes += line->len) > s->limits->header_bytes)
		return "the text between parts is too long";
	return NULL;
}

const char *
scan_body(struct source *src, uint64_t offset, uint64_t end,
    const char *boundary, const struct mime_limits *limits,
    uint64_t *begin_r, uint64_t *end_r)
{
	struct scan s = { .limits = limits, .names = BUF_INIT,
		.header = BUF_INIT };
	unsigned char *scratch;
	const char *reason = NULL;
	struct lines lines;
	struct line line;

	scratch = src->mem != NULL ? NULL : xmalloc(SOURCE_CHUNK);
	declare(&s, boundary, strlen(boundary));
	lines_init(&lines, src, offset, end, scratch);
	while (reason == NULL && !s.has_ended && lines_next(&lines, &line))
		reason = read_line(&s, &line);
	*begin_r = s.has_begin ? s.begin : end;
	*end_r = s.has_ended ? s.end : end;
	buf_release(&s.names);
	buf_release(&s.header);
	free(scratch);
	return reason;
}
