/*
 * works.h - jobs on their way from the bell to a child.
 *
 * Runs in: master of the jobs role.  Never blocks.
 */
#ifndef MASTER_WORKS_H
#define MASTER_WORKS_H

#include "base/uuid.h"
#include "ipc/messages.h"
#include "master/state.h"

struct child;
struct work;
struct works;

struct works *works_new(struct master *m);
void works_free(struct works **works);

/* Room may have appeared, or a child. */
void works_run(struct works *works);
/* From the clerk's sweep; done when all due jobs have come. */
void works_due(struct works *works, const struct msg_due_jobs *due);
void works_yield(struct works *works, const struct msg_ids *ids);
/* From children and relay. */
void works_taken(struct works *works, struct child *child,
    const struct msg_job_taken *taken);
void works_done(struct works *works, struct child *child,
    const struct msg_job_done *done);
void works_child_ended(struct works *works, struct child *child);
/* account.state_changed: an account that is to be left alone (R-LIFE-2). */
void works_state_changed(struct works *works, const struct uuid *account_id,
    const char *state);
/* Settings changed. */
void works_reload(struct works *works);
/* Takes no more; children end after their job or stop_timeout. */
void works_stop(struct works *works);

size_t works_running(const struct works *works);
size_t works_waiting(const struct works *works);
/* For ps: the job of a child, or NULL. */
const struct uuid *work_id(const struct work *work);

#endif
