/*
 * dispatch.h - who works for which account now.
 *
 * Runs in: master of the sync role.  Never blocks.
 */
#ifndef MASTER_DISPATCH_H
#define MASTER_DISPATCH_H

#include "master/state.h"
#include "proc/kinds.h"

#include <stdbool.h>

struct account;
struct pool_rules;

/* Something changed: look at the end of this turn of the loop. */
void dispatch_soon(struct master *m);
/* The timer's callback; arg is the master. */
void dispatch_run(int fd, short what, void *arg);

/* The children that poll: m->polls. */
extern const struct pool_rules dispatch_polls;

/* When its hot child may be started (mono). */
int64_t account_hot_next(const struct account *account);
bool account_is_idling(const struct account *account);
/* Longest silence of a hot or pool child at work. */
int64_t silence_msecs(const struct conf *conf, enum child_kind kind);

#endif
