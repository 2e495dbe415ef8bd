/*
 * plan.h - what to do about a folder, from what the server says of it.  Pure.
 *
 * Asked twice: with the STATUS of a poll, to find out whether there is
 * anything to do at all, and with the SELECT, whose numbers count.
 * tests/sync-cases has the table of cases.
 */
#ifndef SYNC_PLAN_H
#define SYNC_PLAN_H

#include "imap/imap.h"
#include "store/store.h"

/* symbol, name in tests/sync-cases and logs */
#define PLAN_ACTIONS(X)                                                      \
	X(PLAN_NOTHING, "nothing")     /* equal, as far as anyone can say */ \
	X(PLAN_PARKED, "parked")       /* not now */                         \
	X(PLAN_SELECT, "select")       /* STATUS does not tell: look */      \
	X(PLAN_FIRST, "first")	       /* not selected yet */    \
	X(PLAN_REMAP, "remap")	       /* UIDs mean others now */ \
	X(PLAN_QRESYNC, "qresync")     /* the server tells all changes */    \
	X(PLAN_CONDSTORE, "condstore") /* it tells all but the vanished */   \
	X(PLAN_COMPARE, "compare")     /* it tells nothing: compare */

enum plan_action {
#define X(symbol, name) symbol,
	PLAN_ACTIONS(X)
#undef X
};
const char *plan_action_name(enum plan_action action);

/* STATUS or SELECT. */
struct view {
	bool is_known;	  /* false: no usable answer */
	bool is_selected; /* its numbers are final */
	uint32_t messages, uidnext, uidvalidity; /* 0: not told */
	uint64_t highestmodseq;			 /* 0: not told */
};
struct view view_of_status(const struct imap_status *status);
struct view view_of_selected(const struct imap_selected *selected);

struct plan {
	enum plan_action action;
	const char *distrust; /* not NULL: record why (R-SYNC-3) */
	/* Not NULL: UIDs may mean other messages now, or the server has just
	 * told nonsense: all are compared, with what tells them apart. */
	const char *doubt;
	bool needs_backfill;  /* older messages are still to be fetched */
	bool is_short; /* rows are missing or too many: all are compared */
};

struct plan plan_folder(const struct folder *folder, const struct view *view,
    unsigned caps, int64_t now_secs);

/* Is CONDSTORE to be used for this folder at all? */
bool plan_has_condstore(const struct folder *folder, unsigned caps,
    int64_t now_secs);
/* Is the server's UIDNEXT believed? */
bool plan_has_uidnext(const struct folder *folder, int64_t now_secs);
/* What SELECT may be given to report changes since; NULL: nothing. */
const struct cursor *plan_known(const struct folder *folder, unsigned caps,
    int64_t now_secs);

#endif
