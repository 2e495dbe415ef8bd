/*
 * sync.h - keeping the copy of one account equal to its server.
 *
 * Runs in: hot, pool and job children, and mailherd -1.  Blocking, a straight
 * line from connect to commit.  What it needs from its process (budgets, the
 * lease, the step note) it asks of hooks, so that it can run without a master.
 *
 * A PostgreSQL session is open only while there is something to read or to
 * write, never while a mail server is being waited for without work.
 */
#ifndef SYNC_SYNC_H
#define SYNC_SYNC_H

#include "account/session.h"

/* What was done since the last sync_totals_take. */
struct sync_totals {
	uint32_t folders_polled, created, updated, deleted;
	int64_t last_mail_secs; /* newest mail stored; 0: none */
	uint64_t round_trips;
	bool has_more; /* a backfill goes on in the next pass */
	bool is_slowed; /* the server says that it slows us down */
	/* SCOPE_PEEK: INBOX as the server told it, the copy it differs from */
	enum peek peek;
	int64_t inbox_generation;
	uint64_t inbox_mark;
};

/* Copies nothing: conf and hooks outlive the session. */
struct session *sync_open(const struct conf *conf,
    const struct account_hooks *hooks, const struct fence *fence);
/* Closes what is open, gives everything back. */
void sync_close(struct session **s);

void sync_totals_take(struct session *s, struct sync_totals *totals_r);

/*
 * One transient pass over the folders in scope (enum scope): connects,
 * compares, applies, and writes the end of the pass.  ERR_GONE: the account
 * is no longer live.
 */
int sync_pass(struct session *s, unsigned scope, struct err *err);

/*
 * Everything, newest first and INBOX first, then what arrived meanwhile.
 * Stops early at the deadline: *is_complete_r false, and the next call goes
 * on there (R-JOB-8).
 */
int sync_bootstrap(struct session *s, int64_t deadline_mono_msecs,
    bool *is_complete_r, struct err *err);

/*
 * For a hot child.  sync_watch connects and catches up with INBOX;
 * sync_watch_wait idles until the server, the control descriptor or the time
 * says otherwise, and catches up when it was the server (*is_changed_r).
 */
int sync_watch(struct session *s, struct err *err);
int sync_watch_wait(struct session *s, int control_fd, int64_t msecs,
    bool *is_changed_r, struct err *err);
/* INBOX once more, on the connection that sync_watch opened. */
int sync_watch_catch_up(struct session *s, struct err *err);
/* The same, with what PostgreSQL knows of the account read anew. */
int sync_watch_look_anew(struct session *s, struct err *err);

#endif
