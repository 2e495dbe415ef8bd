/*
 * pass_result.c - what a pass, or the end of a child, means for its account.
 *
 * Runs in: master of the sync role.  Never blocks.
 *
 * What the end of a child means is a row of child_end.c; here is what is done
 * about it.  A failure the child has reported itself is not counted twice.
 */
#include "master/pass_result.h"

#include "base/clock.h"
#include "master/accounts.h"
#include "master/budgets.h"
#include "master/child_end.h"
#include "master/children.h"
#include "master/crash_note.h"
#include "master/hosts.h"
#include "master/ownership.h"
#include "master/pool.h"
#include "master/release.h"
#include "master/state.h"
#include "master/tiers.h"

#include <stdlib.h>

/* When an account's hot child could not be made: until the next. */
#define NOT_MADE_MSECS 5000

/* --- failures ------------------------------------------------------------- */

static void
pass_failed(struct account *account, struct master *m, enum err_kind kind,
    int64_t retry_after_secs, const char *text)
{
	struct health *health = &account->health;
	bool is_news = kind != health->last_error_kind ||
	    health->failures == 0;
	int64_t now = clock_mono_msecs();
	long long pause;

	health_failed(health, m->conf, kind, retry_after_secs, text, now);
	m->counters.errors++;
	pause = (health->not_before_mono - now + 999) / 1000;
	if (is_news)
		log_warn(&account->log, "pass failed (%s), next in %lld s: %s",
		    err_kind_name(kind), pause, health->last_error);
	else
		log_debug(&account->log, "pass failed (%s) again, next in "
		    "%lld s: %s", err_kind_name(kind), pause,
		    health->last_error);
}

/* What a provider asks for is remembered for the account and for its host
 * (R-CONN-3); how long the account waits is its health. */
static void
pass_note_complaint(struct account *account, struct master *m, bool is_limit)
{
	int64_t now = clock_mono_msecs();

	if (is_limit) {
		account->single_until_mono = now +
		    policy_single_msecs(m->conf);
		log_warn(&account->log, "too many connections for the "
		    "server: one at a time for %lld s",
		    (long long)policy_single_msecs(m->conf) / 1000);
	}
	host_complains(account->server, m->conf, &account->id, is_limit,
	    budgets_host_in_use(m->budgets, account->host), now);
	accounts_budget_changed(m->accounts);
}

static void
pass_fenced(struct account *account, struct master *m)
{
	m->counters.fenced++;
	release_account(account, m, "fenced", m->conf->claim_interval * 1000);
}

/* --- a report ------------------------------------------------------------- */

static uint32_t
pass_changes(const struct msg_pass_done *done)
{
	return done->messages_new + done->messages_updated +
	    done->messages_deleted;
}

static void
pass_went_well(struct account *account, struct master *m,
    const struct msg_pass_done *done)
{
	if (account->health.failures > 0)
		log_info(&account->log, "works again after %u failures",
		    account->health.failures);
	health_recovered(&account->health);
	if (done->is_slowed) {
		pass_note_complaint(account, m, false);
		health_pause(&account->health, clock_mono_msecs() +
		    policy_slowed_msecs(m->conf));
	}
	account->last_pass_secs = clock_wall_secs();
	account->passes++;
	m->counters.polls++;
	m->counters.new_messages += done->messages_new;
	m->counters.updated_messages += done->messages_updated;
	m->counters.deleted_messages += done->messages_deleted;
	account_saw_mail(account, m->accounts, done->last_mail_secs);
	log_debug(&account->log, "pass finished new=%u updated=%u deleted=%u "
	    "folders=%u msecs=%lld round_trips=%lld", done->messages_new,
	    done->messages_updated, done->messages_deleted,
	    done->folders_polled, (long long)done->msecs,
	    (long long)done->round_trips);
}

/* May free the account. */
static void
pass_handle_outcome(struct master *m, struct account *account, bool is_hot,
    const struct msg_pass_done *done)
{
	switch (done->outcome) {
	case ERR_NONE:
		pass_went_well(account, m, done);
		tiers_evaluate(account, m);
		break;
	case ERR_STOPPED: /* we asked for it */
	case ERR_STALE:	  /* comes again at its time */
		break;
	case ERR_FENCED:
		/* A pass begun under an epoch we have raised ourselves. */
		if (done->epoch != account->epoch)
			break;
		log_warn(&account->log, "fenced: the epoch is no longer ours");
		pass_fenced(account, m);
		break;
	case ERR_SERVER:
		/* INBOX is refused: polls go on, and see to it. */
		if (is_hot) {
			log_debug(&account->log, "not followed: %s",
			    done->text);
			break;
		}
		/* FALLTHROUGH */
	default:
		if (done->outcome == ERR_THROTTLED)
			pass_note_complaint(account, m, done->is_limit);
		/* It did not get to its end, but further: no growing pauses
		 * then. */
		if (pass_changes(done) > 0)
			health_progressed(&account->health);
		pass_failed(account, m, done->outcome, done->retry_after_secs,
		    done->text);
		break;
	}
}

/*
 * A poll has looked at INBOX, which the hot child follows.  That the copy is
 * lagging may be a matter of seconds; that it lags at the same place after a
 * while means that IDLE has died silently, or that the server tells nothing
 * in it.  Then the child is replaced; the new one catches up first.  A server
 * whose STATUS never agrees with its SELECT is left alone.
 */
static void
pass_check_inbox(struct master *m, struct account *account,
    const struct msg_pass_done *done)
{
	struct lag *lag = &account->lag;
	int64_t now = clock_mono_msecs();

	switch (lag_step(lag, done->peek == PEEK_DIFFERS &&
	    account_is_idling(account), done->inbox_generation,
	    done->inbox_mark, now, policy_grace_msecs(m->conf))) {
	case LAG_NONE:
		return;
	case LAG_WAIT:
		policy_again(&account->schedule, lag->since +
		    policy_grace_msecs(m->conf));
		return;
	case LAG_STALE:
		break;
	}
	m->counters.idle_silent++;
	log_warn(&account->log, "INBOX has changed and IDLE did not tell: "
	    "hot child replaced pid=%d idle_secs=%lld",
	    (int)account->hot->pid, (long long)(now -
		account->hot->idling_since_mono) / 1000);
	if (lag->times >= LAG_TIMES_MAX) {
		lag->times = 0;
		account->idle_stale_until_mono = now +
		    policy_idle_stale_msecs(m->conf);
		accounts_budget_changed(m->accounts);
	}
	child_stop(account->hot, "silent");
}

/* The child is free for another account, whatever became of this one. */
static void
pass_ends_poll(struct master *m, struct child *child,
    struct account *account, enum err_kind outcome)
{
	account_drop_child(account, child);
	child->account_id = (struct uuid){ .bytes = { 0 } };
	slot_set_deadline(child->slot, DEADLINE_NONE);
	if (outcome == ERR_NONE || outcome == ERR_STALE)
		policy_passed(m->conf, policy_near_msecs(m->conf,
		    account->tier, account_is_idling(account)),
		    account->pool_scope, clock_mono_msecs(), arc4random(),
		    &account->schedule);
	account_poll_again(account);
}

void
pass_result_handle(struct master *m, struct child *child,
    const struct msg_pass_done *done)
{
	struct account *account = child->account;

	child->has_reported = done->outcome != ERR_NONE;
	/* It was told, after it had idled: IDLE works. */
	if (child->kind == KIND_HOT && child->idling_since_mono != 0 &&
	    pass_changes(done) > 0)
		account->lag.times = 0;
	if (child->kind == KIND_POOL)
		pass_ends_poll(m, child, account, done->outcome);
	if (account->state != OWNERSHIP_OWNED) {
		release_step(account, m);
	} else {
		if (done->outcome == ERR_NONE && done->peek != PEEK_NONE)
			pass_check_inbox(m, account, done);
		if (done->account_left_live || done->condemned)
			ownership_on_state(m, &account->id, done->condemned ?
			    "error" : "not live", done->text);
		else
			pass_handle_outcome(m, account,
			    child->kind == KIND_HOT, done);
	}
	accounts_look_soon(m->accounts);
}

void
pass_result_idling(struct master *m, struct child *child)
{
	if (child->idling_since_mono == 0) {
		child->idling_since_mono = clock_mono_msecs();
		log_info(&child->account->log, "idling on INBOX pid=%d",
		    (int)child->pid);
	}
	child->has_reported = false;
	accounts_look_soon(m->accounts);
}

/* --- an end --------------------------------------------------------------- */

/* A hot child that failed waits by itself: polls go on. */
static void
end_hot_failed(struct master *m, struct account *account,
    const struct child *child, int64_t now)
{
	int64_t idled = child->idling_since_mono != 0 ?
	    now - child->idling_since_mono : 0;

	health_hot_failed(&account->health, m->conf, idled, now);
	/* INBOX is polled meanwhile. */
	policy_adjust(m->conf, account->tier, false, now, arc4random(),
	    &account->schedule);
}

static void
end_failed(struct master *m, struct account *account, struct child *child)
{
	char how[160], text[MSG_TEXT_SIZE];

	if (child->has_reported)
		return;
	snprintf(text, sizeof(text), "%s child ended: %s",
	    child_kind_name(child->kind), child_end_describe(child, how,
	    sizeof(how)));
	pass_failed(account, m, child_end_failure(child), 0, text);
}

/* May free the account. */
static void
end_handle(struct master *m, struct account *account, struct child *child,
    int64_t now)
{
	switch (child_end_meaning(child)) {
	case MEANS_NOT_OURS:
		pass_fenced(account, m);
		break;
	case MEANS_HOT_SOON: /* no account's fault: it is polled */
		health_hot_pause(&account->health, now + NOT_MADE_MSECS);
		break;
	case MEANS_HOT_BACKOFF:
		end_hot_failed(m, account, child, now);
		break;
	case MEANS_HOT_FAILURE:
		end_hot_failed(m, account, child, now);
		end_failed(m, account, child);
		break;
	case MEANS_FAILURE:
		end_failed(m, account, child);
		break;
	default:
		break;
	}
}

void
pass_result_child_end(struct master *m, struct child *child)
{
	struct account *account = child->account;
	int64_t now = clock_mono_msecs();
	struct slot_note note;
	bool is_known = crash_note_report(m, child, &note);

	pool_child_ended(child, is_known, now);
	if (account != NULL) {
		if (note.step != 0)
			health_note_death(&account->health, &note);
		account_drop_child(account, child);
		if (account->state != OWNERSHIP_OWNED)
			release_step(account, m);
		else if (!is_known || !health_forgives_death(
			&account->health, m->conf, child->kind == KIND_HOT,
			now))
			end_handle(m, account, child, now);
	}
	accounts_look_soon(m->accounts);
}
