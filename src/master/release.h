/*
 * release.h - letting go of accounts, and losing them.
 *
 * Runs in: master of the sync role.  Never blocks.
 */
#ifndef MASTER_RELEASE_H
#define MASTER_RELEASE_H

#include "base/uuid.h"
#include "lease/leases.h"

#include <stddef.h>
#include <stdint.h>

struct account;
struct master;

/* Ends the children, then releases the lease.  May free the account.
 * avoid_msecs: this worker does not claim it again for so long. */
void release_account(struct account *account, struct master *m,
    const char *why, int64_t avoid_msecs);
void release_all(struct master *m, const char *why);
/* So many of those that are least active, for others to take. */
void release_excess(struct master *m, size_t n);
/* A child of a LEAVING account has ended: the last one lets go. */
void release_step(struct account *account, struct master *m);

/* Their leases are lost already: children are killed, accounts forgotten. */
void release_lost(struct master *m, const struct uuid *ids, size_t n,
    enum lease_end how);

#endif
