/*
 * budgets.h - the budgets of this worker: who may have which resource.
 *
 * Runs in: master.  Never blocks.  Pure but for the answers it sends: time is
 * a parameter.
 *
 * A child acquires by want_id, and has it until it is released or the child is
 * gone, so SIGKILL leaks nothing (R-CONN-1, R-CONN-2, R-MEM-1).  Who must wait
 * waits in order, up to a deadline of its own choosing.
 *
 * One child at a time logs in to an account: when its password is wrong, the
 * next knows before it tries (R-LIFE-6).  A refused child keeps its turn until
 * the refusal is in the account's row.
 *
 * A connection of an account needs a second word, of who counts them over all
 * workers; that comes later, and the place is kept meanwhile (R-CONN-1).
 */
#ifndef MASTER_BUDGETS_H
#define MASTER_BUDGETS_H

#include "conf/conf.h"
#include "ipc/messages.h"

#include <stdbool.h>
#include <stddef.h>

struct budgets;

/* n_clerks: PostgreSQL sessions that are theirs without asking. */
struct budgets *budgets_new(const struct conf *conf, size_t n_clerks,
    void (*answer)(void *arg, uint32_t generation,
	const struct msg_grant *grant), void *arg);
void budgets_free(struct budgets **budgets);

/* Who counts the connections of an account over all workers; the answer to
 * ask() is budgets_answer_gate(), perhaps before it returns.  Without a gate
 * this worker's own count is all. */
struct budgets_gate {
	void (*ask)(void *arg, const struct uuid *account, size_t cap,
	    uint64_t tag);
	void (*give_back)(void *arg, uint64_t tag);
	void *arg;
};
void budgets_set_gate(struct budgets *budgets, const struct budgets_gate *gate);
void budgets_answer_gate(struct budgets *budgets, uint64_t tag, bool is_granted,
    int64_t now);

/* `account` may be the null id: then RESOURCE_ACCOUNT and RESOURCE_LOGIN are
 * not counted.
 * account_cap: what its server is known to allow; 0: the usual number.
 * -1: nonsense (id in use, too many wants). */
int budgets_acquire(struct budgets *budgets, uint32_t generation,
    const struct uuid *account, size_t account_cap,
    const struct msg_want *want, int64_t now);
void budgets_release(struct budgets *budgets, uint32_t generation,
    uint32_t want_id, int64_t now);
/* The child has ended its work for an account.  A session with PostgreSQL is
 * its own: it may go on with it, or give it back. */
void budgets_release_work(struct budgets *budgets, uint32_t generation,
    int64_t now);
/* The child is gone. */
void budgets_release_child(struct budgets *budgets, uint32_t generation,
    int64_t now);
/* Refuses those who waited too long, asks again at the gate; when it is to be
 * called next, -1: there is no such moment. */
int64_t budgets_expire(struct budgets *budgets, int64_t now);

size_t budgets_in_use(const struct budgets *budgets, enum resource resource);
size_t budgets_waiting(const struct budgets *budgets);
size_t budgets_host_in_use(const struct budgets *budgets, const char *host);
/* Connections of the account that this worker has given out. */
size_t budgets_account_in_use(const struct budgets *budgets,
    const struct uuid *account);
/* IDLE connections this host may have in all. */
size_t budgets_idle_cap(const struct conf *conf, const char *host);

#endif
