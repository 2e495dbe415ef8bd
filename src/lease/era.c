/*
 * era.c - is this still the Redis that our leases are in?
 *
 * Runs in: master.  Never blocks.
 *
 * A restarted server has another run id than the one in the name it brought
 * back; a wiped one has no name.  Where the run id is kept from us (INFO may
 * be forbidden) only the second is noticed.
 */
#include "lease/era.h"

#include "base/log.h"
#include "base/xmem.h"
#include "lease/redis.h"

#include <hiredis/hiredis.h>

#include <inttypes.h>
#include <stdlib.h>

#define NAME_SIZE 80

struct era {
	struct era_params params;
	struct log log;
	char name[NAME_SIZE];	/* of now; "": asking */
	char before[NAME_SIZE]; /* the last one we knew */
	size_t workers;		/* when all was well */
	bool must_confirm;
	unsigned serial; /* tells an answer from one to an earlier question */
	unsigned n_asking;
};

struct question {
	struct era *era;
	unsigned serial;
};

/* KEYS: era.  ARGV: run id, random, name we knew, workers we knew, longest
 * lease, time in which all are heard (msecs).  Returns the name. */
static struct redis_script enter_script = {
	.name = "era",
	.source =
	    "local key, prefix = KEYS[1], ARGV[1] .. ':'\n"
	    "local time = redis.call('time')\n"
	    "local now = time[1] * 1000 + math.floor(time[2] / 1000)\n"
	    "local name = redis.pcall('hget', key, 'name')\n"
	    "if type(name) ~= 'string' or\n"
	    "    string.sub(name, 1, #prefix) ~= prefix then\n"
	    "  local wait = (name or ARGV[3] ~= '') and ARGV[5] or ARGV[6]\n"
	    "  name = prefix .. ARGV[2]\n"
	    "  redis.call('del', key)\n"
	    "  redis.call('hset', key, 'name', name)\n"
	    "  redis.call('hset', key, 'open_at', now + wait)\n"
	    "  redis.call('hset', key, 'soon', now + ARGV[6])\n"
	    "  redis.call('hset', key, 'workers', 0)\n"
	    "end\n"
	    "if ARGV[3] == '' or ARGV[3] == name then return name end\n"
	    "local era = redis.call('hmget', key, 'open_at', 'workers')\n"
	    "if tonumber(era[1]) > now then\n"
	    "  redis.call('hset', key, 'open_at', now + ARGV[5])\n"
	    "  redis.call('hset', key, 'workers',\n"
	    "    math.max(tonumber(era[2]), tonumber(ARGV[4])))\n"
	    "end\n"
	    "return name\n",
};

/* KEYS: era.  ARGV: name, worker id. */
static struct redis_script confirm_script = {
	.name = "era heard",
	.source =
	    "local era = redis.call('hmget', KEYS[1], 'name', 'workers',\n"
	    "  'soon')\n"
	    "if era[1] ~= ARGV[1] then return 0 end\n"
	    "redis.call('hset', KEYS[1], 'w:' .. ARGV[2], 1)\n"
	    "local heard = redis.call('hlen', KEYS[1]) - 4\n"
	    "if heard >= tonumber(era[2]) then\n"
	    "  redis.call('hset', KEYS[1], 'open_at', era[3])\n"
	    "end\n"
	    "return heard\n",
};

const char *
era_key(const struct redis *redis, char out[ERA_KEY_SIZE])
{
	snprintf(out, ERA_KEY_SIZE, "%ssync:era", redis_prefix(redis));
	return out;
}

const char *
era_name(const struct era *era)
{
	return era->name;
}

/* The era of a question that is still the last; the question is freed. */
static struct era *
take_question(void *arg)
{
	struct question *question = arg;
	struct era *era = question->era;
	bool is_last = question->serial == era->serial;

	era->n_asking--;
	free(question);
	return is_last ? era : NULL;
}

static struct question *
question_new(struct era *era)
{
	struct question *question = xcalloc(1, sizeof(*question));

	question->era = era;
	question->serial = era->serial;
	era->n_asking++;
	return question;
}

static void
on_entered(void *arg, const redisReply *reply)
{
	struct era *era = take_question(arg);

	if (era == NULL || reply == NULL)
		return; /* asked again when Redis is back */
	if (reply->type != REDIS_REPLY_STRING ||
	    (size_t)reply->len >= sizeof(era->name)) {
		log_warn(&era->log, "no era: %s", redis_describe(reply));
		return;
	}
	snprintf(era->name, sizeof(era->name), "%s", reply->str);
	era->must_confirm = era->before[0] != '\0' &&
	    strcmp(era->before, era->name) != 0;
	if (era->must_confirm) {
		log_warn(&era->log, "Redis has lost its memory or is another "
		    "one; nothing is claimed until all %zu workers were "
		    "heard, at the latest in %d s", era->workers,
		    (int)era->params.conf->lease_ttl);
		era->params.on_new(era->params.arg);
	}
}

static void
enter(struct era *era, const char *run_id)
{
	char key[ERA_KEY_SIZE], token[24], workers[24], ttl[24], soon[24];
	const char *args[7] = { era_key(era->params.redis, key), run_id,
		token, era->before, workers, ttl, soon };
	const struct conf *conf = era->params.conf;
	struct question *question = question_new(era);

	snprintf(token, sizeof(token), "%08x", arc4random());
	snprintf(workers, sizeof(workers), "%zu", era->workers);
	snprintf(ttl, sizeof(ttl), "%" PRId64, conf->lease_ttl * 1000);
	/* All who are alive have sent a heartbeat by then. */
	snprintf(soon, sizeof(soon), "%" PRId64,
	    conf->heartbeat_interval * 1000);
	if (redis_eval(era->params.redis, &enter_script, on_entered, question,
		1, args, 7) == -1)
		take_question(question);
}

static void
on_info(void *arg, const redisReply *reply)
{
	struct era *era = take_question(arg);
	char run_id[48] = "";
	const char *found;

	if (era == NULL || reply == NULL)
		return;
	if (reply->type == REDIS_REPLY_STRING &&
	    (found = strstr(reply->str, "run_id:")) != NULL) {
		found += strlen("run_id:");
		snprintf(run_id, sizeof(run_id), "%.*s",
		    (int)strspn(found, "0123456789abcdefABCDEF"), found);
	}
	enter(era, run_id);
}

void
era_ask(struct era *era, size_t workers)
{
	struct question *question;

	era->serial++;
	if (era->name[0] != '\0' && !era->must_confirm) {
		snprintf(era->before, sizeof(era->before), "%s", era->name);
		era->workers = workers;
	} else if (era->workers < workers) {
		era->workers = workers;
	}
	era->name[0] = '\0';
	question = question_new(era);
	if (redis_send(era->params.redis, on_info, question, "INFO server") ==
	    -1)
		take_question(question);
}

bool
era_is_asking(const struct era *era)
{
	return era->n_asking > 0;
}

static void
on_confirmed(void *arg, const redisReply *reply)
{
	struct era *era = arg;

	if (reply != NULL && reply->type == REDIS_REPLY_ERROR)
		log_warn(&era->log, "era: %s", reply->str);
}

void
era_confirm(struct era *era)
{
	char key[ERA_KEY_SIZE];
	const char *args[3] = { era_key(era->params.redis, key), era->name,
		era->params.worker_id };

	if (!era->must_confirm || era->name[0] == '\0')
		return;
	if (redis_eval(era->params.redis, &confirm_script, on_confirmed, era,
		1, args, 3) == 0)
		era->must_confirm = false;
}

struct era *
era_new(const struct era_params *params)
{
	struct era *era = xcalloc(1, sizeof(*era));

	era->params = *params;
	log_init(&era->log, LOG_LEASE, "%s", "");
	return era;
}

void
era_free(struct era **era_p)
{
	struct era *era = *era_p;

	if (era == NULL)
		return;
	*era_p = NULL;
	free(era);
}
