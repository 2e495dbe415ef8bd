/*
 * source.c - the raw bytes of a message, in memory or in a file.
 *
 * Runs in: children that parse.  Blocks only on the file.
 *
 * A file is read with pread() in small pieces, so that a message of any size
 * costs no memory and the caller's file position stays.
 */
#include "mime/source.h"

#include <errno.h>
#include <unistd.h>

static size_t
source_read_file(
    struct source *src, uint64_t offset, unsigned char *out, size_t len)
{
	size_t got = 0, i;
	ssize_t n;

	while (got < len) {
		n = pread(src->fd, out + got, len - got,
		    (off_t)(offset + got));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			src->has_failed = true;
			break;
		}
		got += (size_t)n;
	}
	if (src->is_bare_cr)
		for (i = 0; i < got; i++)
			if (out[i] == '\r')
				out[i] = '\n';
	return got;
}

size_t
source_fetch(struct source *src, uint64_t offset, void *out, size_t len)
{
	if (offset >= src->size)
		return 0;
	if (len > src->size - offset)
		len = (size_t)(src->size - offset);
	if (src->mem == NULL)
		return source_read_file(src, offset, out, len);
	memcpy(out, src->mem + offset, len);
	return len;
}

const unsigned char *
source_chunk(struct source *src, uint64_t offset, uint64_t end,
    unsigned char *scratch, size_t *len_r)
{
	if (end > src->size)
		end = src->size;
	if (offset >= end) {
		*len_r = 0;
		return scratch;
	}
	if (src->mem != NULL) {
		*len_r = (size_t)(end - offset);
		return src->mem + offset;
	}
	*len_r = source_read_file(src, offset, scratch,
	    end - offset < SOURCE_CHUNK ? (size_t)(end - offset)
					: SOURCE_CHUNK);
	return scratch;
}

void
lines_init(struct lines *l, struct source *src, uint64_t offset, uint64_t end,
    unsigned char *scratch)
{
	*l = (struct lines){ .src = src, .offset = offset, .end = end,
		.scratch = scratch };
}

/* More of the file behind what is left of the window. */
static void
source_fill(struct lines *l)
{
	size_t room, n;

	if (l->src->mem != NULL) {
		if (l->p == NULL) {
			l->p = source_chunk(l->src, l->offset, l->end, NULL,
			    &l->left);
			l->offset += l->left;
		}
		return;
	}
	if (l->left > 0 && l->p != l->scratch)
		memmove(l->scratch, l->p, l->left);
	l->p = l->scratch;
	room = SOURCE_CHUNK - l->left;
	if (l->offset >= l->end || room == 0)
		return;
	if (room > l->end - l->offset)
		room = (size_t)(l->end - l->offset);
	n = source_fetch(l->src, l->offset, l->scratch + l->left, room);
	l->left += n;
	l->offset = n == 0 ? l->end : l->offset + n;
}

bool
lines_next(struct lines *l, struct line *line)
{
	const unsigned char *eol = NULL;

	if (l->left > 0)
		eol = memchr(l->p, '\n', l->left);
	if (eol == NULL) {
		source_fill(l);
		if (l->left == 0)
			return false;
		eol = memchr(l->p, '\n', l->left);
	}
	line->p = l->p;
	line->len = eol != NULL ? (size_t)(eol - l->p) + 1 : l->left;
	line->offset = l->offset - l->left;
	line->is_start = !l->in_line;
	line->is_end = eol != NULL || l->offset >= l->end;
	l->in_line = !line->is_end;
	l->p += line->len;
	l->left -= line->len;
	return true;
}

bool
line_is_blank(const struct line *line)
{
	size_t i;

	for (i = 0; i < line->len; i++)
		if (line->p[i] != '\r' && line->p[i] != '\n' &&
		    line->p[i] != ' ' && line->p[i] != '\t')
			return false;
	return line->is_start && line->is_end;
}
