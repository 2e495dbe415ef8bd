/*
 * claim.h - one question to Redis: which of these accounts are free, and may
 * we have them?
 *
 * Runs in: master.  Never blocks.
 */
#ifndef LEASE_CLAIM_H
#define LEASE_CLAIM_H

#include "base/uuid.h"
#include "conf/conf.h"

#include <stdbool.h>
#include <stddef.h>

struct era;
struct redis;

#define CLAIM_MAX 200
#define WORKER_SIZE 160

struct claim_params {
	struct redis *redis;
	const struct conf *conf;
	const char *worker_id; /* host:pid:random */
	const struct era *era;
};

struct claim {
	struct uuid ids[CLAIM_MAX];
	size_t n;
	/* The first n_old have been left over for long: room_old of them may
	 * be taken, and `room` of the others. */
	size_t n_old, room_old, room;
	/* They were found in sync:orphans: who is none leaves it.  Otherwise
	 * who is one is put there. */
	bool is_from_orphans;
};

enum claim_end {
	CLAIM_FAILED, /* no answer, or none we understand */
	CLAIM_WRONG_ERA,
	CLAIM_CLOSED, /* no claims for closed_msecs */
	CLAIM_DONE,
};

struct claim_answer {
	enum claim_end end;
	int64_t closed_msecs;
	int64_t deadline_boot_msecs; /* of what was won */
	struct uuid won[CLAIM_MAX], left[CLAIM_MAX];
	size_t n_won, n_left;
	/* Leases of dead masters of this host: claim_inherit. */
	struct uuid near[CLAIM_MAX];
	char owners[CLAIM_MAX][WORKER_SIZE];
	size_t n_near;
};

/* on_answer is always called, perhaps at once; the answer is static. */
void claim_send(const struct claim_params *params, const struct claim *claim,
    void (*on_answer)(void *arg, const struct claim_answer *answer),
    void *arg);

/* Takes the lease over from a master of this host, boot and process namespace
 * that is dead (R-LEASE-10).  won: ours until the deadline. */
void claim_inherit(const struct claim_params *params, const struct uuid *id,
    const char *owner, void (*on_answer)(void *arg, const struct uuid *id,
	bool is_won, int64_t deadline_boot_msecs), void *arg);

/* A master of this host that is no more. */
bool claim_is_dead_neighbour(const char *worker_id, const char *other);

#endif
