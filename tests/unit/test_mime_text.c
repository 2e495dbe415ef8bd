/*
 * test_mime_text.c - charsets, entities, addresses, ids, dates, subjects and
 * names of files, as the world writes them.
 *
 * All of it is data: tests/mime-cases, read at run time through $srcdir.
 */
#include "config.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/heap.h"
#include "base/text.h"
#include "base/xmem.h"
#include "mime/charset.h"
#include "mime/decode.h"
#include "mime/detect.h"
#include "mime/entity.h"
#include "mime/html.h"
#include "mime/mime.h"

#include <check.h>

#define COLUMNS 6

static struct arena *arena;
static size_t n_wrong; /* of one file: all of them are told */

/* \xNN and \\ to bytes; in place. */
static void
unescape(char *s)
{
	char *out = s;

	for (; *s != '\0'; s++) {
		if (s[0] == '\\' && s[1] == 'x' && hex_pair(s + 2) >= 0) {
			*out++ = (char)hex_pair(s + 2);
			s += 3;
		} else {
			s += s[0] == '\\' && s[1] == '\\';
			*out++ = *s;
		}
	}
	*out = '\0';
}

/* Calls `check` with each row of a file of tests/mime-cases. */
static void
each_row(const char *name, int columns, size_t least,
    void (*check)(char **row))
{
	const char *srcdir = getenv("srcdir");
	char *path = arena_printf(arena, "%s/tests/mime-cases/%s",
	    srcdir == NULL ? "." : srcdir, name);
	char *line = NULL, *rest, *row[COLUMNS];
	FILE *f = fopen(path, "r");
	size_t size = 0, n = 0;
	int i;

	ck_assert_msg(f != NULL, "%s", path);
	while (getline(&line, &size, f) != -1) {
		if (line[0] == '#')
			continue;
		line[strcspn(line, "\n")] = '\0';
		for (rest = line, i = 0; i < columns; i++) {
			row[i] = strsep(&rest, "\t");
			ck_assert_msg(row[i] != NULL, "%s: %s", name, line);
			unescape(row[i]);
		}
		check(row);
		n++;
	}
	ck_assert_msg(n_wrong == 0, "%s: %zu values", name, n_wrong);
	ck_assert_uint_ge(n, least);
	free(line);
	fclose(f);
}

static void
parse(const char *raw, struct content *c)
{
	mime_parse(arena, raw, strlen(raw), &mime_default_limits, c);
}

static void
check_same(const char *input, const char *want, const char *got)
{
	if (got == NULL)
		got = "NONE";
	if (strcmp(want, got) == 0)
		return;
	fprintf(stderr, "%s\nwant %s\ngot  %s\n", input, want, got);
	n_wrong++;
}

/* --- charsets ------------------------------------------------------------ */

static char *
decode_base64(const char *text, size_t *len_r)
{
	struct buf bytes = BUF_INIT;
	char *copy;

	decode_base64_word(&bytes, text, strlen(text));
	/* Of its own, so that a sanitizer sees its end. */
	copy = xmalloc(bytes.len + (bytes.len == 0));
	memcpy(copy, bytes.data, bytes.len);
	*len_r = bytes.len;
	buf_release(&bytes);
	return copy;
}

static void
check_charset(char **row)
{
	const char *text;
	size_t len, n;
	char *bytes = decode_base64(row[1], &len);

	text = charset_decode(arena, row[0], strlen(row[0]), bytes, len, &n);
	check_same(row[0], row[2], arena_strndup(arena, text, n));
	free(bytes);
}

START_TEST(labels_mean_what_the_standard_says)
{
	each_row("charsets.tsv", 3, 300, check_charset);
}
END_TEST

static void
check_detected(char **row)
{
	const char *text;
	size_t len, n;
	char *bytes = decode_base64(row[0], &len);

	text = charset_convert(arena, detect_charset(bytes, len), bytes, len,
	    &n);
	check_same(row[1], row[1], arena_strndup(arena, text, n));
	free(bytes);
}

START_TEST(unlabelled_bytes_are_what_they_look_like)
{
	each_row("detect.tsv", 2, 100, check_detected);
}
END_TEST

/* Whatever bytes: it ends, and the result can be stored. */
START_TEST(every_pair_of_bytes_in_every_charset)
{
	struct arena *outer = arena;
	char bytes[256 * 2];
	const char *text;
	size_t n;
	int charset, high, low;

	for (charset = 0; charset < CHARSET_COUNT; charset++) {
		arena = arena_new("pairs");
		for (high = 0; high < 256; high++) {
			for (low = 0; low < 256; low++) {
				bytes[2 * low] = (char)high;
				bytes[2 * low + 1] = (char)low;
			}
			text = charset_convert(arena, (enum charset)charset,
			    bytes, sizeof(bytes), &n);
			ck_assert(text_is_utf8(text, n));
			ck_assert_ptr_null(memchr(text, '\0', n));
		}
		arena_free(&arena);
	}
	arena = outer;
}
END_TEST

/* --- entities ------------------------------------------------------------ */

static void
check_entity(char **row)
{
	struct buf out = BUF_INIT;

	html_to_text(&out, row[0], strlen(row[0]), 1000);
	check_same(row[0], row[1], buf_str(&out));
	buf_release(&out);
}

START_TEST(entities_are_read_as_in_a_browser)
{
	each_row("entities.tsv", 2, 25, check_entity);
}
END_TEST

/* --- header -------------------------------------------------------------- */

static void
check_addresses(char **row)
{
	const char *got = "";
	struct content c;
	size_t i;

	parse(arena_printf(arena, "From: %s\n\n", row[0]), &c);
	for (i = 0; i < c.n_senders; i++)
		got = arena_printf(arena, "%s%s%s%s%s%s", got,
		    i > 0 ? "; " : "", c.senders[i].name,
		    *c.senders[i].name != '\0' ? " <" : "",
		    c.senders[i].addr, *c.senders[i].name != '\0' ? ">" : "");
	check_same(row[0], row[1], c.n_senders == 0 ? NULL : got);
}

START_TEST(good_addresses_are_kept_beside_bad_ones)
{
	each_row("addresses.tsv", 2, 24, check_addresses);
}
END_TEST

static const char *
header_line(const char *name, const char *value)
{
	return strcmp(value, "-") == 0 ? "" :
	    arena_printf(arena, "%s: %s\n", name, value);
}

static void
check_ids(char **row)
{
	const char *references = NULL;
	struct content c;
	size_t i;

	parse(arena_printf(arena, "%s%s%s\nx", header_line("Message-ID",
	    row[0]), header_line("In-Reply-To", row[1]),
	    header_line("References", row[2])), &c);
	for (i = 0; i < c.n_references; i++)
		references = arena_printf(arena, "%s%s%s",
		    i > 0 ? references : "", i > 0 ? " " : "",
		    c.references[i]);
	check_same(row[0], row[3], c.message_id);
	check_same(row[1], row[4], c.in_reply_to);
	check_same(row[2], row[5], references);
}

START_TEST(ids_are_told_from_prose)
{
	each_row("ids.tsv", 6, 9, check_ids);
}
END_TEST

static void
check_date(char **row)
{
	struct content c;
	char got[40];

	parse(arena_printf(arena, "Date: %s\n\n", row[0]), &c);
	check_same(row[0], row[1], c.has_sent_at ? clock_format_utc(got,
	    sizeof(got), c.sent_at_secs) : NULL);
}

START_TEST(dates_are_right_or_none)
{
	each_row("dates.tsv", 2, 55, check_date);
}
END_TEST

static void
check_subject(char **row)
{
	struct content c;

	parse(arena_printf(arena, "Subject: %s\n\n", row[0]), &c);
	check_same(row[0], row[1], c.base_subject);
	check_same(row[0], row[2], c.is_reply ? "re" : "-");
}

START_TEST(prefixes_of_all_languages)
{
	each_row("subjects.tsv", 3, 50, check_subject);
}
END_TEST

static void
check_name(char **row)
{
	struct content c;
	char *p;

	for (p = row[0]; *p != '\0'; p++)
		if (*p == '|')
			*p = '\n';
	parse(arena_printf(arena, "%s\nContent-Type: application/pdf\n\nx",
	    row[0]), &c);
	ck_assert_uint_eq(c.n_attachments, 1);
	check_same(row[0], row[1], c.attachments[0].filename);
}

START_TEST(names_of_files)
{
	each_row("names.tsv", 2, 24, check_name);
}
END_TEST

/* --- memory -------------------------------------------------------------- */

/* What is not asked for costs nothing, whatever there is of it (F-A2). */
START_TEST(memory_of_parameters_is_linear)
{
	struct buf b = BUF_INIT;
	struct content c;
	size_t before;
	int i;

	buf_adds(&b, "Content-Type: text/plain");
	for (i = 0; i < 100000; i++)
		buf_addf(&b, "; x%d=\"%d\"", i, i);
	buf_adds(&b, "; charset=\"koi8-r\"\n\n\xf3\xde\xa3\xd4\n");
	before = arena_used(arena);
	mime_parse(arena, b.data, b.len, &mime_default_limits, &c);
	ck_assert_str_eq(c.snippet, "Счёт");
	ck_assert_uint_lt(arena_used(arena) - before, 4 * b.len);
	buf_release(&b);
}
END_TEST

/* A megabyte of each takes 0.1 s; were it the square, minutes. */
START_TEST(time_is_linear)
{
	static const char *const bombs[][3] = {
		{ "Subject: ", "Re: ", "\n\nhi\n" },
		{ "Subject: ", "[fwd:", "]]]]]]\n\nhi\n" },
		{ "Subject: [fwd:[fwd:[fwd: x", "]", "\n\nhi\n" },
		{ "Subject: ", "\xd1\x1b$B", "\n\nhi\n" },
		{ "From: ", "a@b ((", "\n\nhi\n" },
		{ "From: ", "\"a>,", "\n\nhi\n" },
		{ "From: ", "a@b ", "\n\nhi\n" },
		{ "From: a@b (c", "c", ") a@b a@b a@b a@b a@b\n\nhi\n" },
		{ "In-Reply-To: <a@b> ", "<", "\n\nhi\n" },
		{ "In-Reply-To: ", "<a@b> c ", "\n\nhi\n" },
		{ "References: ", "a@b ", "\n\nhi\n" },
		{ "Date: ", "(a", "\n\nhi\n" },
		{ "Date: 10:00 ", "a ", "\n\nhi\n" },
		{ "Content-Type: text/plain", "; x=\"\\\"", "\n\nhi\n" },
		{ "Content-Type: text/plain", "; charset*1*=a'", "\n\nhi\n" },
		{ "Content-Type: text/html\n\n", "&notinv", "" },
		{ "Content-Type: text/plain; charset=iso-2022-jp\n\n",
		    "\x1b$B0!\x1b(B", "" },
		{ "Content-Type: text/plain; charset=x-none\n\n",
		    "\xb1\xe4\xff", "" },
	};
	struct buf b = BUF_INIT;
	struct content c;
	int64_t start;
	size_t i, before;

	for (i = 0; i < sizeof(bombs) / sizeof(bombs[0]); i++) {
		buf_reset(&b);
		buf_adds(&b, bombs[i][0]);
		while (b.len < 1000000)
			buf_adds(&b, bombs[i][1]);
		buf_adds(&b, bombs[i][2]);
		start = clock_mono_msecs();
		before = arena_used(arena);
		mime_parse(arena, b.data, b.len, &mime_default_limits, &c);
		ck_assert_msg(clock_mono_msecs() - start <
		    (heap_is_checked() ? 300000 : 10000), "%s", bombs[i][1]);
		ck_assert_msg(arena_used(arena) - before < 40 * b.len,
		    "%s: %zu bytes", bombs[i][1],
		    arena_used(arena) - before);
	}
	buf_release(&b);
}
END_TEST

/* Ten thousand parts, each with the name of its file in raw bytes. */
START_TEST(names_in_raw_bytes_are_looked_at_in_bounded_time)
{
	int64_t start = clock_mono_msecs();
	struct buf b = BUF_INIT;
	struct content c;
	int i;

	buf_adds(&b, "Content-Type: multipart/mixed; boundary=b\n\n");
	for (i = 0; i < 9000; i++)
		buf_adds(&b, "--b\nContent-Disposition: attachment; filename=\""
		    "\xd1\xf7\xb8\xf2 \xe7\xe0 "
		    "\xe4\xe5\xea\xe0\xe1\xf0\xfc\"\n\n");
	mime_parse(arena, b.data, b.len, &mime_default_limits, &c);
	ck_assert_uint_eq(c.n_attachments, 9000);
	ck_assert_str_eq(c.attachments[8999].filename, "Счёт за декабрь");
	ck_assert_int_lt(clock_mono_msecs() - start,
	    heap_is_checked() ? 300000 : 10000);
	buf_release(&b);
}
END_TEST

static void
setup(void)
{
	mime_init();
	arena = arena_new("test");
}

static void
teardown(void)
{
	arena_free(&arena);
}

int
main(void)
{
	Suite *suite = suite_create("mime_text");
	TCase *tc = tcase_create("mime_text");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, labels_mean_what_the_standard_says);
	tcase_add_test(tc, unlabelled_bytes_are_what_they_look_like);
	tcase_add_test(tc, every_pair_of_bytes_in_every_charset);
	tcase_add_test(tc, entities_are_read_as_in_a_browser);
	tcase_add_test(tc, good_addresses_are_kept_beside_bad_ones);
	tcase_add_test(tc, ids_are_told_from_prose);
	tcase_add_test(tc, dates_are_right_or_none);
	tcase_add_test(tc, prefixes_of_all_languages);
	tcase_add_test(tc, names_of_files);
	tcase_add_test(tc, memory_of_parameters_is_linear);
	tcase_add_test(tc, time_is_linear);
	tcase_add_test(tc,
	    names_in_raw_bytes_are_looked_at_in_bounded_time);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
