/*
 * children.c - the table of child processes.
 *
 * Runs in: master.  Never blocks.
 *
 * A child's life, and all that can happen to it, is the table `life`:
 *
 *	STARTING --hello--> READY <--done/work--> WORKING
 *	    any of these --stop--> STOPPING --timeout--> KILLED
 *	    any --kill, nonsense, timeout--> KILLED
 *	    any --exit--> GONE
 *	    STARTING, STOPPING, KILLED --not made--> GONE
 *
 * A hot child brings its work with it: it is WORKING from its first word on.
 * A child has no pid until the template has told it (proc/spawn.c), and none
 * of its words is read before.  It may be told to end or be killed, and may
 * even have ended, by then.
 * Whatever a child does, only its exit frees what it holds; what is freed
 * stays allocated for one turn of the loop, since an event for it may be
 * queued already.
 */
#include "master/children.h"

#include "base/clock.h"
#include "base/text.h"
#include "base/xmem.h"
#include "redis/loop.h"
#include "proc/spawn.h"

#include <bsd/string.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

/* From fork to hello: long, for a machine that is starting everything. */
#define START_MSECS 30000
/* Two forks of a small process; long, for a machine that is swapping. */
#define MAKE_MSECS 5000
/* Asked for and not yet made: what the template has before it. */
#define UNMADE_MAX 64
/* Reaped before the template had told whose they are. */
#define EARLY_MAX 64
/* Frames a child may leave unread; honest ones read within milliseconds. */
#define QUEUE_MAX 256
/* Frames taken from one child before the others get a turn. */
#define FRAMES_A_TURN 64

struct queued {
	enum msg_type type;
	union msg_payload payload;
};

struct children {
	struct children_params params;
	struct log log;
	TAILQ_HEAD(child_list, child) list;
	struct child_list gone;
	struct event *bury;
	struct event *answers; /* of the template */
	size_t n, n_of[KIND_COUNT];
	size_t n_unmade; /* pid not yet known */
	uint32_t next_generation;
	struct early {
		pid_t pid;
		int status;
	} early[EARLY_MAX];
	size_t n_early;
};

static const char *const state_names[CHILD_STATE_COUNT] = {
#define X(symbol, name) [symbol] = name,
	CHILD_STATES(X)
#undef X
};

const char *
child_state_name(enum child_state state)
{
	return (unsigned)state < CHILD_STATE_COUNT ? state_names[state] :
	    "unknown";
}

/* --- the table ---------------------------------------------------------- */

static void becomes_ready(struct child *child);
static void begins(struct child *child);
static void is_asked_to_end(struct child *child);
static void is_killed(struct child *child);
static void hangs(struct child *child);
static void was_never(struct child *child);
static void is_gone(struct child *child);

static void
nothing(struct child *child)
{
	(void)child;
}

typedef void (*action)(struct child *child);

/* An empty place is our own mistake: child_happens() aborts. */
static const action life[CHILD_STATE_COUNT][CHILD_EVENT_COUNT] = {
	[CHILD_STARTING] = {
		[ON_HELLO] = becomes_ready,
		[ON_STOP] = is_asked_to_end,
		[ON_KILL] = is_killed,
		[ON_NONSENSE] = is_killed,
		[ON_TIMEOUT] = hangs,
		[ON_UNMADE] = was_never,
		[ON_EXIT] = is_gone,
	},
	[CHILD_READY] = {
		[ON_WORK] = begins,
		[ON_DONE] = nothing,
		[ON_STOP] = is_asked_to_end,
		[ON_KILL] = is_killed,
		[ON_NONSENSE] = is_killed,
		[ON_TIMEOUT] = nothing,
		[ON_EXIT] = is_gone,
	},
	[CHILD_WORKING] = {
		[ON_WORK] = begins,
		[ON_DONE] = becomes_ready,
		[ON_STOP] = is_asked_to_end,
		[ON_KILL] = is_killed,
		[ON_NONSENSE] = is_killed,
		[ON_TIMEOUT] = hangs,
		[ON_EXIT] = is_gone,
	},
	[CHILD_STOPPING] = {
		[ON_HELLO] = nothing,
		[ON_DONE] = nothing,
		[ON_STOP] = nothing,
		[ON_KILL] = is_killed,
		[ON_NONSENSE] = is_killed,
		[ON_TIMEOUT] = hangs,
		[ON_UNMADE] = was_never,
		[ON_EXIT] = is_gone,
	},
	[CHILD_KILLED] = {
		[ON_HELLO] = nothing,
		[ON_DONE] = nothing,
		[ON_STOP] = nothing,
		[ON_KILL] = nothing,
		[ON_NONSENSE] = nothing,
		[ON_TIMEOUT] = hangs, /* without pid only */
		[ON_UNMADE] = was_never,
		[ON_EXIT] = is_gone,
	},
	[CHILD_GONE] = {
		[ON_STOP] = nothing,
		[ON_KILL] = nothing,
		[ON_NONSENSE] = nothing,
		[ON_TIMEOUT] = nothing,
	},
};

static void
child_happens(struct child *child, enum child_event event)
{
	action action = life[child->state][event];

	if (action == NULL)
		die_bug("child %d, %s: event %d", (int)child->pid,
		    child_state_name(child->state), event);
	action(child);
}

/* The only place that changes a child's state. */
static void
change_state(struct child *child, enum child_state state, int64_t limit_msecs)
{
	child->state = state;
	child->since_mono_msecs = clock_mono_msecs();
	if (limit_msecs > 0)
		event_in_msecs(child->timer, limit_msecs);
	else
		event_del(child->timer);
}

static void
becomes_ready(struct child *child)
{
	struct children *all = child->owner;

	/* A hot child brought its work with it. */
	change_state(child, child->kind == KIND_HOT ? CHILD_WORKING :
	    CHILD_READY, 0);
	all->params.on_ready(all->params.arg, child);
}

static void
begins(struct child *child)
{
	change_state(child, CHILD_WORKING, 0);
}

static void
is_asked_to_end(struct child *child)
{
	struct msg_empty empty = { 0 };

	change_state(child, CHILD_STOPPING,
	    child->owner->params.conf->stop_timeout * 1000);
	child_send(child, MSG_STOP, &empty);
}

/* Without a pid, it is killed when that is told. */
static void
is_killed(struct child *child)
{
	if (child->pid != 0)
		kill(child->pid, SIGKILL);
	change_state(child, CHILD_KILLED, child->pid != 0 ? 0 : MAKE_MSECS);
}

static void template_is_gone(struct children *children, pid_t maker);

static void
hangs(struct child *child)
{
	if (child->pid == 0) {
		log_warn(&child->owner->log, "the process that makes children "
		    "does not answer, killed pid=%d", (int)child->maker);
		spawn_give_up(child->maker);
		template_is_gone(child->owner, child->maker);
		return;
	}
	kill(child->pid, SIGKILL);
	if (child->state != CHILD_STOPPING)
		child->cause = CAUSE_HUNG;
	log_warn(&child->owner->log,
	    "child does not %s, killed kind=%s pid=%d after_msecs=%lld",
	    child->state == CHILD_STARTING ? "start" :
	    child->state == CHILD_STOPPING ? "end" : "answer",
	    child_kind_name(child->kind), (int)child->pid,
	    (long long)(clock_mono_msecs() - child->since_mono_msecs));
	snprintf(child->why, sizeof(child->why), "no answer while %s",
	    child_state_name(child->state));
	change_state(child, CHILD_KILLED, 0);
}

/* The first reason is the cause; the rest follows from it. */
static void
note_cause(struct child *child, enum child_cause cause, const char *why)
{
	if (child->cause != CAUSE_ITSELF)
		return;
	child->cause = cause;
	strlcpy(child->why, why, sizeof(child->why));
}

static void
kill_for(struct child *child, enum child_cause cause, const char *why)
{
	note_cause(child, cause, why);
	child_happens(child, ON_KILL);
}

/* --- the channel -------------------------------------------------------- */

static void
close_channel(struct child *child)
{
	if (child->channel == -1)
		return;
	event_del(child->readable);
	event_del(child->writable);
	close(child->channel);
	child->channel = -1;
	child->n_queue = 0;
}

static void
take_frame(struct child *child, const struct frame *frame)
{
	struct children *all = child->owner;

	if (frame->header.generation != child->generation) {
		child_talks_nonsense(child, "frame of another generation");
		return;
	}
	switch (frame->header.type) {
	case MSG_HELLO:
		if (child->pid == 0) {
			event_del(child->readable);
			child->has_said_hello = true;
		} else if (child->state == CHILD_STARTING ||
		    child->state == CHILD_STOPPING ||
		    child->state == CHILD_KILLED)
			child_happens(child, ON_HELLO);
		else
			child_talks_nonsense(child, "a second hello");
		break;
	case MSG_ACTIVITY:
		text_clean_line(child->activity, sizeof(child->activity),
		    frame->payload.activity.text,
		    strlen(frame->payload.activity.text));
		/* also a sign of life */
		all->params.on_message(all->params.arg, child, frame);
		break;
	default:
		all->params.on_message(all->params.arg, child, frame);
		break;
	}
}

/* 1: a frame was taken, 0: none there, -1: the channel is closed now. */
static int
receive(struct child *child)
{
	static struct frame frame; /* 8 KB; used up before the next */
	struct err err = ERR_INIT;
	int result;

	if (child->channel == -1)
		return -1;
	result = channel_recv(child->channel, FROM_CHILD, &frame, &err);
	if (result == 1) {
		take_frame(child, &frame);
		return child->channel == -1 ? -1 : 1;
	}
	if (result == 0)
		return 0;
	if (err.kind == ERR_PROTOCOL)
		child_talks_nonsense(child, err.text);
	else
		close_channel(child);
	return -1;
}

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct child *child = arg;
	unsigned i;

	(void)fd;
	(void)what;
	for (i = 0; i < FRAMES_A_TURN && !child->has_said_hello; i++)
		if (receive(child) != 1)
			break;
	/* A child without channel is of no use, ending or not. */
	if (child->channel == -1 && child->state != CHILD_GONE)
		kill_for(child, CAUSE_CLOSED, "closed its channel");
}

static void
send_queue(struct child *child)
{
	struct err err = ERR_INIT;
	size_t sent;

	for (sent = 0; sent < child->n_queue; sent++)
		if (channel_send(child->channel, child->generation,
			child->queue[sent].type, &child->queue[sent].payload,
			&err) == -1)
			break;
	child->n_queue -= sent;
	memmove(child->queue, child->queue + sent,
	    child->n_queue * sizeof(*child->queue));
	if (child->n_queue > 0 && err.kind == ERR_TEMPORARY)
		event_add(child->writable, NULL);
}

static void
on_writable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	send_queue(arg);
}

static size_t
payload_size(enum msg_type type)
{
	switch (type) {
#define MSG(symbol, handler, sender, payload) \
	case symbol:                          \
		return sizeof(payload);
#include "ipc/messages.def"
#undef MSG
	default:
		die_bug("message type %d", type);
	}
}

int
child_send(struct child *child, enum msg_type type, const void *payload)
{
	struct err err = ERR_INIT;

	if (child->channel == -1 || child->state == CHILD_KILLED)
		return -1;
	if (child->n_queue == 0 && channel_send(child->channel,
		child->generation, type, payload, &err) == 0)
		return 0;
	if (child->n_queue == 0 && err.kind != ERR_TEMPORARY)
		return -1; /* gone: its exit comes */
	if (child->n_queue >= QUEUE_MAX) {
		kill_for(child, CAUSE_DEAF, "does not read its channel");
		return -1;
	}
	GROW(child->queue, child->n_queue, child->cap_queue);
	child->queue[child->n_queue].type = type;
	memcpy(&child->queue[child->n_queue].payload, payload,
	    payload_size(type));
	child->n_queue++;
	event_add(child->writable, NULL);
	return 0;
}

/* --- what the master does ----------------------------------------------- */

/* A later one is found when its timer rings for the one before; for a nearer
 * one it is rung by hand (proc/slots.c).  Before its first word it has none. */
void
child_move_deadline(struct child *child, int64_t deadline_boot_msecs)
{
	int64_t before = slot_deadline(child->slot);

	slot_set_deadline(child->slot, deadline_boot_msecs);
	if (deadline_boot_msecs < before && child->pid != 0 &&
	    child->state != CHILD_STARTING && child->state != CHILD_GONE)
		kill(child->pid, SIGALRM);
}

void
child_works(struct child *child, int64_t limit_msecs)
{
	child_happens(child, ON_WORK);
	child_prolong(child, limit_msecs);
}

void
child_prolong(struct child *child, int64_t limit_msecs)
{
	if (child->state == CHILD_WORKING && limit_msecs > 0)
		event_in_msecs(child->timer, limit_msecs);
	else if (child->state == CHILD_WORKING)
		event_del(child->timer);
}

void
child_is_done(struct child *child)
{
	child_happens(child, ON_DONE);
}

void
child_stop(struct child *child, const char *why)
{
	note_cause(child, CAUSE_WISH, why);
	child_happens(child, ON_STOP);
}

void
child_kill(struct child *child, const char *why)
{
	kill_for(child, CAUSE_WISH, why);
}

void
child_talks_nonsense(struct child *child, const char *what)
{
	if (child->state == CHILD_KILLED || child->state == CHILD_GONE)
		return;
	log_error(&child->owner->log, "child talks nonsense, killed kind=%s "
	    "pid=%d: %s", child_kind_name(child->kind), (int)child->pid, what);
	child->cause = CAUSE_NONSENSE;
	snprintf(child->why, sizeof(child->why), "nonsense: %s", what);
	child_happens(child, ON_NONSENSE);
	close_channel(child);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	child_happens(arg, ON_TIMEOUT);
}

/* Its last words first: they say how it went. */
static void
has_exited(struct child *child, int status)
{
	while (receive(child) == 1)
		;
	child->wait_status = status;
	child_happens(child, ON_EXIT);
}

/* --- birth -------------------------------------------------------------- */

static struct child *
child_new(struct children *children, const struct child_start *start,
    int channel)
{
	struct child *child = xcalloc(1, sizeof(*child));
	struct event_base *base = children->params.base;

	child->owner = children;
	child->kind = start->kind;
	child->generation = start->generation;
	child->slot = start->slot;
	child->maker = start->maker;
	child->channel = channel;
	child->readable = event_new(base, channel, EV_READ | EV_PERSIST,
	    on_readable, child);
	child->writable = event_new(base, channel, EV_WRITE, on_writable,
	    child);
	child->timer = event_new(base, -1, 0, on_timer, child);
	event_add(child->readable, NULL);
	TAILQ_INSERT_TAIL(&children->list, child, entry);
	children->n++;
	children->n_of[child->kind]++;
	children->n_unmade++;
	child->born_mono_msecs = clock_mono_msecs();
	change_state(child, CHILD_STARTING, MAKE_MSECS);
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
take_early(struct children *children, pid_t pid, int *status_r)
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

/* Or will never have one. */
static void
has_pid_now(struct child *child, const struct spawned *answer)
{
	struct children *all = child->owner;

	if (--all->n_unmade == 0)
		all->n_early = 0;
	if (answer->pid == -1) {
		strlcpy(child->why, strerror(answer->fork_errno),
		    sizeof(child->why));
		child_happens(child, ON_UNMADE);
		return;
	}
	child->pid = answer->pid;
	if (child->state == CHILD_KILLED)
		is_killed(child);
	else if (child->state == CHILD_STARTING ||
	    !event_pending(child->timer, EV_TIMEOUT, NULL))
		event_in_msecs(child->timer, START_MSECS);
	if (!child->has_said_hello || child->channel == -1)
		return;
	child->has_said_hello = false;
	event_add(child->readable, NULL);
	child_happens(child, ON_HELLO);
}

static void
hear_answers(struct children *children)
{
	struct spawned answer;
	struct child *child;
	bool has_ended;
	int status = 0;

	while (spawn_next(&answer)) {
		child = children_find(children, answer.generation);
		has_ended = answer.pid > 0 &&
		    take_early(children, answer.pid, &status);
		if (child == NULL || child->pid != 0) {
			/* given up meanwhile */
			if (answer.pid > 0 && !has_ended)
				kill(answer.pid, SIGKILL);
			continue;
		}
		has_pid_now(child, &answer);
		if (has_ended)
			has_exited(child, status);
	}
}

static void
on_answers(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	hear_answers(arg);
}

/* What it has not told, it has not made. */
static void
template_is_gone(struct children *children, pid_t maker)
{
	struct child *child, *next;

	hear_answers(children);
	for (child = children_first(children); child != NULL; child = next) {
		next = child_next(child);
		if (child->pid != 0 || child->maker != maker)
			continue;
		has_pid_now(child, &(struct spawned){ .pid = -1,
		    .fork_errno = ECHILD });
	}
}

static void
was_never(struct child *child)
{
	log_error(&child->owner->log, "no %s child could be made: %s",
	    child_kind_name(child->kind), child->why);
	child->cause = CAUSE_NOT_MADE;
	child->wait_status = EXIT_RETRY << 8;
	is_gone(child);
}

/* --- death -------------------------------------------------------------- */

static void
on_bury(evutil_socket_t fd, short what, void *arg)
{
	struct children *children = arg;
	struct child *child;

	(void)fd;
	(void)what;
	while ((child = TAILQ_FIRST(&children->gone)) != NULL) {
		TAILQ_REMOVE(&children->gone, child, entry);
		event_free(child->readable);
		event_free(child->writable);
		event_free(child->timer);
		free(child->queue);
		free(child);
	}
}

static void
is_gone(struct child *child)
{
	struct children *all = child->owner;

	close_channel(child);
	change_state(child, CHILD_GONE, 0);
	TAILQ_REMOVE(&all->list, child, entry);
	all->n--;
	all->n_of[child->kind]--;
	TAILQ_INSERT_TAIL(&all->gone, child, entry);
	event_in_msecs(all->bury, 0);
	all->params.on_end(all->params.arg, child);
	slot_give_back(child->slot);
}

static struct child *
find_pid(struct children *children, pid_t pid)
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
			template_is_gone(children, pid);
			continue;
		}
		child = find_pid(children, pid);
		if (child == NULL && children->n_unmade > 0) {
			hear_answers(children);
			child = find_pid(children, pid);
		}
		if (child != NULL)
			has_exited(child, status);
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
	log_init(&children->log, LOG_PROC, "%s", "");
	TAILQ_INIT(&children->list);
	TAILQ_INIT(&children->gone);
	children->bury = event_new(params->base, -1, 0, on_bury, children);
	answers = spawn_answers(&err);
	if (answers == -1)
		die(EX_OSERR, "%s", err.text);
	children->answers = event_new(params->base, answers,
	    EV_READ | EV_PERSIST, on_answers, children);
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
		close_channel(child);
		TAILQ_REMOVE(&children->list, child, entry);
		TAILQ_INSERT_TAIL(&children->gone, child, entry);
	}
	on_bury(-1, 0, children);
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
