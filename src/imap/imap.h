/*
 * imap.h - one logged-in IMAP session, as sync sees it.
 *
 * Everything blocks, with a deadline per command, and stops early when
 * `may_go_on` says so (asked before each command and about once a second
 * while waiting).
 *
 * Deadlines.  A command has command_msecs in all, whatever the server sends
 * meanwhile.  Replies whose length nobody knows (FETCH, SELECT with QRESYNC)
 * instead end when nothing has come for command_msecs, or when less than
 * 1 KiB/s was averaged over twice that time (at most a minute) of waiting: a
 * server that drips bytes is cut.  A SELECT may drip for select_msecs, as
 * servers do that tell "* OK Still here" while they open a folder.  Only
 * waiting for the server counts, not what the caller does meanwhile.
 *
 * After ERR_SERVER (a tagged NO or BAD) and ERR_PERMANENT (an argument that
 * cannot be sent) the session is usable.  After every other error it is dead:
 * nothing more is sent, each call fails with the same error, and only
 * imap_close is of use.  BYE is ERR_NETWORK with the server's words, or
 * ERR_THROTTLED when the words ask to come back later.
 *
 * Folder names are wire names throughout: the bytes of LIST (L052).
 *
 * libetpan stays inside this folder; what comes out is plain data.
 */
#ifndef IMAP_IMAP_H
#define IMAP_IMAP_H

#include "base/arena.h"
#include "base/err.h"
#include "base/log.h"
#include "mail/account.h"
#include "mail/folder.h"
#include "mail/message.h"

struct quirks_table;

/* Once, before fork: trust store, GnuTLS, catch-all extension.  ca_file may
 * be NULL or "". */
int imap_init(const char *ca_file, struct err *err);
/* Reads both anew; -1: what was read before stays. */
int imap_renew_trust(const char *ca_file, struct err *err);
/* What to do otherwise for which server; kept, not copied.  Before fork, NULL:
 * nothing.  Matched after the greeting and again after login. */
void imap_set_quirks(const struct quirks_table *table);

struct imap_params {
	const char *host;
	uint16_t port;
	enum tls_mode tls;
	const char *login;
	const char *password; /* not kept after imap_open */

	int64_t connect_msecs; /* resolve + connect + TLS + greeting */
	int64_t command_msecs; /* one command; while data flows a FETCH has
				* this much per `stall` instead */
	int64_t select_msecs;  /* a SELECT that shows signs of life */
	size_t max_line;       /* outside literals: 1 MiB */
	uint64_t max_literal;  /* one message: 256 MiB */
	/* What the untagged lines of one reply may take in memory. */
	uint64_t max_reply;

	const char *rawlog_path; /* NULL: none; secrets are blanked */
	const struct log *log;

	/* Asked before a socket to host is opened, told after it is closed. */
	int (*want_socket)(void *arg, const char *host, uint16_t port,
	    struct err *err);
	void (*gave_socket)(void *arg);
	/* Looked at before every command; -1 ends the session (lease lost,
	 * stop asked for). */
	int (*may_go_on)(void *arg, struct err *err);
	void *arg;
};

struct imap;

/* Connects, verifies, logs in, reads capabilities; ID goes out with the first
 * command.  No credential leaves before the peer is verified (TLS_NONE: only
 * to what the account says).  ERR_TLS texts name which of chain, name, date.
 * ERR_AUTH is only what the server says of the credentials; busy and limits
 * are ERR_THROTTLED with retry_after_secs. */
int imap_open(struct imap **r_r, const struct imap_params *params,
    struct err *err);
/* LOGOUT when the session is sound, without waiting for the answer. */
void imap_close(struct imap **r);

/* Capabilities that change what sync does; after quirks. */
enum imap_cap {
	IMAP_CONDSTORE = 1,
	IMAP_QRESYNC = 2,
	IMAP_IDLE = 4,
	IMAP_MOVE = 8,
	IMAP_UIDPLUS = 16,
	IMAP_SPECIAL_USE = 32,
	IMAP_LIST_STATUS = 64,
	IMAP_OBJECTID = 128,
};
unsigned imap_caps(const struct imap *r);
/* Those of the host and of what the server said of itself; the session's. */
const struct quirks *imap_quirks(const struct imap *r);
/* Longest IDLE this server bears, from the quirks; 0: no limit of its own. */
int64_t imap_idle_limit_msecs(const struct imap *r);
/* Round trips and bytes so far, for benchmarks and logs. */
struct imap_stats {
	uint64_t round_trips, bytes_in, bytes_out;
	bool is_slowed; /* "OK ... [THROTTLED]" was said */
};
void imap_stats(const struct imap *r, struct imap_stats *stats_r);

/* --- folders ------------------------------------------------------------- */

struct imap_folder {
	const char *wire; /* may hold any byte but NUL, CR, LF */
	const char *path; /* UTF-8 for people, another for each folder */
	char delimiter;
	enum folder_role role; /* from SPECIAL-USE / XLIST flags only */
	bool is_selectable;
};
/* A complete, tagged-OK LIST with at least one folder, or an error (R-SYNC-1).
 * Whether INBOX is among them is for the caller to look at (L063).  Lines that
 * name no folder a command could name are left out. */
int imap_list(struct imap *r, struct arena *arena,
    struct imap_folder **folders_r, size_t *n_r, struct err *err);

/* The last one had more folders than max_reply lets be held: those beyond are
 * not in it, and absence proves nothing. */
bool imap_list_is_cut(const struct imap *r);

#define IMAP_OBJECT_ID_SIZE 256 /* RFC 8474: up to 255 characters */
struct imap_status {
	bool is_answered; /* false: the connection ended before */
	bool is_known; /* false: NO, BAD, or an empty answer */
	char no_text[120]; /* the server's words when it said NO */
	char object_id[IMAP_OBJECT_ID_SIZE]; /* MAILBOXID; "": not told */
	uint32_t messages, uidnext, uidvalidity; /* 0: not told */
	uint64_t highestmodseq;			 /* 0: not told */
};
/* One flight, one tag a folder (R-SYNC-2).  After an error status_r tells
 * which folder the server did not come to answer for. */
int imap_status(struct imap *r, const char *const *wires, size_t n,
    struct imap_status *status_r, struct err *err);

/*
 * LIST with the STATUS of folders known from before, in the same flight.  The
 * first n_answered of them have their answer; those that did not fit, or that
 * the server refused in this form, are to be asked with imap_status.
 */
struct imap_flight {
	const char *const *wires; /* of n */
	size_t n;
	struct imap_status *status; /* room for n */
	size_t n_answered;
	bool is_listed; /* LIST itself has been answered */
};
int imap_list_with(struct imap *r, struct imap_flight *along,
    struct arena *arena, struct imap_folder **folders_r, size_t *n_r,
    struct err *err);

struct imap_selected {
	uint32_t exists, uidnext, uidvalidity; /* 0: not told (L142) */
	uint64_t highestmodseq;		       /* 0: NOMODSEQ or no CONDSTORE */
	bool is_read_only;
};

/* Flag news and vanished UIDs as the server reports them, in any order. */
struct imap_changes {
	struct place *changed; /* uid, flags, modseq */
	size_t n_changed, cap_changed;
	uint32_t *vanished; /* sorted, unique */
	size_t n_vanished, cap_vanished;
	struct arena *arena; /* set by the caller */

	/* EXPUNGE lines and flag news without a UID: sequence numbers mean
	 * nothing here, compare UIDs. */
	size_t n_expunged, n_unnamed;
	/* imap_noop: messages in the folder now. */
	uint32_t exists;
	/* UIDs above this are not taken as vanished; 0: no limit.  Set by
	 * imap_select and imap_changed_since to what is known. */
	uint32_t vanished_limit;
	/* The server named more than can be held: compare UIDs instead. */
	bool is_cut;
};

/*
 * The last folder or message asked for was refused with words that ask to come
 * back later.  They are about it (ERR_SERVER), unless several in a row hear
 * such a thing: then the session ends with ERR_THROTTLED.
 */
bool imap_is_busy(const struct imap *r);

/*
 * SELECT.  With QRESYNC and `known` (uidvalidity, highestmodseq set) the
 * changes since then come with it.  ERR_SERVER: it cannot be selected.
 */
int imap_select(struct imap *r, const char *wire,
    const struct cursor *known, struct imap_selected *selected_r,
    struct imap_changes *changes, struct err *err);
int imap_unselect(struct imap *r, struct err *err);
/*
 * Since the folder was selected, the server told news of it along with the
 * answer to something else, where nobody looks for them; it will not tell them
 * again.  Without this, and with IDLE as the next command, nothing is missed.
 */
bool imap_is_disturbed(const struct imap *r);

/* CONDSTORE: UID FETCH from:to (UID FLAGS MODSEQ) (CHANGEDSINCE modseq). */
int imap_changed_since(struct imap *r, uint32_t from, uint32_t to,
    uint64_t modseq, struct imap_changes *changes, struct err *err);

/* --- messages ------------------------------------------------------------ */

enum imap_item {
	ITEM_FLAGS = 1,
	ITEM_SIZE = 2, /* RFC822.SIZE */
	ITEM_DATE = 4, /* INTERNALDATE */
	ITEM_MODSEQ = 8,
	ITEM_MESSAGE_ID = 16, /* BODY.PEEK[HEADER.FIELDS (MESSAGE-ID)] */
};

/* Called per message while data flows; the place dies with the call.
 * Returning -1 (with its own err kept by the caller) ends the session. */
typedef int (*imap_on_place)(void *arg, const struct place *place);

/* By UID range; `to` 0 = no upper end.  UIDs not asked for are dropped. */
int imap_scan_uids(struct imap *r, uint32_t from, uint32_t to,
    unsigned items, imap_on_place on_place, void *arg, struct err *err);
/* By sequence numbers, for newest-first windows of sparse folders. */
int imap_scan_seq(struct imap *r, uint32_t from, uint32_t to,
    unsigned items, imap_on_place on_place, void *arg, struct err *err);

/*
 * By UIDs, sorted; as many commands as that takes.  items 0: UIDs alone, to
 * learn which of them are there.  ERR_SERVER: *is_refused_r (may be NULL) tells
 * whether the server said so, or whether not all that it said could be read.
 */
int imap_scan_set(struct imap *r, const uint32_t *uids, size_t n,
    unsigned items, imap_on_place on_place, void *arg, bool *is_refused_r,
    struct err *err);
/* The UIDs of these sequence numbers (sorted); 0: not told. */
int imap_uids_at(struct imap *r, const uint32_t *seqs, size_t n,
    uint32_t *uids_r, struct err *err);

/*
 * Bodies as they arrive.  For each message: bytes() any number of times, then
 * done() once with its uid, flags, internal date and size; a message without
 * body (L136, L046) gets done() with has_body false.  Commands are built below
 * the server's line limit and kept two in flight.  UIDs that did not come are
 * not reported: count.
 */
struct imap_sink {
	int (*bytes)(void *arg, const char *p, size_t len);
	int (*done)(void *arg, const struct place *place, bool has_body);
	void *arg;
	/* The bytes so far were of a message not asked for, or twice: forget
	 * them.  NULL: such a message ends the session (ERR_PROTOCOL). */
	void (*drop)(void *arg);
	/* It is larger than max_literal, whatever its size was said to be, and
	 * was skipped.  NULL: done() as for one without body. */
	void (*too_large)(void *arg, uint32_t uid);
	bool is_header_only; /* bytes() gets no more than the header */
};
/* How long a body may stay away, if less than command_msecs; 0: that. */
void imap_set_patience(struct imap *r, int64_t msecs);
int imap_fetch(struct imap *r, const uint32_t *uids, size_t n,
    size_t per_command, const struct imap_sink *sink, struct err *err);
/* Has the message really more than max_literal bytes, as its size says?  True
 * where the server does not tell. */
int imap_is_too_large(struct imap *r, uint32_t uid, bool *yes_r,
    struct err *err);

/* --- IDLE ---------------------------------------------------------------- */

enum imap_wake {
	WAKE_CHANGED, /* the server said something about the folder */
	WAKE_CONTROL, /* control_fd is readable */
	WAKE_TIMEOUT,
};
/* Own loop: that of libetpan cannot be interrupted.  Whatever came before "+"
 * counts.  Trims the heap before it waits.  Restarts nothing: one IDLE. */
int imap_idle(struct imap *r, int control_fd, int64_t msecs,
    enum imap_wake *wake_r, struct err *err);
/* For servers without IDLE. */
int imap_noop(struct imap *r, struct imap_changes *changes,
    struct err *err);

#endif
