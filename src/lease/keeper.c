/*
 * keeper.c - which accounts this worker owns.
 *
 * Runs in: master.  Never blocks.
 *
 * Order after (re)connecting: which Redis is it (lease/era.h); heartbeat, so
 * that the others count us and we count them; renewal of what we hold;
 * reconcile, which heals a wiped Redis; then a first claim, a moment later,
 * when workers that started together know of each other (R-LEASE-3,
 * R-LEASE-11).
 *
 * To reconcile means to read all live ids from Redis and from PostgreSQL: one
 * worker of the fleet does it in each interval and in each era
 * (sync:reconcile); the others look only whether what they own is in the set.
 * The turn is short until the work is done, so that another one takes over from
 * a worker that died at it.
 */
#include "lease/keeper.h"

#include "base/backoff.h"
#include "base/clock.h"
#include "base/xmem.h"
#include "lease/claimer.h"
#include "lease/era.h"
#include "lease/heartbeat.h"
#include "redis/loop.h"
#include "lease/reconcile.h"
#include "redis/redis.h"
#include "redis/scripts.h"
#include "lease/share.h"
#include "lease/unlisted.h"

#include <hiredis/hiredis.h>

#include <stdlib.h>

/* After the first heartbeat, the first claim: from this to twice this. */
#define FIRST_CLAIM_MSECS 500
/* When many leases turn out to be gone, look soon whether Redis was wiped. */
#define SUSPICION_MSECS 1000
/* To read and compare all ids. */
#define RECONCILE_MSECS 60000

struct keeper {
	struct keeper_params params;
	struct leases *leases;
	struct claimer *claimer;
	struct heartbeat *heartbeat;
	struct era *era;
	struct reconcile *reconcile;
	struct event *reconcile_timer;
	struct event *rebalance_timer;
	bool is_stopped;
	bool must_announce;  /* leases were given up for others to take */
	bool is_announcing; /* the PUBLISH is under way */
};

static void
reconcile_in(struct keeper *keeper, int64_t msecs)
{
	event_in_msecs(keeper->reconcile_timer, msecs);
}

static void
keeper_on_unlisted(void *arg, const struct uuid *id)
{
	struct keeper *keeper = arg;

	if (keeper->params.on_unlisted != NULL)
		keeper->params.on_unlisted(keeper->params.arg, id);
}

static void
keeper_on_turn(void *arg, const redisReply *reply)
{
	struct keeper *keeper = arg;

	if (reply == NULL || keeper->is_stopped)
		return;
	if (reply->type != REDIS_REPLY_INTEGER)
		log_warn(NULL, "sync:reconcile: %s", redis_describe(reply));
	else if (reply->integer == 1)
		reconcile_start(keeper->reconcile,
		    heartbeat_live(keeper->heartbeat));
	else
		unlisted_find(keeper->params.redis, keeper->leases,
		    keeper_on_unlisted, keeper);
}

static void
take_turn(struct keeper *keeper, int64_t msecs,
    void (*on_reply)(void *arg, const redisReply *reply))
{
	const struct keeper_params *p = &keeper->params;
	/* A little less, so that who is alone always has it. */
	int64_t most = p->conf->reconcile_interval * 850;
	char key[ERA_KEY_SIZE], era[ERA_KEY_SIZE], text[24];
	const char *args[4] = { key, era_key(p->redis, era), p->worker_id,
		text };

	snprintf(key, sizeof(key), "%ssync:reconcile", redis_prefix(p->redis));
	snprintf(text, sizeof(text), "%lld",
	    (long long)(msecs < most ? msecs : most));
	redis_eval(p->redis, &script_turn, on_reply, keeper, 2, args, 4);
}

static void
start_reconcile(struct keeper *keeper)
{
	take_turn(keeper, RECONCILE_MSECS, keeper_on_turn);
}

static void
on_reconcile_timer(evutil_socket_t fd, short what, void *arg)
{
	struct keeper *keeper = arg;

	(void)fd;
	(void)what;
	/* Not all workers at the same moment. */
	reconcile_in(keeper, jitter_msecs(
	    keeper->params.conf->reconcile_interval * 1000, 10, arc4random()));
	start_reconcile(keeper);
}

static void
on_rebalance_timer(evutil_socket_t fd, short what, void *arg)
{
	struct keeper *keeper = arg;
	struct share share = {
		.owned = leases_count(keeper->leases),
		.live = heartbeat_live(keeper->heartbeat),
		.workers = heartbeat_workers(keeper->heartbeat),
		.max = (size_t)keeper->params.conf->max_accounts_per_worker,
	};
	size_t excess;

	(void)fd;
	(void)what;
	event_in_msecs(keeper->rebalance_timer,
	    keeper->params.conf->rebalance_interval * 1000);
	if (!redis_is_up(keeper->params.redis))
		return;
	excess = share_shed(&share);
	if (excess > 0)
		keeper->params.on_shed(keeper->params.arg, excess);
}

/* --- what the parts tell ------------------------------------------------ */

static bool
keeper_may_claim(void *arg)
{
	struct keeper *keeper = arg;

	return !keeper->is_stopped &&
	    keeper->params.may_claim(keeper->params.arg);
}

static void
keeper_on_won(void *arg, const struct uuid *id, int64_t deadline)
{
	struct keeper *keeper = arg;

	keeper->params.on_won(keeper->params.arg, id, deadline);
}

static void
keeper_on_renewed(void *arg, const struct uuid *id, int64_t deadline)
{
	struct keeper *keeper = arg;

	keeper->params.on_renewed(keeper->params.arg, id, deadline);
}

static void
keeper_on_lost(void *arg, const struct uuid *ids, size_t n, enum lease_end how)
{
	struct keeper *keeper = arg;

	keeper->params.on_lost(keeper->params.arg, ids, n, how);
	claimer_look(keeper->claimer);
	if (how == LEASE_FENCED && leases_count(keeper->leases) == 0)
		reconcile_in(keeper, SUSPICION_MSECS);
}

static void
on_all_renewed(void *arg)
{
	struct keeper *keeper = arg;

	era_confirm(keeper->era);
}

static void
on_wrong_era(void *arg)
{
	struct keeper *keeper = arg;
	const char *const *holders;
	size_t n = heartbeat_holders(keeper->heartbeat, &holders);

	era_ask(keeper->era, holders, n);
}

static void
on_era(void *arg, const char *name)
{
	struct keeper *keeper = arg;

	/* Another one; or Redis refused to tell when it was asked. */
	if (!era_is_asking(keeper->era) &&
	    strcmp(era_name(keeper->era), name) != 0)
		on_wrong_era(keeper);
}

/* Redis lost its memory: what of ours is left in it, and what is live? */
static void
on_new_era(void *arg)
{
	struct keeper *keeper = arg;

	if (keeper->is_stopped)
		return;
	leases_renew(keeper->leases);
	start_reconcile(keeper);
}

static void
on_announced(void *arg, const struct redisReply *reply)
{
	struct keeper *keeper = arg;

	(void)reply;
	keeper->is_announcing = false;
	if (keeper->params.on_released != NULL)
		keeper->params.on_released(keeper->params.arg);
}

/* Once for all that were released together. */
static void
keeper_announce(struct keeper *keeper)
{
	struct redis *redis = keeper->params.redis;

	if (!keeper->must_announce || keeper->is_announcing ||
	    leases_releasing(keeper->leases) > 0)
		return;
	keeper->must_announce = false;
	keeper->is_announcing = redis_send(redis, on_announced, keeper,
	    "PUBLISH %ssync:released " KEEPER_RELEASED,
	    redis_prefix(redis)) == 0;
}

static void
keeper_on_released(void *arg, const struct uuid *id, bool is_sure)
{
	struct keeper *keeper = arg;

	/* A release that comes late must not undo a claim of ours. */
	if (!is_sure)
		claimer_avoid(keeper->claimer, id,
		    keeper->params.conf->lease_ttl * 1000);
	keeper_announce(keeper);
	if (keeper->params.on_released != NULL)
		keeper->params.on_released(keeper->params.arg);
}

static void
on_ask(void *arg)
{
	struct keeper *keeper = arg;

	keeper->params.on_reconcile(keeper->params.arg);
}

static void
keeper_on_reconciled(void *arg, size_t n_added)
{
	struct keeper *keeper = arg;

	take_turn(keeper, INT64_MAX, NULL);
	if (n_added == 0)
		return;
	heartbeat_send(keeper->heartbeat); /* counts the set anew */
	claimer_look(keeper->claimer);
	claimer_round_in(keeper->claimer, FIRST_CLAIM_MSECS);
}

static char *
keeper_describe(void *arg)
{
	struct keeper *keeper = arg;

	return keeper->params.describe(keeper->params.arg);
}

/* --- what the master tells ---------------------------------------------- */

void
keeper_redis_up(struct keeper *keeper)
{
	if (keeper->is_stopped)
		return;
	on_wrong_era(keeper); /* perhaps: which is it? */
	heartbeat_send(keeper->heartbeat);
	leases_renew(keeper->leases);
	start_reconcile(keeper);
	claimer_round_in(keeper->claimer, FIRST_CLAIM_MSECS +
	    arc4random_uniform(FIRST_CLAIM_MSECS));
}

void
keeper_redis_down(struct keeper *keeper)
{
	claimer_forget_round(keeper->claimer);
	reconcile_forget(keeper->reconcile);
}

void
keeper_live_ids(struct keeper *keeper, const struct uuid *ids, size_t n)
{
	reconcile_add(keeper->reconcile, ids, n);
}

void
keeper_live_end(struct keeper *keeper, bool is_complete)
{
	reconcile_end(keeper->reconcile, is_complete);
}

void
keeper_set_live(struct keeper *keeper, const struct uuid *id, bool is_live)
{
	reconcile_set_live(keeper->reconcile, id, is_live);
	if (is_live && !leases_has(keeper->leases, id) &&
	    keeper_may_claim(keeper))
		claimer_try(keeper->claimer, id);
}

void
keeper_release(struct keeper *keeper, const struct uuid *id,
    int64_t avoid_msecs)
{
	if (avoid_msecs > 0)
		claimer_avoid(keeper->claimer, id, avoid_msecs);
	if (avoid_msecs > 0 || !keeper_may_claim(keeper))
		keeper->must_announce = true;
	leases_release(keeper->leases, id);
}

void
keeper_claim_soon(struct keeper *keeper)
{
	if (keeper_may_claim(keeper))
		claimer_round_in(keeper->claimer,
		    arc4random_uniform(FIRST_CLAIM_MSECS));
}

void
keeper_stop(struct keeper *keeper)
{
	keeper->is_stopped = true;
	claimer_forget_round(keeper->claimer);
	heartbeat_end(keeper->heartbeat);
}

bool
keeper_is_quiet(const struct keeper *keeper)
{
	return leases_releasing(keeper->leases) == 0 &&
	    !keeper->is_announcing && !claimer_is_asking(keeper->claimer);
}

size_t
keeper_count(const struct keeper *keeper)
{
	return leases_count(keeper->leases);
}

size_t
keeper_workers(const struct keeper *keeper)
{
	return heartbeat_workers(keeper->heartbeat);
}

size_t
keeper_live(const struct keeper *keeper)
{
	return heartbeat_live(keeper->heartbeat);
}

int64_t
keeper_lease_left(const struct keeper *keeper, const struct uuid *id)
{
	int64_t deadline = leases_deadline(keeper->leases, id);

	return deadline == INT64_MIN ? -1 : deadline - clock_boot_msecs();
}

/* --- life --------------------------------------------------------------- */

static void
make_parts(struct keeper *keeper)
{
	const struct keeper_params *p = &keeper->params;

	keeper->heartbeat =
	    heartbeat_new(&(struct heartbeat_params){.base = p->base,
		.redis = p->redis,
		.conf = p->conf,
		.worker_id = p->worker_id,
		.role = "sync",
		.describe = keeper_describe,
		.is_willing = keeper_may_claim,
		.on_era = on_era,
		.arg = keeper});
	keeper->era = era_new(&(struct era_params){ .redis = p->redis,
	    .conf = p->conf, .worker_id = p->worker_id, .on_new = on_new_era,
	    .arg = keeper });
	keeper->leases = leases_new(&(struct leases_params){.base = p->base,
	    .redis = p->redis,
	    .conf = p->conf,
	    .worker_id = p->worker_id,
	    .on_renewed = keeper_on_renewed,
	    .on_lost = keeper_on_lost,
	    .on_released = keeper_on_released,
	    .on_all_renewed = on_all_renewed,
	    .arg = keeper});
	keeper->claimer = claimer_new(&(struct claimer_params){.base = p->base,
	    .redis = p->redis,
	    .conf = p->conf,
	    .worker_id = p->worker_id,
	    .leases = keeper->leases,
	    .heartbeat = keeper->heartbeat,
	    .era = keeper->era,
	    .may_claim = keeper_may_claim,
	    .on_won = keeper_on_won,
	    .on_wrong_era = on_wrong_era,
	    .arg = keeper});
	keeper->reconcile = reconcile_new(
	    p->base, p->redis, on_ask, keeper_on_reconciled, keeper);
}

struct keeper *
keeper_new(const struct keeper_params *params)
{
	struct keeper *keeper = xcalloc(1, sizeof(*keeper));

	keeper->params = *params;
	make_parts(keeper);
	keeper->reconcile_timer = event_new(params->base, -1, 0,
	    on_reconcile_timer, keeper);
	keeper->rebalance_timer = event_new(params->base, -1, 0,
	    on_rebalance_timer, keeper);
	reconcile_in(keeper, params->conf->reconcile_interval * 1000);
	event_in_msecs(keeper->rebalance_timer,
	    params->conf->rebalance_interval * 1000);
	return keeper;
}

void
keeper_free(struct keeper **keeper_p)
{
	struct keeper *keeper = *keeper_p;

	if (keeper == NULL)
		return;
	*keeper_p = NULL;
	event_free(keeper->reconcile_timer);
	event_free(keeper->rebalance_timer);
	reconcile_free(&keeper->reconcile);
	claimer_free(&keeper->claimer);
	leases_free(&keeper->leases);
	era_free(&keeper->era);
	heartbeat_free(&keeper->heartbeat);
	free(keeper);
}
