/*
 * leases.h - the leases this worker holds: renewing, fencing, releasing.
 *
 * Runs in: master.  Never blocks.
 */
#ifndef LEASE_LEASES_H
#define LEASE_LEASES_H

#include "base/uuid.h"
#include "conf/conf.h"
#include "lease/deadline.h"

#include <stdbool.h>
#include <stddef.h>

struct event_base;
struct redis;
struct leases;

enum lease_end {
	LEASE_FENCED,  /* Redis says that it is not ours */
	LEASE_EXPIRED, /* Redis did not say that it still is */
};
const char *lease_end_describe(enum lease_end how);

struct leases_params {
	struct event_base *base;
	struct redis *redis;
	const struct conf *conf;
	const char *worker_id;
	/* The lease of the account now lasts until then (CLOCK_BOOTTIME). */
	void (*on_renewed)(void *arg, const struct uuid *id,
	    int64_t deadline_boot_msecs);
	/* All that ended at this moment, no longer in the table: kill for all
	 * of them before anything else is done for one. */
	void (*on_lost)(void *arg, const struct uuid *ids, size_t n,
	    enum lease_end how);
	/* A release was answered; not is_sure: nobody will answer it, and
	 * Redis may yet do it at any time. */
	void (*on_released)(void *arg, const struct uuid *id, bool is_sure);
	/* All leases that were held when a renewal began have been renewed or
	 * lost.  May be NULL. */
	void (*on_all_renewed)(void *arg);
	void *arg;
};

struct leases *leases_new(const struct leases_params *params);
void leases_free(struct leases **leases);

/* A set: live accounts that were seen without an owner who is alive; who claims
 * looks there first. */
#define ORPHANS "sync:orphans"

/* "sync:lease:{id}" with prefix. */
#define LEASE_KEY_SIZE 256
const char *lease_key(const struct redis *redis, const struct uuid *id,
    char out[LEASE_KEY_SIZE]);

/* Just won, until this deadline. */
void leases_hold(struct leases *leases, const struct uuid *id,
    int64_t deadline_boot_msecs);
/* All that are held, in no order; NULL at the end. */
const struct uuid *leases_next(const struct leases *leases, size_t *at);
bool leases_has(const struct leases *leases, const struct uuid *id);
size_t leases_count(const struct leases *leases); /* held, not released */
size_t leases_releasing(const struct leases *leases);
/* Deadline of a lease, or INT64_MIN when it is not held. */
int64_t leases_deadline(const struct leases *leases, const struct uuid *id);

/* Renews all, from the next turn of the loop on, a batch a turn; also called
 * by its own timer each lease_renew. */
void leases_renew(struct leases *leases);
/* The account's children have ended: deletes the lease if it is ours. */
void leases_release(struct leases *leases, const struct uuid *id);

#endif
