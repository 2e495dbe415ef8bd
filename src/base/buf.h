/*
 * buf.h - a growing byte string, always terminated by a NUL that `len` does
 * not count.  Embed it and start with BUF_INIT.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include "base/banned.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
	char *data; /* never NULL after the first add */
	size_t len;
	size_t cap;
};

#define BUF_INIT { .data = NULL }

void buf_add(struct buf *b, const void *bytes, size_t len);
void buf_adds(struct buf *b, const char *s);
void buf_addc(struct buf *b, char c);
void buf_addf(struct buf *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Network byte order, as PostgreSQL's binary formats want. */
void buf_add_u16be(struct buf *b, uint16_t v);
void buf_add_u32be(struct buf *b, uint32_t v);
void buf_add_u64be(struct buf *b, uint64_t v);
/* Room for `len` more bytes; returns where they go.  Add to b->len yourself. */
void *buf_reserve(struct buf *b, size_t len);
/* Keeps the memory. */
void buf_reset(struct buf *b);
void buf_release(struct buf *b);
/* The string, "" when nothing was added. */
const char *buf_str(const struct buf *b);

#endif
