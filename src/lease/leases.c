/*
 * leases.c - the leases this worker holds.
 *
 * Runs in: master.  Never blocks.
 *
 * A lease not renewed by its deadline is lost even if Redis answers later:
 * another host may own the account by then.  The deadline counts from the
 * moment the renewal was sent, because Redis may have acted on it any time
 * after, on a clock that also runs while the host is suspended (R-LEASE-5).
 * Where a reload has made lease_ttl shorter, the deadline comes nearer when the
 * renewal is sent, whether or not its answer arrives.
 *
 * A renewal goes out in batches, one in a turn of the loop, so that 10,000
 * leases keep the master from nothing (R-LEASE-4).  Many answers may come at
 * once: what they say is lost is told right away, and what they prolong, which
 * has time, is noted in the turns after that, a batch in each.
 */
#include "lease/leases.h"

#include "base/clock.h"
#include "base/xmem.h"
#include "lease/alarm.h"
#include "lease/idmap.h"
#include "redis/loop.h"
#include "redis/redis.h"
#include "redis/scripts.h"

#include <bsd/sys/queue.h>
#include <hiredis/hiredis.h>

#include <stdlib.h>

/* 10,000 leases are 50 commands; none keeps Redis busy for long. */
#define BATCH 200

struct lease {
	struct uuid id;
	uint64_t serial; /* tells a lease from an earlier one of the account */
	int64_t deadline_boot_msecs;
	uint64_t renewal; /* the last one that was sent */
	bool is_releasing;
};

struct leases {
	struct leases_params params;
	struct log log;
	struct idmap map;
	size_t n_releasing;
	uint64_t next_serial, next_renewal;
	struct event *renew;
	struct alarm *alarm;
	int64_t armed_boot_msecs; /* no deadline is earlier; 0: not armed */

	/* the renewal under way */
	struct event *next_batch;
	struct uuid *due; /* what was held when it began */
	size_t n_due, at_due;
	unsigned round;	     /* tells its batches from earlier ones */
	unsigned unanswered; /* of its batches */
	bool has_failed;     /* a batch was not answered well */
	STAILQ_HEAD(, batch) answered; /* to be noted */
	struct event *note;
};

/* A batch of a renewal, under way or answered. */
struct batch {
	STAILQ_ENTRY(batch) entry;
	struct leases *leases;
	unsigned round;
	uint64_t renewal;
	int64_t deadline_boot_msecs; /* of its leases, when it goes well */
	size_t n;
	struct uuid ids[BATCH];
	uint64_t serials[BATCH];
};

const char *
lease_end_describe(enum lease_end how)
{
	return how == LEASE_FENCED ? "no longer ours in Redis (fenced)" :
	    "not renewed in time";
}

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

/* Drops what is in `ids`, which becomes scratch. */
static void
leases_lose(
    struct leases *leases, struct uuid *ids, size_t n, enum lease_end how)
{
	struct lease *lease;
	struct uuid id;
	size_t i, n_lost = 0;

	for (i = 0; i < n; i++) {
		id = ids[i];
		lease = idmap_get(&leases->map, &id);
		if (lease == NULL || lease->is_releasing)
			continue;
		lease_drop(leases, lease);
		ids[i] = ids[n_lost];
		ids[n_lost++] = id;
	}
	if (n_lost > 0)
		leases->params.on_lost(leases->params.arg, ids, n_lost, how);
	for (i = n_lost; i < n; i++) {
		lease = idmap_get(&leases->map, &ids[i]);
		if (lease == NULL || !lease->is_releasing)
			continue;
		lease_drop(leases, lease);
		leases->params.on_released(leases->params.arg, &ids[i],
		    how == LEASE_FENCED);
	}
}

/* Ends what has run out; returns the next deadline, 0 when there is none. */
static int64_t
leases_expire(struct leases *leases)
{
	int64_t now = clock_boot_msecs(), next = 0;
	struct lease *lease;
	struct uuid *late;
	size_t at, n = 0;

	late = xcalloc(leases->map.n + 1, sizeof(*late));
	for (at = 0; (lease = idmap_next(&leases->map, &at, NULL)) != NULL;) {
		if (lease->deadline_boot_msecs <= now)
			late[n++] = lease->id;
		else if (next == 0 || lease->deadline_boot_msecs < next)
			next = lease->deadline_boot_msecs;
	}
	leases_lose(leases, late, n, LEASE_EXPIRED);
	free(late);
	return next;
}

static void
leases_on_alarm(void *arg)
{
	struct leases *leases = arg;
	int64_t next;

	leases->armed_boot_msecs = 0;
	next = leases_expire(leases);
	if (next != 0)
		watch_deadline(leases, next);
}

/* --- renewing ----------------------------------------------------------- */

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
	struct uuid lost[BATCH];
	size_t i, n = 0;

	for (i = 0; i < reply->elements && n < BATCH; i++) {
		long long position = reply->element[i]->integer;

		if (position >= 1 && position <= (long long)batch->n &&
		    batch_lease(batch, (size_t)position - 1) != NULL)
			lost[n++] = batch->ids[position - 1];
	}
	leases_lose(batch->leases, lost, n, LEASE_FENCED);
}

static void
lease_move(struct leases *leases, struct lease *lease,
    int64_t deadline_boot_msecs)
{
	lease->deadline_boot_msecs = deadline_boot_msecs;
	watch_deadline(leases, deadline_boot_msecs);
	leases->params.on_renewed(leases->params.arg, &lease->id,
	    deadline_boot_msecs);
}

/* The answer to an earlier renewal says nothing any more: a later one may have
 * given the lease a shorter time. */
static void
leases_prolong(struct batch *batch)
{
	struct lease *lease;
	size_t i;

	for (i = 0; i < batch->n; i++) {
		lease = batch_lease(batch, i);
		if (lease == NULL || lease->is_releasing ||
		    lease->renewal != batch->renewal ||
		    lease->deadline_boot_msecs == batch->deadline_boot_msecs)
			continue;
		lease_move(batch->leases, lease, batch->deadline_boot_msecs);
	}
}

/* Redis may act on it from now on. */
static void
leases_shorten(struct batch *batch)
{
	struct lease *lease;
	size_t i;

	batch->renewal = ++batch->leases->next_renewal;
	for (i = 0; i < batch->n; i++) {
		lease = batch_lease(batch, i);
		lease->renewal = batch->renewal;
		if (lease->deadline_boot_msecs > batch->deadline_boot_msecs)
			lease_move(batch->leases, lease,
			    batch->deadline_boot_msecs);
	}
}

static void
batch_ends(struct batch *batch, bool is_well)
{
	struct leases *leases = batch->leases;

	if (batch->round == leases->round) {
		leases->unanswered--;
		leases->has_failed |= !is_well;
		if (leases->unanswered == 0 &&
		    leases->at_due == leases->n_due && !leases->has_failed &&
		    leases->params.on_all_renewed != NULL)
			leases->params.on_all_renewed(leases->params.arg);
	}
	free(batch);
}

static void
on_renew_reply(void *arg, const redisReply *reply)
{
	struct batch *batch = arg;
	struct leases *leases = batch->leases;

	if (reply == NULL || reply->type != REDIS_REPLY_ARRAY) {
		if (reply != NULL) /* the deadlines stand */
			log_warn(&leases->log, "leases not renewed: %s",
			    redis_describe(reply));
		batch_ends(batch, false);
		return;
	}
	lose_answered(batch, reply);
	STAILQ_INSERT_TAIL(&leases->answered, batch, entry);
	event_in_msecs(leases->note, 0);
}

static void
leases_on_note(evutil_socket_t fd, short what, void *arg)
{
	struct leases *leases = arg;
	struct batch *batch = STAILQ_FIRST(&leases->answered);

	(void)fd;
	(void)what;
	/* A late answer saves nobody. */
	if (leases->armed_boot_msecs <= clock_boot_msecs())
		leases_expire(leases);
	if (batch == NULL)
		return;
	STAILQ_REMOVE_HEAD(&leases->answered, entry);
	if (!STAILQ_EMPTY(&leases->answered))
		event_in_msecs(leases->note, 0);
	leases_prolong(batch);
	batch_ends(batch, true);
}

static void
leases_batch_send(struct batch *batch)
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
	/* The TTL of this moment: a reload may change it meanwhile. */
	batch->deadline_boot_msecs = lease_deadline(leases->params.conf,
	    clock_boot_msecs());
	leases_shorten(batch);
	leases->unanswered++;
	if (redis_eval(leases->params.redis, &script_renew, on_renew_reply,
		batch, batch->n, args, batch->n + 2) == -1)
		batch_ends(batch, false);
}

static void
on_next_batch(evutil_socket_t fd, short what, void *arg)
{
	struct leases *leases = arg;
	struct batch *batch = xcalloc(1, sizeof(*batch));
	struct lease *lease;

	(void)fd;
	(void)what;
	batch->leases = leases;
	batch->round = leases->round;
	while (leases->at_due < leases->n_due && batch->n < BATCH) {
		lease = idmap_get(&leases->map, &leases->due[leases->at_due++]);
		if (lease == NULL || lease->is_releasing)
			continue;
		batch->ids[batch->n] = lease->id;
		batch->serials[batch->n++] = lease->serial;
	}
	if (leases->at_due < leases->n_due)
		event_in_msecs(leases->next_batch, 0);
	if (batch->n > 0) {
		leases_batch_send(batch);
	} else { /* nothing (more) to renew: that is an end as well */
		leases->unanswered++;
		batch_ends(batch, true);
	}
}

void
leases_renew(struct leases *leases)
{
	struct lease *lease;
	size_t at;

	if (!redis_is_up(leases->params.redis))
		return;
	leases->round++;
	leases->unanswered = 0;
	leases->has_failed = false;
	leases->at_due = leases->n_due = 0;
	leases->due = xreallocarray(leases->due, leases->map.n + 1,
	    sizeof(*leases->due));
	for (at = 0; (lease = idmap_next(&leases->map, &at, NULL)) != NULL;)
		leases->due[leases->n_due++] = lease->id;
	event_in_msecs(leases->next_batch, 0);
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

void
leases_hold(struct leases *leases, const struct uuid *id,
    int64_t deadline_boot_msecs)
{
	struct lease *lease = xcalloc(1, sizeof(*lease));

	lease->id = *id;
	lease->serial = ++leases->next_serial;
	lease->deadline_boot_msecs = deadline_boot_msecs;
	if (idmap_put(&leases->map, id, lease) != NULL)
		die_bug("lease taken twice");
	watch_deadline(leases, deadline_boot_msecs);
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
		leases->params.on_released(leases->params.arg, &release->id,
		    reply != NULL);
	}
	free(release);
}

void
leases_release(struct leases *leases, const struct uuid *id)
{
	struct lease *lease = idmap_get(&leases->map, id);
	const char *prefix = redis_prefix(leases->params.redis);
	char key[LEASE_KEY_SIZE], live[LEASE_KEY_SIZE];
	char orphans[LEASE_KEY_SIZE], text[UUID_TEXT_SIZE];
	const char *args[5] = { key, live, orphans, leases->params.worker_id,
		text };
	struct release *release;

	if (lease == NULL || lease->is_releasing)
		return;
	lease->is_releasing = true;
	leases->n_releasing++;
	release = xcalloc(1, sizeof(*release));
	release->leases = leases;
	release->id = lease->id;
	release->serial = lease->serial;
	lease_key(leases->params.redis, id, key);
	snprintf(live, sizeof(live), "%ssync:live", prefix);
	snprintf(orphans, sizeof(orphans), "%s" ORPHANS, prefix);
	uuid_format(id, text);
	if (redis_eval(leases->params.redis, &script_release, on_release_reply,
		release, 3, args, 5) == -1)
		on_release_reply(release, NULL); /* it will expire */
}

/* --- life --------------------------------------------------------------- */

struct leases *
leases_new(const struct leases_params *params)
{
	struct leases *leases = xcalloc(1, sizeof(*leases));

	leases->params = *params;
	log_init(&leases->log, LOG_LEASE, "%s", "");
	leases->alarm = alarm_new(params->base, leases_on_alarm, leases);
	leases->renew = event_new(params->base, -1, 0, on_renew, leases);
	leases->next_batch = event_new(params->base, -1, 0, on_next_batch,
	    leases);
	leases->note = event_new(params->base, -1, 0, leases_on_note, leases);
	STAILQ_INIT(&leases->answered);
	event_in_msecs(leases->renew, params->conf->lease_renew * 1000);
	return leases;
}

void
leases_free(struct leases **leases_p)
{
	struct leases *leases = *leases_p;
	struct batch *batch;
	struct lease *lease;
	size_t at;

	if (leases == NULL)
		return;
	*leases_p = NULL;
	while ((batch = STAILQ_FIRST(&leases->answered)) != NULL) {
		STAILQ_REMOVE_HEAD(&leases->answered, entry);
		free(batch);
	}
	for (at = 0; (lease = idmap_next(&leases->map, &at, NULL)) != NULL;)
		free(lease);
	idmap_release(&leases->map);
	free(leases->due);
	event_free(leases->renew);
	event_free(leases->next_batch);
	event_free(leases->note);
	alarm_free(&leases->alarm);
	free(leases);
}

const struct uuid *
leases_next(const struct leases *leases, size_t *at)
{
	const struct lease *lease;

	while ((lease = idmap_next(&leases->map, at, NULL)) != NULL)
		if (!lease->is_releasing)
			return &lease->id;
	return NULL;
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
