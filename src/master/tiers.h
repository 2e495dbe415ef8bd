/*
 * tiers.h - which tier each account of this worker is in, and who may idle.
 *
 * Runs in: master of the sync role.  Never blocks.
 */
#ifndef MASTER_TIERS_H
#define MASTER_TIERS_H

#include "master/policy.h"

#include <stdbool.h>

struct account;
struct master;
struct uuid;

/* Asks Redis for tier, pin and session, then evaluates. */
void tiers_ask(struct account *account, struct master *m);
/* Its facts have changed: what follows for its tier. */
void tiers_evaluate(struct account *account, struct master *m);
void tiers_pin(struct account *account, struct master *m, bool is_pinned,
    enum tier pin);
/* user.active (R-TIER-3) */
void tiers_on_user_active(struct master *m, const struct uuid *user_id);

/* All of them: on_evaluate of the table. */
void tiers_evaluate_all(struct master *m);
/* The hot budget, and the places for IDLE at each host; when
 * accounts_budget_is_stale(). */
void tiers_share_out(struct master *m);

#endif
