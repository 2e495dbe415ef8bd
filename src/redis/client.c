/*
 * client.c - a blocking Redis client for programs that ask, wait and end.
 *
 * Runs in: mailherdctl.  Blocks, at most TIMEOUT_SECS a call.
 *
 * Replies are copied out and checked here: a key of the wrong type, or
 * nonsense in it, is told as if it were not there and never crashes anybody.
 */
#include "redis/client.h"

#include "base/clock.h"
#include "base/text.h"
#include "base/xmem.h"
#include "redis/events.h"

#include <bsd/stdlib.h>
#include <errno.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdarg.h>

#define TIMEOUT_SECS 5
#define SCAN_COUNT 500
/* lease, its TTL, tier, membership, pin, connections */
#define VIEW_COMMANDS 6

struct lease_client {
	redisContext *redis;
	char *where;  /* for errors */
	char *prefix; /* before every key and channel */
};

static int
client_fail(struct lease_client *c, struct err *err)
{
	return err_set(err, ERR_TEMPORARY, "Redis at %s: %s", c->where,
	    c->redis == NULL ? "out of memory"
	    : c->redis->errstr[0] != '\0' ? c->redis->errstr
					  : "no answer");
}

/* What Redis says, and which setting is meant. */
static int
client_refused(struct lease_client *c, const redisReply *reply, struct err *err)
{
	return err_set(err, ERR_TEMPORARY, "Redis at %s: %s%s", c->where,
	    reply->str, strncmp(reply->str, "NOAUTH", 6) == 0 ||
	    strncmp(reply->str, "WRONGPASS", 9) == 0 ?
	    " (setting \"redis_password\")" : "");
}

/* NULL when the connection failed or Redis refused. */
static redisReply *
client_call(struct lease_client *c, struct err *err, const char *fmt, ...)
{
	redisReply *reply;
	va_list ap;

	va_start(ap, fmt);
	reply = redisvCommand(c->redis, fmt, ap);
	va_end(ap);
	if (reply == NULL) {
		client_fail(c, err);
	} else if (reply->type == REDIS_REPLY_ERROR) {
		client_refused(c, reply, err);
		freeReplyObject(reply);
		reply = NULL;
	}
	return reply;
}

/* The same for commands whose answer does not matter. */
#define CALL_DONE(c, err, ...) call_done(client_call((c), (err), __VA_ARGS__))

static int
call_done(redisReply *reply)
{
	if (reply == NULL)
		return -1;
	freeReplyObject(reply);
	return 0;
}

/* --- session ------------------------------------------------------------ */

static redisContext *
connect_to(const char *where, struct err *err)
{
	const struct timeval limit = { .tv_sec = TIMEOUT_SECS };
	const char *colon, *fault;
	char host[256];
	long long port = 6379;

	if (strncmp(where, "unix:", 5) == 0)
		return redisConnectUnixWithTimeout(where + 5, limit);
	colon = strrchr(where, ':');
	if (colon != NULL) {
		port = strtonum(colon + 1, 1, 65535, &fault);
		if (fault != NULL) {
			err_set(err, ERR_CONFIG,
			    "setting redis: bad port in \"%s\" (use host:port "
			    "or unix:/path)", where);
			return NULL;
		}
	}
	text_clean_line(host, sizeof(host), where,
	    colon != NULL ? (size_t)(colon - where) : strlen(where));
	return redisConnectWithTimeout(host, (int)port, limit);
}

static int
client_greet(struct lease_client *c, const struct conf *conf, struct err *err)
{
	const struct timeval limit = { .tv_sec = TIMEOUT_SECS };

	if (c->redis->err != 0)
		return client_fail(c, err);
	redisSetTimeout(c->redis, limit);
	if (conf->redis_password != NULL && *conf->redis_password != '\0' &&
	    CALL_DONE(c, err, "AUTH %s", conf->redis_password) == -1)
		return -1;
	if (conf->redis_db != 0)
		return CALL_DONE(c, err, "SELECT %lld",
		    (long long)conf->redis_db);
	return 0;
}

int
lease_client_open(struct lease_client **c_r, const struct conf *conf,
    struct err *err)
{
	struct lease_client *c = xcalloc(1, sizeof(*c));

	err->kind = ERR_NONE;
	c->where = xstrdup(conf->redis);
	c->prefix = xstrdup(
	    conf->redis_prefix != NULL ? conf->redis_prefix : "");
	c->redis = connect_to(conf->redis, err);
	if (c->redis == NULL) {
		if (err->kind == ERR_NONE)
			client_fail(c, err);
		lease_client_close(&c);
		return -1;
	}
	if (client_greet(c, conf, err) == -1) {
		lease_client_close(&c);
		return -1;
	}
	*c_r = c;
	return 0;
}

void
lease_client_close(struct lease_client **c)
{
	if (*c == NULL)
		return;
	if ((*c)->redis != NULL)
		redisFree((*c)->redis);
	free((*c)->where);
	free((*c)->prefix);
	free(*c);
	*c = NULL;
}

/* --- accounts ----------------------------------------------------------- */

static void
ask_view(struct lease_client *c, const struct uuid *id)
{
	char text[UUID_TEXT_SIZE];
	const char *p = c->prefix;

	uuid_format(id, text);
	redisAppendCommand(c->redis, "GET %ssync:lease:%s", p, text);
	redisAppendCommand(c->redis, "TTL %ssync:lease:%s", p, text);
	redisAppendCommand(c->redis, "GET %ssync:tier:%s", p, text);
	redisAppendCommand(c->redis, "SISMEMBER %ssync:live %s", p, text);
	redisAppendCommand(c->redis, "GET %ssync:pin:%s", p, text);
	redisAppendCommand(c->redis, "ZCOUNT %ssync:conns:%s %lld +inf", p,
	    text, (long long)clock_wall_secs());
}

static const char *
reply_string(const redisReply *reply, struct arena *arena)
{
	if (reply->type != REDIS_REPLY_STRING)
		return NULL;
	return text_clean(arena, reply->str, (size_t)reply->len, NULL);
}

static int64_t
reply_integer(const redisReply *reply, int64_t otherwise)
{
	return reply->type == REDIS_REPLY_INTEGER ? reply->integer : otherwise;
}

static void
fill_view(struct lease_view *view, unsigned which, const redisReply *reply,
    struct arena *arena)
{
	switch (which) {
	case 0:
		view->owner = reply_string(reply, arena);
		break;
	case 1:
		view->ttl_secs = reply_integer(reply, -1);
		if (view->ttl_secs < 0)
			view->ttl_secs = -1;
		break;
	case 2:
		view->tier = reply_string(reply, arena);
		break;
	case 3:
		view->is_listed = reply_integer(reply, 0) == 1;
		break;
	case 4:
		view->pin = reply_string(reply, arena);
		break;
	default:
		view->conns = reply_integer(reply, 0);
		break;
	}
}

int
lease_client_views(struct lease_client *c, const struct uuid *ids, size_t n,
    struct arena *arena, struct lease_view *views_r, struct err *err)
{
	redisReply *reply;

	for (size_t i = 0; i < n; i++) {
		ask_view(c, &ids[i]);
		views_r[i] = (struct lease_view){ .ttl_secs = -1 };
	}
	for (size_t i = 0; i < n; i++)
		for (unsigned k = 0; k < VIEW_COMMANDS; k++) {
			if (redisGetReply(c->redis, (void **)&reply) !=
			    REDIS_OK)
				return client_fail(c, err);
			fill_view(&views_r[i], k, reply, arena);
			freeReplyObject(reply);
		}
	return 0;
}

/* --- workers ------------------------------------------------------------ */

struct worker_list {
	struct worker_view *items;
	size_t n, cap;
};

static int
by_worker_id(const void *a, const void *b)
{
	const struct worker_view *left = a, *right = b;

	return strcmp(left->worker_id, right->worker_id);
}

/* Adds what one key holds; a key that went away meanwhile is no fault. */
static int
add_worker(struct lease_client *c, const char *key, size_t key_prefix,
    struct arena *arena, struct worker_list *list, struct err *err)
{
	struct worker_view view = { 0 };
	redisReply *reply;

	reply = client_call(c, err, "GET %s", key);
	if (reply == NULL)
		return -1;
	view.heartbeat = reply_string(reply, arena);
	freeReplyObject(reply);
	if (view.heartbeat == NULL)
		return 0;
	reply = client_call(c, err, "TTL %s", key);
	if (reply == NULL)
		return -1;
	view.ttl_secs = reply_integer(reply, -1);
	freeReplyObject(reply);
	view.worker_id = text_clean(arena, key + key_prefix,
	    strlen(key + key_prefix), NULL);
	GROW(list->items, list->n, list->cap);
	list->items[list->n++] = view;
	return 0;
}

static bool
is_scan_reply(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
	    reply->element[0]->type == REDIS_REPLY_STRING &&
	    reply->element[1]->type == REDIS_REPLY_ARRAY;
}

/* One step of SCAN; *cursor_r "0" at the end. */
static int
scan_workers(struct lease_client *c, const char *key_prefix, char cursor[32],
    struct arena *arena, struct worker_list *list, struct err *err)
{
	redisReply *reply, *keys;
	int rc = 0;

	reply = client_call(c, err, "SCAN %s MATCH %s* COUNT %d", cursor,
	    key_prefix, SCAN_COUNT);
	if (reply == NULL)
		return -1;
	if (!is_scan_reply(reply)) {
		freeReplyObject(reply);
		return err_set(err, ERR_TEMPORARY,
		    "Redis at %s: SCAN not understood", c->where);
	}
	snprintf(cursor, 32, "%s", reply->element[0]->str);
	keys = reply->element[1];
	for (size_t i = 0; i < keys->elements && rc == 0; i++)
		if (keys->element[i]->type == REDIS_REPLY_STRING)
			rc = add_worker(c, keys->element[i]->str,
			    strlen(key_prefix), arena, list, err);
	freeReplyObject(reply);
	return rc;
}

/* SCAN may name a key twice. */
static size_t
drop_doubles(struct worker_view *items, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (kept == 0 ||
		    strcmp(items[kept - 1].worker_id, items[i].worker_id) != 0)
			items[kept++] = items[i];
	return kept;
}

int
lease_client_workers(struct lease_client *c, const char *family,
    struct arena *arena, struct worker_view **workers_r, size_t *n_r,
    struct err *err)
{
	struct worker_list list = { 0 };
	char cursor[32] = "0";
	const char *key_prefix;
	int rc;

	key_prefix = arena_printf(arena, "%s%s:workers:", c->prefix, family);
	do {
		rc = scan_workers(c, key_prefix, cursor, arena, &list, err);
	} while (rc == 0 && strcmp(cursor, "0") != 0);
	if (rc == 0) {
		if (list.n > 0)
			qsort(list.items, list.n, sizeof(*list.items),
			    by_worker_id);
		*n_r = drop_doubles(list.items, list.n);
		*workers_r = ARENA_ARRAY(arena, struct worker_view, *n_r + 1);
		if (*n_r > 0)
			memcpy(*workers_r, list.items,
			    *n_r * sizeof(*list.items));
	}
	free(list.items);
	return rc;
}

/* --- changes ------------------------------------------------------------ */

int
lease_client_ring(struct lease_client *c, const char *queue,
    const struct uuid *job_id, struct err *err)
{
	char text[UUID_TEXT_SIZE];

	return CALL_DONE(c, err, "LPUSH %sjobs:%s %s", c->prefix, queue,
	    uuid_format(job_id, text));
}

int
lease_client_set_live(struct lease_client *c, const struct uuid *account,
    bool live, struct err *err)
{
	char text[UUID_TEXT_SIZE];

	uuid_format(account, text);
	if (live)
		return CALL_DONE(c, err, "SADD %ssync:live %s", c->prefix,
		    text);
	return CALL_DONE(c, err, "SREM %ssync:live %s", c->prefix, text);
}

int
lease_client_session(struct lease_client *c, const struct uuid *user,
    int64_t ttl_secs, struct err *err)
{
	char text[UUID_TEXT_SIZE];

	return CALL_DONE(c, err, "SETEX %ssess:active:%s %lld 1", c->prefix,
	    uuid_format(user, text), (long long)ttl_secs);
}

int
lease_client_session_left(struct lease_client *c, const struct uuid *user,
    int64_t *secs_r, struct err *err)
{
	char text[UUID_TEXT_SIZE];
	redisReply *reply;

	reply = client_call(
	    c, err, "TTL %ssess:active:%s", c->prefix, uuid_format(user, text));
	if (reply == NULL)
		return -1;
	*secs_r = reply_integer(reply, -2);
	freeReplyObject(reply);
	if (*secs_r == -1) /* without expiry */
		*secs_r = INT32_MAX;
	else if (*secs_r < 0)
		*secs_r = 0;
	return 0;
}

int
lease_client_set_pin(struct lease_client *c, const struct uuid *account,
    const char *tier, struct err *err)
{
	char text[UUID_TEXT_SIZE];

	uuid_format(account, text);
	if (tier[0] == '\0')
		return CALL_DONE(c, err, "DEL %ssync:pin:%s", c->prefix, text);
	return CALL_DONE(c, err, "SET %ssync:pin:%s %s", c->prefix, text,
	    tier);
}

int
lease_client_publish(struct lease_client *c, const struct msg_event *event,
    struct err *err)
{
	char channel[EVENT_CHANNEL_SIZE];
	char *message = event_format(event, clock_wall_secs());
	int rc;

	event_channel(event->event, channel, sizeof(channel));
	rc = CALL_DONE(c, err, "PUBLISH %s%s %s", c->prefix, channel,
	    message);
	free(message);
	return rc;
}

/* --- events ------------------------------------------------------------- */

int
lease_client_subscribe(struct lease_client *c, const char *const *events,
    size_t n, struct err *err)
{
	redisReply *reply;
	size_t expected = n > 0 ? n : 1;
	int rc = 0;

	if (n == 0)
		redisAppendCommand(c->redis, "PSUBSCRIBE %sevents:*",
		    c->prefix);
	for (size_t i = 0; i < n; i++)
		redisAppendCommand(c->redis, "SUBSCRIBE %sevents:%s",
		    c->prefix, events[i]);
	while (expected-- > 0) {
		if (redisGetReply(c->redis, (void **)&reply) != REDIS_OK)
			return client_fail(c, err);
		if (rc == 0 && reply->type == REDIS_REPLY_ERROR)
			rc = client_refused(c, reply, err);
		freeReplyObject(reply);
	}
	return rc;
}

/* ["message", channel, text] or ["pmessage", pattern, channel, text] */
static const char *
event_text(const redisReply *reply, struct arena *arena)
{
	const redisReply *last;

	if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 3 ||
	    reply->element[0]->type != REDIS_REPLY_STRING ||
	    strstr(reply->element[0]->str, "message") == NULL)
		return NULL;
	last = reply->element[reply->elements - 1];
	return reply_string(last, arena);
}

/* A complete reply that has been read already; NULL: none. */
static int
take_buffered(struct lease_client *c, redisReply **reply_r, struct err *err)
{
	*reply_r = NULL;
	if (redisGetReplyFromReader(c->redis, (void **)reply_r) != REDIS_OK)
		return client_fail(c, err);
	return 0;
}

/* 1: something to read, 0: time is up or a signal came. */
static int
client_wait_readable(
    struct lease_client *c, int64_t timeout_msecs, struct err *err)
{
	struct pollfd pfd = { .fd = c->redis->fd, .events = POLLIN };
	int n;

	n = poll(&pfd, 1, (int)timeout_msecs);
	if (n == -1 && errno != EINTR)
		return err_set(err, ERR_TEMPORARY, "Redis at %s: poll: %s",
		    c->where, strerror(errno));
	return n > 0 ? 1 : 0;
}

int
lease_client_next(struct lease_client *c, int64_t timeout_msecs,
    struct arena *arena, const char **message_r, struct err *err)
{
	int64_t until = clock_mono_msecs() + timeout_msecs, left;
	redisReply *reply;
	int ready;

	*message_r = NULL;
	for (;;) {
		if (take_buffered(c, &reply, err) == -1)
			return -1;
		if (reply != NULL) {
			*message_r = event_text(reply, arena);
			freeReplyObject(reply);
			if (*message_r != NULL)
				return 0;
			continue;
		}
		left = timeout_msecs < 0 ? -1 : until - clock_mono_msecs();
		if (timeout_msecs >= 0 && left < 0)
			left = 0;
		ready = client_wait_readable(c, left, err);
		if (ready <= 0)
			return ready;
		if (redisBufferRead(c->redis) != REDIS_OK)
			return client_fail(c, err);
	}
}
