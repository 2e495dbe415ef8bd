/*
 * hooks.h - what sync needs of a child, by way of the channel.
 */
#ifndef CHILD_HOOKS_H
#define CHILD_HOOKS_H

#include "child/runtime.h"
#include "sync/sync.h"

struct child_hooks {
	struct account_hooks hooks; /* give this to sync and jobs */
	struct runtime *rt;
	enum child_kind kind;
	bool is_idle; /* sockets are for IDLE */
	char email[MSG_EMAIL_SIZE]; /* for the process title; "" : none */
};

void child_hooks_init(struct child_hooks *h, struct runtime *rt,
    enum child_kind kind);

/* MSG_PASS_DONE from what the session did; failure NULL: it went well. */
void child_report_pass(struct runtime *rt, struct session *s,
    const struct uuid *account_id, int64_t epoch, const struct err *failure,
    int64_t started_mono_msecs);

/* The settings of child_init. */
const struct conf *child_conf(void);

#endif
