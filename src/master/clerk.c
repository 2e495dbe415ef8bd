/*
 * clerk.c - questions to PostgreSQL, put to the clerk child in order.
 *
 * Runs in: master.  Never blocks.
 *
 * Questions wait in a queue; the first few are sent ahead, and each
 * MSG_CLERK_DONE takes the first away.  A clerk is blocking code and may hang
 * or die with a question in hand: it is replaced, and what it had not answered
 * is asked again, but the question it was at only once more.
 */
#include "master/clerk.h"

#include "base/backoff.h"
#include "base/clock.h"
#include "base/xmem.h"
#include "master/child_end.h"
#include "master/children.h"
#include "master/state.h"
#include "proc/spawn.h"
#include "redis/loop.h"

#include <bsd/string.h>
#include <bsd/sys/queue.h>

#include <stdlib.h>

/* Sent before the answer to the first has come. */
#define AHEAD 16
/* Clerks a question may cost. */
#define TRIES_MAX 2
/* Without PostgreSQL, look for it so often. */
#define PROBE_MSECS 3000

struct clerk_question {
	TAILQ_ENTRY(clerk_question) entry;
	enum msg_type type;
	union msg_payload payload;
	struct uuid about;
	clerk_on_done on_done;
	unsigned tries;
	bool is_sent;
};

struct clerk {
	struct master *m;
	const char *name;
	int64_t patience_msecs;
	struct log log;
	struct child *child; /* NULL: none */
	bool is_ready;
	unsigned failures; /* clerks lost in a row without an answer */
	struct event *respawn;
	struct event *probe;
	TAILQ_HEAD(, clerk_question) questions;
	size_t n, n_sent;
	char why_away[128]; /* as logged */
	bool is_stopped;
};

static void
clerk_hire(struct clerk *clerk)
{
	struct err err = ERR_INIT;

	if (clerk->child != NULL || clerk->is_stopped)
		return;
	clerk->child = child_spawn(clerk->m->children, KIND_CLERK,
	    DEADLINE_NONE, NULL, &err);
	if (clerk->child == NULL) {
		log_error(&clerk->log, "%s", err.text);
		event_in_msecs(clerk->respawn, 1000);
		return;
	}
	clerk->m->counters.child_starts++;
	clerk->child->clerk = clerk;
	clerk->is_ready = false;
}

static void
clerk_on_respawn(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	clerk_hire(arg);
}

static void
clerk_send_ahead(struct clerk *clerk)
{
	struct clerk_question *q;

	if (clerk->child == NULL || !clerk->is_ready)
		return;
	TAILQ_FOREACH(q, &clerk->questions, entry) {
		if (clerk->n_sent >= AHEAD)
			return;
		if (q->is_sent)
			continue;
		if (clerk->child->state == CHILD_READY)
			child_works(clerk->child, clerk->patience_msecs);
		if (child_send(clerk->child, q->type, &q->payload) == -1)
			return; /* its end comes */
		q->is_sent = true;
		clerk->n_sent++;
	}
}

void
clerk_ask(struct clerk *clerk, enum msg_type type, const void *payload,
    size_t size, const struct uuid *about, clerk_on_done on_done)
{
	struct clerk_question *q;

	if (clerk->is_stopped)
		return;
	q = xcalloc(1, sizeof(*q));
	q->type = type;
	memcpy(&q->payload, payload, size);
	if (about != NULL)
		q->about = *about;
	q->on_done = on_done;
	TAILQ_INSERT_TAIL(&clerk->questions, q, entry);
	clerk->n++;
	if (clerk->child == NULL &&
	    !event_pending(clerk->respawn, EV_TIMEOUT, NULL))
		clerk_hire(clerk);
	clerk_send_ahead(clerk);
}

static void
question_finish(struct clerk *clerk, struct clerk_question *q,
    enum err_kind outcome, const char *text)
{
	TAILQ_REMOVE(&clerk->questions, q, entry);
	clerk->n--;
	if (q->is_sent)
		clerk->n_sent--;
	if (q->on_done != NULL)
		q->on_done(clerk->m, &q->about, outcome, text);
	free(q);
}

/* Whether PostgreSQL is there is seen by who asks it. */
static void
clerk_learn(struct clerk *clerk, enum err_kind outcome, const char *text)
{
	bool is_up = outcome != ERR_DATABASE;

	/* Why may change: it is shut down, then it has no connections. */
	if (!is_up && strncmp(clerk->why_away, text,
	    sizeof(clerk->why_away) - 1) != 0) {
		log_warn(&clerk->log, "PostgreSQL is away: %s", text);
		strlcpy(clerk->why_away, text, sizeof(clerk->why_away));
	}
	if (clerk->m->is_postgres_up != is_up) {
		if (is_up)
			log_info(&clerk->log, "PostgreSQL is back");
		clerk->m->is_postgres_up = is_up;
		if (is_up)
			clerk->m->role->on_postgres_up(clerk->m);
	}
	if (is_up)
		clerk->why_away[0] = '\0';
	if (!is_up && !event_pending(clerk->probe, EV_TIMEOUT, NULL))
		event_in_msecs(clerk->probe, PROBE_MSECS);
}

/* Nobody's account: a cheap question that needs PostgreSQL. */
static void
clerk_on_probe(evutil_socket_t fd, short what, void *arg)
{
	struct clerk *clerk = arg;
	struct msg_take_over nobody = { .owner = "" };

	(void)fd;
	(void)what;
	if (!clerk->m->is_postgres_up && clerk->n == 0)
		clerk_ask(clerk, MSG_LOOK_UP, &nobody, sizeof(nobody), NULL,
		    NULL);
}

void
clerk_answered(struct clerk *clerk, struct child *child,
    const struct msg_clerk_done *done)
{
	struct clerk_question *q = TAILQ_FIRST(&clerk->questions);

	if (child != clerk->child || q == NULL || !q->is_sent ||
	    q->type != done->request) {
		child_talks_nonsense(child, "an answer nobody asked for");
		return;
	}
	clerk->failures = 0;
	clerk_learn(clerk, done->outcome, done->text);
	if (done->outcome != ERR_NONE && done->outcome != ERR_DATABASE)
		log_warn(&clerk->log, "%s: %s", msg_type_name(done->request),
		    done->text);
	/* The next question's time begins now. */
	if (clerk->n_sent > 1)
		child_prolong(clerk->child, clerk->patience_msecs);
	else
		child_is_done(clerk->child);
	question_finish(clerk, q, done->outcome, done->text);
	clerk_send_ahead(clerk);
}

void
clerk_ready(struct clerk *clerk, struct child *child)
{
	if (clerk->child != child)
		return;
	clerk->is_ready = true;
	clerk_send_ahead(clerk);
	/* The first child of the main clerk: sockets, template and children
	 * are there. */
	if (clerk == clerk->m->clerk && !clerk->m->is_ready) {
		clerk->m->is_ready = true;
		proc_ready();
		log_info(NULL, "ready");
	}
}

void
clerk_ended(struct clerk *clerk, struct child *child)
{
	bool is_wished = child_end_meaning(child) == MEANS_AGAIN;
	struct clerk_question *q, *next;
	char how[64];

	if (clerk->child != child)
		return;
	clerk->child = NULL;
	clerk->is_ready = false;
	q = TAILQ_FIRST(&clerk->questions);
	if (!is_wished)
		log_warn(&clerk->log, "clerk ended (%s) with %zu questions %s",
		    child_exit_describe(child->wait_status, how, sizeof(how)),
		    clerk->n_sent, child->why);
	if (q != NULL && q->is_sent && !is_wished &&
	    ++q->tries >= TRIES_MAX)
		question_finish(clerk, q, ERR_TEMPORARY,
		    "the clerk died of it");
	TAILQ_FOREACH_SAFE(q, &clerk->questions, entry, next)
		q->is_sent = false;
	clerk->n_sent = 0;
	if (clerk->is_stopped)
		return;
	if (is_wished) {
		clerk_hire(clerk);
		return;
	}
	clerk->failures++;
	event_in_msecs(clerk->respawn, backoff_msecs(clerk->failures, 100,
	    clerk->m->conf->backoff_max * 100, arc4random()));
}

void
clerk_renew(struct clerk *clerk)
{
	if (clerk->child == NULL)
		return;
	clerk->is_ready = false;
	child_stop(clerk->child, "settings changed");
}

void
clerk_stop(struct clerk *clerk)
{
	clerk->is_stopped = true;
	event_del(clerk->respawn);
	event_del(clerk->probe);
	if (clerk->child != NULL)
		child_stop(clerk->child, "shutdown");
}

bool
clerk_is_asked(const struct clerk *clerk, enum msg_type type)
{
	const struct clerk_question *q;

	TAILQ_FOREACH(q, &clerk->questions, entry)
		if (q->type == type)
			return true;
	return false;
}

size_t
clerk_backlog(const struct clerk *clerk)
{
	return clerk->n;
}

struct clerk *
clerk_new(struct master *m, const char *name, int64_t patience_msecs)
{
	struct clerk *clerk = xcalloc(1, sizeof(*clerk));

	clerk->m = m;
	clerk->name = name;
	clerk->patience_msecs = patience_msecs;
	log_init(&clerk->log, LOG_CORE, "clerk=%s", name);
	TAILQ_INIT(&clerk->questions);
	clerk->respawn = event_new(m->base, -1, 0, clerk_on_respawn, clerk);
	clerk->probe = event_new(m->base, -1, 0, clerk_on_probe, clerk);
	return clerk;
}

void
clerk_free(struct clerk **clerk_p)
{
	struct clerk *clerk = *clerk_p;
	struct clerk_question *q;

	if (clerk == NULL)
		return;
	*clerk_p = NULL;
	while ((q = TAILQ_FIRST(&clerk->questions)) != NULL) {
		TAILQ_REMOVE(&clerk->questions, q, entry);
		free(q);
	}
	event_free(clerk->respawn);
	event_free(clerk->probe);
	free(clerk);
}
