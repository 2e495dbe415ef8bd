/*
 * spawn.h - the one place that forks.
 */
#ifndef PROC_SPAWN_H
#define PROC_SPAWN_H

#include "base/err.h"
#include "proc/kinds.h"

#include <stdint.h>
#include <sys/types.h>

struct child_start {
	enum child_kind kind;
	uint32_t generation; /* new for every child of this master */
	uint32_t slot;	     /* proc/slots.h */
	int channel;	     /* filled in: the child's end, blocking */
	const void *task;    /* the master's memory at fork, to be copied */
};

typedef void (*child_main)(const struct child_start *start);

/* Entry points, once at start (main.c knows both sides). */
void spawn_init(const child_main mains[KIND_COUNT]);

/*
 * Forks.  In the child: PR_SET_PDEATHSIG, every descriptor but the channel and
 * the log is closed, signals are reset (SIGHUP, SIGINT, SIGUSR1, SIGUSR2 and
 * SIGPIPE ignored), `on_child` (may be NULL) is called for what the master
 * wants forgotten, limits, confinement, process title; then the main function,
 * which does not return and ends the process with _exit().  In the master: the
 * pid and its end of the channel, non-blocking.
 *
 * on_child must close nothing: the numbers of the master's descriptors are
 * closed already and may be the child's by now.  So no event_base_free(); the
 * loop's memory is best left alone, shared with the master.
 *
 * memory_limit_bytes is on top of the address space at birth; 0: no limit.
 */
int spawn(struct child_start *start, void (*on_child)(void),
    uint64_t memory_limit_bytes, pid_t *pid_r, int *channel_r,
    struct err *err);

/* "mailherd: hot ann@example.org idle"; never a secret. */
void proc_set_title(const char *fmt, ...)
    __attribute__((format(printf, 1, 2)));
/* First thing in main(): libbsd needs argv and environ. */
void proc_init_title(int argc, char **argv, char **envp);

/* Drops to user and group once; no-op when not root or user is "". */
int proc_drop_privileges(const char *user, const char *group,
    struct err *err);

#endif
