/*
 * kinds.h - the kinds of child processes: one line each.
 */
#ifndef PROC_KINDS_H
#define PROC_KINDS_H

#include "base/banned.h"

/* symbol, name in argv and logs; what its end means: master/child_end.c */
#define CHILD_KINDS(X)         \
	X(KIND_CLERK, "clerk") \
	X(KIND_HOT, "hot")     \
	X(KIND_POOL, "pool")   \
	X(KIND_JOB, "job")     \
	X(KIND_METRICS, "metrics")

enum child_kind {
#define X(symbol, name) symbol,
	CHILD_KINDS(X)
#undef X
	    KIND_COUNT
};
const char *child_kind_name(enum child_kind kind);

/* How a child ended; its exit status.  symbol, value, name */
#define CHILD_EXITS(X)                                                        \
	X(EXIT_DONE, 0, "done")                                               \
	X(EXIT_RETRY, 10, "retry later") /* the cause was reported before */  \
	X(EXIT_AUTH, 11, "auth refused")                                      \
	X(EXIT_FENCED, 12, "fenced")                                          \
	X(EXIT_LEASE_LOST, 13, "lease lost") /* deadline passed */            \
	X(EXIT_CONFIG, 14, "configuration")                                   \
	X(EXIT_MASTER_GONE, 15, "master gone")                                \
	X(EXIT_STEP_LIMIT, 16, "step limit") /* CPU or memory of one step */  \
	X(EXIT_BUG, 17, "bug")

enum child_exit {
#define X(symbol, value, name) symbol = value,
	CHILD_EXITS(X)
#undef X
};
/* "fenced", "signal 11", "exit 99". */
const char *child_exit_describe(int wait_status, char *out, size_t size);

#endif
