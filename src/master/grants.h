/*
 * grants.h - the budgets of this worker: who may have which resource.
 *
 * Runs in: master.  Never blocks.  Pure but for the answers it sends: time is
 * a parameter.
 *
 * A child asks by want_id; a grant lasts until it is given back or the child
 * is gone, so SIGKILL leaks nothing (R-CONN-1, R-CONN-2, R-MEM-1).  Who must
 * wait waits in order, up to a deadline of its own choosing.
 */
#ifndef MASTER_GRANTS_H
#define MASTER_GRANTS_H

#include "conf/conf.h"
#include "ipc/messages.h"

#include <stddef.h>

struct grants;

struct grants *grants_new(const struct conf *conf,
    void (*answer)(void *arg, uint32_t generation,
	const struct msg_grant *grant), void *arg);
void grants_free(struct grants **grants);

/* `account` may be the null id: then RESOURCE_ACCOUNT is not counted.
 * -1: nonsense (id in use, too many wants). */
int grants_want(struct grants *grants, uint32_t generation,
    const struct uuid *account, const struct msg_want *want, int64_t now);
void grants_give_back(struct grants *grants, uint32_t generation,
    uint32_t want_id, int64_t now);
/* The child is gone. */
void grants_drop(struct grants *grants, uint32_t generation, int64_t now);
/* Refuses those who waited too long; the next such moment, -1: none. */
int64_t grants_expire(struct grants *grants, int64_t now);

size_t grants_in_use(const struct grants *grants, enum resource resource);
size_t grants_waiting(const struct grants *grants);
size_t grants_host_in_use(const struct grants *grants, const char *host);
/* IDLE connections this host may have in all. */
size_t grants_idle_cap(const struct conf *conf, const char *host);

#endif
