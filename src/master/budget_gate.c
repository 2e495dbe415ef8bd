/*
 * budget_gate.c - the budgets of this worker, and the word of all workers on
 * an account's connections (R-CONN-1).
 *
 * Runs in: master.  Never blocks.
 *
 * budgets.c counts and keeps the order; here it is tied to the children who
 * are answered, to Redis where connections are counted, and to the clock.
 */
#include "master/budget_gate.h"

#include "base/clock.h"
#include "lease/conns.h"
#include "master/budgets.h"
#include "master/children.h"
#include "master/state.h"
#include "redis/loop.h"

/* The answer goes to the child of that generation, if it is still there. */
static void
gate_answer(void *arg, uint32_t generation, const struct msg_grant *grant)
{
	struct master *m = arg;
	struct child *child = children_find(m->children, generation);

	if (child != NULL)
		child_send(child, MSG_GRANT, grant);
}

static void
gate_ask(void *arg, const struct uuid *account, size_t cap, uint64_t tag)
{
	struct master *m = arg;

	conns_take(m->conns, account, cap, tag);
}

static void
gate_leave(void *arg, uint64_t tag)
{
	struct master *m = arg;

	conns_give_back(m->conns, tag);
}

static void
gate_on_answer(void *arg, uint64_t tag, bool is_granted)
{
	struct master *m = arg;

	budgets_answer_gate(m->budgets, tag, is_granted, clock_mono_msecs());
	if (!is_granted)
		budget_gate_watch(m);
}

static void
gate_on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	budget_gate_watch(arg);
}

void
budget_gate_watch(struct master *m)
{
	int64_t now = clock_mono_msecs();
	int64_t next = budgets_expire(m->budgets, now);

	if (next >= 0)
		event_in_msecs(m->budgets_timer, next - now);
}

void
budget_gate_start(struct master *m)
{
	m->budgets = budgets_new(m->conf, m->role->n_clerks, gate_answer,
	    m);
	m->budgets_timer = event_new(m->base, -1, 0, gate_on_timer, m);
	m->conns = conns_new(&(struct conns_params){ .base = m->base,
	    .redis = m->redis, .conf = m->conf, .worker_id = m->worker_id,
	    .role = m->role->name, .on_answer = gate_on_answer, .arg = m });
	budgets_set_gate(m->budgets, &(struct budgets_gate){ .ask = gate_ask,
	    .give_back = gate_leave, .arg = m });
}

void
budget_gate_end(struct master *m)
{
	conns_free(&m->conns);
	budgets_free(&m->budgets);
	event_free(m->budgets_timer);
}
