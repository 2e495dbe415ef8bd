/*
 * session.h - what the parts of sync share while they work on one account.
 *
 * Private to sync.
 */
#ifndef SYNC_SESSION_H
#define SYNC_SESSION_H

#include "imap/imap.h"
#include "blob/blob.h"
#include "sync/sync.h"

/* From the first refusal on: never more than 2 logins in this time. */
#define LOGIN_WINDOW_SECS 120

struct progress {
	bool is_on;
	int64_t done, total;
};

struct session {
	const struct conf *conf;
	const struct sync_hooks *hooks;
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
	/* What folders said along with LIST; each is used once. */
	struct ahead {
		const char *wire; /* NULL: used */
		int64_t folder_id;
		struct imap_status status;
	} *ahead; /* in the pass arena */
	size_t n_ahead;

	struct store *db;
	uint32_t db_permit;
	struct blob_writer *blobs;

	struct imap *imap;
	uint32_t account_permit, socket_permit, login_permit;
	int64_t connect_mono_msecs; /* when this connection was asked for */
	int64_t selected_id; /* folder; 0: none */
	uint64_t round_trips_before;
	bool is_put_off; /* not connected because it is too early */
	bool is_announced; /* the login, in the account's row */

	struct slot_note note; /* the step under way */
	/* See quarantine.c. */
	struct risk trial;  /* the row that is tried; RISK_NONE: none */
	bool has_proof; /* the server delivers another one than the trial's */
	enum { SHOWS_NONE, OPENS_ONE, SHOWS_ONE } probed; /* folder, on this
		* connection: nothing known, opened, a message of it shown */
	bool has_probed_body;	/* the same, delivered */
	unsigned refused_probes; /* in a row, on this connection */
	int64_t patience_msecs; /* with a body; 0: that of the settings */
	unsigned losses;    /* connections in a row with nothing done */
	bool has_lost_trial; /* one without proof, in this pass */
	bool is_scan_refused; /* the last one: its numbers may be old */
	bool is_listing;    /* LIST is what was asked */
	bool is_naming;	    /* STATUS of folders that have no row yet */
	bool has_listed;    /* in this pass */
	struct err no_list; /* why that was without an answer; ERR_NONE */
	bool skips_names;   /* folders of new names are not asked for it */
	struct sync_totals totals;
	struct progress progress;
};

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

/* A refused scan by sequence numbers: messages may have gone (ERR_STALE), or
 * it is meant. */
int session_scan_refused(struct session *s, struct err *err);

struct folder *session_folder(struct session *s, int64_t id);
struct folder *session_inbox(struct session *s);

/* Is the connection to the mail server good for more after this error? */
bool session_is_usable_after(const struct session *s, const struct err *err);

#endif
