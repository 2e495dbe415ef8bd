/*
 * client.h - Redis for mailherdctl and other blocking programs.
 *
 * The master speaks to Redis through its event loop (redis.h); this is the
 * plain form for a program that asks, waits and ends.  Every call blocks, but
 * not longer than a few seconds.  Redis is a bell and a notebook here, never
 * the truth: callers that have written to PostgreSQL go on without it.
 * Errors are ERR_TEMPORARY and name the server and the cause.
 */
#ifndef REDIS_CLIENT_H
#define REDIS_CLIENT_H

#include "base/arena.h"
#include "base/err.h"
#include "base/uuid.h"
#include "conf/conf.h"
#include "ipc/messages.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lease_client;

int lease_client_open(struct lease_client **c_r, const struct conf *conf,
    struct err *err);
void lease_client_close(struct lease_client **c);

/* What Redis knows of one account. */
struct lease_view {
	const char *owner; /* worker id; NULL: no lease */
	int64_t ttl_secs;  /* of the lease; -1: none */
	const char *tier;  /* NULL: none yet */
	const char *pin;   /* NULL: not pinned */
	bool is_listed;	   /* member of sync:live */
	int64_t conns;	   /* unexpired entries of sync:conns */
};
/* All accounts in one round trip; strings live in `arena`. */
int lease_client_views(struct lease_client *c, const struct uuid *ids,
    size_t n, struct arena *arena, struct lease_view *views_r,
    struct err *err);

/* One heartbeat key. */
struct worker_view {
	const char *worker_id;
	const char *heartbeat; /* JSON */
	int64_t ttl_secs;
};
/* `family`: "sync" or "jobs"; sorted by worker id. */
int lease_client_workers(struct lease_client *c, const char *family,
    struct arena *arena, struct worker_view **workers_r, size_t *n_r,
    struct err *err);

/* The bell of a queue ("interactive", "bulk"). */
int lease_client_ring(struct lease_client *c, const char *queue,
    const struct uuid *job_id, struct err *err);
int lease_client_set_live(struct lease_client *c, const struct uuid *account,
    bool live, struct err *err);
/* As an application's login would: a session is open for ttl_secs. */
int lease_client_session(struct lease_client *c, const struct uuid *user,
    int64_t ttl_secs, struct err *err);
/* Seconds left of the user's session; 0: none. */
int lease_client_session_left(struct lease_client *c, const struct uuid *user,
    int64_t *secs_r, struct err *err);
/* "": no longer pinned. */
int lease_client_set_pin(struct lease_client *c, const struct uuid *account,
    const char *tier, struct err *err);
/* As the JSON of redis/events.h. */
int lease_client_publish(struct lease_client *c,
    const struct msg_event *event, struct err *err);

/*
 * Events as they pass; n == 0: all.  Afterwards the client can do nothing
 * else.  *message_r (the envelope) lives in `arena`, NULL when nothing came
 * within timeout_msecs (-1: wait for ever) or a signal ended the wait.
 */
int lease_client_subscribe(struct lease_client *c, const char *const *events,
    size_t n, struct err *err);
int lease_client_next(struct lease_client *c, int64_t timeout_msecs,
    struct arena *arena, const char **message_r, struct err *err);

#endif
