/*
 * children.c - the table of child processes.
 *
 * Runs in: master.  Never blocks.
 *
 * Here they come and go: from the template that makes them to the end that is
 * reaped.  What happens in between is child_life.c.  Whatever a child does,
 * only its exit frees what it holds; what is freed stays allocated for one
 * turn of the loop, since an event for it may be queued already.
 */
#include "master/child_life.h"

#include "base/xmem.h"
#include "proc/spawn.h"
#include "redis/loop.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <sysexits.h>

/* Asked for and not yet made: what the template has before it. */
#define UNMADE_MAX 64
/* --- birth -------------------------------------------------------------- */

static struct child *
child_new(struct children *children, const struct child_start *start,
    int channel)
{
	struct child *child = xcalloc(1, sizeof(*child));

	child->owner = children;
	child->kind = start->kind;
	child->generation = start->generation;
	child->slot = start->slot;
	child->maker = start->maker;
	TAILQ_INSERT_TAIL(&children->list, child, entry);
	children->n++;
	children->n_of[child->kind]++;
	children->n_unmade++;
	child_life_begin(child, channel);
	return child;
}

bool
children_have_room(const struct children *children)
{
	return children->n_unmade < UNMADE_MAX;
}

struct child *
child_spawn(struct children *children, enum child_kind kind,
    int64_t deadline_boot_msecs, const void *task, struct err *err)
{
	struct child_start start = { .kind = kind, .task = task };
	uint64_t memory = (uint64_t)children->params.conf->child_memory_mb
	    << 20;
	int channel;

	if (!children_have_room(children)) {
		err_set(err, ERR_TEMPORARY, "no %s child: %d others are not "
		    "yet made", child_kind_name(kind), UNMADE_MAX);
		return NULL;
	}
	start.slot = slot_take();
	if (start.slot == SLOT_NONE) {
		err_set(err, ERR_TEMPORARY,
		    "no %s child: all places are taken",
		    child_kind_name(kind));
		return NULL;
	}
	start.generation = ++children->next_generation;
	/* Before the fork: the child may look at once. */
	slot_set_deadline(start.slot, deadline_boot_msecs);
	if (spawn(&start, memory, &channel, err) == -1) {
		slot_give_back(start.slot);
		return NULL;
	}
	return child_new(children, &start, channel);
}

/* Its status, if it was reaped already. */
static bool
children_take_early(struct children *children, pid_t pid, int *status_r)
{
	size_t i;

	for (i = 0; i < children->n_early; i++)
		if (children->early[i].pid == pid) {
			*status_r = children->early[i].status;
			children->early[i] =
			    children->early[--children->n_early];
			return true;
		}
	return false;
}

static void
children_take_answer(struct child *child, const struct spawned *answer)
{
	struct children *all = child->owner;

	if (--all->n_unmade == 0)
		all->n_early = 0;
	if (answer->pid == -1)
		child_life_is_not_made(child, strerror(answer->fork_errno));
	else
		child_life_is_made(child, answer->pid);
}

static void
children_hear_answers(struct children *children)
{
	struct spawned answer;
	struct child *child;
	bool has_ended;
	int status = 0;

	while (spawn_next(&answer)) {
		child = children_find(children, answer.generation);
		has_ended = answer.pid > 0 &&
		    children_take_early(children, answer.pid, &status);
		if (child == NULL || child->pid != 0) {
			/* given up meanwhile */
			if (answer.pid > 0 && !has_ended)
				kill(answer.pid, SIGKILL);
			continue;
		}
		children_take_answer(child, &answer);
		if (has_ended)
			child_life_exited(child, status);
	}
}

static void
children_on_answers(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	children_hear_answers(arg);
}

/* What it has not told, it has not made. */
static void
children_template_gone(struct children *children, pid_t maker)
{
	struct child *child, *next;

	children_hear_answers(children);
	for (child = children_first(children); child != NULL; child = next) {
		next = child_next(child);
		if (child->pid != 0 || child->maker != maker)
			continue;
		children_take_answer(child, &(struct spawned){ .pid = -1,
		    .fork_errno = ECHILD });
	}
}

/* --- death -------------------------------------------------------------- */

static void
children_on_bury(evutil_socket_t fd, short what, void *arg)
{
	struct children *children = arg;
	struct child *child;

	(void)fd;
	(void)what;
	while ((child = TAILQ_FIRST(&children->gone)) != NULL) {
		TAILQ_REMOVE(&children->gone, child, entry);
		child_life_release(child);
		free(child);
	}
}

static void
children_remove(struct child *child)
{
	struct children *all = child->owner;

	TAILQ_REMOVE(&all->list, child, entry);
	all->n--;
	all->n_of[child->kind]--;
	TAILQ_INSERT_TAIL(&all->gone, child, entry);
	event_in_msecs(all->bury, 0);
	all->params.on_end(all->params.arg, child);
	slot_give_back(child->slot);
}

static struct child *
children_find_pid(struct children *children, pid_t pid)
{
	struct child *child;

	TAILQ_FOREACH(child, &children->list, entry)
		if (child->pid == pid)
			break;
	return child;
}

void
children_reap(struct children *children)
{
	struct child *child;
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (spawn_has_reaped(pid)) {
			children_template_gone(children, pid);
			continue;
		}
		child = children_find_pid(children, pid);
		if (child == NULL && children->n_unmade > 0) {
			children_hear_answers(children);
			child = children_find_pid(children, pid);
		}
		if (child != NULL)
			child_life_exited(child, status);
		else if (children->n_unmade > 0 &&
		    children->n_early < EARLY_MAX)
			children->early[children->n_early++] =
			    (struct early){ pid, status };
		else /* given up, or left behind by a dead template */
			log_debug(&children->log, "reaped a stranger pid=%d",
			    (int)pid);
	}
}

/* --- life of the table -------------------------------------------------- */

struct children *
children_new(const struct children_params *params)
{
	struct children *children = xcalloc(1, sizeof(*children));
	struct err err = ERR_INIT;
	int answers;

	children->params = *params;
	children->remove = children_remove;
	children->on_template_silent = children_template_gone;
	log_init(&children->log, LOG_PROC, "%s", "");
	TAILQ_INIT(&children->list);
	TAILQ_INIT(&children->gone);
	children->bury =
	    event_new(params->base, -1, 0, children_on_bury, children);
	answers = spawn_answers(&err);
	if (answers == -1)
		die(EX_OSERR, "%s", err.text);
	children->answers = event_new(params->base, answers,
	    EV_READ | EV_PERSIST, children_on_answers, children);
	event_add(children->answers, NULL);
	return children;
}

void
children_free(struct children **children_p)
{
	struct children *children = *children_p;
	struct child *child;

	if (children == NULL)
		return;
	*children_p = NULL;
	while ((child = TAILQ_FIRST(&children->list)) != NULL) {
		if (child->pid != 0)
			kill(child->pid, SIGKILL);
		child_channel_close(&child->channel);
		TAILQ_REMOVE(&children->list, child, entry);
		TAILQ_INSERT_TAIL(&children->gone, child, entry);
	}
	children_on_bury(-1, 0, children);
	event_free(children->bury);
	event_free(children->answers);
	free(children);
}

size_t
children_count(const struct children *children)
{
	return children->n;
}

size_t
children_of(const struct children *children, enum child_kind kind)
{
	return children->n_of[kind];
}

struct child *
children_first(const struct children *children)
{
	return TAILQ_FIRST(&children->list);
}

struct child *
child_next(const struct child *child)
{
	return TAILQ_NEXT(child, entry);
}

struct child *
children_find(const struct children *children, uint32_t generation)
{
	struct child *child;

	TAILQ_FOREACH(child, &children->list, entry)
		if (child->generation == generation)
			return child;
	return NULL;
}
