/*
 * heartbeat.c - telling the others that this worker lives.
 *
 * Runs in: master.  Never blocks.
 */
#include "lease/heartbeat.h"

#include "base/xmem.h"
#include "lease/loop.h"
#include "lease/redis.h"

#include <hiredis/hiredis.h>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEY_SIZE 400

struct heartbeat {
	struct heartbeat_params params;
	struct event *timer;
	size_t workers, live;
};

/* KEYS: heartbeat, index of workers, sync:live.  ARGV: id, JSON, TTL. */
static struct redis_script beat_script = {
	.name = "heartbeat",
	.source =
	    "local now = tonumber(redis.call('time')[1])\n"
	    "redis.call('set', KEYS[1], ARGV[2], 'EX', ARGV[3])\n"
	    "redis.call('zadd', KEYS[2], now + ARGV[3], ARGV[1])\n"
	    "redis.call('zremrangebyscore', KEYS[2], '-inf', now)\n"
	    "return { redis.call('zcard', KEYS[2]),\n"
	    "  redis.call('scard', KEYS[3]) }\n",
};

const char *
heartbeat_boot(void)
{
	static char boot[96];
	char id[40] = "";
	struct stat st;
	int fd;

	if (boot[0] != '\0')
		return boot;
	fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	if (fd == -1 || read(fd, id, 36) != 36)
		id[0] = '\0';
	if (fd != -1)
		close(fd);
	if (id[0] == '\0' || stat("/proc/self/ns/pid", &st) == -1)
		snprintf(boot, sizeof(boot), "unknown");
	else
		snprintf(boot, sizeof(boot), "%s/%lu", id,
		    (unsigned long)st.st_ino);
	return boot;
}

static void
on_beat(void *arg, const redisReply *reply)
{
	struct heartbeat *hb = arg;

	if (reply == NULL)
		return;
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2) {
		log_warn(NULL, "heartbeat: %s", redis_describe(reply));
		return;
	}
	hb->workers = (size_t)reply->element[0]->integer;
	hb->live = (size_t)reply->element[1]->integer;
	if (hb->params.on_counted != NULL)
		hb->params.on_counted(hb->params.arg);
}

static void
keys(const struct heartbeat *hb, char one[KEY_SIZE], char index[KEY_SIZE])
{
	const char *prefix = redis_prefix(hb->params.redis);

	snprintf(one, KEY_SIZE, "%s%s:workers:%s", prefix, hb->params.role,
	    hb->params.worker_id);
	snprintf(index, KEY_SIZE, "%s%s:workers", prefix, hb->params.role);
}

void
heartbeat_send(struct heartbeat *hb)
{
	char one[KEY_SIZE], index[KEY_SIZE], live[KEY_SIZE], ttl[24];
	const char *args[6] = { one, index, live, hb->params.worker_id };
	char *json;

	if (!redis_is_up(hb->params.redis))
		return;
	keys(hb, one, index);
	snprintf(live, sizeof(live), "%ssync:live",
	    redis_prefix(hb->params.redis));
	snprintf(ttl, sizeof(ttl), "%d", (int)hb->params.conf->heartbeat_ttl);
	json = hb->params.describe(hb->params.arg);
	args[4] = json;
	args[5] = ttl;
	redis_eval(hb->params.redis, &beat_script, on_beat, hb, 3, args, 6);
	free(json);
}

void
heartbeat_end(struct heartbeat *hb)
{
	char one[KEY_SIZE], index[KEY_SIZE];

	event_del(hb->timer);
	keys(hb, one, index);
	redis_send(hb->params.redis, NULL, NULL, "DEL %s", one);
	redis_send(hb->params.redis, NULL, NULL, "ZREM %s %s", index,
	    hb->params.worker_id);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct heartbeat *hb = arg;

	(void)fd;
	(void)what;
	event_in_msecs(hb->timer, hb->params.conf->heartbeat_interval * 1000);
	heartbeat_send(hb);
}

struct heartbeat *
heartbeat_new(const struct heartbeat_params *params)
{
	struct heartbeat *hb = xcalloc(1, sizeof(*hb));

	hb->params = *params;
	hb->workers = 1;
	hb->timer = event_new(params->base, -1, 0, on_timer, hb);
	event_in_msecs(hb->timer, params->conf->heartbeat_interval * 1000);
	return hb;
}

void
heartbeat_free(struct heartbeat **hb_p)
{
	struct heartbeat *hb = *hb_p;

	if (hb == NULL)
		return;
	*hb_p = NULL;
	event_free(hb->timer);
	free(hb);
}

size_t
heartbeat_workers(const struct heartbeat *hb)
{
	return hb->workers > 0 ? hb->workers : 1;
}

size_t
heartbeat_live(const struct heartbeat *hb)
{
	return hb->live;
}
