/*
 * bell.c - the Redis lists that say "there is work".
 *
 * Runs in: master.  Never blocks.
 */
#include "lease/bell.h"

#include "base/log.h"
#include "base/xmem.h"
#include "redis/loop.h"
#include "redis/redis.h"
#include "redis/scripts.h"

#include <hiredis/hiredis.h>

#include <stdlib.h>

/* How long one BRPOP waits; the connection counts as dead a while after. */
#define WAIT_SECS 5
#define PATIENCE_MSECS 15000
#define RING_MAX 200
#define AGAIN_MSECS 1000

struct bell {
	struct bell_params params;
	struct log log;
	struct redis *redis;
	struct event *again;
	bool is_waiting; /* a BRPOP is under way */
};

static void
on_popped(void *arg, const redisReply *reply)
{
	struct bell *bell = arg;
	struct uuid id;

	bell->is_waiting = false;
	if (reply == NULL)
		return; /* on_up listens again */
	if (reply->type == REDIS_REPLY_ERROR) {
		log_warn(&bell->log, "BRPOP: %s", reply->str);
		event_in_msecs(bell->again, AGAIN_MSECS);
		return;
	}
	if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
	    reply->element[1]->str != NULL) {
		redis_send(bell->redis, NULL, NULL, "ZREM %sjobs:%s:rung %s",
		    redis_prefix(bell->redis), bell->params.queue,
		    reply->element[1]->str);
		/* Anyone can push; what is no id is dropped. */
		if (uuid_parse(reply->element[1]->str, &id) == 0)
			bell->params.on_job(bell->params.arg, &id);
		else
			log_warn(&bell->log, "what was queued is no job id");
	}
	bell_listen(bell);
}

void
bell_listen(struct bell *bell)
{
	if (bell->is_waiting || !bell->params.has_room(bell->params.arg))
		return;
	bell->is_waiting = redis_send(bell->redis, on_popped, bell,
	    "BRPOP %sjobs:%s %d", redis_prefix(bell->redis),
	    bell->params.queue, WAIT_SECS) == 0;
}

static void
on_again(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	bell_listen(arg);
}

static void
on_up(void *arg)
{
	bell_listen(arg);
}

struct bell *
bell_new(const struct bell_params *params)
{
	struct bell *bell = xcalloc(1, sizeof(*bell));

	bell->params = *params;
	log_init(&bell->log, LOG_JOBS, "queue=%s", params->queue);
	bell->again = event_new(params->base, -1, 0, on_again, bell);
	bell->redis = redis_new(&(struct redis_params){ .base = params->base,
	    .conf = params->conf, .name = params->queue,
	    .answer_msecs = PATIENCE_MSECS, .on_up = on_up, .arg = bell });
	return bell;
}

void
bell_free(struct bell **bell_p)
{
	struct bell *bell = *bell_p;

	if (bell == NULL)
		return;
	*bell_p = NULL;
	redis_free(&bell->redis);
	event_free(bell->again);
	free(bell);
}

bool
bell_is_up(const struct bell *bell)
{
	return redis_is_up(bell->redis);
}

int
bell_ring(struct redis *redis, const char *queue, const struct uuid *ids,
    size_t n)
{
	char texts[RING_MAX][UUID_TEXT_SIZE], key[256], rung[256];
	const char *args[RING_MAX + 2] = { key, rung };
	size_t i, done, part;

	snprintf(key, sizeof(key), "%sjobs:%s", redis_prefix(redis), queue);
	snprintf(rung, sizeof(rung), "%sjobs:%s:rung", redis_prefix(redis),
	    queue);
	for (done = 0; done < n; done += part) {
		part = n - done < RING_MAX ? n - done : RING_MAX;
		for (i = 0; i < part; i++)
			args[i + 2] = uuid_format(&ids[done + i], texts[i]);
		if (redis_eval(redis, &script_push, NULL, NULL, 2, args,
			part + 2) == -1)
			return -1;
	}
	return 0;
}
