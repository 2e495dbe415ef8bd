/*
 * messages.c - what children say, and who hears it.
 *
 * Runs in: master.  Never blocks.
 *
 * A table made from messages.def: for each message who may send it and what is
 * done.  The channel has checked the form; here is checked whether this child
 * may speak of this account at all, because the sender may be taken over by
 * hostile mail.  A child that breaks the rules is ended, never the master.
 */
#include "master/messages.h"

#include "base/clock.h"
#include "master/accounts.h"
#include "master/budget_gate.h"
#include "master/budgets.h"
#include "master/children.h"
#include "master/clerk.h"
#include "master/dispatch.h"
#include "master/event_hub.h"
#include "master/exporter.h"
#include "master/job_dispatch.h"
#include "master/orders.h"
#include "master/ownership.h"
#include "master/pass_result.h"
#include "master/pool.h"
#include "master/state.h"
#include "master/takeover.h"
#include "proc/vault.h"

#include <bsd/string.h>


/* Kinds of children, as bits. */
#define CLERK (1u << KIND_CLERK)
#define HOT (1u << KIND_HOT)
#define POOL (1u << KIND_POOL)
#define JOB (1u << KIND_JOB)
#define METRICS (1u << KIND_METRICS)
#define WORKER (CLERK | HOT | POOL | JOB)
#define ANY (WORKER | METRICS)

/* --- any child ---------------------------------------------------------- */

static void
hear_hello(struct master *m, struct child *child, const struct msg_hello *hello)
{
	(void)m, (void)child, (void)hello; /* children.c */
}

static void
hear_activity(struct master *m, struct child *child,
    const struct msg_activity *activity)
{
	(void)m, (void)child, (void)activity; /* children.c */
}

static void
hear_want(struct master *m, struct child *child, const struct msg_want *want)
{
	struct quirks quirks;

	quirks_match(m->params.quirks, want->host, NULL, NULL, &quirks);
	if (budgets_acquire(m->budgets, child->generation, &child->account_id,
		(size_t)quirks.conn_cap, want, clock_mono_msecs()) == -1)
		child_talks_nonsense(child, "wants too much");
	budget_gate_watch(m);
}

static void
hear_give_back(struct master *m, struct child *child,
    const struct msg_give_back *back)
{
	budgets_release(m->budgets, child->generation, back->want_id,
	    clock_mono_msecs());
}

/*
 * The seal is bound to account and address; we open it only for the account
 * this child works for.  The master knows that of hot and pool children; a job
 * is bound to the first account it asks for.
 */
static void
hear_unseal(struct master *m, struct child *child,
    const struct msg_unseal *unseal)
{
	const struct sealed sealed = { unseal->sealed, unseal->len };
	struct seal_bond bond = { .account_id = unseal->account_id };
	struct msg_secret secret = { .is_open = 0 };
	struct err err = ERR_INIT;
	size_t len = 0;

	_Static_assert(sizeof(bond.address) == sizeof(unseal->address),
	    "struct msg_unseal");

	(void)m;
	if (child->kind == KIND_JOB && child->job != NULL &&
	    uuid_is_null(&child->account_id))
		child->account_id = unseal->account_id;
	if (uuid_is_null(&child->account_id) ||
	    !uuid_is_equal(&child->account_id, &unseal->account_id)) {
		child_talks_nonsense(child,
		    "asks for the credentials of an account not its own");
		return;
	}
	memcpy(bond.address, unseal->address, sizeof(bond.address));
	if (vault_open(&bond, &sealed, secret.bytes, sizeof(secret.bytes),
		&len, &err) == 0) {
		secret.is_open = 1;
		secret.len = (uint32_t)len;
	} else {
		strlcpy(secret.reason, err.text, sizeof(secret.reason));
	}
	child_send(child, MSG_SECRET, &secret);
	explicit_bzero(&secret, sizeof(secret));
}

/* --- events ------------------------------------------------------------- */

static void
hear_event(struct master *m, struct child *child, const struct msg_event *event)
{
	/* Hot and pool children speak of their account only. */
	if ((child->kind == KIND_HOT || child->kind == KIND_POOL) &&
	    event->event != EVENT_QUOTA &&
	    !uuid_is_equal(&event->account_id, &child->account_id)) {
		child_talks_nonsense(child, "event of an account not its own");
		return;
	}
	event_hub_publish(m, event);
}

/* --- hot, pool, job ----------------------------------------------------- */

/* The clerk could not be asked, or had no answer. */
static void
hear_no_start_state(struct master *m, const struct uuid *account_id,
    enum err_kind outcome, const char *text)
{
	static const struct msg_briefing none;
	const struct account *account;

	(void)text;
	account = account_find(m->accounts, account_id);
	if (outcome == ERR_NONE || account == NULL || account->hot == NULL)
		return;
	account->hot->awaits_start_state = false;
	child_send(account->hot, MSG_BRIEFED, &none);
}

static void
hear_brief_me(struct master *m, struct child *child,
    const struct msg_empty *nothing)
{
	struct msg_brief brief = { .account_id = child->account_id,
		.child = child->generation };

	(void)nothing;
	if (child->awaits_start_state)
		return; /* one answer will do */
	child->awaits_start_state = true;
	clerk_ask(m->clerk, MSG_BRIEF, &brief, sizeof(brief),
	    &child->account_id, hear_no_start_state);
}

static void
hear_idling(struct master *m, struct child *child,
    const struct msg_idling *idling)
{
	if (uuid_is_null(&child->account_id) ||
	    !uuid_is_equal(&idling->account_id, &child->account_id))
		child_talks_nonsense(child, "idles for an account not its own");
	else if (child->account != NULL)
		pass_result_idling(m, child);
}

static void
hear_pass_done(struct master *m, struct child *child,
    const struct msg_pass_done *done)
{
	if (uuid_is_null(&child->account_id) ||
	    !uuid_is_equal(&done->account_id, &child->account_id)) {
		child_talks_nonsense(child, "pass of an account not its own");
		return;
	}
	if (child->account != NULL)
		pass_result_handle(m, child, done);
	if (child->kind != KIND_POOL)
		return;
	child->account_id = (struct uuid){ .bytes = { 0 } };
	budgets_release_work(m->budgets, child->generation, clock_mono_msecs());
	pool_child_done(child);
}

static void
hear_job_done(struct master *m, struct child *child,
    const struct msg_job_done *done)
{
	if (child->job == NULL) {
		child_talks_nonsense(child, "job that it does not have");
		return;
	}
	budgets_release_child(m->budgets, child->generation,
	    clock_mono_msecs());
	job_dispatch_done(m->jobs, child, done);
	job_dispatch_run(m->jobs);
}

/* --- metrics ------------------------------------------------------------ */

static void
hear_want_metrics(struct master *m, struct child *child,
    const struct msg_empty *nothing)
{
	(void)nothing;
	exporter_wanted(m->exporter, child);
}

/* --- clerk -------------------------------------------------------------- */

static void
hear_facts(struct master *m, struct child *child, const struct msg_facts *facts)
{
	(void)child;
	takeover_on_facts(m, facts);
}

/* For the child that asked, and for nobody after it. */
static void
hear_briefing(struct master *m, struct child *clerk,
    const struct msg_briefing *briefing)
{
	struct child *child = children_find(m->children, briefing->child);

	(void)clerk;
	if (child == NULL || !child->awaits_start_state ||
	    !uuid_is_equal(&child->account_id, &briefing->account_id))
		return;
	child->awaits_start_state = false;
	child_send(child, MSG_BRIEFED, briefing);
}

static void
hear_live_ids(struct master *m, struct child *child, const struct msg_ids *ids)
{
	(void)child;
	ownership_on_live_ids(m, ids->ids, ids->n);
}

static void
hear_job_taken(struct master *m, struct child *child,
    const struct msg_job_taken *taken)
{
	job_dispatch_taken(m->jobs, child, taken);
}

static void
hear_yield_jobs(struct master *m, struct child *child,
    const struct msg_ids *ids)
{
	(void)child;
	job_dispatch_yield(m->jobs, ids);
}

static void
hear_due_jobs(struct master *m, struct child *child,
    const struct msg_due_jobs *due)
{
	(void)child;
	job_dispatch_due(m->jobs, due);
}

static void
hear_clerk_done(struct master *m, struct child *child,
    const struct msg_clerk_done *done)
{
	(void)m;
	clerk_answered(child->clerk, child, done);
}

/* --- the table ---------------------------------------------------------- */

/* Roles whose masters hear it, as bits.  A clerk may tell more than this role
 * has asked for. */
#define SYNC (1u << ROLE_SYNC)
#define JOBS (1u << ROLE_JOBS)
#define BOTH (SYNC | JOBS)

/* message, kinds that may send it, roles that hear it */
#define HEARD(X)                                \
	X(hello, ANY, BOTH)                     \
	X(activity, ANY, BOTH)                  \
	X(want, WORKER, BOTH)                   \
	X(give_back, WORKER, BOTH)              \
	X(unseal, HOT | POOL | JOB, BOTH)       \
	X(event, WORKER, BOTH)                  \
	X(brief_me, HOT, SYNC)                  \
	X(idling, HOT, SYNC)                    \
	X(pass_done, HOT | POOL, SYNC)          \
	X(job_taken, JOB, JOBS)                 \
	X(job_done, JOB, JOBS)                  \
	X(yield_jobs, CLERK, JOBS)              \
	X(want_metrics, METRICS, BOTH)          \
	X(facts, CLERK, SYNC)                   \
	X(live_ids, CLERK, SYNC)                \
	X(due_jobs, CLERK, JOBS)                \
	X(briefing, CLERK, SYNC)                \
	X(clerk_done, CLERK, BOTH)

/* Here, as among the handlers, a missing one does not compile. */
enum {
#define X(handler, kinds, roles) \
	from_##handler = (kinds), to_##handler = (roles),
	HEARD(X)
#undef X
};

/* One trampoline per message of a child, so that each handler sees its own
 * type; messages of the master have none. */
#define CALL_FROM_MASTER(handler, payload)
#define CALL_FROM_CHILD(handler, payload)                 \
	static void call_##handler(struct master *m,     \
	    struct child *child, const void *p)          \
	{                                                \
		const payload *typed = p;                \
		hear_##handler(m, child, typed);           \
	}
#define MSG(symbol, handler, sender, payload) CALL_##sender(handler, payload)
#include "ipc/messages.def"
#undef MSG

#define ROW_FROM_MASTER(handler) { NULL, 0, 0 }
#define ROW_FROM_CHILD(handler) \
	{ call_##handler, from_##handler, to_##handler }
static const struct {
	void (*call)(struct master *m, struct child *child, const void *p);
	unsigned senders; /* kinds, as bits */
	unsigned roles;
} handlers[MSG_TYPE_COUNT] = {
#define MSG(symbol, handler, sender, payload) [symbol] = ROW_##sender(handler),
#include "ipc/messages.def"
#undef MSG
};

void
messages_on_message(void *arg, struct child *child, const struct frame *frame)
{
	struct master *m = arg;
	unsigned type = frame->header.type;

	if ((handlers[type].senders & (1u << child->kind)) == 0) {
		child_talks_nonsense(child, msg_type_name(type));
		return;
	}
	if (child->kind == KIND_POOL || child->kind == KIND_HOT)
		child_prolong(child, dispatch_silence_msecs(m->conf,
		    child->kind));
	if (handlers[type].roles & 1u << m->conf->worker_role)
		handlers[type].call(m, child, &frame->payload);
}

void
messages_on_ready(void *arg, struct child *child)
{
	struct master *m = arg;

	if (m->is_stopping) {
		child_stop(child, "shutdown");
		return;
	}
	switch (child->kind) {
	case KIND_CLERK:
		clerk_ready(child->clerk, child);
		break;
	case KIND_METRICS:
		break; /* asks by itself */
	default:
		m->role->on_ready(m, child);
		break;
	}
}

void
messages_on_end(void *arg, struct child *child)
{
	struct master *m = arg;
	char how[64];

	log_debug(NULL, "child ended kind=%s pid=%d why=\"%s\": %s",
	    child_kind_name(child->kind), (int)child->pid, child->why,
	    child_exit_describe(child->wait_status, how, sizeof(how)));
	budgets_release_child(m->budgets, child->generation,
	    clock_mono_msecs());
	switch (child->kind) {
	case KIND_CLERK:
		clerk_ended(child->clerk, child);
		break;
	case KIND_METRICS:
		exporter_ended(m->exporter, child);
		break;
	default:
		m->role->on_child_end(m, child);
		break;
	}
	if (m->is_stopping)
		orders_stop_step(m);
}
