/*
 * metrics.c - figures for Prometheus, and for the heartbeat.
 *
 * Runs in: master.  Never blocks.
 */
#include "config.h"

#include "master/metrics.h"

#include "base/buf.h"
#include "base/clock.h"
#include "lease/heartbeat.h"
#include "master/budgets.h"
#include "master/children.h"
#include "master/clerk.h"
#include "master/state.h"
#include "redis/redis.h"

#include <jansson.h>

/* --- metrics ------------------------------------------------------------ */

void
metrics_gauge(struct buf *out, const char *name, const char *labels,
    const char *help, int64_t value)
{
	if (help != NULL)
		buf_addf(out, "# HELP mailherd_%s %s\n# TYPE mailherd_%s "
		    "gauge\n", name, help, name);
	buf_addf(out, "mailherd_%s%s %lld\n", name, labels, (long long)value);
}

static void
metrics_tiers(struct buf *out, const struct role_figures *figures)
{
	char labels[40];
	unsigned tier;

	for (tier = 0; tier < TIER_COUNT; tier++) {
		snprintf(labels, sizeof(labels), "{tier=\"%s\"}",
		    tier_name(tier));
		metrics_gauge(out, "accounts", labels, tier == 0 ?
		    "Owned accounts by tier." : NULL,
		    (int64_t)figures->of_tier[tier]);
	}
}

static void
metrics_children(struct buf *out, const struct master *m)
{
	char labels[40];
	unsigned kind;

	for (kind = 0; kind < KIND_COUNT; kind++) {
		snprintf(labels, sizeof(labels), "{kind=\"%s\"}",
		    child_kind_name(kind));
		metrics_gauge(out, "children", labels, kind == 0 ?
		    "Child processes by kind." : NULL,
		    (int64_t)children_of(m->children, kind));
	}
}

char *
metrics_text(const struct master *m)
{
	struct role_figures figures = { 0 };
	struct buf out = BUF_INIT;

	m->role->count(m, &figures);
	metrics_gauge(&out, "up", "", "1 while the master runs.", 1);
	metrics_gauge(&out, "uptime_seconds", "", "Time since start.",
	    (clock_mono_msecs() - m->started_mono) / 1000);
	metrics_gauge(&out, "redis_up", "", "1 while Redis answers.",
	    redis_is_up(m->redis));
	metrics_gauge(&out, "postgres_up", "", "1 while PostgreSQL answers.",
	    m->is_postgres_up);
	metrics_gauge(&out, "leases", "", "Leases held.",
	    (int64_t)figures.owned);
	metrics_tiers(&out, &figures);
	metrics_gauge(&out, "polled_instead", "",
	    "Hot accounts that are polled often instead of idling.",
	    (int64_t)figures.polled_instead);
	metrics_children(&out, m);
	metrics_gauge(&out, "sockets_open", "", "Connections to mail servers.",
	    (int64_t)budgets_in_use(m->budgets, RESOURCE_SOCKET));
	metrics_gauge(&out, "grants_waiting", "",
	    "Children waiting for a budget.",
	    (int64_t)budgets_waiting(m->budgets));
	metrics_gauge(&out, "clerk_backlog", "",
	    "Questions waiting for PostgreSQL.",
	    (int64_t)clerk_backlog(m->clerk));
	metrics_gauge(&out, "oldest_pass_seconds", "",
	    "Age of the oldest successful pass of an owned account.",
	    figures.oldest_pass_secs);
	m->role->add_metrics(m, &out);
	buf_addf(&out, "# HELP mailherd_log_lines_lost_total lines of the "
	    "master's log that nobody read in time\n"
	    "# TYPE mailherd_log_lines_lost_total counter\n"
	    "mailherd_log_lines_lost_total %llu\n",
	    (unsigned long long)log_lost());
#define X(name, help)                                                      \
	buf_addf(&out, "# HELP mailherd_" #name "_total " help "\n"       \
	    "# TYPE mailherd_" #name "_total counter\n"                   \
	    "mailherd_" #name "_total %llu\n",                            \
	    (unsigned long long)m->counters.name);
	COUNTERS(X)
#undef X
	return out.data;
}

/* --- heartbeat ------------------------------------------------------------ */

char *
metrics_heartbeat(void *arg)
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
	    (json_int_t)budgets_in_use(m->budgets, RESOURCE_SOCKET)));
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
