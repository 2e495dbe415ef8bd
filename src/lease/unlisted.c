/*
 * unlisted.c - which of our accounts are no longer in sync:live?
 *
 * Runs in: master.  Never blocks.
 *
 * One worker compares sync:live with PostgreSQL (keeper.c); each of the others
 * compares what it owns with sync:live.  So an account whose last event was
 * lost is noticed by its owner, and nobody reads all ids but one.
 */
#include "lease/unlisted.h"

#include "base/xmem.h"
#include "lease/leases.h"
#include "redis/redis.h"
#include "redis/scripts.h"

#include <hiredis/hiredis.h>

#include <stdlib.h>

#define BATCH 200

struct batch {
	struct leases *leases;
	void (*on_unlisted)(void *arg, const struct uuid *id);
	void *arg;
	size_t n;
	struct uuid ids[BATCH];
};

static void
unlisted_on_found(void *arg, const redisReply *reply)
{
	struct batch *batch = arg;
	size_t i;

	for (i = 0; reply != NULL && reply->type == REDIS_REPLY_ARRAY &&
	    i < reply->elements; i++) {
		long long position = reply->element[i]->integer;

		if (position >= 1 && position <= (long long)batch->n &&
		    leases_has(batch->leases, &batch->ids[position - 1]))
			batch->on_unlisted(batch->arg,
			    &batch->ids[position - 1]);
	}
	free(batch);
}

static void
unlisted_batch_send(struct redis *redis, struct batch *batch)
{
	static char texts[BATCH][UUID_TEXT_SIZE];
	const char *args[BATCH + 1];
	char live[256];
	size_t i;

	snprintf(live, sizeof(live), "%ssync:live", redis_prefix(redis));
	args[0] = live;
	for (i = 0; i < batch->n; i++)
		args[i + 1] = uuid_format(&batch->ids[i], texts[i]);
	if (batch->n == 0 ||
	    redis_eval(redis, &script_unlisted, unlisted_on_found, batch, 1,
		args, batch->n + 1) == -1)
		free(batch);
}

void
unlisted_find(struct redis *redis, struct leases *leases,
    void (*on_unlisted)(void *arg, const struct uuid *id), void *arg)
{
	struct batch *batch = NULL;
	const struct uuid *id;
	size_t at = 0;

	while ((id = leases_next(leases, &at)) != NULL) {
		if (batch == NULL) {
			batch = xcalloc(1, sizeof(*batch));
			batch->leases = leases;
			batch->on_unlisted = on_unlisted;
			batch->arg = arg;
		}
		batch->ids[batch->n++] = *id;
		if (batch->n < BATCH)
			continue;
		unlisted_batch_send(redis, batch);
		batch = NULL;
	}
	if (batch != NULL)
		unlisted_batch_send(redis, batch);
}
