/*
 * uuencode.c - files that stand uuencoded in a plain text.
 *
 * Runs in: children that parse.  Never blocks.
 *
 * They are offered as attachments and are not text (L190).  Only what is
 * complete, from "begin" to "end" without a bad line between, counts: a text
 * that merely begins a line with "begin" stays as it is.
 */
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

/* "begin 644 name": the name, or NULL. */
static const char *
read_begin(struct arena *arena, const char *p, const char *eol)
{
	const char *q = p + 6;

	if (eol - p < 11 || memcmp(p, "begin ", 6) != 0)
		return NULL;
	while (q < eol && *q >= '0' && *q <= '7')
		q++;
	if (q - p < 9 || q - p > 10 || q == eol || *q != ' ')
		return NULL;
	q++;
	while (eol > q && (eol[-1] == '\n' || eol[-1] == ' '))
		eol--;
	return eol == q ? NULL : text_clean(arena, q, (size_t)(eol - q), NULL);
}

/* Behind "end", or NULL.  `stop_r`: where the reading ended. */
static const char *
read_lines(const char *p, const char *end, uint64_t *size, const char **stop_r)
{
	unsigned char bytes[48];
	const char *eol;
	int n = 1;

	for (*size = 0; p < end; p = eol) {
		eol = line_end(p, end);
		*stop_r = eol;
		if (n == 0 && eol - p >= 3 && memcmp(p, "end", 3) == 0 &&
		    (eol - p == 3 || p[3] == '\n' || p[3] == ' '))
			return eol;
		n = decode_uu_line(bytes, (const unsigned char *)p,
		    (size_t)(eol - p));
		if (n < 0)
			return NULL;
		*size += (uint64_t)n;
	}
	return NULL;
}

size_t
uuencode_extract(struct arena *arena, char *text, size_t len,
    struct uu_file **files)
{
	const char *p = text, *end = text + len, *eol, *name, *next, *stop;
	struct uu_file *file;
	uint64_t size;
	size_t out = 0, n_files = 0;

	while (p < end) {
		eol = line_end(p, end);
		if (*p == 'b' && n_files < FILES_MAX &&
		    (name = read_begin(arena, p, eol)) != NULL) {
			stop = eol;
			next = read_lines(eol, end, &size, &stop);
			if (next != NULL) {
				file = ARENA_NEW(arena, struct uu_file);
				*file = (struct uu_file){ name, size, *files };
				*files = file;
				n_files++;
				p = next;
				continue;
			}
			eol = stop; /* looked at already */
		}
		memmove(text + out, p, (size_t)(eol - p));
		out += (size_t)(eol - p);
		p = eol;
	}
	return out;
}
