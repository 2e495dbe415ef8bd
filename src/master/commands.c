/*
 * commands.c - what can be asked through the control socket.
 *
 * Runs in: master.  Never blocks.
 *
 * One row a command.  The line comes from outside: it is parsed strictly, and
 * nothing but a valid request reaches a handler.
 */
#include "config.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/text.h"
#include "lease/keeper.h"
#include "lease/redis.h"
#include "master/accounts.h"
#include "master/children.h"
#include "master/clerk.h"
#include "master/control.h"
#include "master/dispatch.h"
#include "master/grants.h"
#include "master/tiers.h"
#include "master/works.h"

#include <strings.h>
#include <unistd.h>

enum needs { NEEDS_NOTHING, NEEDS_ACCOUNT };

struct command {
	const char *name;
	enum needs needs;
	/* Fills `reply`; -1 with the reason for the client. */
	int (*run)(struct master *m, json_t *request, struct account *account,
	    json_t *reply, struct err *err);
};

static void
set_str(json_t *object, const char *key, const char *value)
{
	char clean[512];

	text_clean_line(clean, sizeof(clean), value, strlen(value));
	json_object_set_new(object, key, json_string(clean));
}

static void
set_num(json_t *object, const char *key, int64_t value)
{
	json_object_set_new(object, key, json_integer(value));
}

static void
set_id(json_t *object, const char *key, const struct uuid *id)
{
	char text[UUID_TEXT_SIZE];

	json_object_set_new(object, key, uuid_is_null(id) ? json_null() :
	    json_string(uuid_format(id, text)));
}

static size_t
in_tier(const struct master *m, enum tier tier)
{
	return m->accounts != NULL ? accounts_of_tier(m->accounts, tier) : 0;
}

static size_t
owned(const struct master *m)
{
	return m->keeper != NULL ? keeper_count(m->keeper) : 0;
}

/* --- status, ps --------------------------------------------------------- */

static int
run_status(struct master *m, json_t *request, struct account *account,
    json_t *reply, struct err *err)
{
	(void)request, (void)account, (void)err;
	set_str(reply, "worker_id", m->worker_id);
	set_str(reply, "role", m->conf->worker_role == ROLE_SYNC ? "sync" :
	    "jobs");
	set_str(reply, "version", PACKAGE_VERSION);
	set_num(reply, "pid", getpid());
	set_num(reply, "uptime_s",
	    (clock_mono_msecs() - m->started_mono) / 1000);
	set_str(reply, "state", m->is_stopping ? "stopping" :
	    m->is_draining ? "draining" : "running");
	set_num(reply, "owned", (int64_t)owned(m));
	set_num(reply, "hot", (int64_t)in_tier(m, TIER_HOT));
	set_num(reply, "warm", (int64_t)in_tier(m, TIER_WARM));
	set_num(reply, "cold", (int64_t)in_tier(m, TIER_COLD));
	set_num(reply, "sockets_open",
	    (int64_t)grants_in_use(m->grants, RESOURCE_SOCKET));
	set_num(reply, "children", (int64_t)children_count(m->children));
	set_str(reply, "redis", redis_is_up(m->redis) ? "up" : "away");
	set_str(reply, "postgres", m->is_postgres_up ? "up" : "away");
	if (m->keeper != NULL) {
		set_num(reply, "live", (int64_t)keeper_live(m->keeper));
		set_num(reply, "workers", (int64_t)keeper_workers(m->keeper));
	}
	if (m->works != NULL) {
		set_num(reply, "jobs_running",
		    (int64_t)works_running(m->works));
		set_num(reply, "jobs_waiting",
		    (int64_t)works_waiting(m->works));
	}
#define X(name, help) set_num(reply, #name, (int64_t)m->counters.name);
	COUNTERS(X)
#undef X
	return 0;
}

static int64_t
rss_kb(pid_t pid)
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
shown_state(const struct child *child)
{
	if (child->kind == KIND_HOT && child->state == CHILD_WORKING)
		return child->idling_since_mono != 0 ? "idle" : "connecting";
	return child->state == CHILD_READY ? "ready" :
	    child_state_name(child->state);
}

static int
run_ps(struct master *m, json_t *request, struct account *account,
    json_t *reply, struct err *err)
{
	int64_t now = clock_mono_msecs();
	json_t *list = json_array(), *row;
	struct child *child;

	(void)request, (void)account, (void)err;
	for (child = children_first(m->children); child != NULL;
	    child = child_next(child)) {
		row = json_object();
		set_num(row, "pid", child->pid);
		set_str(row, "kind", child_kind_name(child->kind));
		set_id(row, "account_id", &child->account_id);
		if (work_id(child->work) != NULL)
			set_id(row, "job_id", work_id(child->work));
		set_str(row, "state", shown_state(child));
		set_num(row, "since_s", (now - child->since_mono_msecs) /
		    1000);
		set_num(row, "rss_kb", rss_kb(child->pid));
		set_num(row, "generation", child->generation);
		set_str(row, "activity", child->activity);
		json_array_append_new(list, row);
	}
	json_object_set_new(reply, "children", list);
	return 0;
}

/* --- explain ------------------------------------------------------------ */

static void
say(json_t *chain, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void
say(json_t *chain, const char *fmt, ...)
{
	char text[600], clean[1800];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	text_clean_line(clean, sizeof(clean), text, strlen(text));
	json_array_append_new(chain, json_string(clean));
}

static const char *
span_to(char *out, size_t size, int64_t when_mono, int64_t now)
{
	char span[32];

	if (when_mono <= now)
		snprintf(out, size, "now");
	else
		snprintf(out, size, "in %s", clock_format_span(span,
		    sizeof(span), (when_mono - now + 999) / 1000));
	return out;
}

static void
explain_tier(json_t *reply, json_t *chain, const struct account *account,
    int64_t now)
{
	char span[48];

	set_str(reply, "tier", tier_name(account->tier));
	set_str(reply, "tier_rule", account->rule);
	json_object_set_new(reply, "pinned",
	    json_boolean(account->facts.is_pinned));
	say(chain, "tier      %s: %s", tier_name(account->tier),
	    account->rule);
	if (account->session_until_mono > now)
		say(chain, "session   ends %s unless refreshed", span_to(span,
		    sizeof(span), account->session_until_mono, now));
	if (account->facts.last_mail_secs > 0)
		say(chain, "last mail %s ago", clock_format_span(span,
		    sizeof(span), clock_wall_secs() -
		    account->facts.last_mail_secs));
}

static void
explain_idle(json_t *chain, const struct account *account, int64_t now)
{
	char span[48];

	if (account->hot != NULL)
		say(chain, "idle      pid %d, %s, %s", (int)account->hot->pid,
		    account->hot->idling_since_mono ? "waiting for the server" :
		    child_state_name(account->hot->state),
		    account->hot->activity);
	else if (account->tier != TIER_HOT)
		return;
	else if (account->no_idle != IDLE_ALLOWED)
		say(chain, "idle      polled often instead, because %s",
		    no_idle_reason(account->no_idle));
	else
		say(chain, "idle      no connection yet, next try %s",
		    span_to(span, sizeof(span), account->hot_not_before_mono >
			account->not_before_mono ?
			account->hot_not_before_mono :
			account->not_before_mono, now));
}

static void
explain_polls(json_t *reply, json_t *chain, const struct account *account,
    int64_t now)
{
	const struct schedule *s = &account->schedule;
	int64_t next = policy_next(s);
	char near[48], far[48];

	if (next < account->not_before_mono)
		next = account->not_before_mono;
	set_num(reply, "next_poll_s", next > now ? (next - now + 999) / 1000 :
	    0);
	if (account->pool != NULL)
		say(chain, "pass      pid %d: %s", (int)account->pool->pid,
		    account->pool->activity);
	if (s->full != 0)
		say(chain, "next      all folders %s", span_to(near,
		    sizeof(near), s->full, now));
	say(chain, "next      %sspecial folders %s, other folders %s",
	    account_is_idling(account) ? "" : "INBOX and ", span_to(near,
	    sizeof(near), s->near, now), span_to(far, sizeof(far), s->far,
	    now));
}

static void
explain_failures(json_t *reply, json_t *chain, const struct account *account,
    int64_t now)
{
	char span[48];

	set_num(reply, "failures", account->failures);
	set_str(reply, "last_error", account->last_error);
	if (account->failures == 0) {
		say(chain, "health    good, %llu passes since taken over",
		    (unsigned long long)account->passes);
		return;
	}
	say(chain, "health    %u failures in a row, the last %s ago (%s): %s",
	    account->failures, clock_format_span(span, sizeof(span),
	    clock_wall_secs() - account->last_error_secs),
	    err_kind_name(account->last_error_kind), account->last_error);
	say(chain, "then      tried again %s", span_to(span, sizeof(span),
	    account->not_before_mono, now));
}

static int
run_explain(struct master *m, json_t *request, struct account *account,
    json_t *reply, struct err *err)
{
	json_t *chain = json_array();
	int64_t now = clock_mono_msecs(), left;

	(void)request, (void)err;
	left = keeper_lease_left(m->keeper, &account->id);
	set_id(reply, "account_id", &account->id);
	set_str(reply, "state", ownership_name(account->state));
	set_str(reply, "owner", m->worker_id);
	set_num(reply, "lease_left_s", left / 1000);
	set_num(reply, "epoch", account->epoch);
	say(chain, "account   %s", account->email);
	say(chain, "owner     this worker, %s: %s",
	    ownership_name(account->state), m->worker_id);
	say(chain, "lease     %lld s left, epoch %lld",
	    (long long)left / 1000, (long long)account->epoch);
	if (account->state == ACCOUNT_OWNED) {
		explain_tier(reply, chain, account, now);
		explain_idle(chain, account, now);
		explain_polls(reply, chain, account, now);
		explain_failures(reply, chain, account, now);
		say(chain, "budget    %zu of %lld connections to %s, %zu of "
		    "%lld PostgreSQL sessions", grants_host_in_use(m->grants,
		    account->host), (long long)conf_host_cap(m->conf,
		    account->host), account->host, grants_in_use(m->grants,
		    RESOURCE_DATABASE), (long long)m->conf->db_conn_cap);
	} else if (account->state == ACCOUNT_LEAVING) {
		say(chain, "then      lease released: %s", account->leave_why);
	} else {
		say(chain, "then      waiting for PostgreSQL to raise the "
		    "epoch (%zu questions before)", clerk_backlog(m->clerk));
	}
	json_object_set_new(reply, "chain", chain);
	return 0;
}

/* --- orders ------------------------------------------------------------- */

static int
run_poll(struct master *m, json_t *request, struct account *account,
    json_t *reply, struct err *err)
{
	char text[96], span[32];
	int64_t wait = account->not_before_mono - clock_mono_msecs();

	(void)request, (void)err;
	account_poll_now(account, m);
	if (account->refusals > 0 && wait > 0) {
		snprintf(text, sizeof(text),
		    "poll comes in %s: the login was refused",
		    clock_format_span(span, sizeof(span), wait / 1000));
		set_str(reply, "text", text);
	}
	return 0;
}

static int
run_tier(struct master *m, json_t *request, struct account *account,
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
	account_pin(account, m, strcmp(name, "auto") != 0, tier);
	return 0;
}

static int
run_release(struct master *m, json_t *request, struct account *account,
    json_t *reply, struct err *err)
{
	(void)request, (void)reply, (void)err;
	account_leave(account, m, "asked for by an operator",
	    (m->conf->claim_interval + m->conf->claim_jitter) * 3000);
	return 0;
}

static int
run_drain(struct master *m, json_t *request, struct account *account,
    json_t *reply, struct err *err)
{
	(void)request, (void)account, (void)reply, (void)err;
	master_drain(m);
	return 0;
}

static int
run_reload(struct master *m, json_t *request, struct account *account,
    json_t *reply, struct err *err)
{
	(void)request, (void)account;
	return master_reload(m, reply, err);
}

static int
run_stop(struct master *m, json_t *request, struct account *account,
    json_t *reply, struct err *err)
{
	(void)request, (void)account, (void)reply, (void)err;
	master_stop(m, "asked for by an operator");
	return 0;
}

static int
run_log(struct master *m, json_t *request, struct account *account,
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
	master_tell_log_level(m, level, name != NULL ? (int)subsystem : -1);
	return 0;
}

static int
run_metrics(struct master *m, json_t *request, struct account *account,
    json_t *reply, struct err *err)
{
	char *text = control_metrics(m);

	(void)request, (void)account, (void)err;
	json_object_set_new(reply, "text", json_string(text));
	free(text);
	return 0;
}

static const struct command commands[] = {
	{ "status", NEEDS_NOTHING, run_status },
	{ "ps", NEEDS_NOTHING, run_ps },
	{ "explain", NEEDS_ACCOUNT, run_explain },
	{ "poll", NEEDS_ACCOUNT, run_poll },
	{ "tier", NEEDS_ACCOUNT, run_tier },
	{ "release", NEEDS_ACCOUNT, run_release },
	{ "drain", NEEDS_NOTHING, run_drain },
	{ "reload", NEEDS_NOTHING, run_reload },
	{ "stop", NEEDS_NOTHING, run_stop },
	{ "log", NEEDS_NOTHING, run_log },
	{ "metrics", NEEDS_NOTHING, run_metrics },
};

/* --- a line ------------------------------------------------------------- */

static struct account *
find_account(struct master *m, json_t *request, struct err *err)
{
	const char *name = json_string_value(json_object_get(request,
	    "account"));
	struct account *account = NULL;
	struct uuid id;
	size_t at;

	if (m->accounts == NULL) {
		err_set(err, ERR_PERMANENT,
		    "this is a jobs worker, it owns no accounts");
		return NULL;
	}
	if (name == NULL) {
		err_set(err, ERR_PERMANENT, "which account?");
		return NULL;
	}
	if (uuid_parse(name, &id) == 0)
		account = account_find(m->accounts, &id);
	else
		for (at = 0; (account = idmap_next(&m->accounts->map, &at,
			 NULL)) != NULL;)
			if (strcasecmp(account->email, name) == 0)
				break;
	if (account == NULL)
		err_set(err, ERR_GONE, "this worker does not own the account; "
		    "account show tells the owner");
	return account;
}

static int
run_line(struct master *m, json_t *request, json_t *reply, struct err *err)
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
		    (account = find_account(m, request, err)) == NULL)
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
	if (run_line(m, request, reply, &err) == -1) {
		json_object_clear(reply);
		json_object_set_new(reply, "ok", json_false());
		set_str(reply, "error", err.text);
	}
	text = json_dumps(reply, JSON_COMPACT);
	json_decref(request);
	json_decref(reply);
	return text;
}

/* --- metrics and dump --------------------------------------------------- */

static void
gauge(struct buf *out, const char *name, const char *labels, const char *help,
    int64_t value)
{
	if (help != NULL)
		buf_addf(out, "# HELP mailherd_%s %s\n# TYPE mailherd_%s "
		    "gauge\n", name, help, name);
	buf_addf(out, "mailherd_%s%s %lld\n", name, labels, (long long)value);
}

static void
tier_gauges(struct buf *out, const struct master *m)
{
	char labels[40];
	unsigned tier;

	for (tier = 0; tier < TIER_COUNT; tier++) {
		snprintf(labels, sizeof(labels), "{tier=\"%s\"}",
		    tier_name(tier));
		gauge(out, "accounts", labels, tier == 0 ?
		    "Owned accounts by tier." : NULL, (int64_t)in_tier(m,
		    tier));
	}
}

static void
child_gauges(struct buf *out, const struct master *m)
{
	char labels[40];
	unsigned kind;

	for (kind = 0; kind < KIND_COUNT; kind++) {
		snprintf(labels, sizeof(labels), "{kind=\"%s\"}",
		    child_kind_name(kind));
		gauge(out, "children", labels, kind == 0 ?
		    "Child processes by kind." : NULL,
		    (int64_t)children_of(m->children, kind));
	}
}

/* Age of the oldest successful pass: the sync lag of the fleet. */
static int64_t
oldest_pass(const struct master *m)
{
	int64_t oldest = 0, age, now = clock_wall_secs();
	struct account *account;
	size_t at;

	if (m->accounts == NULL)
		return 0;
	for (at = 0; (account = idmap_next(&m->accounts->map, &at, NULL)) !=
	    NULL;) {
		age = account->last_pass_secs > 0 ?
		    now - account->last_pass_secs :
		    (clock_mono_msecs() - account->since_mono) / 1000;
		if (account->state == ACCOUNT_OWNED && age > oldest)
			oldest = age;
	}
	return oldest;
}

char *
control_metrics(struct master *m)
{
	struct buf out = BUF_INIT;

	gauge(&out, "up", "", "1 while the master runs.", 1);
	gauge(&out, "uptime_seconds", "", "Time since start.",
	    (clock_mono_msecs() - m->started_mono) / 1000);
	gauge(&out, "redis_up", "", "1 while Redis answers.",
	    redis_is_up(m->redis));
	gauge(&out, "postgres_up", "", "1 while PostgreSQL answers.",
	    m->is_postgres_up);
	gauge(&out, "leases", "", "Leases held.", (int64_t)owned(m));
	tier_gauges(&out, m);
	child_gauges(&out, m);
	gauge(&out, "sockets_open", "", "Connections to mail servers.",
	    (int64_t)grants_in_use(m->grants, RESOURCE_SOCKET));
	gauge(&out, "grants_waiting", "", "Children waiting for a budget.",
	    (int64_t)grants_waiting(m->grants));
	gauge(&out, "clerk_backlog", "", "Questions waiting for PostgreSQL.",
	    (int64_t)clerk_backlog(m->clerk));
	gauge(&out, "oldest_pass_seconds", "",
	    "Age of the oldest successful pass of an owned account.",
	    oldest_pass(m));
	if (m->works != NULL) {
		gauge(&out, "jobs_running", "", "Jobs under way.",
		    (int64_t)works_running(m->works));
		gauge(&out, "jobs_waiting", "", "Jobs waiting for a child.",
		    (int64_t)works_waiting(m->works));
	}
#define X(name, help)                                                      \
	buf_addf(&out, "# HELP mailherd_" #name "_total " help "\n"       \
	    "# TYPE mailherd_" #name "_total counter\n"                   \
	    "mailherd_" #name "_total %llu\n",                            \
	    (unsigned long long)m->counters.name);
	COUNTERS(X)
#undef X
	return out.data;
}

static void
dump_accounts(const struct master *m)
{
	int64_t now = clock_mono_msecs();
	struct account *account;
	size_t at;

	for (at = 0; (account = idmap_next(&m->accounts->map, &at, NULL)) !=
	    NULL;)
		log_info(&account->log, "dump: state=%s epoch=%lld "
		    "lease_left_ms=%lld hot=%d pool=%d failures=%u "
		    "next_ms=%lld rule=\"%s\"",
		    ownership_name(account->state),
		    (long long)account->epoch,
		    (long long)(account->deadline_boot_msecs -
			clock_boot_msecs()),
		    account->hot != NULL ? (int)account->hot->pid : 0,
		    account->pool != NULL ? (int)account->pool->pid : 0,
		    account->failures,
		    (long long)(policy_next(&account->schedule) - now),
		    account->rule);
}

void
control_dump(struct master *m)
{
	char *status = control_answer(m, "{\"cmd\":\"status\"}", 16);
	struct child *child;
	char id[UUID_TEXT_SIZE];

	log_info(NULL, "dump: %s", status);
	free(status);
	for (child = children_first(m->children); child != NULL;
	    child = child_next(child))
		log_info(NULL, "dump: child pid=%d kind=%s account_id=%s "
		    "state=%s generation=%u activity=\"%s\"", (int)child->pid,
		    child_kind_name(child->kind),
		    uuid_format(&child->account_id, id),
		    child_state_name(child->state), child->generation,
		    child->activity);
	if (m->accounts != NULL)
		dump_accounts(m);
}
