/*
 * keeper.h - which accounts this worker owns: the face of src/lease for the
 * master of the sync role.
 *
 * Runs in: master.  Never blocks.
 *
 * Puts together heartbeat, claimer, leases and reconcile; each is a file of
 * its own and can be read alone.
 */
#ifndef LEASE_KEEPER_H
#define LEASE_KEEPER_H

#include "base/uuid.h"
#include "conf/conf.h"
#include "lease/leases.h" /* enum lease_end */

#include <stdbool.h>
#include <stddef.h>

struct event_base;
struct keeper;
struct redis;

struct keeper_params {
	struct event_base *base;
	struct redis *redis;
	const struct conf *conf;
	const char *worker_id;
	bool (*may_claim)(void *arg);
	/* The account is ours until the deadline (CLOCK_BOOTTIME). */
	void (*on_won)(void *arg, const struct uuid *id,
	    int64_t deadline_boot_msecs);
	void (*on_renewed)(void *arg, const struct uuid *id,
	    int64_t deadline_boot_msecs);
	/* Kill the children of all of them before anything else. */
	void (*on_lost)(void *arg, const struct uuid *ids, size_t n,
	    enum lease_end how);
	/* A release was answered; may be NULL. */
	void (*on_released)(void *arg);
	/* Give up so many, the least recently active first. */
	void (*on_shed)(void *arg, size_t n);
	/* Have the clerk list the live accounts: keeper_live_ids ...,
	 * keeper_live_end. */
	void (*on_reconcile)(void *arg);
	/* Held, and not in sync:live: look why; may be NULL. */
	void (*on_unlisted)(void *arg, const struct uuid *id);
	/* Heartbeat JSON, to be freed. */
	char *(*describe)(void *arg);
	void *arg;
};

struct keeper *keeper_new(const struct keeper_params *params);
void keeper_free(struct keeper **keeper);

/* From the callbacks of the Redis connection. */
void keeper_redis_up(struct keeper *keeper);
void keeper_redis_down(struct keeper *keeper);

void keeper_live_ids(struct keeper *keeper, const struct uuid *ids, size_t n);
void keeper_live_end(struct keeper *keeper, bool is_complete);

/* The account's state changed: puts sync:live right; a live one is tried. */
void keeper_set_live(struct keeper *keeper, const struct uuid *id,
    bool is_live);
/* The children have ended; this worker does not want it back for a while. */
void keeper_release(struct keeper *keeper, const struct uuid *id,
    int64_t avoid_msecs);

/* What is published on "sync:released" when leases were given up: others need
 * not wait for their next round. */
#define KEEPER_RELEASED "released"
void keeper_claim_soon(struct keeper *keeper);

/* Graceful stop, last step; keeper_is_quiet when all releases are answered. */
void keeper_stop(struct keeper *keeper);
bool keeper_is_quiet(const struct keeper *keeper);

size_t keeper_count(const struct keeper *keeper);
size_t keeper_workers(const struct keeper *keeper);
size_t keeper_live(const struct keeper *keeper);
/* Milliseconds left of the lease; < 0 when it is not held. */
int64_t keeper_lease_left(const struct keeper *keeper, const struct uuid *id);

#endif
