/*
 * follow.h - a running backfill, watched until it ends.
 */
#ifndef CTL_FOLLOW_H
#define CTL_FOLLOW_H

#include "ctl/ctl.h"

/*
 * On a terminal one line with bar, rate and time left, redrawn; else a line
 * now and then; with -j a JSON object a second.  0: the account is live,
 * EX_UNAVAILABLE: it ended in error, disabled or deleted; -1: err.
 */
int follow_backfill(struct ctl *ctl, const struct uuid *id, struct err *err);

/* --- the arithmetic, for tests ------------------------------------------ */

#define RATE_SAMPLES 16

/* Messages per second over the last samples. */
struct rate {
	int64_t at_msecs[RATE_SAMPLES];
	int64_t done[RATE_SAMPLES];
	size_t n, next;
};
void rate_note(struct rate *rate, int64_t now_msecs, int64_t done);
/* 0 while unknown. */
double rate_per_second(const struct rate *rate);

/* "━━━━━━━─────" of `width` columns. */
void progress_bar(struct buf *out, int64_t done, int64_t total, size_t width);

#endif
