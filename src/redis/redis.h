/*
 * redis.h - a connection to Redis that comes back by itself.
 *
 * Runs in: master.  Never blocks: names are resolved by libevent, and a server
 * that accepts but does not answer is given up after `answer_msecs`.
 *
 * Redis is the third in the order of truth: it may be wiped or away at any
 * time, so every caller must do well without an answer.
 */
#ifndef REDIS_H
#define REDIS_H

#include "base/err.h"
#include "conf/conf.h"

#include <stdbool.h>
#include <stddef.h>

struct event_base;
struct redis;
struct redisReply; /* of hiredis, which stays inside redis and lease */

struct redis_params {
	struct event_base *base;
	const struct conf *conf;
	const char *name; /* static; for logs */
	int64_t answer_msecs;
	/* After PING was answered; after the connection was lost, when all
	 * commands under way have been told.  May be NULL. */
	void (*on_up)(void *arg);
	void (*on_down)(void *arg);
	void *arg;
};

struct redis *redis_new(const struct redis_params *params);
/* Commands under way are told (reply NULL); no on_down. */
void redis_free(struct redis **redis);
bool redis_is_up(const struct redis *redis);
const char *redis_prefix(const struct redis *redis);

/* reply NULL: the connection was lost, nobody knows what happened. */
typedef void (*redis_on_reply)(void *arg, const struct redisReply *reply);

/*
 * Sends; `format` as of hiredis (%s, %b).  -1: not connected, and on_reply will
 * not be called.  on_reply may be NULL.
 */
int redis_send(struct redis *redis, redis_on_reply on_reply, void *arg,
    const char *format, ...);
int redis_send_argv(struct redis *redis, redis_on_reply on_reply, void *arg,
    const char *const *argv, size_t argc);

struct redis_script {
	const char *name;
	const char *source;
	char sha[41]; /* "" until Redis has told it */
};
/*
 * Runs a script: EVALSHA, and EVAL when Redis does not know it (any more).
 * The first `n_keys` of args are keys; the prefix is the caller's business.
 */
int redis_eval(struct redis *redis, struct redis_script *script,
    redis_on_reply on_reply, void *arg, size_t n_keys,
    const char *const *args, size_t n_args);

/*
 * From now on, and after each reconnect, listens to these channels (prefix is
 * added); the connection is good for nothing else.  `channels` is kept.
 */
void redis_subscribe(struct redis *redis, const char *const *channels,
    size_t n_channels,
    void (*on_message)(void *arg, const char *text, size_t len), void *arg);

/* "OK", "(nothing)" or what it says: for logs. */
const char *redis_describe(const struct redisReply *reply);

#endif
