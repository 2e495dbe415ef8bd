/*
 * failure.c - what a failed pass leaves in the account's row.
 *
 * Runs in: whoever syncs.
 *
 * Nothing but the server's word about the credentials counts as a refusal;
 * network, TLS, throttling and our own faults leave the count alone
 * (R-LIFE-6).
 */
#include "account/session.h"

#include "base/clock.h"
#include "conf/retry.h"

/* The row tells all the same time: nobody is to be spread. */
#define NO_SPREAD (UINT32_MAX / 2)

/* Is it about the account, or about us?  Being too early is no news. */
static bool
is_worth_a_row(const struct session *s, const struct err *failure)
{
	if (s->is_put_off)
		return false;
	switch (failure->kind) {
	case ERR_FENCED:
	case ERR_STOPPED:
	case ERR_GONE:
	case ERR_DATABASE:
	case ERR_STALE:
		return false;
	default:
		return true;
	}
}

void
account_tell_state(const struct account_hooks *hooks,
    const struct account *account, enum account_state state, const char *reason)
{
	struct msg_event ev;

	memset(&ev, 0, sizeof(ev));
	ev.event = EVENT_ACCOUNT_STATE;
	ev.account_id = account->id;
	ev.user_id = account->user_id;
	snprintf(ev.name, sizeof(ev.name), "%s", account_state_name(state));
	snprintf(ev.reason, sizeof(ev.reason), "%s", reason);
	hooks->emit(hooks->arg, &ev);
}

int
account_record_failure(struct session *s, const struct err *failure,
    bool *condemned_r, int64_t *retry_secs_r, struct err *err)
{
	int rv;
	unsigned refusals = s->account == NULL ? 0 : s->account->auth_failures;

	*condemned_r = false;
	*retry_secs_r =
	    retry_msecs(s->conf, RETRY_ACCOUNT, failure,
		failure->kind == ERR_AUTH ? refusals + 1 : 1, NO_SPREAD) /
	    1000;
	if (!is_worth_a_row(s, failure))
		return 0;
	if (session_db(s, err) == -1)
		return -1;
	rv = store_account_failed(s->db.store, &s->fence, failure,
	    clock_wall_secs() + *retry_secs_r, (unsigned)s->conf->auth_refusals,
	    condemned_r, err);
	session_db_rest(s);
	if (rv == 0 && *condemned_r && s->account != NULL)
		account_tell_state(
		    s->hooks, s->account, ACCOUNT_ERROR, failure->text);
	return rv;
}
