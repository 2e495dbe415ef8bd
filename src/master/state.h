/*
 * state.h - what the master knows.
 *
 * One struct per process, made by master.c and handed to every part of
 * src/master; each part keeps its own data behind a pointer here.
 */
#ifndef MASTER_STATE_H
#define MASTER_STATE_H

#include "base/log.h"
#include "ipc/messages.h"
#include "master/master.h"
#include "master/role.h"

#include <stdbool.h>

struct accounts;
struct budgets;
struct child;
struct children;
struct clerk;
struct conns;
struct control;
struct event;
struct event_base;
struct exporter;
struct heartbeat;
struct job_dispatch;
struct json_t;
struct keeper;
struct child_pool;
struct redis;

/* symbol, name in status -j; each is a mailherd_NAME_total in metrics */
#define COUNTERS(X)                                                   \
	X(leases_lost, "leases that ran out or were taken away")      \
	X(fenced, "children killed or refused as no longer owner")    \
	X(polls, "passes that went well")                             \
	X(new_messages, "messages stored by passes")                  \
	X(updated_messages, "messages changed by passes")             \
	X(deleted_messages, "messages found gone by passes")          \
	X(errors, "passes and jobs that failed")                      \
	X(jobs_done, "jobs that went well")                           \
	X(jobs_failed, "jobs that failed")                            \
	X(events, "events published")                                 \
	X(quarantined, "messages and folders put into quarantine")    \
	X(child_starts, "children started")                           \
	X(child_deaths, "children that died of a signal or a bug")    \
	X(idle_silent, "hot children replaced because their server "  \
	    "had news that it did not tell")

struct counters {
#define X(name, help) uint64_t name;
	COUNTERS(X)
#undef X
};

struct master {
	struct master_params params;
	const struct role_ops *role;
	struct conf *conf;
	struct event_base *base;
	char worker_id[MSG_WORKER_SIZE];
	int64_t started_mono;

	struct redis *redis;
	struct conns *conns; /* counted over all workers */
	struct children *children;
	struct budgets *budgets;
	struct clerk *clerk;
	struct control *control;
	struct exporter *exporter;
	struct counters counters;
	bool is_postgres_up;
	struct redis *redis_events;

	/* sync */
	struct keeper *keeper;
	struct accounts *accounts;
	struct child_pool *polls;

	/* jobs */
	struct heartbeat *heartbeat;
	struct job_dispatch *jobs;
	struct clerk *upkeeper; /* merges and purges; may take its time */

	bool is_ready; /* who started us was told so */
	bool is_draining; /* takes nothing new, keeps running */
	bool is_stopping;
	struct event *stop_timer;
	struct event *budgets_timer;
};

#endif
