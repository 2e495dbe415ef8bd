/*
 * conns.h - the connections of an account, counted over all workers of both
 * roles: at most 2 of the sync side, 4 in all (R-CONN-1).
 *
 *	sync:conns:{id}   sorted set; score: expiry, Unix seconds by Redis's clock
 *	ROLE/WORKER/TAG   a member
 *
 * Runs in: master.  Never blocks: the answer comes by callback.  Without Redis
 * every answer is yes, and what a worker counts by itself is the only limit.
 *
 * A dead worker's connections expire with what would be its leases.  Those of
 * the sync side need not wait for that: who owns the account knows that every
 * earlier owner has closed its connections, or is dead.
 */
#ifndef LEASE_CONNS_H
#define LEASE_CONNS_H

#include "base/uuid.h"
#include "conf/conf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct conns;
struct event_base;
struct redis;

struct conns_params {
	struct event_base *base;
	struct redis *redis;
	const struct conf *conf;
	const char *worker_id;
	const char *role; /* "sync" or "jobs" */
	/* May be called before conns_take returns. */
	void (*on_answer)(void *arg, uint64_t tag, bool is_granted);
	void *arg;
};

struct conns *conns_new(const struct conns_params *params);
void conns_free(struct conns **conns);

/* `tag` is the caller's name for the connection, unique in this worker; cap:
 * what the server allows of all together, 0: the usual number. */
void conns_take(struct conns *conns, const struct uuid *account, size_t cap,
    uint64_t tag);
/* Closed, refused, or no longer wanted; no answer comes after this. */
void conns_give_back(struct conns *conns, uint64_t tag);
/* Redis is back and may have forgotten. */
void conns_tell(struct conns *conns);
size_t conns_count(const struct conns *conns);

#endif
