/*
 * test_base.c - text, uuid, backoff, arena, buf.
 */
#include "base/arena.h"
#include "base/backoff.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/text.h"
#include "base/uuid.h"

#include <check.h>

START_TEST(invalid_bytes_become_replacement_characters)
{
	struct arena *a = arena_new("test");
	size_t len;

	ck_assert_str_eq(text_clean(a, "a\xFF" "b", 3, &len),
	    "a\xEF\xBF\xBD" "b");
	ck_assert_uint_eq(len, 5);
	/* overlong slash, surrogate, beyond U+10FFFF */
	ck_assert(!text_is_utf8("\xC0\xAF", 2));
	ck_assert(!text_is_utf8("\xED\xA0\x80", 3));
	ck_assert(!text_is_utf8("\xF4\x90\x80\x80", 4));
	ck_assert(text_is_utf8("\xF4\x8F\xBF\xBF", 4));
	/* cut in the middle of a character */
	ck_assert_str_eq(text_clean(a, "\xE2\x82", 2, NULL),
	    "\xEF\xBF\xBD\xEF\xBF\xBD");
	arena_free(&a);
	ck_assert_ptr_null(a);
}
END_TEST

START_TEST(nul_is_dropped)
{
	struct arena *a = arena_new("test");
	size_t len;

	ck_assert_str_eq(text_clean(a, "Hello\0World", 11, &len),
	    "HelloWorld");
	ck_assert_uint_eq(len, 10);
	arena_free(&a);
}
END_TEST

START_TEST(a_line_has_no_control_characters_and_is_cut_between_characters)
{
	char out[8];

	text_clean_line(out, sizeof(out), "a\r\nb\x1b[1m", 8);
	ck_assert_str_eq(out, "a  b [1");
	text_clean_line(out, sizeof(out), "123456\xC3\xA9", 8);
	ck_assert_str_eq(out, "123456");
	ck_assert_uint_eq(text_cut("ab\xC3\xA9" "d", 5, 3), 2);
	ck_assert_uint_eq(text_cut("abc", 3, 3), 3);
}
END_TEST

START_TEST(uuid_survives_a_round_trip)
{
	struct uuid a, b;
	char text[UUID_TEXT_SIZE];

	uuid_generate(&a);
	ck_assert_int_eq(uuid_parse(uuid_format(&a, text), &b), 0);
	ck_assert(uuid_is_equal(&a, &b));
	ck_assert_int_eq(text[14], '4');
	ck_assert_int_eq(uuid_parse("nonsense", &b), -1);
	text[20] = 'g';
	ck_assert_int_eq(uuid_parse(text, &b), -1);
}
END_TEST

START_TEST(backoff_doubles_to_a_maximum)
{
	ck_assert_int_eq(backoff_msecs(0, 2000, 600000, 7), 0);
	for (uint32_t r = 0; r < 5000; r += 13) {
		int64_t third = backoff_msecs(3, 2000, 600000, r);
		int64_t late = backoff_msecs(60, 2000, 600000, r);

		ck_assert(third >= 6400 && third <= 9600);
		ck_assert(late >= 480000 && late <= 720000);
	}
}
END_TEST

START_TEST(arena_keeps_small_and_big_pieces_apart)
{
	struct arena *a = arena_new("test");
	char *small = arena_strdup(a, "small");
	char *big = arena_calloc(a, 1, 1000000);

	big[999999] = 'x';
	ck_assert_str_eq(small, "small");
	for (int i = 0; i < 10000; i++)
		ck_assert_str_eq(arena_printf(a, "%d-%s", i, "x") +
		    (i < 10 ? 1 : i < 100 ? 2 : i < 1000 ? 3 : 4), "-x");
	arena_reset(a);
	ck_assert_uint_eq(arena_used(a), 0);
	ck_assert_str_eq(arena_strndup(a, "abcdef", 3), "abc");
	arena_free(&a);
}
END_TEST

START_TEST(buf_is_always_terminated)
{
	struct buf b = BUF_INIT;

	ck_assert_str_eq(buf_str(&b), "");
	buf_addf(&b, "%d %s", 42, "words");
	buf_addc(&b, '!');
	ck_assert_str_eq(buf_str(&b), "42 words!");
	buf_reset(&b);
	buf_add_u32be(&b, 0x01020304);
	ck_assert_mem_eq(b.data, "\1\2\3\4\0", 5);
	buf_release(&b);
}
END_TEST

START_TEST(errors_are_fit_for_people)
{
	struct err err = ERR_INIT;

	ck_assert_int_eq(err_set(&err, ERR_SERVER, "said %s", "NO\r\n\x01"),
	    -1);
	ck_assert_str_eq(err.text, "said NO   ");
	err_prefix(&err, "folder %s", "INBOX");
	ck_assert_str_eq(err.text, "folder INBOX: said NO   ");
	ck_assert_str_eq(err_kind_name(err.kind), "server");
}
END_TEST

START_TEST(wild_times_are_printed)
{
	char out[40];

	ck_assert_str_eq(clock_format_utc(out, sizeof(out), 1772528400),
	    "2026-03-03T09:00:00Z");
	ck_assert_ptr_nonnull(clock_format_utc(out, sizeof(out), INT64_MAX));
	ck_assert_str_eq(clock_format_span(out, sizeof(out), 7300), "2 h");
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("base");
	TCase *tc = tcase_create("base");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tc, invalid_bytes_become_replacement_characters);
	tcase_add_test(tc, nul_is_dropped);
	tcase_add_test(tc,
	    a_line_has_no_control_characters_and_is_cut_between_characters);
	tcase_add_test(tc, uuid_survives_a_round_trip);
	tcase_add_test(tc, backoff_doubles_to_a_maximum);
	tcase_add_test(tc, arena_keeps_small_and_big_pieces_apart);
	tcase_add_test(tc, buf_is_always_terminated);
	tcase_add_test(tc, errors_are_fit_for_people);
	tcase_add_test(tc, wild_times_are_printed);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
