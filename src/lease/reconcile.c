/*
 * reconcile.c - making sync:live equal to PostgreSQL.
 *
 * Runs in: master.  Never blocks.
 *
 * The set is read before PostgreSQL: an id that became live in between is in
 * the second list only and is added (harmless), never removed.  Both lists may
 * be long: each step of the way takes a bounded part of them in a turn.
 */
#include "lease/reconcile.h"

#include "base/log.h"
#include "base/xmem.h"
#include "lease/idmap.h"
#include "redis/loop.h"
#include "redis/redis.h"

#include <hiredis/hiredis.h>

#include <stdlib.h>

#define PAGE 200
/* Ids compared in a turn of the loop. */
#define SLICE 4000

enum phase { IDLE, READING_REDIS, READING_TABLES, ADDING, REMOVING };

struct reconcile {
	struct redis *redis;
	void (*ask)(void *arg);
	void (*on_done)(void *arg, size_t n_added);
	void *arg;
	struct log log;

	enum phase phase;
	uint64_t round; /* tells an answer from one of an earlier round */
	unsigned n_asked; /* questions to PostgreSQL that are not answered */
	struct idmap in_redis, in_tables, touched;

	/* ADDING, REMOVING */
	struct event *slice;
	size_t at; /* in the list that is walked */
	size_t n_added, n_removed;
};

struct page {
	struct reconcile *reconcile;
	uint64_t round;
};

static void reconcile_scan(struct reconcile *rec, uint64_t cursor);

void
reconcile_forget(struct reconcile *rec)
{
	rec->phase = IDLE;
	event_del(rec->slice);
	idmap_release(&rec->in_redis);
	idmap_release(&rec->in_tables);
	idmap_release(&rec->touched);
}

static void
on_page(void *arg, const redisReply *reply)
{
	struct page *page = arg;
	struct reconcile *rec = page->reconcile;
	bool is_current = rec->round == page->round;
	const redisReply *ids;
	struct uuid id;
	uint64_t cursor;
	size_t i;

	free(page);
	if (!is_current || rec->phase != READING_REDIS)
		return;
	if (reply == NULL || reply->type != REDIS_REPLY_ARRAY ||
	    reply->elements != 2) {
		if (reply != NULL)
			log_warn(&rec->log, "sync:live: %s",
			    redis_describe(reply));
		reconcile_forget(rec);
		return;
	}
	ids = reply->element[1];
	for (i = 0; i < ids->elements; i++)
		if (ids->element[i]->str != NULL &&
		    uuid_parse(ids->element[i]->str, &id) == 0)
			idmap_put(&rec->in_redis, &id, IDMAP_PRESENT);
	cursor = strtoull(reply->element[0]->str, NULL, 10);
	if (cursor != 0) {
		reconcile_scan(rec, cursor);
		return;
	}
	rec->phase = READING_TABLES;
	rec->n_asked++;
	rec->ask(rec->arg);
}

static void
reconcile_scan(struct reconcile *rec, uint64_t cursor)
{
	struct page *page = xcalloc(1, sizeof(*page));

	page->reconcile = rec;
	page->round = rec->round;
	if (redis_send(rec->redis, on_page, page,
		"SSCAN %ssync:live %llu COUNT %d", redis_prefix(rec->redis),
		(unsigned long long)cursor, PAGE) == -1) {
		free(page);
		reconcile_forget(rec);
	}
}

void
reconcile_start(struct reconcile *rec, size_t n_expected)
{
	if (!redis_is_up(rec->redis))
		return;
	reconcile_forget(rec); /* one that hangs somewhere is given up */
	idmap_reserve(&rec->in_redis, n_expected);
	idmap_reserve(&rec->in_tables, n_expected);
	rec->round++;
	rec->phase = READING_REDIS;
	reconcile_scan(rec, 0);
}

void
reconcile_add(struct reconcile *rec, const struct uuid *ids, size_t n)
{
	size_t i;

	if (rec->phase != READING_TABLES || rec->n_asked != 1)
		return;
	for (i = 0; i < n; i++)
		idmap_put(&rec->in_tables, &ids[i], IDMAP_PRESENT);
}

/* Sends SADD or SREM of what is in `a` and not in `b`, from rec->at on, as far
 * as a turn may go; true: that was the end. */
static bool
send_difference(struct reconcile *rec, const char *command,
    const struct idmap *a, const struct idmap *b, size_t *total)
{
	static char texts[PAGE][UUID_TEXT_SIZE];
	const char *argv[PAGE + 2];
	char key[256];
	const struct uuid *id;
	size_t n = 0, seen = 0;
	bool is_end = false;

	snprintf(key, sizeof(key), "%ssync:live", redis_prefix(rec->redis));
	argv[0] = command;
	argv[1] = key;
	while (n < PAGE && seen++ < SLICE && !is_end) {
		is_end = idmap_next(a, &rec->at, &id) == NULL;
		if (is_end || idmap_get(b, id) != NULL ||
		    idmap_get(&rec->touched, id) != NULL)
			continue;
		argv[n + 2] = uuid_format(id, texts[n]);
		n++;
	}
	if (n > 0)
		redis_send_argv(rec->redis, NULL, NULL, argv, n + 2);
	*total += n;
	return is_end;
}

static void
reconcile_finish(struct reconcile *rec)
{
	size_t added = rec->n_added, removed = rec->n_removed;

	if (added + removed > 0)
		log_info(&rec->log, "sync:live reconciled live=%zu added=%zu "
		    "removed=%zu", rec->in_tables.n, added, removed);
	reconcile_forget(rec);
	rec->on_done(rec->arg, added);
}

static void
on_slice(evutil_socket_t fd, short what, void *arg)
{
	struct reconcile *rec = arg;

	(void)fd;
	(void)what;
	if (rec->phase == ADDING &&
	    send_difference(rec, "SADD", &rec->in_tables, &rec->in_redis,
		&rec->n_added)) {
		rec->phase = REMOVING;
		rec->at = 0;
	} else if (rec->phase == REMOVING &&
	    send_difference(rec, "SREM", &rec->in_redis, &rec->in_tables,
		&rec->n_removed)) {
		reconcile_finish(rec);
		return;
	}
	event_in_msecs(rec->slice, 0);
}

void
reconcile_end(struct reconcile *rec, bool is_complete)
{
	if (rec->n_asked > 0 && --rec->n_asked > 0)
		return;
	if (rec->phase != READING_TABLES)
		return;
	if (!is_complete) {
		reconcile_forget(rec);
		return;
	}
	rec->phase = ADDING;
	rec->at = rec->n_added = rec->n_removed = 0;
	event_in_msecs(rec->slice, 0);
}

void
reconcile_set_live(struct reconcile *rec, const struct uuid *id, bool is_live)
{
	char text[UUID_TEXT_SIZE];

	if (rec->phase != IDLE)
		idmap_put(&rec->touched, id, IDMAP_PRESENT);
	redis_send(rec->redis, NULL, NULL, "%s %ssync:live %s",
	    is_live ? "SADD" : "SREM", redis_prefix(rec->redis),
	    uuid_format(id, text));
}

struct reconcile *
reconcile_new(struct event_base *base, struct redis *redis,
    void (*ask)(void *arg), void (*on_done)(void *arg, size_t n_added),
    void *arg)
{
	struct reconcile *rec = xcalloc(1, sizeof(*rec));

	rec->redis = redis;
	rec->ask = ask;
	rec->on_done = on_done;
	rec->arg = arg;
	log_init(&rec->log, LOG_LEASE, "%s", "");
	rec->slice = event_new(base, -1, 0, on_slice, rec);
	return rec;
}

void
reconcile_free(struct reconcile **rec_p)
{
	struct reconcile *rec = *rec_p;

	if (rec == NULL)
		return;
	*rec_p = NULL;
	reconcile_forget(rec);
	event_free(rec->slice);
	free(rec);
}
