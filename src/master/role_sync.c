/*
 * role_sync.c - a sync worker: owns accounts by leases, watches and polls them.
 *
 * Runs in: master of the sync role.  Never blocks.
 */
#include "master/role.h"

#include "base/clock.h"
#include "lease/keeper.h"
#include "master/accounts.h"
#include "master/children.h"
#include "master/dispatch.h"
#include "master/event_hub.h"
#include "master/ownership.h"
#include "master/pass_result.h"
#include "master/pool.h"
#include "master/release.h"
#include "master/reply.h"
#include "master/tiers.h"
#include "redis/redis.h"

#include <string.h>

/* --- beginning and end -------------------------------------------------- */

static void
sync_on_channel(void *arg, const char *text, size_t len)
{
	struct master *m = arg;

	if (len == strlen(KEEPER_RELEASED) &&
	    memcmp(text, KEEPER_RELEASED, len) == 0)
		keeper_claim_soon(m->keeper);
	else
		event_hub_hear(m, text, len);
}

static void
sync_start(struct master *m)
{
	static const char *const channels[] = {
		"events:account.state_changed",
		"events:user.active",
		"events:quarantine.changed",
		"sync:released",
	};

	ownership_start(m);
	redis_subscribe(m->redis_events, channels,
	    sizeof(channels) / sizeof(channels[0]), sync_on_channel, m);
}

static void
sync_stop(struct master *m)
{
	keeper_stop(m->keeper);
	release_all(m, "shutdown");
}

static bool
sync_is_quiet(const struct master *m)
{
	return accounts_count(m->accounts) == 0 && keeper_is_quiet(m->keeper);
}

/* --- orders ------------------------------------------------------------- */

static void
sync_drain(struct master *m)
{
	release_all(m, "drained");
}

static void
sync_undrain(struct master *m)
{
	(void)m; /* the next round of claims sees it */
}

/* Hot children keep their settings until their connection ends: a reload
 * should not reconnect everybody. */
static void
sync_reload(struct master *m)
{
	pool_reload(m->polls);
	accounts_look_soon(m->accounts);
}

/* --- what happens ------------------------------------------------------- */

static void
sync_on_redis_up(struct master *m)
{
	keeper_redis_up(m->keeper);
}

static void
sync_on_redis_down(struct master *m)
{
	keeper_redis_down(m->keeper);
}

static void
sync_on_ready(struct master *m, struct child *child)
{
	if (child->kind == KIND_HOT) {
		child_prolong(child, dispatch_silence_msecs(m->conf, KIND_HOT));
		return;
	}
	pool_child_ready(child);
	accounts_look_soon(m->accounts);
}

/* What a child, or the clerk for a dead one, has put aside: a poll tries it
 * when all else is done.  Operators want another try, or none. */
static void
sync_hear_quarantine(struct master *m, const struct msg_event *event,
    bool is_own)
{
	struct account *account = account_find(m->accounts,
	    &event->account_id);

	if (account == NULL)
		return;
	if (is_own && strcmp(event->name, "noted") == 0)
		account_poll_near(account, m->accounts);
	if (!is_own && account->state == OWNERSHIP_OWNED &&
	    (strcmp(event->name, "retry") == 0 ||
		strcmp(event->name, "skipped") == 0))
		account_poll_now(account, m->accounts);
}

static void
sync_on_event(struct master *m, const struct msg_event *event, bool is_own)
{
	switch (event->event) {
	case EVENT_USER_ACTIVE:
		if (!uuid_is_null(&event->user_id))
			tiers_on_user_active(m, &event->user_id);
		break;
	case EVENT_ACCOUNT_STATE:
		if (!uuid_is_null(&event->account_id))
			ownership_on_state(m,
			    &event->account_id, event->name, event->reason);
		break;
	case EVENT_QUARANTINE:
		sync_hear_quarantine(m, event, is_own);
		break;
	default:
		break;
	}
}

/* --- what is shown ------------------------------------------------------ */

static struct account *
sync_find_account(struct master *m, const char *name, struct err *err)
{
	struct account *account = account_find_named(m->accounts, name);

	if (account == NULL)
		err_set(err, ERR_GONE, "this worker does not own the account; "
		    "account show tells the owner");
	return account;
}

/* Age of the oldest successful pass: the sync lag of the fleet. */
static int64_t
sync_oldest_pass(const struct master *m)
{
	int64_t oldest = 0, age, now = clock_wall_secs();
	struct account *account;
	size_t at;

	for (at = 0; (account = accounts_next(m->accounts, &at)) != NULL;) {
		age = account->last_pass_secs > 0 ?
		    now - account->last_pass_secs :
		    (clock_mono_msecs() - account->since_mono) / 1000;
		if (account->state == OWNERSHIP_OWNED && age > oldest)
			oldest = age;
	}
	return oldest;
}

static void
sync_count(const struct master *m, struct role_figures *figures)
{
	unsigned tier;

	figures->owned = keeper_count(m->keeper);
	for (tier = 0; tier < TIER_COUNT; tier++)
		figures->of_tier[tier] = accounts_of_tier(m->accounts, tier);
	figures->polled_instead = accounts_polled_instead(m->accounts,
	    NO_IDLE_COUNT);
	figures->oldest_pass_secs = sync_oldest_pass(m);
}

static void
sync_describe(const struct master *m, json_t *beat)
{
	reply_number(beat, "room", m->conf->max_accounts_per_worker);
}

/* How many hot accounts do not idle, and why (R-CONN-2). */
static void
sync_add_status(const struct master *m, json_t *reply)
{
	json_t *reasons = json_object();
	unsigned why;
	size_t n;

	for (why = IDLE_ALLOWED + 1; why < NO_IDLE_COUNT; why++)
		if ((n = accounts_polled_instead(m->accounts, why)) > 0)
			reply_number(reasons, no_idle_name(why), (int64_t)n);
	reply_number(reply, "polled_instead", (int64_t)accounts_polled_instead(
	    m->accounts, NO_IDLE_COUNT));
	json_object_set_new(reply, "polled_instead_why", reasons);
	reply_number(reply, "live", (int64_t)keeper_live(m->keeper));
	reply_number(reply, "workers", (int64_t)keeper_workers(m->keeper));
}

static void
sync_add_metrics(const struct master *m, struct buf *out)
{
	(void)m, (void)out; /* what a jobs worker shows as 0, too */
}

static void
sync_dump(const struct master *m)
{
	int64_t now = clock_mono_msecs();
	struct account *account;
	size_t at;

	for (at = 0; (account = accounts_next(m->accounts, &at)) != NULL;)
		log_info(&account->log, "dump: state=%s epoch=%lld "
		    "lease_left_ms=%lld hot=%d pool=%d failures=%u "
		    "next_ms=%lld rule=\"%s\"",
		    ownership_state_name(account->state),
		    (long long)account->epoch,
		    (long long)(account->deadline_boot_msecs -
			clock_boot_msecs()),
		    account->hot != NULL ? (int)account->hot->pid : 0,
		    account->pool != NULL ? (int)account->pool->pid : 0,
		    account->health.failures,
		    (long long)(policy_next(&account->schedule) - now),
		    account->rule);
}

const struct role_ops role_sync = {
	.name = "sync",
	.n_clerks = 1,
	.start = sync_start,
	.stop = sync_stop,
	.is_quiet = sync_is_quiet,
	.end = ownership_end,
	.drain = sync_drain,
	.undrain = sync_undrain,
	.reload = sync_reload,
	.on_redis_up = sync_on_redis_up,
	.on_redis_down = sync_on_redis_down,
	.on_postgres_up = ownership_on_postgres_up,
	.on_ready = sync_on_ready,
	.on_child_end = pass_result_child_end,
	.on_event = sync_on_event,
	.find_account = sync_find_account,
	.count = sync_count,
	.describe = sync_describe,
	.add_status = sync_add_status,
	.add_metrics = sync_add_metrics,
	.dump = sync_dump,
};
