/*
 * metrics.c - Prometheus text, and the dump into the log.
 *
 * Runs in: master.  Never blocks.
 */
#include "master/metrics.h"

#include "base/buf.h"
#include "base/clock.h"
#include "redis/redis.h"
#include "master/children.h"
#include "master/clerk.h"
#include "master/control.h"
#include "master/grants.h"
#include "master/state.h"

/* --- metrics ------------------------------------------------------------ */

void
metrics_gauge(struct buf *out, const char *name, const char *labels, const char *help,
    int64_t value)
{
	if (help != NULL)
		buf_addf(out, "# HELP mailherd_%s %s\n# TYPE mailherd_%s "
		    "gauge\n", name, help, name);
	buf_addf(out, "mailherd_%s%s %lld\n", name, labels, (long long)value);
}

static void
tier_gauges(struct buf *out, const struct role_figures *figures)
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
child_gauges(struct buf *out, const struct master *m)
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
	tier_gauges(&out, &figures);
	metrics_gauge(&out, "polled_instead", "",
	    "Hot accounts that are polled often instead of idling.",
	    (int64_t)figures.polled_instead);
	child_gauges(&out, m);
	metrics_gauge(&out, "sockets_open", "", "Connections to mail servers.",
	    (int64_t)grants_in_use(m->grants, RESOURCE_SOCKET));
	metrics_gauge(&out, "grants_waiting", "", "Children waiting for a budget.",
	    (int64_t)grants_waiting(m->grants));
	metrics_gauge(&out, "clerk_backlog", "", "Questions waiting for PostgreSQL.",
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

/* --- SIGUSR2 ------------------------------------------------------------ */

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
	m->role->dump(m);
}
