/*
 * next.c - what happens to an account next, and what a person can do.
 *
 * Runs in: mailherdctl.  Blocks on PostgreSQL.
 */
#include "ctl/next.h"

#include "base/clock.h"

/* The account's newest job that is not done. */
static const char *
describe_job(struct ctl *ctl, const char *id)
{
	const char *params[] = { id };
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
	    " FROM jobs WHERE account_id = $1::uuid AND state <> 'done'"
	    " AND kind = 'sync_bootstrap_account'"
	    " ORDER BY created_at DESC LIMIT 1", params, 1, &rows, &err) ==
	    -1 || rows->n_rows == 0)
		return NULL;
	return ROWS_CELL(rows, 0, 0);
}

static const char *
tried_again(struct ctl *ctl, const char *at_secs)
{
	int64_t wait = strtoll(at_secs, NULL, 10) - clock_wall_secs();
	char span[32];

	if (wait <= 0)
		return "tried again now";
	return arena_printf(ctl->arena, "tried again in %s",
	    clock_format_span(span, sizeof(span), wait));
}

static const char *
next_when_live(struct ctl *ctl, const struct next_facts *facts,
    const struct lease_view *view)
{
	const struct conf *conf = ctl->conf;

	if (view == NULL)
		return NULL;
	if (view->owner == NULL)
		return arena_printf(ctl->arena, "claimed within %lld s by a "
		    "sync worker with room (mailherdctl workers)",
		    (long long)(conf->claim_interval + conf->claim_jitter));
	if (facts->next_try_at != NULL)
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
