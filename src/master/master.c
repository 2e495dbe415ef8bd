/*
 * master.c - the loop of the supervisor, its signals, its beginning and end.
 *
 * Runs in: master of both roles.  Never blocks.
 *
 * What the two roles do differently is a row each (role.h).
 *
 * Shutdown: take nothing new; ask the children to end, which releases each
 * account's lease as its last child goes; kill what does not end; leave the
 * loop when the releases are answered, and in any case in time (R-OPS-2).
 */
#include "config.h"

#include "master/master.h"

#include "base/clock.h"
#include "conf/options.h"
#include "lease/conns.h"
#include "lease/heartbeat.h"
#include "redis/loop.h"
#include "redis/redis.h"
#include "master/children.h"
#include "master/clerk.h"
#include "master/control.h"
#include "master/exporter.h"
#include "master/grants.h"
#include "master/relay.h"
#include "master/state.h"
#include "proc/spawn.h"

#include <jansson.h>

#include <signal.h>
#include <stdlib.h>
#include <sysexits.h>
#include <unistd.h>

/* After stop_timeout: time for SIGKILL to work and for the last releases. */
#define LAST_MSECS 1000
static const struct role_ops *const roles[] = {
	[ROLE_SYNC] = &role_sync,
	[ROLE_JOBS] = &role_jobs,
};

/*
 * For the most that the settings may ever say: a reload may raise them, and a
 * place costs nothing before it is used (proc/slots.c).
 */
unsigned
master_slots(void)
{
	static const char *const names[] = { "max_accounts_per_worker",
		"pool_max", "interactive_concurrency", "bulk_concurrency" };
	int64_t n = 0;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		n += options[option_find(names[i])].max;
	/* Clerks, metrics, and children that are on their way out. */
	return (unsigned)(n + n / 4 + 64);
}

/* --- what Redis tells --------------------------------------------------- */

static void
on_redis_up(void *arg)
{
	struct master *m = arg;

	if (m->is_stopping)
		return;
	m->role->on_redis_up(m);
	conns_tell(m->conns);
}

static void
on_redis_down(void *arg)
{
	struct master *m = arg;

	m->role->on_redis_down(m);
}

char *
master_describe(void *arg)
{
	struct master *m = arg;
	json_t *json = json_object(), *tiers = json_object();
	struct role_figures figures = { 0 };
	unsigned tier;
	char *text;

	m->role->count(m, &figures);
	for (tier = 0; tier < TIER_COUNT; tier++)
		json_object_set_new(tiers, tier_name(tier), json_integer(
		    (json_int_t)figures.of_tier[tier]));
	json_object_set_new(json, "owned", json_integer(
	    (json_int_t)figures.owned));
	json_object_set_new(json, "sockets_open", json_integer(
	    (json_int_t)grants_in_use(m->grants, RESOURCE_SOCKET)));
	json_object_set_new(json, "tiers", tiers);
	m->role->describe(m, json);
	if (m->is_draining)
		json_object_set_new(json, "draining", json_true());
	json_object_set_new(json, "ts", json_integer(clock_wall_secs()));
	json_object_set_new(json, "boot", json_string(heartbeat_boot()));
	json_object_set_new(json, "version", json_string(PACKAGE_VERSION));
	text = json_dumps(json, JSON_COMPACT);
	json_decref(json);
	return text;
}

/* --- budgets ------------------------------------------------------------ */

/* The connections of an account over all workers (R-CONN-1). */
static void
ask_gate(void *arg, const struct uuid *account, size_t cap, uint64_t tag)
{
	struct master *m = arg;

	conns_take(m->conns, account, cap, tag);
}

static void
leave_gate(void *arg, uint64_t tag)
{
	struct master *m = arg;

	conns_give_back(m->conns, tag);
}

static void
on_gate(void *arg, uint64_t tag, bool is_granted)
{
	struct master *m = arg;

	grants_settle(m->grants, tag, is_granted, clock_mono_msecs());
	if (!is_granted)
		master_watch_grants(m);
}

static void
on_grants_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	master_watch_grants(arg);
}

void
master_watch_grants(struct master *m)
{
	int64_t now = clock_mono_msecs();
	int64_t next = grants_expire(m->grants, now);

	if (next >= 0)
		event_in_msecs(m->grants_timer, next - now);
}

/* --- signals and orders ------------------------------------------------- */

void
master_tell_log_level(struct master *m, enum log_level level, int subsystem)
{
	struct msg_log_level msg = { .level = (int32_t)level,
		.subsystem = subsystem };
	struct child *child, *next;

	spawn_renew();
	for (child = children_first(m->children); child != NULL;
	    child = next) {
		next = child_next(child);
		child_send(child, MSG_LOG_LEVEL, &msg);
	}
}

int
master_reload(struct master *m, struct json_t *reply, struct err *err)
{
	struct conf *fresh;
	char restart[512];

	if (conf_load(&fresh, m->params.file, m->params.overrides,
		m->params.n_overrides, err) == -1) {
		log_error(NULL, "settings not reloaded: %s", err->text);
		return -1;
	}
	conf_adopt(m->conf, fresh, restart, sizeof(restart));
	conf_free(&fresh);
	if (m->params.refresh != NULL)
		m->params.refresh();
	log_set_level((enum log_level)m->conf->log_level);
	master_tell_log_level(m, (enum log_level)m->conf->log_level, -1);
	log_info(NULL, "settings reloaded%s%s", restart[0] ?
	    ", these need a restart: " : "", restart);
	if (reply != NULL && restart[0] != '\0') {
		json_object_set_new(reply, "restart", json_string(restart));
		json_object_set_new(reply, "text", json_sprintf(
		    "configuration read again; only a restart changes %s",
		    restart));
	}
	spawn_renew();
	/* New settings reach children by fork. */
	clerk_renew(m->clerk);
	exporter_renew(m->exporter);
	m->role->reload(m);
	return 0;
}

void
master_drain(struct master *m)
{
	log_info(NULL, "draining: takes nothing new");
	m->is_draining = true;
	m->role->drain(m);
}

void
master_undrain(struct master *m)
{
	if (!m->is_draining)
		return;
	log_info(NULL, "no longer draining");
	m->is_draining = false;
	m->role->undrain(m);
}

static void
on_stop_timer(evutil_socket_t fd, short what, void *arg)
{
	struct master *m = arg;

	(void)fd;
	(void)what;
	log_warn(NULL, "not everything ended in time: %zu children, leases "
	    "not yet released run out", children_count(m->children));
	event_base_loopbreak(m->base);
}

void
master_stop_step(struct master *m)
{
	if (children_count(m->children) > 0 || !m->role->is_quiet(m))
		return;
	event_base_loopexit(m->base, NULL);
}

void
master_stop(struct master *m, const char *why)
{
	struct child *child, *next;

	if (m->is_stopping)
		return;
	log_info(NULL, "stopping: %s", why);
	m->is_stopping = true;
	event_in_msecs(m->stop_timer, m->conf->stop_timeout * 1000 +
	    LAST_MSECS);
	m->role->stop(m);
	clerk_stop(m->clerk);
	exporter_stop(m->exporter);
	for (child = children_first(m->children); child != NULL;
	    child = next) {
		next = child_next(child);
		child_stop(child, "shutdown");
	}
	master_stop_step(m);
}

static void
on_term(evutil_socket_t sig, short what, void *arg)
{
	(void)what;
	master_stop(arg, sig == SIGTERM ? "SIGTERM" : "SIGINT");
}

static void
on_hup(evutil_socket_t sig, short what, void *arg)
{
	struct err err = ERR_INIT;

	(void)sig;
	(void)what;
	master_reload(arg, NULL, &err);
}

static void
on_usr1(evutil_socket_t sig, short what, void *arg)
{
	(void)sig;
	(void)what;
	(void)arg;
	if (log_reopen() == -1)
		return;
	spawn_renew();
	log_info(NULL, "log opened again");
}

static void
on_usr2(evutil_socket_t sig, short what, void *arg)
{
	(void)sig;
	(void)what;
	control_dump(arg);
}

static void
on_chld(evutil_socket_t sig, short what, void *arg)
{
	struct master *m = arg;

	(void)sig;
	(void)what;
	children_reap(m->children);
}

static const struct {
	int number;
	event_callback_fn call;
} signals[] = {
	{ SIGTERM, on_term },
	{ SIGINT, on_term },
	{ SIGHUP, on_hup },
	{ SIGUSR1, on_usr1 },
	{ SIGUSR2, on_usr2 },
	{ SIGCHLD, on_chld },
};
#define N_SIGNALS (sizeof(signals) / sizeof(signals[0]))

/* --- beginning ---------------------------------------------------------- */

static void
name_worker(struct master *m)
{
	char host[64];
	size_t i;

	if (gethostname(host, sizeof(host)) == -1)
		snprintf(host, sizeof(host), "localhost");
	host[sizeof(host) - 1] = '\0';
	for (i = 0; host[i] != '\0'; i++)
		if (host[i] == ':' || (unsigned char)host[i] <= ' ')
			host[i] = '-';
	snprintf(m->worker_id, sizeof(m->worker_id), "%s:%d:%08x", host,
	    (int)getpid(), arc4random());
	log_set_process("worker_id=%s", m->worker_id);
}

static struct redis *
connect_redis(struct master *m, const char *name, bool is_main)
{
	/* A hung Redis is noticed while its leases still have time. */
	int64_t answer = m->conf->lease_ttl * 1000 / 4;

	if (answer > 10000)
		answer = 10000;
	return redis_new(&(struct redis_params){ .base = m->base,
	    .conf = m->conf, .name = name, .answer_msecs = answer,
	    .on_up = is_main ? on_redis_up : NULL,
	    .on_down = is_main ? on_redis_down : NULL, .arg = m });
}

static void
begin(struct master *m)
{
	m->started_mono = clock_mono_msecs();
	m->is_postgres_up = true; /* until somebody has asked */
	m->children = children_new(&(struct children_params){
	    .base = m->base, .conf = m->conf, .on_ready = relay_ready,
	    .on_message = relay_message, .on_end = relay_end, .arg = m });
	m->grants = grants_new(m->conf, relay_grant, m);
	m->grants_timer = event_new(m->base, -1, 0, on_grants_timer, m);
	m->stop_timer = event_new(m->base, -1, 0, on_stop_timer, m);
	m->redis = connect_redis(m, "main", true);
	m->conns = conns_new(&(struct conns_params){ .base = m->base,
	    .redis = m->redis, .conf = m->conf, .worker_id = m->worker_id,
	    .role = m->role->name,
	    .on_answer = on_gate, .arg = m });
	grants_set_gate(m->grants, &(struct grants_gate){ .ask = ask_gate,
	    .give_back = leave_gate, .arg = m });
	m->clerk = clerk_new(m, "main", m->conf->command_timeout * 1000);
	m->exporter = exporter_new(m);
	m->redis_events = connect_redis(m, "events", false);
	m->role->start(m);
}

static void
end(struct master *m)
{
	control_free(&m->control);
	/* Connections first: their last callbacks need the rest. */
	redis_free(&m->redis);
	redis_free(&m->redis_events);
	m->role->end(m);
	exporter_free(&m->exporter);
	children_free(&m->children);
	clerk_free(&m->clerk);
	conns_free(&m->conns);
	grants_free(&m->grants);
	if (m->grants_timer != NULL)
		event_free(m->grants_timer);
	if (m->stop_timer != NULL)
		event_free(m->stop_timer);
}

/* libevent would write to standard error by itself. */
static void
on_loop_says(int severity, const char *text)
{
	if (severity >= EVENT_LOG_WARN)
		log_warn(NULL, "event loop: %s", text);
}

int
master_main(const struct master_params *params)
{
	struct master m = { .params = *params, .conf = params->conf,
		.role = roles[params->conf->worker_role] };
	struct event *events[N_SIGNALS];
	struct err err = ERR_INIT;
	int result = EX_OK;
	size_t i;

	event_set_log_callback(on_loop_says);
	m.base = event_base_new();
	if (m.base == NULL)
		die(EX_OSERR, "no event loop");
	event_base_priority_init(m.base, LOOP_PRIORITIES);
	name_worker(&m);
	signal(SIGPIPE, SIG_IGN);
	for (i = 0; i < N_SIGNALS; i++) {
		events[i] = evsignal_new(m.base, signals[i].number,
		    signals[i].call, &m);
		event_add(events[i], NULL);
	}
	if (control_new(&m.control, &m, &err) == -1) {
		log_error(NULL, "%s", err.text);
		/* 78 is for what does not pass by itself. */
		result = err.kind == ERR_CONFIG ? EX_CONFIG : EX_TEMPFAIL;
	} else {
		begin(&m);
		log_info(NULL, "mailherd %s started role=%s", PACKAGE_VERSION,
		    m.role->name);
		event_base_dispatch(m.base);
		log_info(NULL, "mailherd ended");
		end(&m);
	}
	for (i = 0; i < N_SIGNALS; i++)
		event_free(events[i]);
	event_base_free(m.base);
	return result;
}
