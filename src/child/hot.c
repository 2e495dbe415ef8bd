/*
 * hot.c - a hot account: IDLE on INBOX.
 *
 * Runs in: one child per hot account.  Blocking, a straight line.
 *
 * Idle, it holds one connection to the mail server and nothing else: no
 * PostgreSQL session, no spare memory.  What wakes it is the server, the
 * channel, or the time after which an IDLE is begun anew; each time INBOX is
 * brought up to date before the next IDLE.
 */
#include "child/child.h"

#include "base/clock.h"
#include "child/hooks.h"
#include "child/limits.h"

#include <unistd.h>

/* A server that cuts an IDLE of this age is doing what servers do (L096). */
#define GOOD_IDLE_MSECS 60000

struct hot {
	struct runtime rt;
	struct child_hooks hooks;
	struct hot_task task;
	struct session *session;
	bool has_idled;
};

static _Noreturn void
hot_leave(struct hot *hot, enum child_exit code)
{
	sync_close(&hot->session);
	_exit(code);
}

static void
hot_report(struct hot *hot, const struct err *failure, int64_t started)
{
	child_report_pass(&hot->rt, hot->session, &hot->task.account_id,
	    hot->task.epoch, failure, started);
}

static void
hot_catch_up(struct hot *hot, int (*function)(struct session *, struct err *))
{
	struct err err = ERR_INIT;
	int64_t started = clock_mono_msecs();

	if (function(hot->session, &err) == 0) {
		hot_report(hot, NULL, started);
		return;
	}
	hot_report(hot, &err, started);
	hot_leave(hot, runtime_exit_code(&hot->rt, &err));
}

/* Commands; a wake means: look now. */
static void
hot_obey(struct hot *hot)
{
	struct frame frame;
	bool is_woken = false;

	while (runtime_next(&hot->rt, &frame, 0) == 1) {
		switch (frame.header.type) {
		case MSG_STOP:
			hot_leave(hot, EXIT_DONE);
		case MSG_WAKE:
			is_woken = true;
			break;
		default:
			log_warn(&hot->rt.log, "not for a hot child: %s",
			    msg_type_name(frame.header.type));
		}
	}
	if (is_woken)
		hot_catch_up(hot, sync_watch_look_anew);
}

static void
say_idling(struct hot *hot)
{
	struct msg_idling idling = { .account_id = hot->task.account_id };

	if (hot->has_idled)
		return;
	hot->has_idled = true;
	runtime_send(&hot->rt, MSG_IDLING, &idling);
}

static void
hot_idle(struct hot *hot)
{
	struct err err = ERR_INIT;
	int64_t started = clock_mono_msecs();
	int64_t msecs = child_conf()->idle_restart_secs * 1000;
	bool is_changed;

	say_idling(hot);
	if (sync_watch_wait(hot->session, hot->rt.channel, msecs, &is_changed,
		&err) == 0) {
		/* Time up: look too, in case the server forgot to tell. */
		if (is_changed || clock_mono_msecs() - started >= msecs)
			hot_catch_up(hot, sync_watch_catch_up);
		return;
	}
	if (err.kind == ERR_NETWORK &&
	    clock_mono_msecs() - started >= GOOD_IDLE_MSECS) {
		log_debug(&hot->rt.log, "connected anew: %s", err.text);
		hot_catch_up(hot, sync_watch);
		return;
	}
	hot_report(hot, &err, started);
	hot_leave(hot, runtime_exit_code(&hot->rt, &err));
}

void
hot_main(const struct child_start *start)
{
	struct hot hot;
	struct fence fence;
	char id[UUID_TEXT_SIZE];

	memset(&hot, 0, sizeof(hot));
	hot.task = *(const struct hot_task *)start->task;
	runtime_init(&hot.rt, start);
	log_init(&hot.rt.log, LOG_CORE, "kind=hot account_id=%s tier=hot",
	    uuid_format(&hot.task.account_id, id));
	child_hooks_init(&hot.hooks, &hot.rt, KIND_HOT);
	hot.hooks.is_idle = true;
	snprintf(hot.hooks.email, sizeof(hot.hooks.email), "%s",
	    hot.task.email);
	limits_start();
	fence_init(&fence, &hot.task.account_id, hot.task.epoch,
	    hot.task.owner);
	hot.session = sync_open(child_conf(), &hot.hooks.hooks, &fence);
	hot_catch_up(&hot, sync_watch);
	for (;;) {
		hot_obey(&hot);
		hot_idle(&hot);
	}
}
