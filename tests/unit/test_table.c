/*
 * test_table.c - aligned tables, JSON lines, and text that must not reach a
 * terminal as it is.
 */
#include "ctl/table.h"

#include "base/clock.h"

#include <check.h>

static struct buf out;

static void
setup(void)
{
	display_init();
	display_force_colours(false);
	out = (struct buf)BUF_INIT;
}

static void
teardown(void)
{
	buf_release(&out);
}

static const struct column two[] = {
	{ "name", NULL, COLUMN_TEXT, COLUMN_FLEX, 6 },
	{ "size", NULL, COLUMN_NUMBER },
};

static const char *
render(const struct column *columns, size_t n, const char *const *cells,
    size_t n_rows, size_t width)
{
	struct table *t = table_new(columns, n, false);

	for (size_t r = 0; r < n_rows; r++)
		table_add(t, cells + r * n);
	buf_reset(&out);
	table_render(t, &out, width);
	table_free(&t);
	return buf_str(&out);
}

START_TEST(numbers_are_right_aligned)
{
	const char *cells[] = { "a", "5", "longer", "12345" };

	ck_assert_str_eq(render(two, 2, cells, 2, 0),
	    "NAME     SIZE\n"
	    "a           5\n"
	    "longer  12345\n");
}
END_TEST

START_TEST(null_is_a_dash)
{
	const char *cells[] = { NULL, NULL };

	ck_assert_str_eq(render(two, 2, cells, 1, 0),
	    "NAME  SIZE\n"
	    "-        -\n");
}
END_TEST

START_TEST(wide_and_combining_characters_are_measured)
{
	/* "日本" takes 4 columns, "e" + combining acute takes 1. */
	const char *cells[] = { "日本", "1", "e\xcc\x81", "22",
		"Grüße", "3" };

	ck_assert_str_eq(render(two, 2, cells, 3, 0),
	    "NAME   SIZE\n"
	    "日本      1\n"
	    "e\xcc\x81        22\n"
	    "Grüße     3\n");
}
END_TEST

START_TEST(flexible_column_is_cut_to_the_terminal)
{
	const char *cells[] = { "a very long name indeed", "1" };

	ck_assert_str_eq(render(two, 2, cells, 1, 16),
	    "NAME        SIZE\n"
	    "a very lo…     1\n");
}
END_TEST

START_TEST(a_wide_character_is_never_cut_in_half)
{
	buf_reset(&out);
	ck_assert_uint_eq(display_cut(&out, "日本語", 4), 3);
	ck_assert_str_eq(buf_str(&out), "日…");
	buf_reset(&out);
	ck_assert_uint_eq(display_cut(&out, "日本語", 6), 6);
	ck_assert_str_eq(buf_str(&out), "日本語");
}
END_TEST

START_TEST(droppable_column_goes_before_flexible_ones_fall_below_the_floor)
{
	static const struct column columns[] = {
		{ "subject", NULL, COLUMN_TEXT, COLUMN_FLEX, 10 },
		{ "uid", NULL, COLUMN_NUMBER, COLUMN_DROP },
		{ "size", NULL, COLUMN_NUMBER, COLUMN_DROP },
	};
	const char *cells[] = { "a subject of some length", "123456",
		"1234567" };

	ck_assert_str_eq(render(columns, 3, cells, 1, 20),
	    "SUBJECT          UID\n"
	    "a subject o…  123456\n");
	ck_assert_str_eq(render(columns, 3, cells, 1, 16),
	    "SUBJECT\n"
	    "a subject of so…\n");
	/* Without a terminal everything is printed in full. */
	ck_assert_str_eq(render(columns, 3, cells, 1, 0),
	    "SUBJECT                      UID     SIZE\n"
	    "a subject of some length  123456  1234567\n");
}
END_TEST

START_TEST(no_line_is_ever_wider_than_the_terminal)
{
	const char *cells[] = { "日本語の長い件名がここにあります", "1",
		"x", "123456789" };

	for (size_t width = 20; width < 60; width++) {
		char *line, *rest;

		render(two, 2, cells, 2, width);
		rest = out.data;
		while ((line = strsep(&rest, "\n")) != NULL)
			ck_assert_uint_le(display_width(line), width);
	}
}
END_TEST

START_TEST(foreign_text_cannot_steer_the_terminal)
{
	static const char *const evil[][2] = {
		{ "\033[2J\033[1;1Hgone", "\xef\xbf\xbd[2J\xef\xbf\xbd[1;1H"
		    "gone" },
		{ "a\nb\tc\r", "a b c " },
		{ "c1 \xc2\x9b" "31m", "c1 \xef\xbf\xbd" "31m" },
		{ "bad \xff utf", "bad \xef\xbf\xbd utf" },
		{ "cod.\xe2\x80\xae" "fdp.exe", "cod.fdp.exe" },
	};

	for (size_t i = 0; i < 5; i++) {
		buf_reset(&out);
		display_clean(&out, evil[i][0]);
		ck_assert_str_eq(buf_str(&out), evil[i][1]);
	}
	buf_reset(&out);
	display_clean_text(&out, "one\r\ntwo\033[m");
	ck_assert_str_eq(buf_str(&out), "one\ntwo\xef\xbf\xbd[m");
}
END_TEST

START_TEST(hidden_columns_and_lines_below)
{
	static const struct column columns[] = {
		{ "id", "ID", COLUMN_NUMBER },
		{ "raw", NULL, COLUMN_TEXT, COLUMN_JSON_ONLY },
		{ "name", NULL, COLUMN_TEXT },
		{ "snippet", NULL, COLUMN_TEXT, COLUMN_BELOW },
	};
	const char *cells[] = { "1", "secret", "n", "some more words here",
		"2", "secret", "m", NULL };

	ck_assert_str_eq(render(columns, 4, cells, 2, 20),
	    "ID  NAME\n"
	    " 1  n\n"
	    "    some more words…\n"
	    " 2  m\n");
}
END_TEST

START_TEST(record_aligns_labels_and_leaves_out_what_is_not_set)
{
	static const struct column columns[] = {
		{ "email", "Account", COLUMN_TEXT },
		{ "reason", "Reason", COLUMN_TEXT, COLUMN_IF_SET },
		{ "tier", "Tier", COLUMN_TEXT },
	};
	const char *cells[] = { "ann@example.org", "", NULL };
	struct table *t = table_new(columns, 3, false);

	table_add(t, cells);
	table_render_record(t, &out, 0);
	ck_assert_str_eq(buf_str(&out),
	    "Account  ann@example.org\n"
	    "Tier     -\n");
	table_free(&t);
}
END_TEST

START_TEST(record_wraps_long_values_at_their_own_indent)
{
	static const struct column columns[] = {
		{ "next", "Next", COLUMN_TEXT },
	};
	const char *cells[] = { "nothing, until somebody does something "
	    "averyveryveryverylongwordindeed 日本 日本" };
	struct table *t = table_new(columns, 1, false);

	table_add(t, cells);
	table_render_record(t, &out, 30);
	ck_assert_str_eq(buf_str(&out),
	    "Next  nothing, until somebody\n"
	    "      does something\n"
	    "      averyveryveryverylongwordindeed\n"
	    "      日本 日本\n");
	table_free(&t);
}
END_TEST

/* --- cells -------------------------------------------------------------- */

static const char *
human(enum column_type type, const char *cell, int64_t now)
{
	buf_reset(&out);
	cell_human(&out, type, cell, now);
	return buf_str(&out);
}

START_TEST(cells_for_people)
{
	ck_assert_str_eq(human(COLUMN_SIZE, "0", 0), "0 B");
	ck_assert_str_eq(human(COLUMN_SIZE, "999", 0), "999 B");
	ck_assert_str_eq(human(COLUMN_SIZE, "6554", 0), "6.4 KB");
	ck_assert_str_eq(human(COLUMN_SIZE, "1048000", 0), "1.0 MB");
	ck_assert_str_eq(human(COLUMN_SIZE, "41943040", 0), "40 MB");
	ck_assert_str_eq(human(COLUMN_SIZE, "9223372036854775807", 0),
	    "8192 PB");
	ck_assert_str_eq(human(COLUMN_BOOL, "t", 0), "yes");
	ck_assert_str_eq(human(COLUMN_BOOL, "false", 0), "no");
	ck_assert_str_eq(human(COLUMN_AGE, "1000", 1005), "5 s ago");
	ck_assert_str_eq(human(COLUMN_AGE, "1600", 1000), "in 10 min");
	ck_assert_str_eq(human(COLUMN_SPAN, "7200", 0), "2 h");
	ck_assert_str_eq(human(COLUMN_NUMBER, "rubbish", 0), "rubbish");
}
END_TEST

START_TEST(times_are_short_when_near)
{
	char text[64];

	setenv("TZ", "UTC", 1);
	tzset();
	ck_assert_str_eq(format_time(text, sizeof(text), 1772528400,
	    1772528500), "Mar  3 09:00");
	ck_assert_str_eq(format_time(text, sizeof(text), 1000000000,
	    1772528500), "Sep  9  2001");
}
END_TEST

START_TEST(counts_are_grouped)
{
	char text[64];

	ck_assert_str_eq(format_count(text, sizeof(text), 0), "0");
	ck_assert_str_eq(format_count(text, sizeof(text), 999), "999");
	ck_assert_str_eq(format_count(text, sizeof(text), 1000), "1,000");
	ck_assert_str_eq(format_count(text, sizeof(text), 12345678),
	    "12,345,678");
}
END_TEST

START_TEST(cells_as_json)
{
	static const struct {
		enum column_type type;
		const char *cell, *json;
	} cases[] = {
		{ COLUMN_TEXT, "a \"b\"\n", "\"a \\\"b\\\"\\n\"" },
		{ COLUMN_TEXT, NULL, "null" },
		{ COLUMN_TEXT, "12", "\"12\"" },
		{ COLUMN_TEXT, "bad \xff", "\"bad \xef\xbf\xbd\"" },
		{ COLUMN_NUMBER, "9223372036854775807",
		    "9223372036854775807" },
		{ COLUMN_NUMBER, "-1", "-1" },
		{ COLUMN_NUMBER, "NaN", "\"NaN\"" },
		{ COLUMN_SIZE, "6554", "6554" },
		{ COLUMN_BOOL, "t", "true" },
		{ COLUMN_BOOL, "f", "false" },
		{ COLUMN_TIME, "1772528400", "\"2026-03-03T09:00:00Z\"" },
		{ COLUMN_WORDS, "seen  flagged", "[\"seen\",\"flagged\"]" },
		{ COLUMN_WORDS, "", "[]" },
		{ COLUMN_JSON, "{\"a\":[1,2]}", "{\"a\":[1,2]}" },
		{ COLUMN_JSON, "not json", "\"not json\"" },
	};

	for (size_t i = 0; i < N_COLUMNS(cases); i++) {
		json_t *value = cell_json(cases[i].type, cases[i].cell);
		char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);

		ck_assert_str_eq(text, cases[i].json);
		free(text);
		json_decref(value);
	}
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("table");
	TCase *tc = tcase_create("table");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, numbers_are_right_aligned);
	tcase_add_test(tc, null_is_a_dash);
	tcase_add_test(tc, wide_and_combining_characters_are_measured);
	tcase_add_test(tc, flexible_column_is_cut_to_the_terminal);
	tcase_add_test(tc, a_wide_character_is_never_cut_in_half);
	tcase_add_test(tc,
	    droppable_column_goes_before_flexible_ones_fall_below_the_floor);
	tcase_add_test(tc, no_line_is_ever_wider_than_the_terminal);
	tcase_add_test(tc, foreign_text_cannot_steer_the_terminal);
	tcase_add_test(tc, hidden_columns_and_lines_below);
	tcase_add_test(tc,
	    record_aligns_labels_and_leaves_out_what_is_not_set);
	tcase_add_test(tc, record_wraps_long_values_at_their_own_indent);
	tcase_add_test(tc, cells_for_people);
	tcase_add_test(tc, times_are_short_when_near);
	tcase_add_test(tc, counts_are_grouped);
	tcase_add_test(tc, cells_as_json);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
