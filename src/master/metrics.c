/*
 * metrics.c - Prometheus text, and the dump into the log.
 *
 * Runs in: master.  Never blocks.
 */
#include "base/buf.h"
#include "base/clock.h"
#include "lease/keeper.h"
#include "redis/redis.h"
#include "master/accounts.h"
#include "master/children.h"
#include "master/clerk.h"
#include "master/control.h"
#include "master/grants.h"
#include "master/works.h"

/* --- metrics ------------------------------------------------------------ */

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
		    "Owned accounts by tier." : NULL, m->accounts == NULL ?
		    0 : (int64_t)accounts_of_tier(m->accounts, tier));
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
	gauge(&out, "leases", "", "Leases held.", m->keeper != NULL ?
	    (int64_t)keeper_count(m->keeper) : 0);
	tier_gauges(&out, m);
	gauge(&out, "polled_instead", "",
	    "Hot accounts that are polled often instead of idling.",
	    m->accounts != NULL ? (int64_t)accounts_polled_instead(
		m->accounts, NO_IDLE_COUNT) : 0);
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
