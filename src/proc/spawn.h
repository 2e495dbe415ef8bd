/*
 * spawn.h - the one place that forks.
 */
#ifndef PROC_SPAWN_H
#define PROC_SPAWN_H

#include "base/err.h"
#include "proc/kinds.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SPAWN_TASK_MAX 512
/* Descriptors that no child gets. */
#define SPAWN_RESERVE 40

struct child_start {
	enum child_kind kind;
	uint32_t generation; /* new for every child of this master */
	uint32_t slot;	     /* proc/slots.h */
	int channel;	     /* filled in: the child's end, blocking */
	pid_t maker;	     /* filled in: the template that was asked */
	const void *task;    /* of its kind's size; the child gets a copy */
};

struct child_entry {
	void (*main)(const struct child_start *start);
	size_t task_size; /* at most SPAWN_TASK_MAX */
};

/* Entry points, once at start (main.c knows both sides). */
void spawn_init(const struct child_entry entries[KIND_COUNT]);

/*
 * Asks for a child of this process, without waiting for it; the answer comes
 * by spawn_next().  In the child: PR_SET_PDEATHSIG, every descriptor but the
 * channel and the log is closed, signals are reset (SIGHUP, SIGINT, SIGUSR1,
 * SIGUSR2 and SIGPIPE ignored), limits, confinement, process title; then the
 * main function, which does not return and ends the process with _exit().  In
 * the master: its end of the channel, non-blocking.
 *
 * memory_limit_bytes is on top of the address space at birth; 0: no limit.
 */
int spawn(struct child_start *start, uint64_t memory_limit_bytes,
    int *channel_r, struct err *err);

struct spawned {
	uint32_t generation;
	pid_t pid; /* -1: was not made */
	int fork_errno;
};
/* Becomes readable when there is an answer.  The same for ever; -1: none. */
int spawn_answers(struct err *err);
/* false: none now.  What its `maker` has not answered when it is reaped, it
 * has not made, or nobody hears of it any more. */
bool spawn_next(struct spawned *answer_r);

/*
 * Children are copies of this process as it was at the first spawn().  Call
 * this when what they inherit (settings, log level, log file) has changed: the
 * next child is a copy of this process as it is then.
 */
void spawn_renew(void);
/* It does not answer: it is killed, and the next spawn() starts another. */
void spawn_give_up(pid_t maker);
/* Somebody waited for this pid; true: it was no child of spawn(), but a
 * process that makes them. */
bool spawn_has_reaped(pid_t pid);

/*
 * Into the background.  The parent waits until proc_ready() is called, and
 * ends with 0 then; when the daemon ends before, with its exit code: who starts
 * it is told the truth.  Returns in the daemon, which keeps standard error until
 * it is ready.
 */
int proc_daemonize(struct err *err);
/* Everything is there.  Tells the parent, and a service manager by
 * NOTIFY_SOCKET (sd_notify(3)); may be called again. */
void proc_ready(void);

/*
 * Runs a function in a process of its own and waits for it: what it loads and
 * leaves behind is gone with it.  Returns what run returned, 0 to 255, or -1
 * (no process, or it died).  Only before the loop begins: it blocks.
 */
int spawn_apart(int (*run)(const void *arg), const void *arg);

/* "mailherd: hot ann@example.org idle"; never a secret. */
void proc_set_title(const char *fmt, ...)
    __attribute__((format(printf, 1, 2)));
/* First thing in main(): libbsd needs argv and environ. */
void proc_init_title(int argc, char **argv, char **envp);

/*
 * No core file and no ptrace by processes of the same user: keys and passwords
 * are in here.  After daemon(3), and again after privileges were dropped.
 * MAILHERD_CORES=1 in the environment lifts it.
 */
void proc_hide_memory(void);

/* Drops to user and group once; no-op when not root or user is "". */
int proc_drop_privileges(const char *user, const char *group,
    struct err *err);

#endif
