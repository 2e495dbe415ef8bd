/*
 * pool.h - children of one kind that wait for work and are used again.
 *
 * Runs in: master.  Never blocks.
 *
 * Who needs a child takes an idle one, or says how many are missing; the pool
 * starts those, ends what is idle for long, replaces all of them when settings
 * change, and waits before it starts more of what ends before it has worked.
 */
#ifndef MASTER_POOL_H
#define MASTER_POOL_H

#include "proc/kinds.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct child;
struct conf;
struct master;
struct child_pool;

struct pool_rules {
	enum child_kind kind;
	/* So many idle ones are kept, and no more than so many are started. */
	size_t (*min)(const struct conf *conf);
	size_t (*max)(const struct conf *conf);
	int64_t linger_msecs; /* an idle one above min is kept so long */
	/* Who lived no longer than this ended early, whatever it had done. */
	int64_t early_msecs;
	/* After the nth early end in a row: until the next start. */
	int64_t (*pause)(const struct conf *conf, unsigned n);
};

/* `task` of its kind (may be NULL) must stay. */
struct child_pool *pool_new(struct master *m, const struct pool_rules *rules,
    const void *task);
/* Before the children: they end with their table. */
void pool_free(struct child_pool **pool);

/* Ready for work, the oldest first; NULL: none. */
struct child *pool_idle(const struct child_pool *pool);
struct child *pool_next_idle(const struct child *child);

/* Starts children until so many are on their way, but no more than
 * *starts_left, which it counts down.  When to come again (mono) if something
 * but that forbade it, INT64_MAX: somebody's hello or end will tell. */
int64_t pool_grow(struct child_pool *pool, size_t wanted, unsigned *starts_left,
    int64_t now);
/* Ends who has been idle for too long; when to come again. */
int64_t pool_trim(struct child_pool *pool, int64_t now);

/* It said hello; it has done its work: it waits for more, or ends if settings
 * have changed since it was started. */
void pool_child_ready(struct child *child);
void pool_child_done(struct child *child);
/* Of a child of any kind that is gone, before it forgets what it had in hand;
 * is_blamed: something else than the pool answers for its death. */
void pool_child_ended(struct child *child, bool is_blamed, int64_t now);
/* Settings have changed. */
void pool_reload(struct child_pool *pool);

#endif
