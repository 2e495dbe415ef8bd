/*
 * child.h - entry points of the kinds of children.
 *
 * Runs in: main.c hands these to proc/spawn; the master knows only the task
 * structs.  Each main function blocks, does not return, and ends the process
 * with one of enum child_exit.
 */
#ifndef CHILD_CHILD_H
#define CHILD_CHILD_H

#include "conf/conf.h"
#include "conf/quirks.h"
#include "ipc/messages.h"
#include "proc/spawn.h"

/*
 * Once, before the first fork: remembers the settings (conf_adopt may change
 * them in place; children forked later see it) and loads what is costly:
 * trust store, GnuTLS, gmime.  Dies when that fails.
 */
void child_init(const struct conf *conf, const struct quirks_table *quirks);
/* When the settings were read again: reads anew what they name and children
 * inherit.  What cannot be read stays as it was.  Takes some 20 ms. */
void child_refresh(void);

/* Of struct child_entry, proc/spawn.h. */
_Noreturn void clerk_main(const struct child_start *start); /* no task */
_Noreturn void hot_main(const struct child_start *start);
_Noreturn void pool_main(const struct child_start *start); /* no task */
_Noreturn void job_main(const struct child_start *start);
_Noreturn void metrics_main(const struct child_start *start); /* no task */

/*
 * What PostgreSQL and the blob directory must be for a start: an exit code of
 * sysexits.h, the reason logged.  EX_CONFIG: it will not pass by itself;
 * EX_UNAVAILABLE: it may.  The argument is a struct conf; for spawn_apart.
 */
int child_check_start(const void *conf);

/* child_start.task of KIND_HOT */
struct hot_task {
	struct uuid account_id;
	int64_t epoch;
	char owner[MSG_WORKER_SIZE]; /* of the epoch */
	char email[MSG_EMAIL_SIZE];
};

/* child_start.task of KIND_JOB: who takes the jobs (jobs.locked_by) */
struct job_task {
	char worker_id[MSG_WORKER_SIZE];
};

/*
 * mailherd -1 ACCOUNT: one pass over all folders of one account in the
 * foreground, without master or lease, under the account's current epoch; a
 * new account is bootstrapped.  Returns an exit code of sysexits.h.
 */
int child_run_once(const struct conf *conf, const char *account);

#endif
