/*
 * next.c - what happens to an account next, and what a person can do.
 *
 * Runs in: mailherdctl.  Blocks on PostgreSQL.
 */
#include "ctl/next.h"

#include "base/clock.h"

/* The workers of a role that are heard, and what keeps them from work. */
struct fleet {
	size_t n, n_draining, n_full;
};

static int
look_at_fleet(struct ctl *ctl, const char *role, struct fleet *fleet_r)
{
	struct worker_view *workers;
	struct err away = ERR_INIT;
	size_t n;

	*fleet_r = (struct fleet){ .n = 0 };
	if (ctl_redis(ctl, &away) == -1 || lease_client_workers(ctl->redis,
	    role, ctl->arena, &workers, &n, &away) == -1)
		return -1;
	fleet_r->n = n;
	for (size_t i = 0; i < n; i++) {
		json_t *beat = json_loads(workers[i].heartbeat, 0, NULL);
		json_int_t room = json_integer_value(
		    json_object_get(beat, "room"));

		if (json_is_true(json_object_get(beat, "draining")))
			fleet_r->n_draining++;
		else if (room > 0 && json_integer_value(
		    json_object_get(beat, "owned")) >= room)
			fleet_r->n_full++;
		json_decref(beat);
	}
	return 0;
}

/* Why nobody of this role will do it; NULL: somebody will, or Redis is away
 * and nothing is known. */
static const char *
nobody_will(struct ctl *ctl, const char *role)
{
	struct fleet fleet;

	if (look_at_fleet(ctl, role, &fleet) == -1)
		return NULL;
	if (fleet.n == 0)
		return arena_printf(ctl->arena, "nothing: no %s worker is "
		    "alive (start mailherd -o worker_role=%s)", role, role);
	if (fleet.n_draining == fleet.n)
		return arena_printf(ctl->arena, "nothing: all %s workers are "
		    "draining (mailherdctl undrain, or start another)", role);
	if (fleet.n_draining + fleet.n_full == fleet.n)
		return arena_printf(ctl->arena, "nothing until there is room: "
		    "all %zu %s workers are full (start another, or raise "
		    "max_accounts_per_worker)", fleet.n, role);
	return NULL;
}

/* The account's newest job that is not done. */
static const char *
describe_job(struct ctl *ctl, const char *id)
{
	const char *params[] = { id }, *idle;
	struct store_rows *rows;
	struct err err = ERR_INIT;

	if (ctl_query(ctl, "SELECT CASE state"
	    " WHEN 'running' THEN kind || ' runs at ' || coalesce(owner, '?')"
	    " WHEN 'queued' THEN kind || CASE WHEN run_at > now()"
	    "  THEN ' is tried again in ' ||"
	    "  ceil(extract(epoch FROM run_at - now()))::bigint || ' s'"
	    "  ELSE ' waits for a jobs worker' END"
	    " ELSE kind || ' gave up: ' || last_error ||"
	    "  ' (mailherdctl job retry ' || id || ')' END"
	    ", state = 'queued' FROM jobs"
	    " WHERE account_id = $1::uuid AND state <> 'done'"
	    " AND kind = 'sync_bootstrap_account'"
	    " ORDER BY created_at DESC LIMIT 1", params, 1, &rows, &err) ==
	    -1 || rows->n_rows == 0)
		return NULL;
	if (*ROWS_CELL(rows, 0, 1) == 't' &&
	    (idle = nobody_will(ctl, "jobs")) != NULL)
		return idle;
	return ROWS_CELL(rows, 0, 0);
}

static const char *
tried_again(struct ctl *ctl, const char *at_secs)
{
	int64_t wait = strtoll(at_secs, NULL, 10) - clock_wall_secs();
	char span[32];

	return arena_printf(ctl->arena, "tried again in %s",
	    clock_format_span(span, sizeof(span), wait));
}

static const char *
next_when_live(struct ctl *ctl, const struct next_facts *facts,
    const struct lease_view *view)
{
	const struct conf *conf = ctl->conf;
	const char *idle;

	if (view == NULL)
		return NULL;
	if (view->owner == NULL) {
		idle = nobody_will(ctl, "sync");
		return idle != NULL ? idle : arena_printf(ctl->arena,
		    "claimed within %lld s by a sync worker with room "
		    "(mailherdctl workers)",
		    (long long)(conf->claim_interval + conf->claim_jitter));
	}
	/* What lies in the past holds nobody up. */
	if (facts->next_try_at != NULL &&
	    strtoll(facts->next_try_at, NULL, 10) > clock_wall_secs())
		return tried_again(ctl, facts->next_try_at);
	if (view->tier != NULL && strcmp(view->tier, "hot") == 0)
		return arena_printf(ctl->arena, "new mail is told by the "
		    "server at once (IDLE); other folders each %lld s",
		    (long long)conf->poll_warm);
	return arena_printf(ctl->arena, "polled each %lld s",
	    (long long)(view->tier != NULL && strcmp(view->tier, "cold") == 0
	    ? conf->poll_cold : conf->poll_warm));
}

const char *
next_step(struct ctl *ctl, const struct next_facts *facts,
    const struct lease_view *view)
{
	const char *email = facts->email, *job;
	enum account_state state;

	if (account_state_parse(facts->state, &state) == -1)
		return NULL;
	switch (state) {
	case ACCOUNT_NEW:
	case ACCOUNT_BOOTSTRAPPING:
		job = describe_job(ctl, facts->id);
		return job != NULL ? job : "no backfill job (start one: "
		    "mailherdctl account disable, then enable)";
	case ACCOUNT_LIVE:
		return next_when_live(ctl, facts, view);
	case ACCOUNT_DISABLED:
		return arena_printf(ctl->arena, "nothing, until: mailherdctl "
		    "account enable %s", email);
	case ACCOUNT_ERROR:
		return arena_printf(ctl->arena, "nothing, until: mailherdctl "
		    "account set %s --password, or account enable", email);
	case ACCOUNT_DELETED:
		return "its rows and mail are being removed";
	}
	return NULL;
}
