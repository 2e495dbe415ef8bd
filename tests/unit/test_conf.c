/*
 * test_conf.c - settings: table, file, environment, -o, reload; quirks.
 */
#include "conf/conf.h"
#include "conf/options.h"
#include "conf/quirks.h"

#include <check.h>
#include <sys/stat.h>
#include <unistd.h>

static struct err err;
static struct conf *conf;

static void
clean_environment(void)
{
	char name[64];
	size_t i;

	for (i = 0; i < n_options; i++)
		unsetenv(option_env(&options[i], name, sizeof(name)));
}

static void
free_conf(void)
{
	conf_free(&conf);
}

static int
load(const char *text)
{
	conf_free(&conf);
	return conf_load_text(&conf, "t.conf", text, strlen(text), NULL, 0,
	    &err);
}

static int
load_with(const char *text, const char *override)
{
	conf_free(&conf);
	return conf_load_text(&conf, "t.conf", text, strlen(text), &override,
	    1, &err);
}

static void
refused(const char *text, const char *message)
{
	ck_assert_int_eq(load(text), -1);
	ck_assert_int_eq(err.kind, ERR_CONFIG);
	ck_assert_str_eq(err.text, message);
	ck_assert_ptr_null(conf);
}

START_TEST(presets_are_those_of_the_spec)
{
	ck_assert_int_eq(load(""), 0);
	ck_assert_int_eq(conf->worker_role, ROLE_SYNC);
	ck_assert_int_eq(conf->max_accounts_per_worker, 400);
	ck_assert_int_eq(conf->lease_ttl, 60);
	ck_assert_int_eq(conf->lease_renew, 20);
	ck_assert_int_eq(conf->poll_warm, 180);
	ck_assert_int_eq(conf->poll_cold, 900);
	ck_assert_int_eq(conf->tier_hot_activity_h, 24);
	ck_assert_int_eq(conf->tier_session_grace_min, 30);
	ck_assert_int_eq(conf->tier_cold_after_d, 3);
	ck_assert_int_eq(conf->hot_budget_per_worker, 250);
	ck_assert_int_eq(conf->per_host_conn_cap, 50);
	ck_assert_int_eq(conf->bulk_concurrency, 2);
	ck_assert_int_eq(conf->parse_concurrency, 4);
	ck_assert_int_eq(conf->stream_parse_mb, 8);
	ck_assert_str_eq(conf->search_backend, "pg");
	ck_assert_int_eq(conf->log_level, LOG_LEVEL_INFO);
}
END_TEST

START_TEST(later_sources_override_earlier_ones)
{
	ck_assert_int_eq(load("poll_warm = 10\nworker_role = jobs\n"), 0);
	ck_assert_int_eq(conf->poll_warm, 10);
	ck_assert_int_eq(conf->worker_role, ROLE_JOBS);
	setenv("POLL_WARM", "11", 1);
	ck_assert_int_eq(load("poll_warm = 10\n"), 0);
	ck_assert_int_eq(conf->poll_warm, 11);
	ck_assert_int_eq(load_with("poll_warm = 10\n", "poll_warm=12"), 0);
	ck_assert_int_eq(conf->poll_warm, 12);
}
END_TEST

START_TEST(the_login_name_is_not_the_user_to_run_as)
{
	setenv("USER", "root", 1);
	ck_assert_int_eq(load("user = mailherd\n"), 0);
	ck_assert_str_eq(conf->user, "mailherd");
	setenv("MAILHERD_USER", "other", 1);
	ck_assert_int_eq(load("user = mailherd\n"), 0);
	ck_assert_str_eq(conf->user, "other");
}
END_TEST

START_TEST(a_bad_value_names_file_line_setting_and_range)
{
	refused("# comment\n\nlease_ttl = 3\n",
	    "t.conf:3: lease_ttl = 3: must be a whole number from 5 to 3600 "
	    "(seconds)");
	refused("# 'a\n// b\n/* c\nd */ redis = \"#x\" # e\n",
	    "t.conf:4: redis = #x: must be unix:/path or host:port");
	refused("pool_max = many\n",
	    "t.conf:1: pool_max = many: must be a whole number from 1 to "
	    "10000");
	refused("pool_max = 99999999999999999999\n",
	    "t.conf:1: pool_max = 99999999999999999999: must be a whole number "
	    "from 1 to 10000");
	refused("pool_max = \" 5\"\n",
	    "t.conf:1: pool_max =  5: must be a whole number from 1 to 10000");
	refused("worker_role = both\n",
	    "t.conf:1: worker_role = both: must be sync or jobs");
	refused("search_backend = solr\n",
	    "t.conf:1: search_backend = solr: must be pg or none");
	refused("blob_dir = blobs\n",
	    "t.conf:1: blob_dir = blobs: must be an absolute path");
	refused("blob_dir = \"\"\n",
	    "t.conf:1: blob_dir = : must be an absolute path");
	refused("redis = localhost\n",
	    "t.conf:1: redis = localhost: must be unix:/path or host:port");
	refused("instance = a/b\n",
	    "t.conf:1: instance = a/b: must be 1 to 32 letters, digits, "
	    "dashes, underscores");
}
END_TEST

START_TEST(environment_and_command_line_say_so)
{
	setenv("LEASE_TTL", "", 1);
	refused("", "environment LEASE_TTL: lease_ttl = : must be a whole "
	    "number from 5 to 3600 (seconds)");
	unsetenv("LEASE_TTL");
	ck_assert_int_eq(load_with("", "lease_ttl=x"), -1);
	ck_assert_str_eq(err.text, "-o: lease_ttl = x: must be a whole number "
	    "from 5 to 3600 (seconds)");
	ck_assert_int_eq(load_with("", "lease_tll=60"), -1);
	ck_assert_str_eq(err.text, "-o lease_tll: no such setting; "
	    "mailherd.conf(5) lists them");
	ck_assert_int_eq(load_with("", "lease_ttl"), -1);
	ck_assert_str_eq(err.text, "-o lease_ttl: name=value expected");
}
END_TEST

START_TEST(unknown_names_and_broken_grammar_stop_the_start)
{
	refused("lease_tll = 60\n", "t.conf:1: no such option 'lease_tll'");
	ck_assert_int_eq(load("lease_ttl 60\n"), -1);
	ck_assert_int_eq(strncmp(err.text, "t.conf:1: ", 10), 0);
	ck_assert_int_eq(load("host \"a\" {\n"), -1);
	ck_assert_int_eq(load("/* host \n"), -1);
	ck_assert_int_eq(load("database = \"unterminated\n"), -1);
	ck_assert_int_eq(load("host \"a\" { conn_caps = 3 }\n"), -1);
	ck_assert_int_eq(load("lease_ttl = { 5, 6 }\n"), -1);
	ck_assert_int_eq(conf_load_text(&conf, "t.conf", "a\0b", 3, NULL, 0,
	    &err), -1);
}
END_TEST

START_TEST(contradictions_name_both_places)
{
	refused("lease_ttl = 30\nlease_renew = 15\n",
	    "t.conf:2: lease_renew = 15 contradicts lease_ttl = 30 (t.conf:1): "
	    "it must be less than half of it");
	refused("lease_ttl = 40\n",
	    "preset: lease_renew = 20 contradicts lease_ttl = 40 (t.conf:1): "
	    "it must be less than half of it");
	refused("heartbeat_ttl = 19\n", "t.conf:1: heartbeat_ttl = 19 "
	    "contradicts heartbeat_interval = 10 (preset): it must be at least "
	    "twice as long");
	ck_assert_int_eq(load("poll_cold = 5\n"), -1);
	ck_assert_int_eq(load("pool_min = 9\n"), -1);
	ck_assert_int_eq(load("backoff_first = 700\n"), -1);
	ck_assert_int_eq(load("stream_parse_mb = 300\n"), -1);
	ck_assert_int_eq(load("lease_ttl = 5\nlease_renew = 1\n"), 0);
}
END_TEST

START_TEST(host_sections_and_folder_names)
{
	ck_assert_int_eq(load(
	    "host \"IMAP.example.org\" { conn_cap = 200 }\n"
	    "host \"other.example\" {\n\tconn_cap = 3\n}\n"
	    "folder_names = { \"Gesendet=sent\", \"a=b=trash\" }\n"), 0);
	ck_assert_int_eq(conf_host_cap(conf, "imap.EXAMPLE.org"), 200);
	ck_assert_int_eq(conf_host_cap(conf, "other.example"), 3);
	ck_assert_int_eq(conf_host_cap(conf, "third.example"), 50);
	ck_assert_uint_eq(conf->n_folder_names, 2);
	ck_assert_str_eq(conf->folder_names[0].name, "Gesendet");
	ck_assert_str_eq(conf->folder_names[0].role, "sent");
	ck_assert_str_eq(conf->folder_names[1].name, "a=b");
	refused("\nhost \"a\" { conn_cap = 0 }\n", "t.conf:2: host \"a\": "
	    "conn_cap = 0: must be a whole number from 1 to 10000");
	ck_assert_int_eq(load("folder_names = { \"Sent\" }\n"), -1);
	ck_assert_int_eq(strncmp(err.text, "t.conf:1: folder_names", 22), 0);
	ck_assert_int_eq(load("folder_names = { \"Sent=post\" }\n"), -1);
}
END_TEST

START_TEST(a_directory_and_a_missing_file_are_errors)
{
	ck_assert_int_eq(conf_load(&conf, "/", NULL, 0, &err), -1);
	ck_assert_str_eq(err.text, "/: not a regular file");
	ck_assert_int_eq(conf_load(&conf, "/nowhere/x.conf", NULL, 0, &err),
	    -1);
	ck_assert_int_eq(err.kind, ERR_CONFIG);
}
END_TEST

START_TEST(what_is_printed_can_be_loaded_and_holds_no_secret)
{
	char text[20000];
	FILE *out = fmemopen(text, sizeof(text), "w");

	ck_assert_int_eq(load("redis_password = hunter2\n"
	    "database = \"host=/tmp password=hunter2\"\n"
	    "redis_prefix = \"a\\\"b\\\\c\"\n"
	    "host \"a.example\" { conn_cap = 7 }\n"
	    "folder_names = { \"Gesendet=sent\", \"Papierkorb=trash\" }\n"),
	    0);
	conf_print(conf, out);
	fclose(out);
	ck_assert_ptr_null(strstr(text, "hunter2"));
	ck_assert_int_eq(load(text), 0);
	ck_assert_str_eq(conf->redis_prefix, "a\"b\\c");
	ck_assert_int_eq(conf_host_cap(conf, "a.example"), 7);
	ck_assert_uint_eq(conf->n_folder_names, 2);
}
END_TEST

START_TEST(reload_takes_what_may_change_and_names_the_rest)
{
	struct conf *running;
	char restart[200];

	ck_assert_int_eq(load("poll_warm = 10\nredis_db = 1\n"
	    "rawlog_dir = /a\n"), 0);
	running = conf;
	conf = NULL;
	ck_assert_int_eq(load("poll_warm = 20\nredis_db = 2\nuser = x\n"
	    "rawlog_dir = /b\nhost \"h\" { conn_cap = 9 }\n"), 0);
	ck_assert_str_eq(conf_adopt(running, conf, restart, sizeof(restart)),
	    "redis_db, user");
	ck_assert_int_eq(running->poll_warm, 20);
	ck_assert_int_eq(running->redis_db, 1);
	ck_assert_str_eq(running->rawlog_dir, "/b");
	ck_assert_int_eq(conf_host_cap(running, "h"), 9);
	conf_free(&running);
}
END_TEST

START_TEST(the_control_socket_is_named_after_role_and_instance)
{
	char path[200];

	ck_assert_int_eq(load("worker_role = jobs\ninstance = b\n"), 0);
	conf_control_socket(conf, path, sizeof(path));
	ck_assert_ptr_nonnull(strstr(path, "/mailherd/jobs-b.sock"));
	ck_assert_int_eq(load("control_socket = /tmp/x.sock\n"), 0);
	ck_assert_str_eq(conf_control_socket(conf, path, sizeof(path)),
	    "/tmp/x.sock");
}
END_TEST

/* --- quirks ------------------------------------------------------------------ */

static struct quirks_table *quirks;

static int
load_quirks(const char *text)
{
	quirks_free(&quirks);
	return quirks_load_text(&quirks, "q.conf", text, strlen(text), &err);
}

START_TEST(matching_quirks_add_up)
{
	struct quirks q;

	ck_assert_int_eq(load_quirks(
	    "server \"one\" {\n hosts = { \"mail.example\" }\n"
	    " no_qresync = true\n idle_secs = 170\n conn_cap = 5\n}\n"
	    "server \"two\" {\n greeting = { \"Gimap\" }\n"
	    " files_sent_copy = yes\n idle_secs = 55\n}\n"
	    "server \"three\" {\n capability = { \"X-Y\" }\n"
	    " no_idle = on\n}\n"), 0);
	quirks_match(quirks, "imap.MAIL.example.", "* OK gimap ready",
	    "IMAP4rev1 x-y", &q);
	ck_assert_str_eq(q.name, "one");
	ck_assert(q.no_qresync && q.files_sent_copy && q.no_idle);
	ck_assert_int_eq(q.idle_secs, 55);
	ck_assert_int_eq(q.conn_cap, 5);
	quirks_match(quirks, "fakemail.example", NULL, "X-YZ X-", &q);
	ck_assert_str_eq(q.name, "");
	ck_assert(!q.no_qresync && !q.no_idle);
	quirks_match(quirks, "mail.example", NULL, NULL, &q);
	ck_assert(q.no_qresync);
	quirks_match(NULL, "mail.example", NULL, NULL, &q);
	ck_assert(!q.no_qresync);
}
END_TEST

START_TEST(quirks_that_make_no_sense_are_refused)
{
	ck_assert_int_eq(load_quirks("server \"a\" { no_idle = true }\n"), -1);
	ck_assert_int_eq(err.kind, ERR_CONFIG);
	ck_assert_int_eq(load_quirks("server \"a\" {\n hosts = { \"\" } }\n"),
	    -1);
	ck_assert_int_eq(load_quirks("server \"a\" {\n hosts = { \"b\" }\n"
	    " idle_secs = 99999 }\n"), -1);
	ck_assert_int_eq(load_quirks("server \"a\" { no_idel = true }\n"), -1);
	ck_assert_str_eq(err.text, "q.conf:1: no such option 'no_idel'");
	ck_assert_int_eq(quirks_load(&quirks, "/nowhere/q.conf", &err), -1);
	ck_assert_int_eq(err.kind, ERR_GONE);
	ck_assert_int_eq(quirks_load(&quirks, "", &err), 0);
	quirks_free(&quirks);
}
END_TEST

/* --- what is installed --------------------------------------------------------- */

/* With the comment sign before each option taken away. */
static char *
uncomment(const char *path)
{
	char line[500], *text = calloc(1, 100000);
	size_t used = 0;
	FILE *f = fopen(path, "r");

	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f) != NULL)
		used += (size_t)snprintf(text + used, 100000 - used, "%s",
		    line[0] == '#' && line[1] != ' ' && line[1] != '\n' ?
			line + 1 : line);
	fclose(f);
	return text;
}

START_TEST(the_sample_files_load)
{
	const char *srcdir = getenv("srcdir");
	char path[500], *text;
	struct quirks q;

	if (srcdir == NULL)
		return; /* not under make check */
	snprintf(path, sizeof(path), "%s/etc/mailherd.conf", srcdir);
	ck_assert_int_eq(conf_load(&conf, path, NULL, 0, &err), 0);
	text = uncomment(path);
	ck_assert_msg(load(text) == 0, "%s", err.text);
	ck_assert_uint_eq(conf->n_hosts, 1);
	ck_assert_uint_eq(conf->n_folder_names, 2);
	free(text);
	snprintf(path, sizeof(path), "%s/etc/quirks.conf", srcdir);
	ck_assert_msg(quirks_load(&quirks, path, &err) == 0, "%s", err.text);
	quirks_match(quirks, "imap.gmail.com", NULL, NULL, &q);
	ck_assert(q.files_sent_copy);
	quirks_match(quirks, "p03.mail.me.com", NULL, NULL, &q);
	ck_assert(q.no_qresync);
	quirks_free(&quirks);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("conf");
	TCase *tc = tcase_create("all");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tc, clean_environment, free_conf);
	tcase_add_test(tc, presets_are_those_of_the_spec);
	tcase_add_test(tc, later_sources_override_earlier_ones);
	tcase_add_test(tc, the_login_name_is_not_the_user_to_run_as);
	tcase_add_test(tc, a_bad_value_names_file_line_setting_and_range);
	tcase_add_test(tc, environment_and_command_line_say_so);
	tcase_add_test(tc, unknown_names_and_broken_grammar_stop_the_start);
	tcase_add_test(tc, contradictions_name_both_places);
	tcase_add_test(tc, host_sections_and_folder_names);
	tcase_add_test(tc, a_directory_and_a_missing_file_are_errors);
	tcase_add_test(tc, what_is_printed_can_be_loaded_and_holds_no_secret);
	tcase_add_test(tc, reload_takes_what_may_change_and_names_the_rest);
	tcase_add_test(tc,
	    the_control_socket_is_named_after_role_and_instance);
	tcase_add_test(tc, matching_quirks_add_up);
	tcase_add_test(tc, quirks_that_make_no_sense_are_refused);
	tcase_add_test(tc, the_sample_files_load);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
