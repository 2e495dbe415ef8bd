/*
 * test_mime.c - messages as the world sends them.
 *
 * Most of it is data: every file of tests/corpus against the values of its
 * index.tsv, read at run time through $srcdir.
 */
#include "config.h"

#include "base/clock.h"
#include "base/text.h"
#include "base/xmem.h"
#include "mime/mime.h"

#include <check.h>
#include <fcntl.h>
#include <unistd.h>

enum column { FILE_NAME, CASE_ID, LOG_ID, SUBJECT, FROM, TO_LIST, DATE,
	SNIPPET, ATTACHMENTS, MESSAGE_ID, IN_REPLY_TO, REFERENCES, COLUMNS };

static struct arena *arena;

static const char *
corpus_path(const char *file)
{
	const char *srcdir = getenv("srcdir");

	return arena_printf(arena, "%s/tests/corpus/%s",
	    srcdir == NULL ? "." : srcdir, file);
}

static char *
read_file(const char *path, size_t *len_r)
{
	FILE *f = fopen(path, "rb");
	char *data;
	long size;

	ck_assert_msg(f != NULL, "%s", path);
	fseek(f, 0, SEEK_END);
	size = ftell(f);
	rewind(f);
	data = arena_alloc(arena, (size_t)size + 1);
	ck_assert_uint_eq(fread(data, 1, (size_t)size, f), (size_t)size);
	fclose(f);
	data[size] = '\0';
	*len_r = (size_t)size;
	return data;
}

static void
check_string(const char *s)
{
	ck_assert(s == NULL || text_is_utf8(s, strlen(s)));
}

/* Whatever the input: it can be stored. */
static void
check_storable(const struct content *c)
{
	size_t i;

	check_string(c->subject);
	check_string(c->base_subject);
	check_string(c->message_id);
	check_string(c->in_reply_to);
	check_string(c->snippet);
	ck_assert(text_is_utf8(c->text, c->text_len));
	ck_assert_ptr_null(memchr(c->text, '\0', c->text_len));
	ck_assert_ptr_nonnull(c->state_reason);
	for (i = 0; i < c->n_senders + c->n_recipients; i++) {
		const struct address *a = i < c->n_senders ? &c->senders[i]
		    : &c->recipients[i - c->n_senders];

		check_string(a->name);
		check_string(a->addr);
		ck_assert_ptr_nonnull(a->name);
		ck_assert_ptr_nonnull(a->addr);
	}
	for (i = 0; i < c->n_references; i++)
		check_string(c->references[i]);
	for (i = 0; i < c->n_attachments; i++) {
		check_string(c->attachments[i].filename);
		check_string(c->attachments[i].content_type);
		check_string(c->attachments[i].content_id);
	}
}

static void
parse(const void *raw, size_t len, struct content *c)
{
	mime_parse(arena, raw, len, &mime_default_limits, c);
	check_storable(c);
}

static const char *
join_addresses(const struct address *a, size_t n, char kind)
{
	const char *out = "";
	size_t i;

	for (i = 0; i < n; i++) {
		if (kind != 0 && a[i].kind != kind)
			continue;
		out = arena_printf(arena, "%s%s%s%s%s%s", out,
		    *out ? "; " : "", a[i].name, *a[i].name ? " <" : "",
		    a[i].addr, *a[i].name ? ">" : "");
	}
	return *out ? out : "NONE";
}

static const char *
join_attachments(const struct content *c, const char *want)
{
	const char *out = "", *mark;
	size_t i;

	for (i = 0; i < c->n_attachments; i++) {
		const struct attachment *a = &c->attachments[i];

		out = arena_printf(arena, "%s%s%s|%s|%llu", out,
		    i ? "; " : "", a->filename ? a->filename : "(no name)",
		    a->content_type, (unsigned long long)a->size);
		/* Marks that struct attachment does not hold are taken over. */
		if (strlen(want) > strlen(out) && want[strlen(out)] == '|') {
			mark = want + strlen(out);
			if (strncmp(mark, "|inline", 7) != 0 || a->is_inline)
				out = arena_printf(arena, "%s%.*s", out,
				    (int)strcspn(mark, ";"), mark);
		}
	}
	return out;
}

static void
check_value(char **row, enum column column, const char *got)
{
	const char *want = row[column];

	if (strcmp(want, "-") == 0)
		return;
	if (strcmp(want, "(empty)") == 0)
		want = "";
	ck_assert_msg(strcmp(want, got == NULL ? "NONE" : got) == 0,
	    "%s column %d\nwant %s\ngot  %s", row[FILE_NAME], column, want,
	    got == NULL ? "NONE" : got);
}

static bool
is_one_of(const char *file, const char *const *list)
{
	for (; *list != NULL; list++)
		if (strncmp(file, *list, 4) == 0)
			return true;
	return false;
}

static void
check_snippet(char **row, const struct content *c)
{
	/* The row says that more may follow. */
	static const char *const open[] = { "m098", "m102", "m137", NULL };

	if (strcmp(row[SNIPPET], "-") != 0 && is_one_of(row[FILE_NAME], open))
		ck_assert_msg(strncmp(row[SNIPPET], c->snippet,
		    strlen(row[SNIPPET])) == 0, "%s: %s", row[FILE_NAME],
		    c->snippet);
	else
		check_value(row, SNIPPET, c->snippet);
}

static void
check_row(char **row, const struct content *c)
{
	char date[40];
	const char *references = NULL;
	size_t i;

	check_value(row, SUBJECT, c->subject);
	check_value(row, FROM, join_addresses(c->senders, c->n_senders, 0));
	check_value(row, TO_LIST, join_addresses(c->recipients,
	    c->n_recipients, TO));
	check_value(row, DATE, c->has_sent_at ? clock_format_utc(date,
	    sizeof(date), c->sent_at_secs) : "NONE");
	check_snippet(row, c);
	check_value(row, ATTACHMENTS, join_attachments(c, row[ATTACHMENTS]));
	if (strcmp(row[ATTACHMENTS], "-") == 0)
		ck_assert_msg(c->n_attachments == 0, "%s", row[FILE_NAME]);
	check_value(row, MESSAGE_ID, c->message_id);
	check_value(row, IN_REPLY_TO, c->in_reply_to);
	for (i = 0; i < c->n_references; i++)
		references = arena_printf(arena, "%s%s%s",
		    i ? references : "", i ? " " : "", c->references[i]);
	check_value(row, REFERENCES, references);
	ck_assert_int_eq(c->state, PARSE_OK);
}

/* Calls `check` with each row of the index and the bytes of its file. */
static void
each_file(void (*check)(char **row, const char *raw, size_t len))
{
	size_t len, n = 0;
	char *index = read_file(corpus_path("index.tsv"), &len), *line, *raw;
	char *row[32];
	int i;

	strsep(&index, "\n");
	while ((line = strsep(&index, "\n")) != NULL && *line != '\0') {
		for (i = 0; i < 32 && line != NULL; i++)
			row[i] = strsep(&line, "\t");
		ck_assert_int_ge(i, COLUMNS);
		raw = read_file(corpus_path(row[FILE_NAME]), &len);
		check(row, raw, len);
		n++;
	}
	ck_assert_uint_ge(n, 97);
}

static void
check_memory(char **row, const char *raw, size_t len)
{
	struct content c;

	parse(raw, len, &c);
	check_row(row, &c);
}

START_TEST(corpus_gives_the_values_of_its_index)
{
	each_file(check_memory);
}
END_TEST

static void
check_fd(char **row, const char *raw, size_t len)
{
	int fd = open(corpus_path(row[FILE_NAME]), O_RDONLY);
	struct content c;

	(void)raw;
	ck_assert_int_ge(fd, 0);
	mime_parse_fd(arena, fd, len, &mime_default_limits, &c);
	close(fd);
	check_storable(&c);
	check_row(row, &c);
}

START_TEST(a_file_reads_as_memory_does)
{
	each_file(check_fd);
}
END_TEST

static void
check_prefixes(char **row, const char *raw, size_t len)
{
	struct arena *outer = arena;
	struct content c;
	char *cut;
	size_t n;

	(void)row;
	for (n = 0; n < len; n++) {
		arena = arena_new("prefix");
		/* A copy of its own, so that a sanitizer sees its end. */
		cut = xmalloc(n + (n == 0));
		memcpy(cut, raw, n);
		parse(cut, n, &c);
		free(cut);
		arena_free(&arena);
	}
	arena = outer;
}

START_TEST(every_prefix_of_every_file_can_be_stored)
{
	each_file(check_prefixes);
}
END_TEST

static void
check_bare_cr(char **row, const char *raw, size_t len)
{
	static const char *const wanted[] = { "m001", "m070", "m095", NULL };
	char *cr = arena_alloc(arena, len);
	struct content c;
	size_t i, n = 0;

	if (!is_one_of(row[FILE_NAME], wanted))
		return;
	for (i = 0; i < len; i++)
		if (raw[i] != '\n')
			cr[n++] = raw[i];
	parse(cr, n, &c);
	check_row(row, &c);
}

START_TEST(bare_cr_is_a_line_end)
{
	each_file(check_bare_cr);
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
	Suite *suite = suite_create("mime");
	TCase *tc = tcase_create("mime");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, corpus_gives_the_values_of_its_index);
	tcase_add_test(tc, a_file_reads_as_memory_does);
	tcase_add_test(tc, every_prefix_of_every_file_can_be_stored);
	tcase_add_test(tc, bare_cr_is_a_line_end);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
