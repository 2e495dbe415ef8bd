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

struct leases_params {
	struct event_base *base;
	struct redis *redis;
	const struct conf *conf;
	const char *worker_id;
	/* The lease of the account now lasts until then (CLOCK_BOOTTIME). */
	void (*on_renewed)(void *arg, const struct uuid *id,
	    int64_t deadline_boot_msecs);
	/* Kill first; the lease is no longer in the table. */
	void (*on_lost)(void *arg, const struct uuid *id, enum lease_end how);
	/* A release was answered (or nobody will answer it). */
	void (*on_released)(void *arg, const struct uuid *id);
	void *arg;
};

struct leases *leases_new(const struct leases_params *params);
void leases_free(struct leases **leases);

/* "sync:lease:{id}" with prefix. */
#define LEASE_KEY_SIZE 256
const char *lease_key(const struct redis *redis, const struct uuid *id,
    char out[LEASE_KEY_SIZE]);

/* Just won; returns the deadline. */
int64_t leases_hold(struct leases *leases, const struct uuid *id,
    int64_t sent_boot_msecs);
bool leases_has(const struct leases *leases, const struct uuid *id);
size_t leases_count(const struct leases *leases); /* held, not released */
size_t leases_releasing(const struct leases *leases);
/* Deadline of a lease, or INT64_MIN when it is not held. */
int64_t leases_deadline(const struct leases *leases, const struct uuid *id);

/* Renews all now; also called by its own timer each lease_renew. */
void leases_renew(struct leases *leases);
/* The account's children have ended: deletes the lease if it is ours. */
void leases_release(struct leases *leases, const struct uuid *id);

#endif
