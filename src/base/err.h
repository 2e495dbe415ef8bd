/*
 * err.h - what went wrong, for the caller to decide and for people to read.
 *
 * Functions that can fail return 0 or -1 and take a caller-owned struct err
 * as their last argument; it is untouched on success.  `kind` decides what
 * happens next, `text` is for people: valid UTF-8 without NUL or control
 * characters, no secret, naming what, where and, if there is one, the remedy.
 * Whoever detects describes; whoever decides logs, once.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include "base/banned.h"

#include <stdint.h>

/*
 * symbol, name in tables and logs.
 *
 * The kinds never mix: nothing but a server's word about the credentials is
 * ERR_AUTH (R-LIFE-6).
 */
#define ERR_KINDS(X)                                                          \
	X(ERR_NONE, "none")                                                   \
	X(ERR_TEMPORARY, "temporary")   /* of no special kind; try again */   \
	X(ERR_PERMANENT, "permanent")   /* trying again will not help */      \
	X(ERR_AUTH, "auth")             /* credentials refused */             \
	X(ERR_NETWORK, "network")       /* no route, refused, timeout, EOF */ \
	X(ERR_TLS, "tls")               /* certificate, handshake, STARTTLS */\
	X(ERR_THROTTLED, "throttled")   /* busy, limit: wait retry_after */   \
	X(ERR_SERVER, "server")         /* NO, BAD, BYE of the mail server */ \
	X(ERR_PROTOCOL, "protocol")     /* reply not understood: close */     \
	X(ERR_DATABASE, "database")     /* PostgreSQL away or refusing */     \
	X(ERR_STORAGE, "storage")       /* blob store: disk full, I/O */      \
	X(ERR_FENCED, "fenced")         /* another owner: write nothing */    \
	X(ERR_STALE, "stale")           /* folder changed under us: replan */ \
	X(ERR_GONE, "gone")             /* the thing no longer exists */      \
	X(ERR_DEADLINE, "deadline")     /* our own time is up */              \
	X(ERR_STOPPED, "stopped")       /* the master asked us to end */      \
	X(ERR_CONFIG, "configuration")  /* an operator must act */

enum err_kind {
#define X(symbol, name) symbol,
	ERR_KINDS(X)
#undef X
	    ERR_KIND_COUNT
};

struct err {
	enum err_kind kind;
	uint32_t retry_after_secs; /* what a server asked for; 0 = nothing */
	uint32_t is_limit; /* ERR_THROTTLED: we have too many connections */
	char text[480];
};

#define ERR_INIT { .kind = ERR_NONE }

/* Always returns -1, so that `return err_set(...)` reads well. */
int err_set(struct err *err, enum err_kind kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "PREFIX: " before the text.  Always returns -1. */
int err_prefix(struct err *err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Name of a kind, as in accounts.state_reason and in logs. */
const char *err_kind_name(enum err_kind kind);

#endif
