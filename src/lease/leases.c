/*
 * leases.c - the leases this worker holds.
 *
 * Runs in: master.  Never blocks.
 *
 * A lease not renewed by its deadline is lost even if Redis answers later:
 * another host may own the account by then.  The deadline counts from the
 * moment the renewal was sent, because Redis may have acted on it any time
 * after, on a clock that also runs while the host is suspended (R-LEASE-5).
 */
#include "lease/leases.h"

#include "base/clock.h"
#include "base/xmem.h"
#include "lease/alarm.h"
#include "lease/idmap.h"
#include "lease/loop.h"
#include "lease/redis.h"

#include <hiredis/hiredis.h>

#include <stdlib.h>

/* 10,000 leases are 50 commands; none keeps Redis busy for long. */
#define BATCH 200

struct lease {
	struct uuid id;
	uint64_t serial; /* tells a lease from an earlier one of the account */
	int64_t deadline_boot_msecs;
	bool is_releasing;
};

struct leases {
	struct leases_params params;
	struct log log;
	struct idmap map;
	size_t n_releasing;
	uint64_t next_serial;
	struct event *renew;
	struct alarm *alarm;
	int64_t armed_boot_msecs; /* 0: not armed */
};

/* A renewal under way. */
struct batch {
	struct leases *leases;
	int64_t sent_boot_msecs;
	size_t n;
	struct uuid ids[BATCH];
	uint64_t serials[BATCH];
};

/* Returns the positions of the leases that are not ours. */
static struct redis_script renew_script = {
	.name = "renew",
	.source =
	    "local lost = {}\n"
	    "for i, key in ipairs(KEYS) do\n"
	    "  if redis.pcall('get', key) == ARGV[1] then\n"
	    "    redis.call('expire', key, ARGV[2])\n"
	    "  else\n"
	    "    lost[#lost + 1] = i\n"
	    "  end\n"
	    "end\n"
	    "return lost\n",
};

static struct redis_script release_script = {
	.name = "release",
	.source =
	    "if redis.pcall('get', KEYS[1]) == ARGV[1] then\n"
	    "  return redis.call('del', KEYS[1])\n"
	    "end\n"
	    "return 0\n",
};

const char *
lease_key(const struct redis *redis, const struct uuid *id,
    char out[LEASE_KEY_SIZE])
{
	char text[UUID_TEXT_SIZE];

	snprintf(out, LEASE_KEY_SIZE, "%ssync:lease:%s", redis_prefix(redis),
	    uuid_format(id, text));
	return out;
}

/* Deadlines mostly move away, so a timer armed too early just re-arms. */
static void
watch_deadline(struct leases *leases, int64_t boot_msecs)
{
	if (leases->armed_boot_msecs == 0 ||
	    boot_msecs < leases->armed_boot_msecs) {
		leases->armed_boot_msecs = boot_msecs;
		alarm_set(leases->alarm, boot_msecs);
	}
}

static void
lease_drop(struct leases *leases, struct lease *lease)
{
	idmap_remove(&leases->map, &lease->id);
	if (lease->is_releasing)
		leases->n_releasing--;
	free(lease);
}

static void
lose(struct leases *leases, struct lease *lease, enum lease_end how)
{
	struct uuid id = lease->id;
	bool was_releasing = lease->is_releasing;

	lease_drop(leases, lease);
	if (was_releasing)
		leases->params.on_released(leases->params.arg, &id);
	else
		leases->params.on_lost(leases->params.arg, &id, how);
}

/* Ends what has run out; returns the next deadline, 0 when there is none. */
static int64_t
expire(struct leases *leases)
{
	int64_t now = clock_boot_msecs(), next = 0;
	struct lease *lease;
	struct uuid *late; /* ids: losing one may end another */
	size_t at, i, n = 0;

	late = xcalloc(leases->map.n + 1, sizeof(*late));
	for (at = 0; (lease = idmap_next(&leases->map, &at, NULL)) != NULL;) {
		if (lease->deadline_boot_msecs <= now)
			late[n++] = lease->id;
		else if (next == 0 || lease->deadline_boot_msecs < next)
			next = lease->deadline_boot_msecs;
	}
	for (i = 0; i < n; i++)
		if ((lease = idmap_get(&leases->map, &late[i])) != NULL)
			lose(leases, lease, LEASE_EXPIRED);
	free(late);
	return next;
}

static void
on_alarm(void *arg)
{
	struct leases *leases = arg;
	int64_t next;

	leases->armed_boot_msecs = 0;
	next = expire(leases);
	if (next != 0)
		watch_deadline(leases, next);
}

static struct lease *
batch_lease(struct batch *batch, size_t i)
{
	struct lease *lease = idmap_get(&batch->leases->map, &batch->ids[i]);

	return lease != NULL && lease->serial == batch->serials[i] ? lease :
	    NULL;
}

static void
lose_answered(struct batch *batch, const redisReply *reply)
{
	struct lease *lease;
	size_t i;
	long long position;

	for (i = 0; i < reply->elements; i++) {
		position = reply->element[i]->integer;
		if (position < 1 || position > (long long)batch->n)
			continue;
		lease = batch_lease(batch, (size_t)position - 1);
		if (lease != NULL)
			lose(batch->leases, lease, LEASE_FENCED);
	}
}

static void
on_renew_reply(void *arg, const redisReply *reply)
{
	struct batch *batch = arg;
	struct leases *leases = batch->leases;
	int64_t deadline = lease_deadline(leases->params.conf,
	    batch->sent_boot_msecs);
	struct lease *lease;
	size_t i;

	if (reply == NULL || reply->type != REDIS_REPLY_ARRAY) {
		/* The deadlines stand. */
		if (reply != NULL)
			log_warn(&leases->log, "leases not renewed: %s",
			    redis_describe(reply));
		free(batch);
		return;
	}
	lose_answered(batch, reply);
	expire(leases); /* a late answer saves nobody */
	for (i = 0; i < batch->n; i++) {
		lease = batch_lease(batch, i);
		if (lease == NULL || lease->deadline_boot_msecs >= deadline)
			continue;
		lease->deadline_boot_msecs = deadline;
		leases->params.on_renewed(leases->params.arg, &lease->id,
		    deadline);
	}
	free(batch);
}

static void
batch_send(struct batch *batch)
{
	struct leases *leases = batch->leases;
	static char keys[BATCH][LEASE_KEY_SIZE];
	const char *args[BATCH + 2];
	char ttl[24];
	size_t i;

	for (i = 0; i < batch->n; i++)
		args[i] = lease_key(leases->params.redis, &batch->ids[i],
		    keys[i]);
	snprintf(ttl, sizeof(ttl), "%d", (int)leases->params.conf->lease_ttl);
	args[batch->n] = leases->params.worker_id;
	args[batch->n + 1] = ttl;
	batch->sent_boot_msecs = clock_boot_msecs();
	if (redis_eval(leases->params.redis, &renew_script, on_renew_reply,
		batch, batch->n, args, batch->n + 2) == -1)
		free(batch);
}

void
leases_renew(struct leases *leases)
{
	struct batch *batch = NULL;
	struct lease *lease;
	size_t at;

	if (!redis_is_up(leases->params.redis))
		return;
	for (at = 0; (lease = idmap_next(&leases->map, &at, NULL)) != NULL;) {
		if (lease->is_releasing)
			continue;
		if (batch == NULL) {
			batch = xcalloc(1, sizeof(*batch));
			batch->leases = leases;
		}
		batch->ids[batch->n] = lease->id;
		batch->serials[batch->n++] = lease->serial;
		if (batch->n == BATCH) {
			batch_send(batch);
			batch = NULL;
		}
	}
	if (batch != NULL)
		batch_send(batch);
}

static void
on_renew(evutil_socket_t fd, short what, void *arg)
{
	struct leases *leases = arg;

	(void)fd;
	(void)what;
	event_in_msecs(leases->renew, leases->params.conf->lease_renew * 1000);
	leases_renew(leases);
}

int64_t
leases_hold(struct leases *leases, const struct uuid *id,
    int64_t sent_boot_msecs)
{
	struct lease *lease = xcalloc(1, sizeof(*lease));

	lease->id = *id;
	lease->serial = ++leases->next_serial;
	lease->deadline_boot_msecs = lease_deadline(leases->params.conf,
	    sent_boot_msecs);
	if (idmap_put(&leases->map, id, lease) != NULL)
		die_bug("lease taken twice");
	watch_deadline(leases, lease->deadline_boot_msecs);
	return lease->deadline_boot_msecs;
}

/* --- releasing ---------------------------------------------------------- */

struct release {
	struct leases *leases;
	struct uuid id;
	uint64_t serial;
};

static void
on_release_reply(void *arg, const redisReply *reply)
{
	struct release *release = arg;
	struct leases *leases = release->leases;
	struct lease *lease = idmap_get(&leases->map, &release->id);

	if (reply != NULL && reply->type == REDIS_REPLY_ERROR)
		log_warn(&leases->log, "lease not released, it will expire: %s",
		    reply->str);
	if (lease != NULL && lease->serial == release->serial) {
		lease_drop(leases, lease);
		leases->params.on_released(leases->params.arg, &release->id);
	}
	free(release);
}

void
leases_release(struct leases *leases, const struct uuid *id)
{
	struct lease *lease = idmap_get(&leases->map, id);
	char key[LEASE_KEY_SIZE];
	const char *args[2];
	struct release *release;

	if (lease == NULL || lease->is_releasing)
		return;
	lease->is_releasing = true;
	leases->n_releasing++;
	release = xcalloc(1, sizeof(*release));
	release->leases = leases;
	release->id = lease->id;
	release->serial = lease->serial;
	args[0] = lease_key(leases->params.redis, id, key);
	args[1] = leases->params.worker_id;
	if (redis_eval(leases->params.redis, &release_script, on_release_reply,
		release, 1, args, 2) == -1)
		on_release_reply(release, NULL); /* it will expire */
}

/* --- life --------------------------------------------------------------- */

struct leases *
leases_new(const struct leases_params *params)
{
	struct leases *leases = xcalloc(1, sizeof(*leases));

	leases->params = *params;
	log_init(&leases->log, LOG_LEASE, "%s", "");
	leases->alarm = alarm_new(params->base, on_alarm, leases);
	leases->renew = event_new(params->base, -1, 0, on_renew, leases);
	event_in_msecs(leases->renew, params->conf->lease_renew * 1000);
	return leases;
}

void
leases_free(struct leases **leases_p)
{
	struct leases *leases = *leases_p;
	struct lease *lease;
	size_t at;

	if (leases == NULL)
		return;
	*leases_p = NULL;
	for (at = 0; (lease = idmap_next(&leases->map, &at, NULL)) != NULL;)
		free(lease);
	idmap_release(&leases->map);
	event_free(leases->renew);
	alarm_free(&leases->alarm);
	free(leases);
}

bool
leases_has(const struct leases *leases, const struct uuid *id)
{
	return idmap_get(&leases->map, id) != NULL;
}

size_t
leases_count(const struct leases *leases)
{
	return leases->map.n - leases->n_releasing;
}

size_t
leases_releasing(const struct leases *leases)
{
	return leases->n_releasing;
}

int64_t
leases_deadline(const struct leases *leases, const struct uuid *id)
{
	const struct lease *lease = idmap_get(&leases->map, id);

	return lease != NULL ? lease->deadline_boot_msecs : INT64_MIN;
}
