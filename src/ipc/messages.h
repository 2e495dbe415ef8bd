/*
 * messages.h - the payloads of messages.def.
 *
 * Plain structs over SOCK_SEQPACKET between processes of one binary: no
 * pointers, fixed sizes, strings terminated (the channel checks that).
 */
#ifndef IPC_MESSAGES_H
#define IPC_MESSAGES_H

#include "base/err.h"
#include "base/uuid.h"

#include <stdbool.h>
#include <stdint.h>

#define IPC_VERSION 1

#define MSG_HOST_SIZE 256
#define MSG_TEXT_SIZE 256
#define MSG_EMAIL_SIZE 256
#define MSG_WORKER_SIZE 128
#define MSG_IDS_MAX 100	   /* as many as an event may carry */
#define MSG_SECRET_SIZE 1024
#define MSG_SEALED_SIZE 2048
#define MSG_FOLDER_SIZE 64 /* the name of an INBOX */
#define MSG_SHORT_SECRET_SIZE 512 /* sealed; a password, not a token */

struct msg_empty {
	uint32_t unused;
};

struct msg_log_level {
	int32_t level;	   /* enum log_level */
	int32_t subsystem; /* enum log_subsystem, or -1: all */
};

/* What the master hands out.  The grant dies with the child. */
enum resource {
	RESOURCE_SOCKET,   /* to host; waits in line up to the deadline */
	RESOURCE_ACCOUNT,  /* a connection of the account */
	RESOURCE_LOGIN,	   /* to log in to the account: one at a time */
	RESOURCE_PARSE,	   /* a MIME parse slot */
	RESOURCE_DATABASE, /* a PostgreSQL session */
	RESOURCE_COUNT
};
struct msg_want {
	uint32_t want_id; /* of the child's choosing; names the grant */
	uint32_t resource;
	uint16_t port;
	uint8_t is_idle; /* an IDLE connection: never the last fifth */
	char host[MSG_HOST_SIZE];
	int64_t wait_msecs; /* then the answer is no */
};
struct msg_grant {
	uint32_t want_id;
	uint32_t is_granted;
	int64_t retry_msecs; /* when not granted */
	char reason[MSG_TEXT_SIZE];
};
struct msg_give_back {
	uint32_t want_id;
};

/* The seal is bound to account and address (proc/vault.h); the master opens it
 * only for the child that is at work for that account. */
struct msg_unseal {
	struct uuid account_id;
	uint8_t address[32]; /* of struct seal_bond */
	uint32_t len;
	uint8_t sealed[MSG_SEALED_SIZE];
};
struct msg_secret {
	uint32_t is_open;
	uint32_t len;
	char bytes[MSG_SECRET_SIZE]; /* terminated */
	char reason[MSG_TEXT_SIZE];
};

/* Which folders a pass looks at (R-TIER-2). */
enum scope {
	SCOPE_INBOX = 1,
	SCOPE_SPECIAL = 2, /* folders with a role */
	SCOPE_OTHER = 4,
	SCOPE_LIST = 8, /* LIST again: folders created, renamed, gone */
	SCOPE_ALL = 15,
	SCOPE_PEEK = 16, /* STATUS of INBOX, which a hot child follows */
};
struct msg_poll_start {
	struct uuid account_id;
	int64_t epoch;
	uint32_t scope;
	uint32_t slot; /* of the deadline page */
	char owner[MSG_WORKER_SIZE]; /* of the epoch */
	char email[MSG_EMAIL_SIZE];
};

struct msg_job_start {
	struct uuid job_id;
	int64_t timeout_secs;
	uint32_t is_bulk;
};

struct msg_sweep {
	int64_t slice_secs; /* a bulk job's turn while others wait */
	char owner[MSG_WORKER_SIZE];
};

struct msg_take_over {
	struct uuid account_id;
	char owner[MSG_WORKER_SIZE];
};

struct msg_risk {
	struct uuid account_id;
	int64_t folder_id;
	uint32_t step; /* enum risk_step */
	uint32_t uid_from, uid_to;
	char how[MSG_TEXT_SIZE];
};

/* A running job is its worker's for so long; the master has the clerk hold
 * the jobs of its children, so that those of a dead worker come free soon. */
#define JOB_LOCK_SECS 30
struct msg_hold_jobs {
	uint32_t n;
	char owner[MSG_WORKER_SIZE];
	struct uuid ids[MSG_IDS_MAX];
};
struct msg_job_lost { /* its child died with it */
	struct uuid job_id;
	char owner[MSG_WORKER_SIZE];
	char how[MSG_TEXT_SIZE];
};

/*
 * What a hot child must know to begin, read for it by the clerk: MSG_BRIEF_ME,
 * on as MSG_BRIEF, and back as MSG_BRIEFING and MSG_BRIEFED.  A session of its
 * own costs PostgreSQL more than all else a child does that finds nothing new.
 * is_whole 0: it does not fit in here, or could not be read; the child reads
 * for itself.
 */
struct msg_brief {
	struct uuid account_id;
	uint32_t child; /* its generation, for the way back */
};
struct msg_briefing {
	struct uuid account_id, user_id;
	uint32_t child;
	uint32_t is_whole;
	uint32_t tls;	/* enum tls_mode */
	uint32_t auth_failures;
	uint32_t secret_len;
	int64_t epoch, next_try_secs;
	uint16_t port;
	char owner[MSG_WORKER_SIZE];
	char host[MSG_HOST_SIZE];
	char login[MSG_EMAIL_SIZE];
	char email[MSG_EMAIL_SIZE];
	char last_error[MSG_TEXT_SIZE];
	uint8_t secret[MSG_SHORT_SECRET_SIZE]; /* sealed */
	struct {
		int64_t id, generation, stored, explained, last_poll_secs;
		int64_t no_condstore_until_secs, no_uidnext_until_secs,
		    verified_secs;
		uint64_t highestmodseq;
		uint32_t uidvalidity, uidnext, backfill_below, messages,
		    flag_scan_uid;
		uint8_t is_remapping;
		char delimiter;
		char path[MSG_FOLDER_SIZE];
		char wire[MSG_FOLDER_SIZE];
		char no_condstore[MSG_TEXT_SIZE];
	} inbox;
};

struct msg_hello {
	int32_t pid;
	uint32_t version;
};

struct msg_activity {
	char text[64]; /* "idle", "INBOX: fetching 120" ; shown by ps */
};

/* symbol, name on the channel; payloads in mailherdctl(8) */
#define EVENTS(X)                                        \
	X(EVENT_ACCOUNT_STATE, "account.state_changed")  \
	X(EVENT_USER_ACTIVE, "user.active")              \
	X(EVENT_PROGRESS, "sync.progress")               \
	X(EVENT_MESSAGE_NEW, "message.new")              \
	X(EVENT_MESSAGE_UPDATED, "message.updated")      \
	X(EVENT_MESSAGE_DELETED, "message.deleted")      \
	X(EVENT_THREAD, "thread.changed")                \
	X(EVENT_MAILBOX, "mailbox.changed")              \
	X(EVENT_QUARANTINE, "quarantine.changed")        \
	X(EVENT_JOB_FAILED, "job.failed")                \
	X(EVENT_OUTBOX, "outbox.changed")                \
	X(EVENT_QUOTA, "quota.exceeded")
enum event_name {
#define X(symbol, name) symbol,
	EVENTS(X)
#undef X
	    EVENT_COUNT
};
const char *event_name(enum event_name event);

struct msg_event {
	uint32_t event; /* enum event_name */
	struct uuid account_id, user_id, job_id;
	int64_t mailbox_id;
	uint32_t n_ids; /* in ids; `count` may be larger only for deletions */
	uint32_t count;
	int64_t done, total;	   /* sync.progress */
	char name[MSG_TEXT_SIZE];  /* state, change, or mailbox path */
	char reason[MSG_TEXT_SIZE];
	int64_t ids[MSG_IDS_MAX];
};

struct msg_idling { /* a hot child has reached IDLE */
	struct uuid account_id;
};

enum peek { PEEK_NONE, PEEK_SAME, PEEK_DIFFERS, PEEK_COUNT };
struct msg_pass_done {
	struct uuid account_id;
	int64_t epoch;
	uint32_t outcome; /* enum err_kind; ERR_NONE: well */
	uint32_t folders_polled, messages_new, messages_updated,
	    messages_deleted;
	int64_t last_mail_secs; /* newest mail stored by this pass; 0: none */
	int64_t retry_after_secs;
	int64_t msecs, round_trips;
	uint32_t account_left_live; /* the row is no longer live */
	uint32_t condemned; /* this pass put the account into error */
	uint32_t is_limit;  /* ERR_THROTTLED: too many connections */
	uint32_t is_slowed; /* it went well, but the server slows us down */
	/* SCOPE_PEEK: INBOX, and the copy as it was when it was looked at */
	uint32_t peek; /* enum peek */
	int64_t inbox_generation;
	uint64_t inbox_mark; /* what the server said, as a number */
	char text[MSG_TEXT_SIZE]; /* the error */
};

/* Which job it is: of bulk jobs not always the one that was rung for. */
struct msg_job_taken {
	struct uuid job_id, account_id;
};
struct msg_job_done {
	struct uuid job_id, account_id;
	uint32_t outcome; /* enum err_kind */
	uint32_t is_dead;
	uint32_t is_again; /* yielded: to be rung for at once */
	int64_t msecs;
	char kind[64];
	char text[MSG_TEXT_SIZE];
};

struct msg_facts {
	struct uuid account_id, user_id;
	uint32_t is_found;
	uint32_t is_live;
	uint32_t is_claim; /* asked by MSG_TAKE_OVER: the epoch is ours */
	uint32_t is_ours;  /* the row names the worker that asks */
	uint32_t auth_failures; /* refused logins in a row */
	int64_t epoch;
	int64_t last_mail_secs, last_active_secs, next_try_secs;
	uint16_t imap_port;
	char imap_host[MSG_HOST_SIZE];
	char email[MSG_EMAIL_SIZE];
	char last_error[MSG_TEXT_SIZE];
};

struct msg_ids {
	uint32_t n;
	uint32_t is_last;
	struct uuid ids[MSG_IDS_MAX];
};

struct msg_due_jobs {
	uint32_t n;
	uint32_t queue; /* 0 interactive, 1 bulk */
	struct uuid ids[MSG_IDS_MAX];
};

/* The text for Prometheus, in pieces. */
struct msg_metrics {
	uint32_t len;
	uint32_t is_last;
	char text[4096];
};

struct msg_clerk_done {
	uint32_t request; /* enum msg_type of the question */
	uint32_t outcome; /* enum err_kind */
	char text[MSG_TEXT_SIZE];
};

#endif
