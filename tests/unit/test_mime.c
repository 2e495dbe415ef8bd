/*
 * test_mime.c - messages as the world sends them.
 *
 * Most of it is data: every file of tests/corpus against the values of its
 * index.tsv, read at run time through $srcdir.
 */
#include "config.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/xmem.h"
#include "mime/mime.h"

#include <check.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
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

static void
parse_string(const char *raw, struct content *c)
{
	parse(raw, strlen(raw), c);
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

#ifndef MAILHERD_SANITIZED
static struct {
	const char *raw;
	size_t len;
} kept[500];
static size_t n_kept;

static void
keep_file(char **row, const char *raw, size_t len)
{
	(void)row;
	ck_assert_uint_lt(n_kept, 500);
	kept[n_kept].raw = raw;
	kept[n_kept++].len = len;
}

/* From here on who opens a file is killed. */
static void
forbid_open(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
		    offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_openat, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = { 4, filter };

	ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program),
	    0);
}

/* Whatever charset a message names: no converter is loaded for it. */
START_TEST(parsing_opens_no_file)
{
	static const char part[] = "Content-Type: multipart/mixed; "
	    "boundary=b\n\n--b\nContent-Type: text/plain; charset=cp1046; "
	    "name*=ibm1046''%e4\nContent-Disposition: attachment; "
	    "filename=\"\xe4=?ibm937?q?a?=\"\n\nx\n--b--\n";
	struct content c;
	size_t i;

	each_file(keep_file);
	signal(SIGSYS, SIG_DFL);
	forbid_open();
	for (i = 0; i < n_kept; i++)
		parse(kept[i].raw, kept[i].len, &c);
	parse_string(part, &c);
	ck_assert_uint_eq(c.n_attachments, 1);
}
END_TEST
#endif

START_TEST(bare_cr_is_a_line_end)
{
	each_file(check_bare_cr);
}
END_TEST

/* --- generators of the corpus's README ----------------------------------- */

START_TEST(g1_ten_thousand_recipients)
{
	struct buf b = BUF_INIT;
	struct content c;
	int i;

	buf_adds(&b, "Subject: G1\r\nTo: r0001@example.net");
	for (i = 2; i <= 5000; i++)
		buf_addf(&b, ",\r\n r%04d@example.net", i);
	buf_adds(&b, "\r\nCc: =?utf-8?Q?N=C3=A4me_0001?= <r0001@example.net>");
	for (i = 2; i <= 5000; i++)
		buf_addf(&b, ",\r\n =?utf-8?Q?N=C3=A4me_%04d?= "
		    "<r%04d@example.net>", i, i);
	buf_adds(&b, "\r\n\r\nText.\r\n");
	parse(b.data, b.len, &c);
	ck_assert_uint_eq(c.n_recipients, 10000);
	ck_assert_str_eq(c.subject, "G1");
	ck_assert_str_eq(c.recipients[4999].addr, "r5000@example.net");
	ck_assert_str_eq(c.recipients[9999].name, "Näme 5000");
	ck_assert_int_eq(c.recipients[9999].kind, CC);
	buf_release(&b);
}
END_TEST

START_TEST(g2_header_of_a_megabyte)
{
	struct buf b = BUF_INIT;
	struct content c;
	int i;

	buf_adds(&b, "From: a@example.org\r\nX-Big: ");
	for (i = 0; i < 1048576; i++)
		buf_addc(&b, 'a');
	buf_adds(&b, "\r\nSubject: G2\r\n\r\nText.\r\n");
	parse(b.data, b.len, &c);
	ck_assert_str_eq(c.from_addr, "a@example.org");
	ck_assert_str_eq(c.subject, "G2");
	ck_assert_str_eq(c.snippet, "Text.");
	ck_assert_int_eq(c.state, PARSE_OK);
	buf_release(&b);
}
END_TEST

/* The filler is kept off the places where a buffer might end. */
START_TEST(g6_filler_of_any_length_changes_nothing)
{
	size_t len, n;
	char *raw = read_file(corpus_path("m145-dsn.eml"), &len);
	const char *at = strstr(raw, "Content-Type:");
	struct arena *outer = arena;
	char path[] = "/tmp/mailherd-mime-XXXXXX";
	int fd = mkstemp(path);
	struct content c, d;
	struct buf b = BUF_INIT;

	ck_assert_int_ge(fd, 0);
	unlink(path);
	parse(raw, len, &c);
	for (n = 0; n <= 4200; n++) {
		arena = arena_new("filler");
		buf_reset(&b);
		buf_add(&b, raw, (size_t)(at - raw));
		buf_adds(&b, "X-Filler: ");
		memset(buf_reserve(&b, n), 'f', n);
		b.len += n;
		buf_adds(&b, "\r\n");
		buf_add(&b, at, len - (size_t)(at - raw));
		ck_assert_int_eq(ftruncate(fd, 0), 0);
		ck_assert_int_eq(pwrite(fd, b.data, b.len, 0), (ssize_t)b.len);
		mime_parse_fd(arena, fd, b.len, &mime_default_limits, &d);
		ck_assert_str_eq(c.text, d.text);
		ck_assert_str_eq(c.subject, d.subject);
		ck_assert_uint_eq(d.n_attachments, 2);
		ck_assert_uint_eq(d.attachments[0].size, 161);
		ck_assert_uint_eq(d.attachments[1].size, 107);
		arena_free(&arena);
	}
	arena = outer;
	close(fd);
	buf_release(&b);
}
END_TEST

START_TEST(g8_message_id_of_15000_letters)
{
	struct buf b = BUF_INIT, id = BUF_INIT;
	struct content c;
	int i;

	for (i = 0; i < 15000; i++)
		buf_addc(&id, 'm');
	buf_adds(&id, "@example.org");
	buf_addf(&b, "Message-ID: <%s>\r\nReferences: <a%s>\r\n\r\n", id.data,
	    id.data);
	parse(b.data, b.len, &c);
	ck_assert_str_eq(c.message_id, id.data);
	ck_assert_uint_eq(c.n_references, 1);
	ck_assert_str_eq(c.references[0] + 1, id.data);
	buf_release(&b);
	buf_release(&id);
}
END_TEST

START_TEST(g9_references_of_2000_ids)
{
	struct buf b = BUF_INIT;
	struct content c;
	int i;

	buf_adds(&b, "References:");
	for (i = 0; i < 2000; i++)
		buf_addf(&b, "\r\n <t%d@example.org>", i);
	buf_adds(&b, "\r\n\r\n");
	parse(b.data, b.len, &c);
	ck_assert_uint_eq(c.n_references, 2000);
	ck_assert_str_eq(c.references[0], "t0@example.org");
	ck_assert_str_eq(c.references[1999], "t1999@example.org");
	buf_release(&b);
}
END_TEST

/* --- hostile input ------------------------------------------------------- */

static void
repeat(struct buf *b, const char *s, int n)
{
	while (n-- > 0)
		buf_adds(b, s);
}

START_TEST(too_many_parts_leave_the_header)
{
	struct buf b = BUF_INIT;
	struct content c;

	buf_adds(&b, "Subject: S\n"
	    "Content-Type: multipart/mixed; boundary=b\n\n");
	repeat(&b, "--b\n\nabcd\n", 100000);
	parse(b.data, b.len, &c);
	ck_assert_int_eq(c.state, PARSE_PARTIAL);
	ck_assert_str_eq(c.state_reason, "too many parts");
	ck_assert_str_eq(c.subject, "S");
	ck_assert_uint_eq(c.n_attachments, 0);
	buf_release(&b);
}
END_TEST

START_TEST(header_of_a_part_is_limited)
{
	struct buf b = BUF_INIT;
	struct content c;

	buf_adds(&b, "Content-Type: multipart/mixed; boundary=b\n\n--b\nX: ");
	repeat(&b, "aaaaaaaaaa", 200000);
	buf_adds(&b, "\n\nhi\n");
	parse(b.data, b.len, &c);
	ck_assert_int_eq(c.state, PARSE_PARTIAL);
	buf_release(&b);
}
END_TEST

START_TEST(text_around_parts_is_not_kept)
{
	struct buf b = BUF_INIT;
	struct content c;

	buf_adds(&b, "Content-Type: multipart/mixed; boundary=\"b \"\n\n");
	repeat(&b, "a preamble without end\n", 100000);
	buf_adds(&b, "--b\n\nhi\n--b--\n");
	repeat(&b, "--b\n\nan epilogue\n", 100000);
	parse(b.data, b.len, &c);
	ck_assert_int_eq(c.state, PARSE_OK);
	ck_assert_str_eq(c.snippet, "hi");
	buf_reset(&b);
	buf_adds(&b, "Content-Type: multipart/mixed; boundary=b\n\n"
	    "--b\nContent-Type: multipart/mixed; boundary=c\n\n");
	repeat(&b, "a preamble without end\n", 100000);
	buf_adds(&b, "--c\n\nhi\n--c--\n--b--\n");
	parse(b.data, b.len, &c);
	ck_assert_int_eq(c.state, PARSE_PARTIAL);
	buf_release(&b);
}
END_TEST

START_TEST(depth_does_no_harm)
{
	struct buf b = BUF_INIT;
	struct content c;
	int i;

	for (i = 0; i < 3000; i++)
		buf_addf(&b, "Content-Type: multipart/mixed; boundary=b%d\n\n"
		    "--b%d\n", i, i);
	buf_adds(&b, "\nhi\n");
	parse(b.data, b.len, &c);
	ck_assert_int_eq(c.state, PARSE_PARTIAL);
	buf_reset(&b);
	buf_adds(&b, "Content-Type: multipart/mixed; boundary=b\n\n--b\n");
	repeat(&b, "Content-Type: message/rfc822\n\nFrom: a:a:a:a:\n", 3000);
	parse(b.data, b.len, &c);
	ck_assert_uint_eq(c.n_attachments, 1);
	ck_assert_str_eq(c.attachments[0].content_type, "message/rfc822");
	buf_release(&b);
}
END_TEST

START_TEST(nested_groups_do_no_harm)
{
	struct buf b = BUF_INIT;
	struct content c;

	buf_adds(&b, "From: ");
	repeat(&b, "a:", 200000);
	buf_adds(&b, "ann@example.org\nTo: ");
	repeat(&b, "\"\\", 100000);
	buf_adds(&b, "\nCc: ");
	repeat(&b, "(", 200000);
	buf_adds(&b, "\n\nhi\n");
	parse(b.data, b.len, &c);
	ck_assert_str_eq(c.from_addr, "ann@example.org");
	buf_release(&b);
}
END_TEST

/* --- details that no file of the corpus shows ---------------------------- */

static void
check_date(const char *value, const char *want)
{
	struct content c;
	char out[40];

	parse_string(arena_printf(arena, "Date: %s\n\n", value), &c);
	ck_assert_msg(strcmp(want, c.has_sent_at ? clock_format_utc(out,
	    sizeof(out), c.sent_at_secs) : "NONE") == 0, "%s: want %s, got %s",
	    value, want, c.has_sent_at ? out : "NONE");
}

START_TEST(dates_of_all_kinds)
{
	check_date("Tue Mar  3 10:00:00 2026", "2026-03-03T10:00:00Z");
	check_date("Tue Mar  3 10:00:00 2026 +0100", "2026-03-03T09:00:00Z");
	check_date("3-Mar-2026 10:00:00 +0545", "2026-03-03T04:15:00Z");
	check_date("2026-03-03T09:00:00Z", "2026-03-03T09:00:00Z");
	check_date("2026-03-03 10:00:00.123 +01:00", "2026-03-03T09:00:00Z");
	check_date("Tue, 03 March 2026 10:00 PM", "2026-03-03T22:00:00Z");
	check_date("Sun, 29 Feb 2026 10:00:00 +0000", "NONE");
	check_date("Sat, 29 Feb 2020 10:00:00 +0000", "2020-02-29T10:00:00Z");
	check_date("Tue, 3 Mar 126 10:00:00 +0000", "2026-03-03T10:00:00Z");
	check_date("3 Mar 2026 23:59:60 -0330", "2026-03-04T03:30:00Z");
	check_date("3 Mar 2026 10:00:00 GMT+02:00", "2026-03-03T08:00:00Z");
	check_date("(x) Tue, (y (z)) 3 Mar 2026 10:00:00 (",
	    "2026-03-03T10:00:00Z");
	check_date("31 Dec 1969 23:59:59 +0000", "1969-12-31T23:59:59Z");
	check_date("3 Mar 2026", "2026-03-03T00:00:00Z");
	check_date("", "NONE");
	check_date("yesterday", "NONE");
	check_date("99999999999999999999 Mar 2026", "NONE");
	check_date("3 Mar 12345 10:00:00", "NONE");
}
END_TEST

static void
check_base(const char *subject, const char *want, bool is_reply)
{
	struct content c;

	parse_string(arena_printf(arena, "Subject: %s\n\n", subject), &c);
	ck_assert_str_eq(c.base_subject, want);
	ck_assert_msg(c.is_reply == is_reply, "%s", subject);
}

START_TEST(base_subjects)
{
	check_base("AW: SV: RE: 回复: Re[2]: Quarterly report",
	    "Quarterly report", true);
	check_base("[dev] Release 1.2", "Release 1.2", false);
	check_base("Re: [dev] RE: Release  1.2 (fwd)", "Release 1.2", true);
	check_base("Fwd: Plan", "Plan", false);
	check_base("Re：Plan", "Plan", true);
	check_base("re(3) : Plan", "Plan", true);
	check_base("Regarding: Plan", "Regarding: Plan", false);
	check_base("[only]", "[only]", false);
	check_base("Re:", "", true);
	check_base("Research: a", "Research: a", false);
}
END_TEST

static void
check_from(const char *value, const char *want)
{
	struct content c;

	parse_string(arena_printf(arena, "From: %s\n\n", value), &c);
	ck_assert_msg(strcmp(join_addresses(c.senders, c.n_senders, 0), want)
	    == 0, "%s: want %s, got %s", value, want,
	    join_addresses(c.senders, c.n_senders, 0));
}

START_TEST(addresses_are_recovered)
{
	check_from("ann@example.org (Ann Lee)", "Ann Lee <ann@example.org>");
	check_from("Ann ann@example.org", "Ann <ann@example.org>");
	check_from("\"Ann <ann@example.org>", "Ann <ann@example.org>");
	check_from("<@a.example,@b.example:ann@example.org>",
	    "ann@example.org");
	check_from("Ann < ann@example.org >", "Ann <ann@example.org>");
	check_from("ann..lee.@example.org", "ann..lee.@example.org");
	check_from("<<ann@example.org>>", "ann@example.org");
	check_from("mailto:ann@example.org", "ann@example.org");
	check_from("=?utf-8?q?Ann_=3Cann=40example=2Eorg=3E?=",
	    "Ann <ann@example.org>");
	check_from("Ann <ann@example.org> Bob <bob@example.org>",
	    "Ann <ann@example.org>; Bob <bob@example.org>");
	check_from("'Ann Lee' <ann@example.org>",
	    "Ann Lee <ann@example.org>");
	check_from("A: B: <ann@example.org>, C <c@example.org>;;",
	    "ann@example.org; C <c@example.org>");
	check_from("Ann <ann@example.org", "Ann <ann@example.org>");
	check_from("=?utf-8?q?Doe=2C_John?= <j@example.org>",
	    "Doe, John <j@example.org>");
	check_from("<用户@example.org>", "用户@example.org");
	check_from("root", "root <>");
	/* L028 */
	check_from("\"Microsoft Exchange Server\" <.MISSING-HOST-NAME.>",
	    "Microsoft Exchange Server <>");
}
END_TEST

START_TEST(the_first_header_counts)
{
	struct content c;

	parse_string("Subject: one\nFrom: a@example.org\nSubject: two\n"
	    "From: b@example.org\n\ntext", &c);
	ck_assert_str_eq(c.subject, "one");
	ck_assert_uint_eq(c.n_senders, 1);
	parse_string("Subject: one\nno blank line before\nthis body\n", &c);
	ck_assert_str_eq(c.snippet, "no blank line before this body");
	parse_string("Subject: one\na slip\nTo: b@example.org\n\ntext\n", &c);
	ck_assert_str_eq(c.recipients[0].addr, "b@example.org");
	ck_assert_str_eq(c.snippet, "text");
}
END_TEST

START_TEST(a_slip_longer_than_a_chunk)
{
	char path[] = "/tmp/mailherd-mime-XXXXXX";
	int fd = mkstemp(path);
	struct buf b = BUF_INIT;
	struct content c;

	ck_assert_int_ge(fd, 0);
	unlink(path);
	buf_adds(&b, "Subject: x\n");
	repeat(&b, "no header ", 10000);
	buf_adds(&b, "\nTo: b@example.org\n\nhi\n");
	ck_assert_int_eq(write(fd, b.data, b.len), (ssize_t)b.len);
	parse(b.data, b.len, &c);
	ck_assert_uint_eq(c.n_recipients, 1);
	mime_parse_fd(arena, fd, b.len, &mime_default_limits, &c);
	ck_assert_str_eq(c.subject, "x");
	ck_assert_uint_eq(c.n_recipients, 1);
	ck_assert_str_eq(c.snippet, "hi");
	close(fd);
	buf_release(&b);
}
END_TEST

START_TEST(a_blank_plain_part_yields_to_html)
{
	struct content c;

	parse_string("Content-Type: multipart/alternative; boundary=b\n\n"
	    "--b\nContent-Type: text/plain\n\n \n\n--b\n"
	    "Content-Type: text/html\n\n<p>Hello</p>\n--b--\n", &c);
	ck_assert_str_eq(c.snippet, "Hello");
	parse_string("Content-Type: multipart/alternative; boundary=b\n\n"
	    "--b\nContent-Type: text/plain\n\nplain\n--b\n"
	    "Content-Type: multipart/mixed; boundary=c\n\n"
	    "--c\nContent-Type: text/html\n\n<p>Hello</p>\n--c\n"
	    "Content-Type: application/pdf; name=a.pdf\n\nx\n--c--\n"
	    "--b--\n", &c);
	ck_assert_str_eq(c.snippet, "plain");
	ck_assert_uint_eq(c.n_attachments, 1);
	ck_assert(c.has_attachments);
}
END_TEST

static void
check_html(const char *html, const char *want)
{
	struct content c;

	parse_string(arena_printf(arena, "Content-Type: text/html; "
	    "charset=utf-8\n\n%s", html), &c);
	ck_assert_msg(strcmp(c.text, want) == 0, "%s\nwant %s\ngot  %s", html,
	    want, c.text);
}

START_TEST(html_becomes_text)
{
	check_html("<title>t</title><style>p{}</style><p>a</p><p>b<br>c",
	    "a\n\nb\nc");
	check_html("a<script>if (a < b) '</p>'</script>b", "a\nb");
	check_html("a &lt;b&gt; &amp;amp; &#8364;&#x20AC; &bogus; & &#128;",
	    "a <b> &amp; €€ &bogus; & €");
	check_html("<a title=\"x > y\">link</a> 1 < 2", "link 1 < 2");
	check_html("<table><tr><td>A<td>B<tr><td>C</table>", "A B\nC");
	check_html("<pre>a\nb</pre>", "a\nb");
	check_html("x<!-- <p>hidden --> y <!-- never closed", "x y");
	check_html("sh&shy;y&zwnj; z&nbsp;&nbsp;w", "shy z w");
	check_html("<", "<");
	check_html("&", "&");
}
END_TEST

START_TEST(an_unknown_encoding_is_none)
{
	struct content c;

	parse_string("Content-Transfer-Encoding: x-odd\n\na=3Db\n", &c);
	ck_assert_str_eq(c.snippet, "a=3Db");
}
END_TEST

START_TEST(charsets_that_are_none)
{
	struct content c;

	parse_string("Content-Type: text/plain; charset=\"_iso-2022-jp$ESC\""
	    "\n\nd\xE9j\xE0\n", &c);
	ck_assert_str_eq(c.snippet, "déjà");
	parse_string("Subject: =?utf-8?b?w6k?= =?UTF-8?q?=C3?= "
	    "=?utf-8?B?qQ==?= =?iso-8859-1?q?=E9?= x\n\n", &c);
	ck_assert_str_eq(c.subject, "ééé x");
	parse_string("Content-Type: text/plain; charset=koi8-r\n\n"
	    "\xF0\xD2\xC9\xD7\xC5\xD4", &c);
	ck_assert_str_eq(c.snippet, "Привет");
}
END_TEST

/* No part of the reading may look at the same bytes again and again. */
START_TEST(time_is_linear)
{
	static const char *const bombs[][3] = {
		{ "Subject: ", "=?a?q?", "\n\nhi\n" },
		{ "From: ", "a,(\\", "\n\nhi\n" },
		{ "From: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx@", ":", "\n\nhi\n" },
		{ "References: ", "<a<", ">\n\nhi\n" },
		{ "Content-Type: text/plain; ", " a=b c", "\n\nhi\n" },
		{ "Content-Type: text/plain;", "          ", "x\n\nhi\n" },
		{ "Content-Type: text/html\n\n", "<a =\"", "" },
		{ "Content-Type: text/html\n\n", "<b ='>\"&", "" },
		{ "\n", "begin 644 a\n#0V%T\n", "" },
		{ "Content-Transfer-Encoding: base64\n\n", "YQ==\n\n", "" },
		{ "Content-Transfer-Encoding: quoted-printable\n\n", "= ",
		    "" },
		{ "Subject: x\n", "slip\nX: y\n", "\nhi\n" },
	};
	struct buf b = BUF_INIT;
	struct content c;
	int64_t start;
	size_t i;

	for (i = 0; i < sizeof(bombs) / sizeof(bombs[0]); i++) {
		buf_reset(&b);
		buf_adds(&b, bombs[i][0]);
		while (b.len < 1000000)
			buf_adds(&b, bombs[i][1]);
		buf_adds(&b, bombs[i][2]);
		start = clock_mono_msecs();
		parse(b.data, b.len, &c);
		/* Takes 30 ms; were it the square, minutes. */
		ck_assert_msg(clock_mono_msecs() - start < 10000, "%s",
		    bombs[i][1]);
	}
	buf_release(&b);
}
END_TEST

#ifndef MAILHERD_SANITIZED
static long
status_kb(const char *name)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[200];
	long kb = 0;

	if (f == NULL)
		return 0;
	while (fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, name, strlen(name)) == 0)
			kb = strtol(line + strlen(name), NULL, 10);
	fclose(f);
	return kb;
}

START_TEST(a_file_of_40_mb_costs_little_memory)
{
	static const char head[] = "Content-Type: multipart/mixed; "
	    "boundary=b\n\n--b\n\nHello\n--b\n"
	    "Content-Type: application/pdf; name=a.pdf\n"
	    "Content-Transfer-Encoding: base64\n\n";
	char path[] = "/tmp/mailherd-mime-XXXXXX";
	int fd = mkstemp(path);
	struct buf b = BUF_INIT;
	struct content c;
	uint64_t size;
	long before;
	int i;

	ck_assert_int_ge(fd, 0);
	unlink(path);
	ck_assert_int_gt(write(fd, head, sizeof(head) - 1), 0);
	repeat(&b, "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xt\n",
	    1000);
	for (i = 0; i < 755; i++)
		ck_assert_int_eq(write(fd, b.data, b.len), (ssize_t)b.len);
	buf_release(&b);
	size = (uint64_t)lseek(fd, 0, SEEK_END);
	before = status_kb("VmHWM:");
	mime_parse_fd(arena, fd, size, &mime_default_limits, &c);
	ck_assert_str_eq(c.snippet, "Hello");
	ck_assert_uint_eq(c.attachments[0].size, 755u * 1000 * 39);
	ck_assert_int_lt(status_kb("VmHWM:") - before, 8192);
	close(fd);
}
END_TEST
#endif

START_TEST(a_bounce_refers_to_what_it_returns)
{
	size_t len;
	char *raw = read_file(corpus_path("m145-dsn.eml"), &len);
	struct content c;

	parse(raw, len, &c);
	ck_assert_uint_eq(c.n_references, 1);
	ck_assert_str_eq(c.references[0], "orig-1@example.org");
	ck_assert(!c.has_attachments);
}
END_TEST

START_TEST(marks_of_attachments)
{
	static const struct {
		const char *file;
		bool has_attachments;
	} files[] = { { "m091-inline-cid.eml", false },
		{ "m093-cid-with-attachment-disposition.eml", false },
		{ "m094-inline-disposition-unreferenced.eml", true },
		{ "m141-pgp-signed.eml", false },
		{ "m101-uuencode-in-text.eml", true },
		{ "m140-winmail-dat.eml", true } };
	struct content c;
	size_t i, len;
	char *raw;

	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		raw = read_file(corpus_path(files[i].file), &len);
		parse(raw, len, &c);
		ck_assert_msg(c.has_attachments == files[i].has_attachments,
		    "%s", files[i].file);
	}
}
END_TEST

START_TEST(reading_errors_are_told)
{
	char path[] = "/tmp/mailherd-mime-XXXXXX";
	int fd = mkstemp(path);
	struct content c;

	ck_assert_int_ge(fd, 0);
	unlink(path);
	ck_assert_int_eq(write(fd, "Subject: x\n\nhello", 17), 17);
	mime_parse_fd(arena, fd, 1000, &mime_default_limits, &c);
	ck_assert_str_eq(c.subject, "x");
	ck_assert_int_eq(c.state, PARSE_PARTIAL);
	close(fd);
	mime_unparsed(arena, "died \x01 twice", &c);
	check_storable(&c);
	ck_assert_int_eq(c.state, PARSE_UNPARSED);
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
#ifndef MAILHERD_SANITIZED
	tcase_add_test(tc, parsing_opens_no_file);
#endif
	tcase_add_test(tc, bare_cr_is_a_line_end);
	tcase_add_test(tc, g1_ten_thousand_recipients);
	tcase_add_test(tc, g2_header_of_a_megabyte);
	tcase_add_test(tc, g6_filler_of_any_length_changes_nothing);
	tcase_add_test(tc, g8_message_id_of_15000_letters);
	tcase_add_test(tc, g9_references_of_2000_ids);
	tcase_add_test(tc, too_many_parts_leave_the_header);
	tcase_add_test(tc, header_of_a_part_is_limited);
	tcase_add_test(tc, text_around_parts_is_not_kept);
	tcase_add_test(tc, depth_does_no_harm);
	tcase_add_test(tc, nested_groups_do_no_harm);
	tcase_add_test(tc, dates_of_all_kinds);
	tcase_add_test(tc, base_subjects);
	tcase_add_test(tc, addresses_are_recovered);
	tcase_add_test(tc, the_first_header_counts);
	tcase_add_test(tc, a_slip_longer_than_a_chunk);
	tcase_add_test(tc, a_blank_plain_part_yields_to_html);
	tcase_add_test(tc, html_becomes_text);
	tcase_add_test(tc, an_unknown_encoding_is_none);
	tcase_add_test(tc, charsets_that_are_none);
	tcase_add_test(tc, time_is_linear);
#ifndef MAILHERD_SANITIZED
	tcase_add_test(tc, a_file_of_40_mb_costs_little_memory);
#endif
	tcase_add_test(tc, a_bounce_refers_to_what_it_returns);
	tcase_add_test(tc, marks_of_attachments);
	tcase_add_test(tc, reading_errors_are_told);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
