/*
 * child_life.h - what can happen to a child, and the table it is in.
 *
 * Runs in: master.  Never blocks.
 *
 * Private to children.c and child_life.c: others see children.h.
 */
#ifndef MASTER_CHILD_LIFE_H
#define MASTER_CHILD_LIFE_H

#include "base/log.h"
#include "master/children.h"

/* Reaped before the template had told whose they are. */
#define EARLY_MAX 64

TAILQ_HEAD(child_list, child);

struct children {
	struct children_params params;
	struct log log;
	struct child_list list;
	struct child_list gone; /* until the next turn of the loop */
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
	/* Of children.c: it is gone, take it out of the table; the template
	 * that was to make it does not answer. */
	void (*remove)(struct child *child);
	void (*on_template_silent)(struct children *children, pid_t maker);
};

enum child_event {
	ON_HELLO,    /* it runs */
	ON_WORK,     /* the master gave it work */
	ON_DONE,     /* it has done it */
	ON_STOP,     /* the master wants it to end */
	ON_KILL,     /* the master wants it dead */
	ON_NONSENSE, /* it broke the rules of the channel */
	ON_TIMEOUT,  /* of the state it is in */
	ON_UNMADE,   /* it could not be made */
	ON_EXIT,     /* reaped */
	CHILD_EVENT_COUNT
};

/* Just asked for; `fd`: its channel. */
void child_life_begin(struct child *child, int fd);
/* The template has made it, or told why not: it was never there. */
void child_life_is_made(struct child *child, pid_t pid);
void child_life_is_not_made(struct child *child, const char *why);
/* It was reaped: its last words are heard first. */
void child_life_exited(struct child *child, int wait_status);
/* Frees what belongs to it; not the child. */
void child_life_release(struct child *child);

#endif
