/*
 * heap.h - memory that processes share until one of them writes to it.
 */
#ifndef BASE_HEAP_H
#define BASE_HEAP_H

#include <stdbool.h>

/* Under sanitizers and valgrind: memory is not what it seems, and address
 * space reaches far beyond it. */
bool heap_is_checked(void);

/*
 * Fills every hole of the heap for good, so that whatever is allocated later,
 * by children of this process too, lies close together in fresh pages.  A hole
 * lies in a page that is shared with all other children: the first child to
 * use it gets a page of its own for a few bytes.  For a process that allocates
 * nothing afterwards.
 */
void heap_settle(void);

/* Gives back to the system what was used and is not any more: heap and stack
 * below the caller.  Before a long wait. */
void heap_rest(void);

#endif
