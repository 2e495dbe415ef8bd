/*
 * tables.c - master/clerk.h without a child, and the PostgreSQL behind it:
 * a row for each account, with the fence (R-LEASE-6).
 */
#include "world.h"

#include "base/xmem.h"
#include "lease/keeper.h"
#include "redis/loop.h"
#include "redis/redis.h"
#include "master/accounts.h"
#include "master/clerk.h"
#include "master/ownership.h"
#include "master/takeover.h"

#define PROBE_MSECS 3000 /* as src/master/clerk.c */

struct question {
	struct question *next;
	enum msg_type type;
	uint32_t account;
	struct uuid about;
	clerk_on_done on_done;
};

struct clerk {
	struct process *process;
	struct question *first, *last;
	int64_t last_answer;
	struct event *probe;
};

static const char away[] = "the tables are away";

/* --- the tables ----------------------------------------------------------- */

void
tables_reset(void)
{
	free(sim.rows);
	free(sim.users);
	sim.rows = NULL;
	sim.users = NULL;
	if (sim.n_accounts == 0)
		return;
	sim.rows = xcalloc(sim.n_accounts, sizeof(*sim.rows));
	sim.users = xcalloc(sim.n_users, sizeof(*sim.users));
}

/* What ends "live" raises the epoch, too (R-LIFE-3). */
void
tables_set_live(uint32_t account, bool is_live)
{
	struct row *row = &sim.rows[account];

	row->is_live = is_live;
	row->live_since = sim.now;
	if (!is_live) {
		row->epoch++;
		row->owner = NOBODY;
	}
}

bool
tables_write(uint32_t account, int64_t epoch, uint32_t serial)
{
	struct row *row = &sim.rows[account];
	bool is_accepted = (row->epoch == epoch && row->owner == serial) ||
	    sim.broken == BREAK_FENCE;

	watch_write(account, serial, is_accepted);
	if (is_accepted && row->stored < row->mail) {
		row->stored = row->mail;
		row->last_mail_secs = row->mail_since;
	}
	return is_accepted;
}

/* --- questions -------------------------------------------------------------- */

static void
take_over(struct process *process, uint32_t account, bool is_raising)
{
	struct row *row = &sim.rows[account];
	struct msg_facts facts = { .is_found = !row->is_deleted,
		.is_live = row->is_live };

	if (is_raising && row->is_live) {
		row->epoch++;
		row->owner = process->serial;
	}
	facts.account_id = account_uuid(account);
	facts.user_id = user_uuid(row->user);
	facts.is_claim = is_raising;
	facts.is_ours = row->owner == process->serial;
	facts.epoch = row->epoch;
	facts.last_mail_secs = row->last_mail_secs;
	facts.last_active_secs = row->last_active_secs;
	snprintf(facts.imap_host, sizeof(facts.imap_host), "imap%u.example",
	    account % 7);
	snprintf(facts.email, sizeof(facts.email), "%u@example.org", account);
	takeover_on_facts(&process->m, &facts);
}

static void
tell_page(struct process *process, const struct uuid *ids, size_t n)
{
	ownership_on_live_ids(&process->m, ids, n);
}

static void
tell_live_ids(struct process *process)
{
	struct uuid ids[MSG_IDS_MAX];
	uint32_t i;
	size_t n = 0;

	for (i = 0; i < sim.n_accounts; i++) {
		if (!sim.rows[i].is_live)
			continue;
		ids[n++] = account_uuid(i);
		if (n == MSG_IDS_MAX) {
			tell_page(process, ids, n);
			n = 0;
		}
	}
	tell_page(process, ids, n);
}

static void
learn(struct clerk *clerk, bool is_up)
{
	struct master *m = &clerk->process->m;

	if (m->is_postgres_up != is_up) {
		m->is_postgres_up = is_up;
		tell("PostgreSQL is %s", is_up ? "back" : "away");
		if (is_up)
			ownership_on_postgres_up(m);
	}
	if (!is_up && !event_pending(clerk->probe, EV_TIMEOUT, NULL))
		event_in_msecs(clerk->probe, PROBE_MSECS);
}

static void
is_answered(void *arg, uint64_t tag)
{
	struct clerk *clerk = arg;
	struct question *q = clerk->first;
	bool is_up = sim.is_postgres_up;

	(void)tag;
	clerk->first = q->next;
	if (clerk->first == NULL)
		clerk->last = NULL;
	if (is_up && q->account != NOBODY)
		take_over(clerk->process, q->account,
		    q->type == MSG_TAKE_OVER);
	if (is_up && q->type == MSG_RECONCILE)
		tell_live_ids(clerk->process);
	learn(clerk, is_up);
	if (q->on_done != NULL)
		q->on_done(&clerk->process->m, &q->about,
		    is_up ? ERR_NONE : ERR_DATABASE, is_up ? "" : away);
	free(q);
}

void
clerk_ask(struct clerk *clerk, enum msg_type type, const void *payload,
    size_t size, const struct uuid *about, clerk_on_done on_done)
{
	struct question *q = xcalloc(1, sizeof(*q));
	int64_t at = sim.now + random_between(FOR_WORLD, 1, 6);

	(void)size;
	q->type = type;
	q->account = NOBODY;
	if (type == MSG_TAKE_OVER || type == MSG_LOOK_UP)
		q->account = uuid_number(
		    &((const struct msg_take_over *)payload)->account_id);
	if (about != NULL)
		q->about = *about;
	q->on_done = on_done;
	if (clerk->last != NULL)
		clerk->last->next = q;
	else
		clerk->first = q;
	clerk->last = q;
	if (at <= clerk->last_answer)
		at = clerk->last_answer + 1;
	clerk->last_answer = at;
	actor_at(&clerk->process->actor, at, URGENT_REST, is_answered, clerk,
	    0);
}

static void
on_probe(evutil_socket_t fd, short what, void *arg)
{
	struct clerk *clerk = arg;
	struct msg_take_over nobody = { .owner = "" };

	(void)fd;
	(void)what;
	if (!clerk->process->m.is_postgres_up && clerk->first == NULL)
		clerk_ask(clerk, MSG_LOOK_UP, &nobody, sizeof(nobody), NULL,
		    NULL);
}

/* --- life ---------------------------------------------------------------------- */

struct clerk *
clerk_new(struct master *m, const char *name, int64_t patience_msecs)
{
	struct clerk *clerk = xcalloc(1, sizeof(*clerk));

	(void)name;
	(void)patience_msecs;
	clerk->process = process_of(m);
	clerk->probe = event_new(NULL, -1, 0, on_probe, clerk);
	return clerk;
}

void
clerk_free(struct clerk **clerk_p)
{
	struct clerk *clerk = *clerk_p;
	struct question *q;

	if (clerk == NULL)
		return;
	*clerk_p = NULL;
	while ((q = clerk->first) != NULL) {
		clerk->first = q->next;
		free(q);
	}
	event_free(clerk->probe);
	free(clerk);
}
