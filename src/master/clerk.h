/*
 * clerk.h - questions to PostgreSQL, put to the clerk child in order.
 *
 * Runs in: master.  Never blocks.
 *
 * The answer proper (MSG_FACTS, MSG_BRIEFING, MSG_LIVE_IDS, MSG_DUE_JOBS) comes
 * through messages.c; on_done tells that it is complete.  A clerk that dies or hangs is
 * replaced and asked again.
 */
#ifndef MASTER_CLERK_H
#define MASTER_CLERK_H

#include "ipc/channel.h"

#include <stdbool.h>
#include <stddef.h>

struct child;
struct clerk;
struct master;

/* outcome: ERR_NONE, or what the clerk said, or ERR_TEMPORARY when the
 * question killed two clerks. */
typedef void (*clerk_on_done)(struct master *m, const struct uuid *about,
    enum err_kind outcome, const char *text);

/* patience_msecs: how long one question may take. */
struct clerk *clerk_new(struct master *m, const char *name,
    int64_t patience_msecs);
void clerk_free(struct clerk **clerk);

/* `about` (may be NULL) comes back in on_done (may be NULL). */
void clerk_ask(struct clerk *clerk, enum msg_type type, const void *payload,
    size_t size, const struct uuid *about, clerk_on_done on_done);
/* Is such a question waiting or under way? */
bool clerk_is_asked(const struct clerk *clerk, enum msg_type type);
size_t clerk_backlog(const struct clerk *clerk);

/* From messages.c. */
void clerk_ready(struct clerk *clerk, struct child *child);
void clerk_answered(struct clerk *clerk, struct child *child,
    const struct msg_clerk_done *done);
void clerk_ended(struct clerk *clerk, struct child *child);
/* Settings changed: the next question goes to a new clerk. */
void clerk_renew(struct clerk *clerk);
void clerk_stop(struct clerk *clerk);

#endif
