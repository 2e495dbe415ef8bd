/*
 * xmem.h - malloc that does not fail: out of memory ends the process.
 */
#ifndef BASE_XMEM_H
#define BASE_XMEM_H

#include "base/banned.h"

#include <stddef.h>

void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size);
void *xrealloc(void *p, size_t size);
/* Like realloc(p, count * size), checked. */
void *xreallocarray(void *p, size_t count, size_t size);
char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t len);

/* Logs and ends the process with EX_OSERR. */
_Noreturn void xmem_fail(size_t size);

/*
 * For growing arrays: makes room for one more element.
 *   GROW(list->items, list->n, list->cap);
 */
#define GROW(items, n, cap)                                               \
	do {                                                              \
		if ((n) >= (cap)) {                                       \
			(cap) = (cap) ? (cap) * 2 : 8;                    \
			(items) = xreallocarray((items), (cap),           \
			    sizeof(*(items)));                            \
		}                                                         \
	} while (0)

#endif
