/*
 * job_dispatch.h - jobs on their way from the bell to a child.
 *
 * Runs in: master of the jobs role.  Never blocks.
 */
#ifndef MASTER_JOB_DISPATCH_H
#define MASTER_JOB_DISPATCH_H

#include "base/uuid.h"
#include "ipc/messages.h"
#include "master/state.h"

struct child;
struct running_job;
struct job_dispatch;

struct job_dispatch *job_dispatch_new(struct master *m);
void job_dispatch_free(struct job_dispatch **jobs);

/* Room may have appeared, or a child. */
void job_dispatch_run(struct job_dispatch *jobs);
/* From the clerk's sweep; done when all due jobs have come. */
void job_dispatch_due(struct job_dispatch *jobs,
    const struct msg_due_jobs *due);
void job_dispatch_yield(struct job_dispatch *jobs, const struct msg_ids *ids);
/* From messages.c and role_jobs.c. */
void job_dispatch_taken(struct job_dispatch *jobs, struct child *child,
    const struct msg_job_taken *taken);
void job_dispatch_done(struct job_dispatch *jobs, struct child *child,
    const struct msg_job_done *done);
void job_dispatch_child_end(struct job_dispatch *jobs, struct child *child);
/* account.state_changed: an account that is to be left alone (R-LIFE-2). */
void job_dispatch_on_state(struct job_dispatch *jobs,
    const struct uuid *account_id, const char *state);
/* Settings changed. */
void job_dispatch_reload(struct job_dispatch *jobs);
/* Takes no more; children end after their job or stop_timeout. */
void job_dispatch_stop(struct job_dispatch *jobs);

size_t job_dispatch_running(const struct job_dispatch *jobs);
size_t job_dispatch_waiting(const struct job_dispatch *jobs);
/* For ps: the job of a child, or NULL. */
const struct uuid *running_job_id(const struct running_job *job);

#endif
