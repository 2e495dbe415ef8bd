/*
 * runtime.h - what every child has: its channel to the master.
 *
 * Runs in: children.  Blocking.  Requests wait for their answer; commands that
 * arrive meanwhile are kept for the loop.
 */
#ifndef CHILD_RUNTIME_H
#define CHILD_RUNTIME_H

#include "base/err.h"
#include "base/log.h"
#include "ipc/channel.h"
#include "proc/spawn.h"
#include "proc/vault.h"

struct runtime {
	int channel;
	uint32_t generation;
	uint32_t slot;
	struct log log;
	bool is_stopping; /* MSG_STOP came */
	bool must_yield; /* MSG_JOB_YIELD came */
	bool is_lease_lost; /* runtime_may_go_on saw the deadline pass */
	uint32_t next_want_id;
	char activity[64]; /* the last one sent */
	struct frame *kept; /* commands that came during a request */
	size_t n_kept, cap_kept;
};

void runtime_init(struct runtime *rt, const struct child_start *start);
/* Sends; a master that is gone ends the process (EXIT_MASTER_GONE). */
void runtime_send(struct runtime *rt, enum msg_type type, const void *payload);
/* Next command; msecs < 0 waits for ever.  1 got, 0 timeout. */
int runtime_next(struct runtime *rt, struct frame *frame_r, int64_t msecs);
/* Handles MSG_STOP, MSG_LOG_LEVEL; -1 with ERR_STOPPED or ERR_FENCED (lease
 * deadline passed) when work must end.  Call before every slow step. */
int runtime_may_go_on(struct runtime *rt, struct err *err);

/* Budgets; the id is for giving back.  Waits up to msecs. */
int runtime_want(struct runtime *rt, enum resource resource, const char *host,
    uint16_t port, bool is_idle, int64_t msecs, uint32_t *want_id_r,
    struct err *err);
void runtime_give_back(struct runtime *rt, uint32_t want_id);

/* Opens the account's credentials; wipe them after use. */
int runtime_unseal(struct runtime *rt, const struct seal_bond *bond,
    const struct sealed *sealed, char *secret_r, size_t size,
    struct err *err);

/* What a hot child begins with.  -1: not to be had. */
int runtime_brief(struct runtime *rt, struct msg_briefing *briefing_r);

void runtime_activity(struct runtime *rt, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Takes over a slot for the work that begins (pool children get one with each
 * poll); SLOT_NONE gives it up. */
void runtime_use_slot(struct runtime *rt, uint32_t slot);

/* The exit code for work that ended with this. */
enum child_exit runtime_exit_code(const struct runtime *rt,
    const struct err *err);

#endif
