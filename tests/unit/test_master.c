/*
 * test_master.c - the supervisor with children that misbehave on purpose.
 */
#include "stage.h"

#include "base/xmem.h"
#include "conf/options.h"
#include "master/master.h"
#include "proc/slots.h"

#include <bsd/string.h>
#include <check.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *
id_of(unsigned i)
{
	static char text[UUID_TEXT_SIZE];

	return uuid_format(&script->accounts[i], text);
}

static bool
is_alive(pid_t pid)
{
	return kill(pid, 0) == 0;
}

/* --- ownership ---------------------------------------------------------- */

START_TEST(live_account_is_claimed_and_idles)
{
	struct player *p = player_start("sync", NULL);

	WAIT_FOR(player_child(p, "hot", "idle") != 0);
	ck_assert_int_eq(player_status(p, "owned"), 1);
	ck_assert_int_eq(player_status(p, "hot"), 1);
	ck_assert_str_eq(redis_say("SCARD test:sync:live"), "1");
	ck_assert_ptr_nonnull(strchr(redis_say("GET test:sync:lease:%s",
	    id_of(0)), ':'));
	ck_assert_str_eq(redis_say("GET test:sync:tier:%s", id_of(0)), "hot");
	WAIT_FOR(script->polls > 0);
	WAIT_FOR(redis_say("ZCARD test:sync:workers")[0] == '1');
}
END_TEST

/* R-LEASE-5 */
START_TEST(stolen_lease_kills_the_children)
{
	struct player *p = player_start("sync", NULL);
	pid_t hot;

	WAIT_FOR((hot = player_child(p, "hot", "idle")) != 0);
	redis_say("SET test:sync:lease:%s thief EX 60", id_of(0));
	WAIT_FOR(!is_alive(hot));
	ck_assert_int_eq(player_status(p, "owned"), 0);
	ck_assert_int_eq(player_status(p, "fenced"), 1);
	ck_assert_int_eq(player_status(p, "leases_lost"), 1);
	ck_assert_str_eq(redis_say("GET test:sync:lease:%s", id_of(0)),
	    "thief");
}
END_TEST

/* Not even a zombie: its master cannot reap it. */
static bool
runs(pid_t pid)
{
	char path[40], line[256] = "";
	const char *state;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "r");
	if (f == NULL)
		return false;
	if (fgets(line, sizeof(line), f) == NULL)
		line[0] = '\0';
	fclose(f);
	state = strrchr(line, ')');
	return state != NULL && state[2] != 'Z';
}

/* R-LEASE-5: nobody kills them, they end by themselves. */
START_TEST(stopped_master_is_not_outlived_by_its_children)
{
	struct player *p = player_start("sync", NULL);
	pid_t hot;

	WAIT_FOR((hot = player_child(p, "hot", "idle")) != 0);
	kill(player_pid(p), SIGSTOP);
	WAIT_FOR(!runs(hot));
	WAIT_FOR(redis_say("EXISTS test:sync:lease:%s", id_of(0))[0] == '0');
	/* another owner meanwhile */
	redis_say("SET test:sync:lease:%s successor EX 60", id_of(0));
	kill(player_pid(p), SIGCONT);
	WAIT_FOR(player_status(p, "owned") == 0);
	ck_assert_int_eq(player_child(p, "hot", NULL), 0);
	ck_assert_str_eq(redis_say("GET test:sync:lease:%s", id_of(0)),
	    "successor");
}
END_TEST

/* R-LEASE-11 */
START_TEST(hung_redis_ends_the_children_in_time_and_heals)
{
	struct player *p = player_start("sync", NULL);
	unsigned before;
	pid_t hot;

	WAIT_FOR((hot = player_child(p, "hot", "idle")) != 0);
	kill(stage_redis_pid(), SIGSTOP);
	WAIT_FOR(!is_alive(hot));
	ck_assert_int_eq(player_status(p, "owned"), 0);
	ck_assert_int_eq(player_status(p, "fenced"), 0);
	before = script->takeovers;
	kill(stage_redis_pid(), SIGCONT);
	WAIT_FOR(player_child(p, "hot", "idle") != 0);
	ck_assert_uint_gt(script->takeovers, before);
}
END_TEST

static bool
sees_redis(const struct player *p)
{
	json_t *reply = player_ask(p, "{\"cmd\":\"status\"}");
	bool result = strcmp(json_string_value(json_object_get(reply,
	    "redis")), "up") == 0;

	json_decref(reply);
	return result;
}

START_TEST(short_outage_of_redis_disturbs_nothing)
{
	static const char *const patient[] = { "lease_ttl=12", NULL };
	struct player *p = player_start("sync", patient);
	pid_t hot;

	WAIT_FOR((hot = player_child(p, "hot", "idle")) != 0);
	kill(stage_redis_pid(), SIGSTOP);
	WAIT_FOR(!sees_redis(p));
	kill(stage_redis_pid(), SIGCONT);
	WAIT_FOR(sees_redis(p));
	/* renewed since */
	WAIT_FOR(strtoll(redis_say("PTTL test:sync:lease:%s", id_of(0)), NULL,
	    10) > 11000);
	ck_assert_int_eq(player_child(p, "hot", "idle"), hot);
	ck_assert_int_eq(player_status(p, "leases_lost"), 0);
}
END_TEST

START_TEST(restarted_empty_redis_heals_by_itself)
{
	struct player *p = player_start("sync", NULL);

	WAIT_FOR(player_child(p, "hot", "idle") != 0);
	stage_restart_redis();
	WAIT_FOR(player_status(p, "leases_lost") > 0);
	WAIT_FOR(player_child(p, "hot", "idle") != 0);
	ck_assert_str_eq(redis_say("SCARD test:sync:live"), "1");
}
END_TEST

/* R-OPS-2 */
START_TEST(sigterm_releases_the_leases)
{
	struct player *p = player_start("sync", NULL);
	pid_t hot;

	WAIT_FOR((hot = player_child(p, "hot", "idle")) != 0);
	kill(player_pid(p), SIGTERM);
	ck_assert_int_eq(player_wait(p, 5000), 0);
	ck_assert(!is_alive(hot));
	ck_assert_str_eq(redis_say("EXISTS test:sync:lease:%s", id_of(0)),
	    "0");
	ck_assert_str_eq(redis_say("ZCARD test:sync:workers"), "0");
}
END_TEST

START_TEST(sigterm_ends_in_time_when_a_child_does_not)
{
	struct player *p;
	pid_t hot;

	script->hot = ACT_HANG;
	p = player_start("sync", NULL);
	WAIT_FOR((hot = player_child(p, "hot", NULL)) != 0);
	kill(player_pid(p), SIGTERM);
	ck_assert_int_eq(player_wait(p, 6000), 0);
	ck_assert(!is_alive(hot));
	ck_assert_str_eq(redis_say("EXISTS test:sync:lease:%s", id_of(0)),
	    "0");
}
END_TEST

/* R-LEASE-10: without waiting for the lease to expire. */
START_TEST(new_master_inherits_from_a_dead_one_of_this_host)
{
	static const char *const slow[] = { "lease_ttl=600", "lease_renew=200",
		NULL };
	struct player *p = player_start("sync", slow);

	WAIT_FOR(player_child(p, "hot", "idle") != 0);
	player_kill(p);
	p = player_start("sync", slow);
	WAIT_FOR(player_child(p, "hot", "idle") != 0);
}
END_TEST

START_TEST(two_workers_share_and_the_survivor_takes_all)
{
	struct player *a, *b;

	script->n_accounts = 20;
	a = player_start("sync", NULL);
	b = player_start("sync", NULL);
	WAIT_FOR(player_status(a, "owned") + player_status(b, "owned") == 20);
	WAIT_FOR(player_status(a, "owned") <= 17 &&
	    player_status(b, "owned") <= 17);
	ck_assert_int_eq(player_status(a, "fenced") +
	    player_status(b, "fenced"), 0);
	kill(player_pid(a), SIGTERM);
	ck_assert_int_eq(player_wait(a, 5000), 0);
	WAIT_FOR(player_status(b, "owned") == 20);
	ck_assert_int_eq(player_status(b, "fenced"), 0);
}
END_TEST

/* R-OPS-2: the survivor's next round of its own is an hour away. */
START_TEST(released_leases_are_adopted_at_once)
{
	static const char *const rare[] = { "claim_interval=3600",
		"reconcile_interval=3600", "heartbeat_interval=300",
		"heartbeat_ttl=900", NULL };
	struct player *a, *b;

	script->n_accounts = 20;
	a = player_start("sync", NULL);
	WAIT_FOR(player_status(a, "owned") == 20);
	b = player_start("sync", rare);
	WAIT_FOR(player_status(b, "live") == 20);
	kill(player_pid(a), SIGTERM);
	ck_assert_int_eq(player_wait(a, 5000), 0);
	WAIT_FOR(player_status(b, "owned") == 20);
	ck_assert_int_eq(player_status(b, "fenced"), 0);
}
END_TEST

/* --- lifecycle ---------------------------------------------------------- */

static void
publish_state(unsigned i, const char *state)
{
	char channel[] = "test:events:account.state_changed";
	json_t *json = json_pack("{s:s, s:i, s:{s:s, s:s, s:s}}", "event",
	    "account.state_changed", "ts", 1, "payload", "account_id",
	    id_of(i), "state", state, "reason", "test");
	char *text = json_dumps(json, JSON_COMPACT);

	/* The command line splits at blanks; compact JSON has none. */
	redis_say("PUBLISH %s %s", channel, text);
	free(text);
	json_decref(json);
}

/* R-LIFE-2 */
START_TEST(disabled_account_is_released_and_enabled_one_claimed)
{
	static const char *const slow[] = { "claim_interval=3600",
		"reconcile_interval=3600", NULL };
	struct player *p = player_start("sync", slow);
	pid_t hot;

	WAIT_FOR((hot = player_child(p, "hot", "idle")) != 0);
	script->is_live[0] = false;
	publish_state(0, "disabled");
	WAIT_FOR(!is_alive(hot));
	WAIT_FOR(redis_say("EXISTS test:sync:lease:%s", id_of(0))[0] == '0');
	ck_assert_str_eq(redis_say("SCARD test:sync:live"), "0");
	script->is_live[0] = true;
	publish_state(0, "live");
	WAIT_FOR(player_child(p, "hot", "idle") != 0);
}
END_TEST

START_TEST(account_found_not_live_is_let_go)
{
	struct player *p;

	script->pool = ACT_LEFT_LIVE;
	p = player_start("sync", NULL);
	WAIT_FOR(script->polls > 0);
	script->is_live[0] = false;
	WAIT_FOR(player_status(p, "owned") == 0);
	WAIT_FOR(redis_say("SCARD test:sync:live")[0] == '0');
	ck_assert_int_eq(player_status(p, "fenced"), 0);
}
END_TEST

/* R-LIFE-3: nobody tells, and no poll notices. */
START_TEST(account_that_left_live_unheard_is_found_by_reconcile)
{
	struct player *p = player_start("sync", NULL);

	WAIT_FOR(player_child(p, "hot", "idle") != 0);
	script->is_live[0] = false;
	WAIT_FOR(player_status(p, "owned") == 0 &&
	    player_child(p, "hot", NULL) == 0);
	ck_assert_int_eq(player_status(p, "fenced"), 0);
	ck_assert_uint_gt(script->lookups, 0);
}
END_TEST

/* R-LIFE-6 */
START_TEST(new_credentials_are_tried_at_once)
{
	static const char *const quick[] = { "auth_pause=1", NULL };
	struct player *p;
	unsigned before;

	script->pool = ACT_AUTH;
	script->last_mail_secs = 0; /* cold: no hot child logs in */
	p = player_start("sync", quick);
	WAIT_FOR(script->polls >= 2);
	before = script->polls; /* the next would be 120 s away */
	script->pool = ACT_WELL;
	publish_state(0, "live");
	WAIT_FOR(script->polls > before);
	WAIT_FOR(player_status(p, "polls") > 0);
}
END_TEST

/* What an earlier owner was refused is not forgotten by the next. */
START_TEST(refusals_are_inherited)
{
	struct player *p;
	json_t *reply;
	char line[100];

	script->auth_failures = 3;
	p = player_start("sync", NULL);
	WAIT_FOR(player_status(p, "hot") == 1 && script->polls > 0);
	snprintf(line, sizeof(line),
	    "{\"cmd\":\"explain\",\"account\":\"%s\"}", id_of(0));
	/* once a poll did well */
	WAIT_FOR(player_child(p, "hot", "idle") != 0);
	reply = player_ask(p, line);
	ck_assert_int_eq(json_integer_value(json_object_get(reply,
	    "refusals")), 0);
	json_decref(reply);
}
END_TEST

/* Another has it: what we were told of the row is no claim of ours. */
START_TEST(moved_epoch_is_never_adopted)
{
	struct player *p = player_start("sync", NULL);
	pid_t hot;

	WAIT_FOR((hot = player_child(p, "hot", "idle")) != 0);
	script->epochs[0] += 5;
	publish_state(0, "live");
	WAIT_FOR(!is_alive(hot));
	WAIT_FOR(player_status(p, "fenced") == 1);
	ck_assert_uint_eq(script->takeovers, 1);
}
END_TEST

/* Item 5 */
START_TEST(silent_idle_is_replaced_and_at_last_given_up)
{
	struct player *p = player_start("sync", NULL);
	pid_t hot;

	WAIT_FOR((hot = player_child(p, "hot", "idle")) != 0);
	WAIT_FOR(script->peeks > 2);
	ck_assert_int_eq(player_status(p, "idle_silent"), 0);
	script->pool = ACT_BEHIND;
	WAIT_FOR(!is_alive(hot));
	WAIT_FOR(player_status(p, "idle_silent") == 3);
	WAIT_FOR(player_status(p, "polled_instead") == 1 &&
	    player_child(p, "hot", NULL) == 0);
	ck_assert_int_eq(player_status(p, "hot"), 1);
}
END_TEST

/* R-CONN-3 */
START_TEST(too_many_connections_is_one_at_a_time)
{
	static const char *const settings[] = { "backoff_max=2", NULL };
	struct player *p = player_start("sync", settings);

	WAIT_FOR(player_child(p, "hot", "idle") != 0);
	script->pool = ACT_LIMIT;
	WAIT_FOR(player_status(p, "polled_instead") == 1 &&
	    player_child(p, "hot", NULL) == 0);
	script->pool = ACT_WELL;
	WAIT_FOR(player_child(p, "hot", "idle") != 0);
	ck_assert_int_eq(player_status(p, "polled_instead"), 0);
}
END_TEST

/* R-TIER-3 */
START_TEST(active_user_makes_the_account_hot)
{
	struct player *p;
	char user[UUID_TEXT_SIZE];

	script->last_mail_secs = 0;
	p = player_start("sync", NULL);
	WAIT_FOR(player_status(p, "cold") == 1);
	uuid_format(&script->users[0], user);
	redis_say("SET test:sess:active:%s 1 EX 3", user);
	redis_say("PUBLISH test:events:user.active {\"event\":"
	    "\"user.active\",\"ts\":1,\"payload\":{\"user_id\":\"%s\"}}",
	    user);
	WAIT_FOR(player_child(p, "hot", "idle") != 0);
	/* and not for ever */
	WAIT_FOR(player_status(p, "warm") == 1 &&
	    player_child(p, "hot", NULL) == 0);
}
END_TEST

START_TEST(pinned_tier_holds_and_is_inherited)
{
	struct player *p = player_start("sync", NULL);
	char line[128];

	WAIT_FOR(player_status(p, "hot") == 1);
	snprintf(line, sizeof(line),
	    "{\"cmd\":\"tier\",\"account\":\"%s\",\"tier\":\"cold\"}",
	    id_of(0));
	json_decref(player_ask(p, line));
	WAIT_FOR(player_status(p, "cold") == 1 &&
	    player_child(p, "hot", NULL) == 0);
	kill(player_pid(p), SIGTERM);
	ck_assert_int_eq(player_wait(p, 5000), 0);
	p = player_start("sync", NULL);
	WAIT_FOR(player_status(p, "cold") == 1);
	ck_assert_int_eq(player_child(p, "hot", NULL), 0);
}
END_TEST

/* --- children ----------------------------------------------------------- */

static void
hot_child_backs_off(enum act act)
{
	struct player *p;
	int64_t until;

	script->hot = act;
	p = player_start("sync", NULL);
	WAIT_FOR(script->hots >= 2);
	/* 1 s, 2 s, ...: in two more seconds there cannot be many */
	until = stage_now() + 2000;
	WAIT_FOR(stage_now() > until);
	ck_assert_uint_le(script->hots, 5);
	ck_assert_int_gt(player_status(p, "pid"), 0);
	/* polls go on meanwhile */
	WAIT_FOR(script->polls > 0);
	script->hot = ACT_WELL;
	WAIT_FOR(player_child(p, "hot", "idle") != 0);
}

START_TEST(hot_child_that_ends_at_once_backs_off)
{
	hot_child_backs_off(ACT_EXIT_DONE);
}
END_TEST

START_TEST(hot_child_that_dies_backs_off)
{
	hot_child_backs_off(ACT_SEGV);
	WAIT_FOR(script->risks >= 2);
}
END_TEST

START_TEST(hot_child_that_talks_of_others_is_ended)
{
	hot_child_backs_off(ACT_NONSENSE);
}
END_TEST

START_TEST(hot_child_that_sends_garbage_is_ended)
{
	hot_child_backs_off(ACT_GARBAGE);
}
END_TEST

START_TEST(hot_child_that_closes_its_channel_is_ended)
{
	hot_child_backs_off(ACT_CLOSE);
}
END_TEST

START_TEST(hot_child_that_wants_everything_is_ended)
{
	hot_child_backs_off(ACT_GREEDY);
}
END_TEST

START_TEST(hot_child_that_hangs_is_replaced)
{
	static const char *const quick[] = { "command_timeout=1",
		"select_timeout=1", "idle_restart_secs=1", NULL };
	struct player *p;

	script->hot = ACT_HANG;
	p = player_start("sync", quick);
	WAIT_FOR(script->hots == 1);
	script->hot = ACT_WELL;
	WAIT_FOR(player_child(p, "hot", "idle") != 0);
	ck_assert_uint_eq(script->hots, 2);
}
END_TEST

START_TEST(pool_child_that_dies_is_replaced)
{
	struct player *p;

	script->pool = ACT_SEGV;
	p = player_start("sync", NULL);
	WAIT_FOR(script->polls >= 2);
	WAIT_FOR(script->risks >= 2);
	script->pool = ACT_WELL;
	WAIT_FOR(player_status(p, "polls") > 0);
	ck_assert_int_ge(player_status(p, "child_deaths"), 2);
}
END_TEST

START_TEST(pool_child_that_reports_without_work_is_ended)
{
	struct player *p;

	script->pool = ACT_EARLY;
	p = player_start("sync", NULL);
	WAIT_FOR(player_status(p, "child_deaths") >= 2);
	script->pool = ACT_WELL;
	WAIT_FOR(player_status(p, "polls") > 0);
}
END_TEST

/* R-LIFE-6 */
START_TEST(refused_login_is_not_tried_in_a_loop)
{
	static const char *const quick[] = { "auth_pause=1", NULL };
	struct player *p;
	int64_t until;

	script->pool = ACT_AUTH;
	script->last_mail_secs = 0; /* cold: no hot child logs in */
	p = player_start("sync", quick);
	WAIT_FOR(script->polls >= 2);
	until = stage_now() + 4000;
	WAIT_FOR(stage_now() > until);
	ck_assert_uint_eq(script->polls, 2);
	ck_assert_int_eq(player_status(p, "owned"), 1);
}
END_TEST

START_TEST(clerk_that_dies_is_asked_again)
{
	struct player *p;

	script->clerk = ACT_SEGV;
	p = player_start("sync", NULL);
	WAIT_FOR(player_child(p, "hot", "idle") != 0);
	script->clerk = ACT_GARBAGE;
	WAIT_FOR(script->clerk == ACT_WELL);
	WAIT_FOR(player_child(p, "clerk", "ready") != 0);
}
END_TEST

START_TEST(without_postgres_nothing_is_claimed)
{
	struct player *p;

	script->is_database_away = true;
	redis_say("SADD test:sync:live %s", id_of(0));
	p = player_start("sync", NULL);
	WAIT_FOR(strstr(redis_say("EXISTS test:sync:lease:%s", id_of(0)),
	    "0") != NULL && script->takeovers == 0);
	script->is_database_away = false;
	WAIT_FOR(player_child(p, "hot", "idle") != 0);
}
END_TEST

/* Leases that no pause of the machine ends: hot children are counted as they
 * begin, and one that was killed would be counted twice. */
#define LONG_LEASES "lease_ttl=600", "lease_renew=200"

/* F-A10: no word of "PostgreSQL is away", nor is the next worker bothered. */
START_TEST(a_locked_account_keeps_nobody_else_waiting)
{
	struct player *p;
	json_t *reply;

	script->n_accounts = 4;
	script->is_locked[1] = true;
	p = player_start("sync", (const char *const[]){ "backoff_first=1",
	    LONG_LEASES, NULL });
	WAIT_FOR(script->hots == 3);
	WAIT_FOR(script->takeovers >= 5); /* tried again */
	ck_assert_ptr_nonnull(strstr(redis_say("EXISTS test:sync:lease:%s",
	    id_of(1)), "1"));
	reply = player_ask(p, "{\"cmd\":\"status\"}");
	ck_assert_str_eq(json_string_value(json_object_get(reply,
	    "postgres")), "up");
	json_decref(reply);
	script->is_locked[1] = false;
	WAIT_FOR(script->hots == 4);
	ck_assert_int_eq(player_status(p, "fenced"), 0);
}
END_TEST

START_TEST(reload_keeps_the_connection)
{
	struct player *p = player_start("sync", NULL);
	pid_t hot, clerk;

	WAIT_FOR((hot = player_child(p, "hot", "idle")) != 0);
	WAIT_FOR((clerk = player_child(p, "clerk", NULL)) != 0);
	kill(player_pid(p), SIGHUP);
	WAIT_FOR(!is_alive(clerk));
	kill(player_pid(p), SIGUSR1);
	kill(player_pid(p), SIGUSR2);
	WAIT_FOR(player_status(p, "polls") > 2);
	ck_assert_int_eq(player_child(p, "hot", "idle"), hot);
}
END_TEST

START_TEST(hot_budget_and_host_cap_bound_idle)
{
	static const char *const settings[] = { "hot_budget_per_worker=4",
		LONG_LEASES, NULL };
	struct player *p;

	script->n_accounts = 10;
	p = player_start("sync", settings);
	WAIT_FOR(player_status(p, "hot") == 4 &&
	    player_status(p, "warm") == 6);
	WAIT_FOR(script->polls >= 10);
	ck_assert_uint_eq(script->hots, 4);
}
END_TEST

START_TEST(host_cap_leaves_room_for_polls)
{
	static const char *const settings[] = { "per_host_conn_cap=5",
		LONG_LEASES, NULL };
	struct player *p;

	script->n_accounts = 10;
	p = player_start("sync", settings);
	WAIT_FOR(player_status(p, "hot") == 10);
	WAIT_FOR(script->hots == 4 && script->polls >= 20);
	ck_assert_uint_eq(script->hots, 4);
	ck_assert_int_eq(player_status(p, "polled_instead"), 6);
}
END_TEST

/* Answers come late, after turns of the master; a new child of ours. */
static pid_t
slow_redis_down(void)
{
	pid_t redis = stage_redis_pid(), pid = fork();

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	for (;;) {
		kill(redis, SIGSTOP);
		poll(NULL, 0, 50);
		kill(redis, SIGCONT);
		poll(NULL, 0, 5);
	}
}

/* R-TIER-1: hot for the owner before, who may have had more room. */
START_TEST(inherited_tiers_are_bounded_as_others)
{
	static const char *const settings[] = { "per_host_conn_cap=5",
		"tier_interval=3600", LONG_LEASES, NULL };
	struct player *p;
	pid_t brake;
	unsigned i;

	script->n_accounts = 10;
	for (i = 0; i < 10; i++)
		redis_say("SET test:sync:tier:%s hot", id_of(i));
	brake = slow_redis_down();
	p = player_start("sync", settings);
	WAIT_FOR(player_status(p, "hot") == 10);
	WAIT_FOR(script->hots >= 4 && script->polls >= 20);
	kill(brake, SIGKILL);
	waitpid(brake, NULL, 0);
	kill(stage_redis_pid(), SIGCONT);
	ck_assert_uint_eq(script->hots, 4);
	ck_assert_int_eq(player_status(p, "polled_instead"), 6);
}
END_TEST

/* --- jobs --------------------------------------------------------------- */

static void
ring(const char *queue, unsigned n)
{
	char text[UUID_TEXT_SIZE];
	struct uuid id;

	while (n-- > 0) {
		uuid_generate(&id);
		redis_say("LPUSH test:jobs:%s %s", queue,
		    uuid_format(&id, text));
	}
}

START_TEST(jobs_are_run_within_their_cap)
{
	struct player *p = player_start("jobs", NULL);

	ring("bulk", 10);
	WAIT_FOR(player_status(p, "jobs_done") == 10);
	ck_assert_uint_eq(script->jobs_most, 2);
	script->jobs_most = 0;
	ring("interactive", 60);
	WAIT_FOR(player_status(p, "jobs_done") == 70);
	ck_assert_uint_le(script->jobs_most, 20);
	ck_assert_uint_ge(script->jobs_most, 5);
	WAIT_FOR(redis_say("ZCARD test:jobs:workers")[0] == '1');
}
END_TEST

START_TEST(hanging_job_is_killed_and_the_next_runs)
{
	static const char *const quick[] = { "interactive_timeout=1", NULL };
	struct player *p = player_start("jobs", quick);

	script->job = ACT_HANG;
	ring("interactive", 1);
	WAIT_FOR(script->jobs == 1);
	script->job = ACT_WELL;
	WAIT_FOR(script->held > 0);
	WAIT_FOR(player_status(p, "jobs_failed") == 1);
	WAIT_FOR(script->lost == 1);
	ring("interactive", 1);
	WAIT_FOR(player_status(p, "jobs_done") == 1);
}
END_TEST

START_TEST(job_child_that_dies_costs_its_job_only)
{
	struct player *p = player_start("jobs", NULL);

	script->job = ACT_SEGV;
	ring("interactive", 3);
	WAIT_FOR(player_status(p, "jobs_failed") == 3);
	WAIT_FOR(script->risks == 3);
	WAIT_FOR(script->lost == 3);
	script->job = ACT_WELL;
	ring("interactive", 1);
	WAIT_FOR(player_status(p, "jobs_done") == 1);
}
END_TEST

START_TEST(stillborn_job_children_are_not_forked_in_a_loop)
{
	struct player *p = player_start("jobs", NULL);

	script->job = ACT_STILLBORN;
	ring("interactive", 1);
	/* one a second: the third comes after two, a loop would have
	 * hundreds by then */
	WAIT_FOR(player_status(p, "child_deaths") >= 3);
	ck_assert_int_lt(player_status(p, "child_deaths"), 10);
	script->job = ACT_WELL;
	WAIT_FOR(player_status(p, "jobs_done") == 1);
}
END_TEST

START_TEST(sweep_finds_due_jobs_with_and_without_redis)
{
	struct player *p = player_start("jobs", NULL);

	uuid_generate(&script->due[0]);
	script->n_due = 1;
	WAIT_FOR(player_status(p, "jobs_done") == 1);
	kill(stage_redis_pid(), SIGSTOP);
	WAIT_FOR(!sees_redis(p));
	uuid_generate(&script->due[0]);
	script->n_due = 1;
	WAIT_FOR(player_status(p, "jobs_done") == 2);
	kill(stage_redis_pid(), SIGCONT);
}
END_TEST

START_TEST(what_is_no_job_id_is_dropped)
{
	struct player *p = player_start("jobs", NULL);

	redis_say("LPUSH test:jobs:interactive nonsense");
	ring("interactive", 1);
	WAIT_FOR(player_status(p, "jobs_done") == 1);
	redis_say("SET test:jobs:bulk wrong-type");
	ring("interactive", 1);
	WAIT_FOR(player_status(p, "jobs_done") == 2);
}
END_TEST

START_TEST(jobs_master_stops_in_time)
{
	struct player *p = player_start("jobs", NULL);

	script->job = ACT_HANG;
	ring("interactive", 1);
	WAIT_FOR(script->jobs == 1);
	kill(player_pid(p), SIGTERM);
	ck_assert_int_eq(player_wait(p, 6000), 0);
	ck_assert_str_eq(redis_say("ZCARD test:jobs:workers"), "0");
}
END_TEST

/* --- control socket ----------------------------------------------------- */

static int
connect_to(const struct player *p)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strlcpy(addr.sun_path, player_socket(p), sizeof(addr.sun_path));
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&addr, sizeof(addr)),
	    0);
	return fd;
}

START_TEST(nonsense_on_the_control_socket_is_answered)
{
	static const char *const lines[] = {
		"{", "[]", "null", "7", "\"status\"", "{\"cmd\":7}",
		"{\"cmd\":\"no-such\"}", "{\"cmd\":\"explain\"}",
		"{\"cmd\":\"explain\",\"account\":\"x\"}",
		"{\"cmd\":\"tier\",\"account\":7}",
		"{\"cmd\":\"log\",\"level\":\"loud\"}", "\xFF\xFE",
		"{\"cmd\":\"status\",\"cmd\":\"stop\"}",
	};
	struct player *p = player_start("sync", NULL);
	size_t i;

	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		json_t *reply = player_ask(p, lines[i]);

		ck_assert_msg(json_is_false(json_object_get(reply, "ok")) &&
		    json_is_string(json_object_get(reply, "error")),
		    "line %zu", i);
		json_decref(reply);
	}
	ck_assert_int_gt(player_status(p, "pid"), 0);
}
END_TEST

START_TEST(endless_line_is_cut_off)
{
	struct player *p = player_start("sync", NULL);
	int fd = connect_to(p);
	char block[4096];
	size_t sent = 0;
	ssize_t n;

	memset(block, 'x', sizeof(block));
	while ((n = send(fd, block, sizeof(block), MSG_NOSIGNAL)) > 0) {
		sent += (size_t)n;
		ck_assert_uint_lt(sent, 64 << 20);
	}
	close(fd);
	ck_assert_int_gt(player_status(p, "pid"), 0);
}
END_TEST

START_TEST(many_clients_do_not_lock_others_out_for_ever)
{
	struct player *p = player_start("sync", NULL);
	int fds[100];
	size_t i;

	for (i = 0; i < 100; i++)
		fds[i] = connect_to(p);
	for (i = 0; i < 100; i++)
		close(fds[i]);
	WAIT_FOR(player_status(p, "pid") > 0);
}
END_TEST

START_TEST(client_that_does_not_read_holds_nobody_up)
{
	struct player *p = player_start("sync", NULL);
	int fd = connect_to(p);
	static const char line[] = "{\"cmd\":\"metrics\"}\n";
	struct timeval tv = { 0, 100000 };
	int i;

	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
	for (i = 0; i < 5000; i++)
		if (send(fd, line, sizeof(line) - 1, MSG_NOSIGNAL) <= 0)
			break;
	ck_assert_int_gt(player_status(p, "pid"), 0);
	close(fd);
}
END_TEST

START_TEST(explain_tells_the_whole_story)
{
	struct player *p = player_start("sync", NULL);
	json_t *reply;
	char line[100];

	WAIT_FOR(player_child(p, "hot", "idle") != 0);
	snprintf(line, sizeof(line),
	    "{\"cmd\":\"explain\",\"account\":\"%s\"}", id_of(0));
	reply = player_ask(p, line);
	ck_assert(json_is_true(json_object_get(reply, "ok")));
	ck_assert_str_eq(json_string_value(json_object_get(reply, "tier")),
	    "hot");
	ck_assert_uint_ge(json_array_size(json_object_get(reply, "chain")),
	    6);
	ck_assert_int_gt(json_integer_value(json_object_get(reply, "epoch")),
	    0);
	json_decref(reply);
	/* also by address */
	reply = player_ask(p,
	    "{\"cmd\":\"explain\",\"account\":\"A0@example.org\"}");
	ck_assert(json_is_true(json_object_get(reply, "ok")));
	json_decref(reply);
}
END_TEST

START_TEST(release_and_drain_let_go)
{
	struct player *p;
	char line[100];

	script->n_accounts = 3;
	p = player_start("sync", NULL);
	WAIT_FOR(player_status(p, "owned") == 3);
	snprintf(line, sizeof(line),
	    "{\"cmd\":\"release\",\"account\":\"%s\"}", id_of(0));
	json_decref(player_ask(p, line));
	WAIT_FOR(redis_say("EXISTS test:sync:lease:%s", id_of(0))[0] == '0');
	json_decref(player_ask(p, "{\"cmd\":\"drain\"}"));
	WAIT_FOR(player_status(p, "owned") == 0);
	json_decref(player_ask(p, "{\"cmd\":\"stop\"}"));
	ck_assert_int_eq(player_wait(p, 5000), 0);
}
END_TEST

/* max_accounts_per_worker and the like may be raised by a reload. */
START_TEST(there_are_places_for_all_that_a_reload_may_allow)
{
	enum { N = 20000 };
	static uint32_t slots[N];
	unsigned i;

	slots_init(master_slots());
	for (i = 0; i < N; i++) {
		slots[i] = slot_take();
		ck_assert_uint_ne(slots[i], SLOT_NONE);
	}
	while (i > 0)
		slot_give_back(slots[--i]);
	ck_assert_uint_ge(master_slots(),
	    (unsigned)options[option_find("max_accounts_per_worker")].max);
}
END_TEST

START_TEST(second_master_on_the_socket_is_refused)
{
	struct player *p = player_start("sync", NULL);
	char setting[160];
	const char *settings[] = { setting, NULL };
	struct player *other;

	snprintf(setting, sizeof(setting), "control_socket=%s",
	    player_socket(p));
	other = player_start_unheard("sync", settings);
	ck_assert_int_eq(player_wait(other, 5000), 75);
	ck_assert_int_gt(player_status(p, "pid"), 0);
}
END_TEST

#define ADD(test) tcase_add_test(tc, test)

static TCase *
part(Suite *suite, const char *name)
{
	TCase *tc = tcase_create(name);

	tcase_add_checked_fixture(tc, stage_setup, stage_teardown);
	tcase_set_timeout(tc, 200);
	suite_add_tcase(suite, tc);
	return tc;
}

int
main(void)
{
	Suite *suite = suite_create("master");
	SRunner *runner;
	TCase *tc;
	int failed;

	tc = part(suite, "ownership");
	ADD(live_account_is_claimed_and_idles);
	ADD(stolen_lease_kills_the_children);
	ADD(stopped_master_is_not_outlived_by_its_children);
	ADD(hung_redis_ends_the_children_in_time_and_heals);
	ADD(short_outage_of_redis_disturbs_nothing);
	ADD(restarted_empty_redis_heals_by_itself);
	ADD(sigterm_releases_the_leases);
	ADD(sigterm_ends_in_time_when_a_child_does_not);
	ADD(new_master_inherits_from_a_dead_one_of_this_host);
	ADD(released_leases_are_adopted_at_once);
	ADD(two_workers_share_and_the_survivor_takes_all);
	tc = part(suite, "lifecycle");
	ADD(disabled_account_is_released_and_enabled_one_claimed);
	ADD(account_found_not_live_is_let_go);
	ADD(account_that_left_live_unheard_is_found_by_reconcile);
	ADD(new_credentials_are_tried_at_once);
	ADD(refusals_are_inherited);
	ADD(moved_epoch_is_never_adopted);
	ADD(silent_idle_is_replaced_and_at_last_given_up);
	ADD(too_many_connections_is_one_at_a_time);
	ADD(active_user_makes_the_account_hot);
	ADD(pinned_tier_holds_and_is_inherited);
	tc = part(suite, "children");
	ADD(hot_child_that_ends_at_once_backs_off);
	ADD(hot_child_that_dies_backs_off);
	ADD(hot_child_that_talks_of_others_is_ended);
	ADD(hot_child_that_sends_garbage_is_ended);
	ADD(hot_child_that_closes_its_channel_is_ended);
	ADD(hot_child_that_wants_everything_is_ended);
	ADD(hot_child_that_hangs_is_replaced);
	ADD(pool_child_that_dies_is_replaced);
	ADD(pool_child_that_reports_without_work_is_ended);
	ADD(refused_login_is_not_tried_in_a_loop);
	ADD(clerk_that_dies_is_asked_again);
	ADD(without_postgres_nothing_is_claimed);
	ADD(a_locked_account_keeps_nobody_else_waiting);
	ADD(reload_keeps_the_connection);
	ADD(hot_budget_and_host_cap_bound_idle);
	ADD(host_cap_leaves_room_for_polls);
	ADD(inherited_tiers_are_bounded_as_others);
	tc = part(suite, "jobs");
	ADD(jobs_are_run_within_their_cap);
	ADD(hanging_job_is_killed_and_the_next_runs);
	ADD(job_child_that_dies_costs_its_job_only);
	ADD(stillborn_job_children_are_not_forked_in_a_loop);
	ADD(sweep_finds_due_jobs_with_and_without_redis);
	ADD(what_is_no_job_id_is_dropped);
	ADD(jobs_master_stops_in_time);
	tc = part(suite, "control");
	ADD(nonsense_on_the_control_socket_is_answered);
	ADD(endless_line_is_cut_off);
	ADD(many_clients_do_not_lock_others_out_for_ever);
	ADD(client_that_does_not_read_holds_nobody_up);
	ADD(explain_tells_the_whole_story);
	ADD(release_and_drain_let_go);
	ADD(there_are_places_for_all_that_a_reload_may_allow);
	ADD(second_master_on_the_socket_is_refused);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
