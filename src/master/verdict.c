/*
 * verdict.c - what the end of a pass or of a child means for its account.
 *
 * Runs in: master.  Never blocks.
 *
 * What the end of a child means is a row of child_end.c; here is what is done
 * about it.  A failure the child has reported itself is not counted twice.
 */
#include "master/verdict.h"

#include "base/clock.h"
#include "base/text.h"
#include "master/accounts.h"
#include "master/child_end.h"
#include "master/children.h"
#include "master/crash_note.h"
#include "master/dispatch.h"
#include "master/grants.h"
#include "master/hosts.h"
#include "master/pool.h"
#include "master/tiers.h"

/* A hot child that has idled so long has proved itself. */
#define PROVED_MSECS 60000

/* Deaths in a row of what is known, each followed by a short pause. */
#define DEATHS_MAX 200
#define DEATH_PAUSE_MSECS 100

/* --- failures ----------------------------------------------------------- */

/* When anything may be tried again; all that has a say in it. */
static int64_t
next_try(const struct account *account, const struct master *m,
    enum err_kind kind, int64_t retry_after_secs, int64_t now)
{
	unsigned failures = kind == ERR_AUTH ? account->refusals :
	    account->failures;
	int64_t next = now + policy_pause(m->conf, kind, failures,
	    retry_after_secs, arc4random());

	if (next < account->not_before_mono)
		next = account->not_before_mono;
	if (kind == ERR_AUTH && next < logins_next(&account->logins))
		next = logins_next(&account->logins);
	return next;
}

static void
note_failure(struct account *account, struct master *m, enum err_kind kind,
    int64_t retry_after_secs, const char *text)
{
	int64_t now = clock_mono_msecs();

	account->failures++;
	if (kind == ERR_AUTH) {
		account->refusals++;
		logins_note(&account->logins, now);
	}
	account->not_before_mono = next_try(account, m, kind,
	    retry_after_secs, now);
	account->last_error_kind = kind;
	account->last_error_secs = clock_wall_secs();
	text_clean_line(account->last_error, sizeof(account->last_error), text,
	    strlen(text));
	m->counters.errors++;
}

static void
account_failed(struct account *account, struct master *m, enum err_kind kind,
    int64_t retry_after_secs, const char *text)
{
	bool is_news = kind != account->last_error_kind ||
	    account->failures == 0;
	long long pause;

	note_failure(account, m, kind, retry_after_secs, text);
	pause = (account->not_before_mono - clock_mono_msecs() + 999) / 1000;
	if (is_news)
		log_warn(&account->log, "pass failed (%s), next in %lld s: %s",
		    err_kind_name(kind), pause, account->last_error);
	else
		log_debug(&account->log, "pass failed (%s) again, next in "
		    "%lld s: %s", err_kind_name(kind), pause,
		    account->last_error);
}

/* What a provider asks for is remembered for the account and for its host
 * (R-CONN-3); how long the account waits is in not_before_mono. */
static void
note_complaint(struct account *account, struct master *m, bool is_limit)
{
	int64_t now = clock_mono_msecs();

	if (is_limit) {
		account->narrow_until_mono = now +
		    policy_narrow_msecs(m->conf);
		log_warn(&account->log, "too many connections for the "
		    "server: one at a time for %lld s",
		    (long long)policy_narrow_msecs(m->conf) / 1000);
	}
	host_complains(account->server, m->conf, &account->id, is_limit,
	    grants_host_in_use(m->grants, account->host), now);
	m->accounts->is_budget_stale = true;
}

static void
account_went_well(struct account *account, struct master *m,
    const struct msg_pass_done *done)
{
	if (account->failures > 0)
		log_info(&account->log, "works again after %u failures",
		    account->failures);
	account->failures = 0;
	account->deaths = 0;
	account->refusals = 0;
	account->last_error_kind = ERR_NONE;
	account->last_error[0] = '\0';
	account->not_before_mono = 0;
	if (done->is_slowed) {
		note_complaint(account, m, false);
		account->not_before_mono = clock_mono_msecs() +
		    policy_slowed_msecs(m->conf);
	}
	account->last_pass_secs = clock_wall_secs();
	account->passes++;
	m->counters.polls++;
	m->counters.new_messages += done->messages_new;
	m->counters.updated_messages += done->messages_updated;
	m->counters.deleted_messages += done->messages_deleted;
	if (done->last_mail_secs > account->facts.last_mail_secs) {
		account->facts.last_mail_secs = done->last_mail_secs;
		m->accounts->is_budget_stale = true;
	}
	log_debug(&account->log, "pass finished new=%u updated=%u deleted=%u "
	    "folders=%u msecs=%lld round_trips=%lld", done->messages_new,
	    done->messages_updated, done->messages_deleted,
	    done->folders_polled, (long long)done->msecs,
	    (long long)done->round_trips);
}

/* --- a report ----------------------------------------------------------- */

/* It did not get to its end, but further: no growing pauses then. */
static bool
has_progress(const struct msg_pass_done *done)
{
	return done->messages_new + done->messages_updated +
	    done->messages_deleted > 0;
}

/* May free the account. */
static void
judge(struct master *m, struct account *account, bool is_hot,
    const struct msg_pass_done *done)
{
	if (done->account_left_live || done->condemned) {
		accounts_state_changed(m->accounts, &account->id,
		    done->condemned ? "error" : "not live", done->text);
		return;
	}
	switch (done->outcome) {
	case ERR_NONE:
		account_went_well(account, m, done);
		account_evaluate(account, m);
		break;
	case ERR_STOPPED: /* we asked for it */
	case ERR_STALE:	  /* comes again at its time */
		break;
	case ERR_FENCED:
		/* A pass begun under an epoch we have raised ourselves. */
		if (done->epoch != account->epoch)
			break;
		m->counters.fenced++;
		log_warn(&account->log, "fenced: the epoch is no longer ours");
		account_leave(account, m, "fenced",
		    m->conf->claim_interval * 1000);
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
			note_complaint(account, m, done->is_limit);
		if (has_progress(done))
			account->failures = 0;
		account_failed(account, m, done->outcome,
		    done->retry_after_secs, done->text);
		break;
	}
}

/*
 * A poll has looked at INBOX, which the hot child follows.  That the copy is
 * behind may be a matter of seconds; that it is behind at the same place after
 * a while means that IDLE has died silently, or that the server tells nothing
 * in it.  Then the child is replaced; the new one catches up first.  A server
 * whose STATUS never agrees with its SELECT is left alone.
 */
static void
judge_peek(struct master *m, struct account *account,
    const struct msg_pass_done *done)
{
	struct behind *behind = &account->behind;
	int64_t now = clock_mono_msecs();

	switch (behind_step(behind, done->peek == PEEK_DIFFERS &&
	    account_is_idling(account), done->inbox_generation,
	    done->inbox_mark, now, policy_grace_msecs(m->conf))) {
	case BEHIND_NO:
		return;
	case BEHIND_WAIT:
		policy_again(&account->schedule, behind->since +
		    policy_grace_msecs(m->conf));
		return;
	case BEHIND_SILENT:
		break;
	}
	m->counters.idle_silent++;
	log_warn(&account->log, "INBOX has changed and IDLE did not tell: "
	    "hot child replaced pid=%d idle_secs=%lld",
	    (int)account->hot->pid, (long long)(now -
		account->hot->idling_since_mono) / 1000);
	if (behind->times >= SILENT_MAX) {
		behind->times = 0;
		account->silent_until_mono = now +
		    policy_silent_msecs(m->conf);
		m->accounts->is_budget_stale = true;
	}
	child_stop(account->hot, "silent");
}

/* What was asked for while the pass was under way it may not have seen. */
static void
account_wants_again(struct account *account)
{
	int64_t now = clock_mono_msecs();

	if (account->is_wanted_near)
		policy_again(&account->schedule, now);
	if (account->is_wanted_full)
		account->schedule.full = now;
	account->is_wanted_near = account->is_wanted_full = false;
}

void
verdict_pass(struct master *m, struct child *child, struct account *account,
    const struct msg_pass_done *done)
{
	child->has_reported = done->outcome != ERR_NONE;
	/* It was told, after it had idled: IDLE works. */
	if (child->kind == KIND_HOT && child->idling_since_mono != 0 &&
	    done->messages_new + done->messages_updated +
	    done->messages_deleted > 0)
		account->behind.times = 0;
	if (child->kind == KIND_POOL) {
		unsigned scope = account->pool_scope;

		account->pool = NULL;
		child->account = NULL;
		child->account_id = (struct uuid){ .bytes = { 0 } };
		slot_set_deadline(child->slot, DEADLINE_NONE);
		if (done->outcome == ERR_NONE || done->outcome == ERR_STALE)
			policy_passed(m->conf, account->tier,
			    account_is_idling(account), scope,
			    clock_mono_msecs(), arc4random(),
			    &account->schedule);
		account_wants_again(account);
	}
	if (account->state != ACCOUNT_OWNED) {
		account_leave_step(account, m);
	} else {
		if (done->outcome == ERR_NONE && done->peek != PEEK_NONE)
			judge_peek(m, account, done);
		judge(m, account, child->kind == KIND_HOT, done);
	}
	dispatch_soon(m);
}

void
verdict_idling(struct master *m, struct child *child, struct account *account)
{
	if (child->idling_since_mono == 0) {
		child->idling_since_mono = clock_mono_msecs();
		log_info(&account->log, "idling on INBOX pid=%d",
		    (int)child->pid);
	}
	child->has_reported = false;
	dispatch_soon(m);
}

/* --- an end ------------------------------------------------------------- */

static void
account_note_death(struct account *account, const struct slot_note *note)
{
	const struct slot_note *last = &account->last_death;
	bool is_there = note->folder_id == last->folder_id &&
	    note->step == last->step && note->uid_from == last->uid_from;

	account->deaths_there = is_there ? account->deaths_there + 1 : 1;
	account->last_death = *note;
}

/* A hot child that failed waits by itself: polls go on. */
static void
hot_failed(struct master *m, struct account *account, struct child *child)
{
	int64_t now = clock_mono_msecs();

	if (child->idling_since_mono != 0 &&
	    now - child->idling_since_mono >= PROVED_MSECS)
		account->hot_failures = 0;
	account->hot_failures++;
	account->hot_not_before_mono = now + policy_pause(m->conf,
	    ERR_TEMPORARY, account->hot_failures, 0, arc4random());
	/* INBOX is polled meanwhile. */
	policy_adjust(m->conf, account->tier, false, now, arc4random(),
	    &account->schedule);
}

/*
 * It died of a message or folder that is known now: that costs this one, not
 * the account.  After so many attempts the way leads around it; who dies there
 * once more, or in a very long row, has failed.
 */
static bool
costs_no_pause(struct account *account, const struct master *m,
    const struct child *child)
{
	const int64_t soon = clock_mono_msecs() + DEATH_PAUSE_MSECS;

	if (account->deaths_there > m->conf->risk_attempts ||
	    ++account->deaths > DEATHS_MAX)
		return false;
	if (child->kind == KIND_HOT)
		account->hot_not_before_mono = soon;
	else if (account->not_before_mono < soon)
		account->not_before_mono = soon;
	return true;
}

static void
child_failed(struct master *m, struct account *account, struct child *child)
{
	char how[160], text[MSG_TEXT_SIZE];

	if (child->has_reported)
		return;
	snprintf(text, sizeof(text), "%s child ended: %s",
	    child_kind_name(child->kind), child_end_describe(child, how,
	    sizeof(how)));
	account_failed(account, m, child_end_failure(child), 0, text);
}

/* May free the account. */
static void
handle_end(struct master *m, struct account *account, struct child *child)
{
	switch (child_end_meaning(child)) {
	case MEANS_NOT_OURS:
		m->counters.fenced++;
		account_leave(account, m, "fenced",
		    m->conf->claim_interval * 1000);
		break;
	case MEANS_HOT_SOON: /* no account's fault: it is polled */
		account->hot_not_before_mono = clock_mono_msecs() +
		    UNMADE_MSECS;
		break;
	case MEANS_HOT_BACKOFF:
		hot_failed(m, account, child);
		break;
	case MEANS_HOT_FAILURE:
		hot_failed(m, account, child);
		child_failed(m, account, child);
		break;
	case MEANS_FAILURE:
		child_failed(m, account, child);
		break;
	default:
		break;
	}
}

void
verdict_end(struct master *m, struct child *child)
{
	struct account *account = child->account;
	struct slot_note note;
	bool is_known = crash_note_report(m, child, &note);

	pool_child_ended(child, is_known, clock_mono_msecs());
	if (account != NULL) {
		if (note.step != 0)
			account_note_death(account, &note);
		child->account = NULL;
		if (account->hot == child)
			account->hot = NULL;
		if (account->pool == child)
			account->pool = NULL;
		if (account->state != ACCOUNT_OWNED)
			account_leave_step(account, m);
		else if (!is_known || !costs_no_pause(account, m, child))
			handle_end(m, account, child);
	}
	dispatch_soon(m);
}
