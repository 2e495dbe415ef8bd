/*
 * explain.c - why an account of this worker is where it is, and what comes.
 *
 * Runs in: master of the sync role.  Never blocks.
 *
 * Each part says its line for people (`chain`) and sets its members for
 * programs side by side, so that the two cannot tell different stories.
 */
#include "base/clock.h"
#include "lease/keeper.h"
#include "master/accounts.h"
#include "master/budgets.h"
#include "master/children.h"
#include "master/clerk.h"
#include "master/hosts.h"
#include "master/reply.h"

struct account_story {
	const struct master *m;
	const struct account *account;
	json_t *reply, *chain;
	int64_t now; /* mono */
};

static void story_say(struct account_story *s, const char *label,
    const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static void
story_say(struct account_story *s, const char *label, const char *fmt, ...)
{
	char text[600], line[640], clean[1800];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	snprintf(line, sizeof(line), "%-9s %s", label, text);
	text_clean_line(clean, sizeof(clean), line, strlen(line));
	json_array_append_new(s->chain, json_string(clean));
}

#define SPAN_SIZE 48

static const char *
story_in(const struct account_story *s, char out[SPAN_SIZE], int64_t when_mono)
{
	char span[32];

	if (when_mono <= s->now)
		snprintf(out, SPAN_SIZE, "now");
	else
		snprintf(out, SPAN_SIZE, "in %s", clock_format_span(span,
		    sizeof(span), (when_mono - s->now + 999) / 1000));
	return out;
}

/* Seconds until then, rounded up; never less than 0. */
static int64_t
story_secs_to(const struct account_story *s, int64_t when_mono)
{
	return when_mono > s->now ? (when_mono - s->now + 999) / 1000 : 0;
}

static const char *
story_span(char out[SPAN_SIZE], int64_t secs)
{
	return clock_format_span(out, SPAN_SIZE, secs);
}

/* --- who ---------------------------------------------------------------- */

static void
story_tell_owner(struct account_story *s)
{
	const struct account *a = s->account;
	int64_t left = keeper_lease_left(s->m->keeper, &a->id);
	char text[SPAN_SIZE];

	reply_id(s->reply, "account_id", &a->id);
	reply_text(s->reply, "email", a->email);
	/* An account that is owned is live; in any other state it leaves. */
	reply_text(s->reply, "state", a->state == OWNERSHIP_OWNED ? "live" :
	    ownership_state_name(a->state));
	reply_text(s->reply, "ownership", ownership_state_name(a->state));
	reply_text(s->reply, "owner", s->m->worker_id);
	reply_number(s->reply, "owned_s", (s->now - a->since_mono) / 1000);
	reply_number(s->reply, "lease_left_s", left > 0 ? left / 1000 : 0);
	reply_number(s->reply, "epoch", a->epoch);
	story_say(s, "owner", "this worker, %s since %s: %s",
	    ownership_state_name(a->state),
	    story_span(text, (s->now - a->since_mono) / 1000), s->m->worker_id);
	story_say(s, "lease", "%lld s left, renewed each %lld s, epoch %lld",
	    (long long)(left > 0 ? left / 1000 : 0),
	    (long long)s->m->conf->lease_renew, (long long)a->epoch);
}

static void
story_tell_tier(struct account_story *s)
{
	const struct account *a = s->account;
	char text[SPAN_SIZE];

	reply_text(s->reply, "tier", tier_name(a->tier));
	reply_text(s->reply, "tier_rule", a->rule);
	json_object_set_new(s->reply, "pinned",
	    json_boolean(a->facts.is_pinned));
	reply_number(s->reply, "session_left_s",
	    story_secs_to(s, a->session_until_mono));
	reply_number(s->reply, "last_mail_at", a->facts.last_mail_secs);
	story_say(s, "tier", "%s: %s", tier_name(a->tier), a->rule);
	if (a->session_until_mono > s->now)
		story_say(s, "session", "ends %s unless it is refreshed",
		    story_in(s, text, a->session_until_mono));
	if (a->facts.last_mail_secs > 0)
		story_say(s, "last mail", "%s ago",
		    story_span(text,
			clock_wall_secs() - a->facts.last_mail_secs));
}

/* --- connections -------------------------------------------------------- */

static const char *
story_idle_word(const struct account *a)
{
	if (account_is_idling(a))
		return "idle";
	if (a->hot != NULL)
		return a->hot->state == CHILD_STOPPING ? "ending" :
		    "connecting";
	return "none";
}

static void
story_tell_idle(struct account_story *s)
{
	const struct account *a = s->account;
	char text[SPAN_SIZE];

	reply_text(s->reply, "idle", story_idle_word(a));
	reply_text(s->reply, "no_idle", no_idle_name(a->no_idle));
	reply_text(s->reply, "no_idle_reason", no_idle_reason(a->no_idle));
	if (account_is_idling(a))
		story_say(s, "idle", "on INBOX for %s, pid %d: %s",
		    story_span(text,
			(s->now - a->hot->idling_since_mono) / 1000),
		    (int)a->hot->pid, a->hot->activity);
	else if (a->hot != NULL)
		story_say(s, "idle", "%s, pid %d: %s", story_idle_word(a),
		    (int)a->hot->pid, a->hot->activity);
	else if (a->tier == TIER_HOT && a->no_idle != IDLE_ALLOWED)
		story_say(s, "idle", "polled often instead, because %s",
		    no_idle_reason(a->no_idle));
	else if (a->tier == TIER_HOT && a->health.refusals > 0)
		story_say(s, "idle",
		    "not while the login is refused: polls try it");
	else if (a->tier == TIER_HOT)
		story_say(s, "idle", "no connection yet, next try %s",
		    story_in(s, text, health_hot_next(&a->health)));
}

static void
story_tell_budgets(struct account_story *s)
{
	const struct account *a = s->account;
	const struct master *m = s->m;
	size_t cap = host_cap(a->server, m->conf, s->now);
	size_t used = budgets_host_in_use(m->budgets, a->host);
	size_t own = budgets_account_in_use(m->budgets, &a->id);
	size_t n_hot = accounts_of_tier(m->accounts, TIER_HOT);

	reply_text(s->reply, "host", a->host);
	reply_number(s->reply, "connections", (int64_t)own);
	reply_number(s->reply, "host_sockets", (int64_t)used);
	reply_number(s->reply, "host_cap", (int64_t)cap);
	reply_number(s->reply, "hot_accounts", (int64_t)n_hot);
	reply_number(s->reply, "hot_budget", m->conf->hot_budget_per_worker);
	story_say(s, "budget",
	    "%zu connection%s of this account; %zu of %zu to %s, "
	    "of which %zu may idle",
	    own, own == 1 ? "" : "s", used, cap, a->host,
	    policy_idle_share(cap));
	story_say(s, "budget",
	    "%zu of %lld hot accounts; %zu of %lld PostgreSQL "
	    "sessions",
	    n_hot, (long long)m->conf->hot_budget_per_worker,
	    budgets_in_use(m->budgets, RESOURCE_DATABASE),
	    (long long)m->conf->db_conn_cap);
}

/* What providers have asked for, and is obeyed (R-CONN-3). */
static void
story_tell_throttle(struct account_story *s)
{
	const struct account *a = s->account;
	const struct conf *conf = s->m->conf;
	int64_t throttled = host_throttled_until(a->server, conf, s->now);
	char text[SPAN_SIZE];

	reply_number(s->reply, "narrow_s", story_secs_to(s,
	    a->single_until_mono));
	reply_number(s->reply, "host_spared_s", story_secs_to(s, throttled));
	reply_number(s->reply, "host_rate", host_rate(a->server, conf,
	    s->now));
	if (a->single_until_mono > s->now)
		story_say(s, "throttle",
		    "one connection at a time: the server has "
		    "counted too many; ends %s",
		    story_in(s, text, a->single_until_mono));
	if (a->idle_stale_until_mono > s->now)
		story_say(s, "throttle",
		    "no IDLE, its news did not come; ends %s",
		    story_in(s, text, a->idle_stale_until_mono));
	if (throttled > s->now)
		story_say(s, "throttle",
		    "%s is spared: %lld new connections a "
		    "second, %zu in all; eased %s",
		    a->host, (long long)host_rate(a->server, conf, s->now),
		    host_cap(a->server, conf, s->now),
		    story_in(s, text, throttled));
}

/* --- health and what comes ---------------------------------------------- */

static void
story_tell_health(struct account_story *s)
{
	const struct account *a = s->account;
	char text[SPAN_SIZE];

	reply_number(s->reply, "passes", (int64_t)a->passes);
	reply_number(s->reply, "last_pass_at", a->last_pass_secs);
	reply_number(s->reply, "failures", a->health.failures);
	reply_number(s->reply, "refusals", a->health.refusals);
	reply_text(s->reply, "last_error", a->health.last_error);
	reply_text(s->reply, "last_error_kind",
	    a->health.last_error_kind == ERR_NONE ? "" :
	    err_kind_name(a->health.last_error_kind));
	reply_number(s->reply, "last_error_at", a->health.last_error_secs);
	reply_number(s->reply, "wait_s", story_secs_to(s,
	    a->health.not_before_mono));
	if (a->health.last_error[0] == '\0')
		story_say(s, "health", "good, %llu passes since taken over",
		    (unsigned long long)a->passes);
	else if (a->health.failures == 0)
		story_say(s, "health", "an earlier owner failed (%s): %s",
		    err_kind_name(a->health.last_error_kind),
		    a->health.last_error);
	else
		story_say(s, "health",
		    "%u failure%s in a row, the last %s ago "
		    "(%s): %s",
		    a->health.failures, a->health.failures == 1 ? "" : "s",
		    story_span(text,
			clock_wall_secs() - a->health.last_error_secs),
		    err_kind_name(a->health.last_error_kind),
		    a->health.last_error);
	if (a->health.refusals > 0)
		story_say(s, "refused", "%u of %lld logins in a row; then the "
		    "account goes to error", a->health.refusals,
		    (long long)s->m->conf->auth_refusals);
	if (a->health.not_before_mono > s->now)
		story_say(s, "wait",
		    "%s, nothing is asked of the server until "
		    "then%s",
		    story_span(text, story_secs_to(s,
			a->health.not_before_mono)),
		    a->health.last_error_kind == ERR_THROTTLED ? ": it wants so"
							       : "");
}

static int64_t
story_not_before(const struct account *a, int64_t when_mono)
{
	return when_mono > a->health.not_before_mono ? when_mono :
	    a->health.not_before_mono;
}

static void
story_tell_polls(struct account_story *s)
{
	const struct account *a = s->account;
	const struct schedule *when = &a->schedule;
	int64_t next = policy_next(when);
	const char *what = account_is_idling(a) ? "special folders" :
	    "INBOX and special folders";
	char near[SPAN_SIZE], far[SPAN_SIZE];

	next = story_not_before(a, next);
	reply_number(s->reply, "next_poll_s", story_secs_to(s, next));
	if (a->pool != NULL)
		story_say(s, "pass", "under way, pid %d: %s", (int)a->pool->pid,
		    a->pool->activity);
	if (when->full != 0)
		story_say(s, "poll", "all folders %s",
		    story_in(s, near, story_not_before(a, when->full)));
	story_say(s, "poll", "%s %s, other folders %s", what,
	    story_in(s, near, story_not_before(a, when->near)),
	    story_in(s, far, story_not_before(a, when->far)));
}

/* One sentence: what happens next, and when. */
static void
story_tell_next(struct account_story *s)
{
	const struct account *a = s->account;
	int64_t next = story_not_before(a, policy_next(&a->schedule));
	char when[SPAN_SIZE], text[160];

	if (a->state == OWNERSHIP_TAKING)
		snprintf(text, sizeof(text), "waiting for PostgreSQL to raise "
		    "the epoch (%zu questions)", clerk_backlog(s->m->clerk));
	else if (a->state == OWNERSHIP_LEAVING)
		snprintf(text, sizeof(text), "its children end, then the "
		    "lease is released: %s", a->leave_why);
	else if (a->pool != NULL)
		snprintf(text, sizeof(text), "the pass under way ends");
	else if (a->tier == TIER_HOT && a->no_idle == IDLE_ALLOWED &&
		 a->hot == NULL && a->health.refusals == 0 &&
		 health_hot_next(&a->health) <= next)
		snprintf(text, sizeof(text), "a connection for IDLE is opened "
		    "%s", story_in(s, when, health_hot_next(&a->health)));
	else
		snprintf(text, sizeof(text), "%s %s", a->health.refusals > 0 ?
		    "the login is tried again" : a->health.failures > 0 ?
		    "it is tried again" : "a poll", story_in(s, when, next));
	reply_text(s->reply, "next", text);
	story_say(s, "next", "%s", text);
}

void
explain_account(struct master *m, const struct account *account, json_t *reply)
{
	struct account_story s = { .m = m, .account = account, .reply = reply,
		.chain = json_array(), .now = clock_mono_msecs() };

	story_say(&s, "account", "%s", account->email);
	story_tell_owner(&s);
	if (account->state == OWNERSHIP_OWNED) {
		story_tell_tier(&s);
		story_tell_idle(&s);
		story_tell_polls(&s);
		story_tell_budgets(&s);
		story_tell_throttle(&s);
		story_tell_health(&s);
	}
	story_tell_next(&s);
	json_object_set_new(reply, "chain", s.chain);
}
