/*
 * era.h - is this still the Redis that our leases are in?
 *
 * Runs in: master.  Never blocks.
 *
 * A Redis that was wiped, or came back with an old snapshot, knows nothing of
 * leases that others hold for good: who claimed there at once could own an
 * account beside its owner.  So each life of its memory has a name, the era,
 * and a claim proves the name.  In a new era nobody claims until everybody who
 * may hold a lease has been heard (a renewal there says what is lost), or the
 * longest lease has run out (R-LEASE-11).
 *
 *	sync:era	hash: name	{run id of the server}:{random}
 *			open_at		no claims before (msecs, Redis's clock)
 *			soon		not even when everybody was heard
 *			late		the longest lease of before has run out
 *			known		1: somebody who knew them was here
 *			w:{worker_id}	one that may hold leases of before:
 *					1 when it was heard, else 0
 */
#ifndef LEASE_ERA_H
#define LEASE_ERA_H

#include "conf/conf.h"

#include <stdbool.h>
#include <stddef.h>

struct era;
struct redis;

struct era_params {
	struct redis *redis;
	const struct conf *conf;
	const char *worker_id;
	/* Redis has lost its memory: renew everything, then era_confirm. */
	void (*on_new)(void *arg);
	void *arg;
};

struct era *era_new(const struct era_params *params);
void era_free(struct era **era);

/* The connection came up, or somebody saw another name than ours.  `holders`:
 * who may hold leases, as far as was known until now; they are copied. */
void era_ask(struct era *era, const char *const *holders, size_t n);
/* "" while it is not known: claim nothing. */
const char *era_name(const struct era *era);
/* An answer will come.  Without one, and without a name, ask again. */
bool era_is_asking(const struct era *era);
/* What we held has been renewed or lost, and what was lost is dead. */
void era_confirm(struct era *era);

#define ERA_KEY_SIZE 256
const char *era_key(const struct redis *redis, char out[ERA_KEY_SIZE]);

#endif
