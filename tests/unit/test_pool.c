/*
 * test_pool.c - how children end, and the pool that starts them.
 */
#include "base/clock.h"
#include "base/xmem.h"
#include "master/child_end.h"
#include "master/children.h"
#include "master/pool.h"
#include "master/state.h"

#include <bsd/string.h>
#include <check.h>
#include <signal.h>

#include <stdlib.h>

/* --- how a child ended -------------------------------------------------- */

static struct child
ended(enum child_kind kind, enum child_cause cause, int wait_status)
{
	return (struct child){ .kind = kind, .cause = cause,
		.wait_status = wait_status, .state = CHILD_GONE };
}

static enum end_meaning
meaning(enum child_kind kind, enum child_cause cause, int wait_status)
{
	struct child child = ended(kind, cause, wait_status);

	return child_end_meaning(&child);
}

START_TEST(what_was_wished_is_held_against_nobody)
{
	ck_assert_int_eq(meaning(KIND_POOL, CAUSE_WISH, SIGKILL),
	    MEANS_NOTHING);
	ck_assert_int_eq(meaning(KIND_HOT, CAUSE_WISH, EXIT_BUG << 8),
	    MEANS_NOTHING);
	ck_assert_int_eq(meaning(KIND_CLERK, CAUSE_WISH, 0), MEANS_AGAIN);
}
END_TEST

/* Its channel is seen closed before the process is reaped. */
START_TEST(exit_status_counts_more_than_a_closed_channel)
{
	ck_assert_int_eq(meaning(KIND_POOL, CAUSE_CLOSED, EXIT_FENCED << 8),
	    MEANS_NOT_OURS);
	ck_assert_int_eq(meaning(KIND_HOT, CAUSE_CLOSED, EXIT_DONE << 8),
	    MEANS_HOT_BACKOFF);
	ck_assert_int_eq(meaning(KIND_HOT, CAUSE_CLOSED, SIGKILL),
	    MEANS_HOT_FAILURE);
}
END_TEST

START_TEST(every_death_is_one_and_nothing_else)
{
	static const struct {
		enum child_cause cause;
		int status;
		enum child_end end;
		bool is_death;
	} rows[] = {
		{ CAUSE_ITSELF, SIGSEGV, END_CRASHED, true },
		{ CAUSE_ITSELF, SIGKILL, END_CRASHED, true },
		{ CAUSE_ITSELF, 99 << 8, END_CRASHED, true },
		{ CAUSE_ITSELF, EXIT_STEP_LIMIT << 8, END_STEP_LIMIT, true },
		{ CAUSE_ITSELF, EXIT_AUTH << 8, END_AUTH, false },
		{ CAUSE_HUNG, SIGKILL, END_HUNG, true },
		{ CAUSE_NONSENSE, SIGKILL, END_NONSENSE, true },
		{ CAUSE_DEAF, SIGKILL, END_DEAF, true },
		{ CAUSE_CLOSED, SIGSEGV, END_CRASHED, true },
		{ CAUSE_WISH, SIGSEGV, END_WISHED, false },
		{ CAUSE_NOT_MADE, EXIT_RETRY << 8, END_NOT_MADE, false },
	};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct child child = ended(KIND_JOB, rows[i].cause,
		    rows[i].status);

		ck_assert_int_eq(child_end(&child), rows[i].end);
		ck_assert_int_eq(child_end_is_death(&child),
		    rows[i].is_death);
		ck_assert_int_eq(child_end_meaning(&child), MEANS_JOB_LOST);
	}
}
END_TEST

START_TEST(no_meaning_is_forgotten)
{
	static const bool may_be_nothing[KIND_COUNT] = { [KIND_HOT] = true,
		[KIND_POOL] = true };
	unsigned kind;

	for (kind = 0; kind < KIND_COUNT; kind++) {
		ck_assert(may_be_nothing[kind] || meaning(kind, CAUSE_WISH,
		    0) != MEANS_NOTHING);
		ck_assert_int_ne(meaning(kind, CAUSE_ITSELF, SIGSEGV),
		    MEANS_NOTHING);
		ck_assert_int_ne(meaning(kind, CAUSE_ITSELF, 0),
		    MEANS_NOTHING);
	}
}
END_TEST

/* --- the pool, on children that are not ---------------------------------- */

static struct conf conf = { .pool_min = 1, .pool_max = 4 };
static struct master master = { .conf = &conf };
static struct child *made[64];
static size_t n_made, n_stopped;
static bool is_refused;
static unsigned last_pause;

bool
children_have_room(const struct children *children)
{
	(void)children;
	return true;
}

struct child *
child_spawn(struct children *children, enum child_kind kind,
    int64_t deadline, const void *task, struct err *err)
{
	struct child *child;

	(void)children, (void)deadline, (void)task;
	if (is_refused) {
		err_set(err, ERR_TEMPORARY, "refused");
		return NULL;
	}
	child = xcalloc(1, sizeof(*child));
	child->kind = kind;
	child->state = CHILD_STARTING;
	made[n_made++] = child;
	return child;
}

void
child_stop(struct child *child, const char *why)
{
	(void)why;
	child->state = CHILD_STOPPING;
	child->cause = CAUSE_WISH;
	n_stopped++;
}

void
child_is_done(struct child *child)
{
	child->state = CHILD_READY;
}

static size_t
conf_min(const struct conf *c)
{
	return (size_t)c->pool_min;
}

static size_t
conf_max(const struct conf *c)
{
	return (size_t)c->pool_max;
}

static int64_t
growing_pause(const struct conf *c, unsigned n)
{
	(void)c;
	last_pause = n;
	return n * 1000;
}

static struct child_pool *pool;
static unsigned starts;

static void
setup(void)
{
	static const struct pool_rules rules = { .kind = KIND_POOL,
		.min = conf_min, .max = conf_max, .linger_msecs = 100,
		.pause = growing_pause };

	n_made = n_stopped = 0;
	is_refused = false;
	starts = 100;
	pool = pool_new(&master, &rules, NULL);
}

static void
teardown(void)
{
	while (n_made > 0)
		free(made[--n_made]);
	pool_free(&pool);
}

static void
dies(struct child *child, int64_t now)
{
	child->state = CHILD_GONE;
	child->wait_status = child->cause == CAUSE_WISH ? 0 : SIGSEGV;
	pool_child_ended(child, false, now);
}

START_TEST(pool_grows_to_its_max_and_no_further_a_turn_than_it_may)
{
	starts = 3;
	ck_assert_int_eq(pool_grow(pool, 10, &starts, 0), INT64_MAX);
	ck_assert_uint_eq(n_made, 3);
	ck_assert_uint_eq(starts, 0);
	starts = 100;
	pool_grow(pool, 2, &starts, 0); /* three are coming */
	ck_assert_uint_eq(n_made, 3);
	pool_grow(pool, 10, &starts, 0);
	ck_assert_uint_eq(n_made, 4);
	ck_assert_ptr_null(pool_idle(pool));
	child_is_done(made[1]);
	ck_assert_ptr_eq(pool_idle(pool), made[1]);
	ck_assert_ptr_null(pool_next_idle(made[1]));
}
END_TEST

START_TEST(early_ends_make_the_pause_grow_and_work_ends_it)
{
	pool_grow(pool, 1, &starts, 0);
	dies(made[0], 10);
	ck_assert_int_eq(pool_grow(pool, 1, &starts, 20), 1010);
	ck_assert_uint_eq(n_made, 1);
	pool_grow(pool, 1, &starts, 1010);
	dies(made[1], 1020);
	ck_assert_uint_eq(last_pause, 2);
	ck_assert_int_eq(pool_grow(pool, 1, &starts, 1030), 3020);
	pool_grow(pool, 1, &starts, 3020);
	pool_child_done(made[2]);
	dies(made[2], 3030); /* it has worked: no pause */
	ck_assert_int_eq(pool_grow(pool, 1, &starts, 3030), INT64_MAX);
	ck_assert_uint_eq(n_made, 4);
}
END_TEST

START_TEST(refused_start_is_not_tried_in_a_loop)
{
	is_refused = true;
	ck_assert_int_eq(pool_grow(pool, 5, &starts, 100), 1100);
	is_refused = false;
	ck_assert_int_eq(pool_grow(pool, 5, &starts, 200), 1100);
	ck_assert_uint_eq(n_made, 0);
}
END_TEST

START_TEST(idle_ones_above_min_end_after_a_while)
{
	size_t i;

	pool_grow(pool, 3, &starts, 0);
	for (i = 0; i < 3; i++)
		child_is_done(made[i]);
	made[2]->since_mono_msecs = 50;
	ck_assert_int_eq(pool_trim(pool, 99), 100);
	ck_assert_uint_eq(n_stopped, 0);
	pool_trim(pool, 120);
	ck_assert_uint_eq(n_stopped, 2);
	ck_assert_int_eq(pool_trim(pool, 9999), INT64_MAX);
	ck_assert_uint_eq(n_stopped, 2);
}
END_TEST

START_TEST(new_settings_replace_all_of_them)
{
	pool_grow(pool, 3, &starts, 0);
	child_is_done(made[0]);
	made[1]->state = CHILD_WORKING;
	pool_reload(pool);
	ck_assert_int_eq(made[0]->state, CHILD_STOPPING);
	ck_assert_int_eq(made[1]->state, CHILD_WORKING);
	pool_child_done(made[1]);
	ck_assert_int_eq(made[1]->state, CHILD_STOPPING);
	/* was on its way when they changed */
	child_is_done(made[2]);
	pool_child_ready(made[2]);
	ck_assert_int_eq(made[2]->state, CHILD_STOPPING);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("pool");
	TCase *tc = tcase_create("end");
	SRunner *runner;
	int failed;

	tcase_add_test(tc, what_was_wished_is_held_against_nobody);
	tcase_add_test(tc, exit_status_counts_more_than_a_closed_channel);
	tcase_add_test(tc, every_death_is_one_and_nothing_else);
	tcase_add_test(tc, no_meaning_is_forgotten);
	suite_add_tcase(suite, tc);
	tc = tcase_create("pool");
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc,
	    pool_grows_to_its_max_and_no_further_a_turn_than_it_may);
	tcase_add_test(tc, early_ends_make_the_pause_grow_and_work_ends_it);
	tcase_add_test(tc, refused_start_is_not_tried_in_a_loop);
	tcase_add_test(tc, idle_ones_above_min_end_after_a_while);
	tcase_add_test(tc, new_settings_replace_all_of_them);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
