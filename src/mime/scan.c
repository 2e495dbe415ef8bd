/*
 * scan.c - is this body harmless for gmime?
 *
 * Runs in: children that parse.  Blocks only on the file.
 *
 * gmime limits neither the number of parts (1.3 KB each) nor the size of their
 * headers (five times their bytes), and keeps what stands before and behind
 * the parts of a multipart in memory.  So the structure is followed here first:
 * the multiparts that are open are known, a line that is the boundary of one
 * begins a header, and a header may open another, also with a boundary that is
 * in use already.  Where gmime could read a declaration differently from us,
 * every line with two dashes counts.
 *
 * A header that ends without an empty line is not for gmime either, which
 * takes the text for header: it is noted where the line is missing.
 */
#include "mime/scan.h"

#include "base/buf.h"
#include "base/xmem.h"
#include "mime/header.h"

#include <ctype.h>

#define DECLARATION_MAX ((size_t)65536) /* header bytes looked at */
#define BOUNDARY_MAX ((size_t)1000)
#define SLOTS 1024u /* of the hash table; twice the boundaries */
#define DASHES_PER_PART 5 /* lines with dashes that are no boundaries */
#define COMPARISONS_MAX ((size_t)2000000)

struct scan {
	const struct mime_limits *limits;
	struct buf names;	 /* declared boundaries, each terminated */
	uint32_t slots[SLOTS];	 /* offset in names + 1 */
	size_t n_boundaries;
	uint16_t n_open[SLOTS];	 /* multiparts with the boundary of the slot */
	uint16_t stack[SLOTS];	 /* slots of open multiparts, outermost first */
	size_t depth;
	uint16_t outermost;	 /* its slot */
	bool is_vague;		 /* a declaration we may read differently */
	bool in_header;
	struct buf header;	 /* of the part, unfolded */
	size_t header_bytes, header_lines, all_header_bytes;
	bool has_mime_field;	 /* in it */
	bool has_slip;		 /* the line before was no field */
	uint64_t slip;
	uint64_t header_start;
	bool is_doubtful;	 /* only gmime might take it for a header */
	struct buf stitches;
	uint64_t part;		 /* the boundary in front of it */
	size_t parts, dashes;
	bool is_outside;	 /* of any part: a preamble or epilogue */
	size_t outside_bytes;
	bool has_begin, has_ended; /* of the outermost multipart */
	uint64_t begin, end;
};

static uint32_t
scan_hash(const unsigned char *p, size_t len)
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
	uint32_t at = scan_hash(p, len) & (SLOTS - 1);
	const char *name;

	for (; s->slots[at] != 0; at = (at + 1) & (SLOTS - 1)) {
		name = s->names.data + s->slots[at] - 1;
		if (strncmp(name, (const char *)p, len) == 0 &&
		    name[len] == '\0')
			break;
	}
	return &s->slots[at];
}

/* A multipart begins inside of those that are open. */
static void
open_multipart(struct scan *s, const char *name, size_t len)
{
	uint32_t *slot;

	if (len == 0 || len > BOUNDARY_MAX || s->n_boundaries >= SLOTS / 2 ||
	    s->depth == SLOTS || memchr(name, '\0', len) != NULL) {
		s->is_vague = true;
		return;
	}
	slot = find_slot(s, (const unsigned char *)name, len);
	if (*slot == 0) {
		s->n_boundaries++;
		*slot = (uint32_t)s->names.len + 1;
		buf_add(&s->names, name, len);
		buf_addc(&s->names, '\0');
	}
	s->n_open[slot - s->slots]++;
	s->stack[s->depth++] = (uint16_t)(slot - s->slots);
}

/* Those inside of the one with this boundary end, and it with the last. */
static void
close_multiparts(struct scan *s, size_t slot, bool is_last)
{
	while (s->depth > 0 && s->stack[s->depth - 1] != slot)
		s->n_open[s->stack[--s->depth]]--;
	if (is_last && s->depth > 0)
		s->n_open[s->stack[--s->depth]]--;
}

static bool
scan_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* boundary = "..." or token, anything else is vague. */
static const char *
read_declaration(struct scan *s, const char *p, const char *end)
{
	const char *start;

	while (p < end && scan_is_blank(*p))
		p++;
	if (p == end || *p != '=') {
		s->is_vague |= p < end && *p == '*';
		return p;
	}
	for (p++; p < end && scan_is_blank(*p); p++)
		;
	if (p < end && *p == '"') {
		for (start = ++p; p < end && *p != '"'; p++)
			s->is_vague |= *p == '\\' || *p == '\r' || *p == '\n';
		s->is_vague |= p == end || p == start || scan_is_blank(p[-1]);
	} else {
		for (start = p; p < end && *p != ';' && !scan_is_blank(*p); p++)
			s->is_vague |= strchr("()\"\\,<>", *p) != NULL;
	}
	open_multipart(s, start, (size_t)(p - start));
	return p;
}

/* gmime is shown an empty line here, and not the `skip` bytes behind it. */
static void
add_stitch(struct scan *s, uint64_t offset, uint32_t skip, bool is_line)
{
	struct stitch stitch = { .offset = offset }, last;

	if (s->is_doubtful)
		return;
	if (s->stitches.len > 0) {
		s->stitches.len -= sizeof(last);
		memcpy(&last, s->stitches.data + s->stitches.len,
		    sizeof(last));
		stitch.shift = last.shift;
		if (last.offset == offset) /* both at the header's beginning */
			stitch = last;
		else
			s->stitches.len += sizeof(last);
	}
	stitch.skip += skip;
	stitch.is_line |= is_line;
	stitch.shift += (int64_t)is_line - skip;
	buf_add(&s->stitches, &stitch, sizeof(stitch));
}

static bool
has_multipart(const char *text, const char *end)
{
	for (; end - text >= 9; text++)
		if ((*text | 0x20) == 'm' &&
		    strncasecmp(text, "multipart", 9) == 0)
			return true;
	return false;
}

static void
end_header(struct scan *s)
{
	const char *p = buf_str(&s->header), *end = p + s->header.len, *q;
	bool has_declared = s->header_bytes > DECLARATION_MAX;

	if (!has_multipart(p, end))
		p = end;
	for (; (p = memchr(p, '=', (size_t)(end - p))) != NULL; p++) {
		for (q = p; q > s->header.data &&
			    (scan_is_blank(q[-1]) || q[-1] == '*' ||
				(q[-1] >= '0' && q[-1] <= '9'));
		     q--)
			;
		if (q - s->header.data >= 8 &&
		    strncasecmp(q - 8, "boundary", 8) == 0) {
			read_declaration(s, q, end);
			has_declared = true;
		}
	}
	s->is_vague |= s->header_bytes > DECLARATION_MAX;
	s->is_outside = has_declared;
	s->in_header = s->has_slip = false;
	buf_reset(&s->header);
}

static void
begin_header(struct scan *s, uint64_t offset)
{
	s->in_header = true;
	s->has_slip = s->has_mime_field = false;
	s->header_bytes = s->header_lines = 0;
	s->header_start = offset;
}

/*
 * The header ended with a line that is none, with no empty line between.  When
 * nothing of it is about MIME it may as well be text: "Note: ...".
 */
static void
end_header_at_slip(struct scan *s)
{
	if (!s->has_mime_field)
		buf_reset(&s->header);
	add_stitch(s, s->has_mime_field ? s->slip : s->header_start, 0, true);
	end_header(s);
}

/*
 * One line that is no field is a slip if a field follows, else the body
 * begins with it.  false: the header ended before this line.
 */
static bool
look_at_field(struct scan *s, const struct line *line)
{
	size_t blanks = 0, len = header_name_length(line->p, line->len);

	if (line->p[0] == ' ' || line->p[0] == '\t') {
		if (line->offset != s->header_start)
			return !s->has_slip;
		/* A field that is folded though nothing stands before it. */
		while (
		    blanks < line->len && scan_is_blank((char)line->p[blanks]))
			blanks++;
		len = header_name_length(line->p + blanks,
		    line->len - blanks);
		if (len > 0)
			add_stitch(s, line->offset, (uint32_t)blanks, false);
	}
	if (len == 0 && s->has_slip)
		return false;
	if (len == 0)
		s->slip = line->offset;
	s->has_slip = len == 0;
	s->has_mime_field |= len >= 8 && (strncasecmp((const char *)line->p +
	    blanks, "content-", 8) == 0);
	return true;
}

static const char *
header_line(struct scan *s, const struct line *line)
{
	if (line_is_blank(line)) {
		if (s->has_slip)
			end_header_at_slip(s);
		else
			end_header(s);
		return NULL;
	}
	if (line->is_start && !look_at_field(s, line)) {
		end_header_at_slip(s);
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

/* The delimiter of the outermost multipart. */
static void
note_outermost(struct scan *s, const struct line *line)
{
	if (!s->has_begin) {
		s->has_begin = true;
		s->begin = line->offset;
	}
	s->end = line->offset + line->len;
	s->has_ended = s->depth == 0;
}

/* Whether the line is the boundary of an open multipart. */
static bool
scan_is_boundary(struct scan *s, const struct line *line, bool *is_last_r)
{
	const unsigned char *p = line->p + 2;
	size_t len = line->len - 2, slot = SLOTS;

	while (len > 0 && scan_is_blank((char)p[len - 1]))
		len--;
	*is_last_r = false;
	if (len > 0 && len <= BOUNDARY_MAX)
		slot = (size_t)(find_slot(s, p, len) - s->slots);
	if ((slot == SLOTS || s->n_open[slot] == 0) && len > 2 &&
	    len <= BOUNDARY_MAX + 2 && p[len - 1] == '-' &&
	    p[len - 2] == '-') {
		slot = (size_t)(find_slot(s, p, len - 2) - s->slots);
		*is_last_r = true;
	}
	if (slot == SLOTS || s->n_open[slot] == 0)
		return false;
	close_multiparts(s, slot, *is_last_r);
	if (slot == s->outermost)
		note_outermost(s, line);
	return true;
}

/* gmime compares each with every boundary that is open. */
static bool
has_too_many_dashes(struct scan *s)
{
	size_t n = s->n_boundaries > s->depth ? s->n_boundaries : s->depth;

	return ++s->dashes > DASHES_PER_PART * s->limits->parts ||
	    (n > s->limits->depth && s->dashes * n > COMPARISONS_MAX);
}

/* gmime may take the line for a boundary: what follows counts as a part's. */
static const char *
begin_part(struct scan *s, const struct line *line, bool is_last)
{
	s->part = line->offset;
	s->is_outside = is_last;
	s->outside_bytes = 0;
	if (++s->parts > s->limits->parts)
		return "too many parts";
	if (!is_last)
		begin_header(s, line->offset + line->len);
	return NULL;
}

static const char *
dash_line(struct scan *s, const struct line *line, bool *is_boundary_r)
{
	bool is_last = false, is_open;

	if (has_too_many_dashes(s))
		return "too many lines that look like boundaries";
	if (s->in_header && s->has_slip)
		end_header_at_slip(s);
	is_open = scan_is_boundary(s, line, &is_last);
	/* The first of a multipart whose header has no empty line behind it. */
	if (!is_open && s->in_header && !s->is_doubtful &&
	    has_multipart(buf_str(&s->header),
	    s->header.data + s->header.len)) {
		add_stitch(s, line->offset, 0, true);
		end_header(s);
		is_open = scan_is_boundary(s, line, &is_last);
	}
	*is_boundary_r = is_open || (s->is_vague && s->has_begin);
	if (!*is_boundary_r)
		return NULL;
	if (s->in_header)
		end_header(s);
	s->is_doubtful = !is_open;
	return begin_part(s, line, is_last);
}

static const char *
scan_read_line(struct scan *s, const struct line *line)
{
	bool is_boundary = false;
	const char *reason = NULL;

	if (line->is_start && line->len >= 2 && line->p[0] == '-' &&
	    line->p[1] == '-')
		reason = dash_line(s, line, &is_boundary);
	if (is_boundary || reason != NULL)
		return reason;
	if (s->in_header)
		return header_line(s, line);
	if (s->is_outside && s->has_begin &&
	    (s->outside_bytes += line->len) > s->limits->header_bytes)
		return "the text between parts is too long";
	return NULL;
}

/* What gmime may see; a part that is over a limit is none of it. */
static void
scan_narrow(struct arena *arena, struct scan *s, struct view *view,
    bool is_over, uint64_t offset)
{
	if (!s->has_begin)
		view->begin = view->end;
	else
		view->begin = s->begin;
	if (s->has_ended)
		view->end = s->end;
	if (is_over && s->has_begin)
		view->end = s->in_header ? s->part : offset;
	view->n_stitches = s->stitches.len / sizeof(struct stitch);
	if (view->n_stitches > 0) {
		view->stitches = arena_alloc(arena, s->stitches.len);
		memcpy(view->stitches, s->stitches.data, s->stitches.len);
	}
	while (view->n_stitches > 0 &&
	    view->stitches[view->n_stitches - 1].offset >= view->end)
		view->n_stitches--;
}

const char *
scan_body(struct arena *arena, struct view *view, const char *boundary,
    const struct mime_limits *limits)
{
	struct scan *s = xcalloc(1, sizeof(*s));
	struct source *src = view->src;
	const char *reason = NULL;
	unsigned char *scratch;
	struct lines lines;
	struct line line;

	s->limits = limits;
	scratch = src->mem != NULL ? NULL : xmalloc(SOURCE_CHUNK);
	open_multipart(s, boundary, strlen(boundary));
	s->outermost = s->stack[0];
	lines_init(&lines, src, view->begin, view->end, scratch);
	while (reason == NULL && !s->has_ended && lines_next(&lines, &line))
		reason = scan_read_line(s, &line);
	if (reason == NULL && s->in_header && s->has_slip)
		end_header_at_slip(s);
	scan_narrow(arena, s, view, reason != NULL, line.offset);
	buf_release(&s->names);
	buf_release(&s->header);
	buf_release(&s->stitches);
	free(scratch);
	free(s);
	return reason;
}
