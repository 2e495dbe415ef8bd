/*
 * tiers.h - which tier each account of this worker is in, and who may idle.
 *
 * Runs in: master of the sync role.  Never blocks.
 */
#ifndef MASTER_TIERS_H
#define MASTER_TIERS_H

#include "master/accounts.h"

/* Asks Redis for tier, pin and session, then evaluates. */
void tiers_ask(struct account *account, struct master *m);
/* Tier: evaluates and acts on it. */
void account_evaluate(struct account *account, struct master *m);
void account_pin(struct account *account, struct master *m, bool is_pinned,
    enum tier pin);
/* user.active (R-TIER-3) */
void accounts_user_active(struct accounts *accounts,
    const struct uuid *user_id);

/* All of them, each tier_interval: callback of accounts->evaluate. */
void tiers_evaluate_all(int fd, short what, void *arg);
/* The hot budget, and the places for IDLE at each host; when
 * accounts->is_budget_stale. */
void tiers_share_out(struct master *m);

#endif
