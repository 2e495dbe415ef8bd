/*
 * child_life.c - what can happen to a child.
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
 */
#include "master/child_life.h"

#include "base/clock.h"
#include "base/text.h"
#include "proc/spawn.h"
#include "redis/loop.h"

#include <bsd/string.h>

#include <signal.h>

/* From fork to hello: long, for a machine that is starting everything. */
#define START_MSECS 30000
/* Two forks of a small process; long, for a machine that is swapping. */
#define MAKE_MSECS 5000
/* Frames taken from one child before the others get a turn. */
#define FRAMES_A_TURN 64

static const char *const child_state_names[CHILD_STATE_COUNT] = {
#define X(symbol, name) [symbol] = name,
	CHILD_STATES(X)
#undef X
};

const char *
child_state_name(enum child_state state)
{
	return (unsigned)state < CHILD_STATE_COUNT ? child_state_names[state] :
	    "unknown";
}

/* --- the table ---------------------------------------------------------- */

static void life_become_ready(struct child *child);
static void life_begin_work(struct child *child);
static void life_ask_to_end(struct child *child);
static void life_kill(struct child *child);
static void life_hang(struct child *child);
static void life_never_was(struct child *child);
static void life_end(struct child *child);

static void
life_nothing(struct child *child)
{
	(void)child;
}

typedef void (*life_action)(struct child *child);

/* An empty place is our own mistake: life_happens() aborts. */
static const life_action life[CHILD_STATE_COUNT][CHILD_EVENT_COUNT] = {
	[CHILD_STARTING] = {
		[ON_HELLO] = life_become_ready,
		[ON_STOP] = life_ask_to_end,
		[ON_KILL] = life_kill,
		[ON_NONSENSE] = life_kill,
		[ON_TIMEOUT] = life_hang,
		[ON_UNMADE] = life_never_was,
		[ON_EXIT] = life_end,
	},
	[CHILD_READY] = {
		[ON_WORK] = life_begin_work,
		[ON_DONE] = life_nothing,
		[ON_STOP] = life_ask_to_end,
		[ON_KILL] = life_kill,
		[ON_NONSENSE] = life_kill,
		[ON_TIMEOUT] = life_nothing,
		[ON_EXIT] = life_end,
	},
	[CHILD_WORKING] = {
		[ON_WORK] = life_begin_work,
		[ON_DONE] = life_become_ready,
		[ON_STOP] = life_ask_to_end,
		[ON_KILL] = life_kill,
		[ON_NONSENSE] = life_kill,
		[ON_TIMEOUT] = life_hang,
		[ON_EXIT] = life_end,
	},
	[CHILD_STOPPING] = {
		[ON_HELLO] = life_nothing,
		[ON_DONE] = life_nothing,
		[ON_STOP] = life_nothing,
		[ON_KILL] = life_kill,
		[ON_NONSENSE] = life_kill,
		[ON_TIMEOUT] = life_hang,
		[ON_UNMADE] = life_never_was,
		[ON_EXIT] = life_end,
	},
	[CHILD_KILLED] = {
		[ON_HELLO] = life_nothing,
		[ON_DONE] = life_nothing,
		[ON_STOP] = life_nothing,
		[ON_KILL] = life_nothing,
		[ON_NONSENSE] = life_nothing,
		[ON_TIMEOUT] = life_hang, /* without pid only */
		[ON_UNMADE] = life_never_was,
		[ON_EXIT] = life_end,
	},
	[CHILD_GONE] = {
		[ON_STOP] = life_nothing,
		[ON_KILL] = life_nothing,
		[ON_NONSENSE] = life_nothing,
		[ON_TIMEOUT] = life_nothing,
	},
};

static void
life_happens(struct child *child, enum child_event event)
{
	life_action action = life[child->state][event];

	if (action == NULL)
		die_bug("child %d, %s: event %d", (int)child->pid,
		    child_state_name(child->state), event);
	action(child);
}

/* The only place that changes a child's state. */
static void
life_change_state(struct child *child, enum child_state state,
    int64_t limit_msecs)
{
	child->state = state;
	child->since_mono_msecs = clock_mono_msecs();
	if (limit_msecs > 0)
		event_in_msecs(child->timer, limit_msecs);
	else
		event_del(child->timer);
}

static void
life_become_ready(struct child *child)
{
	struct children *all = child->owner;

	/* A hot child brought its work with it. */
	life_change_state(child, child->kind == KIND_HOT ? CHILD_WORKING :
	    CHILD_READY, 0);
	all->params.on_ready(all->params.arg, child);
}

static void
life_begin_work(struct child *child)
{
	life_change_state(child, CHILD_WORKING, 0);
}

static void
life_ask_to_end(struct child *child)
{
	struct msg_empty empty = { 0 };

	life_change_state(child, CHILD_STOPPING,
	    child->owner->params.conf->stop_timeout * 1000);
	child_send(child, MSG_STOP, &empty);
}

/* Without a pid, it is killed when that is told. */
static void
life_kill(struct child *child)
{
	if (child->pid != 0)
		kill(child->pid, SIGKILL);
	life_change_state(child, CHILD_KILLED,
	    child->pid != 0 ? 0 : MAKE_MSECS);
}

static void
life_hang(struct child *child)
{
	if (child->pid == 0) {
		log_warn(&child->owner->log, "the process that makes children "
		    "does not answer, killed pid=%d", (int)child->maker);
		spawn_give_up(child->maker);
		child->owner->on_template_silent(child->owner, child->maker);
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
	life_change_state(child, CHILD_KILLED, 0);
}

static void
life_never_was(struct child *child)
{
	log_error(&child->owner->log, "no %s child could be made: %s",
	    child_kind_name(child->kind), child->why);
	child->cause = CAUSE_NOT_MADE;
	child->wait_status = EXIT_RETRY << 8;
	life_end(child);
}

static void
life_end(struct child *child)
{
	child_channel_close(&child->channel);
	life_change_state(child, CHILD_GONE, 0);
	child->owner->remove(child);
}

/* The first reason is the cause; the rest follows from it. */
static void
life_note_cause(struct child *child, enum child_cause cause, const char *why)
{
	if (child->cause != CAUSE_ITSELF)
		return;
	child->cause = cause;
	strlcpy(child->why, why, sizeof(child->why));
}

static void
life_kill_for(struct child *child, enum child_cause cause, const char *why)
{
	life_note_cause(child, cause, why);
	life_happens(child, ON_KILL);
}

/* --- the channel -------------------------------------------------------- */

static void
life_take_frame(struct child *child, const struct frame *frame)
{
	struct children *all = child->owner;

	if (frame->header.generation != child->generation) {
		child_talks_nonsense(child, "frame of another generation");
		return;
	}
	switch (frame->header.type) {
	case MSG_HELLO:
		if (child->pid == 0) {
			child_channel_pause(&child->channel);
			child->has_said_hello = true;
		} else if (child->state == CHILD_STARTING ||
		    child->state == CHILD_STOPPING ||
		    child->state == CHILD_KILLED)
			life_happens(child, ON_HELLO);
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
life_receive(struct child *child)
{
	static struct frame frame; /* 8 KB; used up before the next */
	struct err err = ERR_INIT;
	int result;

	if (child->channel.fd == -1)
		return -1;
	result = child_channel_receive(&child->channel, &frame, &err);
	if (result == 1) {
		life_take_frame(child, &frame);
		return child->channel.fd == -1 ? -1 : 1;
	}
	if (result == 0)
		return 0;
	if (err.kind == ERR_PROTOCOL)
		child_talks_nonsense(child, err.text);
	else
		child_channel_close(&child->channel);
	return -1;
}

static void
life_on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct child *child = arg;
	unsigned i;

	(void)fd;
	(void)what;
	for (i = 0; i < FRAMES_A_TURN && !child->has_said_hello; i++)
		if (life_receive(child) != 1)
			break;
	/* A child without channel is of no use, ending or not. */
	if (child->channel.fd == -1 && child->state != CHILD_GONE)
		life_kill_for(child, CAUSE_CLOSED, "closed its channel");
}

int
child_send(struct child *child, enum msg_type type, const void *payload)
{
	if (child->state == CHILD_KILLED)
		return -1;
	switch (child_channel_send(&child->channel, type, payload)) {
	case CHANNEL_SENT:
		return 0;
	case CHANNEL_FULL:
		life_kill_for(child, CAUSE_DEAF, "does not read its channel");
		return -1;
	default:
		return -1; /* its exit comes */
	}
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
	life_happens(child, ON_WORK);
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
	life_happens(child, ON_DONE);
}

void
child_stop(struct child *child, const char *why)
{
	life_note_cause(child, CAUSE_WISH, why);
	life_happens(child, ON_STOP);
}

void
child_kill(struct child *child, const char *why)
{
	life_kill_for(child, CAUSE_WISH, why);
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
	life_happens(child, ON_NONSENSE);
	child_channel_close(&child->channel);
}

static void
life_on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	life_happens(arg, ON_TIMEOUT);
}

/* --- its beginning and end ----------------------------------------------- */

void
child_life_begin(struct child *child, int fd)
{
	struct event_base *base = child->owner->params.base;

	child_channel_open(&child->channel, base, fd, child->generation,
	    life_on_readable, child);
	child->timer = event_new(base, -1, 0, life_on_timer, child);
	child->born_mono_msecs = clock_mono_msecs();
	life_change_state(child, CHILD_STARTING, MAKE_MSECS);
}

void
child_life_is_made(struct child *child, pid_t pid)
{
	child->pid = pid;
	if (child->state == CHILD_KILLED)
		life_kill(child);
	else if (child->state == CHILD_STARTING ||
	    !event_pending(child->timer, EV_TIMEOUT, NULL))
		event_in_msecs(child->timer, START_MSECS);
	if (!child->has_said_hello || child->channel.fd == -1)
		return;
	child->has_said_hello = false;
	child_channel_resume(&child->channel);
	life_happens(child, ON_HELLO);
}

void
child_life_is_not_made(struct child *child, const char *why)
{
	strlcpy(child->why, why, sizeof(child->why));
	life_happens(child, ON_UNMADE);
}

/* Its last words first: they say how it went. */
void
child_life_exited(struct child *child, int wait_status)
{
	while (life_receive(child) == 1)
		;
	child->wait_status = wait_status;
	life_happens(child, ON_EXIT);
}

void
child_life_release(struct child *child)
{
	child_channel_release(&child->channel);
	event_free(child->timer);
}
