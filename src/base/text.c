/*
 * text.c - foreign bytes made fit for a text column or a log line.
 *
 * Runs in: every process.  Never blocks.
 */
#include "base/text.h"

#define REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

static bool
is_continuation(unsigned char c)
{
	return (c & 0xC0) == 0x80;
}

unsigned
text_utf8_char(const unsigned char *p, size_t len)
{
	if (len == 0)
		return 0;
	if (p[0] < 0x80)
		return 1;
	if (p[0] >= 0xC2 && p[0] <= 0xDF)
		return len >= 2 && is_continuation(p[1]) ? 2 : 0;
	if (p[0] >= 0xE0 && p[0] <= 0xEF) {
		if (len < 3 || !is_continuation(p[1]) || !is_continuation(p[2]))
			return 0;
		if (p[0] == 0xE0 && p[1] < 0xA0)
			return 0;
		if (p[0] == 0xED && p[1] > 0x9F)
			return 0;
		return 3;
	}
	if (p[0] >= 0xF0 && p[0] <= 0xF4) {
		if (len < 4 || !is_continuation(p[1]) ||
		    !is_continuation(p[2]) || !is_continuation(p[3]))
			return 0;
		if (p[0] == 0xF0 && p[1] < 0x90)
			return 0;
		if (p[0] == 0xF4 && p[1] > 0x8F)
			return 0;
		return 4;
	}
	return 0;
}

uint32_t
text_code(const unsigned char *p, unsigned n)
{
	if (n == 1)
		return p[0];
	if (n == 2)
		return (p[0] & 0x1Fu) << 6 | (p[1] & 0x3Fu);
	if (n == 3)
		return (p[0] & 0x0Fu) << 12 | (p[1] & 0x3Fu) << 6 |
		    (p[2] & 0x3Fu);
	return (p[0] & 0x07u) << 18 | (p[1] & 0x3Fu) << 12 |
	    (p[2] & 0x3Fu) << 6 | (p[3] & 0x3Fu);
}

unsigned
text_encode(char out[4], uint32_t c)
{
	unsigned n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4, i;

	if (n == 1) {
		out[0] = (char)c;
		return 1;
	}
	for (i = n - 1; i > 0; i--, c >>= 6)
		out[i] = (char)(0x80 | (c & 0x3F));
	out[0] = (char)((n == 2 ? 0xC0 : n == 3 ? 0xE0 : 0xF0) | c);
	return n;
}

bool
text_is_utf8(const char *p, size_t len)
{
	const unsigned char *u = (const unsigned char *)p;
	size_t i = 0;
	unsigned n;

	while (i < len) {
		if ((n = text_utf8_char(u + i, len - i)) == 0)
			return false;
		i += n;
	}
	return true;
}

char *
text_clean(struct arena *arena, const char *p, size_t len, size_t *len_r)
{
	const unsigned char *u = (const unsigned char *)p;
	size_t i, out = 0, bad = 0;
	unsigned n;
	char *copy;

	for (i = 0; i < len; i += n ? n : 1)
		if ((n = text_utf8_char(u + i, len - i)) == 0)
			bad++;
	copy = arena_alloc(arena, len + bad * 2 + 1);
	for (i = 0; i < len; i += n ? n : 1) {
		n = text_utf8_char(u + i, len - i);
		if (n == 0) {
			memcpy(copy + out, REPLACEMENT, 3);
			out += 3;
		} else if (u[i] != 0) {
			memcpy(copy + out, p + i, n);
			out += n;
		}
	}
	copy[out] = '\0';
	if (len_r != NULL)
		*len_r = out;
	return copy;
}

void
text_clean_line(char *out, size_t size, const char *p, size_t len)
{
	const unsigned char *u = (const unsigned char *)p;
	size_t i, used = 0;
	unsigned n;

	for (i = 0; i < len; i += n ? n : 1) {
		n = text_utf8_char(u + i, len - i);
		if (used + (n > 1 ? n : n == 0 ? 3 : 1) >= size)
			break;
		if (n == 0) {
			memcpy(out + used, REPLACEMENT, 3);
			used += 3;
		} else if (n == 1) {
			out[used++] = u[i] < 0x20 || u[i] == 0x7F ? ' ' : p[i];
		} else if (n == 2 && u[i] == 0xC2 && u[i + 1] < 0xA0) {
			out[used++] = ' '; /* C1 control characters */
		} else {
			memcpy(out + used, p + i, n);
			used += n;
		}
	}
	if (size > 0)
		out[used] = '\0';
}

size_t
text_cut(const char *p, size_t len, size_t max)
{
	if (len <= max)
		return len;
	while (max > 0 && is_continuation((unsigned char)p[max]))
		max--;
	return max;
}
