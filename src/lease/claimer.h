/*
 * claimer.h - taking leases of live accounts that have no owner.
 *
 * Runs in: master.  Never blocks.
 */
#ifndef LEASE_CLAIMER_H
#define LEASE_CLAIMER_H

#include "base/uuid.h"
#include "conf/conf.h"

#include <stdbool.h>

struct claimer;
struct era;
struct event_base;
struct heartbeat;
struct leases;
struct redis;

struct claimer_params {
	struct event_base *base;
	struct redis *redis;
	const struct conf *conf;
	const char *worker_id; /* host:pid:random */
	struct leases *leases;
	struct heartbeat *heartbeat;
	const struct era *era;
	/* May this worker take more now? (drained, stopping, no database) */
	bool (*may_claim)(void *arg);
	void (*on_won)(void *arg, const struct uuid *id,
	    int64_t deadline_boot_msecs);
	/* Redis is in another era than we thought. */
	void (*on_wrong_era)(void *arg);
	void *arg;
};

struct claimer *claimer_new(const struct claimer_params *params);
void claimer_free(struct claimer **claimer);

/* A round, in so many milliseconds at the latest. */
void claimer_round_in(struct claimer *claimer, int64_t msecs);
/* The next round is one over all accounts, whoever's turn it is. */
void claimer_look(struct claimer *claimer);
/* This account has just become live: try it, later the more load we have. */
void claimer_try(struct claimer *claimer, const struct uuid *id);
/* Leave this account to others for a while. */
void claimer_avoid(struct claimer *claimer, const struct uuid *id,
    int64_t msecs);
/* The connection was lost, or nothing is wanted any more: ends the round.
 * What is won all the same while nothing may be claimed is released. */
void claimer_forget_round(struct claimer *claimer);
/* An answer may yet come that gives us leases. */
bool claimer_is_asking(const struct claimer *claimer);

#endif
