/*
 * relay.c - what children say, and who hears it.
 *
 * Runs in: master.  Never blocks.
 *
 * A table made from messages.def: for each message who may send it and what is
 * done.  The channel has checked the form; here is checked whether this child
 * may speak of this account at all, because the sender may be taken over by
 * hostile mail.  A child that breaks the rules is ended, never the master.
 */
#include "master/relay.h"

#include "base/clock.h"
#include "redis/events.h"
#include "lease/hints.h"
#include "lease/keeper.h"
#include "master/accounts.h"
#include "master/children.h"
#include "master/clerk.h"
#include "master/dispatch.h"
#include "master/exporter.h"
#include "master/grants.h"
#include "master/tiers.h"
#include "master/verdict.h"
#include "master/works.h"
#include "proc/vault.h"

#include <bsd/string.h>

#include <strings.h>

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
on_hello(struct master *m, struct child *child, const struct msg_hello *hello)
{
	(void)m, (void)child, (void)hello; /* children.c */
}

static void
on_activity(struct master *m, struct child *child,
    const struct msg_activity *activity)
{
	(void)m, (void)child, (void)activity; /* children.c */
}

static void
on_want(struct master *m, struct child *child, const struct msg_want *want)
{
	struct quirks quirks;

	quirks_match(m->params.quirks, want->host, NULL, NULL, &quirks);
	if (grants_want(m->grants, child->generation, &child->account_id,
		(size_t)quirks.conn_cap, want, clock_mono_msecs()) == -1)
		child_talks_nonsense(child, "wants too much");
	master_watch_grants(m);
}

static void
on_give_back(struct master *m, struct child *child,
    const struct msg_give_back *back)
{
	grants_give_back(m->grants, child->generation, back->want_id,
	    clock_mono_msecs());
}

void
relay_grant(void *arg, uint32_t generation, const struct msg_grant *grant)
{
	struct master *m = arg;
	struct child *child = children_find(m->children, generation);

	if (child != NULL)
		child_send(child, MSG_GRANT, grant);
}

/*
 * The seal is bound to account and address; we open it only for the account
 * this child works for.  The master knows that of hot and pool children; a job is
 * bound to the first account it asks for.
 */
static void
on_unseal(struct master *m, struct child *child,
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
	if (child->kind == KIND_JOB && child->work != NULL &&
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
hear_event(struct master *m, const struct msg_event *event)
{
	bool is_state = event->event == EVENT_ACCOUNT_STATE &&
	    !uuid_is_null(&event->account_id);

	if (m->accounts != NULL && event->event == EVENT_USER_ACTIVE &&
	    !uuid_is_null(&event->user_id))
		accounts_user_active(m->accounts, &event->user_id);
	if (m->accounts != NULL && is_state)
		accounts_state_changed(m->accounts, &event->account_id,
		    event->name, event->reason);
	if (m->works != NULL && is_state)
		works_state_changed(m->works, &event->account_id,
		    event->name);
}

/* What a child, or the clerk for a dead one, has put aside: a poll tries it
 * when all else is done. */
static void
note_quarantine(struct master *m, const struct msg_event *event)
{
	struct account *account = m->accounts == NULL ? NULL :
	    account_find(m->accounts, &event->account_id);

	if (strcmp(event->name, "parked") == 0)
		m->counters.quarantined++;
	if (strcmp(event->name, "noted") != 0 || account == NULL)
		return;
	policy_again(&account->schedule, clock_mono_msecs());
	account->is_wanted_near = account->pool != NULL;
	dispatch_soon(m);
}

/* An operator wants another try, or none. */
static void
hear_quarantine(struct master *m, const struct msg_event *event)
{
	struct account *account = m->accounts == NULL ? NULL :
	    account_find(m->accounts, &event->account_id);

	if (account != NULL && account->state == ACCOUNT_OWNED &&
	    (strcmp(event->name, "retry") == 0 ||
		strcmp(event->name, "skipped") == 0))
		account_poll_now(account, m);
}

static void
on_event(struct master *m, struct child *child, const struct msg_event *event)
{
	/* Hot and pool children speak of their account only. */
	if ((child->kind == KIND_HOT || child->kind == KIND_POOL) &&
	    event->event != EVENT_QUOTA &&
	    !uuid_is_equal(&event->account_id, &child->account_id)) {
		child_talks_nonsense(child, "event of an account not its own");
		return;
	}
	m->counters.events++;
	if (event->event == EVENT_QUARANTINE)
		note_quarantine(m, event);
	/* An event may be lost; the set is looked at by every claimer. */
	if (event->event == EVENT_ACCOUNT_STATE && m->keeper == NULL)
		hints_set_live(m->redis, &event->account_id,
		    strcmp(event->name, "live") == 0);
	hints_publish(m->redis, event);
	hear_event(m, event);
}

void
relay_event(void *arg, const char *text, size_t len)
{
	struct master *m = arg;
	struct msg_event event;
	struct err err = ERR_INIT;

	if (m->keeper != NULL && len == strlen(KEEPER_RELEASED) &&
	    memcmp(text, KEEPER_RELEASED, len) == 0)
		keeper_claim_soon(m->keeper);
	else if (event_parse(text, len, &event, &err) == -1)
		log_debug(NULL, "event ignored: %s", err.text);
	else if (m->is_stopping)
		return;
	else if (event.event == EVENT_QUARANTINE)
		hear_quarantine(m, &event);
	else
		hear_event(m, &event);
}

/* --- hot, pool, job ----------------------------------------------------- */

/* The clerk could not be asked, or had no answer. */
static void
not_briefed(struct master *m, const struct uuid *account_id,
    enum err_kind outcome, const char *text)
{
	static const struct msg_briefing none;
	const struct account *account;

	(void)text;
	account = m->accounts == NULL ? NULL :
	    account_find(m->accounts, account_id);
	if (outcome == ERR_NONE || account == NULL || account->hot == NULL)
		return;
	account->hot->is_to_be_briefed = false;
	child_send(account->hot, MSG_BRIEFED, &none);
}

static void
on_brief_me(struct master *m, struct child *child,
    const struct msg_empty *nothing)
{
	struct msg_brief brief = { .account_id = child->account_id,
		.child = child->generation };

	(void)nothing;
	if (child->is_to_be_briefed)
		return; /* one answer will do */
	child->is_to_be_briefed = true;
	clerk_ask(m->clerk, MSG_BRIEF, &brief, sizeof(brief),
	    &child->account_id, not_briefed);
}

static void
on_idling(struct master *m, struct child *child,
    const struct msg_idling *idling)
{
	if (uuid_is_null(&child->account_id) ||
	    !uuid_is_equal(&idling->account_id, &child->account_id))
		child_talks_nonsense(child, "idles for an account not its own");
	else if (child->account != NULL)
		verdict_idling(m, child, child->account);
}

static void
on_pass_done(struct master *m, struct child *child,
    const struct msg_pass_done *done)
{
	if (uuid_is_null(&child->account_id) ||
	    !uuid_is_equal(&done->account_id, &child->account_id)) {
		child_talks_nonsense(child, "pass of an account not its own");
		return;
	}
	if (child->account != NULL)
		verdict_pass(m, child, child->account, done);
	if (child->kind != KIND_POOL)
		return;
	child->account_id = (struct uuid){ .bytes = { 0 } };
	grants_drop_account(m->grants, child->generation, clock_mono_msecs());
	if (child->is_old)
		child_stop(child, "settings changed");
	else
		child_is_done(child);
}

static void
on_job_done(struct master *m, struct child *child,
    const struct msg_job_done *done)
{
	if (child->work == NULL) {
		child_talks_nonsense(child, "job that it does not have");
		return;
	}
	grants_drop(m->grants, child->generation, clock_mono_msecs());
	works_done(m->works, child, done);
	works_run(m->works);
}

/* --- metrics ------------------------------------------------------------ */

static void
on_want_metrics(struct master *m, struct child *child,
    const struct msg_empty *nothing)
{
	(void)nothing;
	exporter_wanted(m->exporter, child);
}

/* --- clerk -------------------------------------------------------------- */

static void
on_facts(struct master *m, struct child *child, const struct msg_facts *facts)
{
	(void)child;
	if (m->accounts != NULL)
		account_facts(m->accounts, facts);
}

/* For the child that asked, and for nobody after it. */
static void
on_briefing(struct master *m, struct child *clerk,
    const struct msg_briefing *briefing)
{
	struct child *child = children_find(m->children, briefing->child);

	(void)clerk;
	if (child == NULL || !child->is_to_be_briefed ||
	    !uuid_is_equal(&child->account_id, &briefing->account_id))
		return;
	child->is_to_be_briefed = false;
	child_send(child, MSG_BRIEFED, briefing);
}

static void
on_live_ids(struct master *m, struct child *child, const struct msg_ids *ids)
{
	(void)child;
	if (m->keeper == NULL)
		return;
	keeper_live_ids(m->keeper, ids->ids, ids->n);
	accounts_listed(m->accounts, ids->ids, ids->n);
}

static void
on_job_taken(struct master *m, struct child *child,
    const struct msg_job_taken *taken)
{
	if (m->works != NULL)
		works_taken(m->works, child, taken);
}

static void
on_yield_jobs(struct master *m, struct child *child,
    const struct msg_ids *ids)
{
	(void)child;
	if (m->works != NULL)
		works_yield(m->works, ids);
}

static void
on_due_jobs(struct master *m, struct child *child,
    const struct msg_due_jobs *due)
{
	(void)child;
	if (m->works != NULL)
		works_due(m->works, due);
}

static void
on_clerk_done(struct master *m, struct child *child,
    const struct msg_clerk_done *done)
{
	(void)m;
	clerk_answered(child->clerk, child, done);
}

/* --- the table ---------------------------------------------------------- */

/* Who may send it.  Here, as in the handlers, a missing one does not compile. */
enum {
	from_hello = ANY,
	from_activity = ANY,
	from_want = WORKER,
	from_give_back = WORKER,
	from_unseal = HOT | POOL | JOB,
	from_event = WORKER,
	from_brief_me = HOT,
	from_idling = HOT,
	from_pass_done = HOT | POOL,
	from_job_taken = JOB,
	from_job_done = JOB,
	from_yield_jobs = CLERK,
	from_want_metrics = METRICS,
	from_facts = CLERK,
	from_live_ids = CLERK,
	from_due_jobs = CLERK,
	from_briefing = CLERK,
	from_clerk_done = CLERK,
};

/* One trampoline per message of a child, so that each handler sees its own
 * type; messages of the master have none. */
#define CALL_FROM_MASTER(handler, payload)
#define CALL_FROM_CHILD(handler, payload)                 \
	static void call_##handler(struct master *m,     \
	    struct child *child, const void *p)          \
	{                                                \
		const payload *typed = p;                \
		on_##handler(m, child, typed);           \
	}
#define MSG(symbol, handler, sender, payload) CALL_##sender(handler, payload)
#include "ipc/messages.def"
#undef MSG

#define ROW_FROM_MASTER(handler) { NULL, 0 }
#define ROW_FROM_CHILD(handler) { call_##handler, from_##handler }
static const struct {
	void (*call)(struct master *m, struct child *child, const void *p);
	unsigned senders; /* kinds, as bits */
} handlers[MSG_TYPE_COUNT] = {
#define MSG(symbol, handler, sender, payload) [symbol] = ROW_##sender(handler),
#include "ipc/messages.def"
#undef MSG
};

void
relay_message(void *arg, struct child *child, const struct frame *frame)
{
	struct master *m = arg;
	unsigned type = frame->header.type;

	if ((handlers[type].senders & (1u << child->kind)) == 0) {
		child_talks_nonsense(child, msg_type_name(type));
		return;
	}
	if (child->kind == KIND_POOL || child->kind == KIND_HOT)
		child_prolong(child, silence_msecs(m->conf, child->kind));
	handlers[type].call(m, child, &frame->payload);
}

void
relay_ready(void *arg, struct child *child)
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
	case KIND_HOT:
		child_prolong(child, silence_msecs(m->conf, KIND_HOT));
		break;
	case KIND_POOL:
		if (child->is_old)
			child_stop(child, "settings changed");
		dispatch_soon(m);
		break;
	case KIND_JOB:
		works_run(m->works);
		break;
	default:
		break;
	}
}

void
relay_end(void *arg, struct child *child)
{
	struct master *m = arg;
	char how[64];

	log_debug(NULL, "child ended kind=%s pid=%d why=\"%s\": %s",
	    child_kind_name(child->kind), (int)child->pid, child->why,
	    child_exit_describe(child->wait_status, how, sizeof(how)));
	grants_drop(m->grants, child->generation, clock_mono_msecs());
	switch (child->kind) {
	case KIND_CLERK:
		clerk_ended(child->clerk, child);
		break;
	case KIND_HOT:
	case KIND_POOL:
		verdict_end(m, child);
		break;
	case KIND_JOB:
		works_child_ended(m->works, child);
		break;
	case KIND_METRICS:
		exporter_ended(m->exporter, child);
		break;
	default:
		break;
	}
	if (m->is_stopping)
		master_stop_step(m);
}
