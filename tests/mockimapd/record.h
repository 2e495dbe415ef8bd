/*
 * record.h - who did what when: the call log.
 *
 * A ring in memory, read through the control port, and a file when one is
 * asked for.  Times are taken when the thing happened, on both clocks.
 */
#ifndef MOCKIMAPD_RECORD_H
#define MOCKIMAPD_RECORD_H

#include "world.h"

#include <jansson.h>

struct session;

/* symbol, name in the log */
#define RECORD_KINDS(X) \
	X(RECORD_OPEN, "open")        /* connection; text: the peer's port */ \
	X(RECORD_LOGIN, "login")      /* accepted */ \
	X(RECORD_REFUSED, "refused")  /* a login or a connection; the words */ \
	X(RECORD_COMMAND, "command")  /* text: without secrets, cut */ \
	X(RECORD_IDLE, "idle")        /* IDLE was answered */ \
	X(RECORD_DONE, "done")        /* IDLE ended, by DONE or a close */ \
	X(RECORD_TOLD, "told")        /* news went out during IDLE */ \
	X(RECORD_FAULT, "fault")      /* a scripted fault; text: its kind */ \
	X(RECORD_CHANGE, "change")    /* through the control port */ \
	X(RECORD_CLOSE, "close")      /* text: why */

enum record_kind {
#define X(symbol, name) symbol,
	RECORD_KINDS(X)
#undef X
	    RECORD_KIND_COUNT
};
extern const char *const record_names[RECORD_KIND_COUNT];

/* `path` NULL: memory only.  NULL with errno when it cannot be opened. */
struct record *record_new(size_t ring, const char *path);
void record_free(struct record **record);
/* `account` may be NULL; `conn` 0 is nobody's. */
void record_add(struct record *record, enum record_kind kind, uint32_t conn,
    const struct account *account, const char *text);

/* Which entries: of one account (or NULL), of these kinds (bits), from a
 * sequence number on, at most `limit`. */
struct record_query {
	const struct account *account;
	unsigned kinds;
	uint64_t since;
	size_t limit;
};
/* An array of [seq, mono_us, wall_us, conn, login, kind, text]; `next_r` is
 * where to go on, `lost_r` how many of those asked for the ring has lost. */
json_t *record_read(const struct record *record,
    const struct record_query *query, uint64_t *next_r, uint64_t *lost_r);

int64_t record_mono_usecs(void);
int64_t record_wall_usecs(void);

#endif
