/*
 * clerk.c - the master's way to PostgreSQL.
 *
 * Runs in: one child per master.  Blocking: that is why it is not the master.
 *
 * Questions are answered in order, each answer ended by MSG_CLERK_DONE.  The
 * session is kept open and opened anew when PostgreSQL was away.  A clerk that
 * is stuck or dies is replaced; nothing is in it that is not in PostgreSQL.
 */
#include "child/child.h"

#include "base/clock.h"
#include "child/hooks.h"
#include "blob/blob.h"

#include <malloc.h>
#include <unistd.h>

#define DUE_LIMIT 200
#define ORPHAN_LIMIT 100
/* A job that was rung for and not taken is rung for again after this long:
 * Redis may have lost it, or the worker that it went to. */
#define RUNG_SECS 10
/* Room is worth giving back from a segment that is half dead. */
#define GC_DEAD_PERCENT 50
#define GC_MSECS 20000
/* Daemons may be restarted daily: the first time comes sooner. */
#define GC_FIRST_SHARE 24
#define PURGE_LIMIT 1000
#define PURGE_ROUNDS 10
/* Merging takes a third of the time at most. */
#define MERGE_SHARE 3

struct clerk {
	struct runtime rt;
	struct store *store;
	int64_t opened_mono_msecs; /* the session */
	struct arena *arena; /* dies with the answer */
	int64_t purge_mono_msecs; /* the next time */
	int64_t gc_mono_msecs;
};

static int
connect_store(struct clerk *clerk, struct err *err)
{
	if (clerk->store != NULL)
		return 0;
	if (store_open(&clerk->store, child_conf()->database,
	    "mailherd clerk", err) == -1)
		return -1;
	clerk->opened_mono_msecs = clock_mono_msecs();
	return store_check(clerk->store, err);
}

static void
fill_facts(struct msg_facts *facts, const struct account *account,
    const char *asker)
{
	facts->user_id = account->user_id;
	facts->is_found = 1;
	facts->is_ours = strcmp(account->owner, asker) == 0;
	facts->is_live = account->state == ACCOUNT_LIVE;
	facts->epoch = account->epoch;
	facts->last_mail_secs = account->last_mail_secs;
	facts->last_active_secs = account->last_active_secs;
	facts->next_try_secs = account->next_try_secs;
	facts->auth_failures = account->auth_failures;
	facts->imap_port = account->imap_port;
	snprintf(facts->imap_host, sizeof(facts->imap_host), "%s",
	    account->imap_host);
	snprintf(facts->email, sizeof(facts->email), "%s", account->email);
	snprintf(facts->last_error, sizeof(facts->last_error), "%s",
	    account->last_error);
}

static int
answer_facts(struct clerk *clerk, const struct msg_take_over *ask,
    bool is_claim, struct err *err)
{
	struct account *account = NULL;
	struct err failure = ERR_INIT;
	struct msg_facts facts;
	int rv;

	memset(&facts, 0, sizeof(facts));
	facts.account_id = ask->account_id;
	facts.is_claim = is_claim;
	if (is_claim)
		rv = store_account_take_over(clerk->store, &ask->account_id,
		    ask->owner, clerk->arena, &account, &failure);
	else
		rv = store_account_load(clerk->store, &ask->account_id,
		    clerk->arena, &account, &failure);
	/* An account that is gone is an answer too. */
	if (rv == -1 && failure.kind != ERR_GONE) {
		*err = failure;
		return -1;
	}
	if (rv == 0)
		fill_facts(&facts, account, ask->owner);
	runtime_send(&clerk->rt, MSG_FACTS, &facts);
	return 0;
}

/* Gone, or anything else: the child finds out for itself. */
static int
answer_brief(struct clerk *clerk, const struct msg_brief *ask,
    struct err *err)
{
	struct err failure = ERR_INIT;
	struct msg_briefing briefing;

	if (account_brief(clerk->store, &ask->account_id, clerk->arena,
		&briefing, &failure) == -1 &&
	    failure.kind != ERR_GONE) {
		*err = failure;
		return -1;
	}
	briefing.child = ask->child;
	runtime_send(&clerk->rt, MSG_BRIEFING, &briefing);
	return 0;
}

static int
answer_live_ids(struct clerk *clerk, struct err *err)
{
	struct msg_ids msg;
	struct uuid *ids;
	size_t n, from = 0, part;

	if (store_live_ids(clerk->store, clerk->arena, &ids, &n, err) == -1)
		return -1;
	do {
		part = n - from < MSG_IDS_MAX ? n - from : MSG_IDS_MAX;
		memset(&msg, 0, sizeof(msg));
		if (part > 0)
			memcpy(msg.ids, ids + from, part * sizeof(*ids));
		msg.n = (uint32_t)part;
		from += part;
		msg.is_last = from == n;
		runtime_send(&clerk->rt, MSG_LIVE_IDS, &msg);
	} while (from < n);
	return 0;
}

static void
send_due(struct clerk *clerk, const struct due_job *due, size_t n,
    enum job_queue queue)
{
	struct msg_due_jobs msg;
	size_t i;

	memset(&msg, 0, sizeof(msg));
	msg.queue = queue;
	for (i = 0; i < n; i++) {
		if (due[i].queue != queue)
			continue;
		msg.ids[msg.n++] = due[i].id;
		if (msg.n == MSG_IDS_MAX) {
			runtime_send(&clerk->rt, MSG_DUE_JOBS, &msg);
			msg.n = 0;
		}
	}
	if (msg.n > 0)
		runtime_send(&clerk->rt, MSG_DUE_JOBS, &msg);
}

/* Who had his turn; not being told does no harm. */
static void
send_yields(struct clerk *clerk, const struct msg_sweep *ask)
{
	struct msg_ids msg;
	struct uuid *ids;
	size_t n;

	if (store_jobs_to_yield(clerk->store, ask->owner, ask->slice_secs,
		clerk->arena, &ids, &n) == -1 || n == 0)
		return;
	memset(&msg, 0, sizeof(msg));
	msg.n = (uint32_t)(n < MSG_IDS_MAX ? n : MSG_IDS_MAX);
	memcpy(msg.ids, ids, msg.n * sizeof(*ids));
	msg.is_last = true;
	runtime_send(&clerk->rt, MSG_YIELD_JOBS, &msg);
}

/*
 * While PostgreSQL was away no worker could hold its jobs: none is taken for
 * lost before all had the time to do so again, or it would run twice.
 */
static int
clerk_requeue(struct clerk *clerk, struct err *err)
{
	if (clock_mono_msecs() - clerk->opened_mono_msecs <
	    JOB_LOCK_SECS * 1000)
		return 0;
	return store_jobs_requeue(clerk->store, err);
}

static int
tell_due_jobs(struct clerk *clerk, struct err *err)
{
	struct due_job *due;
	size_t n;

	if (store_jobs_due(clerk->store, DUE_LIMIT, RUNG_SECS, clerk->arena,
		&due, &n, err) == -1)
		return -1;
	send_due(clerk, due, n, QUEUE_INTERACTIVE);
	send_due(clerk, due, n, QUEUE_BULK);
	return 0;
}

static int
answer_due_jobs(struct clerk *clerk, const struct msg_sweep *ask,
    struct err *err)
{
	send_yields(clerk, ask);
	return clerk_requeue(clerk, err) == -1 ? -1 : tell_due_jobs(clerk, err);
}

static void
tell_error_state(struct clerk *clerk, const struct account *account,
    const char *reason)
{
	struct msg_event event;

	memset(&event, 0, sizeof(event));
	event.event = EVENT_ACCOUNT_STATE;
	event.account_id = account->id;
	event.user_id = account->user_id;
	snprintf(event.name, sizeof(event.name), "%s",
	    account_state_name(ACCOUNT_ERROR));
	snprintf(event.reason, sizeof(event.reason), "%s", reason);
	runtime_send(&clerk->rt, MSG_EVENT, &event);
}

/*
 * An account whose bootstrap gave up would be bootstrapping for ever: it is
 * put into error, for the application to see.  One whose job was lost gets a
 * new one.
 */
static int
settle_orphan(struct clerk *clerk, const struct orphan *orphan,
    struct err *err)
{
	const unsigned not_yet = (1u << ACCOUNT_NEW) |
	    (1u << ACCOUNT_BOOTSTRAPPING);
	struct account *account;
	struct uuid job_id;
	bool is_changed;

	if (orphan->reason == NULL)
		return store_job_add(clerk->store, QUEUE_BULK,
		    "sync_bootstrap_account", &orphan->account_id, NULL,
		    &job_id, err);
	if (store_account_load(clerk->store, &orphan->account_id,
		clerk->arena, &account, err) == -1 ||
	    store_account_set_state(clerk->store, &account->id, not_yet,
		ACCOUNT_ERROR, orphan->reason, &is_changed, err) == -1)
		return -1;
	if (is_changed)
		tell_error_state(clerk, account, orphan->reason);
	return 0;
}

static int
settle_orphans(struct clerk *clerk, struct err *err)
{
	struct orphan *orphans;
	size_t i, n;

	if (store_bootstrap_orphans(clerk->store, ORPHAN_LIMIT, clerk->arena,
		&orphans, &n, err) == -1)
		return -1;
	/* One whose row is locked does not keep the others waiting. */
	for (i = 0; i < n; i++) {
		struct err failure = ERR_INIT;

		if (settle_orphan(clerk, &orphans[i], &failure) == -1)
			*err = failure;
		if (failure.kind == ERR_DATABASE)
			break;
	}
	return err->kind == ERR_NONE ? 0 : -1;
}

static int
clerk_purge(struct clerk *clerk, struct err *err)
{
	const struct conf *conf = child_conf();
	int64_t now = clock_mono_msecs();
	bool has_more = true;
	int i;

	if (now < clerk->purge_mono_msecs)
		return 0;
	for (i = 0; has_more && i < PURGE_ROUNDS; i++)
		if (store_purge(clerk->store, PURGE_LIMIT,
			conf->expunged_keep_d, &has_more, err) == -1)
			return -1;
	/* With more to do it goes on at the next turn. */
	if (!has_more)
		clerk->purge_mono_msecs = now + conf->purge_interval * 1000;
	return 0;
}

/* Bytes whose rows are gone, a while at a time (R-LIFE-5). */
static int
collect_blobs(struct clerk *clerk, struct err *err)
{
	const struct conf *conf = child_conf();
	int64_t now = clock_mono_msecs(), pause = conf->blob_gc_interval * 1000;
	struct blob_gc_result r;

	if (clerk->gc_mono_msecs == 0)
		clerk->gc_mono_msecs = now + pause / GC_FIRST_SHARE;
	if (now < clerk->gc_mono_msecs)
		return 0;
	clerk->gc_mono_msecs = now + pause;
	if (blob_gc_for(clerk->store, conf->blob_dir, GC_DEAD_PERCENT,
		BLOB_GC_MIN_AGE_SECS, GC_MSECS, &r, err) == -1)
		return -1;
	if (r.has_more)
		clerk->gc_mono_msecs = now;
	if (r.bytes_freed > 0)
		log_info(&clerk->rt.log, "blobs: %llu bytes given back, %u "
		    "segments and %u files removed",
		    (unsigned long long)r.bytes_freed, r.segments_removed,
		    r.files_removed);
	else
		log_debug(&clerk->rt.log, "blobs: %u segments seen, nothing "
		    "to give back", r.segments_seen);
	return 0;
}

static int
merge_search(struct clerk *clerk, struct err *err)
{
	return store_search_merge(clerk->store,
	    child_conf()->search_merge_interval * 1000 / MERGE_SHARE, err);
}

/* What fails does not keep the rest from being done; the first is told. */
static int
do_upkeep(struct clerk *clerk, struct err *err)
{
	static int (*const steps[])(struct clerk *, struct err *) = {
	    settle_orphans, merge_search, clerk_purge, collect_blobs};
	size_t i;

	for (i = 0; i < sizeof(steps) / sizeof(steps[0]) &&
	    store_is_usable(clerk->store); i++) {
		struct err failure = ERR_INIT;

		if (steps[i](clerk, &failure) == -1 && err->kind == ERR_NONE)
			*err = failure;
	}
	return err->kind == ERR_NONE ? 0 : -1;
}

static void
tell_risk(struct clerk *clerk, const struct msg_risk *msg, bool is_parked)
{
	struct msg_event event;

	memset(&event, 0, sizeof(event));
	event.event = EVENT_QUARANTINE;
	event.account_id = msg->account_id;
	event.mailbox_id = msg->folder_id;
	event.done = msg->uid_from;
	snprintf(event.name, sizeof(event.name), "%s",
	    is_parked ? "parked" : "noted");
	snprintf(event.reason, sizeof(event.reason), "%s", msg->how);
	runtime_send(&clerk->rt, MSG_EVENT, &event);
}

static int
note_risk(struct clerk *clerk, const struct msg_risk *msg, struct err *err)
{
	struct risk risk = {
		.folder_id = msg->folder_id,
		.step = msg->step,
		.uid_from = msg->uid_from,
		.uid_to = msg->uid_to,
	};
	const struct risk_rule rule = {
		.limit = (unsigned)child_conf()->risk_attempts,
		.pause_secs = child_conf()->poll_warm,
	};

	if (store_risk_count(clerk->store, &msg->account_id, &risk, msg->how,
		&rule, err) == -1)
		return -1;
	if (risk.is_news || risk.attempts == 1)
		tell_risk(clerk, msg, risk.is_news);
	return 0;
}

/* Back to the queue, as an attempt that failed (R-JOB-2). */
static int
note_lost(struct clerk *clerk, const struct msg_job_lost *msg,
    struct err *err)
{
	const struct job_attempt any = { msg->job_id, msg->owner, 0 };
	const int64_t now = clock_wall_secs();
	const struct job_again again = { .at_secs = now + 1,
		.further_secs = now };
	struct err how = ERR_INIT, failure = ERR_INIT;
	struct msg_event event;
	bool is_dead = false;

	err_set(&how, ERR_TEMPORARY, "%s", msg->how);
	if (store_job_failed(clerk->store, &any, &how, &again, &is_dead,
		&failure) == -1) {
		if (failure.kind == ERR_GONE) /* never taken, or ended */
			return 0;
		*err = failure;
		return -1;
	}
	if (!is_dead) /* it may have got further, and come again at once */
		return tell_due_jobs(clerk, err);
	memset(&event, 0, sizeof(event));
	event.event = EVENT_JOB_FAILED;
	event.job_id = msg->job_id;
	snprintf(event.name, sizeof(event.name), "dead");
	snprintf(event.reason, sizeof(event.reason), "%s", msg->how);
	runtime_send(&clerk->rt, MSG_EVENT, &event);
	return 0;
}

static int
clerk_answer(struct clerk *clerk, const struct frame *frame, struct err *err)
{
	const union msg_payload *p = &frame->payload;

	switch (frame->header.type) {
	case MSG_TAKE_OVER:
		return answer_facts(clerk, &p->take_over, true, err);
	case MSG_LOOK_UP:
		return answer_facts(clerk, &p->look_up, false, err);
	case MSG_BRIEF:
		return answer_brief(clerk, &p->brief, err);
	case MSG_RECONCILE:
		return answer_live_ids(clerk, err);
	case MSG_SWEEP:
		return answer_due_jobs(clerk, &p->sweep, err);
	case MSG_UPKEEP:
		return do_upkeep(clerk, err);
	case MSG_RISK:
		return note_risk(clerk, &p->risk, err);
	case MSG_HOLD_JOBS:
		return store_jobs_hold(clerk->store, p->hold_jobs.ids,
		    p->hold_jobs.n, p->hold_jobs.owner, JOB_LOCK_SECS, err);
	case MSG_JOB_LOST:
		return note_lost(clerk, &p->job_lost, err);
	default:
		return err_set(err, ERR_PROTOCOL, "not for a clerk: %s",
		    msg_type_name(frame->header.type));
	}
}

static void
clerk_serve(struct clerk *clerk, const struct frame *frame)
{
	struct msg_clerk_done done;
	struct err err = ERR_INIT;

	memset(&done, 0, sizeof(done));
	done.request = frame->header.type;
	runtime_activity(&clerk->rt, "%s",
	    msg_type_name(frame->header.type));
	if (connect_store(clerk, &err) == -1 ||
	    clerk_answer(clerk, frame, &err) == -1) {
		done.outcome = err.kind;
		snprintf(done.text, sizeof(done.text), "%s", err.text);
		if (clerk->store != NULL && !store_is_usable(clerk->store))
			store_close(&clerk->store);
	}
	runtime_send(&clerk->rt, MSG_CLERK_DONE, &done);
	arena_reset(clerk->arena);
}

void
clerk_main(const struct child_start *start)
{
	struct clerk clerk;
	struct frame frame;

	memset(&clerk, 0, sizeof(clerk));
	runtime_init(&clerk.rt, start);
	clerk.arena = arena_new("clerk's answer");
	proc_set_title("clerk");
	for (;;) {
		runtime_activity(&clerk.rt, "waiting");
		if (runtime_next(&clerk.rt, &frame, -1) != 1)
			continue;
		if (frame.header.type == MSG_STOP) {
			if (clerk.store != NULL)
				store_close(&clerk.store);
			_exit(EXIT_DONE);
		}
		clerk_serve(&clerk, &frame);
	}
}
