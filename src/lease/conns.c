/*
 * conns.c - the connections of an account, counted over all workers.
 *
 * Runs in: master.  Never blocks.
 */
#include "lease/conns.h"

#include "base/log.h"
#include "base/xmem.h"
#include "redis/loop.h"
#include "redis/redis.h"
#include "redis/scripts.h"

#include <bsd/sys/queue.h>
#include <hiredis/hiredis.h>

#include <inttypes.h>
#include <stdlib.h>

#define SYNC_CAP 2 /* IDLE and one transient */
#define ALL_CAP 4
#define BATCH 100
#define KEY_SIZE 256
#define MEMBER_SIZE 224

struct conn {
	TAILQ_ENTRY(conn) entry;
	struct uuid account;
	uint64_t tag;
};

struct conns {
	struct conns_params params;
	struct log log;
	struct event *timer;
	TAILQ_HEAD(, conn) list; /* asked for or held */
	size_t n;
};

struct question {
	struct conns *conns;
	uint64_t tag;
};

static void
conn_key(const struct conns *conns, const struct uuid *account,
    char out[KEY_SIZE])
{
	char text[UUID_TEXT_SIZE];

	snprintf(out, KEY_SIZE, "%ssync:conns:%s",
	    redis_prefix(conns->params.redis), uuid_format(account, text));
}

static void
conn_member(const struct conns *conns, uint64_t tag, char out[MEMBER_SIZE])
{
	snprintf(out, MEMBER_SIZE, "%s/%s/%" PRIx64, conns->params.role,
	    conns->params.worker_id, tag);
}

static struct conn *
conns_find(const struct conns *conns, uint64_t tag)
{
	struct conn *conn;

	TAILQ_FOREACH(conn, &conns->list, entry)
		if (conn->tag == tag)
			return conn;
	return NULL;
}

static void
conns_forget(struct conns *conns, struct conn *conn)
{
	TAILQ_REMOVE(&conns->list, conn, entry);
	conns->n--;
	free(conn);
}

/* --- taking ------------------------------------------------------------- */

static void
conns_on_answer(void *arg, const redisReply *reply)
{
	struct question *question = arg;
	struct conns *conns = question->conns;
	uint64_t tag = question->tag;
	struct conn *conn = conns_find(conns, tag);
	bool is_refused = reply != NULL &&
	    reply->type == REDIS_REPLY_INTEGER && reply->integer == 0;

	free(question);
	if (reply != NULL && reply->type == REDIS_REPLY_ERROR)
		log_warn(&conns->log, "connections not counted: %s",
		    reply->str);
	if (conn == NULL)
		return;
	if (is_refused)
		conns_forget(conns, conn);
	conns->params.on_answer(conns->params.arg, tag, !is_refused);
}

void
conns_take(struct conns *conns, const struct uuid *account, size_t cap,
    uint64_t tag)
{
	bool is_sync = strcmp(conns->params.role, "sync") == 0;
	size_t all = cap != 0 && cap < ALL_CAP ? cap : ALL_CAP;
	char key[KEY_SIZE], member[MEMBER_SIZE], mine[MEMBER_SIZE];
	char ttl[24], role[16], caps[2][24];
	const char *args[8] = { key, member, ttl, caps[0], role, caps[1],
		mine, is_sync ? "1" : "0" };
	struct question *question = xcalloc(1, sizeof(*question));
	struct conn *conn = xcalloc(1, sizeof(*conn));

	conn->account = *account;
	conn->tag = tag;
	TAILQ_INSERT_TAIL(&conns->list, conn, entry);
	conns->n++;
	conn_key(conns, account, key);
	conn_member(conns, tag, member);
	snprintf(mine, sizeof(mine), "%s/%s/", conns->params.role,
	    conns->params.worker_id);
	snprintf(ttl, sizeof(ttl), "%" PRId64, conns->params.conf->lease_ttl);
	snprintf(role, sizeof(role), "%s/", conns->params.role);
	snprintf(caps[0], sizeof(caps[0]), "%zu", all);
	snprintf(caps[1], sizeof(caps[1]), "%zu",
	    is_sync && all > SYNC_CAP ? SYNC_CAP : all);
	question->conns = conns;
	question->tag = tag;
	if (redis_eval(conns->params.redis, &script_conns_take, conns_on_answer,
		question, 1, args, 8) == -1)
		conns_on_answer(question, NULL);
}

void
conns_give_back(struct conns *conns, uint64_t tag)
{
	char key[KEY_SIZE], member[MEMBER_SIZE];
	struct conn *conn = conns_find(conns, tag);

	if (conn == NULL)
		return;
	conn_key(conns, &conn->account, key);
	conn_member(conns, tag, member);
	/* Unheard, it expires. */
	redis_send(conns->params.redis, NULL, NULL, "ZREM %s %s", key, member);
	conns_forget(conns, conn);
}

/* --- telling ------------------------------------------------------------ */

void
conns_tell(struct conns *conns)
{
	static char keys[BATCH][KEY_SIZE], members[BATCH][MEMBER_SIZE];
	const char *args[BATCH * 2 + 1];
	char ttl[24];
	struct conn *conn = TAILQ_FIRST(&conns->list);
	size_t i, n;

	snprintf(ttl, sizeof(ttl), "%" PRId64, conns->params.conf->lease_ttl);
	while (conn != NULL) {
		for (n = 0; n < BATCH && conn != NULL;
		    n++, conn = TAILQ_NEXT(conn, entry)) {
			conn_key(conns, &conn->account, keys[n]);
			conn_member(conns, conn->tag, members[n]);
		}
		for (i = 0; i < n; i++) {
			args[i] = keys[i];
			args[n + 1 + i] = members[i];
		}
		args[n] = ttl;
		redis_eval(conns->params.redis, &script_conns_tell, NULL, NULL, n,
		    args, 2 * n + 1);
	}
}

static void
conns_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct conns *conns = arg;

	(void)fd;
	(void)what;
	event_in_msecs(conns->timer, conns->params.conf->lease_renew * 1000);
	conns_tell(conns);
}

/* --- life --------------------------------------------------------------- */

size_t
conns_count(const struct conns *conns)
{
	return conns->n;
}

struct conns *
conns_new(const struct conns_params *params)
{
	struct conns *conns = xcalloc(1, sizeof(*conns));

	conns->params = *params;
	log_init(&conns->log, LOG_LEASE, "%s", "");
	TAILQ_INIT(&conns->list);
	conns->timer = event_new(params->base, -1, 0, conns_on_timer, conns);
	event_in_msecs(conns->timer, params->conf->lease_renew * 1000);
	return conns;
}

void
conns_free(struct conns **conns_p)
{
	struct conns *conns = *conns_p;
	struct conn *conn;

	if (conns == NULL)
		return;
	*conns_p = NULL;
	while ((conn = TAILQ_FIRST(&conns->list)) != NULL)
		conns_forget(conns, conn);
	event_free(conns->timer);
	free(conns);
}
