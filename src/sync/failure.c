/*
 * failure.c - what a failed pass leaves in the account's row.
 *
 * Runs in: whoever syncs.
 *
 * Nothing but the server's word about the credentials counts as a refusal;
 * network, TLS, throttling and our own faults leave the count alone
 * (R-LIFE-6).
 */
#include "sync/events.h"

#include "base/backoff.h"
#include "base/clock.h"

#define AUTH_PAUSE_MAX_SECS (6 * 3600)
#define THROTTLE_PAUSE_SECS 300
#define THROTTLE_PAUSE_MAX_SECS 3600

static int64_t
pause_after(const struct session *s, const struct err *failure)
{
	int64_t secs = failure->retry_after_secs;
	unsigned refusals;

	switch (failure->kind) {
	case ERR_AUTH:
		refusals = s->account == NULL ? 0 : s->account->auth_failures;
		secs = backoff_msecs(refusals + 1, s->conf->auth_pause * 1000,
		    AUTH_PAUSE_MAX_SECS * 1000, UINT32_MAX / 2) / 1000;
		return refusals > 0 && secs < LOGIN_WINDOW_SECS ?
		    LOGIN_WINDOW_SECS : secs;
	case ERR_THROTTLED:
		if (secs == 0)
			secs = THROTTLE_PAUSE_SECS;
		return secs < THROTTLE_PAUSE_MAX_SECS ? secs :
		    THROTTLE_PAUSE_MAX_SECS;
	default:
		return secs;
	}
}

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

int
sync_record_failure(struct session *s, const struct err *failure,
    bool *condemned_r, int64_t *retry_secs_r, struct err *err)
{
	int rv;

	*condemned_r = false;
	*retry_secs_r = pause_after(s, failure);
	if (!is_worth_a_row(s, failure))
		return 0;
	if (session_db(s, err) == -1)
		return -1;
	rv = store_account_failed(s->db, &s->fence, failure,
	    clock_wall_secs() + *retry_secs_r,
	    (unsigned)s->conf->auth_refusals, condemned_r, err);
	session_db_rest(s);
	if (rv == 0 && *condemned_r)
		events_state(s, account_state_name(ACCOUNT_ERROR),
		    failure->text);
	return rv;
}
