/*
 * claimer.c - taking leases of live accounts that have no owner.
 *
 * Runs in: master.  Never blocks.
 *
 * A round walks a set page by page; each page is one question to Redis
 * (lease/claim.h) that takes what is free, up to our share (lease/share.h).
 * One question is under way at a time, so the room left is always exact, and
 * however long the set is, a turn of the loop handles one page of it.
 *
 * First comes sync:orphans, which is short or empty.  Then sync:live, all
 * accounts there are, but only when it is our turn: it would cost Redis too
 * much if each worker looked at every account each time.  In each claim
 * interval one of the fleet does (sync:turn), takes its share, and puts the
 * rest into sync:orphans, also what a dead worker still has a lease of.  So the
 * others find it there before, or at the latest an interval after it is free.
 * Who gives accounts up puts them there himself.
 *
 * What nobody takes round after round is remembered id by id: those may be
 * taken beyond the share.  Accounts that have just become live need not wait
 * for a round; they are a page of their own.
 */
#include "lease/claimer.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/xmem.h"
#include "lease/claim.h"
#include "lease/era.h"
#include "lease/heartbeat.h"
#include "lease/idmap.h"
#include "lease/leases.h"
#include "redis/loop.h"
#include "redis/redis.h"
#include "lease/share.h"

#include <hiredis/hiredis.h>

#include <stdlib.h>

#define TRIES_MAX 1000
/* When claims open again, not all workers at the same moment. */
#define OPENING_MSECS 500

struct claimer {
	struct claimer_params params;
	struct claim_params claim_params;
	struct log log;
	struct event *timer;
	int64_t due_mono_msecs; /* of the timer; 0: not armed */

	struct idmap avoid; /* until when (mono msecs) */
	struct idmap left;  /* what nobody took: round << 8 | rounds in a row */
	uint32_t round;	    /* not those of tries only */
	size_t n_left;	    /* in this one */
	size_t n_asking, n_inheriting; /* questions under way */

	/* Something happened after which accounts may be ours to take, or ours
	 * by name already: look at all, whoever's turn it is. */
	bool must_look;

	/* the round under way */
	bool is_running;
	enum source { FROM_TRIES, FROM_ORPHANS, FROM_LIVE } source;
	bool is_last_page; /* of the source */
	uint64_t cursor;
	struct uuid *ids; /* to be asked about */
	size_t n_ids, cap_ids;

	/* tries asked for by events */
	struct uuid *tries;
	size_t n_tries, cap_tries;
	struct event *try_timer;
};

static void go_on(struct claimer *claimer);

/* --- what we may take --------------------------------------------------- */

static size_t
claimer_room(const struct claimer *claimer, unsigned left_over_rounds)
{
	struct share share = {
		.owned = leases_count(claimer->params.leases),
		.live = heartbeat_live(claimer->params.heartbeat),
		.workers = heartbeat_workers(claimer->params.heartbeat),
		.max = (size_t)claimer->params.conf->max_accounts_per_worker,
		.left_over_rounds = left_over_rounds,
	};

	return share_claim(&share);
}

static bool
claimer_may_claim(const struct claimer *claimer)
{
	return redis_is_up(claimer->params.redis) &&
	    era_name(claimer->params.era)[0] != '\0' &&
	    claimer->params.may_claim(claimer->params.arg);
}

static bool
claimer_is_wanted(const struct claimer *claimer, const struct uuid *id)
{
	return !leases_has(claimer->params.leases, id) &&
	    (intptr_t)idmap_get(&claimer->avoid, id) <= clock_mono_msecs();
}

/* Rounds in a row, up to the last one, in which nobody took it. */
static unsigned
rounds_left(const struct claimer *claimer, const struct uuid *id)
{
	uintptr_t value = (uintptr_t)idmap_get(&claimer->left, id);

	return (uint32_t)(value >> 8) + 1 >= claimer->round ?
	    (unsigned)(value & 0xff) : 0;
}

static void
note_left(struct claimer *claimer, const struct uuid *id)
{
	uintptr_t value = (uintptr_t)idmap_get(&claimer->left, id);
	unsigned rounds = rounds_left(claimer, id);

	if (value >> 8 == claimer->round)
		return; /* a scan may tell an id twice */
	/* No more than we could take. */
	if (rounds == 0 &&
	    claimer->n_left >= claimer_room(claimer, SHARE_PATIENCE))
		return;
	if (rounds < SHARE_PATIENCE)
		rounds++;
	idmap_put(&claimer->left, id,
	    (void *)((uintptr_t)claimer->round << 8 | rounds));
	claimer->n_left++;
}

static void
claimer_won(struct claimer *claimer, const struct uuid *id, int64_t deadline)
{
	if (leases_has(claimer->params.leases, id))
		return;
	/* An answer that comes after the deadline gives nothing: the next
	 * look finds a lease with our name and has it anew. */
	if (deadline <= clock_boot_msecs()) {
		claimer->must_look = true;
		return;
	}
	leases_hold(claimer->params.leases, id, deadline);
	if (claimer->params.may_claim(claimer->params.arg))
		claimer->params.on_won(claimer->params.arg, id, deadline);
	else /* stopped while the question was under way */
		leases_release(claimer->params.leases, id);
}

static void
claimer_on_inherited(
    void *arg, const struct uuid *id, bool is_won, int64_t deadline)
{
	struct claimer *claimer = arg;

	claimer->n_inheriting--;
	if (is_won)
		claimer_won(claimer, id, deadline);
	/* The dead one counts no longer among the living. */
	if (claimer->n_inheriting == 0)
		heartbeat_send(claimer->params.heartbeat);
}

/* What this host had it keeps, beyond the share: the dead master is counted
 * as alive for a while. */
static void
claimer_take_near(struct claimer *claimer, const struct claim_answer *answer)
{
	size_t max = (size_t)claimer->params.conf->max_accounts_per_worker;
	size_t i;

	for (i = 0; i < answer->n_near; i++) {
		if (leases_count(claimer->params.leases) +
		    claimer->n_inheriting >= max)
			return;
		log_debug(&claimer->log, "inherits a lease of %s",
		    answer->owners[i]);
		claimer->n_inheriting++;
		claim_inherit(&claimer->claim_params, &answer->near[i],
		    answer->owners[i], claimer_on_inherited, claimer);
	}
}

/* --- a round ------------------------------------------------------------ */

/* Forgets what has an owner by now. */
static void
clean_left(struct claimer *claimer)
{
	struct idmap kept = IDMAP_INIT;
	const struct uuid *id;
	void *value;
	size_t at;

	for (at = 0; (value = idmap_next(&claimer->left, &at, &id)) != NULL;)
		if ((uintptr_t)value >> 8 == claimer->round)
			idmap_put(&kept, id, value);
	idmap_release(&claimer->left);
	claimer->left = kept;
}

static void
end_round(struct claimer *claimer)
{
	claimer->is_running = false;
	if (claimer->source != FROM_TRIES &&
	    claimer->left.n > 2 * claimer->n_left)
		clean_left(claimer);
}

void
claimer_forget_round(struct claimer *claimer)
{
	if (claimer->is_running && claimer->source == FROM_LIVE)
		claimer->must_look = true; /* it was not seen to its end */
	claimer->is_running = false;
	claimer->n_ids = 0;
}

static void
claimer_on_answer(void *arg, const struct claim_answer *answer)
{
	struct claimer *claimer = arg;
	size_t i;

	claimer->n_asking--;
	/* Won is won, also when the round was forgotten meanwhile. */
	for (i = 0; i < answer->n_won; i++)
		claimer_won(
		    claimer, &answer->won[i], answer->deadline_boot_msecs);
	/* Perhaps Redis did it all the same. */
	claimer->must_look |= answer->end == CLAIM_FAILED;
	if (!claimer->is_running)
		return;
	for (i = 0; i < answer->n_left && claimer->source != FROM_TRIES; i++)
		note_left(claimer, &answer->left[i]);
	switch (answer->end) {
	case CLAIM_DONE:
		claimer_take_near(claimer, answer);
		go_on(claimer);
		break;
	case CLAIM_CLOSED:
		claimer_forget_round(claimer);
		claimer_round_in(claimer, answer->closed_msecs +
		    arc4random_uniform(OPENING_MSECS));
		break;
	case CLAIM_WRONG_ERA:
		claimer_forget_round(claimer);
		claimer->params.on_wrong_era(claimer->params.arg);
		break;
	case CLAIM_FAILED:
		claimer_forget_round(claimer);
		break;
	}
}

/* Those left over for long come first. */
static void
fill_page(struct claimer *claimer, struct claim *claim)
{
	struct uuid id;

	claim->n = claim->n_old = 0;
	while (claimer->n_ids > 0 && claim->n < CLAIM_MAX) {
		id = claimer->ids[--claimer->n_ids];
		if (!claimer_is_wanted(claimer, &id))
			continue;
		claim->ids[claim->n] = id;
		if (rounds_left(claimer, &id) >= SHARE_PATIENCE) {
			claim->ids[claim->n] = claim->ids[claim->n_old];
			claim->ids[claim->n_old++] = id;
		}
		claim->n++;
	}
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
			log_warn(&claimer->log, "accounts to claim: %s",
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
		    !claimer_is_wanted(claimer, &id))
			continue;
		GROW(claimer->ids, claimer->n_ids, claimer->cap_ids);
		claimer->ids[claimer->n_ids++] = id;
	}
	go_on(claimer);
}

static void
claimer_walk(struct claimer *claimer, enum source source)
{
	claimer->source = source;
	claimer->is_last_page = false;
	claimer->cursor = 0;
	go_on(claimer);
}

static void
claimer_on_turn(void *arg, const redisReply *reply)
{
	struct claimer *claimer = arg;

	if (!claimer->is_running || claimer->source != FROM_ORPHANS ||
	    !claimer->is_last_page)
		return; /* forgotten meanwhile */
	if (reply == NULL || reply->type != REDIS_REPLY_STATUS) {
		end_round(claimer);
		return;
	}
	claimer->must_look = false;
	claimer_walk(claimer, FROM_LIVE);
}

/* A dead master of this host leaves leases that look like those of one that
 * lives, for as long as its last heartbeat does. */
static bool
has_dead_neighbour(const struct claimer *claimer)
{
	const char *const *holders;
	size_t i, n = heartbeat_holders(claimer->params.heartbeat, &holders);

	for (i = 0; i < n; i++)
		if (claim_is_dead_neighbour(claimer->params.worker_id,
			holders[i]))
			return true;
	return false;
}

/* Is it ours to look at all accounts?  Given anew a little before the first to
 * ask for it again can come, so that who is alone always has it. */
static void
ask_for_turn(struct claimer *claimer)
{
	struct redis *redis = claimer->params.redis;
	bool must_look = claimer->must_look || has_dead_neighbour(claimer);

	if (redis_send(redis, claimer_on_turn, claimer,
		must_look ? "SET %ssync:turn %s PX %lld"
			  : "SET %ssync:turn %s PX %lld NX",
		redis_prefix(redis), claimer->params.worker_id,
		(long long)claimer->params.conf->claim_interval * 900) == -1)
		claimer_forget_round(claimer);
}

static void
next_page(struct claimer *claimer)
{
	struct redis *redis = claimer->params.redis;

	if (redis_send(redis, on_scanned, claimer, "SSCAN %s%s %llu COUNT %d",
		redis_prefix(redis),
		claimer->source == FROM_LIVE ? "sync:live" : ORPHANS,
		(unsigned long long)claimer->cursor, CLAIM_MAX) == -1)
		claimer_forget_round(claimer);
}

static void
go_on(struct claimer *claimer)
{
	struct claim claim;

	if (!claimer_may_claim(claimer)) {
		claimer_forget_round(claimer);
		return;
	}
	fill_page(claimer, &claim);
	if (claim.n > 0) {
		claim.room = claimer_room(claimer, 0);
		claim.room_old = claimer_room(claimer, SHARE_PATIENCE);
		claim.is_from_orphans = claimer->source == FROM_ORPHANS;
		claimer->n_asking++;
		claim_send(
		    &claimer->claim_params, &claim, claimer_on_answer, claimer);
	} else if (!claimer->is_last_page) {
		next_page(claimer);
	} else if (claimer->source == FROM_ORPHANS) {
		ask_for_turn(claimer);
	} else {
		end_round(claimer);
	}
}

bool
claimer_is_asking(const struct claimer *claimer)
{
	return claimer->n_asking + claimer->n_inheriting > 0;
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
claimer_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct claimer *claimer = arg;
	const struct conf *conf = claimer->params.conf;

	(void)fd;
	(void)what;
	claimer->due_mono_msecs = 0;
	claimer_round_in(claimer, conf->claim_interval * 1000 +
	    arc4random_uniform((uint32_t)conf->claim_jitter * 1000 + 1));
	clean_avoid(claimer);
	if (claimer->is_running || !claimer_may_claim(claimer) ||
	    leases_count(claimer->params.leases) >=
		(size_t)conf->max_accounts_per_worker)
		return;
	/* Answered before the first page: the share is of now. */
	heartbeat_send(claimer->params.heartbeat);
	claimer->is_running = true;
	claimer->round++;
	claimer->n_left = 0;
	claimer_walk(claimer, FROM_ORPHANS);
}

void
claimer_round_in(struct claimer *claimer, int64_t msecs)
{
	int64_t due = clock_mono_msecs() + msecs;

	/* Never later than what is planned already. */
	if (claimer->due_mono_msecs != 0 && claimer->due_mono_msecs <= due)
		return;
	claimer->due_mono_msecs = due;
	event_in_msecs(claimer->timer, msecs);
}

void
claimer_look(struct claimer *claimer)
{
	claimer->must_look = true;
}

/* --- tries -------------------------------------------------------------- */

static void
on_try_timer(evutil_socket_t fd, short what, void *arg)
{
	struct claimer *claimer = arg;
	size_t i;

	(void)fd;
	(void)what;
	for (i = 0; i < claimer->n_tries; i++) {
		GROW(claimer->ids, claimer->n_ids, claimer->cap_ids);
		claimer->ids[claimer->n_ids++] = claimer->tries[i];
	}
	claimer->n_tries = 0;
	if (claimer->is_running)
		return; /* asked about with its next page */
	claimer->is_running = true;
	claimer->source = FROM_TRIES;
	claimer->is_last_page = true;
	go_on(claimer);
}

void
claimer_try(struct claimer *claimer, const struct uuid *id)
{
	const struct conf *conf = claimer->params.conf;
	size_t owned = leases_count(claimer->params.leases);
	int64_t wait;

	idmap_remove(&claimer->avoid, id);
	if (claimer->n_tries == TRIES_MAX) /* the next round finds it */
		return;
	GROW(claimer->tries, claimer->n_tries, claimer->cap_tries);
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

	claimer->params = *params;
	claimer->claim_params = (struct claim_params){ .redis = params->redis,
		.conf = params->conf, .worker_id = params->worker_id,
		.era = params->era };
	claimer->must_look = true; /* a dead master of this host? */
	log_init(&claimer->log, LOG_LEASE, "%s", "");
	claimer->timer =
	    event_new(params->base, -1, 0, claimer_on_timer, claimer);
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
	idmap_release(&claimer->left);
	free(claimer->ids);
	free(claimer->tries);
	free(claimer);
}
