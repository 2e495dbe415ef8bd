/*
 * test_sync_compare.c - two sorted lists.
 */
#include "sync/compare.h"

#include <check.h>

static struct place
place(uint32_t uid, uint32_t bits, const char *keywords)
{
	struct place p = { .uid = uid, .has_flags = true,
		.flags = { bits, keywords } };

	return p;
}

START_TEST(changed_fresh_and_vanished_are_told_apart)
{
	struct arena *arena = arena_new("test");
	struct place ours[] = { place(1, 0, ""), place(2, FLAG_SEEN, ""),
		place(5, 0, "a b"), place(9, 0, "") };
	struct place theirs[] = { place(2, FLAG_SEEN, ""), place(3, 0, ""),
		place(5, 0, "a"), place(9, FLAG_DELETED, ""),
		place(12, 0, "") };
	struct comparison cmp;

	compare_places(arena, ours, 4, theirs, 5, &cmp);
	ck_assert_uint_eq(cmp.n_vanished, 1);
	ck_assert_uint_eq(cmp.vanished[0], 1);
	ck_assert_uint_eq(cmp.n_fresh, 2);
	ck_assert_uint_eq(cmp.fresh[0].uid, 3);
	ck_assert_uint_eq(cmp.fresh[1].uid, 12);
	ck_assert_uint_eq(cmp.n_changed, 2);
	ck_assert_uint_eq(cmp.changed[0].uid, 5);
	ck_assert_uint_eq(cmp.changed[1].uid, 9);
	arena_free(&arena);
}
END_TEST

START_TEST(absent_flags_are_no_news)
{
	struct arena *arena = arena_new("test");
	struct place ours[] = { place(2, FLAG_SEEN, "kept") };
	struct place theirs[] = { { .uid = 2, .flags = { 0, "" } } };
	struct comparison cmp;

	compare_places(arena, ours, 1, theirs, 1, &cmp);
	ck_assert_uint_eq(cmp.n_changed + cmp.n_fresh + cmp.n_vanished, 0);
	arena_free(&arena);
}
END_TEST

START_TEST(one_side_may_be_empty)
{
	struct arena *arena = arena_new("test");
	struct place some[] = { place(2, 0, ""), place(4, 0, "") };
	struct comparison cmp;

	compare_places(arena, some, 2, NULL, 0, &cmp);
	ck_assert_uint_eq(cmp.n_vanished, 2);
	compare_places(arena, NULL, 0, some, 2, &cmp);
	ck_assert_uint_eq(cmp.n_fresh, 2);
	compare_places(arena, NULL, 0, NULL, 0, &cmp);
	ck_assert_uint_eq(cmp.n_changed + cmp.n_fresh + cmp.n_vanished, 0);
	arena_free(&arena);
}
END_TEST

START_TEST(places_are_sorted_and_the_later_word_counts)
{
	struct place p[] = { place(9, 0, ""), place(3, 0, ""),
		place(9, FLAG_SEEN, ""), place(1, 0, "") };

	p[0].modseq = 10;
	p[2].modseq = 11;
	ck_assert_uint_eq(places_sort(p, 4), 3);
	ck_assert_uint_eq(p[0].uid, 1);
	ck_assert_uint_eq(p[1].uid, 3);
	ck_assert_uint_eq(p[2].uid, 9);
	ck_assert_uint_eq(p[2].flags.bits, FLAG_SEEN);
}
END_TEST

START_TEST(uids_are_sorted_without_doubles)
{
	uint32_t uids[] = { 7, 1, 7, 4294967295u, 3, 1 };

	ck_assert_uint_eq(uids_sort(uids, 6), 4);
	ck_assert_uint_eq(uids[0], 1);
	ck_assert_uint_eq(uids[3], 4294967295u);
	ck_assert(uids_have(uids, 4, 7));
	ck_assert(!uids_have(uids, 4, 5));
	ck_assert(!uids_have(NULL, 0, 5));
	ck_assert_uint_eq(uids_sort(NULL, 0), 0);
}
END_TEST

/* Against a slow and obvious way, on random lists. */
START_TEST(random_lists_agree_with_the_obvious_way)
{
	struct arena *arena = arena_new("test");
	struct place ours[64], theirs[64];
	struct comparison cmp;
	size_t n, m, fresh, changed, vanished;
	uint32_t uid, round;

	srandom(1);
	for (round = 0; round < 2000; round++) {
		arena_reset(arena);
		n = m = fresh = changed = vanished = 0;
		for (uid = 1; uid <= 64; uid++) {
			bool a = random() % 2, b = random() % 2;
			uint32_t x = random() % 2, y = random() % 2;

			if (a)
				ours[n++] = place(uid, x, "");
			if (b)
				theirs[m++] = place(uid, y, "");
			fresh += !a && b;
			vanished += a && !b;
			changed += a && b && x != y;
		}
		compare_places(arena, ours, n, theirs, m, &cmp);
		ck_assert_uint_eq(cmp.n_fresh, fresh);
		ck_assert_uint_eq(cmp.n_vanished, vanished);
		ck_assert_uint_eq(cmp.n_changed, changed);
	}
	arena_free(&arena);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("sync compare");
	TCase *tc = tcase_create("compare");
	SRunner *runner;
	int failed;

	tcase_add_test(tc, changed_fresh_and_vanished_are_told_apart);
	tcase_add_test(tc, absent_flags_are_no_news);
	tcase_add_test(tc, one_side_may_be_empty);
	tcase_add_test(tc, places_are_sorted_and_the_later_word_counts);
	tcase_add_test(tc, uids_are_sorted_without_doubles);
	tcase_add_test(tc, random_lists_agree_with_the_obvious_way);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
