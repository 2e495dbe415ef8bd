/*
 * session.h - the connections and facts of one account, for whoever works for
 * it.
 *
 * Everything blocks.  A PostgreSQL session is open only while there is
 * something to read or to write, never while a mail server is being waited for
 * without work; the mail connection is held for the life of the work.
 */
#ifndef ACCOUNT_SESSION_H
#define ACCOUNT_SESSION_H

#include "account/db.h"
#include "base/arena.h"
#include "base/log.h"
#include "blob/blob.h"
#include "imap/imap.h"

struct session {
	const struct conf *conf;
	const struct account_hooks *hooks;
	struct log log;
	struct fence fence;

	/* Facts of the account: replaced by session_load. */
	struct arena *facts;
	struct account *account;
	struct folder *folders;
	size_t n_folders;
	struct risk *risks;
	size_t n_risks;

	struct arena *pass; /* dies with the pass */

	struct account_db db;
	struct blob_writer *blobs;

	struct imap *imap;
	uint32_t account_permit, socket_permit, login_permit;
	int64_t connect_mono_msecs; /* when this connection was asked for */
	int64_t selected_id;        /* folder; 0: none */
	uint64_t round_trips_before;
	bool is_put_off;   /* not connected because it is too early */
	bool is_announced; /* the login, in the account's row */

	struct slot_note note;  /* the step under way */
	int64_t patience_msecs; /* with a body; 0: that of the settings */
	unsigned n_connections; /* so far: tells one from the next */
	uint64_t round_trips;   /* of all of them, since they were taken */
	bool is_slowed;         /* the server said so */

	struct sync_state *sync; /* sync's own; NULL: none */
};

/* Copies nothing: conf and hooks outlive the session. */
struct session *session_new(const struct conf *conf,
    const struct account_hooks *hooks, const struct fence *fence);
/* Closes what is open, gives everything back. */
void session_free(struct session **s);

/* PostgreSQL, opened when it is not; a permit comes first. */
int session_db(struct session *s, struct err *err);
/* It will be needed soon: the permit, and a beginning made. */
int session_db_start(struct session *s, struct err *err);
/* Closed and given back: before waiting for a mail server. */
void session_db_rest(struct session *s);
/* The same, but for one that was only begun: it will be needed soon. */
void session_db_pause(struct session *s);

/* Account, folders and risks anew.  ERR_FENCED when the epoch has moved,
 * ERR_GONE when the account is in none of `states` (1 << enum). */
int session_load(struct session *s, unsigned states, struct err *err);
/* What a hot child begins with: account and INBOX, without a session of its
 * own where that goes. */
int session_load_inbox(struct session *s, struct err *err);
/* Account and INBOX as the clerk reads them; false: read for yourself. */
bool session_is_briefed(struct session *s, struct msg_briefing *b_r);
/* All of it: what was read before is gone. */
void session_forget(struct session *s);
/* Folders and risks alone, after ERR_STALE. */
int session_reload(struct session *s, struct err *err);

int session_connect(struct session *s, struct err *err);
void session_disconnect(struct session *s);
/* round_trips and is_slowed are up to date then. */
void session_count(struct session *s);

/* Opened at the first message that is to be stored. */
int session_blobs(struct session *s, struct err *err);

int session_may_go_on(struct session *s, struct err *err);
/* Is somebody waiting for whom a backfill makes room? */
bool session_must_yield(const struct session *s);
void session_activity(struct session *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Writes down the step that comes now; RISK_NONE: nothing risky. */
void session_note(struct session *s, enum risk_step step, int64_t folder_id,
    uint32_t uid_from, uint32_t uid_to);

struct folder *session_folder(struct session *s, int64_t id);
struct folder *session_inbox(struct session *s);

/* Is the connection to the mail server good for more after this error? */
bool session_is_usable_after(const struct session *s, const struct err *err);

/*
 * A failed piece of work, in the account's row (R-LIFE-6); emits the change of
 * state when the account was condemned.  *retry_secs_r: when to try again at
 * the earliest, from now; 0 leaves it to the caller.
 */
int account_record_failure(struct session *s, const struct err *failure,
    bool *condemned_r, int64_t *retry_secs_r, struct err *err);

/* account.state_changed, after the commit. */
void account_tell_state(const struct account_hooks *hooks,
    const struct account *account, enum account_state state,
    const char *reason);

/* For the brief hook of another process; ERR_GONE when there is no such
 * account.  The arena takes what is read. */
int account_brief(struct store *db, const struct uuid *account_id,
    struct arena *arena, struct msg_briefing *b_r, struct err *err);

#endif
