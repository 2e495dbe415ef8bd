/*
 * role.h - what a sync and a jobs worker do differently: one row each.
 *
 * Runs in: master.  Never blocks.
 *
 * The roles share children, budgets, clerk and control socket.  What gives
 * them work is their own: leases and tiers, or queues.  Nobody else asks which
 * role this is: it is a function of the row, or a column of the messages.
 */
#ifndef MASTER_ROLE_H
#define MASTER_ROLE_H

#include "base/err.h"
#include "ipc/messages.h"
#include "master/policy.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct account;
struct buf;
struct child;
struct json_t;
struct master;

/* Shown for every worker; what a role does not have is 0. */
struct role_figures {
	size_t owned;
	size_t of_tier[TIER_COUNT];
	size_t polled_instead; /* of IDLE: hot accounts that may not */
	int64_t oldest_pass_secs;
};

struct role_ops {
	const char *name; /* in logs, status and Redis */
	size_t n_clerks;

	/* All of it is there but Redis, to which it connects meanwhile. */
	void (*start)(struct master *m);
	/* Takes nothing new, and lets go of what it has. */
	void (*stop)(struct master *m);
	/* Stopping: nothing is left that the end must wait for. */
	bool (*is_quiet)(const struct master *m);
	/* Frees; the connections to Redis are gone already. */
	void (*end)(struct master *m);

	void (*drain)(struct master *m);
	void (*undrain)(struct master *m);
	/* The settings have changed; children and clerk are not its care. */
	void (*reload)(struct master *m);

	void (*on_redis_up)(struct master *m);
	void (*on_redis_down)(struct master *m);
	void (*on_postgres_up)(struct master *m);
	/* A child of a kind that the role starts can take work; is gone. */
	void (*on_ready)(struct master *m, struct child *child);
	void (*on_child_end)(struct master *m, struct child *child);
	/* is_own: of a child of this worker, not heard from Redis. */
	void (*on_event)(struct master *m, const struct msg_event *event,
	    bool is_own);

	/* By id or address; NULL with the reason for who asked. */
	struct account *(*find_account)(struct master *m, const char *name,
	    struct err *err);
	void (*count)(const struct master *m, struct role_figures *figures);
	/* Its own members of the heartbeat, of status, and of the metrics. */
	void (*describe)(const struct master *m, struct json_t *beat);
	void (*add_status)(const struct master *m, struct json_t *reply);
	void (*add_metrics)(const struct master *m, struct buf *out);
	/* SIGUSR2: a line for each thing into the log. */
	void (*dump)(const struct master *m);
};

extern const struct role_ops role_sync, role_jobs;

#endif
