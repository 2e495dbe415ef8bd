/*
 * test_lease.c - the pure parts of lease: table of ids, shares, events.
 */
#include "base/err.h"
#include "lease/deadline.h"
#include "redis/events.h"
#include "lease/gone.h"
#include "lease/idmap.h"
#include "lease/share.h"

#include <check.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

START_TEST(idmap_keeps_everything_through_growth_and_removal)
{
	enum { N = 3000 };
	struct idmap map = IDMAP_INIT;
	static struct uuid ids[N];
	size_t i, at, seen = 0;

	for (i = 0; i < N; i++) {
		uuid_generate(&ids[i]);
		ck_assert_ptr_null(idmap_put(&map, &ids[i], &ids[i]));
	}
	for (i = 0; i < N; i += 2)
		ck_assert_ptr_eq(idmap_remove(&map, &ids[i]), &ids[i]);
	for (i = 0; i < N; i++)
		ck_assert_ptr_eq(idmap_get(&map, &ids[i]),
		    i % 2 ? &ids[i] : NULL);
	for (at = 0; idmap_next(&map, &at, NULL) != NULL;)
		seen++;
	ck_assert_uint_eq(seen, N / 2);
	ck_assert_uint_eq(map.n, N / 2);
	ck_assert_ptr_null(idmap_remove(&map, &ids[0]));
	idmap_release(&map);
	ck_assert_ptr_null(idmap_get(&map, &ids[1]));
}
END_TEST

/* Ids from outside may be chosen to collide in part. */
START_TEST(idmap_bears_similar_ids)
{
	struct idmap map = IDMAP_INIT;
	struct uuid id = { .bytes = { 0 } };
	unsigned i;

	for (i = 1; i <= 2000; i++) {
		id.bytes[15] = (uint8_t)i;
		id.bytes[14] = (uint8_t)(i >> 8);
		idmap_put(&map, &id, IDMAP_PRESENT);
	}
	ck_assert_uint_eq(map.n, 2000);
	for (i = 1; i <= 2000; i++) {
		id.bytes[15] = (uint8_t)i;
		id.bytes[14] = (uint8_t)(i >> 8);
		ck_assert_ptr_nonnull(idmap_remove(&map, &id));
	}
	ck_assert_uint_eq(map.n, 0);
	idmap_release(&map);
}
END_TEST

START_TEST(claim_stops_at_the_fair_share_with_slack)
{
	struct share s = { .live = 20, .workers = 2, .max = 400 };

	ck_assert_uint_eq(share_target(&s), 10);
	ck_assert_uint_eq(share_claim(&s), 12);
	s.owned = 12;
	ck_assert_uint_eq(share_claim(&s), 0);
}
END_TEST

START_TEST(ids_left_over_for_two_rounds_go_to_anyone_with_room)
{
	struct share s = { .owned = 12, .live = 20, .workers = 2, .max = 400,
		.left_over_rounds = 2 };

	ck_assert_uint_eq(share_claim(&s), 388);
	s.owned = 400;
	ck_assert_uint_eq(share_claim(&s), 0);
	s.owned = 500; /* max was lowered by a reload */
	ck_assert_uint_eq(share_claim(&s), 0);
}
END_TEST

START_TEST(shed_only_above_the_band_and_down_to_the_target)
{
	struct share s = { .owned = 17, .live = 20, .workers = 2, .max = 400 };

	ck_assert_uint_eq(share_shed(&s), 0);
	s.owned = 18;
	ck_assert_uint_eq(share_shed(&s), 8);
	s.workers = 1;
	ck_assert_uint_eq(share_shed(&s), 0);
	s.workers = 0;
	ck_assert_uint_eq(share_shed(&s), 0);
}
END_TEST

/* What the claimer may take in a round never makes the rebalancer shed. */
START_TEST(claiming_never_leads_to_shedding)
{
	struct share s = { .max = 100000 };

	for (s.live = 0; s.live < 3000; s.live += 7) {
		for (s.workers = 1; s.workers < 40; s.workers++) {
			s.owned = 0;
			s.owned = share_claim(&s);
			ck_assert_uint_eq(share_shed(&s), 0);
			ck_assert_uint_ge(s.owned * s.workers, s.live);
		}
	}
}
END_TEST

/* R-LEASE-5: we end before Redis does, whatever the TTL. */
START_TEST(deadline_is_before_the_end_of_the_lease)
{
	struct conf conf = { .lease_ttl = 0 };

	for (conf.lease_ttl = 5; conf.lease_ttl <= 3600; conf.lease_ttl++) {
		ck_assert_int_le(lease_deadline(&conf, 1000),
		    1000 + conf.lease_ttl * 1000 - 1000);
		/* two renewals fit into it */
		ck_assert_int_gt(lease_deadline(&conf, 1000),
		    1000 + conf.lease_ttl * 1000 / 2);
	}
}
END_TEST

/* R-LEASE-10 */
START_TEST(process_is_gone_when_dead_or_waiting_to_be_reaped)
{
	siginfo_t info;
	pid_t pid = fork();

	if (pid == 0)
		for (;;)
			pause();
	ck_assert(!process_is_gone(pid));
	ck_assert(!process_is_gone(1));
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT),
	    0);
	ck_assert(process_is_gone(pid)); /* a zombie */
	waitpid(pid, NULL, 0);
	ck_assert(process_is_gone(pid));
	ck_assert(process_is_gone(getpid())); /* its number is ours now */
}
END_TEST

START_TEST(event_survives_the_round_trip)
{
	struct msg_event e = { .event = EVENT_MESSAGE_NEW, .mailbox_id = 7,
		.n_ids = 2, .count = 2, .ids = { 11, 1LL << 40 } }, back;
	struct err err = ERR_INIT;
	char *json;

	uuid_generate(&e.account_id);
	json = event_format(&e, 1234);
	ck_assert_ptr_nonnull(json);
	ck_assert_int_eq(event_parse(json, strlen(json), &back, &err), 0);
	ck_assert_mem_eq(&back, &e, sizeof(e));
	free(json);
}
END_TEST

START_TEST(event_has_the_fields_of_the_contract)
{
	struct msg_event e = { .event = EVENT_ACCOUNT_STATE,
		.name = "error", .reason = "no\xFF login" };
	json_t *json, *payload;
	char *text;

	uuid_generate(&e.account_id);
	text = event_format(&e, 99);
	json = json_loads(text, 0, NULL);
	ck_assert_ptr_nonnull(json);
	ck_assert_str_eq(json_string_value(json_object_get(json, "event")),
	    "account.state_changed");
	ck_assert_int_eq(json_integer_value(json_object_get(json, "ts")), 99);
	payload = json_object_get(json, "payload");
	ck_assert_str_eq(json_string_value(json_object_get(payload, "state")),
	    "error");
	ck_assert_str_eq(json_string_value(json_object_get(payload, "reason")),
	    "no\xEF\xBF\xBD login");
	ck_assert_ptr_null(json_object_get(payload, "user_id"));
	json_decref(json);
	free(text);
}
END_TEST

START_TEST(nonsense_is_no_event)
{
	static const char *const bad[] = {
		"", "{", "[]", "null", "{\"event\":\"user.active\"}",
		"{\"event\":\"no.such\",\"payload\":{}}",
		"{\"event\":7,\"payload\":{}}",
		"{\"event\":\"user.active\",\"payload\":[]}",
		"{\"event\":\"user.active\",\"payload\":{\"user_id\":\"x\"}}",
	};
	struct msg_event e;
	struct err err = ERR_INIT;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_int_eq(event_parse(bad[i], strlen(bad[i]), &e, &err),
		    -1);
	ck_assert_int_eq(err.kind, ERR_PROTOCOL);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("lease");
	TCase *tc = tcase_create("pure");
	SRunner *runner;
	int failed;

	tcase_add_test(tc, idmap_keeps_everything_through_growth_and_removal);
	tcase_add_test(tc, idmap_bears_similar_ids);
	tcase_add_test(tc, claim_stops_at_the_fair_share_with_slack);
	tcase_add_test(tc, ids_left_over_for_two_rounds_go_to_anyone_with_room);
	tcase_add_test(tc, shed_only_above_the_band_and_down_to_the_target);
	tcase_add_test(tc, claiming_never_leads_to_shedding);
	tcase_add_test(tc, deadline_is_before_the_end_of_the_lease);
	tcase_add_test(tc, process_is_gone_when_dead_or_waiting_to_be_reaped);
	tcase_add_test(tc, event_survives_the_round_trip);
	tcase_add_test(tc, event_has_the_fields_of_the_contract);
	tcase_add_test(tc, nonsense_is_no_event);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
