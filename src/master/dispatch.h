/*
 * dispatch.h - who works for which account now.
 *
 * Runs in: master of the sync role.  Never blocks.
 */
#ifndef MASTER_DISPATCH_H
#define MASTER_DISPATCH_H

#include "proc/kinds.h"

#include <stdint.h>

struct conf;
struct master;
struct pool_rules;

/* The children that poll: m->polls. */
extern const struct pool_rules dispatch_polls;

/* Looks at all accounts: on_due of the table. */
void dispatch_run(struct master *m);
/* Longest silence of a hot or pool child at work. */
int64_t dispatch_silence_msecs(const struct conf *conf, enum child_kind kind);

#endif
