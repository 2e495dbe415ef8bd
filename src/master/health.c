/*
 * health.c - what failed for an account, and when what may be tried again.
 *
 * Runs in: master of the sync role.  Pure.
 */
#include "master/health.h"

#include "base/clock.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

/* A hot child that has idled so long has proved itself. */
#define PROVED_MSECS 60000
/* Deaths in a row of what is known, each followed by a short pause. */
#define DEATHS_MAX 200
#define DEATH_PAUSE_MSECS 100
/* A wait that a row asks for: more is a wrong clock. */
#define WAIT_MAX_MSECS (86400 * 1000)

static void
health_set_error(struct health *h, enum err_kind kind, const char *text)
{
	h->last_error_kind = kind;
	text_clean_line(h->last_error, sizeof(h->last_error), text,
	    strlen(text));
}

static void
health_clear_error(struct health *h)
{
	h->failures = 0;
	h->not_before_mono = 0;
	h->last_error_kind = ERR_NONE;
	h->last_error[0] = '\0';
}

/* --- passes ------------------------------------------------------------- */

/* When anything may be tried again; all that has a say in it. */
static int64_t
health_next_try(const struct health *h, const struct conf *conf,
    enum err_kind kind, int64_t retry_after_secs, int64_t now)
{
	unsigned failures = kind == ERR_AUTH ? h->refusals : h->failures;
	int64_t next = now + policy_pause(conf, kind, failures,
	    retry_after_secs, arc4random());

	if (next < h->not_before_mono)
		next = h->not_before_mono;
	if (kind == ERR_AUTH && next < logins_next(&h->logins))
		next = logins_next(&h->logins);
	return next;
}

void
health_failed(struct health *h, const struct conf *conf, enum err_kind kind,
    int64_t retry_after_secs, const char *text, int64_t now)
{
	h->failures++;
	if (kind == ERR_AUTH) {
		h->refusals++;
		logins_note(&h->logins, now);
	}
	h->not_before_mono = health_next_try(h, conf, kind, retry_after_secs,
	    now);
	h->last_error_secs = clock_wall_secs();
	health_set_error(h, kind, text);
}

void
health_progressed(struct health *h)
{
	h->failures = 0;
}

void
health_recovered(struct health *h)
{
	health_clear_error(h);
	h->deaths = 0;
	h->refusals = 0;
}

void
health_begin(struct health *h)
{
	health_clear_error(h);
}

void
health_inherit(struct health *h, const struct msg_facts *facts, int64_t now)
{
	int64_t wait = (facts->next_try_secs - clock_wall_secs()) * 1000;

	h->refusals = facts->auth_failures;
	if (facts->auth_failures == 0 && facts->last_error[0] == '\0') {
		/* All is well, or somebody has set it right. */
		health_clear_error(h);
		h->hot_not_before_mono = 0;
		h->logins = (struct logins){ .at = { 0 } };
		return;
	}
	if (wait <= 0 || wait > WAIT_MAX_MSECS)
		return;
	h->not_before_mono = now + wait;
	health_set_error(h, facts->auth_failures > 0 ? ERR_AUTH :
	    ERR_THROTTLED, facts->last_error);
}

void
health_pause(struct health *h, int64_t until)
{
	h->not_before_mono = until;
}

/* --- hot children ------------------------------------------------------- */

void
health_hot_failed(struct health *h, const struct conf *conf,
    int64_t idled_msecs, int64_t now)
{
	if (idled_msecs >= PROVED_MSECS)
		h->hot_failures = 0;
	h->hot_failures++;
	h->hot_not_before_mono = now + policy_pause(conf, ERR_TEMPORARY,
	    h->hot_failures, 0, arc4random());
}

void
health_hot_pause(struct health *h, int64_t until)
{
	h->hot_not_before_mono = until;
}

int64_t
health_hot_next(const struct health *h)
{
	return h->hot_not_before_mono > h->not_before_mono ?
	    h->hot_not_before_mono : h->not_before_mono;
}

/* --- deaths ------------------------------------------------------------- */

void
health_note_death(struct health *h, const struct slot_note *note)
{
	const struct slot_note *last = &h->last_death;
	bool is_there = note->folder_id == last->folder_id &&
	    note->step == last->step && note->uid_from == last->uid_from;

	h->deaths_there = is_there ? h->deaths_there + 1 : 1;
	h->last_death = *note;
}

/*
 * It died of a message or folder that is known now: that costs this one, not
 * the account.  After so many attempts the way leads around it; who dies there
 * once more, or in a very long row, has failed.
 */
bool
health_forgives_death(struct health *h, const struct conf *conf, bool is_hot,
    int64_t now)
{
	if (h->deaths_there > conf->risk_attempts ||
	    ++h->deaths > DEATHS_MAX)
		return false;
	if (is_hot)
		h->hot_not_before_mono = now + DEATH_PAUSE_MSECS;
	else if (h->not_before_mono < now + DEATH_PAUSE_MSECS)
		h->not_before_mono = now + DEATH_PAUSE_MSECS;
	return true;
}

/* --- waits that end earlier --------------------------------------------- */

void
health_postgres_back(struct health *h, int64_t soon)
{
	if (h->last_error_kind != ERR_DATABASE || h->refusals > 0)
		return;
	if (h->not_before_mono > soon)
		h->not_before_mono = soon;
	if (h->hot_not_before_mono > soon)
		h->hot_not_before_mono = soon;
}

void
health_hurry(struct health *h)
{
	if (h->last_error_kind != ERR_AUTH &&
	    h->last_error_kind != ERR_THROTTLED)
		h->not_before_mono = 0;
}
