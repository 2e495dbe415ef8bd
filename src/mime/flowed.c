/*
 * flowed.c - text/plain; format=flowed to paragraphs.
 *
 * Runs in: children that parse.  Never blocks.
 */
#include "mime/flowed.h"

struct flow_line {
	const char *p;
	size_t len;
	size_t depth; /* of quoting */
	bool is_soft; /* goes on in the next line */
};

/* Behind the line. */
static const char *
flowed_read_line(const char *p, const char *end, struct flow_line *l)
{
	const char *eol = memchr(p, '\n', (size_t)(end - p));
	const char *next = eol == NULL ? end : eol + 1;

	if (eol == NULL)
		eol = end;
	for (l->depth = 0; p < eol && *p == '>'; p++)
		l->depth++;
	if (p < eol && *p == ' ')
		p++; /* space-stuffing */
	l->p = p;
	l->len = (size_t)(eol - p);
	l->is_soft = l->len > 0 && eol[-1] == ' ' &&
	    !(l->len == 3 && memcmp(p, "-- ", 3) == 0);
	return next;
}

void
flowed_to_text(struct buf *out, const char *text, size_t len, bool delsp)
{
	const char *p = text, *end = text + len;
	bool is_joined = false;
	size_t depth = 0, i;
	struct flow_line l;

	while (p < end) {
		p = flowed_read_line(p, end, &l);
		/* A change of depth or a signature ends a paragraph. */
		if (is_joined && (l.depth != depth ||
		    (l.len == 3 && memcmp(l.p, "-- ", 3) == 0))) {
			buf_addc(out, '\n');
			is_joined = false;
		}
		if (!is_joined && l.depth > 0) {
			for (i = 0; i < l.depth; i++)
				buf_addc(out, '>');
			buf_addc(out, ' ');
		}
		buf_add(out, l.p, l.len - (l.is_soft && delsp));
		if (!l.is_soft)
			buf_addc(out, '\n');
		is_joined = l.is_soft;
		depth = l.depth;
	}
}
