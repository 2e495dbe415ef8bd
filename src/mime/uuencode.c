/*
 * uuencode.c - files that stand uuencoded in a plain text.
 *
 * Runs in: children that parse.  Never blocks.
 *
 * They are offered as attachments and are not text (L190).  Only what is
 * complete, from "begin" to "end" without a bad line between, counts: a text
 * that merely begins a line with "begin" stays as it is.  So lines are kept
 * while they might be text, as far as there is room, and taken back at "end".
 */
#include "config.h"

#include "mime/uuencode.h"

#include "base/text.h"
#include "mime/decode.h"

#define FILES_MAX 200

static const char *
line_end(const char *p, const char *end)
{
	const char *eol = memchr(p, '\n', (size_t)(end - p));

	return eol == NULL ? end : eol + 1;
}

/* "begin 644 name", "begin-base64 644 name": the name, or NULL. */
static const char *
read_begin(struct uu *u, const char *p, const char *eol)
{
	static const char base64[] = "begin-base64 ";
	size_t len = sizeof(base64) - 1;
	const char *q = p, *mode;

	u->is_base64 = (size_t)(eol - p) > len && memcmp(p, base64, len) == 0;
	q += u->is_base64 ? len : 6;
	if (eol - q < 5 || (!u->is_base64 && memcmp(p, "begin ", 6) != 0))
		return NULL;
	for (mode = q; q < eol && *q >= '0' && *q <= '7'; q++)
		;
	if (q - mode < 3 || q - mode > 4 || q == eol || *q != ' ')
		return NULL;
	q++;
	while (eol > q && (eol[-1] == '\n' || eol[-1] == ' '))
		eol--;
	return eol == q ? NULL
	    : text_clean(u->arena, q, (size_t)(eol - q), NULL);
}

static void
uuencode_keep(struct uu *u, const char *p, size_t len)
{
	size_t room = u->max > u->out->len ? u->max - u->out->len : 0;
	size_t n = text_cut(p, len, room);

	if (n > 0)
		buf_add(u->out, p, n);
	if (u->name != NULL)
		u->is_over |= n < len;
	else
		u->is_cut |= n < len;
}

static bool
is_end_line(const struct uu *u, const char *p, size_t len)
{
	while (len > 0 && (p[len - 1] == '\n' || p[len - 1] == ' '))
		len--;
	if (u->is_base64)
		return len == 4 && memcmp(p, "====", 4) == 0;
	return u->was_empty && len == 3 && memcmp(p, "end", 3) == 0;
}

/* Decoded bytes of a line of a file; -1: it is none. */
static int
line_size(const struct uu *u, const char *p, size_t len)
{
	unsigned char bytes[48];
	size_t i, n;

	if (!u->is_base64)
		return decode_uu_line(bytes, (const unsigned char *)p, len);
	while (len > 0 && (p[len - 1] == '\n' || p[len - 1] == ' '))
		len--;
	for (n = len; n > 0 && p[n - 1] == '='; n--)
		;
	for (i = 0; i < n; i++)
		if (!decode_is_base64((unsigned char)p[i]))
			return -1;
	return len == 0 || len > 200 ? -1 : (int)(n * 3 / 4);
}

static void
uuencode_end_file(struct uu *u)
{
	struct uu_file *file = ARENA_NEW(u->arena, struct uu_file);

	*file = (struct uu_file){ u->name, u->size, u->files };
	u->files = file;
	u->n_files++;
	u->out->len = u->begin;
	u->name = NULL;
}

void
uuencode_end(struct uu *u)
{
	if (u->name != NULL)
		u->is_cut |= u->is_over;
	u->name = NULL;
}

static void
uuencode_line(struct uu *u, const char *p, size_t len)
{
	int n;

	if (is_end_line(u, p, len)) {
		uuencode_end_file(u);
		return;
	}
	if ((n = line_size(u, p, len)) < 0) {
		uuencode_end(u);
	} else {
		u->size += (uint64_t)n;
		u->was_empty = n == 0;
	}
	uuencode_keep(u, p, len);
}

/* The next line that begins with "begin", or the end. */
static const char *
find_begin(const char *p, const char *end)
{
	const char *q;

	if (end - p >= 5 && memcmp(p, "begin", 5) == 0)
		return p;
	q = memmem(p, (size_t)(end - p), "\nbegin", 6);
	return q == NULL ? end : q + 1;
}

void
uuencode_feed(struct uu *u, const char *text, size_t len)
{
	const char *p = text, *end = text + len, *next;

	for (; p < end; p = next) {
		if (u->name != NULL) {
			next = line_end(p, end);
			uuencode_line(u, p, (size_t)(next - p));
			continue;
		}
		next = u->n_files < FILES_MAX ? find_begin(p, end) : end;
		uuencode_keep(u, p, (size_t)(next - p));
		if (next == end)
			break;
		p = next;
		next = line_end(p, end);
		u->begin = u->out->len;
		u->name = read_begin(u, p, next);
		u->size = 0;
		u->was_empty = u->is_over = false;
		uuencode_keep(u, p, (size_t)(next - p));
	}
}
