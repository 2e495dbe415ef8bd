/*
 * store.h - accounts, folders, messages and jobs in PostgreSQL.
 *
 * The one interface of sync, jobs, child and ctl to the database.  Everything
 * blocks, with a deadline (connect_timeout and statement_timeout), and needs
 * no knowledge of SQL.  Errors: ERR_DATABASE when PostgreSQL is away, which is
 * so for all accounts, ERR_TEMPORARY when one statement failed (a lock, a
 * time-out, a full disk), which is the trouble of its account alone, ERR_FENCED when another owner has taken over (nothing was written),
 * ERR_STALE when the folder was changed by a sibling since it was loaded
 * (load again, plan again), ERR_GONE when the row does not exist,
 * ERR_PERMANENT when PostgreSQL will never take these values.
 *
 * Every transaction that writes an account's data proves its fence first and
 * under a lock (R-LEASE-6), is built in memory and sent in one go; no mail
 * server is spoken to inside one.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "base/arena.h"
#include "base/err.h"
#include "base/uuid.h"
#include "mail/account.h"
#include "mail/folder.h"
#include "mail/message.h"

/* --- session -------------------------------------------------------------- */

struct store; /* one PostgreSQL session */

/*
 * `name` becomes the application_name, "mh:ACCOUNT:EPOCH" for whoever writes
 * an account (store_session_name), so that a successor can end it.
 */
int store_open(struct store **s_r, const char *conninfo, const char *name,
    struct err *err);
/* The same in two steps: the first does not wait for the server, the second
 * is harmless when it was done before.  After a failure *s is NULL. */
int store_open_start(struct store **s_r, const char *conninfo,
    const char *name, struct err *err);
int store_open_finish(struct store **s, struct err *err);
bool store_is_open(const struct store *s);
/* Whether it can be gone on with after a failure. */
bool store_is_usable(const struct store *s);
/* Whether the last failure was a statement that took too long. */
bool store_took_too_long(const struct store *s);
/* Another name for an open session between two pieces of work; -1: it is of
 * no more use. */
int store_rename(struct store *s, const char *name, struct err *err);
void store_close(struct store **s);
#define STORE_NAME_SIZE 64
const char *store_session_name(char out[STORE_NAME_SIZE],
    const struct uuid *account_id, int64_t epoch);

/*
 * Any SQL, for ctl's tables and tests: parameters and cells are text, a NULL
 * parameter or cell is SQL NULL.  One statement, its own transaction.
 */
struct store_rows {
	size_t n_columns, n_rows;
	const char **columns;
	const char **cells; /* row after row: cells[row * n_columns + column] */
};
int store_query(struct store *s, struct arena *arena, const char *sql,
    const char *const *params, size_t n_params, struct store_rows **rows_r,
    struct err *err);

/* --- schema ----------------------------------------------------------------- */

/* The number of the newest file of etc/schema that this program was built
 * with. */
#define STORE_SCHEMA 5

/*
 * Can this program work with the database?  ERR_CONFIG with what to do when
 * its schema is older, or newer than a file says that older programs
 * understand, or not there at all.  To be asked of each new session: while
 * PostgreSQL was away, it may have been restored or upgraded.
 */
int store_check(struct store *s, struct err *err);
/* Of the database's blob directory (blob.h); known after store_check. */
const struct uuid *store_blob_id(const struct store *s);

/* Newest NNN in schema_dir / in the database (0: no schema). */
int store_schema_wanted(const char *schema_dir, int *version_r,
    struct err *err);
int store_schema_version(struct store *s, int *version_r, struct err *err);
/*
 * Applies what is missing, each file in a transaction.  Safe to repeat and to
 * run twice at once; refuses when the database is newer.  A file with a line
 * "-- works with: N" changes nothing that a program of schema N or newer
 * would mind: such programs go on beside newer ones during an upgrade.
 */
int store_migrate(struct store *s, const char *schema_dir,
    void (*on_step)(void *arg, const char *file), void *arg, int *version_r,
    struct err *err);

/* --- accounts --------------------------------------------------------------- */

/* Found by UUID text or by unique e-mail; ERR_GONE, or ERR_PERMANENT with
 * the candidates when ambiguous. */
int store_account_find(struct store *s, const char *id_or_email,
    struct uuid *id_r, struct err *err);
int store_account_load(struct store *s, const struct uuid *id,
    struct arena *arena, struct account **account_r, struct err *err);

/* A claim: epoch + 1, owner set; ends sessions of a predecessor that is stuck
 * in mid-transaction.  ERR_TEMPORARY when somebody else holds the account's
 * row: nobody is waited for longer than 200 ms.  Loads the account at the same
 * time. */
int store_account_take_over(struct store *s, const struct uuid *id,
    const char *owner, struct arena *arena, struct account **account_r,
    struct err *err);

/* --- users and accounts: changes by ctl ------------------------------------- */

/* ERR_PERMANENT when the e-mail is taken.  quota_bytes 0: the default. */
int store_user_add(struct store *s, const char *email, const char *name,
    int64_t quota_bytes, struct uuid *id_r, struct err *err);
/* As store_account_find. */
int store_user_find(struct store *s, const char *id_or_email,
    struct uuid *id_r, struct err *err);
/* The user's accounts turn to deleted; the clerk removes the rest. */
int store_user_delete(struct store *s, const struct uuid *id,
    struct err *err);
/* Ids of a user's accounts that are not deleted. */
int store_user_accounts(struct store *s, const struct uuid *user_id,
    struct arena *arena, struct uuid **ids_r, size_t *n_r, struct err *err);
/* Notes a login (`user active`). */
int store_user_active(struct store *s, const struct uuid *id,
    struct err *err);

/* Has a->user_id an account with this login at this IMAP server? */
int store_account_duplicate(struct store *s, const struct account *a,
    struct uuid *id_r, bool *is_found_r, struct err *err);
/*
 * State new, fence 0 and the bulk job sync_bootstrap_account, in one
 * transaction.  The caller chooses a->id (the secret is sealed for it) and
 * fills user_id, email, name, imap_*, smtp_*, auth, secret.
 */
int store_account_add(struct store *s, const struct account *a,
    struct uuid *job_id_r, struct err *err);
/* A digest of those columns (but user_id) as they are now. */
int store_account_mark(struct store *s, const struct uuid *id,
    struct arena *arena, char **mark_r, struct err *err);
/* Writes them; ERR_TEMPORARY when they are not what `mark` was made of, so
 * that of two people who change an account neither undoes the other's. */
int store_account_update(struct store *s, const struct account *a,
    const char *mark, struct err *err);
/*
 * enable: disabled or error -> live when its backfill is complete, else
 * bootstrapping with a new job (*job_id_r, else all zero).
 */
int store_account_enable(struct store *s, const struct uuid *id,
    enum account_state *state_r, struct uuid *job_id_r, struct err *err);

/*
 * Proof of ownership that every write carries.  A PostgreSQL that lost its
 * last commits in a failover may give the same epoch to two owners, so the
 * name counts as well: it is another one for each life of a worker and for
 * each attempt of a job.
 */
#define FENCE_OWNER_SIZE 128
struct fence {
	struct uuid account_id;
	int64_t epoch;
	char owner[FENCE_OWNER_SIZE];
};
void fence_init(struct fence *fence, const struct uuid *account_id,
    int64_t epoch, const char *owner);
/* Is the account still ours, as far as the row that was read says? */
bool fence_is_of(const struct fence *fence, const struct account *account);

/*
 * Any change of state goes through here; whatever ends `live` raises the
 * epoch.  expect: bit set of (1 << enum account_state) that may be left, 0 =
 * any.  *changed_r false when the account was not in `expect`.
 */
int store_account_set_state(struct store *s, const struct uuid *id,
    unsigned expect, enum account_state state, const char *reason,
    bool *changed_r, struct err *err);

/* bootstrapping -> live, by the job that did it and is still the owner. */
int store_account_live(struct store *s, const struct fence *fence,
    bool *changed_r, struct err *err);

/* End of a pass.  success: clears last_error, auth_failures and next_try. */
int store_account_synced(struct store *s, const struct fence *fence,
    int64_t last_mail_secs, struct err *err);
/* A failed pass.  When `failure` is ERR_AUTH for the `auth_refusals`th time
 * in a row the state turns to error: *became_error_r. */
int store_account_failed(struct store *s, const struct fence *fence,
    const struct err *failure, int64_t next_try_secs, unsigned auth_refusals,
    bool *became_error_r, struct err *err);
/*
 * After a refusal the next try is announced before it is made, so that of all
 * workers one makes it (R-LIFE-6): nobody else tries for `secs`, unless it
 * went well.  *is_ours_r false: it is too early, or somebody else was first.
 */
int store_account_try_login(struct store *s, const struct fence *fence,
    int64_t secs, bool *is_ours_r, struct err *err);
int store_account_logged_in(struct store *s, const struct fence *fence,
    struct err *err);

/* --- folders ----------------------------------------------------------------- */

/* The ids that the server gives these folders; the UIDs of one that had
 * another id are void: another folder has its name. */
int store_folder_objects(struct store *s, const struct fence *fence,
    struct folder *const *folders, size_t n, struct err *err);

int store_folders_load(struct store *s, const struct uuid *account_id,
    struct arena *arena, struct folder **folders_r, size_t *n_r,
    struct err *err);
/* NULL: it has none. */
int store_inbox_load(struct store *s, const struct uuid *account_id,
    struct arena *arena, struct folder **inbox_r, struct err *err);

enum folder_op_kind {
	FOLDER_CREATE,	/* wire, path, delimiter, role, is_selectable */
	FOLDER_RENAME,	/* id: new wire, path; its UIDs are in doubt */
	FOLDER_UPDATE,	/* id: role, delimiter, is_selectable; present again */
	FOLDER_MISSING,	/* id: first look without it */
	FOLDER_VANISH,	/* id: gone for good; then store_folder_empty */
};
struct folder_op {
	enum folder_op_kind kind;
	int64_t id; /* FOLDER_CREATE: filled in */
	const char *wire, *path;
	char delimiter;
	enum folder_role role;
	bool is_selectable;
	bool is_refused; /* filled in: PostgreSQL does not take it */
};
struct folder_refusal {
	size_t n;
	const struct folder_op *first;
	struct err why; /* of the first */
};
/* Some hundred a transaction.  One whose values PostgreSQL does not take is
 * left out; the others are written. */
int store_folders_write(struct store *s, const struct fence *fence,
    struct folder_op *ops, size_t n, struct folder_refusal *refused_r,
    struct err *err);

/*
 * What the server tells of this folder is not believed for a while, each time
 * longer: a day, two, ... at most a month.
 */
enum distrust { DISTRUST_CONDSTORE, DISTRUST_UIDNEXT };
int store_folder_distrust(struct store *s, const struct fence *fence,
    struct folder *folder, enum distrust what, const char *reason,
    struct err *err);
/* All its UIDs have been compared, with what tells messages apart; a part of
 * them only when is_whole is false. */
int store_folder_verified(struct store *s, const struct fence *fence,
    struct folder *folder, bool is_whole, struct err *err);

/* So many more messages (or fewer) of its count are not to be found. */
int store_folder_unseen(struct store *s, const struct fence *fence,
    int64_t folder_id, int64_t more, struct err *err);

/* --- messages: writing --------------------------------------------------------- */

/* What a commit did, for events; ids live in the given arena. */
struct changed_ids {
	int64_t *ids;
	size_t n;
};
struct commit_result {
	struct changed_ids created, updated, deleted;
	struct changed_ids threads; /* rows new, changed or merged away */
	int64_t newest_mail_secs; /* newest internal date of created; 0: none */
};

/*
 * A batch of new messages.  batch_add marshals at once, so the content's
 * arena may be reset afterwards.  The same (folder, uid) twice is harmless.
 * A message whose bytes are those of one that recently lost its place in this
 * account (moved, folder renamed, UIDVALIDITY changed) is that message: it
 * keeps its id and thread and is reported as updated (R-SYNC-5).
 */
struct batch;
struct batch *batch_new(void);
void batch_free(struct batch **b);
void batch_reset(struct batch *b);
void batch_add(struct batch *b, const struct place *place,
    const struct blob_ref *blob, const struct content *content);
size_t batch_count(const struct batch *b);
size_t batch_bytes(const struct batch *b);

/*
 * Starts the transaction: rows, threads, search, and the folder's cursor, all
 * or nothing.  Returns when everything is handed to the socket; at most one
 * is in flight per session.  Blobs must be durable before.  On success the
 * folder's generation and cursor are advanced when store_commit_wait returns.
 * cursor NULL: leave it.
 */
int store_commit_start(struct store *s, const struct fence *fence,
    struct folder *folder, struct batch *b, const struct cursor *cursor,
    struct err *err);
/* Whether store_commit_wait would return at once. */
bool store_commit_is_done(struct store *s);
/* Waits for it (no-op when none is in flight; result then all zero).  Every
 * other call on the session waits for it first, and drops the result. */
int store_commit_wait(struct store *s, struct arena *arena,
    struct commit_result *result_r, struct err *err);

/*
 * Flag changes (by uid; places without has_flags are ignored) and vanished
 * UIDs, with the cursor, in one transaction.  Unknown UIDs are ignored; rows
 * that did not really change are not reported.  Local changes not yet pushed
 * are never overwritten (R-SYNC-7).
 */
int store_apply(struct store *s, const struct fence *fence,
    struct folder *folder, const struct place *changed, size_t n_changed,
    const uint32_t *vanished, size_t n_vanished, const struct cursor *cursor,
    struct arena *arena, struct commit_result *result_r, struct err *err);

/*
 * UIDVALIDITY changed: all rows lose their UID and wait to be recognised
 * (R-SYNC-6).  The folder is as if it had never been selected; its rows follow
 * in slices, store_folder_void, until *more_r is false.
 */
int store_folder_remap(struct store *s, const struct fence *fence,
    struct folder *folder, struct err *err);
int store_folder_void(struct store *s, const struct fence *fence,
    struct folder *folder, bool *more_r, struct err *err);
/* Gives UIDs to rows without place, by Message-ID + size + date (places with
 * message_id, size, internal date filled): recognised[i] is set for those that
 * need no download. */
int store_recognise(struct store *s, const struct fence *fence,
    struct folder *folder, const struct place *places, size_t n,
    bool *recognised, struct arena *arena, struct commit_result *result_r,
    struct err *err);
/* Are there messages that wait for a place or lost it recently? */
int store_has_unplaced(struct store *s, const struct uuid *account_id,
    bool *yes_r, struct err *err);
/* The remapping is complete: rows still without UID are soft-deleted, a slice
 * of them; or, where a copy of theirs has just been stored, become that. */
int store_folder_settle(struct store *s, const struct fence *fence,
    struct folder *folder, struct arena *arena, struct commit_result *result_r,
    bool *more_r, struct err *err);
/* The same with the messages of a folder that is gone. */
int store_folder_empty(struct store *s, const struct fence *fence,
    int64_t folder_id, struct arena *arena, struct commit_result *result_r,
    bool *more_r, struct err *err);

/* --- messages: reading ------------------------------------------------------------ */

/* Live rows of a folder with from <= uid <= to, by uid, at most `limit`:
 * uid, flags, modseq.  For comparison with a server without CONDSTORE. */
int store_places(struct store *s, int64_t folder_id, uint32_t from,
    uint32_t to, size_t limit, struct arena *arena, struct place **places_r,
    size_t *n_r, struct err *err);
/*
 * The UIDs of a folder's live rows as ranges, ascending: few, however many they
 * are.  `before` counts the UIDs of the ranges before.
 */
struct uid_range {
	uint32_t first, last;
	uint32_t before;
};
int store_uid_ranges(struct store *s, int64_t folder_id, struct arena *arena,
    struct uid_range **ranges_r, size_t *n_r, struct err *err);
/*
 * Which of these places (sorted) are of rows that may be other messages:
 * another size, internal date or, where told, Message-ID.  is_final: of rows that are, by another
 * Message-ID, or without one by both.
 */
int store_unlike(struct store *s, int64_t folder_id,
    const struct place *places, size_t n, bool is_final, bool *unlike_r,
    struct err *err);
/* Which of these UIDs are stored and live (sorted input and output). */
int store_known_uids(struct store *s, int64_t folder_id, const uint32_t *uids,
    size_t n, bool *known_r, struct err *err);

/* --- blobs: for message raw, blob verify, blob gc -------------------------------- */

/* ERR_GONE when there is no such message or it has no body. */
int store_message_blob(struct store *s, int64_t message_id,
    struct blob_ref *ref_r, struct err *err);

/* All blobs; `on_blob` returning -1 stops (its err is the caller's business).
 * Read in slices, no long transaction. */
int store_blobs_each(struct store *s,
    int (*on_blob)(void *arg, const struct blob_ref *ref), void *arg,
    struct err *err);
/* The same of one segment, without a look at the others. */
int store_segment_each(struct store *s, int32_t segment,
    int (*on_blob)(void *arg, const struct blob_ref *ref), void *arg,
    struct err *err);

/* The blob that was stored last; *is_any_r false: none ever was. */
int store_blob_newest(struct store *s, struct blob_ref *ref_r,
    bool *is_any_r, struct err *err);

struct segment_use {
	int32_t id;
	uint64_t dead_bytes;   /* that no row names */
	uint64_t counted_size; /* of the file when that was counted; 0: never */
};
/* What is known of segments, by id; no look at blobs. */
int store_segments(struct store *s, struct arena *arena,
    struct segment_use **segments_r, size_t *n_r, struct err *err);
/* Counts the dead bytes of a segment whose file has so many bytes and does not
 * grow meanwhile; each record has head_size bytes more than is stored. */
int store_segment_count(struct store *s, int32_t segment, uint64_t file_size,
    uint64_t head_size, uint64_t *dead_r, struct err *err);
/* The copy `to` is durable: the row points there, unless it has changed or
 * gone since `from` was read (*moved_r). */
int store_blob_move(struct store *s, const struct blob_ref *from,
    const struct blob_ref *to, bool *moved_r, struct err *err);
/* The file is gone. */
int store_segment_forget(struct store *s, int32_t segment, struct err *err);

/*
 * Blobs with a file of their own (segment 0) whose row was deleted at least
 * `min_age_secs` ago and that no row names again.  Before unlinking, look
 * that the file itself is as old: somebody may just have put it again.
 */
int store_blob_files_dead(struct store *s, int64_t min_age_secs, size_t limit,
    struct arena *arena, uint8_t (**digests_r)[DIGEST_SIZE], size_t *n_r,
    struct err *err);
int store_blob_file_forget(struct store *s,
    const uint8_t digest[DIGEST_SIZE], struct err *err);
/* Which of these are no blobs. */
int store_blobs_unknown(struct store *s,
    const uint8_t (*digests)[DIGEST_SIZE], size_t n, bool *unknown_r,
    struct err *err);

/* --- quarantine (R-SYNC-9) ----------------------------------------------------------- */

enum risk_step { RISK_NONE, RISK_FOLDER, RISK_FETCH, RISK_PARSE, RISK_STORE };
const char *risk_step_name(enum risk_step step);
int risk_step_parse(const char *name, enum risk_step *step_r);

struct risk {
	int64_t folder_id;
	enum risk_step step;
	uint32_t uid_from, uid_to; /* RISK_FOLDER: 0, 0 */
	unsigned attempts;
	bool is_skipped; /* an operator said skip */
	bool is_parked;	 /* attempts reached the limit */
	bool is_news;	 /* ... with the last one */
	int64_t next_secs; /* when to try again; 0: not again */
};

/*
 * When an attempt fails.  The limit'th parks; before it the step is tried
 * again after first_pause_secs.  What is parked is tried again after
 * pause_secs, then six times as much, and so on up to a day.
 */
struct risk_rule {
	unsigned limit;
	int64_t first_pause_secs, pause_secs;
};
/* `risk` after one more failed attempt at `now_secs`. */
struct risk risk_after_attempt(const struct risk *risk,
    const struct risk_rule *rule, int64_t now_secs);

/*
 * One more attempt failed, for `how`.  On return *risk is what the row says.
 */
int store_risk_count(struct store *s, const struct uuid *account_id,
    struct risk *risk, const char *how, const struct risk_rule *rule,
    struct err *err);
int store_risks_load(struct store *s, const struct uuid *account_id,
    struct arena *arena, struct risk **risks_r, size_t *n_r, struct err *err);
/* The step went well after all. */
int store_risk_clear(struct store *s, const struct fence *fence,
    const struct risk *risk, struct err *err);
/* It was gone around for good: the row stays, for people. */
int store_risk_settle(struct store *s, const struct fence *fence,
    const struct risk *risk, struct err *err);
/* Nothing of the account waits any longer for its time. */
int store_risks_wake(struct store *s, const struct uuid *account_id,
    struct err *err);

/* --- jobs ----------------------------------------------------------------------------- */

enum job_queue { QUEUE_INTERACTIVE, QUEUE_BULK };
const char *job_queue_name(enum job_queue queue);
int job_queue_parse(const char *name, enum job_queue *queue_r);

struct job {
	struct uuid id, account_id;
	const char *kind; /* "sync_bootstrap_account" ... */
	enum job_queue queue;
	const char *payload; /* JSON */
	unsigned attempts, max_attempts;
};

/* What was heard: there is work.  Of interactive jobs this one is taken, of
 * bulk jobs the one whose turn it is. */
struct job_ring {
	struct uuid id;
	bool is_bulk;
};
/* queued -> running for `owner` until `lock_secs` from now; ERR_GONE when it
 * is not queued, not due, or another job of the account excludes it. */
int store_job_take(struct store *s, const struct job_ring *ring,
    const char *owner, int64_t lock_secs, struct arena *arena,
    struct job **job_r, struct err *err);

/* Who says how a job goes on proves that it is still his: ERR_GONE when it
 * was put back, and perhaps taken again, since. */
struct job_attempt {
	struct uuid id;
	const char *owner;
	unsigned number; /* jobs.attempts; 0: any of the owner's */
};
/* Before each step that the world outside sees. */
int store_job_prove(struct store *s, const struct job_attempt *attempt,
    struct err *err);
/* The jobs that still run are `owner`'s for `lock_secs` more. */
int store_jobs_hold(struct store *s, const struct uuid *ids, size_t n,
    const char *owner, int64_t lock_secs, struct err *err);
int store_job_done(struct store *s, const struct job_attempt *attempt,
    struct err *err);
/* When to come again; `further_secs` when the attempt got further than the one
 * before it, which also sets the count of attempts back. */
struct job_again {
	int64_t at_secs, further_secs;
};
/* Back to queued, or dead when permanent or out of attempts. */
int store_job_failed(struct store *s, const struct job_attempt *attempt,
    const struct err *failure, const struct job_again *again, bool *dead_r,
    struct err *err);
/* Which of the owner's bulk jobs had their turn of `slice_secs` while others
 * wait that had less. */
int store_jobs_to_yield(struct store *s, const char *owner,
    int64_t slice_secs, struct arena *arena, struct uuid **ids_r,
    size_t *n_r);
/* Back to queued for another turn; what was done so far counts as progress. */
int store_job_yield(struct store *s, const struct job_attempt *attempt,
    struct err *err);
/* sync_bootstrap_account, refresh_account_job: an account has at most one
 * queued; adding it again gives the id of the one there is. */
int store_job_add(struct store *s, enum job_queue queue, const char *kind,
    const struct uuid *account_id, const char *payload, struct uuid *id_r,
    struct err *err);

/*
 * Accounts on their way to live for which no job is queued or running.
 * reason: the error of a bootstrap that gave up; NULL: there is none at all.
 */
struct orphan {
	struct uuid account_id;
	const char *reason;
};
int store_bootstrap_orphans(struct store *s, size_t limit,
    struct arena *arena, struct orphan **orphans_r, size_t *n_r,
    struct err *err);

struct due_job {
	struct uuid id;
	enum job_queue queue;
};
/* Puts back what outlived its lock. */
int store_jobs_requeue(struct store *s, struct err *err);
/* Lists what is due (at most limit) and has not been rung for within
 * `rung_secs`. */
int store_jobs_due(struct store *s, size_t limit, int64_t rung_secs,
    struct arena *arena, struct due_job **due_r, size_t *n_r,
    struct err *err);

/* --- the clerk's upkeep ----------------------------------------------------------------- */

/* Ids of accounts in state live. */
int store_live_ids(struct store *s, struct arena *arena, struct uuid **ids_r,
    size_t *n_r, struct err *err);
/* Moves texts into the full-text index, for about `msecs`. */
int store_search_merge(struct store *s, int64_t msecs, struct err *err);
/* Deletes rows of deleted accounts and of messages expunged for `keep_days`,
 * at most `limit` of them; *more_r when there is more to do. */
int store_purge(struct store *s, size_t limit, int64_t keep_days, bool *more_r,
    struct err *err);

#endif
