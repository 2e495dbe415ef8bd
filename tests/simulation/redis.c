/*
 * redis.c - redis/redis.h without a network, and what can happen on the way to
 * a Redis and to it.
 *
 * A command takes its time to arrive and its answer to come back, in order
 * on each connection.  When a connection breaks, commands under way are lost
 * or done much later, and the sender does not know which.
 */
#include "world.h"

#include "server.h"

#include "base/backoff.h"
#include "base/clock.h"
#include "base/xmem.h"
#include "lease/keeper.h"
#include "redis/loop.h"
#include "redis/redis.h"

#include <hiredis/hiredis.h>

#include <stdarg.h>

#define RETRY_FIRST_MSECS 200 /* as src/redis/redis.c */
#define RETRY_MAX_MSECS 3000
#define WATCH_MSECS 1000

struct command {
	struct command *next;
	redis_on_reply on_reply;
	void *arg;
	struct process *process; /* the sender */
	const char *source;	 /* of a script; NULL: plain command */
	size_t n_keys, argc;
	struct arena *memory; /* of words and reply */
	redisReply *reply;
	const char **argv;
};

struct list {
	struct command *first, *last;
};

static struct {
	bool is_down, is_frozen, has_snapshot;
	unsigned run; /* a connection to an earlier one is dead */
	struct list ghosts; /* sent, and the sender knows nothing of them */
} server;

static void
command_free(struct command *c)
{
	arena_free(&c->memory);
	free(c);
}

static void
append(struct list *list, struct command *c)
{
	c->next = NULL;
	if (list->first == NULL)
		list->first = c;
	else
		list->last->next = c;
	list->last = c;
}

static struct command *
take(struct list *list)
{
	struct command *c = list->first;

	if (c != NULL)
		list->first = c->next;
	return c;
}

static void
execute(struct command *c)
{
	c->reply = c->source != NULL ? server_eval(c->memory, c->source,
	    c->argv, c->n_keys, c->argc) :
	    server_do(c->memory, c->argv, c->argc);
}

/* --- a connection ----------------------------------------------------------------- */

struct redis {
	struct redis_params params;
	struct process *process;
	struct event *retry, *watch;
	bool is_up, is_connecting;
	uint64_t incarnation;
	unsigned run; /* of the server it was made to */
	unsigned failures;
	size_t unanswered;
	int64_t progress_mono;

	struct list sent, answered;
	int64_t last_arrival, last_answer;
	unsigned held_arrivals, held_answers; /* by a cut or a frozen server */
};

static int64_t
travel(void)
{
	return sim.now + random_between(FOR_WORLD, sim.latency / 2,
	    sim.latency * 2);
}

static void arrive(void *arg, uint64_t incarnation);

static void
answer_comes(void *arg, uint64_t incarnation)
{
	struct redis *redis = arg;
	struct command *c;

	if (redis->incarnation != incarnation)
		return;
	if (redis->process->is_cut) {
		redis->held_answers++;
		return;
	}
	c = take(&redis->answered);
	redis->unanswered--;
	redis->progress_mono = clock_mono_msecs();
	if (c->on_reply != NULL)
		c->on_reply(c->arg, c->reply);
	command_free(c);
}

static void
answer_later(struct redis *redis)
{
	int64_t at = travel();

	if (at < redis->last_answer)
		at = redis->last_answer;
	redis->last_answer = at;
	actor_at(&redis->process->actor, at, URGENT_REDIS, answer_comes, redis,
	    redis->incarnation);
}

static void
arrive(void *arg, uint64_t incarnation)
{
	struct redis *redis = arg;
	struct command *c;

	if (redis->incarnation != incarnation || server.is_down ||
	    redis->run != server.run)
		return;
	if (redis->process->is_cut || server.is_frozen) {
		redis->held_arrivals++;
		return;
	}
	c = take(&redis->sent);
	execute(c);
	append(&redis->answered, c);
	answer_later(redis);
}

static void
go_on(struct redis *redis)
{
	unsigned arrivals = redis->held_arrivals;
	unsigned answers = redis->held_answers;

	redis->held_arrivals = redis->held_answers = 0;
	for (; arrivals > 0; arrivals--)
		world_at(travel(), arrive, redis, redis->incarnation);
	for (; answers > 0; answers--)
		answer_later(redis);
}

static int
transmit(struct redis *redis, redis_on_reply on_reply, void *arg,
    const char *source, const char *const *argv, size_t n_keys, size_t argc)
{
	struct command *c = xcalloc(1, sizeof(*c));
	int64_t at;
	size_t i;

	c->on_reply = on_reply;
	c->arg = arg;
	c->process = redis->process;
	c->source = source;
	c->n_keys = n_keys;
	c->argc = argc;
	c->memory = arena_new("command");
	c->argv = ARENA_ARRAY(c->memory, const char *, argc + 1);
	for (i = 0; i < argc; i++)
		c->argv[i] = arena_strdup(c->memory, argv[i]);
	append(&redis->sent, c);
	at = travel();
	if (at < redis->last_arrival)
		at = redis->last_arrival;
	redis->last_arrival = at;
	if (redis->unanswered++ == 0)
		redis->progress_mono = clock_mono_msecs();
	world_at(at, arrive, redis, redis->incarnation);
	return 0;
}

/* --- broken connections ------------------------------------------------------------ */

/* What the network and kernels still hold is done now. */
static void
ghosts_walk(void *arg, uint64_t tag)
{
	struct list kept = { NULL, NULL };
	struct command *c;

	(void)arg;
	(void)tag;
	while ((c = take(&server.ghosts)) != NULL) {
		if (server.is_frozen || c->process->is_cut) {
			append(&kept, c);
			continue;
		}
		if (!server.is_down)
			execute(c);
		command_free(c);
	}
	server.ghosts = kept;
}

/* All that are under way are told that nobody knows. */
static void
tell_all(struct redis *redis)
{
	/* For a rule that only what comes late can break: often and late. */
	bool is_late = sim.broken == BREAK_RELEASE;
	bool may_arrive = !server.is_down &&
	    (random_percent(FOR_WORLD, 50) || is_late);
	struct list list[2] = { redis->answered, redis->sent };
	struct command *c;
	unsigned i;

	redis->answered = redis->sent = (struct list){ NULL, NULL };
	for (i = 0; i < 2; i++)
		while ((c = take(&list[i])) != NULL) {
			if (c->on_reply != NULL)
				c->on_reply(c->arg, NULL);
			c->on_reply = NULL;
			if (i == 1 && may_arrive)
				append(&server.ghosts, c);
			else
				command_free(c);
		}
	if (may_arrive)
		world_at(is_late ? sim.now + sim.conf->lease_ttl * 1100 :
		    travel(), ghosts_walk, NULL, 0);
}

static void
retry_later(struct redis *redis)
{
	redis->failures++;
	event_in_msecs(redis->retry, backoff_msecs(redis->failures,
	    RETRY_FIRST_MSECS, RETRY_MAX_MSECS, arc4random()));
}

static void
drop(struct redis *redis)
{
	bool was_up = redis->is_up;

	redis->incarnation++;
	redis->is_up = redis->is_connecting = false;
	redis->unanswered = 0;
	redis->held_arrivals = redis->held_answers = 0;
	tell_all(redis);
	event_del(redis->watch);
	retry_later(redis);
	if (was_up && redis->params.on_down != NULL)
		redis->params.on_down(redis->params.arg);
	process_judge_fitness(redis->process);
}

static void
is_reset(void *arg, uint64_t incarnation)
{
	struct redis *redis = arg;

	if (redis->incarnation == incarnation)
		drop(redis);
}

static void
on_watch(evutil_socket_t fd, short what, void *arg)
{
	struct redis *redis = arg;
	int64_t silent = clock_mono_msecs() - redis->progress_mono;

	(void)fd;
	(void)what;
	event_in_msecs(redis->watch, WATCH_MSECS);
	if ((redis->unanswered > 0 || redis->is_connecting) &&
	    silent > redis->params.answer_msecs)
		drop(redis);
}

static void
is_greeted(void *arg, uint64_t incarnation)
{
	struct redis *redis = arg;

	if (redis->incarnation != incarnation || !redis->is_connecting)
		return;
	if (server.is_down) {
		drop(redis);
		return;
	}
	if (redis->process->is_cut || server.is_frozen)
		return; /* the watch ends it */
	redis->is_connecting = false;
	redis->is_up = true;
	redis->run = server.run;
	if (redis->process->first_up == NEVER)
		redis->process->first_up = sim.now;
	redis->failures = 0;
	process_judge_fitness(redis->process);
	if (redis->params.on_up != NULL)
		redis->params.on_up(redis->params.arg);
}

static void
on_retry(evutil_socket_t fd, short what, void *arg)
{
	struct redis *redis = arg;

	(void)fd;
	(void)what;
	redis->is_connecting = true;
	redis->progress_mono = clock_mono_msecs();
	event_in_msecs(redis->watch, WATCH_MSECS);
	actor_at(&redis->process->actor, travel() + 2 * sim.latency,
	    URGENT_REDIS, is_greeted, redis, redis->incarnation);
}

/* --- redis/redis.h: life ------------------------------------------------------------- */

struct redis *
redis_new(const struct redis_params *params)
{
	struct redis *redis = xcalloc(1, sizeof(*redis));

	redis->params = *params;
	redis->process = current;
	redis->retry = event_new(NULL, -1, 0, on_retry, redis);
	redis->watch = event_new(NULL, -1, 0, on_watch, redis);
	event_in_msecs(redis->retry, 0);
	return redis;
}

/* Its memory stays until the process's goes: tasks may still name it. */
void
redis_free(struct redis **redis_p)
{
	struct redis *redis = *redis_p;

	if (redis == NULL)
		return;
	*redis_p = NULL;
	redis->incarnation++;
	redis->is_up = false;
	tell_all(redis);
	event_free(redis->retry);
	event_free(redis->watch);
}

bool
redis_is_up(const struct redis *redis)
{
	return redis != NULL && redis->is_up;
}

const char *
redis_prefix(const struct redis *redis)
{
	(void)redis;
	return "";
}

const char *
redis_describe(const redisReply *reply)
{
	return reply != NULL && reply->str != NULL ? reply->str : "(data)";
}

/* --- redis/redis.h: commands ----------------------------------------------------------- */

int
redis_eval(struct redis *redis, struct redis_script *script,
    redis_on_reply on_reply, void *arg, size_t n_keys, const char *const *args,
    size_t n_args)
{
	if (!redis_is_up(redis))
		return -1;
	return transmit(redis, on_reply, arg, break_script(script->name,
	    script->source), args, n_keys, n_args);
}

int
redis_send_argv(struct redis *redis, redis_on_reply on_reply, void *arg,
    const char *const *argv, size_t argc)
{
	if (!redis_is_up(redis))
		return -1;
	return transmit(redis, on_reply, arg, NULL, argv, 0, argc);
}

int
redis_send(struct redis *redis, redis_on_reply on_reply, void *arg,
    const char *format, ...)
{
	char text[1024], *at = text, *word;
	const char *argv[8];
	size_t argc = 0;
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	while (argc < 8 && (word = strsep(&at, " ")) != NULL)
		argv[argc++] = word;
	return redis_send_argv(redis, on_reply, arg, argv, argc);
}

/* --- what happens to the server ------------------------------------------------------------ */

static void
each_connection(void (*f)(struct redis *redis))
{
	size_t i;

	for (i = 0; i < sim.n_processes; i++)
		if (sim.processes[i]->actor.is_alive &&
		    sim.processes[i]->redis != NULL)
			f(sim.processes[i]->redis);
}

static void
reset_connection(struct redis *redis)
{
	if (redis->is_up && !redis->process->is_cut)
		actor_at(&redis->process->actor, travel(), URGENT_REDIS,
		    is_reset, redis, redis->incarnation);
	process_judge_fitness(redis->process);
}

static void
judge_connection(struct redis *redis)
{
	process_judge_fitness(redis->process);
}

void
server_crash(void)
{
	struct command *c;

	server.is_down = true;
	server.is_frozen = false;
	server.run++;
	while ((c = take(&server.ghosts)) != NULL)
		command_free(c);
	each_connection(reset_connection);
}

void
server_back(void)
{
	server.is_down = false;
	data_new_run();
}

void
server_freeze(bool is_frozen)
{
	server.is_frozen = is_frozen;
	each_connection(judge_connection);
	if (is_frozen)
		return;
	each_connection(go_on);
	ghosts_walk(NULL, 0);
}

bool
server_answers(void)
{
	return !server.is_down && !server.is_frozen;
}

bool
server_is_up(void)
{
	return !server.is_down;
}

void
server_snapshot(void)
{
	data_save();
	server.has_snapshot = true;
}

void
server_load_snapshot(void)
{
	if (server.has_snapshot)
		data_load_saved();
}

void
server_wipe(void)
{
	data_wipe();
}

void
link_cut(struct process *process)
{
	process->is_cut = true;
	process_judge_fitness(process);
}

void
link_heal(struct process *process)
{
	process->is_cut = false;
	if (process->actor.is_alive) {
		/* Closed by the other side meanwhile. */
		if (redis_is_up(process->redis) && (server.is_down ||
			process->redis->run != server.run))
			reset_connection(process->redis);
		else
			go_on(process->redis);
		process_judge_fitness(process);
	}
	ghosts_walk(NULL, 0);
}

/* --- publishing ---------------------------------------------------------------------------- */

/* Those who are cut off miss it. */
static void
each_listener(void (*hears)(struct process *, uint32_t), uint32_t number)
{
	struct process *p;
	size_t i;

	for (i = 0; !server.is_down && i < sim.n_processes; i++) {
		p = sim.processes[i];
		if (p->actor.is_alive && !p->is_cut && redis_is_up(p->redis))
			hears(p, number);
	}
}

/* By a worker: events are made by the plan only. */
void
server_published(const char *channel, const char *message)
{
	(void)message;
	if (strcmp(channel, "sync:released") != 0)
		die_bug("nobody listens to %s", channel);
	each_listener(process_hears_release, 0);
}

void
server_publish_user(uint32_t user)
{
	each_listener(process_hears_user, user);
}

void
server_publish_state(uint32_t account)
{
	each_listener(process_hears_state, account);
}

/* --- what the application writes --------------------------------------------------------------- */

static int64_t
ask(const char *a, const char *b, const char *c, const char *d)
{
	const char *argv[] = { a, b, c, d };
	struct arena *memory;
	size_t argc = d != NULL ? 4 : c != NULL ? 3 : 2;
	int64_t answer;

	if (server.is_down)
		return 0;
	memory = arena_new("application");
	answer = server_do(memory, argv, argc)->integer;
	arena_free(&memory);
	return answer;
}

static const char *
session_key(uint32_t user, char key[64])
{
	struct uuid id = user_uuid(user);
	char text[UUID_TEXT_SIZE];

	snprintf(key, 64, "sess:active:%s", uuid_format(&id, text));
	return key;
}

void
server_session(uint32_t user, int64_t msecs)
{
	char key[64], secs[24];

	snprintf(secs, sizeof(secs), "%lld", (long long)msecs / 1000);
	ask("SETEX", session_key(user, key), secs, "1");
}

int64_t
server_session_left(uint32_t user)
{
	char key[64];

	return ask("PTTL", session_key(user, key), NULL, NULL);
}

void
server_set_live(uint32_t account, bool is_live)
{
	struct uuid id = account_uuid(account);
	char text[UUID_TEXT_SIZE];

	ask(is_live ? "SADD" : "SREM", "sync:live", uuid_format(&id, text),
	    NULL);
}

/* 0: there is no era. */
int64_t
server_closed_until(void)
{
	const char *argv[] = { "HGET", "sync:era", "open_at" };
	struct arena *memory = arena_new("judge");
	redisReply *reply = server_do(memory, argv, 3);
	int64_t until = 0;

	if (reply->type == REDIS_REPLY_STRING)
		until = (int64_t)strtod(reply->str, NULL) -
		    (int64_t)WALL_SECS * 1000;
	arena_free(&memory);
	return until;
}

size_t
server_live_count(void)
{
	return (size_t)ask("SCARD", "sync:live", NULL, NULL);
}

void
server_reset(void)
{
	struct command *c;

	while ((c = take(&server.ghosts)) != NULL)
		command_free(c);
	memset(&server, 0, sizeof(server));
	data_reset();
}
