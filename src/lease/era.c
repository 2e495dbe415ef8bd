/*
 * era.c - is this still the Redis that our leases are in?
 *
 * Runs in: master.  Never blocks.
 *
 * A restarted server has another run id than the one in the name it brought
 * back; a wiped one has no name.  Where the run id is kept from us (INFO may
 * be forbidden) only the second is noticed.
 *
 * Who must be heard is known by id, by all who come from before: a worker that
 * is cut off has no heartbeat any more and may hold leases all the same, and
 * one that is new and heard must not stand for it.  Nor does one that has been
 * cut off for longer than a lease lasts: others came since.
 */
#include "lease/era.h"

#include "base/log.h"
#include "base/xmem.h"
#include "redis/redis.h"
#include "redis/scripts.h"

#include <hiredis/hiredis.h>

#include <inttypes.h>
#include <stdlib.h>

#define NAME_SIZE 80

struct era {
	struct era_params params;
	struct log log;
	char name[NAME_SIZE];	/* of now; "": asking */
	char before[NAME_SIZE]; /* the last one we knew */
	char **holders;		/* who may hold leases of before */
	size_t n_holders;
	bool must_confirm;
	unsigned serial; /* tells an answer from one to an earlier question */
	unsigned n_asking;
};

struct question {
	struct era *era;
	unsigned serial;
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
		    "heard, at the latest in %d s", era->n_holders,
		    (int)era->params.conf->lease_ttl);
		era->params.on_new(era->params.arg);
	}
}

static void
era_enter(struct era *era, const char *run_id)
{
	const char *prefix = redis_prefix(era->params.redis);
	const struct conf *conf = era->params.conf;
	char key[ERA_KEY_SIZE], holders[ERA_KEY_SIZE];
	char token[24], ttl[24], soon[24];
	size_t i, n = 7 + era->n_holders;
	const char **args = xcalloc(n, sizeof(*args));
	struct question *question = question_new(era);

	snprintf(holders, sizeof(holders), "%ssync:holders", prefix);
	snprintf(token, sizeof(token), "%08x", arc4random());
	snprintf(ttl, sizeof(ttl), "%" PRId64, conf->lease_ttl * 1000);
	/* All who are alive have sent a heartbeat by then. */
	snprintf(soon, sizeof(soon), "%" PRId64,
	    conf->heartbeat_interval * 1000);
	args[0] = era_key(era->params.redis, key);
	args[1] = holders;
	args[2] = run_id;
	args[3] = token;
	args[4] = era->before;
	args[5] = ttl;
	args[6] = soon;
	for (i = 0; i < era->n_holders; i++)
		args[7 + i] = era->holders[i];
	if (redis_eval(era->params.redis, &script_era_enter, on_entered, question,
		2, args, n) == -1)
		take_question(question);
	free(args);
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
	era_enter(era, run_id);
}

static void
era_forget_holders(struct era *era)
{
	while (era->n_holders > 0)
		free(era->holders[--era->n_holders]);
	free(era->holders);
	era->holders = NULL;
}

static void
era_take_holders(struct era *era, const char *const *holders, size_t n)
{
	era_forget_holders(era);
	era->holders = xcalloc(n + 1, sizeof(*era->holders));
	for (; era->n_holders < n; era->n_holders++)
		era->holders[era->n_holders] = xstrdup(
		    holders[era->n_holders]);
}

void
era_ask(struct era *era, const char *const *holders, size_t n)
{
	struct question *question;
	bool is_known = era->name[0] != '\0' && !era->must_confirm;

	era->serial++;
	if (is_known)
		snprintf(era->before, sizeof(era->before), "%s", era->name);
	/* Who was there when all was well: after a loss, Redis knows less. */
	if (is_known || era->n_holders == 0)
		era_take_holders(era, holders, n);
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
	if (redis_eval(era->params.redis, &script_era_confirm, on_confirmed, era,
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
	era_forget_holders(era);
	free(era);
}
