/*
 * test_mime_parts.c - which parts of a message are read, and how far.
 *
 * Most of it is data, tests/mime-cases/parts, read at run time through $srcdir;
 * what is large or hostile is made here.
 */
#include "config.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/heap.h"
#include "base/text.h"
#include "mime/mime.h"

#include <check.h>
#include <ctype.h>
#include <fcntl.h>
#include <unistd.h>

static struct arena *arena;
static unsigned n_wrong, n_cases;

struct want {
	const char *name, *text, *state, *attachments, *references, *subject,
	    *from;
	const char *extra[8], *lacks[8];
	size_t n_extra, n_lacks;
	bool has, is_all;
};

/* --- the cases ----------------------------------------------------------- */

static const char *
collapse(const char *text)
{
	char *out = arena_alloc(arena, strlen(text) + 1), *p = out;
	const char *s;

	for (s = text; *s != '\0'; s++) {
		if (!isspace((unsigned char)*s))
			*p++ = *s;
		else if (p > out && p[-1] != ' ')
			*p++ = ' ';
	}
	while (p > out && p[-1] == ' ')
		p--;
	*p = '\0';
	return out;
}

static void
compare(const struct want *w, const char *what, const char *want,
    const char *got)
{
	if (want == NULL || strcmp(want, got == NULL ? "(none)" : got) == 0)
		return;
	fprintf(stderr, "%s: %s\n  want [%s]\n  got  [%s]\n", w->name,
	    what, want, got == NULL ? "(none)" : got);
	n_wrong++;
}

static const char *
join_attachments(const struct content *c)
{
	const char *out = "";
	size_t i;

	for (i = 0; i < c->n_attachments; i++) {
		const struct attachment *a = &c->attachments[i];

		out = arena_printf(arena, "%s%s%s|%s|%llu|%s", out,
		    i ? "; " : "", a->filename ? a->filename : "(none)",
		    a->content_type, (unsigned long long)a->size,
		    a->is_inline ? "inline" : "");
	}
	return out;
}

static const char *
join_references(const struct content *c)
{
	const char *out = "";
	size_t i;

	for (i = 0; i < c->n_references; i++)
		out = arena_printf(arena, "%s%s%s", out, i ? " " : "",
		    c->references[i]);
	return out;
}

static void
check_content(const struct want *w, const struct content *c)
{
	size_t i;

	ck_assert(text_is_utf8(c->text, c->text_len));
	ck_assert(text_is_utf8(c->extra, c->extra_len));
	compare(w, "text", w->text, collapse(c->text));
	compare(w, "state", w->state, c->state_reason);
	compare(w, "attachments", w->attachments, join_attachments(c));
	compare(w, "has attachments", w->has ? "yes" : "no",
	    c->has_attachments ? "yes" : "no");
	compare(w, "references", w->references, join_references(c));
	compare(w, "subject", w->subject, c->subject);
	compare(w, "from", w->from, c->from_addr);
	if (w->is_all)
		compare(w, "extra", "", c->extra);
	for (i = 0; i < w->n_extra; i++)
		if (strstr(c->extra, w->extra[i]) == NULL)
			compare(w, "extra", w->extra[i], c->extra);
	for (i = 0; i < w->n_lacks; i++)
		if (strstr(c->extra, w->lacks[i]) != NULL ||
		    strstr(c->text, w->lacks[i]) != NULL)
			compare(w, "lacks", "", w->lacks[i]);
}

static bool
take(const char *line, const char *key, const char **value)
{
	size_t len = strlen(key);

	if (strncmp(line, key, len) != 0 || line[len] != ':')
		return false;
	*value = line + len + (line[len + 1] == ' ' ? 2 : 1);
	return true;
}

static void
read_want(struct want *w, const char *line)
{
	const char *value;

	if (take(line, "text", &w->text) || take(line, "state", &w->state) ||
	    take(line, "attachments", &w->attachments) ||
	    take(line, "references", &w->references) ||
	    take(line, "subject", &w->subject) || take(line, "from", &w->from))
		return;
	if (take(line, "extra", &value))
		w->extra[w->n_extra++] = value;
	else if (take(line, "lacks", &value))
		w->lacks[w->n_lacks++] = value;
	else if (take(line, "has", &value))
		w->has = true;
	else if (take(line, "all", &value))
		w->is_all = true;
	else
		ck_abort_msg("%s: what is \"%s\"?", w->name, line);
}

/* With CRLF all is the same but sizes. */
static void
check_crlf(struct want *w, const char *raw, size_t len)
{
	char *crlf = arena_alloc(arena, 2 * len + 1);
	struct content c;
	size_t i, n = 0;

	for (i = 0; i < len; i++) {
		if (raw[i] == '\n')
			crlf[n++] = '\r';
		crlf[n++] = raw[i];
	}
	w->attachments = NULL;
	mime_parse(arena, crlf, n, &mime_default_limits, &c);
	check_content(w, &c);
}

static void
check_case(char *block)
{
	struct want w = { .name = strsep(&block, "\n"), .state = "",
		.attachments = "" };
	char path[] = "/tmp/mailherd-parts-XXXXXX", *line;
	struct content c;
	size_t len;
	int fd;

	while ((line = strsep(&block, "\n")) != NULL && *line != '\0')
		read_want(&w, line);
	ck_assert_msg(block != NULL && w.text != NULL, "%s", w.name);
	for (len = strlen(block); len > 0 && block[len - 1] == '\n'; len--)
		;
	mime_parse(arena, block, len, &mime_default_limits, &c);
	check_content(&w, &c);
	/* From a file it is the same. */
	fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	unlink(path);
	ck_assert_int_eq(write(fd, block, len), (ssize_t)len);
	mime_parse_fd(arena, fd, len, &mime_default_limits, &c);
	check_content(&w, &c);
	close(fd);
	check_crlf(&w, block, len);
	n_cases++;
}

START_TEST(parts_are_read_as_people_read_them)
{
	const char *srcdir = getenv("srcdir");
	const char *path = arena_printf(arena, "%s/tests/mime-cases/parts",
	    srcdir == NULL ? "." : srcdir);
	FILE *f = fopen(path, "rb");
	char *all, *next;
	long size;

	ck_assert_msg(f != NULL, "%s", path);
	fseek(f, 0, SEEK_END);
	size = ftell(f);
	rewind(f);
	all = arena_alloc(arena, (size_t)size + 1);
	ck_assert_uint_eq(fread(all, 1, (size_t)size, f), (size_t)size);
	fclose(f);
	all[size] = '\0';
	for (all = strstr(all, "\n== "); all != NULL; all = next) {
		all += 4;
		if ((next = strstr(all, "\n== ")) != NULL)
			*next = '\0';
		check_case(all);
	}
	ck_assert_uint_ge(n_cases, 90);
	ck_assert_uint_eq(n_wrong, 0);
}
END_TEST

/* --- limits -------------------------------------------------------------- */

static void
repeat(struct buf *b, const char *s, size_t bytes)
{
	size_t end = b->len + bytes;

	while (b->len < end)
		buf_adds(b, s);
}

static void
parse(const struct buf *b, struct content *c)
{
	mime_parse(arena, b->data, b->len, &mime_default_limits, c);
	ck_assert(text_is_utf8(c->text, c->text_len));
}

START_TEST(markup_takes_no_room)
{
	static const struct {
		const char *head, *filler, *tail, *text;
	} cases[] = {
		{ "Content-Type: text/html\n\n<style>", "p { margin: 0 }\n",
		    "</style><p>behind styles", "behind styles" },
		{ "Content-Type: text/html\n\n<script>", "if (a < b) c;",
		    "</script>behind a script", "behind a script" },
		{ "Content-Type: text/html\n\n", "<td class=\"a\">\n",
		    "behind tags", "behind tags" },
		{ "Content-Type: text/html\n\n<!--", "a <b> c",
		    "-->behind a comment", "behind a comment" },
		{ "Content-Type: text/html\n\n<img src=\"data:",
		    "0123456789abcdef", "\">behind a picture",
		    "behind a picture" },
		{ "Content-Type: text/html\n\n", "&nbsp; \n", "behind blanks",
		    "behind blanks" },
		{ "Content-Type: text/html; charset=iso-2022-jp\n"
		    "Content-Transfer-Encoding: quoted-printable\n\n<style>",
		    "=1B$B$\"=1B(B { }\n", "</style>=1B$B$\"=1B(B", "あ" },
		{ "\nbegin 644 a.bin\n",
		    "M86%A86%A86%A86%A86%A86%A86%A86%A86%A86%A86%A86%A"
		    "86%A86%A86%A\n", "`\nend\nbehind a file",
		    "behind a file" },
		{ "Content-Type: multipart/alternative; boundary=a\n\n"
		    "--a\n\nPlease use HTML.\n--a\nContent-Type: text/html\n"
		    "\n<style>", "p { margin: 0 }\n",
		    "</style>behind a stub\n--a--\n", "behind a stub" },
	};
	struct content c;
	struct buf b = BUF_INIT;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		buf_reset(&b);
		buf_adds(&b, cases[i].head);
		repeat(&b, cases[i].filler, 5000000);
		buf_adds(&b, cases[i].tail);
		parse(&b, &c);
		ck_assert_str_eq(collapse(c.text), cases[i].text);
		ck_assert_int_eq(c.state, PARSE_OK);
	}
	buf_release(&b);
}
END_TEST

START_TEST(text_that_is_cut_says_so)
{
	static const char *const heads[] = { "\n",
		"Content-Type: text/html\n\n",
		"Content-Type: text/plain; format=flowed\n\n",
		"Content-Type: multipart/mixed; boundary=b\n\n--b\n\n",
		"Content-Type: text/plain; charset=iso-8859-1\n"
		"Content-Transfer-Encoding: quoted-printable\n\n=E9" };
	struct content c;
	struct buf b = BUF_INIT;
	size_t i;

	for (i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		buf_reset(&b);
		buf_adds(&b, heads[i]);
		repeat(&b, "words and words \n", 1200000);
		parse(&b, &c);
		ck_assert_int_eq(c.state, PARSE_PARTIAL);
		ck_assert_str_eq(c.state_reason,
		    "the text is too long; its beginning is kept");
		ck_assert_uint_gt(c.text_len, 980000);
		ck_assert_uint_le(c.text_len, 1024 * 1024);
	}
	buf_release(&b);
}
END_TEST

START_TEST(parts_over_a_limit_leave_the_others)
{
	struct content c;
	struct buf b = BUF_INIT;
	size_t i;

	buf_adds(&b, "Content-Type: multipart/mixed; boundary=b\n\n"
	    "--b\n\nfirst words\n");
	for (i = 0; i < 1000000; i++)
		buf_adds(&b, "--b\nContent-Type: image/x\n\n");
	parse(&b, &c);
	ck_assert_str_eq(c.state_reason, "too many parts");
	ck_assert_str_eq(collapse(c.text), "first words");
	buf_reset(&b);
	buf_adds(&b, "Content-Type: multipart/mixed; boundary=b\n\n"
	    "--b\n\nfirst words\n--b\nX: ");
	repeat(&b, "aaaaaaaaaa", 3000000);
	parse(&b, &c);
	ck_assert_str_eq(c.state_reason, "the header of a part is too long");
	ck_assert_str_eq(collapse(c.text), "first words");
	buf_release(&b);
}
END_TEST

/* Each of them took time or memory that grows faster than the message. */
START_TEST(hostile_structures_cost_linear_time)
{
	static const struct {
		const char *head, *filler;
	} cases[] = {
		{ "Content-Type: multipart/mixed; boundary=b\n\n",
		    "--b\nContent-Type: multipart/mixed; boundary=b\n\n" },
		{ "Content-Type: multipart/mixed; boundary=b\n\n",
		    "--b\nslip\n" },
		{ "Content-Type: multipart/mixed; boundary=b\n\n",
		    "--b\n X: y\nno\nyes: z\nno\nno\n" },
		{ "Content-Type: multipart/digest; boundary=b\n\n",
		    "--b\n\nContent-Type: multipart/digest; boundary=b\n\n" },
		{ "Content-Type: multipart/mixed; boundary=b\n\n",
		    "--b\nContent-Type: message/rfc822\n\nContent-Type: "
		    "multipart/mixed; boundary=c\n\n--c\n\n" },
		{ "Content-Type: message/rfc822\n\n",
		    "Content-Type: message/rfc822\n\n" },
		{ "Content-Type: multipart/alternative; boundary=b\n\n",
		    "--b\n\nstub\n--b\nContent-Type: text/html\n\n<style>\n" },
		{ "Content-Type: multipart/related; start=a; boundary=b\n\n",
		    "--b\nContent-Type: multipart/related; boundary=b; "
		    "start=c\n\n" },
		{ "Content-Type: text/calendar\n\n", "SUMMARY:\n x\\n" },
		{ "Content-Type: text/calendar\n\n",
		    "SUMMARY;QUOTED-PRINTABLE:a=\n" },
		{ "Content-Type: application/pkcs7-mime\n\n", "0\x80" },
		{ "Content-Type: application/pkcs7-mime\n\n"
		    "0\x80\x06\x09*\x86H\x86\xf7\x0d\x01\x07\x02\xa0\x80"
		    "0\x80\x02\x01\x01""1\x80", "$\x80" },
		{ "Content-Type: application/ms-tnef\n\nx\x9f>\"\1\1",
		    "\2\2\x90\6\1\1\1\1\1\1\1" },
		{ "Content-Type: text/html\n\n", "< &" },
		{ "Content-Type: text/html\n\n", "<a b='" },
		{ "\n", "begin 644 a\n#;VYE\n" },
		{ "\n \n", " x\n" },
	};
	struct content c;
	struct buf b = BUF_INIT;
	int64_t start;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		buf_reset(&b);
		buf_adds(&b, cases[i].head);
		repeat(&b, cases[i].filler, 2000000);
		start = clock_mono_msecs();
		parse(&b, &c);
		/* Takes 0.1 s at most; were it the square, minutes, and under
		 * valgrind hours. */
		ck_assert_msg(clock_mono_msecs() - start <
		    (heap_is_checked() ? 300000 : 10000), "case %zu", i);
	}
	buf_release(&b);
}
END_TEST

START_TEST(open_boundaries_cost_linear_time)
{
	struct content c;
	struct buf b = BUF_INIT;
	int64_t start;
	int i;

	for (i = 0; i < 1000; i++)
		buf_addf(&b, "Content-Type: multipart/mixed; boundary=b%d\n\n"
		    "--b%d\n", i, i);
	buf_adds(&b, "\nwords\n");
	repeat(&b, "--no boundary\n", 5000000);
	start = clock_mono_msecs();
	parse(&b, &c);
	ck_assert_int_lt(clock_mono_msecs() - start, 10000);
	ck_assert_int_eq(c.state, PARSE_PARTIAL);
	buf_release(&b);
}
END_TEST

#ifndef MAILHERD_SANITIZED
static long
peak_kb(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[200];
	long kb = 0;

	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, "VmHWM:", 6) == 0)
			kb = strtol(line + 6, NULL, 10);
	fclose(f);
	return kb;
}

/* A file of 40 MB whose `head` is followed by `filler`, then `tail`. */
static long
peak_of_file(const char *head, const char *filler, const char *tail,
    struct content *c)
{
	char path[] = "/tmp/mailherd-parts-XXXXXX";
	int fd = mkstemp(path), i;
	struct buf b = BUF_INIT;
	long before;

	ck_assert_int_ge(fd, 0);
	unlink(path);
	ck_assert_int_ge(write(fd, head, strlen(head)), 0);
	repeat(&b, filler, 400000);
	for (i = 0; i < 100; i++)
		ck_assert_int_eq(write(fd, b.data, b.len), (ssize_t)b.len);
	ck_assert_int_ge(write(fd, tail, strlen(tail)), 0);
	buf_release(&b);
	before = peak_kb();
	mime_parse_fd(arena, fd, (uint64_t)lseek(fd, 0, SEEK_END),
	    &mime_default_limits, c);
	close(fd);
	return peak_kb() - before;
}

START_TEST(memory_is_bounded)
{
	struct content c;
	long kb;

	if (heap_is_checked()) /* valgrind's own memory is no measure */
		return;
	kb = peak_of_file("Content-Type: text/html\n\n<style>",
	    "p { margin: 0 }\n", "</style>behind 40 MB", &c);
	ck_assert_str_eq(c.text, "behind 40 MB");
	ck_assert_int_lt(kb, 4096);
	kb = peak_of_file("Content-Type: application/ms-tnef\n"
	    "Content-Transfer-Encoding: base64\n\neJ8+IgEB",
	    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n",
	    "", &c);
	ck_assert_int_eq(c.state, PARSE_PARTIAL);
	ck_assert_int_lt(kb, 40 * 1024);
}
END_TEST
#endif

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
	Suite *suite = suite_create("mime parts");
	TCase *tc = tcase_create("parts");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, parts_are_read_as_people_read_them);
	tcase_add_test(tc, markup_takes_no_room);
	tcase_add_test(tc, text_that_is_cut_says_so);
	tcase_add_test(tc, parts_over_a_limit_leave_the_others);
	tcase_add_test(tc, hostile_structures_cost_linear_time);
	tcase_add_test(tc, open_boundaries_cost_linear_time);
#ifndef MAILHERD_SANITIZED
	tcase_add_test(tc, memory_is_bounded);
#endif
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
