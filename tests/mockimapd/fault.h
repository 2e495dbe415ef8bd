/*
 * fault.h - scripted faults: what goes wrong, for whom, when, how often.
 */
#ifndef MOCKIMAPD_FAULT_H
#define MOCKIMAPD_FAULT_H

#include "world.h"

#include <jansson.h>

/* symbol, name on the control port */
#define FAULT_KINDS(X) \
	X(FAULT_DROP, "drop")         /* closes, after `bytes` more */ \
	X(FAULT_STALL, "stall")       /* says nothing for `msecs`; 0: ever */ \
	X(FAULT_ANSWER, "answer")     /* `text` instead of doing it */ \
	X(FAULT_SAY, "say")           /* `text` as a line before the answer */ \
	X(FAULT_GARBAGE, "garbage")   /* `bytes` random bytes before it */ \
	X(FAULT_SLOW, "slow")         /* from now on `bytes` a second */ \
	X(FAULT_SILENT, "silent")     /* IDLE is answered, news never told */ \
	X(FAULT_MODSEQ, "modseq")     /* `text`: zero, none, frozen, huge */ \
	X(FAULT_SIZE, "size")         /* each RFC822.SIZE is `bytes` */ \
	X(FAULT_UIDNEXT, "uidnext")   /* UIDNEXT is `bytes` */ \
	X(FAULT_EXISTS, "exists")     /* so many are said to EXIST */

enum fault_kind {
#define X(symbol, name) symbol,
	FAULT_KINDS(X)
#undef X
	    FAULT_KIND_COUNT
};
extern const char *const fault_names[FAULT_KIND_COUNT];

struct fault {
	STAILQ_ENTRY(fault) entry;
	unsigned id;
	enum fault_kind kind;
	char account[128]; /* fnmatch(3) of the login; "*" also before it */
	char at[32];	   /* "connect", a command ("UID FETCH"), or "*" */
	char match[128];   /* fnmatch(3) of the command's arguments, or "" */
	int64_t skip;	   /* lets so many pass first */
	int64_t times;	   /* then strikes so often; -1: for ever */
	int64_t bytes, msecs;
	char text[256];
	uint64_t struck;
};

struct faults;
struct faults *faults_new(void);
void faults_free(struct faults **faults);
/* From the control port's words.  NULL with `why_r`. */
struct fault *fault_add(struct faults *faults, const json_t *words,
    const char **why_r);
/* How many were taken away; id 0: all. */
size_t fault_clear(struct faults *faults, unsigned id);
json_t *faults_list(const struct faults *faults);

/* The first that strikes here and now, counted; NULL: none.  `login` may be
 * NULL.  Lies never come from here. */
const struct fault *fault_strike(struct faults *faults, const char *login,
    const char *at, const char *arguments);
bool fault_is_lie(enum fault_kind kind);
/* The lie of that kind for this account, or NULL. */
const struct fault *fault_lie(const struct faults *faults,
    enum fault_kind kind, const char *login);

#endif
