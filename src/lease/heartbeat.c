/*
 * heartbeat.c - telling the others that this worker lives.
 *
 * Runs in: master.  Never blocks.
 */
#include "lease/heartbeat.h"

#include "base/clock.h"
#include "base/uuid.h"
#include "base/xmem.h"
#include "lease/era.h"
#include "redis/loop.h"
#include "redis/redis.h"
#include "redis/scripts.h"

#include <hiredis/hiredis.h>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct heartbeat {
	struct heartbeat_params params;
	struct event *timer;
	size_t workers, live;
	char **holders;
	size_t n_holders;
	int64_t answered_boot_msecs; /* the holders were told; 0: never */
};

/* So many of the fleet read the holders in each interval: all together know who
 * may hold leases (era.c adds up what each knows), and the cost does not grow
 * with the square of the workers. */
#define READERS 50

const char *
heartbeat_boot(void)
{
	static char boot[HEARTBEAT_BOOT_SIZE];

	if (boot[0] == '\0')
		heartbeat_read_boot("/proc/sys/kernel/random/boot_id",
		    "/proc/self/ns/pid", boot);
	return boot;
}

void
heartbeat_read_boot(const char *id_file, const char *ns_file,
    char out[HEARTBEAT_BOOT_SIZE])
{
	char text[UUID_TEXT_SIZE] = "";
	struct stat st;
	struct uuid id;
	int fd;

	fd = open(id_file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd == -1 || read(fd, text, UUID_TEXT_SIZE - 1) == -1)
		text[0] = '\0';
	if (fd != -1)
		close(fd);
	if (uuid_parse(text, &id) == -1 || uuid_is_null(&id) ||
	    stat(ns_file, &st) == -1)
		snprintf(out, HEARTBEAT_BOOT_SIZE, "unknown/%08x%08x",
		    arc4random(), arc4random());
	else
		snprintf(out, HEARTBEAT_BOOT_SIZE, "%s/%lu", text,
		    (unsigned long)st.st_ino);
}

static void
heartbeat_forget_holders(struct heartbeat *hb)
{
	while (hb->n_holders > 0)
		free(hb->holders[--hb->n_holders]);
	free(hb->holders);
	hb->holders = NULL;
}

static void
heartbeat_take_holders(struct heartbeat *hb, const redisReply *list)
{
	size_t i;

	heartbeat_forget_holders(hb);
	hb->holders = xcalloc(list->elements + 1, sizeof(*hb->holders));
	for (i = 0; i < list->elements; i++)
		if (list->element[i]->type == REDIS_REPLY_STRING)
			hb->holders[hb->n_holders++] =
			    xstrdup(list->element[i]->str);
}

static void
on_beat(void *arg, const redisReply *reply)
{
	struct heartbeat *hb = arg;

	if (reply == NULL)
		return;
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 4 ||
	    reply->element[2]->type != REDIS_REPLY_STRING) {
		log_warn(NULL, "heartbeat: %s", redis_describe(reply));
		return;
	}
	if (hb->params.on_era != NULL)
		hb->params.on_era(hb->params.arg, reply->element[2]->str);
	hb->workers = (size_t)reply->element[0]->integer;
	hb->live = (size_t)reply->element[1]->integer;
	if (reply->element[3]->type != REDIS_REPLY_ARRAY)
		return;
	heartbeat_take_holders(hb, reply->element[3]);
	hb->answered_boot_msecs = clock_boot_msecs();
}

static bool
shall_read_holders(const struct heartbeat *hb)
{
	return hb->answered_boot_msecs == 0 || hb->workers <= READERS ||
	    arc4random_uniform((uint32_t)hb->workers) < READERS;
}

const char *
heartbeat_boot_key(const struct redis *redis, const char *worker_id,
    char out[HEARTBEAT_KEY_SIZE])
{
	snprintf(out, HEARTBEAT_KEY_SIZE, "%ssync:boot:%s",
	    redis_prefix(redis), worker_id);
	return out;
}

static void
heartbeat_keys(const struct heartbeat *hb, char one[HEARTBEAT_KEY_SIZE],
    char index[HEARTBEAT_KEY_SIZE])
{
	const char *prefix = redis_prefix(hb->params.redis);

	snprintf(one, HEARTBEAT_KEY_SIZE, "%s%s:workers:%s", prefix, hb->params.role,
	    hb->params.worker_id);
	snprintf(index, HEARTBEAT_KEY_SIZE, "%s%s:workers", prefix, hb->params.role);
}

void
heartbeat_send(struct heartbeat *hb)
{
	const struct heartbeat_params *p = &hb->params;
	char one[HEARTBEAT_KEY_SIZE], index[HEARTBEAT_KEY_SIZE];
	char live[HEARTBEAT_KEY_SIZE], boot[HEARTBEAT_KEY_SIZE];
	char holders[HEARTBEAT_KEY_SIZE];
	char era[ERA_KEY_SIZE], ttl[24], lease_ttl[24];
	const char *args[13] = { one, index, live, boot,
		era_key(p->redis, era), holders, p->worker_id, NULL, ttl,
		heartbeat_boot(), lease_ttl, "1",
		shall_read_holders(hb) ? "1" : "0" };
	char *json;

	if (!redis_is_up(p->redis))
		return;
	heartbeat_keys(hb, one, index);
	snprintf(live, sizeof(live), "%ssync:live", redis_prefix(p->redis));
	heartbeat_boot_key(p->redis, p->worker_id, boot);
	snprintf(ttl, sizeof(ttl), "%d", (int)p->conf->heartbeat_ttl);
	snprintf(holders, sizeof(holders), "%s%s:holders",
	    redis_prefix(p->redis), p->role);
	/* It may have renewed once more after this. */
	snprintf(lease_ttl, sizeof(lease_ttl), "%d",
	    (int)(p->conf->lease_ttl + p->conf->heartbeat_interval));
	json = p->describe(p->arg);
	args[7] = json;
	if (p->is_willing != NULL && !p->is_willing(p->arg))
		args[11] = "0";
	redis_eval(p->redis, &script_heartbeat, on_beat, hb, 6, args, 13);
	free(json);
}

void
heartbeat_end(struct heartbeat *hb)
{
	char one[HEARTBEAT_KEY_SIZE], index[HEARTBEAT_KEY_SIZE];

	event_del(hb->timer);
	heartbeat_keys(hb, one, index);
	redis_send(hb->params.redis, NULL, NULL, "DEL %s", one);
	redis_send(hb->params.redis, NULL, NULL, "ZREM %s %s", index,
	    hb->params.worker_id);
}

static void
heartbeat_on_timer(evutil_socket_t fd, short what, void *arg)
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
	hb->timer = event_new(params->base, -1, 0, heartbeat_on_timer, hb);
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
	heartbeat_forget_holders(hb);
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

size_t
heartbeat_holders(const struct heartbeat *hb, const char *const **ids_r)
{
	int64_t age = clock_boot_msecs() - hb->answered_boot_msecs;

	*ids_r = (const char *const *)hb->holders;
	return age < hb->params.conf->lease_ttl * 1000 ? hb->n_holders : 0;
}
