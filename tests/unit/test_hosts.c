/*
 * test_hosts.c - pace and memory per mail server.
 */
#include "master/hosts.h"

#include <check.h>

#define S 1000

static struct conf conf;
static struct hosts *hosts;
static struct host *host;

/* the one thing asked of src/conf */
int64_t
conf_host_cap(const struct conf *c, const char *name)
{
	(void)name;
	return c->per_host_conn_cap;
}

static void
setup(void)
{
	conf = (struct conf){ .per_host_conn_cap = 50, .backoff_max = 600,
		.host_connect_rate = 20 };
	hosts = hosts_new();
	host = hosts_acquire(hosts, "imap.example.org", 0);
}

static void
teardown(void)
{
	hosts_release(hosts, &host, 0);
	hosts_free(&hosts);
}

static void
complain(struct host *h, unsigned char account, bool is_limit, int64_t now)
{
	const struct uuid id = { .bytes = { account } };

	host_complains(h, &conf, &id, is_limit, 40, now);
}

/* How many may begin from `from` on, within a while. */
static unsigned
begin_all(int64_t from, int64_t msecs)
{
	int64_t now = from;
	unsigned n = 0;

	for (;;) {
		if (host_ready(host, &conf, now) > now)
			now = host_ready(host, &conf, now);
		if (now >= from + msecs)
			return n;
		host_begins(host, &conf, now);
		n++;
	}
}

/* R-TIER-6: 200 accounts turn hot at once. */
START_TEST(a_second_at_once_then_the_rate)
{
	unsigned n;

	ck_assert_uint_eq(begin_all(10 * S, 1), 20);
	n = begin_all(10 * S + 1, 9 * S);
	ck_assert_uint_ge(n, 9 * 20 - 1);
	ck_assert_uint_le(n, 9 * 20 + 1);
	/* after a rest it is the same again, not more */
	ck_assert_uint_eq(begin_all(3600 * S, 1), 20);
}
END_TEST

START_TEST(one_a_second_is_one_a_second)
{
	conf.host_connect_rate = 1;
	ck_assert_uint_eq(begin_all(5 * S, 1), 1);
	ck_assert_uint_eq(begin_all(5 * S + 1, 10 * S), 10);
}
END_TEST

START_TEST(names_have_no_case_and_one_memory)
{
	struct host *same = hosts_acquire(hosts, "IMAP.example.ORG", 1);
	struct host *other = hosts_acquire(hosts, "imap.example.net", 1);

	ck_assert_ptr_eq(same, host);
	ck_assert_ptr_ne(other, host);
	hosts_release(hosts, &same, 1);
	ck_assert_ptr_null(same);
	hosts_release(hosts, &other, 1);
}
END_TEST

/* R-CONN-3 */
START_TEST(one_account_is_not_the_host)
{
	int64_t now;

	for (now = 1 * S; now < 500 * S; now += 10 * S)
		complain(host, 1, true, now);
	complain(host, 2, true, now);
	ck_assert_uint_eq(host_cap(host, &conf, now), 50);
	ck_assert_int_eq(host_rate(host, &conf, now), 20);
	ck_assert_int_eq(host_throttled_until(host, &conf, now), 0);
}
END_TEST

START_TEST(several_that_are_told_long_apart_are_not_the_host)
{
	complain(host, 1, true, 1 * S);
	complain(host, 2, true, 400 * S);
	complain(host, 3, true, 800 * S);
	ck_assert_uint_eq(host_cap(host, &conf, 800 * S), 50);
}
END_TEST

START_TEST(several_accounts_narrow_the_host_for_a_while)
{
	unsigned char i;

	for (i = 1; i <= 3; i++)
		complain(host, i, true, 100 * S);
	ck_assert_uint_eq(host_cap(host, &conf, 100 * S), 30);
	ck_assert_int_eq(host_rate(host, &conf, 100 * S), 20);
	ck_assert_int_eq(host_throttled_until(host, &conf, 101 * S), 700 * S);
	for (i = 4; i <= 6; i++)
		complain(host, i, true, 200 * S);
	ck_assert_uint_eq(host_cap(host, &conf, 200 * S), 22);
	/* and comes back in steps */
	ck_assert_uint_eq(host_cap(host, &conf, 801 * S), 30);
	ck_assert_uint_eq(host_cap(host, &conf, 1401 * S), 50);
	ck_assert_int_eq(host_throttled_until(host, &conf, 1401 * S), 0);
}
END_TEST

START_TEST(several_accounts_slow_the_host_and_never_stop_it)
{
	int64_t now = 100 * S;
	unsigned char i;

	for (i = 1; i <= 3; i++)
		complain(host, i, false, now);
	ck_assert_int_eq(host_rate(host, &conf, now), 10);
	ck_assert_uint_eq(host_cap(host, &conf, now), 50);
	for (i = 0; i < 60; i++)
		complain(host, i, i % 2 == 0, now);
	ck_assert_int_ge(host_rate(host, &conf, now), 1);
	ck_assert_uint_ge(host_cap(host, &conf, now), 1);
}
END_TEST

/* The last account of a host leaves; the host does not forget for it. */
START_TEST(what_was_asked_outlives_the_accounts)
{
	unsigned char i;

	for (i = 1; i <= 3; i++)
		complain(host, i, true, 100 * S);
	hosts_release(hosts, &host, 100 * S);
	host = hosts_acquire(hosts, "imap.example.org", 101 * S);
	ck_assert_uint_eq(host_cap(host, &conf, 101 * S), 30);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("hosts");
	TCase *tc = tcase_create("hosts");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_second_at_once_then_the_rate);
	tcase_add_test(tc, one_a_second_is_one_a_second);
	tcase_add_test(tc, names_have_no_case_and_one_memory);
	tcase_add_test(tc, one_account_is_not_the_host);
	tcase_add_test(tc, several_that_are_told_long_apart_are_not_the_host);
	tcase_add_test(tc, several_accounts_narrow_the_host_for_a_while);
	tcase_add_test(tc, several_accounts_slow_the_host_and_never_stop_it);
	tcase_add_test(tc, what_was_asked_outlives_the_accounts);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
