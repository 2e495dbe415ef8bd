/*
 * test_budgets.c - budgets: caps, waiting in order, deadlines, dead children.
 */
#include "base/xmem.h"
#include "master/budgets.h"

#include <bsd/string.h>
#include <check.h>
#include <strings.h>

static struct conf conf = { .per_host_conn_cap = 10, .parse_concurrency = 2,
	.db_conn_cap = 3 };

/* Of conf.c; the test links little. */
int64_t
conf_host_cap(const struct conf *c, const char *host)
{
	return strcasecmp(host, "small.example") == 0 ? 1 :
	    c->per_host_conn_cap;
}

/* The last answer of each child. */
static enum { NOTHING, YES, NO } answers[100];
static unsigned n_answers;

static void
on_answer(void *arg, uint32_t generation, const struct msg_grant *grant)
{
	(void)arg;
	answers[generation] = grant->is_granted ? YES : NO;
	n_answers++;
}

static struct budgets *budgets;

static void
setup(void)
{
	memset(answers, 0, sizeof(answers));
	n_answers = 0;
	budgets = budgets_new(&conf, 1, on_answer, NULL);
}

static void
teardown(void)
{
	budgets_free(&budgets);
}

static const struct uuid nobody;
static size_t account_cap; /* 0: the usual number */

static int
want(uint32_t generation, enum resource resource, const char *host,
    bool is_idle, int64_t wait, const struct uuid *account, int64_t now)
{
	struct msg_want msg = { .want_id = 1, .resource = resource,
		.is_idle = is_idle, .wait_msecs = wait };

	strlcpy(msg.host, host, sizeof(msg.host));
	return budgets_acquire(budgets, generation, account, account_cap, &msg,
	    now);
}

START_TEST(host_cap_holds_whatever_the_case_of_the_name)
{
	uint32_t g;

	for (g = 0; g < 10; g++) {
		want(g, RESOURCE_SOCKET, g % 2 ? "imap.example" :
		    "IMAP.example", false, 0, &nobody, 0);
		ck_assert_int_eq(answers[g], YES);
	}
	want(10, RESOURCE_SOCKET, "imap.example", false, 0, &nobody, 0);
	ck_assert_int_eq(answers[10], NO);
	want(11, RESOURCE_SOCKET, "other.example", false, 0, &nobody, 0);
	ck_assert_int_eq(answers[11], YES);
	ck_assert_uint_eq(budgets_host_in_use(budgets, "imap.example"), 10);
	ck_assert_uint_eq(budgets_in_use(budgets, RESOURCE_SOCKET), 11);
}
END_TEST

/* R-CONN-2 */
START_TEST(idle_never_takes_the_last_fifth)
{
	uint32_t g;

	for (g = 0; g < 8; g++)
		want(g, RESOURCE_SOCKET, "h", true, 0, &nobody, 0);
	ck_assert_int_eq(answers[7], YES);
	want(8, RESOURCE_SOCKET, "h", true, 0, &nobody, 0);
	ck_assert_int_eq(answers[8], NO);
	want(9, RESOURCE_SOCKET, "h", false, 0, &nobody, 0);
	ck_assert_int_eq(answers[9], YES);
	/* a host with one connection has none for IDLE */
	want(10, RESOURCE_SOCKET, "small.example", true, 0, &nobody, 0);
	ck_assert_int_eq(answers[10], NO);
	want(11, RESOURCE_SOCKET, "small.example", false, 0, &nobody, 0);
	ck_assert_int_eq(answers[11], YES);
}
END_TEST

START_TEST(waiting_is_in_order_and_ends)
{
	want(1, RESOURCE_PARSE, "", false, 0, &nobody, 0);
	want(2, RESOURCE_PARSE, "", false, 0, &nobody, 0);
	want(3, RESOURCE_PARSE, "", false, 1000, &nobody, 0);
	want(4, RESOURCE_PARSE, "", false, 5000, &nobody, 0);
	want(5, RESOURCE_PARSE, "", false, 5000, &nobody, 0);
	ck_assert_int_eq(answers[3], NOTHING);
	ck_assert_int_eq(budgets_expire(budgets, 999), 1000);
	ck_assert_int_eq(budgets_expire(budgets, 1000), 5000);
	ck_assert_int_eq(answers[3], NO);
	budgets_release(budgets, 1, 1, 1500);
	ck_assert_int_eq(answers[4], YES);
	ck_assert_int_eq(answers[5], NOTHING);
	budgets_release(budgets, 2, 1, 6000); /* too late for 5 */
	ck_assert_int_eq(answers[5], NO);
	ck_assert_uint_eq(budgets_waiting(budgets), 0);
}
END_TEST

START_TEST(an_idle_one_that_waits_stops_no_poll)
{
	uint32_t g;

	for (g = 0; g < 8; g++)
		want(g, RESOURCE_SOCKET, "h", true, 0, &nobody, 0);
	want(20, RESOURCE_SOCKET, "h", true, 60000, &nobody, 0);
	want(21, RESOURCE_SOCKET, "h", false, 60000, &nobody, 0);
	ck_assert_int_eq(answers[20], NOTHING);
	ck_assert_int_eq(answers[21], YES);
	budgets_release_child(budgets, 21, 10);
	ck_assert_int_eq(answers[20], NOTHING);
	budgets_release_child(budgets, 3, 10);
	ck_assert_int_eq(answers[20], YES);
}
END_TEST

START_TEST(a_session_outlives_the_account_it_was_opened_for)
{
	struct uuid a;
	struct msg_want session = { .want_id = 2,
		.resource = RESOURCE_DATABASE };

	uuid_generate(&a);
	want(1, RESOURCE_ACCOUNT, "", false, 0, &a, 0);
	ck_assert_int_eq(budgets_acquire(budgets, 1, &a, 0, &session, 0), 0);
	budgets_release_work(budgets, 1, 0);
	ck_assert_uint_eq(budgets_in_use(budgets, RESOURCE_ACCOUNT), 0);
	ck_assert_uint_eq(budgets_in_use(budgets, RESOURCE_DATABASE), 1);
	budgets_release_child(budgets, 1, 0);
	ck_assert_uint_eq(budgets_in_use(budgets, RESOURCE_DATABASE), 0);
}
END_TEST

START_TEST(one_child_at_a_time_logs_in_to_an_account)
{
	struct uuid a, b;

	uuid_generate(&a);
	uuid_generate(&b);
	want(1, RESOURCE_LOGIN, "", false, 0, &a, 0);
	want(2, RESOURCE_LOGIN, "", false, 9000, &a, 0);
	want(3, RESOURCE_LOGIN, "", false, 9000, &a, 0);
	want(4, RESOURCE_LOGIN, "", false, 0, &b, 0);
	want(5, RESOURCE_LOGIN, "", false, 0, &nobody, 0);
	want(6, RESOURCE_LOGIN, "", false, 0, &nobody, 0);
	ck_assert_int_eq(answers[1], YES);
	ck_assert_int_eq(answers[2], NOTHING);
	ck_assert_int_eq(answers[4], YES);
	ck_assert_int_eq(answers[5], YES);
	ck_assert_int_eq(answers[6], YES);
	budgets_release(budgets, 1, 1, 10);
	ck_assert_int_eq(answers[2], YES);
	ck_assert_int_eq(answers[3], NOTHING);
	budgets_release_child(budgets, 2, 20); /* killed */
	ck_assert_int_eq(answers[3], YES);
	/* A pool child that goes on to another account. */
	budgets_release_work(budgets, 3, 30);
	want(7, RESOURCE_LOGIN, "", false, 0, &a, 30);
	ck_assert_int_eq(answers[7], YES);
}
END_TEST

START_TEST(a_dead_child_leaves_nothing_behind)
{
	struct uuid a;

	uuid_generate(&a);
	want(1, RESOURCE_SOCKET, "h", false, 0, &a, 0);
	want(2, RESOURCE_ACCOUNT, "", false, 0, &a, 0);
	want(3, RESOURCE_ACCOUNT, "", false, 0, &a, 0);
	want(4, RESOURCE_ACCOUNT, "", false, 9000, &a, 0);
	ck_assert_int_eq(answers[4], NOTHING);
	budgets_release_child(budgets, 1, 0);
	budgets_release_child(budgets, 2, 0);
	ck_assert_int_eq(answers[4], YES);
	budgets_release_child(budgets, 3, 0);
	budgets_release_child(budgets, 4, 0);
	ck_assert_uint_eq(budgets_in_use(budgets, RESOURCE_ACCOUNT), 0);
	ck_assert_uint_eq(budgets_in_use(budgets, RESOURCE_SOCKET), 0);
	ck_assert_uint_eq(budgets_host_in_use(budgets, "h"), 0);
}
END_TEST

START_TEST(one_database_session_is_kept_for_the_clerk)
{
	want(1, RESOURCE_DATABASE, "", false, 0, &nobody, 0);
	want(2, RESOURCE_DATABASE, "", false, 0, &nobody, 0);
	want(3, RESOURCE_DATABASE, "", false, 0, &nobody, 0);
	ck_assert_int_eq(answers[2], YES);
	ck_assert_int_eq(answers[3], NO);
}
END_TEST

START_TEST(nonsense_is_refused)
{
	struct msg_want msg = { .resource = RESOURCE_PARSE,
		.wait_msecs = INT64_MAX };
	uint32_t i;
	int result = 0;

	want(1, RESOURCE_PARSE, "", false, 0, &nobody, 0);
	ck_assert_int_eq(want(1, RESOURCE_PARSE, "", false, 0, &nobody, 0), -1);
	for (i = 10; i < 1000 && result == 0; i++) {
		msg.want_id = i;
		result = budgets_acquire(budgets, 2, &nobody, 0, &msg, 0);
	}
	ck_assert_int_eq(result, -1);
	ck_assert_uint_le(budgets_waiting(budgets), 32);
	budgets_release(budgets, 7, 7, 0);
	/* nobody waits for ever */
	budgets_expire(budgets, 600000);
	ck_assert_uint_eq(budgets_waiting(budgets), 0);
}
END_TEST

/* --- the gate (R-CONN-1) ------------------------------------------------ */

static uint64_t asked[10], given_back[10];
static size_t asked_cap;
static unsigned n_asked, n_given_back;

static void
on_ask(void *arg, const struct uuid *account, size_t cap, uint64_t tag)
{
	asked_cap = cap;
	(void)arg;
	ck_assert(!uuid_is_null(account));
	asked[n_asked++] = tag;
}

static void
on_leave(void *arg, uint64_t tag)
{
	(void)arg;
	given_back[n_given_back++] = tag;
}

static struct uuid
gated(void)
{
	struct budgets_gate gate = { .ask = on_ask, .give_back = on_leave };
	struct uuid id;

	n_asked = n_given_back = 0;
	budgets_set_gate(budgets, &gate);
	uuid_generate(&id);
	return id;
}

START_TEST(connection_of_an_account_waits_for_the_gate)
{
	struct uuid id = gated();

	want(1, RESOURCE_ACCOUNT, "", false, 0, &id, 0);
	ck_assert_int_eq(answers[1], NOTHING);
	ck_assert_uint_eq(n_asked, 1);
	budgets_answer_gate(budgets, asked[0], true, 5);
	ck_assert_int_eq(answers[1], YES);
	budgets_answer_gate(budgets, asked[0], false, 6); /* nobody asked */
	ck_assert_uint_eq(budgets_in_use(budgets, RESOURCE_ACCOUNT), 1);
	budgets_release(budgets, 1, 1, 9);
	ck_assert_uint_eq(n_given_back, 1);
	ck_assert_uint_eq(given_back[0], asked[0]);
	/* other resources, and nobody's account, have no gate */
	want(2, RESOURCE_ACCOUNT, "", false, 0, &nobody, 0);
	ck_assert_int_eq(answers[2], YES);
	want(3, RESOURCE_SOCKET, "imap.example", false, 0, &id, 0);
	ck_assert_int_eq(answers[3], YES);
	ck_assert_uint_eq(n_asked, 1);
}
END_TEST

START_TEST(place_is_kept_while_the_gate_is_asked)
{
	struct uuid id = gated();
	uint32_t g;

	for (g = 1; g <= 3; g++)
		want(g, RESOURCE_ACCOUNT, "", false, 1000, &id, 0);
	ck_assert_uint_eq(n_asked, 2); /* the third waits for a place */
	budgets_answer_gate(budgets, asked[0], true, 1);
	budgets_release(budgets, 1, 1, 2);
	ck_assert_uint_eq(n_asked, 3);
}
END_TEST

/* A server known to allow one connection (quirks: conn_cap). */
START_TEST(cap_of_the_server_is_heeded_here_and_at_the_gate)
{
	struct uuid id = gated();

	account_cap = 1;
	want(1, RESOURCE_ACCOUNT, "h", false, 1000, &id, 0);
	want(2, RESOURCE_ACCOUNT, "h", false, 1000, &id, 0);
	ck_assert_uint_eq(n_asked, 1);
	ck_assert_uint_eq(asked_cap, 1);
	budgets_release(budgets, 1, 1, 2);
	ck_assert_uint_eq(n_asked, 2);
	account_cap = 50; /* never more than the usual number */
	want(3, RESOURCE_ACCOUNT, "h", false, 0, &id, 2);
	ck_assert_uint_eq(n_asked, 3);
	want(4, RESOURCE_ACCOUNT, "h", false, 0, &id, 2);
	ck_assert_int_eq(answers[4], NO);
	account_cap = 0;
}
END_TEST

START_TEST(after_a_no_at_the_gate_it_is_asked_again_until_the_deadline)
{
	struct uuid id = gated();

	want(1, RESOURCE_ACCOUNT, "", false, 2500, &id, 0);
	budgets_answer_gate(budgets, asked[0], false, 100);
	ck_assert_int_eq(answers[1], NOTHING);
	ck_assert_uint_eq(budgets_in_use(budgets, RESOURCE_ACCOUNT), 0);
	ck_assert_int_eq(budgets_expire(budgets, 200), 1100);
	ck_assert_uint_eq(n_asked, 1);
	ck_assert_int_eq(budgets_expire(budgets, 1100), -1);
	ck_assert_uint_eq(n_asked, 2);
	budgets_answer_gate(budgets, asked[1], false, 1600);
	ck_assert_int_eq(budgets_expire(budgets, 1600), 2500);
	budgets_expire(budgets, 2500);
	ck_assert_int_eq(answers[1], NO);
	/* who does not wait is refused at once */
	want(2, RESOURCE_ACCOUNT, "", false, 0, &id, 3000);
	budgets_answer_gate(budgets, asked[2], false, 3001);
	ck_assert_int_eq(answers[2], NO);
}
END_TEST

START_TEST(child_that_dies_while_the_gate_is_asked_leaves_nothing)
{
	struct uuid id = gated();

	want(1, RESOURCE_ACCOUNT, "", false, 1000, &id, 0);
	budgets_release_child(budgets, 1, 1);
	ck_assert_uint_eq(n_given_back, 1);
	budgets_answer_gate(budgets, asked[0], true, 2);
	ck_assert_int_eq(answers[1], NOTHING);
	ck_assert_uint_eq(budgets_in_use(budgets, RESOURCE_ACCOUNT), 0);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("budgets");
	TCase *tc = tcase_create("budgets");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, host_cap_holds_whatever_the_case_of_the_name);
	tcase_add_test(tc, idle_never_takes_the_last_fifth);
	tcase_add_test(tc, waiting_is_in_order_and_ends);
	tcase_add_test(tc, an_idle_one_that_waits_stops_no_poll);
	tcase_add_test(tc, a_session_outlives_the_account_it_was_opened_for);
	tcase_add_test(tc, one_child_at_a_time_logs_in_to_an_account);
	tcase_add_test(tc, a_dead_child_leaves_nothing_behind);
	tcase_add_test(tc, one_database_session_is_kept_for_the_clerk);
	tcase_add_test(tc, nonsense_is_refused);
	tcase_add_test(tc, connection_of_an_account_waits_for_the_gate);
	tcase_add_test(tc, place_is_kept_while_the_gate_is_asked);
	tcase_add_test(tc,
	    cap_of_the_server_is_heeded_here_and_at_the_gate);
	tcase_add_test(tc,
	    after_a_no_at_the_gate_it_is_asked_again_until_the_deadline);
	tcase_add_test(tc,
	    child_that_dies_while_the_gate_is_asked_leaves_nothing);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
