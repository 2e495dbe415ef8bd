/*
 * test_policy.c - tiers, schedule, pauses: the pure decisions of the master.
 */
#include "ipc/messages.h"
#include "master/policy.h"

#include <check.h>

#define NOW 1800000000
#define HOUR 3600
#define DAY 86400

static const struct conf conf = {
	.poll_warm = 180, .poll_cold = 900, .claim_interval = 10,
	.tier_hot_activity_h = 24, .tier_cold_after_d = 3,
	.backoff_first = 2, .backoff_max = 600, .auth_pause = 60,
};

START_TEST(tier_follows_session_mail_and_activity)
{
	static const struct {
		struct tier_facts facts;
		enum tier tier;
	} rows[] = {
		{ { .has_session = true }, TIER_HOT },
		{ { .last_mail_secs = NOW - 23 * HOUR }, TIER_HOT },
		{ { .last_mail_secs = NOW - 25 * HOUR }, TIER_WARM },
		{ { .last_active_secs = NOW - 60 }, TIER_WARM },
		{ { .last_active_secs = NOW - 3 * DAY - 1 }, TIER_COLD },
		{ { .last_mail_secs = NOW - 4 * DAY }, TIER_COLD },
		{ { .last_mail_secs = 0 }, TIER_COLD },
		/* dated into the future by somebody */
		{ { .last_mail_secs = NOW + 30 * DAY }, TIER_COLD },
		{ { .last_mail_secs = NOW + 60 }, TIER_HOT },
		{ { .has_session = true, .is_pinned = true,
		      .pin = TIER_COLD }, TIER_COLD },
	};
	const char *rule;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		ck_assert_msg(policy_tier(&conf, &rows[i].facts, NOW, &rule) ==
		    rows[i].tier, "row %zu: %s", i, rule);
}
END_TEST

START_TEST(budget_never_degrades_a_session)
{
	struct hot_candidate c[] = {
		{ 0, 10, false }, { 1, 1, true }, { 2, 30, false },
		{ 3, 20, false }, { 4, 40, true },
	};

	ck_assert_uint_eq(policy_budget(c, 5, 3), 3);
	ck_assert_uint_eq(c[0].index, 4);
	ck_assert_uint_eq(c[1].index, 1);
	ck_assert_uint_eq(c[2].index, 2);
	ck_assert_uint_eq(policy_budget(c, 5, 1), 2);
	ck_assert_uint_eq(policy_budget(c, 5, 0), 2);
	ck_assert_uint_eq(policy_budget(c, 5, 100), 5);
}
END_TEST

/* R-CONN-2 */
START_TEST(idle_never_takes_the_last_fifth)
{
	static const struct {
		size_t cap, idle;
	} rows[] = { { 1, 0 }, { 2, 1 }, { 5, 4 }, { 10, 8 }, { 50, 40 },
		{ 51, 40 } };
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		ck_assert_uint_eq(policy_idle_share(rows[i].cap),
		    rows[i].idle);
}
END_TEST

START_TEST(among_equals_who_idles_goes_on)
{
	struct hot_candidate c[] = {
		{ .index = 0, .last_activity_secs = 10 },
		{ .index = 1, .last_activity_secs = 20 },
		{ .index = 2, .last_activity_secs = 10, .has_place = true },
		{ .index = 3, .last_activity_secs = 10 },
	};

	ck_assert_uint_eq(policy_budget(c, 4, 2), 2);
	ck_assert_uint_eq(c[0].index, 1);
	ck_assert_uint_eq(c[1].index, 2);
}
END_TEST

START_TEST(places_go_to_sessions_then_to_those_who_have_them)
{
	struct hot_candidate c[] = {
		{ .index = 0, .last_activity_secs = 90 },
		{ .index = 1, .last_activity_secs = 10, .has_place = true },
		{ .index = 2, .last_activity_secs = 5, .is_exempt = true },
		{ .index = 3, .last_activity_secs = 80 },
		{ .index = 4, .last_activity_secs = 20, .has_place = true },
	};
	static const size_t order[] = { 2, 4, 1, 0, 3 };
	size_t i;

	ck_assert_uint_eq(policy_places(c, 5, 3), 3);
	for (i = 0; i < 5; i++)
		ck_assert_uint_eq(c[i].index, order[i]);
	ck_assert_uint_eq(policy_places(c, 5, 9), 5);
	ck_assert_uint_eq(policy_places(c, 0, 9), 0);
}
END_TEST

START_TEST(first_look_comes_soon_and_spread)
{
	struct schedule s;
	uint32_t i;
	int64_t sum = 0;

	for (i = 0; i < 1000; i++) {
		policy_start(&conf, TIER_WARM, 5000, i * 2654435761u, &s);
		ck_assert_int_gt(s.full, 5000);
		ck_assert_int_le(s.full, 15000);
		ck_assert_int_le(s.near, 5000 + 180000);
		ck_assert_int_le(s.far, 5000 + 900000);
		sum += s.near - 5000;
	}
	ck_assert_int_gt(sum / 1000, 70000);
	ck_assert_int_lt(sum / 1000, 110000);
}
END_TEST

START_TEST(hot_child_looks_before_the_first_full_pass)
{
	struct schedule s = { .full = 100, .near = 200, .far = 300 };

	policy_hot_looks(&conf, 1000, 12345, &s);
	ck_assert_int_ge(s.full, 11000);
	ck_assert_int_lt(s.full, 21000);
	ck_assert_int_eq(s.near, 200);
	s.full = 0; /* done before */
	policy_hot_looks(&conf, 1000, 12345, &s);
	ck_assert_int_eq(s.full, 0);
}
END_TEST

START_TEST(scope_depends_on_idling)
{
	struct schedule s = { .near = 100, .far = 200 };

	ck_assert_uint_eq(policy_due(&s, true, 99), 0);
	ck_assert_uint_eq(policy_due(&s, true, 100),
	    SCOPE_SPECIAL | SCOPE_PEEK);
	ck_assert_uint_eq(policy_due(&s, false, 100),
	    SCOPE_INBOX | SCOPE_SPECIAL);
	ck_assert_uint_eq(policy_due(&s, true, 200),
	    SCOPE_SPECIAL | SCOPE_PEEK | SCOPE_OTHER | SCOPE_LIST);
	s.full = 50;
	ck_assert_uint_eq(policy_due(&s, true, 60), SCOPE_ALL);
	ck_assert_int_eq(policy_next(&s), 50);
}
END_TEST

START_TEST(hot_without_idle_is_polled_often)
{
	ck_assert_int_eq(policy_near_msecs(&conf, TIER_HOT, true), 180000);
	ck_assert_int_eq(policy_near_msecs(&conf, TIER_HOT, false), 30000);
	ck_assert_int_eq(policy_near_msecs(&conf, TIER_WARM, false), 180000);
	ck_assert_int_eq(policy_near_msecs(&conf, TIER_COLD, false), 900000);
}
END_TEST

START_TEST(pass_moves_what_it_covered_by_ten_percent_at_most)
{
	struct schedule s;
	uint32_t i;

	for (i = 0; i < 1000; i++) {
		s = (struct schedule){ .near = 10, .far = 999999 };
		policy_passed(&conf,
		    policy_near_msecs(&conf, TIER_WARM, false),
		    SCOPE_INBOX | SCOPE_SPECIAL, 1000, i * 77777777u, &s);
		ck_assert_int_ge(s.near, 1000 + 162000);
		ck_assert_int_le(s.near, 1000 + 198000);
		ck_assert_int_eq(s.far, 999999);
	}
}
END_TEST

START_TEST(warmer_tier_brings_the_next_poll_nearer)
{
	struct schedule s = { .near = 800000, .far = 900000 };

	policy_adjust(&conf, TIER_WARM, false, 0, 12345, &s);
	ck_assert_int_lt(s.near, 180000);
	s.near = 50;
	policy_adjust(&conf, TIER_COLD, false, 0, 12345, &s);
	ck_assert_int_eq(s.near, 50);
}
END_TEST

/* R-LIFE-6: whatever the pause, never 3 in 120 s. */
START_TEST(never_three_refused_logins_in_two_minutes)
{
	struct logins logins = { .at = { 0 } };
	int64_t times[50], now = 1000, pause;
	unsigned i;

	for (i = 0; i < 50; i++) {
		times[i] = now;
		logins_note(&logins, now);
		pause = policy_pause(&conf, ERR_AUTH, 1, 0, i * 77777777u) /
		    (i % 7 + 1);
		now += pause;
		if (now < logins_next(&logins))
			now = logins_next(&logins);
		if (i >= 2)
			ck_assert_int_ge(times[i] - times[i - 2], 120000);
	}
	/* the first two are not held back */
	ck_assert_int_lt(times[1] - times[0], 120000);
}
END_TEST

/* Item 5: IDLE that has died silently. */
START_TEST(behind_for_a_grace_at_the_same_place_is_silent)
{
	struct lag b = { .since = 0 };

	ck_assert_int_eq(lag_step(&b, false, 1, 10, 100, 50), LAG_NONE);
	ck_assert_int_eq(lag_step(&b, true, 1, 11, 200, 50), LAG_WAIT);
	ck_assert_int_eq(lag_step(&b, true, 1, 11, 220, 50), LAG_WAIT);
	/* more news, still nothing told */
	ck_assert_int_eq(lag_step(&b, true, 1, 12, 260, 50),
	    LAG_STALE);
	ck_assert_uint_eq(b.times, 1);
}
END_TEST

START_TEST(behind_but_moving_is_not_silent)
{
	struct lag b = { .since = 0 };
	int64_t i;

	for (i = 1; i < 100; i++)
		ck_assert_int_eq(lag_step(&b, true, i, (uint64_t)i, i * 100,
		    50), LAG_WAIT);
	ck_assert_int_eq(lag_step(&b, false, i, 1, i * 100, 50),
	    LAG_NONE);
	ck_assert_int_eq(lag_step(&b, true, i, 2, i * 100 + 60, 50),
	    LAG_WAIT);
}
END_TEST

START_TEST(a_server_that_never_agrees_costs_one_child)
{
	struct lag b = { .since = 0 };
	int64_t now;

	lag_step(&b, true, 1, 11, 100, 50);
	ck_assert_int_eq(lag_step(&b, true, 1, 11, 200, 50),
	    LAG_STALE);
	for (now = 300; now < 3000; now += 100)
		ck_assert_int_eq(lag_step(&b, true, 1, 11, now, 50),
		    LAG_NONE);
	ck_assert_uint_eq(b.times, 0);
	/* other news count again */
	ck_assert_int_eq(lag_step(&b, true, 1, 12, now, 50), LAG_WAIT);
	ck_assert_int_eq(lag_step(&b, true, 1, 12, now + 50, 50),
	    LAG_STALE);
}
END_TEST

START_TEST(pause_doubles_and_obeys_the_server)
{
	int64_t one = policy_pause(&conf, ERR_NETWORK, 1, 0, 0);
	int64_t many = policy_pause(&conf, ERR_NETWORK, 60, 0, 0);

	ck_assert_int_ge(one, 1600);
	ck_assert_int_le(one, 2400);
	ck_assert_int_ge(many, 480000);
	ck_assert_int_le(many, 720000);
	ck_assert_int_ge(policy_pause(&conf, ERR_THROTTLED, 1, 3600, 0),
	    3600000);
	/* a server cannot ask for ever */
	ck_assert_int_le(policy_pause(&conf, ERR_THROTTLED, 1, INT32_MAX, 0),
	    (int64_t)DAY * 1000);
	ck_assert_int_ge(policy_pause(&conf, ERR_AUTH, 1, 0, 0), 48000);
	ck_assert_int_ge(policy_pause(&conf, ERR_CONFIG, 1, 0, 0), 480000);
}
END_TEST

/* R-LIFE-6, whatever the pauses are set to. */
START_TEST(never_three_logins_in_120_seconds)
{
	struct logins logins = { .at = { 0 } };
	int64_t at[50], now = 1000;
	size_t n = 0;

	while (n < 50) {
		if (now >= logins_next(&logins)) {
			logins_note(&logins, now);
			at[n++] = now;
		}
		now += 700;
	}
	for (n = 2; n < 50; n++)
		ck_assert_int_ge(at[n] - at[n - 2], 120000);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("policy");
	TCase *tc = tcase_create("policy");
	SRunner *runner;
	int failed;

	tcase_add_test(tc, tier_follows_session_mail_and_activity);
	tcase_add_test(tc, budget_never_degrades_a_session);
	tcase_add_test(tc, idle_never_takes_the_last_fifth);
	tcase_add_test(tc, among_equals_who_idles_goes_on);
	tcase_add_test(tc, places_go_to_sessions_then_to_those_who_have_them);
	tcase_add_test(tc, never_three_refused_logins_in_two_minutes);
	tcase_add_test(tc, behind_for_a_grace_at_the_same_place_is_silent);
	tcase_add_test(tc, behind_but_moving_is_not_silent);
	tcase_add_test(tc, a_server_that_never_agrees_costs_one_child);
	tcase_add_test(tc, first_look_comes_soon_and_spread);
	tcase_add_test(tc, hot_child_looks_before_the_first_full_pass);
	tcase_add_test(tc, scope_depends_on_idling);
	tcase_add_test(tc, hot_without_idle_is_polled_often);
	tcase_add_test(tc, pass_moves_what_it_covered_by_ten_percent_at_most);
	tcase_add_test(tc, warmer_tier_brings_the_next_poll_nearer);
	tcase_add_test(tc, pause_doubles_and_obeys_the_server);
	tcase_add_test(tc, never_three_logins_in_120_seconds);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
