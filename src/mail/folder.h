/*
 * folder.h - a folder as every layer sees it, and how far it has been followed.
 *
 * Plain data, in the arena of whoever read it.
 */
#ifndef MAIL_FOLDER_H
#define MAIL_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* symbol, name in mailboxes.role */
#define FOLDER_ROLES(X)                       \
	X(ROLE_NONE, "")                      \
	X(ROLE_INBOX, "inbox")                \
	X(ROLE_SENT, "sent")                  \
	X(ROLE_DRAFTS, "drafts")              \
	X(ROLE_ARCHIVE, "archive")            \
	X(ROLE_TRASH, "trash")                \
	X(ROLE_JUNK, "junk")                  \
	X(ROLE_ALL, "all")
enum folder_role {
#define X(symbol, name) symbol,
	FOLDER_ROLES(X)
#undef X
	    FOLDER_ROLE_COUNT
};
const char *folder_role_name(enum folder_role role);
int folder_role_parse(const char *name, enum folder_role *role_r);

/*
 * How far a folder has been followed.  Moves only in the transaction of the
 * rows it stands for (R-SYNC-4).  UIDs below backfill_below have not been
 * downloaded yet; 1 = the backfill is complete, 0 = it has not begun.
 */
struct cursor {
	uint32_t uidvalidity; /* 0: never selected */
	uint32_t uidnext;
	uint64_t highestmodseq; /* 0: unknown or not supported */
	uint32_t backfill_below;
	/* Without CONDSTORE: server messages at last look, and the next UID of
	 * the rolling flag comparison. */
	uint32_t messages;
	uint32_t flag_scan_uid;
};

struct folder {
	int64_t id;
	const char *path;     /* UTF-8, for people */
	const char *wire;     /* the name as LIST gave it, for commands */
	char delimiter;	      /* 0: flat */
	enum folder_role role;
	bool is_selectable;   /* false: \Noselect, \NonExistent */
	struct cursor cursor;
	bool is_remapping;    /* UIDVALIDITY changed; some rows have no UID */
	int64_t missing_since_secs; /* absent from LIST; 0: present */
	int64_t parked_until_secs;
	const char *park_reason;
	unsigned park_failures;
	const char *object_id; /* MAILBOXID (RFC 8474); "": not told */
	const char *doubt; /* why its UIDs may mean others now; "" : none */
	/* Why CONDSTORE is not believed; "" : it is.  Until then; not told
	 * to those who ask the clerk. */
	const char *no_condstore;
	int64_t no_condstore_until_secs;
	int64_t no_uidnext_until_secs; /* nor UIDNEXT; 0: believed */
	int64_t verified_secs; /* when messages were last told apart */
	int64_t last_poll_secs;
	/* Rises with every commit that moves the cursor; a write carries the
	 * value it planned with and is ERR_STALE when it differs. */
	int64_t generation;
	int64_t stored; /* live rows */
	/* Messages that have no row and why is known: in quarantine, or
	 * counted by the server and never shown. */
	int64_t explained;
};

#endif
