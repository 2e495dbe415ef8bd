/*
 * buf.c - a growing byte string.
 *
 * Runs in: every process.  Never blocks.
 */
#include "base/buf.h"

#include "base/xmem.h"

void *
buf_reserve(struct buf *b, size_t len)
{
	size_t need = b->len + len + 1;

	if (need < len)
		xmem_fail(len);
	if (need > b->cap) {
		size_t cap = b->cap ? b->cap : 64;

		while (cap < need)
			cap *= 2;
		b->data = xrealloc(b->data, cap);
		b->cap = cap;
	}
	return b->data + b->len;
}

void
buf_add(struct buf *b, const void *bytes, size_t len)
{
	char *to = buf_reserve(b, len);

	if (len > 0)
		memcpy(to, bytes, len);
	b->len += len;
	b->data[b->len] = '\0';
}

void
buf_adds(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

void
buf_addc(struct buf *b, char c)
{
	buf_add(b, &c, 1);
}

void
buf_addf(struct buf *b, const char *fmt, ...)
{
	va_list ap, again;
	int len;

	va_start(ap, fmt);
	va_copy(again, ap);
	len = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (len > 0) {
		vsnprintf(buf_reserve(b, (size_t)len), (size_t)len + 1, fmt,
		    again);
		b->len += (size_t)len;
	}
	va_end(again);
}

static void
add_be(struct buf *b, uint64_t v, size_t bytes)
{
	unsigned char *to = buf_reserve(b, bytes);
	size_t i;

	for (i = 0; i < bytes; i++)
		to[i] = (unsigned char)(v >> (8 * (bytes - 1 - i)));
	b->len += bytes;
	b->data[b->len] = '\0';
}

void
buf_add_u16be(struct buf *b, uint16_t v)
{
	add_be(b, v, 2);
}

void
buf_add_u32be(struct buf *b, uint32_t v)
{
	add_be(b, v, 4);
}

void
buf_add_u64be(struct buf *b, uint64_t v)
{
	add_be(b, v, 8);
}

void
buf_reset(struct buf *b)
{
	b->len = 0;
	if (b->data != NULL)
		b->data[0] = '\0';
}

void
buf_release(struct buf *b)
{
	free(b->data);
	b->data = NULL;
	b->len = b->cap = 0;
}

const char *
buf_str(const struct buf *b)
{
	return b->data != NULL ? b->data : "";
}
