/*
 * xmem.c - malloc that does not fail.
 *
 * Runs in: every process.
 */
#include "base/xmem.h"

#include "base/log.h"

#include <sysexits.h>
#include <unistd.h>

void
xmem_fail(size_t size)
{
	log_error(NULL, "out of memory asking for %zu bytes; ending", size);
	_exit(EX_OSERR);
}

void *
xmalloc(size_t size)
{
	void *p = malloc(size ? size : 1);

	if (p == NULL)
		xmem_fail(size);
	return p;
}

void *
xcalloc(size_t count, size_t size)
{
	void *p = calloc(count ? count : 1, size ? size : 1);

	if (p == NULL)
		xmem_fail(count * size);
	return p;
}

void *
xrealloc(void *old, size_t size)
{
	void *p = realloc(old, size ? size : 1);

	if (p == NULL)
		xmem_fail(size);
	return p;
}

void *
xreallocarray(void *old, size_t count, size_t size)
{
	void *p = reallocarray(old, count ? count : 1, size ? size : 1);

	if (p == NULL)
		xmem_fail(count * size);
	return p;
}

char *
xstrdup(const char *s)
{
	return xstrndup(s, strlen(s));
}

char *
xstrndup(const char *s, size_t len)
{
	char *copy = xmalloc(len + 1);

	memcpy(copy, s, len);
	copy[len] = '\0';
	return copy;
}
