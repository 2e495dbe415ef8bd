/*
 * test_sync_missing.c - messages that a server no longer has, found by asking
 * for the UIDs of a few numbers.
 */
#include "sync/missing.h"

#include "base/xmem.h"

#include <check.h>

struct side {
	uint32_t *uids;
	uint32_t n;
};

static struct arena *arena;
static unsigned seed;

static void
open_arena(void)
{
	arena = arena_new("test");
}

static void
close_arena(void)
{
	arena_free(&arena);
}

static uint32_t
random_below(uint32_t n)
{
	seed = seed * 1103515245u + 12345u;
	return (seed >> 8) % n;
}

/* Every gap-th message is not there to begin with. */
static struct side
make_ours(uint32_t n, uint32_t gap)
{
	struct side ours = { ARENA_ARRAY(arena, uint32_t, n + 1), 0 };
	uint32_t uid;

	for (uid = 1; ours.n < n; uid++)
		if (gap == 0 || random_below(gap) != 0)
			ours.uids[ours.n++] = uid;
	return ours;
}

static struct uid_range *
ranges_of(const struct side *ours, size_t *n_r)
{
	struct uid_range *r = ARENA_ARRAY(arena, struct uid_range, ours->n + 1);
	size_t n = 0;
	uint32_t i;

	for (i = 0; i < ours->n; i++) {
		if (i > 0 && ours->uids[i] == ours->uids[i - 1] + 1) {
			r[n - 1].last = ours->uids[i];
			continue;
		}
		r[n++] = (struct uid_range){ ours->uids[i], ours->uids[i], i };
	}
	*n_r = n;
	return r;
}

/* Asks until it is known; how many flights, 0 when it was refused. */
static unsigned
play(struct missing *m, const struct side *server, size_t *asked_r)
{
	uint32_t seqs[MISSING_FLIGHT], uids[MISSING_FLIGHT];
	unsigned flights = 1;
	size_t n, i;

	*asked_r = 0;
	while ((n = missing_ask(m, seqs)) > 0) {
		ck_assert_uint_le(n, MISSING_FLIGHT);
		for (i = 0; i < n; i++) {
			ck_assert(i == 0 || seqs[i] > seqs[i - 1]);
			ck_assert(seqs[i] >= 1 && seqs[i] <= server->n);
			uids[i] = server->uids[seqs[i] - 1];
		}
		*asked_r += n;
		flights++;
		if (missing_tell(m, seqs, uids, n) == -1)
			return 0;
	}
	return flights;
}

static unsigned
find(const struct side *ours, const struct side *server, size_t *asked_r)
{
	size_t n_ranges, n, i, at = 0, expected = 0;
	struct uid_range *r = ranges_of(ours, &n_ranges);
	struct missing *m = missing_new(arena, r, n_ranges, server->n);
	unsigned flights = play(m, server, asked_r);
	const uint32_t *gone = missing_uids(m, &n);

	ck_assert_uint_gt(flights, 0);
	for (i = 0; i < ours->n; i++) {
		if (at < server->n && server->uids[at] == ours->uids[i]) {
			at++;
			continue;
		}
		ck_assert_uint_lt(expected, n);
		ck_assert_uint_eq(gone[expected++], ours->uids[i]);
	}
	ck_assert_uint_eq(expected, n);
	return flights;
}

static struct side
without(const struct side *ours, uint32_t n_gone)
{
	struct side server = { ARENA_ARRAY(arena, uint32_t, ours->n + 1), 0 };
	bool *gone = ARENA_ARRAY(arena, bool, ours->n + 1);
	uint32_t i;

	while (n_gone > 0) {
		i = random_below(ours->n);
		n_gone -= !gone[i];
		gone[i] = true;
	}
	for (i = 0; i < ours->n; i++)
		if (!gone[i])
			server.uids[server.n++] = ours->uids[i];
	return server;
}

START_TEST(one_among_twenty_thousand_costs_a_few_questions)
{
	struct side ours = make_ours(20000, 5), server;
	size_t asked, most = 0;
	int i;

	for (i = 0; i < 200; i++) {
		server = without(&ours, 1);
		ck_assert_uint_le(find(&ours, &server, &asked), 5);
		most = asked > most ? asked : most;
	}
	ck_assert_uint_le(most, 64);
}
END_TEST

START_TEST(any_number_is_found_exactly)
{
	struct side ours, server;
	uint32_t n;
	size_t asked;

	seed = (unsigned)_i;
	n = 1 + random_below(_i % 2 == 0 ? 40 : 3000);
	ours = make_ours(n, 2 * random_below(3));
	server = without(&ours, random_below(n + 1));
	find(&ours, &server, &asked);
}
END_TEST

START_TEST(the_first_the_last_and_all)
{
	struct side ours = make_ours(1000, 0), server = ours;
	size_t asked;

	server.n--;
	find(&ours, &server, &asked);
	server.uids++;
	find(&ours, &server, &asked);
	server.n = 0;
	find(&ours, &server, &asked);
	ck_assert_uint_eq(asked, 0);
	server = ours;
	find(&ours, &server, &asked);
	ck_assert_uint_eq(asked, 0);
}
END_TEST

/* The count was wrong, or other messages are there: no answer is better. */
START_TEST(a_server_with_other_messages_is_refused)
{
	struct side ours = make_ours(1000, 0), server = without(&ours, 3);
	size_t n_ranges, asked, n;
	struct uid_range *r = ranges_of(&ours, &n_ranges);
	uint32_t i;

	for (i = 0; i < server.n; i++)
		server.uids[i] += 7000;
	ck_assert_uint_eq(0, play(missing_new(arena, r, n_ranges, server.n),
	    &server, &asked));
	/* Backwards. */
	server = without(&ours, 3);
	for (i = 0; i < server.n / 2; i++) {
		uint32_t uid = server.uids[i];

		server.uids[i] = server.uids[server.n - 1 - i];
		server.uids[server.n - 1 - i] = uid;
	}
	ck_assert_uint_eq(0, play(missing_new(arena, r, n_ranges, server.n),
	    &server, &asked));
	/* Not told. */
	memset(server.uids, 0, server.n * sizeof(*server.uids));
	ck_assert_uint_eq(0, play(missing_new(arena, r, n_ranges, server.n),
	    &server, &asked));
	missing_uids(missing_new(arena, r, n_ranges, 5000), &n);
	ck_assert_uint_eq(n, 0);
}
END_TEST

/* Whatever is answered, it ends, and names at most as many as are missing. */
START_TEST(nonsense_is_harmless)
{
	struct side ours = make_ours(500, 3), server;
	size_t n_ranges, asked, n;
	struct uid_range *r = ranges_of(&ours, &n_ranges);
	struct missing *m;
	uint32_t i;

	seed = (unsigned)_i + 7;
	server = without(&ours, 1 + random_below(400));
	for (i = 0; i < server.n; i++)
		if (random_below(10) == 0)
			server.uids[i] = random_below(2) ?
			    random_below(900) :
			    ours.uids[random_below(ours.n)];
	m = missing_new(arena, r, n_ranges, server.n);
	play(m, &server, &asked);
	missing_uids(m, &n);
	ck_assert_uint_le(n, ours.n - server.n);
}
END_TEST

static Suite *
make_suite(void)
{
	Suite *suite = suite_create("sync missing");
	TCase *t = tcase_create("missing");

	tcase_add_checked_fixture(t, open_arena, close_arena);
	tcase_add_test(t, one_among_twenty_thousand_costs_a_few_questions);
	tcase_add_loop_test(t, any_number_is_found_exactly, 0, 60);
	tcase_add_test(t, the_first_the_last_and_all);
	tcase_add_test(t, a_server_with_other_messages_is_refused);
	tcase_add_loop_test(t, nonsense_is_harmless, 0, 60);
	suite_add_tcase(suite, t);
	return suite;
}

int
main(void)
{
	SRunner *runner = srunner_create(make_suite());
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
