/*
 * commands.c - what can be asked through the control socket.
 *
 * Runs in: master.  Never blocks.
 *
 * One row a command.  The line comes from outside: it is parsed strictly, and
 * nothing but a valid request reaches a handler.
 */
#include "config.h"

#include "base/clock.h"
#include "master/accounts.h"
#include "master/budgets.h"
#include "master/children.h"
#include "master/clerk.h"
#include "master/control.h"
#include "master/job_dispatch.h"
#include "master/metrics.h"
#include "master/orders.h"
#include "master/release.h"
#include "master/reply.h"
#include "master/tiers.h"
#include "redis/redis.h"

#include <unistd.h>

enum needs { NEEDS_NOTHING, NEEDS_ACCOUNT };

struct control_command {
	const char *name;
	enum needs needs;
	/* Fills `reply`; -1 with the reason for the client. */
	int (*run)(struct master *m, json_t *request, struct account *account,
	    json_t *reply, struct err *err);
};

/* --- status, ps --------------------------------------------------------- */

static int
command_status(struct master *m, json_t *request, struct account *account,
    json_t *reply, struct err *err)
{
	struct role_figures figures = { 0 };
	unsigned tier;

	(void)request, (void)account, (void)err;
	m->role->count(m, &figures);
	reply_text(reply, "worker_id", m->worker_id);
	reply_text(reply, "role", m->role->name);
	reply_text(reply, "version", PACKAGE_VERSION);
	reply_number(reply, "pid", getpid());
	reply_number(reply, "uptime_s",
	    (clock_mono_msecs() - m->started_mono) / 1000);
	reply_text(reply, "state", m->is_stopping ? "stopping" :
	    m->is_draining ? "draining" : "running");
	reply_number(reply, "owned", (int64_t)figures.owned);
	for (tier = 0; tier < TIER_COUNT; tier++)
		reply_number(reply, tier_name(tier),
		    (int64_t)figures.of_tier[tier]);
	reply_number(reply, "sockets_open",
	    (int64_t)budgets_in_use(m->budgets, RESOURCE_SOCKET));
	reply_number(reply, "children", (int64_t)children_count(m->children));
	reply_text(reply, "redis", redis_is_up(m->redis) ? "up" : "away");
	reply_text(reply, "postgres", m->is_postgres_up ? "up" : "away");
	m->role->add_status(m, reply);
	reply_number(reply, "log_lines_lost", (int64_t)log_lost());
#define X(name, help) reply_number(reply, #name, (int64_t)m->counters.name);
	COUNTERS(X)
#undef X
	return 0;
}

static int64_t
ps_rss_kb(pid_t pid)
{
	char path[40];
	long long size, resident = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	f = fopen(path, "re");
	if (f == NULL)
		return 0;
	if (fscanf(f, "%lld %lld", &size, &resident) != 2)
		resident = 0;
	fclose(f);
	return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static const char *
ps_state(const struct child *child)
{
	if (child->kind == KIND_HOT && child->state == CHILD_WORKING)
		return child->idling_since_mono != 0 ? "idle" : "connecting";
	return child->state == CHILD_READY ? "ready" :
	    child_state_name(child->state);
}

static int
command_ps(struct master *m, json_t *request, struct account *account,
    json_t *reply, struct err *err)
{
	int64_t now = clock_mono_msecs();
	json_t *list = json_array(), *row;
	struct child *child;

	(void)request, (void)account, (void)err;
	for (child = children_first(m->children); child != NULL;
	    child = child_next(child)) {
		if (child->pid == 0)
			continue; /* asked for, and not yet a process */
		row = json_object();
		reply_number(row, "pid", child->pid);
		reply_text(row, "kind", child_kind_name(child->kind));
		reply_id(row, "account_id", &child->account_id);
		if (running_job_id(child->job) != NULL)
			reply_id(row, "job_id", running_job_id(child->job));
		reply_text(row, "state", ps_state(child));
		reply_number(row, "since_s", (now - child->since_mono_msecs) /
		    1000);
		reply_number(row, "rss_kb", ps_rss_kb(child->pid));
		reply_number(row, "generation", child->generation);
		reply_text(row, "activity", child->activity);
		json_array_append_new(list, row);
	}
	json_object_set_new(reply, "children", list);
	return 0;
}

static int
command_explain(struct master *m, json_t *request, struct account *account,
    json_t *reply, struct err *err)
{
	(void)request, (void)err;
	explain_account(m, account, reply);
	return 0;
}

/* --- orders ------------------------------------------------------------- */

static int
command_poll(struct master *m, json_t *request, struct account *account,
    json_t *reply, struct err *err)
{
	char text[400], span[32];
	int64_t wait;

	(void)request, (void)err;
	account_poll_now(account, m->accounts);
	wait = account->health.not_before_mono - clock_mono_msecs();
	if (wait > 0) {
		snprintf(text, sizeof(text), "the poll comes in %s: %s",
		    clock_format_span(span, sizeof(span), (wait + 999) / 1000),
		    account->health.last_error);
		reply_text(reply, "text", text);
	}
	return 0;
}

static int
command_tier(struct master *m, json_t *request, struct account *account,
    json_t *reply, struct err *err)
{
	const char *name = json_string_value(json_object_get(request,
	    "tier"));
	enum tier tier = TIER_WARM;

	(void)reply;
	if (name == NULL || (strcmp(name, "auto") != 0 &&
	    tier_parse(name, &tier) == -1))
		return err_set(err, ERR_PERMANENT,
		    "tier is hot, warm, cold or auto");
	tiers_pin(account, m, strcmp(name, "auto") != 0, tier);
	return 0;
}

static int
command_release(struct master *m, json_t *request, struct account *account,
    json_t *reply, struct err *err)
{
	(void)request, (void)reply, (void)err;
	release_account(account, m, "asked for by an operator",
	    (m->conf->claim_interval + m->conf->claim_jitter) * 3000);
	return 0;
}

static int
command_drain(struct master *m, json_t *request, struct account *account,
    json_t *reply, struct err *err)
{
	(void)request, (void)account, (void)reply, (void)err;
	orders_drain(m);
	return 0;
}

static int
command_undrain(struct master *m, json_t *request, struct account *account,
    json_t *reply, struct err *err)
{
	(void)request, (void)account, (void)reply, (void)err;
	orders_undrain(m);
	return 0;
}

static int
command_reload(struct master *m, json_t *request, struct account *account,
    json_t *reply, struct err *err)
{
	(void)request, (void)account;
	return orders_reload(m, reply, err);
}

static int
command_stop(struct master *m, json_t *request, struct account *account,
    json_t *reply, struct err *err)
{
	(void)request, (void)account, (void)reply, (void)err;
	orders_stop(m, "asked for by an operator");
	return 0;
}

static int
command_log(struct master *m, json_t *request, struct account *account,
    json_t *reply, struct err *err)
{
	const char *level_name = json_string_value(json_object_get(request,
	    "level"));
	const char *name = json_string_value(json_object_get(request,
	    "subsystem"));
	enum log_subsystem subsystem = 0;
	enum log_level level;

	(void)account, (void)reply;
	if (level_name == NULL || log_level_parse(level_name, &level) == -1)
		return err_set(err, ERR_PERMANENT,
		    "level is error, warn, info or debug");
	if (name != NULL && log_subsystem_parse(name, &subsystem) == -1)
		return err_set(err, ERR_PERMANENT, "no such subsystem");
	if (name != NULL)
		log_set_debug(subsystem, level == LOG_LEVEL_DEBUG);
	else
		log_set_level(level);
	orders_log_level(m, level, name != NULL ? (int)subsystem : -1);
	return 0;
}

static int
command_metrics(struct master *m, json_t *request, struct account *account,
    json_t *reply, struct err *err)
{
	char *text = metrics_text(m);

	(void)request, (void)account, (void)err;
	json_object_set_new(reply, "text", json_string(text));
	free(text);
	return 0;
}

static const struct control_command commands[] = {
	{ "status", NEEDS_NOTHING, command_status },
	{ "ps", NEEDS_NOTHING, command_ps },
	{ "explain", NEEDS_ACCOUNT, command_explain },
	{ "poll", NEEDS_ACCOUNT, command_poll },
	{ "tier", NEEDS_ACCOUNT, command_tier },
	{ "release", NEEDS_ACCOUNT, command_release },
	{ "drain", NEEDS_NOTHING, command_drain },
	{ "undrain", NEEDS_NOTHING, command_undrain },
	{ "reload", NEEDS_NOTHING, command_reload },
	{ "stop", NEEDS_NOTHING, command_stop },
	{ "log", NEEDS_NOTHING, command_log },
	{ "metrics", NEEDS_NOTHING, command_metrics },
};

/* --- a line ------------------------------------------------------------- */

static struct account *
command_find_account(struct master *m, json_t *request, struct err *err)
{
	const char *name = json_string_value(json_object_get(request,
	    "account"));

	if (name != NULL)
		return m->role->find_account(m, name, err);
	err_set(err, ERR_PERMANENT, "which account?");
	return NULL;
}

static int
command_run_line(struct master *m, json_t *request, json_t *reply,
    struct err *err)
{
	const char *name = json_string_value(json_object_get(request, "cmd"));
	struct account *account = NULL;
	size_t i;

	if (!json_is_object(request) || name == NULL)
		return err_set(err, ERR_PERMANENT,
		    "not understood; one JSON object a line, with \"cmd\"");
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(commands[i].name, name) != 0)
			continue;
		if (commands[i].needs == NEEDS_ACCOUNT &&
		    (account = command_find_account(m, request, err)) == NULL)
			return -1;
		return commands[i].run(m, request, account, reply, err);
	}
	return err_set(err, ERR_PERMANENT, "no such command");
}

char *
control_answer(struct master *m, const char *line, size_t len)
{
	json_t *request, *reply = json_object();
	struct err err = ERR_INIT;
	char *text;

	request = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);
	json_object_set_new(reply, "ok", json_true());
	if (command_run_line(m, request, reply, &err) == -1) {
		json_object_clear(reply);
		json_object_set_new(reply, "ok", json_false());
		reply_text(reply, "error", err.text);
	}
	text = json_dumps(reply, JSON_COMPACT);
	json_decref(request);
	json_decref(reply);
	return text;
}
