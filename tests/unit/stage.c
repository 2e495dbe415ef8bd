/*
 * stage.c - a real master on a private Redis, with children that play a part.
 *
 * Runs in: test_master and the processes it starts.
 */
#include "stage.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/xmem.h"
#include "child/child.h"
#include "conf/conf.h"
#include "ipc/channel.h"
#include "master/master.h"
#include "proc/slots.h"
#include "proc/spawn.h"
#include "proc/vault.h"

#include <bsd/string.h>
#include <check.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

struct script *script;

static char directory[64];
static pid_t redis_pid;
static redisContext *outsider;

#define PLAYERS_MAX 4
struct player {
	pid_t pid;
	char socket[128];
};
static struct player players[PLAYERS_MAX];
static unsigned n_players;

/* --- the parts ---------------------------------------------------------- */

static int channel;
static uint32_t generation, slot;

static void
tell(enum msg_type type, const void *payload)
{
	struct err err = ERR_INIT;

	if (channel_send(channel, generation, type, payload, &err) == -1)
		_exit(EXIT_MASTER_GONE);
}

static void
enter(const struct child_start *start)
{
	struct msg_hello hello = { .pid = getpid(), .version = IPC_VERSION };

	channel = start->channel;
	generation = start->generation;
	slot = start->slot;
	tell(MSG_HELLO, &hello);
}

static void
hear(struct frame *frame)
{
	struct err err = ERR_INIT;

	if (channel_recv(channel, FROM_MASTER, frame, &err) != 1)
		_exit(EXIT_MASTER_GONE);
}

static _Noreturn void
hang(void)
{
	for (;;)
		pause();
}

static void
misbehave(int act, const struct uuid *account)
{
	struct slot_note note = { .account_id = *account, .folder_id = 7,
		.step = 2, .uid_from = 3, .uid_to = 4 };
	struct msg_idling other;
	struct msg_want want = { .want_id = 1, .resource = RESOURCE_PARSE };

	switch (act) {
	case ACT_EXIT_DONE:
		_exit(EXIT_DONE);
	case ACT_EXIT_RETRY:
		_exit(EXIT_RETRY);
	case ACT_SEGV:
		slot_write_note(slot, &note);
		signal(SIGSEGV, SIG_DFL); /* a sanitizer's handler */
		raise(SIGSEGV);
		break;
	case ACT_HANG:
		hang();
	case ACT_NONSENSE:
		uuid_generate(&other.account_id);
		tell(MSG_IDLING, &other);
		hang();
	case ACT_GARBAGE:
		if (send(channel, "rubbish", 7, 0) == -1)
			_exit(EXIT_BUG);
		hang();
	case ACT_CLOSE:
		close(channel);
		hang();
	case ACT_GREEDY:
		for (;; want.want_id++)
			tell(MSG_WANT, &want);
	default:
		break;
	}
}

static int
number_of(const struct uuid *account)
{
	unsigned i;

	for (i = 0; i < script->n_accounts; i++)
		if (uuid_is_equal(&script->accounts[i], account))
			return (int)i;
	return -1;
}

static void
tell_facts(const struct msg_take_over *ask, bool is_claim)
{
	struct msg_facts facts = { .account_id = ask->account_id,
		.is_claim = is_claim };
	int i = number_of(&ask->account_id);

	if (i >= 0) {
		facts.user_id = script->users[i];
		facts.is_found = 1;
		facts.is_live = script->is_live[i];
		if (is_claim) {
			script->epochs[i] = ++script->epoch;
			strlcpy(script->owners[i], ask->owner,
			    sizeof(script->owners[i]));
		}
		facts.is_ours = strcmp(script->owners[i], ask->owner) == 0;
		facts.epoch = script->epochs[i];
		facts.auth_failures = script->auth_failures;
		if (facts.auth_failures > 0)
			strlcpy(facts.last_error, "refused the login",
			    sizeof(facts.last_error));
		facts.last_mail_secs = script->last_mail_secs;
		snprintf(facts.email, sizeof(facts.email), "a%d@example.org",
		    i);
		strlcpy(facts.imap_host, "imap.example.org",
		    sizeof(facts.imap_host));
	}
	tell(MSG_FACTS, &facts);
}

static bool
is_locked(const struct uuid *account)
{
	int i = number_of(account);

	return i >= 0 && script->is_locked[i];
}

static void
tell_live_ids(void)
{
	struct msg_ids ids = { .is_last = 1 };
	unsigned i;

	for (i = 0; i < script->n_accounts; i++)
		if (script->is_live[i])
			ids.ids[ids.n++] = script->accounts[i];
	tell(MSG_LIVE_IDS, &ids);
}

static void
tell_due(void)
{
	struct msg_due_jobs due = { .n = script->n_due, .queue = 0 };

	script->sweeps++;
	memcpy(due.ids, script->due, sizeof(script->due));
	tell(MSG_DUE_JOBS, &due);
	script->n_due = 0;
}

static void
act_clerk(const struct child_start *start)
{
	struct frame frame;

	enter(start);
	for (;;) {
		struct msg_clerk_done done = { .outcome = ERR_NONE };
		int act;

		hear(&frame);
		act = atomic_exchange(&script->clerk, ACT_WELL);
		if (act != ACT_WELL)
			misbehave(act, &frame.payload.take_over.account_id);
		done.request = frame.header.type;
		if (frame.header.type == MSG_STOP)
			_exit(EXIT_DONE);
		if (script->is_database_away) {
			done.outcome = ERR_DATABASE;
			strlcpy(done.text, "away", sizeof(done.text));
		} else if (frame.header.type == MSG_TAKE_OVER) {
			script->takeovers++;
			if (is_locked(&frame.payload.take_over.account_id)) {
				done.outcome = ERR_TEMPORARY;
				strlcpy(done.text, "the row is locked",
				    sizeof(done.text));
			} else
				tell_facts(&frame.payload.take_over, true);
		} else if (frame.header.type == MSG_LOOK_UP) {
			script->lookups++;
			tell_facts(&frame.payload.look_up, false);
		} else if (frame.header.type == MSG_RECONCILE) {
			tell_live_ids();
		} else if (frame.header.type == MSG_RISK) {
			script->risks++;
		} else if (frame.header.type == MSG_JOB_LOST) {
			script->lost++;
		} else if (frame.header.type == MSG_HOLD_JOBS) {
			script->held += frame.payload.hold_jobs.n;
		} else if (frame.header.type == MSG_SWEEP) {
			tell_due();
		}
		tell(MSG_CLERK_DONE, &done);
	}
}

static void
act_hot(const struct child_start *start)
{
	struct hot_task task = *(const struct hot_task *)start->task;
	struct msg_idling idling = { .account_id = task.account_id };
	struct frame frame;

	enter(start);
	script->hots++;
	slot_arm(slot);
	misbehave(script->hot, &task.account_id);
	tell(MSG_IDLING, &idling);
	for (;;) {
		hear(&frame);
		if (frame.header.type == MSG_STOP)
			_exit(EXIT_DONE);
	}
}

static void
act_pool(const struct child_start *start)
{
	struct msg_pass_done nobodys = { .outcome = ERR_NONE };
	struct frame frame;

	if (script->pool == ACT_EARLY) {
		channel = start->channel;
		generation = start->generation;
		tell(MSG_PASS_DONE, &nobodys); /* before hello, too */
	}
	enter(start);
	for (;;) {
		struct msg_pass_done done = { .outcome = ERR_NONE };

		hear(&frame);
		if (frame.header.type == MSG_STOP)
			_exit(EXIT_DONE);
		if (frame.header.type != MSG_POLL_START)
			continue;
		script->polls++;
		done.account_id = frame.payload.poll_start.account_id;
		misbehave(script->pool, &done.account_id);
		if (script->pool == ACT_AUTH)
			done.outcome = ERR_AUTH;
		if (script->pool == ACT_LIMIT) {
			done.outcome = ERR_THROTTLED;
			done.is_limit = 1;
			done.retry_after_secs = 1;
		}
		if (frame.payload.poll_start.scope & SCOPE_PEEK) {
			script->peeks++;
			done.peek = script->pool == ACT_BEHIND ?
			    PEEK_DIFFERS : PEEK_SAME;
			done.inbox_generation = 1;
			/* more news for each child that missed the last */
			done.inbox_mark = 100 + script->hots;
		}
		done.account_left_live = script->pool == ACT_LEFT_LIVE;
		tell(MSG_PASS_DONE, &done);
	}
}

static void
act_job(const struct child_start *start)
{
	struct frame frame;

	if (script->job == ACT_STILLBORN)
		_exit(EXIT_BUG);
	enter(start);
	for (;;) {
		struct msg_job_done done = { .outcome = ERR_NONE };
		unsigned now;

		hear(&frame);
		if (frame.header.type == MSG_STOP)
			_exit(EXIT_DONE);
		if (frame.header.type != MSG_JOB_START)
			continue;
		script->jobs++;
		now = ++script->jobs_now;
		if (now > script->jobs_most)
			script->jobs_most = now;
		done.job_id = frame.payload.job_start.job_id;
		misbehave(script->job, &done.job_id);
		poll(NULL, 0, 50); /* a job takes a while */
		script->jobs_now--;
		tell(MSG_JOB_DONE, &done);
	}
}

/* --- the master --------------------------------------------------------- */

#define SETTINGS_MAX 48

static _Noreturn void
perform(const char *role, const char *const *settings, const char *control)
{
	static const struct child_entry entries[KIND_COUNT] = {
		[KIND_CLERK] = { act_clerk, 0 },
		[KIND_HOT] = { act_hot, sizeof(struct hot_task) },
		[KIND_POOL] = { act_pool, 0 },
		[KIND_JOB] = { act_job, sizeof(struct job_task) },
	};
	static char own[5][160];
	const char *overrides[SETTINGS_MAX] = { own[0], own[1], own[2], own[3],
		own[4], "lease_ttl=5", "lease_renew=1", "claim_interval=1",
		"claim_jitter=0", "heartbeat_interval=1", "heartbeat_ttl=3",
		"tier_interval=1", "reconcile_interval=3", "stop_timeout=2",
		"backoff_first=1", "sweep_interval=1", "poll_warm=1",
		"rebalance_interval=2" };
	static char file[128];
	struct err err = ERR_INIT;
	struct conf *conf;
	size_t n = 18;
	int result;

	snprintf(file, sizeof(file), "%s/conf", directory);
	snprintf(own[0], sizeof(own[0]), "worker_role=%s", role);
	snprintf(own[1], sizeof(own[1]), "redis=unix:%s/redis.sock",
	    directory);
	snprintf(own[2], sizeof(own[2]), "control_socket=%s", control);
	snprintf(own[3], sizeof(own[3]), "secret_key_file=%s/key", directory);
	snprintf(own[4], sizeof(own[4]), "redis_prefix=test:");
	while (settings != NULL && *settings != NULL && n < SETTINGS_MAX)
		overrides[n++] = *settings++;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	log_open("mailherd", LOG_TARGET_STDERR);
	snprintf(own[0] + 100, 60, "%s/log", directory);
	log_set_file(own[0] + 100);
	log_set_level(LOG_LEVEL_DEBUG);
	if (conf_load(&conf, file, overrides, n, &err) == -1)
		die(1, "%s", err.text);
	if (vault_load(conf->secret_key_file, &err) == -1)
		die(1, "%s", err.text);
	slots_init(master_slots());
	spawn_init(entries);
	result = master_main(&(struct master_params){ .conf = conf,
	    .file = file, .overrides = overrides, .n_overrides = n });
	conf_free(&conf);
	vault_forget();
	exit(result);
}

struct player *
player_start_unheard(const char *role, const char *const *settings)
{
	struct player *player = &players[n_players++];

	snprintf(player->socket, sizeof(player->socket), "%s/%s%u.sock",
	    directory, role, n_players);
	player->pid = fork();
	if (player->pid == 0)
		perform(role, settings, player->socket);
	return player;
}

struct player *
player_start(const char *role, const char *const *settings)
{
	struct player *player = player_start_unheard(role, settings);

	WAIT_FOR(player_status(player, "pid") == player->pid);
	return player;
}

pid_t
player_pid(const struct player *player)
{
	return player->pid;
}

const char *
player_socket(const struct player *player)
{
	return player->socket;
}

int
player_wait(struct player *player, int64_t msecs)
{
	int64_t until = stage_now() + msecs;
	int status;

	while (waitpid(player->pid, &status, WNOHANG) != player->pid) {
		if (stage_now() > until)
			return -1;
		stage_pause();
	}
	player->pid = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) :
	    128 + WTERMSIG(status);
}

void
player_kill(struct player *player)
{
	kill(player->pid, SIGKILL);
	player_wait(player, 5000);
}

/* --- asking ------------------------------------------------------------- */

json_t *
player_ask(const struct player *player, const char *line)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	json_t *reply = NULL;
	FILE *f;

	strlcpy(addr.sun_path, player->socket, sizeof(addr.sun_path));
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == -1) {
		close(fd);
		return NULL;
	}
	f = fdopen(fd, "r+");
	fprintf(f, "%s\n", line);
	fflush(f);
	reply = json_loadf(f, JSON_DISABLE_EOF_CHECK, NULL);
	fclose(f);
	return reply;
}

long long
player_status(const struct player *player, const char *key)
{
	json_t *reply = player_ask(player, "{\"cmd\":\"status\"}");
	json_t *value = json_object_get(reply, key);
	long long n = json_is_integer(value) ? json_integer_value(value) : -1;

	json_decref(reply);
	return n;
}

pid_t
player_child(const struct player *player, const char *kind, const char *state)
{
	json_t *reply = player_ask(player, "{\"cmd\":\"ps\"}"), *row;
	pid_t pid = 0;
	size_t i;

	json_array_foreach(json_object_get(reply, "children"), i, row) {
		const char *k = json_string_value(json_object_get(row,
		    "kind"));
		const char *s = json_string_value(json_object_get(row,
		    "state"));

		if (strcmp(k, kind) == 0 && (state == NULL ||
		    strcmp(s, state) == 0))
			pid = (pid_t)json_integer_value(json_object_get(row,
			    "pid"));
	}
	json_decref(reply);
	return pid;
}

const char *
redis_say(const char *fmt, ...)
{
	static char text[4096];
	char line[1024];
	redisReply *reply;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	text[0] = '\0';
	reply = redisCommand(outsider, line);
	if (reply == NULL)
		return text;
	if (reply->type == REDIS_REPLY_INTEGER)
		snprintf(text, sizeof(text), "%lld", reply->integer);
	else if (reply->str != NULL)
		strlcpy(text, reply->str, sizeof(text));
	freeReplyObject(reply);
	return text;
}

int64_t
stage_now(void)
{
	return clock_mono_msecs();
}

void
stage_pause(void)
{
	poll(NULL, 0, 20);
}

/* --- the stage ---------------------------------------------------------- */

static void
start_redis(void)
{
	char socket_path[96];
	int null;

	snprintf(socket_path, sizeof(socket_path), "%s/redis.sock",
	    directory);
	redis_pid = fork();
	if (redis_pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		null = open("/dev/null", O_RDWR);
		dup2(null, 1);
		dup2(null, 2);
		execlp("redis-server", "redis-server", "--port", "0",
		    "--unixsocket", socket_path, "--save", "", "--dir",
		    directory, (char *)NULL);
		_exit(127);
	}
	for (int64_t until = stage_now() + 10000;;) {
		outsider = redisConnectUnix(socket_path);
		if (outsider != NULL && outsider->err == 0)
			break;
		if (outsider != NULL)
			redisFree(outsider);
		ck_assert_msg(stage_now() < until, "redis-server needed");
		stage_pause();
	}
	redisSetTimeout(outsider, (struct timeval){ 5, 0 });
}

static void
end_redis(void)
{
	kill(redis_pid, SIGKILL);
	waitpid(redis_pid, NULL, 0);
	redisFree(outsider);
}

void
stage_restart_redis(void)
{
	end_redis();
	start_redis();
}

pid_t
stage_redis_pid(void)
{
	return redis_pid;
}

const char *
stage_directory(void)
{
	return directory;
}

void
stage_setup(void)
{
	struct err err = ERR_INIT;
	char path[128];
	bool created;
	unsigned i;
	FILE *f;

	snprintf(directory, sizeof(directory), "/tmp/mailherd-master-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/conf", directory);
	f = fopen(path, "w");
	fclose(f);
	snprintf(path, sizeof(path), "%s/key", directory);
	ck_assert_int_eq(vault_create_key(path, &created, &err), 0);
	script = mmap(NULL, sizeof(*script), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	script->n_accounts = 1;
	script->last_mail_secs = clock_wall_secs();
	for (i = 0; i < STAGE_ACCOUNTS; i++) {
		uuid_generate(&script->accounts[i]);
		uuid_generate(&script->users[i]);
		script->is_live[i] = true;
	}
	n_players = 0;
	start_redis();
}

void
stage_teardown(void)
{
	char command[160];
	unsigned i;

	for (i = 0; i < n_players; i++)
		if (players[i].pid > 0)
			player_kill(&players[i]);
	end_redis();
	munmap(script, sizeof(*script));
	if (getenv("KEEP") != NULL)
		return;
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	ck_assert_int_eq(system(command), 0);
}
