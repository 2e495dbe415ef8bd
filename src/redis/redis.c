/*
 * redis.c - a connection to Redis that comes back by itself.
 *
 * Runs in: master.  Never blocks.
 *
 * Life: resolving -> connecting -> greeting (AUTH, SELECT, PING) -> up -> lost
 * -> pause -> resolving.  "Up" means that PING was answered by PONG: a server
 * that is still loading its data, or wants a password, is not up.
 */
#include "redis/redis.h"

#include "base/backoff.h"
#include "base/clock.h"
#include "base/xmem.h"
#include "redis/attach.h"
#include "redis/loop.h"

#include <event2/dns.h>
#include <event2/event.h>
#include <event2/util.h>
#include <hiredis/async.h>
#include <hiredis/hiredis.h>

#include <netdb.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>

/* Much shorter than any lease: being back early is what saves leases. */
#define RETRY_FIRST_MSECS 200
#define RETRY_MAX_MSECS 3000
#define WATCH_SECS 1
/* A silent subscriber asks again so often, to notice a dead peer. */
#define SUBSCRIBE_AGAIN_MSECS 15000

struct redis {
	struct redis_params params;
	struct log log;
	struct event *retry;
	struct event *watch;
	struct evdns_base *dns;
	struct evdns_getaddrinfo_request *resolving;
	redisAsyncContext *ac; /* NULL while there is none */
	bool is_up;
	bool was_told; /* one warning per outage */
	unsigned failures;

	/* the watchdog: answers come in order */
	size_t unanswered;
	int64_t progress_mono_msecs;

	const char *const *channels;
	size_t n_channels;
	void (*on_message)(void *arg, const char *text, size_t len);
	void *message_arg;
};

struct pending {
	struct redis *redis;
	redis_on_reply on_reply;
	void *arg;
	struct redis_script *script; /* NULL: plain command */
	char *eval;		     /* the same as EVAL; by hiredis */
	size_t eval_len;
};

static void start_connecting(struct redis *redis);
static void send_subscribe(struct redis *redis);

static void
redis_retry_later(struct redis *redis)
{
	redis->failures++;
	event_in_msecs(redis->retry,
	    backoff_msecs(redis->failures, RETRY_FIRST_MSECS, RETRY_MAX_MSECS,
		arc4random()));
}

/* The connection is no more, whoever closed it. */
static void
went_down(struct redis *redis, const char *why)
{
	bool was_up = redis->is_up;

	redis->ac = NULL;
	redis->is_up = false;
	redis->unanswered = 0;
	if (!redis->was_told)
		log_warn(&redis->log, "Redis at %s is away: %s%s",
		    redis->params.conf->redis, why,
		    strncmp(why, "NOAUTH", 6) == 0 ||
		    strncmp(why, "WRONGPASS", 9) == 0 ?
		    " (setting redis_password)" : "");
	redis->was_told = true;
	event_del(redis->watch);
	redis_retry_later(redis);
	if (was_up && redis->params.on_down != NULL)
		redis->params.on_down(redis->params.arg);
}

/*
 * We close it, by a reset: what was sent and not yet taken by Redis goes with
 * it.  An orderly end would have the kernel go on delivering for minutes, and
 * a release that arrives then would undo a later claim of the same worker.
 */
static void
redis_drop(struct redis *redis, const char *why)
{
	static const struct linger reset = { .l_onoff = 1, .l_linger = 0 };
	redisAsyncContext *ac = redis->ac;

	if (ac == NULL)
		return;
	setsockopt(ac->c.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	ac->data = NULL; /* its callbacks do not speak of us any more */
	/* Pending commands are told while we already count as down. */
	redis->ac = NULL;
	redisAsyncFree(ac);
	went_down(redis, why);
}

static void
on_disconnect(const redisAsyncContext *ac, int status)
{
	struct redis *redis = ac->data;

	if (redis != NULL)
		went_down(redis, status == REDIS_OK ? "closed" : ac->errstr);
}

/* --- commands ----------------------------------------------------------- */

static void
pending_free(struct pending *p)
{
	if (p->eval != NULL)
		redisFreeCommand(p->eval);
	free(p);
}

static bool
is_usable(const struct redis *redis)
{
	return redis->ac != NULL &&
	    (redis->ac->c.flags & (REDIS_DISCONNECTING | REDIS_FREEING)) == 0;
}

static int send_text(struct redis *redis, struct pending *p, const char *text,
    size_t len);

/* A master that was demoted: the name may lead to the new one by now. */
static bool
is_demoted(const redisReply *reply)
{
	return reply != NULL && reply->type == REDIS_REPLY_ERROR &&
	    strstr(reply->str, "READONLY") != NULL;
}

static void
redis_on_answer(redisAsyncContext *ac, void *r, void *arg)
{
	struct pending *p = arg;
	redisReply *reply = r;
	struct redis *redis = p->redis;
	char *eval = p->eval;

	if (ac->data != NULL && redis->unanswered > 0)
		redis->unanswered--;
	redis->progress_mono_msecs = clock_mono_msecs();
	if (reply != NULL && reply->type == REDIS_REPLY_ERROR &&
	    eval != NULL && strncmp(reply->str, "NOSCRIPT", 8) == 0) {
		p->eval = NULL;
		if (send_text(redis, p, eval, p->eval_len) == 0) {
			redisFreeCommand(eval);
			return;
		}
		redisFreeCommand(eval);
		reply = NULL;
	}
	if (p->on_reply != NULL)
		p->on_reply(p->arg, reply);
	else if (reply != NULL && reply->type == REDIS_REPLY_ERROR)
		log_warn(&redis->log, "Redis refuses: %s", reply->str);
	pending_free(p);
	if (ac->data != NULL && is_demoted(reply))
		redis_drop(redis, reply->str);
}

static int
send_text(struct redis *redis, struct pending *p, const char *text, size_t len)
{
	if (!is_usable(redis) || redisAsyncFormattedCommand(redis->ac,
				     redis_on_answer, p, text, len) != REDIS_OK)
		return -1;
	if (redis->unanswered++ == 0)
		redis->progress_mono_msecs = clock_mono_msecs();
	return 0;
}

/* Takes the formatted command over. */
static int
send_formatted(struct redis *redis, redis_on_reply on_reply, void *arg,
    char *text, int len)
{
	struct pending *p;
	int result;

	if (len < 0)
		die_bug("malformed Redis command");
	p = xcalloc(1, sizeof(*p));
	p->redis = redis;
	p->on_reply = on_reply;
	p->arg = arg;
	result = send_text(redis, p, text, (size_t)len);
	if (result == -1)
		pending_free(p);
	redisFreeCommand(text);
	return result;
}

int
redis_send(struct redis *redis, redis_on_reply on_reply, void *arg,
    const char *format, ...)
{
	char *text;
	va_list ap;
	int len;

	if (!redis->is_up)
		return -1;
	va_start(ap, format);
	len = redisvFormatCommand(&text, format, ap);
	va_end(ap);
	return send_formatted(redis, on_reply, arg, text, len);
}

int
redis_send_argv(struct redis *redis, redis_on_reply on_reply, void *arg,
    const char *const *argv, size_t argc)
{
	char *text;
	int len;

	if (!redis->is_up)
		return -1;
	len = redisFormatCommandArgv(&text, (int)argc, (const char **)argv,
	    NULL);
	return send_formatted(redis, on_reply, arg, text, len);
}

/* --- scripts ------------------------------------------------------------ */

static void
on_loaded(void *arg, const redisReply *reply)
{
	struct redis_script *script = arg;

	if (reply != NULL && reply->type == REDIS_REPLY_STRING &&
	    reply->len == sizeof(script->sha) - 1)
		memcpy(script->sha, reply->str, sizeof(script->sha));
	else if (reply != NULL && reply->type == REDIS_REPLY_ERROR)
		log_error(NULL, "script %s: %s", script->name, reply->str);
}

int
redis_eval(struct redis *redis, struct redis_script *script,
    redis_on_reply on_reply, void *arg, size_t n_keys,
    const char *const *args, size_t n_args)
{
	const char **argv;
	struct pending *p;
	char count[24], *text = NULL;
	int len, result;

	if (!redis->is_up)
		return -1;
	if (script->sha[0] == '\0')
		redis_send(redis, on_loaded, script, "SCRIPT LOAD %s",
		    script->source);
	snprintf(count, sizeof(count), "%zu", n_keys);
	argv = xcalloc(n_args + 3, sizeof(*argv));
	argv[0] = "EVAL";
	argv[1] = script->source;
	argv[2] = count;
	memcpy(argv + 3, args, n_args * sizeof(*argv));
	p = xcalloc(1, sizeof(*p));
	p->redis = redis;
	p->on_reply = on_reply;
	p->arg = arg;
	p->script = script;
	len = redisFormatCommandArgv(&p->eval, (int)n_args + 3, argv, NULL);
	if (len < 0)
		die_bug("malformed Redis script call");
	p->eval_len = (size_t)len;
	argv[0] = "EVALSHA";
	argv[1] = script->sha;
	if (script->sha[0] != '\0')
		len = redisFormatCommandArgv(&text, (int)n_args + 3, argv,
		    NULL);
	result = send_text(redis, p, text ? text : p->eval, (size_t)len);
	if (text != NULL)
		redisFreeCommand(text);
	if (result == -1)
		pending_free(p);
	free(argv);
	return result;
}

/* --- listening ---------------------------------------------------------- */

static void
on_pushed(redisAsyncContext *ac, void *r, void *arg)
{
	struct redis *redis = arg;
	const redisReply *reply = r;

	if (ac->data == NULL || reply == NULL)
		return;
	redis->progress_mono_msecs = clock_mono_msecs();
	redis->unanswered = 0;
	if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 &&
	    reply->element[0]->type == REDIS_REPLY_STRING &&
	    strcmp(reply->element[0]->str, "message") == 0 &&
	    reply->element[2]->type == REDIS_REPLY_STRING)
		redis->on_message(redis->message_arg, reply->element[2]->str,
		    reply->element[2]->len);
}

static void
send_subscribe(struct redis *redis)
{
	char channel[256];
	size_t i;

	for (i = 0; i < redis->n_channels && is_usable(redis); i++) {
		snprintf(channel, sizeof(channel), "%s%s",
		    redis_prefix(redis), redis->channels[i]);
		redisAsyncCommand(redis->ac, on_pushed, redis, "SUBSCRIBE %s",
		    channel);
	}
	redis->progress_mono_msecs = clock_mono_msecs();
	redis->unanswered = 1;
}

void
redis_subscribe(struct redis *redis, const char *const *channels,
    size_t n_channels, void (*on_message)(void *, const char *, size_t),
    void *arg)
{
	redis->channels = channels;
	redis->n_channels = n_channels;
	redis->on_message = on_message;
	redis->message_arg = arg;
	if (redis->is_up)
		send_subscribe(redis);
}

/* --- connecting --------------------------------------------------------- */

static void
on_pong(void *arg, const redisReply *reply)
{
	struct redis *redis = arg;

	if (reply == NULL)
		return;
	if (reply->type == REDIS_REPLY_ERROR) { /* LOADING, NOAUTH */
		redis_drop(redis, reply->str);
		return;
	}
	if (redis->was_told)
		log_info(&redis->log, "Redis is back");
	redis->was_told = false;
	redis->failures = 0;
	redis->is_up = true;
	if (redis->n_channels > 0)
		send_subscribe(redis);
	if (redis->params.on_up != NULL)
		redis->params.on_up(redis->params.arg);
}

static void
on_greeted(void *arg, const redisReply *reply)
{
	struct redis *redis = arg;

	if (reply != NULL && reply->type == REDIS_REPLY_ERROR)
		redis_drop(redis, reply->str);
}

static void
redis_greet(struct redis *redis)
{
	const struct conf *conf = redis->params.conf;
	char *text;
	int len;

	if (conf->redis_password != NULL && conf->redis_password[0] != '\0') {
		len = redisFormatCommand(&text, "AUTH %s",
		    conf->redis_password);
		send_formatted(redis, on_greeted, redis, text, len);
	}
	if (conf->redis_db != 0) {
		len = redisFormatCommand(&text, "SELECT %d",
		    (int)conf->redis_db);
		send_formatted(redis, on_greeted, redis, text, len);
	}
	len = redisFormatCommand(&text, "PING");
	send_formatted(redis, on_pong, redis, text, len);
}

static void
on_connect(const redisAsyncContext *ac, int status)
{
	struct redis *redis = ac->data;

	if (redis == NULL)
		return;
	if (status != REDIS_OK) {
		redis->ac->data = NULL; /* hiredis frees it after this */
		went_down(redis, ac->errstr);
		return;
	}
	/* Not for a unix socket: it fails and hiredis gives the context up. */
	if (redis->ac->c.connection_type == REDIS_CONN_TCP)
		redisEnableKeepAlive(&redis->ac->c);
	redis_greet(redis);
}

static void
on_watch(evutil_socket_t fd, short what, void *arg)
{
	struct redis *redis = arg;
	int64_t silent = clock_mono_msecs() - redis->progress_mono_msecs;

	(void)fd;
	(void)what;
	if (redis->ac == NULL)
		return;
	if ((redis->unanswered > 0 || !redis->is_up) &&
	    silent > redis->params.answer_msecs)
		redis_drop(redis, "no answer");
	else if (redis->is_up && redis->n_channels > 0 &&
	    silent > SUBSCRIBE_AGAIN_MSECS)
		send_subscribe(redis);
}

static void
use_context(struct redis *redis, redisAsyncContext *ac)
{
	struct timeval tv = { WATCH_SECS, 0 };

	if (ac == NULL || ac->err != 0) {
		went_down(redis, ac != NULL ? ac->errstr : "out of memory");
		if (ac != NULL)
			redisAsyncFree(ac);
		return;
	}
	redis->ac = ac;
	ac->data = redis;
	redis->progress_mono_msecs = clock_mono_msecs();
	attach_to_loop(ac, redis->params.base);
	redisAsyncSetConnectCallback(ac, on_connect);
	redisAsyncSetDisconnectCallback(ac, on_disconnect);
	event_add(redis->watch, &tv);
}

static void
on_resolved(int result, struct evutil_addrinfo *found, void *arg)
{
	struct redis *redis = arg;
	char host[NI_MAXHOST], port[NI_MAXSERV];

	if (result == EVUTIL_EAI_CANCEL)
		return; /* redis may be gone already */
	redis->resolving = NULL;
	if (result != 0 || found == NULL ||
	    getnameinfo(found->ai_addr, found->ai_addrlen, host, sizeof(host),
		port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		went_down(redis, result != 0 ? evutil_gai_strerror(result) :
		    "name has no address");
	else /* numeric: hiredis does not wait for a name server */
		use_context(redis, redisAsyncConnect(host,
		    (int)strtol(port, NULL, 10)));
	if (found != NULL)
		evutil_freeaddrinfo(found);
}

/* "host:port", "[v6]:port"; the port is 6379 when there is none. */
static void
redis_resolve(struct redis *redis, const char *spec)
{
	struct evutil_addrinfo hints = { .ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM };
	struct evdns_getaddrinfo_request *request;
	const char *colon = strrchr(spec, ':');
	char host[NI_MAXHOST];
	size_t len;

	if (colon == NULL || strchr(colon, ']') != NULL)
		colon = spec + strlen(spec);
	len = (size_t)(colon - spec);
	if (spec[0] == '[' && len >= 2 && colon[-1] == ']') {
		spec++;
		len -= 2;
	}
	snprintf(host, sizeof(host), "%.*s", (int)len, spec);
	if (redis->dns == NULL)
		redis->dns = evdns_base_new(redis->params.base,
		    EVDNS_BASE_INITIALIZE_NAMESERVERS |
		    EVDNS_BASE_DISABLE_WHEN_INACTIVE);
	if (redis->dns == NULL) { /* no resolv.conf: addresses still work */
		redis->dns = evdns_base_new(redis->params.base,
		    EVDNS_BASE_DISABLE_WHEN_INACTIVE);
		if (redis->dns == NULL) {
			went_down(redis, "no resolver");
			return;
		}
	}
	request = evdns_getaddrinfo(redis->dns, host,
	    *colon == ':' ? colon + 1 : "6379", &hints, on_resolved, redis);
	/* A numeric address is answered at once, with nothing to cancel. */
	if (request != NULL)
		redis->resolving = request;
}

static void
start_connecting(struct redis *redis)
{
	const char *spec = redis->params.conf->redis;

	if (strncmp(spec, "unix:", 5) == 0)
		use_context(redis, redisAsyncConnectUnix(spec + 5));
	else
		redis_resolve(redis, spec);
}

static void
on_retry(evutil_socket_t fd, short what, void *arg)
{
	struct redis *redis = arg;

	(void)fd;
	(void)what;
	if (redis->ac == NULL && redis->resolving == NULL)
		start_connecting(redis);
}

struct redis *
redis_new(const struct redis_params *params)
{
	struct redis *redis = xcalloc(1, sizeof(*redis));
	struct timeval now = { 0, 0 };

	redis->params = *params;
	log_init(&redis->log, LOG_LEASE, "redis=%s", params->name);
	redis->retry = event_new(params->base, -1, 0, on_retry, redis);
	redis->watch = event_new(params->base, -1, EV_PERSIST, on_watch, redis);
	event_add(redis->retry, &now);
	return redis;
}

void
redis_free(struct redis **redis_p)
{
	struct redis *redis = *redis_p;
	redisAsyncContext *ac;

	if (redis == NULL)
		return;
	*redis_p = NULL;
	ac = redis->ac;
	redis->ac = NULL;
	redis->is_up = false;
	if (ac != NULL) {
		ac->data = NULL;
		redisAsyncFree(ac);
	}
	if (redis->resolving != NULL)
		evdns_getaddrinfo_cancel(redis->resolving);
	if (redis->dns != NULL)
		evdns_base_free(redis->dns, 0);
	event_free(redis->retry);
	event_free(redis->watch);
	free(redis);
}

bool
redis_is_up(const struct redis *redis)
{
	return redis != NULL && redis->is_up && is_usable(redis);
}

const char *
redis_prefix(const struct redis *redis)
{
	const char *prefix = redis->params.conf->redis_prefix;

	return prefix != NULL ? prefix : "";
}

const char *
redis_describe(const redisReply *reply)
{
	if (reply == NULL)
		return "no answer";
	switch (reply->type) {
	case REDIS_REPLY_ERROR:
	case REDIS_REPLY_STATUS:
	case REDIS_REPLY_STRING:
		return reply->str;
	case REDIS_REPLY_NIL:
		return "(nothing)";
	default:
		return "(data)";
	}
}
