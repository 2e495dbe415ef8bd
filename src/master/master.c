/*
 * master.c - the loop of the supervisor, its signals, its beginning and end.
 *
 * Runs in: master of both roles.  Never blocks.
 *
 * What the two roles do differently is a row each (role.h).
 */
#include "config.h"

#include "master/master.h"

#include "base/clock.h"
#include "conf/options.h"
#include "lease/conns.h"
#include "master/budget_gate.h"
#include "master/children.h"
#include "master/clerk.h"
#include "master/control.h"
#include "master/dump.h"
#include "master/exporter.h"
#include "master/messages.h"
#include "master/orders.h"
#include "master/state.h"
#include "proc/spawn.h"
#include "redis/loop.h"
#include "redis/redis.h"

#include <signal.h>
#include <stdlib.h>
#include <sysexits.h>
#include <unistd.h>

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
master_on_redis_up(void *arg)
{
	struct master *m = arg;

	if (m->is_stopping)
		return;
	m->role->on_redis_up(m);
	conns_tell(m->conns);
}

static void
master_on_redis_down(void *arg)
{
	struct master *m = arg;

	m->role->on_redis_down(m);
}

/* --- signals and orders ------------------------------------------------- */

static void
master_on_term(evutil_socket_t sig, short what, void *arg)
{
	(void)what;
	orders_stop(arg, sig == SIGTERM ? "SIGTERM" : "SIGINT");
}

static void
master_on_hup(evutil_socket_t sig, short what, void *arg)
{
	struct err err = ERR_INIT;

	(void)sig;
	(void)what;
	orders_reload(arg, NULL, &err);
}

static void
master_on_usr1(evutil_socket_t sig, short what, void *arg)
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
master_on_usr2(evutil_socket_t sig, short what, void *arg)
{
	(void)sig;
	(void)what;
	dump_log(arg);
}

static void
master_on_chld(evutil_socket_t sig, short what, void *arg)
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
	{ SIGTERM, master_on_term },
	{ SIGINT, master_on_term },
	{ SIGHUP, master_on_hup },
	{ SIGUSR1, master_on_usr1 },
	{ SIGUSR2, master_on_usr2 },
	{ SIGCHLD, master_on_chld },
};
#define N_SIGNALS (sizeof(signals) / sizeof(signals[0]))

/* --- beginning ---------------------------------------------------------- */

static void
master_name_worker(struct master *m)
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
master_connect_redis(struct master *m, const char *name, bool is_main)
{
	/* A hung Redis is noticed while its leases still have time. */
	int64_t answer = m->conf->lease_ttl * 1000 / 4;

	if (answer > 10000)
		answer = 10000;
	return redis_new(&(struct redis_params){ .base = m->base,
	    .conf = m->conf, .name = name, .answer_msecs = answer,
	    .on_up = is_main ? master_on_redis_up : NULL,
	    .on_down = is_main ? master_on_redis_down : NULL, .arg = m });
}

static void
master_begin(struct master *m)
{
	m->started_mono = clock_mono_msecs();
	m->is_postgres_up = true; /* until somebody has asked */
	m->children = children_new(&(struct children_params){
	    .base = m->base, .conf = m->conf, .on_ready = messages_on_ready,
	    .on_message = messages_on_message, .on_end = messages_on_end,
	    .arg = m });
	orders_start(m);
	m->redis = master_connect_redis(m, "main", true);
	budget_gate_start(m);
	m->clerk = clerk_new(m, "main", m->conf->command_timeout * 1000);
	m->exporter = exporter_new(m);
	m->redis_events = master_connect_redis(m, "events", false);
	m->role->start(m);
}

static void
master_end(struct master *m)
{
	control_free(&m->control);
	/* Connections first: their last callbacks need the rest. */
	redis_free(&m->redis);
	redis_free(&m->redis_events);
	m->role->end(m);
	exporter_free(&m->exporter);
	children_free(&m->children);
	clerk_free(&m->clerk);
	budget_gate_end(m);
	orders_end(m);
}

/* libevent would write to standard error by itself. */
static void
master_on_loop_says(int severity, const char *text)
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

	event_set_log_callback(master_on_loop_says);
	m.base = event_base_new();
	if (m.base == NULL)
		die(EX_OSERR, "no event loop");
	event_base_priority_init(m.base, LOOP_PRIORITIES);
	master_name_worker(&m);
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
		master_begin(&m);
		log_info(NULL, "mailherd %s started role=%s", PACKAGE_VERSION,
		    m.role->name);
		event_base_dispatch(m.base);
		log_info(NULL, "mailherd ended");
		master_end(&m);
	}
	for (i = 0; i < N_SIGNALS; i++)
		event_free(events[i]);
	event_base_free(m.base);
	return result;
}
