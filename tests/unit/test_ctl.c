/*
 * test_ctl.c - arguments, server SPECs, the table of commands, and the client
 * of the control socket against a daemon that misbehaves.
 */
#include "ctl/commands.h"
#include "ctl/follow.h"
#include "ctl/socket.h"
#include "ctl/spec.h"

#include <check.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- arguments ---------------------------------------------------------- */

static const struct option_row options[] = {
	{ "account", 'a', "A", "", true },
	{ "limit", 'n', "N", "" },
	{ "watch", 'w', NULL, "" },
};

static struct args args;
static struct err err;
static char *words[16];

/* Splits at blanks. */
static int
parse(const char *line)
{
	static char copy[256];
	char *rest = copy, *word;
	int n = 0;

	snprintf(copy, sizeof(copy), "%s", line);
	while ((word = strsep(&rest, " ")) != NULL)
		if (*word != '\0')
			words[n++] = word;
	err = (struct err)ERR_INIT;
	return args_parse(&args, options, N_COLUMNS(options), n, words, &err);
}

START_TEST(options_may_stand_anywhere)
{
	ck_assert_int_eq(parse("one -a x two --limit=5 -w -- -three -"), 0);
	ck_assert_uint_eq(args.n_words, 4);
	ck_assert_str_eq(args.words[0], "one");
	ck_assert_str_eq(args.words[1], "two");
	ck_assert_str_eq(args.words[2], "-three");
	ck_assert_str_eq(args.words[3], "-");
	ck_assert_str_eq(args_value(&args, "account"), "x");
	ck_assert_str_eq(args_value(&args, "limit"), "5");
	ck_assert(args_has(&args, "watch"));
}
END_TEST

START_TEST(a_lone_dash_is_a_value_and_a_word)
{
	ck_assert_int_eq(parse("--account - -"), 0);
	ck_assert_str_eq(args_value(&args, "account"), "-");
	ck_assert_uint_eq(args.n_words, 1);
	ck_assert_int_eq(parse("-ax"), 0);
	ck_assert_str_eq(args_value(&args, "account"), "x");
	ck_assert_int_eq(parse("--account="), 0);
	ck_assert_str_eq(args_value(&args, "account"), "");
}
END_TEST

START_TEST(wrong_options_are_named)
{
	static const char *const cases[][2] = {
		{ "--wrong", "unknown option --wrong" },
		{ "-x", "unknown option -x" },
		{ "--limi 5", "unknown option --limi" },
		{ "--account", "option --account needs A" },
		{ "-w=1", "option --watch takes no value" },
		{ "--watch=1", "option --watch takes no value" },
	};

	for (size_t i = 0; i < N_COLUMNS(cases); i++) {
		ck_assert_int_eq(parse(cases[i][0]), -1);
		ck_assert_str_eq(err.text, cases[i][1]);
	}
}
END_TEST

START_TEST(required_options_and_numbers)
{
	int64_t n;

	ck_assert_int_eq(parse("-n 7"), 0);
	ck_assert_str_eq(args_missing(&args)->name, "account");
	ck_assert_int_eq(args_number(&args, "limit", 1, 9, 5, &n, &err), 0);
	ck_assert_int_eq(n, 7);
	ck_assert_int_eq(parse("-a x"), 0);
	ck_assert_ptr_null(args_missing(&args));
	ck_assert_int_eq(args_number(&args, "limit", 1, 9, 5, &n, &err), 0);
	ck_assert_int_eq(n, 5);
	for (const char *const *bad = (const char *const[]){ "-n 0", "-n 10",
	    "-n x", "-n 1x", NULL }; *bad != NULL; bad++) {
		ck_assert_int_eq(parse(*bad), 0);
		ck_assert_int_eq(args_number(&args, "limit", 1, 9, 5, &n,
		    &err), -1);
	}
}
END_TEST

START_TEST(sizes)
{
	int64_t n;

	ck_assert_int_eq(args_bytes("5G", &n, &err), 0);
	ck_assert_int_eq(n, 5368709120);
	ck_assert_int_eq(args_bytes("500m", &n, &err), 0);
	ck_assert_int_eq(n, 524288000);
	ck_assert_int_eq(args_bytes("17", &n, &err), 0);
	ck_assert_int_eq(n, 17);
	for (const char *const *bad = (const char *const[]){ "", "G", "1.5G",
	    "-1", "9999999999T", "5 G", "5GB", NULL }; *bad != NULL; bad++)
		ck_assert_int_eq(args_bytes(*bad, &n, &err), -1);
}
END_TEST

/* --- SPEC --------------------------------------------------------------- */

START_TEST(specs)
{
	static const struct {
		enum spec_service service;
		const char *text, *host;
		unsigned port;
		enum tls_mode tls;
	} cases[] = {
		{ SPEC_IMAP, "imap.example.org", "imap.example.org", 993,
		    TLS_IMPLICIT },
		{ SPEC_IMAP, "h,tls", "h", 993, TLS_IMPLICIT },
		{ SPEC_IMAP, "h,starttls", "h", 143, TLS_STARTTLS },
		{ SPEC_IMAP, "h,none", "h", 143, TLS_NONE },
		{ SPEC_IMAP, "h:993", "h", 993, TLS_IMPLICIT },
		{ SPEC_IMAP, "h:143", "h", 143, TLS_STARTTLS },
		{ SPEC_IMAP, "h:1143,none", "h", 1143, TLS_NONE },
		{ SPEC_IMAP, "[2001:db8::1]", "2001:db8::1", 993,
		    TLS_IMPLICIT },
		{ SPEC_IMAP, "[::1]:10143,starttls", "::1", 10143,
		    TLS_STARTTLS },
		{ SPEC_IMAP, "[fe80::1%eth0]:993", "fe80::1%eth0", 993,
		    TLS_IMPLICIT },
		{ SPEC_IMAP, "127.0.0.1:65535,tls", "127.0.0.1", 65535,
		    TLS_IMPLICIT },
		{ SPEC_SMTP, "h", "h", 465, TLS_IMPLICIT },
		{ SPEC_SMTP, "h,starttls", "h", 587, TLS_STARTTLS },
		{ SPEC_SMTP, "h:587", "h", 587, TLS_STARTTLS },
		{ SPEC_SMTP, "h:25,none", "h", 25, TLS_NONE },
	};

	for (size_t i = 0; i < N_COLUMNS(cases); i++) {
		struct spec spec;

		ck_assert_int_eq(spec_parse(cases[i].text, cases[i].service,
		    &spec, &err), 0);
		ck_assert_str_eq(spec.host, cases[i].host);
		ck_assert_uint_eq(spec.port, cases[i].port);
		ck_assert_int_eq(spec.tls, cases[i].tls);
	}
}
END_TEST

START_TEST(bad_specs)
{
	static const char *const cases[] = { "", ":993", ",tls", "h:",
		"h:0", "h:65536", "h:993x", "h:-1", "h: 993", "h,ssl",
		"h,TLS ", "h:993,", "2001:db8::1", "2001:db8::1,tls",
		"[::1", "[]:993", "[::1]x", "[::1]993", "/tmp/socket",
		"../x", "a b", "h\n", "-h", ".h", "user@host", "[::1/2]" };

	for (size_t i = 0; i < N_COLUMNS(cases); i++) {
		struct spec spec;

		err = (struct err)ERR_INIT;
		ck_assert_msg(spec_parse(cases[i], SPEC_IMAP, &spec, &err) ==
		    -1, "accepted: %s", cases[i]);
		ck_assert_int_eq(err.kind, ERR_PERMANENT);
	}
}
END_TEST

START_TEST(a_host_name_too_long_is_refused)
{
	char text[SPEC_HOST_SIZE + 10];
	struct spec spec;

	memset(text, 'a', sizeof(text));
	text[SPEC_HOST_SIZE - 1] = '\0';
	ck_assert_int_eq(spec_parse(text, SPEC_IMAP, &spec, &err), 0);
	text[SPEC_HOST_SIZE - 1] = 'a';
	text[SPEC_HOST_SIZE] = '\0';
	ck_assert_int_eq(spec_parse(text, SPEC_IMAP, &spec, &err), -1);
}
END_TEST

/* --- commands ----------------------------------------------------------- */

static const struct command *
find(const char *line, int *used)
{
	char copy[128], *rest = copy, *word, *argv[8];
	int n = 0;

	snprintf(copy, sizeof(copy), "%s", line);
	while ((word = strsep(&rest, " ")) != NULL)
		argv[n++] = word;
	err = (struct err)ERR_INIT;
	return command_find(n, argv, used, &err);
}

START_TEST(commands_of_one_and_two_words)
{
	int used;

	ck_assert_str_eq(find("status", &used)->name, "status");
	ck_assert_int_eq(used, 1);
	ck_assert_str_eq(find("account show ann", &used)->name,
	    "account show");
	ck_assert_int_eq(used, 2);
	ck_assert_str_eq(find("poll ann", &used)->name, "poll");
	ck_assert_int_eq(used, 1);
}
END_TEST

START_TEST(unknown_commands_get_a_hint)
{
	int used;

	ck_assert_ptr_null(find("user", &used));
	ck_assert_str_eq(err.text, "user what? add, list, active or delete");
	ck_assert_ptr_null(find("acount list", &used));
	ck_assert_ptr_nonnull(strstr(err.text, "\"account list\""));
	ck_assert_ptr_null(find("statsu", &used));
	ck_assert_ptr_nonnull(strstr(err.text, "\"status\""));
	ck_assert_ptr_null(find("xyzzy", &used));
	ck_assert_ptr_nonnull(strstr(err.text, "mailherdctl help"));
}
END_TEST

START_TEST(the_table_is_complete)
{
	for (size_t i = 0; i < n_commands; i++) {
		const struct command *c = &commands[i];

		ck_assert_ptr_nonnull(c->run);
		ck_assert_ptr_nonnull(c->help);
		ck_assert_uint_le(c->min, c->max);
		/* Two are the program's: -j and -h. */
		ck_assert_uint_le(c->n_options + 2, ARGS_OPTIONS_MAX);
		/* The overview fits 80 columns. */
		ck_assert_uint_le(strlen(c->help), 49);
		for (size_t k = 0; k < c->n_options; k++) {
			ck_assert_int_ne(c->options[k].letter, 'j');
			ck_assert_int_ne(c->options[k].letter, 'h');
			ck_assert_str_ne(c->options[k].name, "json");
			ck_assert_str_ne(c->options[k].name, "help");
		}
		for (size_t k = 0; k < i; k++)
			ck_assert_str_ne(c->name, commands[k].name);
	}
}
END_TEST

/* The manual page, as one string; NULL when it is not there to be read. */
static char *
read_manual(void)
{
	const char *srcdir = getenv("srcdir");
	struct buf text = BUF_INIT;
	char name[512], piece[4096];
	size_t n;
	FILE *f;

	snprintf(name, sizeof(name), "%s/man/mailherdctl.8",
	    srcdir != NULL ? srcdir : ".");
	f = fopen(name, "r");
	if (f == NULL)
		return NULL;
	while ((n = fread(piece, 1, sizeof(piece), f)) > 0)
		buf_add(&text, piece, n);
	fclose(f);
	return text.data;
}

START_TEST(the_manual_names_every_command_and_option)
{
	char *manual = read_manual(), text[128];

	if (manual == NULL) { /* run by hand, outside make check */
		ck_assert_ptr_null(getenv("srcdir"));
		return;
	}
	for (size_t i = 0; i < n_commands; i++) {
		snprintf(text, sizeof(text), "Cm %s", commands[i].name);
		ck_assert_msg(strstr(manual, text) != NULL, "no \"%s\"",
		    text);
		for (size_t k = 0; k < commands[i].n_options; k++) {
			snprintf(text, sizeof(text), "-%s",
			    commands[i].options[k].name);
			ck_assert_msg(strstr(manual, text) != NULL,
			    "no \"%s\"", text);
		}
	}
	free(manual);
}
END_TEST

/* --- progress ----------------------------------------------------------- */

START_TEST(rate_is_that_of_the_last_seconds)
{
	struct rate rate = { .n = 0 };

	ck_assert(rate_per_second(&rate) == 0);
	rate_note(&rate, 0, 100000); /* a resumed backfill starts high */
	ck_assert(rate_per_second(&rate) == 0);
	for (int i = 1; i <= 10; i++)
		rate_note(&rate, i * 1000, 100000 + i * 500);
	ck_assert(rate_per_second(&rate) > 499 && rate_per_second(&rate) < 501);
	/* It stalls: the rate goes to 0 when the window has passed. */
	for (int i = 11; i <= 40; i++)
		rate_note(&rate, i * 1000, 105000);
	ck_assert(rate_per_second(&rate) == 0);
}
END_TEST

START_TEST(bar_never_leaves_its_width)
{
	static const int64_t cases[][2] = { { 0, 0 }, { 0, 10 }, { 5, 10 },
		{ 10, 10 }, { 20, 10 } };

	display_init();
	display_force_colours(false);
	for (size_t i = 0; i < 5; i++) {
		struct buf out = BUF_INIT;

		progress_bar(&out, cases[i][0], cases[i][1], 12);
		ck_assert_uint_eq(display_width(buf_str(&out)), 12);
		buf_release(&out);
	}
}
END_TEST

/* --- control socket ----------------------------------------------------- */

static char dir[] = "/tmp/mailherd-ctl.XXXXXX";
static char path[128];

/* A daemon for one call that answers `reply` and hangs up. */
static pid_t
serve(const char *reply, size_t len)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int s = socket(AF_UNIX, SOCK_STREAM, 0);
	pid_t pid;

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", path);
	unlink(path);
	ck_assert_int_eq(bind(s, (struct sockaddr *)&sun, sizeof(sun)), 0);
	ck_assert_int_eq(listen(s, 1), 0);
	pid = fork();
	if (pid == 0) {
		int c = accept(s, NULL, NULL);
		char line[256];

		/* Byte by byte: the line must be put together. */
		if (read(c, line, sizeof(line)) <= 0)
			_exit(1);
		for (size_t i = 0; i < len; i++)
			if (send(c, reply + i, 1, MSG_NOSIGNAL) != 1)
				_exit(0);
		_exit(0);
	}
	close(s);
	return pid;
}

static int
call(const char *reply, json_t **reply_r)
{
	pid_t pid = serve(reply, strlen(reply));
	json_t *request = json_pack("{s:s}", "cmd", "status");
	int rc;

	err = (struct err)ERR_INIT;
	*reply_r = NULL;
	rc = socket_call(path, request, reply_r, &err);
	json_decref(request);
	waitpid(pid, NULL, 0);
	unlink(path);
	return rc;
}

START_TEST(replies_of_all_kinds)
{
	json_t *reply;

	ck_assert_int_eq(call("{\"ok\":true,\"owned\":3}\n", &reply), 0);
	ck_assert_int_eq(json_integer_value(json_object_get(reply, "owned")),
	    3);
	json_decref(reply);
	ck_assert_int_eq(call("{\"ok\":false,\"error\":\"no such account\"}\n",
	    &reply), -1);
	ck_assert_str_eq(err.text, "no such account");
	ck_assert_int_eq(err.kind, ERR_PERMANENT);
	ck_assert_int_eq(call("{\"ok\":false}\n", &reply), -1);
	ck_assert_int_eq(call("[]\n", &reply), -1);
	ck_assert_int_eq(call("rubbish\n", &reply), -1);
	ck_assert_int_eq(call("{\"ok\":true}", &reply), -1);
	ck_assert_int_eq(err.kind, ERR_TEMPORARY);
	ck_assert_int_eq(call("", &reply), -1);
}
END_TEST

START_TEST(nobody_listens)
{
	json_t *request = json_object(), *reply;
	pid_t pid;

	ck_assert_int_eq(socket_call(path, request, &reply, &err), -1);
	ck_assert_int_eq(err.kind, ERR_NETWORK);
	/* A stale socket file. */
	pid = serve("", 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	ck_assert_int_eq(socket_call(path, request, &reply, &err), -1);
	ck_assert_int_eq(err.kind, ERR_NETWORK);
	unlink(path);
	json_decref(request);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("ctl");
	TCase *tc = tcase_create("ctl");
	SRunner *runner;
	int failed;

	if (mkdtemp(dir) == NULL)
		return 99;
	snprintf(path, sizeof(path), "%s/socket", dir);
	tcase_add_test(tc, options_may_stand_anywhere);
	tcase_add_test(tc, a_lone_dash_is_a_value_and_a_word);
	tcase_add_test(tc, wrong_options_are_named);
	tcase_add_test(tc, required_options_and_numbers);
	tcase_add_test(tc, sizes);
	tcase_add_test(tc, specs);
	tcase_add_test(tc, bad_specs);
	tcase_add_test(tc, a_host_name_too_long_is_refused);
	tcase_add_test(tc, commands_of_one_and_two_words);
	tcase_add_test(tc, unknown_commands_get_a_hint);
	tcase_add_test(tc, the_table_is_complete);
	tcase_add_test(tc, the_manual_names_every_command_and_option);
	tcase_add_test(tc, rate_is_that_of_the_last_seconds);
	tcase_add_test(tc, bar_never_leaves_its_width);
	tcase_add_test(tc, replies_of_all_kinds);
	tcase_add_test(tc, nobody_listens);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	rmdir(dir);
	return failed == 0 ? 0 : 1;
}
