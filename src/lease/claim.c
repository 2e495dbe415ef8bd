/*
 * claim.c - one question to Redis: which of these are free?
 *
 * Runs in: master.  Never blocks.
 *
 * Two kinds of leases are ours though we do not hold them: one that carries
 * our own worker id (the answer to an earlier claim was lost), and one of a
 * dead master of this very host, boot and process namespace (R-LEASE-10).
 * Both only in the era we know: a lease that came back from an old snapshot
 * says nothing about who owns the account now.
 */
#include "lease/claim.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/xmem.h"
#include "lease/deadline.h"
#include "lease/era.h"
#include "lease/gone.h"
#include "lease/heartbeat.h"
#include "lease/leases.h"
#include "redis/redis.h"
#include "redis/scripts.h"

#include <hiredis/hiredis.h>

#include <inttypes.h>
#include <stdlib.h>


/* The first word of an answer, "" when it is none. */
static const char *
first_word(const redisReply *reply)
{
	if (reply == NULL || reply->type != REDIS_REPLY_ARRAY ||
	    reply->elements == 0 ||
	    reply->element[0]->type != REDIS_REPLY_STRING)
		return "";
	return reply->element[0]->str;
}

/* "host:" of a worker id. */
static size_t
host_len(const char *worker_id)
{
	const char *colon = strchr(worker_id, ':');

	if (colon == NULL)
		die_bug("worker id %s has no host", worker_id);
	return (size_t)(colon - worker_id) + 1;
}

/* "host:pid:random", host as ours; is that process gone? */
static bool
is_dead(const char *owner)
{
	char *end;
	long pid = strtol(strchr(owner, ':') + 1, &end, 10);

	if (*end != ':' || pid <= 0 || strlen(owner) >= WORKER_SIZE)
		return false;
	return process_is_gone(pid);
}

bool
claim_is_dead_neighbour(const char *worker_id, const char *other)
{
	return strcmp(other, worker_id) != 0 &&
	    strncmp(other, worker_id, host_len(worker_id)) == 0 &&
	    is_dead(other);
}

/* --- a page ------------------------------------------------------------- */

struct question {
	struct claim claim;
	void (*on_answer)(void *arg, const struct claim_answer *answer);
	void *arg;
	int64_t deadline_boot_msecs;
};

static size_t
take_positions(const struct claim *claim, const redisReply *list,
    struct uuid *ids)
{
	size_t i, n = 0;

	for (i = 0; i < list->elements && n < claim->n; i++) {
		long long position = list->element[i]->integer;

		if (position >= 1 && position <= (long long)claim->n)
			ids[n++] = claim->ids[position - 1];
	}
	return n;
}

static void
claim_take_near(const struct claim *claim, const redisReply *list,
    struct claim_answer *answer)
{
	size_t i;

	for (i = 0; i + 1 < list->elements; i += 2) {
		long long position = list->element[i]->integer;
		const char *owner = list->element[i + 1]->str;

		if (position < 1 || position > (long long)claim->n ||
		    owner == NULL || answer->n_near == CLAIM_MAX ||
		    !is_dead(owner))
			continue;
		answer->near[answer->n_near] = claim->ids[position - 1];
		snprintf(answer->owners[answer->n_near++], WORKER_SIZE, "%s",
		    owner);
	}
}

static void
read_answer(const struct question *q, const redisReply *reply,
    struct claim_answer *answer)
{
	const char *word = first_word(reply);

	answer->end = CLAIM_FAILED;
	answer->n_won = answer->n_left = answer->n_near = 0;
	answer->deadline_boot_msecs = q->deadline_boot_msecs;
	if (strcmp(word, "era") == 0) {
		answer->end = CLAIM_WRONG_ERA;
	} else if (strcmp(word, "closed") == 0 && reply->elements == 2) {
		answer->end = CLAIM_CLOSED;
		answer->closed_msecs = reply->element[1]->integer;
	} else if (strcmp(word, "done") == 0 && reply->elements == 4) {
		answer->end = CLAIM_DONE;
		answer->n_won = take_positions(&q->claim, reply->element[1],
		    answer->won);
		answer->n_left = take_positions(&q->claim, reply->element[2],
		    answer->left);
		claim_take_near(&q->claim, reply->element[3], answer);
	} else if (reply != NULL) {
		log_warn(NULL, "nothing claimed: %s", redis_describe(reply));
		/* Somebody's nonsense in its key. */
		answer->end = CLAIM_WRONG_ERA;
	}
}

static void
on_reply(void *arg, const redisReply *reply)
{
	static struct claim_answer answer; /* used up before the next */
	struct question *q = arg;

	read_answer(q, reply, &answer);
	q->on_answer(q->arg, &answer);
	free(q);
}

void
claim_send(const struct claim_params *params, const struct claim *claim,
    void (*on_answer)(void *, const struct claim_answer *), void *arg)
{
	static char keys[CLAIM_MAX][LEASE_KEY_SIZE];
	const char *prefix = redis_prefix(params->redis);
	const char *args[CLAIM_MAX + 12], **argv;
	char era[ERA_KEY_SIZE], live[LEASE_KEY_SIZE], orphans[LEASE_KEY_SIZE];
	char ttl[24], host[WORKER_SIZE], heartbeat[LEASE_KEY_SIZE];
	char numbers[3][24];
	struct question *q = xcalloc(1, sizeof(*q));
	size_t i;

	q->claim = *claim;
	q->on_answer = on_answer;
	q->arg = arg;
	snprintf(live, sizeof(live), "%ssync:live", prefix);
	snprintf(orphans, sizeof(orphans), "%s" ORPHANS, prefix);
	snprintf(heartbeat, sizeof(heartbeat), "%ssync:workers:", prefix);
	snprintf(ttl, sizeof(ttl), "%" PRId64, params->conf->lease_ttl);
	snprintf(host, sizeof(host), "%.*s", (int)host_len(params->worker_id),
	    params->worker_id);
	snprintf(numbers[0], sizeof(numbers[0]), "%zu", claim->n_old);
	snprintf(numbers[1], sizeof(numbers[1]), "%zu", claim->room_old);
	snprintf(numbers[2], sizeof(numbers[2]), "%zu", claim->room);
	args[0] = era_key(params->redis, era);
	args[1] = live;
	args[2] = orphans;
	for (i = 0; i < claim->n; i++)
		args[i + 3] = lease_key(params->redis, &claim->ids[i],
		    keys[i]);
	argv = args + claim->n + 3;
	argv[0] = era_name(params->era);
	argv[1] = ttl;
	argv[2] = params->worker_id;
	argv[3] = host;
	for (i = 0; i < 3; i++)
		argv[4 + i] = numbers[i];
	argv[7] = heartbeat;
	argv[8] = claim->is_from_orphans ? "1" : "0";
	q->deadline_boot_msecs = lease_deadline(params->conf,
	    clock_boot_msecs());
	if (redis_eval(params->redis, &script_claim, on_reply, q,
		claim->n + 3, args, claim->n + 12) == -1)
		on_reply(q, NULL);
}

/* --- a dead master of this host ----------------------------------------- */

struct inheritance {
	void (*on_answer)(void *arg, const struct uuid *id, bool is_won,
	    int64_t deadline_boot_msecs);
	void *arg;
	struct uuid id;
	int64_t deadline_boot_msecs;
};

static void
claim_on_inherited(void *arg, const redisReply *reply)
{
	struct inheritance *in = arg;

	in->on_answer(in->arg, &in->id, strcmp(first_word(reply), "done") == 0,
	    in->deadline_boot_msecs);
	free(in);
}

void
claim_inherit(const struct claim_params *params, const struct uuid *id,
    const char *owner, void (*on_answer)(void *, const struct uuid *, bool,
	int64_t), void *arg)
{
	const char *prefix = redis_prefix(params->redis);
	char era[ERA_KEY_SIZE], key[LEASE_KEY_SIZE], ttl[24];
	char boot[HEARTBEAT_KEY_SIZE], workers[LEASE_KEY_SIZE];
	const char *args[9] = { era_key(params->redis, era),
		lease_key(params->redis, id, key),
		heartbeat_boot_key(params->redis, owner, boot), workers,
		era_name(params->era), ttl, owner, params->worker_id,
		heartbeat_boot() };
	struct inheritance *in = xcalloc(1, sizeof(*in));

	snprintf(workers, sizeof(workers), "%ssync:workers", prefix);
	snprintf(ttl, sizeof(ttl), "%" PRId64, params->conf->lease_ttl);
	in->on_answer = on_answer;
	in->arg = arg;
	in->id = *id;
	in->deadline_boot_msecs = lease_deadline(params->conf,
	    clock_boot_msecs());
	if (redis_eval(params->redis, &script_inherit, claim_on_inherited, in,
		4, args, 9) == -1)
		claim_on_inherited(in, NULL);
}
