/*
 * test_connect.c - which of several PostgreSQL servers a session gets.
 *
 * Runs under tests/with-postgres.
 */
#include "store_world.h"

#include "store/session.h"

#include <bsd/string.h>
#include <check.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static struct world w;
static char silent[64]; /* directory of a server that says nothing */
static int silent_fd;

static void
open_world(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	world_open(&w);
	strlcpy(silent, "/tmp/mailherd-silent.XXXXXX", sizeof(silent));
	ck_assert_ptr_nonnull(mkdtemp(silent));
	snprintf(at.sun_path, sizeof(at.sun_path), "%s/.s.PGSQL.5432",
	    silent);
	silent_fd = socket(AF_UNIX, SOCK_STREAM, 0);
	ck_assert_int_eq(0, bind(silent_fd, (struct sockaddr *)&at,
	    sizeof(at)));
	ck_assert_int_eq(0, listen(silent_fd, 8));
}

static void
close_world(void)
{
	char path[128];

	close(silent_fd);
	snprintf(path, sizeof(path), "%s/.s.PGSQL.5432", silent);
	unlink(path);
	rmdir(silent);
	world_close(&w);
}

/* "SND": silent, nonexistent, the database. */
static const char *
conninfo_of(const char *hosts)
{
	const char *list = "", *host;

	for (; *hosts != '\0'; hosts++) {
		host = *hosts == 'S' ? silent :
		    *hosts == 'N'    ? "/nonexistent" :
				       PQhost(w.s->conn);
		list = arena_printf(w.arena, "%s%s%s", list,
		    *list != '\0' ? "," : "", host);
	}
	return arena_printf(w.arena, "%s host=%s connect_timeout=1",
	    world_db(), list);
}

/* F-B12: who is away or hangs is passed over, as often as there are others. */
START_TEST(the_host_that_answers_is_found)
{
	static const char *const lists[] = { "D", "ND", "DN", "NND", "SD",
		"DS", "SND", "SSD", "NSDS" };
	struct store *s;
	size_t i;

	for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		must(store_open(&s, conninfo_of(lists[i]), "test", &w.err),
		    &w);
		ck_assert_str_eq(PQhost(s->conn), PQhost(w.s->conn));
		store_close(&s);
	}
}
END_TEST

START_TEST(each_host_that_is_not_it_is_told)
{
	struct store *s;

	ck_assert_int_eq(-1, store_open(&s, conninfo_of("SN"), "test",
	    &w.err));
	ck_assert_int_eq(w.err.kind, ERR_DATABASE);
	ck_assert_ptr_nonnull(strstr(w.err.text, silent));
	ck_assert_ptr_nonnull(strstr(w.err.text, "timeout expired"));
	ck_assert_ptr_nonnull(strstr(w.err.text, "/nonexistent"));
}
END_TEST

/* A standby says the same of itself. */
START_TEST(who_takes_no_writes_is_not_the_database)
{
	static const char read_only[] =
	    "options='-c default_transaction_read_only=on'";
	struct store *s;

	ck_assert_int_eq(-1, store_open(&s, arena_printf(w.arena, "%s %s",
	    conninfo_of("D"), read_only), "test", &w.err));
	ck_assert_int_eq(w.err.kind, ERR_DATABASE);
	ck_assert_ptr_nonnull(strstr(w.err.text, "session is read-only"));
	must(store_open(&s, arena_printf(w.arena,
	    "%s %s target_session_attrs=any", conninfo_of("D"), read_only),
	    "test", &w.err), &w);
	store_close(&s);
}
END_TEST

START_TEST(a_list_of_hosts_with_a_hole_is_refused)
{
	static const char *const bad[] = { "host=a,b port=1,2,3",
		"host=a,b,c hostaddr=127.0.0.1,127.0.0.2", "host=a,,b",
		"host=/nonexistent,b port=1," };
	struct err err = ERR_INIT;
	struct store *s;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ck_assert_int_eq(-1, store_open(&s, bad[i], "test", &err));
		ck_assert_msg(err.kind == ERR_CONFIG, "%s: %s", bad[i],
		    err.text);
	}
}
END_TEST

static Suite *
make_suite(void)
{
	Suite *suite = suite_create("connect");
	TCase *t = tcase_create("hosts");

	tcase_add_checked_fixture(t, open_world, close_world);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, the_host_that_answers_is_found);
	tcase_add_test(t, each_host_that_is_not_it_is_told);
	tcase_add_test(t, who_takes_no_writes_is_not_the_database);
	tcase_add_test(t, a_list_of_hosts_with_a_hole_is_refused);
	suite_add_tcase(suite, t);
	return suite;
}

int
main(void)
{
	return world_run(make_suite());
}
