/*
 * children.h - the table of child processes, and what can be done to a child.
 *
 * Runs in: master.  Never blocks.
 */
#ifndef MASTER_CHILDREN_H
#define MASTER_CHILDREN_H

#include "conf/conf.h"
#include "master/child_channel.h"
#include "proc/kinds.h"
#include "proc/slots.h"

#include <bsd/sys/queue.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct account;
struct clerk;
struct event;
struct event_base;
struct child_pool;
struct running_job;

#define CHILD_STATES(X)                                                      \
	X(CHILD_STARTING, "starting") /* forked, has not said hello */       \
	X(CHILD_READY, "ready")	      /* waits for work */                   \
	X(CHILD_WORKING, "working")                                          \
	X(CHILD_STOPPING, "stopping") /* asked to end */                     \
	X(CHILD_KILLED, "killed")     /* SIGKILL sent, not yet reaped */     \
	X(CHILD_GONE, "gone")	      /* reaped; lives until the next turn */
enum child_state {
#define X(symbol, name) symbol,
	CHILD_STATES(X)
#undef X
	    CHILD_STATE_COUNT
};
const char *child_state_name(enum child_state state);

/* Why the master ended it; the first reason is the cause, the rest follows. */
enum child_cause {
	CAUSE_ITSELF,	/* it did not */
	CAUSE_WISH,	/* asked to end, or killed, for no fault of its own */
	CAUSE_NOT_MADE, /* there never was such a process */
	CAUSE_HUNG,
	CAUSE_NONSENSE,
	CAUSE_CLOSED, /* its channel */
	CAUSE_DEAF,   /* does not read its channel */
};

struct child {
	TAILQ_ENTRY(child) entry;
	TAILQ_ENTRY(child) pool_entry;
	struct children *owner;
	enum child_kind kind;
	enum child_state state;
	uint32_t generation;
	pid_t pid;   /* 0: asked for, not yet told */
	pid_t maker; /* the template that was asked */
	uint32_t slot;
	struct child_channel channel;
	struct event *timer;
	int64_t since_mono_msecs; /* in this state */
	int64_t born_mono_msecs;
	int wait_status; /* when gone */
	bool has_said_hello; /* while its pid is not known */
	bool awaits_start_state; /* has asked what it must know to begin */
	enum child_cause cause;
	char why[80]; /* it was stopped or killed, for people */
	char activity[64];

	/* what it works for; all NULL: nothing */
	struct account *account;
	struct running_job *job;
	struct clerk *clerk;
	struct uuid account_id; /* null: none; stays when account is gone */
	int64_t idling_since_mono; /* hot: 0 = not idling */
	bool has_reported;	   /* its failure is known already */

	/* pool.c */
	struct child_pool *pool; /* NULL: it came with its work */
	bool has_worked;   /* ended a piece of work, well or not */
	bool is_old;	   /* settings changed: ends after this work */
};

struct children_params {
	struct event_base *base;
	const struct conf *conf;
	/* A child can take work now. */
	void (*on_ready)(void *arg, struct child *child);
	/* A checked frame of this very child; hello and activity are handled
	 * before. */
	void (*on_message)(void *arg, struct child *child,
	    const struct frame *frame);
	/* Reaped, its last words heard: child_end.h says what that was.  Forget
	 * all pointers to it. */
	void (*on_end)(void *arg, struct child *child);
	void *arg;
};

struct children *children_new(const struct children_params *params);
/* Kills what is left. */
void children_free(struct children **children);

/* false: so many are asked for already that nobody should ask now. */
bool children_have_room(const struct children *children);
/* `task` is read at once.  deadline: DEADLINE_NONE without a lease.  Whether it
 * could be made is known later: on_end with CAUSE_NOT_MADE. */
struct child *child_spawn(struct children *children, enum child_kind kind,
    int64_t deadline_boot_msecs, const void *task, struct err *err);
/* -1: the child does not listen (it is then killed). */
int child_send(struct child *child, enum msg_type type, const void *payload);
/* Of its lease.  A child that blocks hears of a nearer one, too. */
void child_move_deadline(struct child *child, int64_t deadline_boot_msecs);
/* Work begins or ends: the caller sends or has received the message.
 * limit_msecs: then it counts as hung; 0: no limit. */
void child_works(struct child *child, int64_t limit_msecs);
void child_is_done(struct child *child);
/* Another sign of life: the limit counts anew. */
void child_prolong(struct child *child, int64_t limit_msecs);
void child_stop(struct child *child, const char *why);
void child_kill(struct child *child, const char *why);
void child_talks_nonsense(struct child *child, const char *what);

/* SIGCHLD: translates, nothing else. */
void children_reap(struct children *children);

size_t children_count(const struct children *children);
size_t children_of(const struct children *children, enum child_kind kind);
struct child *children_first(const struct children *children);
struct child *child_next(const struct child *child);
struct child *children_find(const struct children *children,
    uint32_t generation);

#endif
