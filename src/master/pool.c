/*
 * pool.c - children of one kind that wait for work and are used again.
 *
 * Runs in: master.  Never blocks.
 *
 * A child that ends before it was given anything, or at once, is nobody's
 * fault, and the next would fare alike: without a pause between them the
 * master would do nothing but start children.
 */
#include "master/pool.h"

#include "base/clock.h"
#include "base/xmem.h"
#include "master/child_end.h"
#include "master/children.h"
#include "master/state.h"

#include <stdlib.h>

/* The process that makes children, or the table of places, said no. */
#define REFUSED_MSECS 1000

struct child_pool {
	struct master *m;
	const struct pool_rules *rules;
	const void *task;
	TAILQ_HEAD(, child) children;
	size_t n;
	unsigned n_early; /* in a row */
	int64_t no_start_until_mono;
};

struct child_pool *
pool_new(struct master *m, const struct pool_rules *rules, const void *task)
{
	struct child_pool *pool = xcalloc(1, sizeof(*pool));

	pool->m = m;
	pool->rules = rules;
	pool->task = task;
	TAILQ_INIT(&pool->children);
	return pool;
}

void
pool_free(struct child_pool **pool)
{
	free(*pool);
	*pool = NULL;
}

/* --- who is there ------------------------------------------------------- */

static struct child *
pool_idle_from(struct child *child)
{
	while (child != NULL && (child->state != CHILD_READY ||
	    child->is_old))
		child = TAILQ_NEXT(child, pool_entry);
	return child;
}

struct child *
pool_idle(const struct child_pool *pool)
{
	return pool_idle_from(TAILQ_FIRST(&pool->children));
}

struct child *
pool_next_idle(const struct child *child)
{
	return pool_idle_from(TAILQ_NEXT(child, pool_entry));
}

static size_t
pool_count(const struct child_pool *pool, enum child_state state)
{
	const struct child *child;
	size_t n = 0;

	TAILQ_FOREACH(child, &pool->children, pool_entry)
		n += child->state == state;
	return n;
}

/* --- more, less --------------------------------------------------------- */

static int
pool_start_child(struct child_pool *pool, int64_t now)
{
	struct master *m = pool->m;
	struct err err = ERR_INIT;
	struct child *child;

	child = child_spawn(m->children, pool->rules->kind, DEADLINE_NONE,
	    pool->task, &err);
	if (child == NULL) {
		log_error(NULL, "%s", err.text);
		pool->no_start_until_mono = now + REFUSED_MSECS;
		return -1;
	}
	m->counters.child_starts++;
	child->pool = pool;
	TAILQ_INSERT_TAIL(&pool->children, child, pool_entry);
	pool->n++;
	return 0;
}

int64_t
pool_grow(struct child_pool *pool, size_t wanted, unsigned *starts_left,
    int64_t now)
{
	const struct master *m = pool->m;
	size_t starting;

	if (wanted == 0)
		return INT64_MAX;
	starting = pool_count(pool, CHILD_STARTING);
	while (starting < wanted && *starts_left > 0 &&
	    pool->n < pool->rules->max(m->conf) &&
	    children_have_room(m->children)) {
		if (now < pool->no_start_until_mono ||
		    pool_start_child(pool, now) == -1)
			return pool->no_start_until_mono;
		starting++;
		--*starts_left;
	}
	return INT64_MAX;
}

int64_t
pool_trim(struct child_pool *pool, int64_t now)
{
	size_t min = pool->rules->min(pool->m->conf), idle;
	int64_t next = INT64_MAX, until;
	struct child *child, *after;

	if (pool->n <= min)
		return next;
	idle = pool_count(pool, CHILD_READY);
	for (child = pool_idle(pool); child != NULL && idle > min;
	    child = after) {
		after = pool_next_idle(child);
		until = child->since_mono_msecs + pool->rules->linger_msecs;
		if (now >= until) {
			child_stop(child, "not needed");
			idle--;
		} else if (until < next) {
			next = until;
		}
	}
	return next;
}

void
pool_reload(struct child_pool *pool)
{
	struct child *child, *next;

	TAILQ_FOREACH_SAFE(child, &pool->children, pool_entry, next) {
		child->is_old = true;
		if (child->state == CHILD_READY)
			child_stop(child, "settings changed");
	}
}

/* --- the life of one ---------------------------------------------------- */

void
pool_child_ready(struct child *child)
{
	if (child->is_old)
		child_stop(child, "settings changed");
}

void
pool_child_done(struct child *child)
{
	child->has_worked = true;
	child->pool->n_early = 0;
	if (child->is_old)
		child_stop(child, "settings changed");
	else
		child_is_done(child);
}

static bool
pool_ended_early(const struct child *child, int64_t now)
{
	bool has_work = child->account != NULL || child->job != NULL;

	return child_end(child) != END_WISHED &&
	    ((!child->has_worked && !has_work) || now -
		child->born_mono_msecs < child->pool->rules->early_msecs);
}

void
pool_child_ended(struct child *child, bool is_blamed, int64_t now)
{
	struct child_pool *pool = child->pool;

	if (pool == NULL)
		return;
	if (!is_blamed && pool_ended_early(child, now))
		pool->no_start_until_mono = now +
		    pool->rules->pause(pool->m->conf, ++pool->n_early);
	TAILQ_REMOVE(&pool->children, child, pool_entry);
	pool->n--;
	child->pool = NULL;
}
