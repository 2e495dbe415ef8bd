/*
 * heap.c - memory that processes share until one of them writes to it.
 *
 * Runs in: the template of proc/spawn; heap_rest in its children.  Does not block.
 *
 * About glibc's malloc; with another one nothing breaks, children are larger.
 */
#include "config.h"

#include "base/heap.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define HOLE_MAX ((size_t)1 << 20)
#define HOLE_STEP 16	  /* malloc's own granularity */
#define HOLE_FINE 2048	  /* below this each size is tried */
#define STACK_DEPTH (1024 * 1024) /* deeper than any child has been */

bool
heap_is_checked(void)
{
#ifdef MAILHERD_SANITIZED
	return true;
#else
	const char *preload = getenv("LD_PRELOAD");

	return preload != NULL && strstr(preload, "vgpreload") != NULL;
#endif
}

/* Nobody will ever free these; the compiler must not leave the call out. */
static bool
fill_hole(size_t size)
{
	void *volatile plug = malloc(size);

	return plug != NULL;
}

void
heap_settle(void)
{
	struct rlimit before, none;
	size_t size;

	mallopt(M_TRIM_THRESHOLD, 65536);
	/* Large pieces come from the heap, whatever was freed before. */
	mallopt(M_MMAP_THRESHOLD, 131072);
	if (heap_is_checked() ||
	    getrlimit(RLIMIT_AS, &before) == -1)
		return;
	malloc_trim(0);
	/* With no more from the kernel, malloc fails when the holes are full. */
	none = before;
	none.rlim_cur = 0;
	if (setrlimit(RLIMIT_AS, &none) == -1)
		return;
	for (size = HOLE_MAX; size > 0;
	     size -= size > HOLE_FINE ? size / 2 : HOLE_STEP)
		while (fill_hole(size))
			;
	setrlimit(RLIMIT_AS, &before);
}

__attribute__((noinline)) static void
rest_stack(void)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	uintptr_t end = (here & ~(page - 1)) - page;

	/* What is below the stack's mapping is not there: ENOMEM is fine. */
	madvise((void *)(end - STACK_DEPTH), STACK_DEPTH, MADV_DONTNEED);
}

void
heap_rest(void)
{
	malloc_trim(0);
	if (!heap_is_checked())
		rest_stack();
}
