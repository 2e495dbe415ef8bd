/*
 * health.h - what failed for an account, and when what may be tried again.
 *
 * Runs in: master of the sync role.  Pure: time is a parameter (mono msecs).
 *
 *	not_before	nothing is asked of the server: the longest of what
 *			failures, refused logins and the server itself want
 *	hot_not_before	no hot child; polls go on
 */
#ifndef MASTER_HEALTH_H
#define MASTER_HEALTH_H

#include "base/err.h"
#include "conf/conf.h"
#include "ipc/messages.h"
#include "master/policy.h"
#include "proc/slots.h"

#include <stdbool.h>
#include <stdint.h>

/* Others read it; only health.c writes. */
struct health {
	unsigned failures;     /* passes in a row */
	unsigned hot_failures; /* hot children in a row */
	unsigned refusals;     /* logins in a row */
	unsigned deaths;       /* in a row, each of something known */
	unsigned deaths_there; /* of them at the same step and place */
	struct slot_note last_death;
	struct logins logins;
	int64_t not_before_mono, hot_not_before_mono; /* 0: at once */
	enum err_kind last_error_kind; /* ERR_NONE: it is well */
	char last_error[MSG_TEXT_SIZE];
	int64_t last_error_secs;
};

/* A pass, or what comes before the first, has failed. */
void health_failed(struct health *health, const struct conf *conf,
    enum err_kind kind, int64_t retry_after_secs, const char *text,
    int64_t now);
/* It has not, though it did not get to its end. */
void health_progressed(struct health *health);
/* A pass went well. */
void health_recovered(struct health *health);
/* The account was taken over; only that had failed. */
void health_begin(struct health *health);
/* What an earlier owner, or a job, was told by the server; not longer than we
 * would heed it ourselves. */
void health_inherit(struct health *health, const struct msg_facts *facts,
    int64_t now);
/* Nothing has failed, but nothing is asked of the server until then. */
void health_pause(struct health *health, int64_t until);

/* A hot child failed; idled_msecs: it had proved itself for so long. */
void health_hot_failed(struct health *health, const struct conf *conf,
    int64_t idled_msecs, int64_t now);
void health_hot_pause(struct health *health, int64_t until);
/* When a hot child may be started. */
int64_t health_hot_next(const struct health *health);

/* A child died at this step. */
void health_note_death(struct health *health, const struct slot_note *note);
/* It is known what killed it: true: that costs but a moment, no pause. */
bool health_forgives_death(struct health *health, const struct conf *conf,
    bool is_hot, int64_t now);

/* PostgreSQL is back: who waits because of it alone waits until `soon`. */
void health_postgres_back(struct health *health, int64_t soon);
/* An operator wants a poll now; what the server has asked for, and a refused
 * login, are not ours to overrule. */
void health_hurry(struct health *health);

#endif
