/*
 * child_end.h - how a child ended, and what that means.
 *
 * Runs in: master.  Pure.
 */
#ifndef MASTER_CHILD_END_H
#define MASTER_CHILD_END_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct child;

enum child_end {
	END_WISHED,   /* the master asked for it, without complaint */
	END_NOT_MADE, /* there never was such a process */
	END_HUNG,     /* killed: did not answer in time */
	END_NONSENSE, /* killed: broke the rules of the channel */
	END_CLOSED,   /* killed: closed its channel and stayed */
	END_DEAF,     /* killed: did not read its channel */
	END_CRASHED,  /* a signal not ours, or a status nobody knows */
	/* by itself: the exit statuses of proc/kinds.h */
	END_DONE,
	END_RETRY,
	END_AUTH,
	END_FENCED,
	END_LEASE_LOST,
	END_CONFIG,
	END_MASTER_GONE,
	END_STEP_LIMIT,
	END_BUG,
	CHILD_END_COUNT
};

/* What follows for whom it worked for. */
enum end_meaning {
	MEANS_NOTHING,
	MEANS_AGAIN,	   /* another takes its place at once */
	MEANS_BACKOFF,	   /* another takes its place after a growing pause */
	MEANS_HOT_SOON,	   /* nobody's fault: another hot child in a moment */
	MEANS_HOT_BACKOFF, /* hot children wait, growing; polls go on */
	MEANS_HOT_FAILURE, /* that, and a failure of its account */
	MEANS_FAILURE,	   /* of its account */
	MEANS_NOT_OURS,	   /* another owns its account: let go */
	MEANS_JOB_LOST,	   /* an attempt of its job, which comes again */
};

/* Of a child that is gone. */
enum child_end child_end(const struct child *child);
enum end_meaning child_end_meaning(const struct child *child);
/* The kind of the failure, where it is one. */
enum err_kind child_end_failure(const struct child *child);
/* It died: the risky step it was at counts as an attempt (R-SYNC-9). */
bool child_end_is_death(const struct child *child);
/* "signal 11"; "signal 9 (nonsense: ...)". */
const char *child_end_describe(const struct child *child, char *out,
    size_t size);

#endif
