/*
 * bell.h - the Redis lists that say "there is work" (jobs:interactive, bulk).
 *
 * Runs in: master.  Never blocks.
 *
 * The jobs table is the truth, the list only the bell: an id that is lost on
 * the way is found by the next sweep.  Each queue has its own connection,
 * because a connection that waits in BRPOP can do nothing else.
 */
#ifndef LEASE_BELL_H
#define LEASE_BELL_H

#include "base/uuid.h"
#include "conf/conf.h"

#include <stdbool.h>
#include <stddef.h>

struct bell;
struct event_base;
struct redis;

struct bell_params {
	struct event_base *base;
	const struct conf *conf;
	const char *queue; /* static: "interactive" or "bulk" */
	/* Asked before each pop: is a child free? */
	bool (*has_room)(void *arg);
	void (*on_job)(void *arg, const struct uuid *job_id);
	void *arg;
};

struct bell *bell_new(const struct bell_params *params);
void bell_free(struct bell **bell);
/* Room may have appeared. */
void bell_listen(struct bell *bell);
bool bell_is_up(const struct bell *bell);

/* LPUSH; -1 when Redis is away. */
int bell_ring(struct redis *redis, const char *queue, const struct uuid *ids,
    size_t n);

#endif
