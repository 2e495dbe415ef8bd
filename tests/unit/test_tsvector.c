/*
 * test_tsvector.c - words for the index and words of a query.
 *
 * Matching is tried against a small reader of the binary form here; that the
 * server takes the bytes is tested where a server runs (tests/unit/store.mk).
 */
#include "mail/tsvector.h"

#include <check.h>
#include <stdbool.h>

/* Positions of a lexeme as "3A,7D"; "" when absent. */
static const char *
positions_of(const struct buf *v, const char *lexeme)
{
	static char out[256];
	const unsigned char *p = (const unsigned char *)v->data + 4;
	const unsigned char *end = (const unsigned char *)v->data + v->len;
	unsigned n, w;
	bool is_it;

	out[0] = '\0';
	while (p < end) {
		is_it = strcmp((const char *)p, lexeme) == 0;
		p += strlen((const char *)p) + 1;
		n = (unsigned)(p[0] << 8 | p[1]);
		for (p += 2; n > 0; n--, p += 2) {
			w = (unsigned)(p[0] << 8 | p[1]);
			if (is_it)
				snprintf(out + strlen(out),
				    sizeof(out) - strlen(out), "%s%u%c",
				    out[0] ? "," : "", w & 16383,
				    "DCBA"[w >> 14]);
		}
	}
	return out;
}

static struct buf
build(const char *text, size_t len)
{
	struct buf v = BUF_INIT;
	struct tsv_input in = { text, len, 'D' };

	tsvector_build(&v, &in, 1);
	return v;
}

static void
check_positions(const char *text, const char *lexeme, const char *positions)
{
	struct buf v = build(text, strlen(text));

	ck_assert_msg(strcmp(positions_of(&v, lexeme), positions) == 0,
	    "%s in \"%s\": want \"%s\", got \"%s\"", lexeme, text, positions,
	    positions_of(&v, lexeme));
	buf_release(&v);
}

static void
check_query(const char *user, const char *want)
{
	struct arena *a = arena_new("test");
	char *got = tsquery_build(a, user);

	if (want == NULL)
		ck_assert_msg(got == NULL, "%s: got %s", user, got);
	else
		ck_assert_msg(got != NULL && strcmp(got, want) == 0,
		    "\"%s\": want %s, got %s", user, want, got ? got : "NULL");
	arena_free(&a);
}

START_TEST(words_are_folded)
{
	check_positions("Der Ölpreis, STRASSE und Straße", "olpreis", "2D");
	check_positions("Der Ölpreis, STRASSE und Straße", "strasse", "3D,5D");
	check_positions("Ångström Łódź Ære", "lodz", "2D");
	check_positions("Ångström Łódź Ære", "aere", "3D");
	check_positions("e\xCC\x81t\xC3\xA9", "ete", "1D");
	check_positions("ΑΘΉΝΑΣ", "αθηνασ", "1D");
	check_positions("Ёлка", "елка", "1D");
	check_positions("soft\xC2\xADhyphen", "softhyphen", "1D");
	check_positions("\xEF\xBC\xA1\xEF\xBC\xA2", "ab", "1D");
	check_positions("o\xEF\xAC\x83" "ce", "office", "1D");
}
END_TEST

START_TEST(addresses_are_found_whole_and_in_parts)
{
	const char *t = "to Ann.Lee@mail.example.org now";

	check_positions(t, "ann.lee@mail.example.org", "2D");
	check_positions(t, "mail.example.org", "4D");
	check_positions(t, "ann", "2D");
	check_positions(t, "lee", "3D");
	check_positions(t, "org", "6D");
	check_positions(t, "now", "7D");
	check_positions("a well-known end.", "end", "4D");
	check_positions("a well-known end.", "well-known", "");
}
END_TEST

START_TEST(scripts_without_blanks_become_pairs)
{
	check_positions("東京都 x", "東京", "1D");
	check_positions("東京都 x", "京都", "2D");
	check_positions("東京都 x", "都", "3D");
	check_positions("東京都 x", "x", "4D");
}
END_TEST

START_TEST(inputs_keep_their_weight_and_a_gap)
{
	struct tsv_input in[] = { { "one two", 7, 'A' }, { "", 0, 'B' },
		{ "three one", 9, 'D' } };
	struct buf v = BUF_INIT;

	tsvector_build(&v, in, 3);
	ck_assert_str_eq(positions_of(&v, "one"), "1A,5D");
	ck_assert_str_eq(positions_of(&v, "three"), "4D");
	ck_assert_uint_eq((unsigned char)v.data[3], 3);
	buf_release(&v);
}
END_TEST

/* What tsvectorrecv demands: see src/backend/utils/adt/tsvector.c. */
static void
check_form(const struct buf *v)
{
	const unsigned char *p = (const unsigned char *)v->data;
	const unsigned char *end = p + v->len;
	const char *previous = NULL;
	uint32_t n = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
	    (uint32_t)p[2] << 8 | p[3];
	size_t storage = 0, len;
	unsigned k, i, last, position;

	for (p += 4; n > 0; n--) {
		ck_assert_ptr_nonnull(memchr(p, 0, (size_t)(end - p)));
		len = strlen((const char *)p);
		ck_assert_uint_ge(len, 1);
		ck_assert_uint_le(len, 2046);
		if (previous != NULL)
			ck_assert_int_lt(strcmp(previous, (const char *)p), 0);
		previous = (const char *)p;
		p += len + 1;
		k = (unsigned)(p[0] << 8 | p[1]);
		ck_assert_uint_le(k, 255);
		p += 2;
		for (i = 0, last = 0; i < k; i++, p += 2) {
			position = (unsigned)(p[0] << 8 | p[1]) & 16383;
			ck_assert_uint_gt(position, last);
			last = position;
		}
		storage += len + 1 + 2 + 2 * k;
	}
	ck_assert_ptr_eq(p, end);
	ck_assert_uint_lt(storage, 1 << 20);
}

START_TEST(limits_of_the_server_hold)
{
	struct buf text = BUF_INIT, v;
	int i;

	for (i = 0; i < 400; i++)
		buf_adds(&text, "again ");
	for (i = 0; i < 3000; i++)
		buf_addc(&text, 'x');
	v = build(text.data, text.len);
	check_form(&v);
	ck_assert_uint_eq(v.len, 4 + (6 + 2 + 255 * 2) + (65 + 2 + 2));
	buf_release(&v);
	buf_reset(&text);
	for (i = 0; i < 100000; i++)
		buf_addf(&text, "w%d ", i);
	v = build(text.data, text.len);
	check_form(&v);
	buf_release(&v);
	buf_release(&text);
}
END_TEST

START_TEST(any_bytes_give_a_valid_form)
{
	unsigned char bytes[3000];
	struct buf v;
	unsigned seed = 1;
	size_t i, round;

	for (round = 0; round < 60; round++) {
		for (i = 0; i < sizeof(bytes); i++) {
			seed = seed * 1103515245 + 12345;
			bytes[i] = (unsigned char)(seed >> 16);
			if (round % 3 == 1 && bytes[i] < 0x80)
				bytes[i] = (unsigned char)"ab.@-*\" "[bytes[i]
				    & 7];
		}
		v = build((char *)bytes, sizeof(bytes));
		check_form(&v);
		buf_release(&v);
	}
	v = build("", 0);
	ck_assert_uint_eq(v.len, 4);
	buf_release(&v);
}
END_TEST

START_TEST(queries_are_read_as_people_mean_them)
{
	check_query("Müller invoice", "('muller') & ('invoice')");
	check_query("\"Two Words\" -not pre*",
	    "('two' <-> 'words') & !('not') & ('pre':*)");
	check_query("ann@example.org",
	    "('ann@example.org' | ('ann' <-> 'example' <-> 'org'))");
	check_query("well-known", "('well' <-> 'known')");
	check_query("東京都", "('東京' <-> '京都')");
	check_query("\"東京 x\"", "('東京' <2> 'x')");
	check_query("東", "('東':*)");
	check_query("\"unclosed", "('unclosed')");
	check_query("", NULL);
	check_query("  --- \" \" *** ' \\ ", NULL);
	check_query("it's (a) & !b | c:*",
	    "('it' <-> 's') & ('a') & ('b') & ('c':*)");
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("tsvector");
	TCase *tc = tcase_create("tsvector");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, words_are_folded);
	tcase_add_test(tc, addresses_are_found_whole_and_in_parts);
	tcase_add_test(tc, scripts_without_blanks_become_pairs);
	tcase_add_test(tc, inputs_keep_their_weight_and_a_gap);
	tcase_add_test(tc, limits_of_the_server_hold);
	tcase_add_test(tc, any_bytes_give_a_valid_form);
	tcase_add_test(tc, queries_are_read_as_people_mean_them);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
