/*
 * claimer.c - taking leases of live accounts that have no owner.
 *
 * Runs in: master.  Never blocks.
 *
 * A round walks sync:live page by page; each page is one script call that
 * takes what is free, up to our share (lease/share.h), and counts what it
 * leaves.  One call is under way at a time, so the room left is always exact.
 *
 * Two kinds of leases are ours though we do not hold them: one that carries
 * our own worker id (the answer to an earlier claim was lost), and one of a
 * dead master of this very host, boot and process namespace (R-LEASE-10).
 */
#include "lease/claimer.h"

#include "base/clock.h"
#include "base/xmem.h"
#include "lease/heartbeat.h"
#include "lease/idmap.h"
#include "lease/leases.h"
#include "lease/loop.h"
#include "lease/redis.h"
#include "lease/share.h"

#include <hiredis/hiredis.h>

#include <signal.h>
#include <stdlib.h>

#define PAGE 200
#define WORKER_SIZE 160

struct claimer {
	struct claimer_params params;
	struct log log;
	struct event *timer;
	int64_t due_mono_msecs;
	char host[WORKER_SIZE]; /* "host:" of our worker id */

	struct idmap avoid; /* until when (mono msecs) */
	unsigned left_over_rounds;

	/* the round under way */
	bool is_running;
	uint64_t cursor;
	size_t n_free; /* seen without owner and left */
	struct uuid page[PAGE];
	size_t n_page;
	struct uuid *more; /* SSCAN may give more than a page */
	size_t n_more, cap_more;
	int64_t sent_boot_msecs;
	bool is_last_page;

	/* tries asked for by events */
	struct uuid tries[PAGE];
	size_t n_tries;
	struct event *try_timer;
};

/*
 * KEYS: leases.  ARGV: worker id, TTL, room, "host:".  Returns positions won,
 * number of free ones left, and [position, owner] of leases of this host.
 */
static struct redis_script claim_script = {
	.name = "claim",
	.source =
	    "local won, left, near = {}, 0, {}\n"
	    "local room = tonumber(ARGV[3])\n"
	    "for i, key in ipairs(KEYS) do\n"
	    "  local owner = redis.pcall('get', key)\n"
	    "  if not owner then\n"
	    "    if room > 0 and redis.call('set', key, ARGV[1], 'NX',\n"
	    "        'EX', ARGV[2]) then\n"
	    "      won[#won + 1] = i\n"
	    "      room = room - 1\n"
	    "    else\n"
	    "      left = left + 1\n"
	    "    end\n"
	    "  elseif owner == ARGV[1] then\n"
	    "    redis.call('expire', key, ARGV[2])\n"
	    "    won[#won + 1] = i\n"
	    "  elseif type(owner) == 'string' and\n"
	    "      string.sub(owner, 1, #ARGV[4]) == ARGV[4] then\n"
	    "    near[#near + 1] = i\n"
	    "    near[#near + 1] = owner\n"
	    "  end\n"
	    "end\n"
	    "return { won, left, near }\n",
};

/* KEYS: lease, heartbeat of the old owner.  ARGV: old, new, TTL, boot. */
static struct redis_script inherit_script = {
	.name = "inherit",
	.source =
	    "local beat = redis.pcall('get', KEYS[2])\n"
	    "if redis.pcall('get', KEYS[1]) ~= ARGV[1] or\n"
	    "    type(beat) ~= 'string' then\n"
	    "  return 0\n"
	    "end\n"
	    "local ok, json = pcall(cjson.decode, beat)\n"
	    "if not ok or type(json) ~= 'table' or json.boot ~= ARGV[4] then\n"
	    "  return 0\n"
	    "end\n"
	    "redis.call('set', KEYS[1], ARGV[2], 'EX', ARGV[3])\n"
	    "return 1\n",
};

static void next_page(struct claimer *claimer);

static size_t
room(const struct claimer *claimer)
{
	struct share share = {
		.owned = leases_count(claimer->params.leases),
		.live = heartbeat_live(claimer->params.heartbeat),
		.workers = heartbeat_workers(claimer->params.heartbeat),
		.max = (size_t)claimer->params.conf->max_accounts_per_worker,
		.left_over_rounds = claimer->left_over_rounds,
	};

	return claimer->params.may_claim(claimer->params.arg) ?
	    share_claim(&share) : 0;
}

static bool
is_avoided(const struct claimer *claimer, const struct uuid *id)
{
	intptr_t until = (intptr_t)idmap_get(&claimer->avoid, id);

	return until > clock_mono_msecs();
}

static void
won(struct claimer *claimer, const struct uuid *id, int64_t sent_boot_msecs)
{
	int64_t deadline;

	if (leases_has(claimer->params.leases, id))
		return;
	deadline = leases_hold(claimer->params.leases, id, sent_boot_msecs);
	if (deadline > clock_boot_msecs()) /* else its timer drops it */
		claimer->params.on_won(claimer->params.arg, id, deadline);
}

/* --- a dead master of this host ----------------------------------------- */

struct inheritance {
	struct claimer *claimer;
	struct uuid id;
	int64_t sent_boot_msecs;
	char owner[WORKER_SIZE];
};

static void
on_inherited(void *arg, const redisReply *reply)
{
	struct inheritance *in = arg;

	if (reply != NULL && reply->type == REDIS_REPLY_INTEGER &&
	    reply->integer == 1) {
		log_debug(&in->claimer->log, "inherited a lease of %s",
		    in->owner);
		won(in->claimer, &in->id, in->sent_boot_msecs);
	}
	free(in);
}

/* "host:pid:random", host as ours; is that process gone? */
static bool
is_dead(const struct claimer *claimer, const char *owner)
{
	char *end;
	long pid = strtol(owner + strlen(claimer->host), &end, 10);

	return *end == ':' && pid > 1 && kill((pid_t)pid, 0) == -1 &&
	    errno == ESRCH;
}

static void
inherit(struct claimer *claimer, const struct uuid *id, const char *owner)
{
	char key[LEASE_KEY_SIZE], beat[LEASE_KEY_SIZE + WORKER_SIZE], ttl[24];
	const char *args[6] = { key, beat, owner, claimer->params.worker_id,
		ttl, heartbeat_boot() };
	struct inheritance *in = xcalloc(1, sizeof(*in));

	lease_key(claimer->params.redis, id, key);
	snprintf(beat, sizeof(beat), "%ssync:workers:%s",
	    redis_prefix(claimer->params.redis), owner);
	snprintf(ttl, sizeof(ttl), "%d",
	    (int)claimer->params.conf->lease_ttl);
	in->claimer = claimer;
	in->id = *id;
	in->sent_boot_msecs = clock_boot_msecs();
	snprintf(in->owner, sizeof(in->owner), "%s", owner);
	if (redis_eval(claimer->params.redis, &inherit_script, on_inherited, in,
		2, args, 6) == -1)
		free(in);
}

/* --- a page ------------------------------------------------------------- */

static void
take_won(struct claimer *claimer, const struct uuid *page, size_t n_page,
    const redisReply *list)
{
	size_t i;

	for (i = 0; i < list->elements; i++) {
		long long position = list->element[i]->integer;

		if (position >= 1 && position <= (long long)n_page)
			won(claimer, &page[position - 1],
			    claimer->sent_boot_msecs);
	}
}

static void
take_near(struct claimer *claimer, const redisReply *list)
{
	size_t i;

	for (i = 0; i + 1 < list->elements && room(claimer) > 0; i += 2) {
		long long position = list->element[i]->integer;
		const char *owner = list->element[i + 1]->str;

		if (position >= 1 && position <= (long long)claimer->n_page &&
		    owner != NULL && is_dead(claimer, owner))
			inherit(claimer, &claimer->page[position - 1], owner);
	}
}

static void
on_claimed(void *arg, const redisReply *reply)
{
	struct claimer *claimer = arg;

	if (!claimer->is_running)
		return;
	if (reply == NULL || reply->type != REDIS_REPLY_ARRAY ||
	    reply->elements != 3) {
		if (reply != NULL)
			log_warn(&claimer->log, "nothing claimed: %s",
			    redis_describe(reply));
		claimer_forget_round(claimer);
		return;
	}
	take_won(claimer, claimer->page, claimer->n_page, reply->element[0]);
	claimer->n_free += (size_t)reply->element[1]->integer;
	take_near(claimer, reply->element[2]);
	next_page(claimer);
}

static int
send_claim(struct claimer *claimer, const struct uuid *page, size_t n,
    size_t room, redis_on_reply on_reply, void *arg)
{
	static char keys[PAGE][LEASE_KEY_SIZE];
	const char *args[PAGE + 4];
	char ttl[24], limit[24];
	size_t i;

	for (i = 0; i < n; i++)
		args[i] = lease_key(claimer->params.redis, &page[i], keys[i]);
	snprintf(ttl, sizeof(ttl), "%d",
	    (int)claimer->params.conf->lease_ttl);
	snprintf(limit, sizeof(limit), "%zu", room);
	args[n] = claimer->params.worker_id;
	args[n + 1] = ttl;
	args[n + 2] = limit;
	args[n + 3] = claimer->host;
	return redis_eval(claimer->params.redis, &claim_script, on_reply, arg,
	    n, args, n + 4);
}

/* --- a round ------------------------------------------------------------ */

static void
end_round(struct claimer *claimer)
{
	claimer->is_running = false;
	claimer->n_more = 0;
	if (claimer->n_free > 0)
		claimer->left_over_rounds++;
	else
		claimer->left_over_rounds = 0;
}

static void
on_scanned(void *arg, const redisReply *reply)
{
	struct claimer *claimer = arg;
	const redisReply *ids;
	struct uuid id;
	size_t i;

	if (!claimer->is_running)
		return;
	if (reply == NULL || reply->type != REDIS_REPLY_ARRAY ||
	    reply->elements != 2) {
		if (reply != NULL)
			log_warn(&claimer->log, "sync:live: %s",
			    redis_describe(reply));
		claimer_forget_round(claimer);
		return;
	}
	claimer->cursor = strtoull(reply->element[0]->str, NULL, 10);
	claimer->is_last_page = claimer->cursor == 0;
	ids = reply->element[1];
	for (i = 0; i < ids->elements; i++) {
		/* Others write this set too: what is no id is passed over. */
		if (ids->element[i]->str == NULL ||
		    uuid_parse(ids->element[i]->str, &id) == -1 ||
		    leases_has(claimer->params.leases, &id) ||
		    is_avoided(claimer, &id))
			continue;
		GROW(claimer->more, claimer->n_more, claimer->cap_more);
		claimer->more[claimer->n_more++] = id;
	}
	next_page(claimer);
}

static void
next_page(struct claimer *claimer)
{
	struct redis *redis = claimer->params.redis;

	if (claimer->n_more == 0 && claimer->is_last_page) {
		end_round(claimer);
		return;
	}
	if (claimer->n_more == 0) {
		if (redis_send(redis, on_scanned, claimer,
			"SSCAN %ssync:live %llu COUNT %d", redis_prefix(redis),
			(unsigned long long)claimer->cursor, PAGE) == -1)
			claimer_forget_round(claimer);
		return;
	}
	claimer->n_page = claimer->n_more < PAGE ? claimer->n_more : PAGE;
	claimer->n_more -= claimer->n_page;
	memcpy(claimer->page, claimer->more + claimer->n_more,
	    claimer->n_page * sizeof(*claimer->page));
	claimer->sent_boot_msecs = clock_boot_msecs();
	if (send_claim(claimer, claimer->page, claimer->n_page, room(claimer),
		on_claimed, claimer) == -1)
		claimer_forget_round(claimer);
}

static void
clean_avoid(struct claimer *claimer)
{
	struct idmap kept = IDMAP_INIT;
	int64_t now = clock_mono_msecs();
	const struct uuid *id;
	void *until;
	size_t at;

	for (at = 0; (until = idmap_next(&claimer->avoid, &at, &id)) != NULL;)
		if ((intptr_t)until > now)
			idmap_put(&kept, id, until);
	idmap_release(&claimer->avoid);
	claimer->avoid = kept;
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct claimer *claimer = arg;
	const struct conf *conf = claimer->params.conf;

	(void)fd;
	(void)what;
	claimer->due_mono_msecs = 0;
	claimer_round_in(claimer, conf->claim_interval * 1000 +
	    arc4random_uniform((uint32_t)conf->claim_jitter * 1000 + 1));
	clean_avoid(claimer);
	if (claimer->is_running || !redis_is_up(claimer->params.redis) ||
	    !claimer->params.may_claim(claimer->params.arg) ||
	    leases_count(claimer->params.leases) >=
		(size_t)conf->max_accounts_per_worker)
		return;
	/* Answered before the first page: the share is of now. */
	heartbeat_send(claimer->params.heartbeat);
	claimer->is_running = true;
	claimer->is_last_page = false;
	claimer->cursor = 0;
	claimer->n_free = 0;
	next_page(claimer);
}

void
claimer_round_in(struct claimer *claimer, int64_t msecs)
{
	int64_t due = clock_mono_msecs() + msecs;

	if (claimer->due_mono_msecs != 0 && claimer->due_mono_msecs <= due)
		return;
	claimer->due_mono_msecs = due;
	event_in_msecs(claimer->timer, msecs);
}

void
claimer_forget_round(struct claimer *claimer)
{
	claimer->is_running = false;
	claimer->n_more = 0;
}

/* --- single accounts ---------------------------------------------------- */

struct try {
	struct claimer *claimer;
	struct uuid id;
	int64_t sent_boot_msecs;
};

static void
on_tried(void *arg, const redisReply *reply)
{
	struct try *try = arg;

	if (reply != NULL && reply->type == REDIS_REPLY_ARRAY &&
	    reply->elements == 3 && reply->element[0]->elements == 1)
		won(try->claimer, &try->id, try->sent_boot_msecs);
	free(try);
}

static void
on_try_timer(evutil_socket_t fd, short what, void *arg)
{
	struct claimer *claimer = arg;
	struct try *try;

	(void)fd;
	(void)what;
	while (claimer->n_tries > 0) {
		const struct uuid *id = &claimer->tries[--claimer->n_tries];
		size_t left = room(claimer);

		if (left == 0 || leases_has(claimer->params.leases, id))
			continue;
		try = xcalloc(1, sizeof(*try));
		try->claimer = claimer;
		try->id = *id;
		try->sent_boot_msecs = clock_boot_msecs();
		if (send_claim(claimer, id, 1, left, on_tried, try) == -1)
			free(try);
	}
}

void
claimer_try(struct claimer *claimer, const struct uuid *id)
{
	const struct conf *conf = claimer->params.conf;
	size_t owned = leases_count(claimer->params.leases);
	int64_t wait;

	idmap_remove(&claimer->avoid, id);
	if (claimer->n_tries == PAGE) /* the next round finds it */
		return;
	claimer->tries[claimer->n_tries++] = *id;
	/* The emptiest worker comes first, a full one in a second. */
	wait = (int64_t)owned * 1000 / (conf->max_accounts_per_worker + 1);
	if (!event_pending(claimer->try_timer, EV_TIMEOUT, NULL))
		event_in_msecs(claimer->try_timer, wait);
}

void
claimer_avoid(struct claimer *claimer, const struct uuid *id, int64_t msecs)
{
	idmap_put(&claimer->avoid, id,
	    (void *)(intptr_t)(clock_mono_msecs() + msecs));
}

/* --- life --------------------------------------------------------------- */

struct claimer *
claimer_new(const struct claimer_params *params)
{
	struct claimer *claimer = xcalloc(1, sizeof(*claimer));
	const char *end = strchr(params->worker_id, ':');

	claimer->params = *params;
	log_init(&claimer->log, LOG_LEASE, "%s", "");
	if (end == NULL)
		die_bug("worker id %s has no host", params->worker_id);
	snprintf(claimer->host, sizeof(claimer->host), "%.*s",
	    (int)(end - params->worker_id) + 1, params->worker_id);
	claimer->timer = event_new(params->base, -1, 0, on_timer, claimer);
	claimer->try_timer = event_new(params->base, -1, 0, on_try_timer,
	    claimer);
	return claimer;
}

void
claimer_free(struct claimer **claimer_p)
{
	struct claimer *claimer = *claimer_p;

	if (claimer == NULL)
		return;
	*claimer_p = NULL;
	event_free(claimer->timer);
	event_free(claimer->try_timer);
	idmap_release(&claimer->avoid);
	free(claimer->more);
	free(claimer);
}
