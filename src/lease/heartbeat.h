/*
 * heartbeat.h - telling the others that this worker lives, and counting them.
 *
 * Runs in: master.  Never blocks.
 *
 * ROLE:workers:{worker_id} is the heartbeat of the contract (R-LEASE-8).  The
 * sorted set ROLE:workers holds the same ids with their expiry, so that
 * counting the living takes no scan over all keys.  ROLE:holders holds them
 * for as long as one that is not heard of any more may still have a lease.
 */
#ifndef LEASE_HEARTBEAT_H
#define LEASE_HEARTBEAT_H

#include "conf/conf.h"

#include <stdbool.h>
#include <stddef.h>

struct event_base;
struct heartbeat;
struct redis;

struct heartbeat_params {
	struct event_base *base;
	struct redis *redis;
	const struct conf *conf;
	const char *worker_id;
	const char *role; /* "sync" or "jobs" */
	/* The JSON, to be freed. */
	char *(*describe)(void *arg);
	/* Does it take its share?  One that is drained or stopping is seen,
	 * but not counted.  NULL: yes. */
	bool (*is_willing)(void *arg);
	/* The era that Redis is in ("": none), before the counts are those of
	 * this answer; may be NULL. */
	void (*on_era)(void *arg, const char *name);
	void *arg;
};

struct heartbeat *heartbeat_new(const struct heartbeat_params *params);
void heartbeat_free(struct heartbeat **heartbeat);
/* Now, and by its own timer each heartbeat_interval. */
void heartbeat_send(struct heartbeat *heartbeat);
/* Graceful stop: the others need not wait for the expiry. */
void heartbeat_end(struct heartbeat *heartbeat);

/* As of the last answer; workers is at least 1. */
size_t heartbeat_workers(const struct heartbeat *heartbeat);
size_t heartbeat_live(const struct heartbeat *heartbeat); /* |sync:live| */
/* Who may hold leases, this worker included; valid until the next answer.  None
 * when that was long ago: who came since may hold all of them. */
size_t heartbeat_holders(const struct heartbeat *heartbeat,
    const char *const **ids_r);

/* This boot and process namespace: pids compare only within it.  Where it can
 * not be known, a name that nobody else has. */
#define HEARTBEAT_BOOT_SIZE 96
const char *heartbeat_boot(void);
void heartbeat_read_boot(const char *id_file, const char *ns_file,
    char out[HEARTBEAT_BOOT_SIZE]);
/* Where a worker wrote its own; outlives its leases. */
#define HEARTBEAT_KEY_SIZE 400
const char *heartbeat_boot_key(const struct redis *redis,
    const char *worker_id, char out[HEARTBEAT_KEY_SIZE]);

#endif
