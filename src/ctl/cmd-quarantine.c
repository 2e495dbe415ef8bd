/*
 * cmd-quarantine.c - quarantine list, retry, skip.
 *
 * Runs in: mailherdctl.  Blocks.
 */
#include "ctl/commands.h"

#include <bsd/stdlib.h>

static enum tint
tint_quarantine(const char *cell)
{
	return strcmp(cell, "parked") == 0 ? TINT_BAD
	    : strcmp(cell, "skipped") == 0 ? TINT_DIM : TINT_WARN;
}

static const struct column quarantine_columns[] = {
	{ "id", "Q", COLUMN_NUMBER },
	{ "account_id", NULL, COLUMN_TEXT, COLUMN_JSON_ONLY },
	{ "account", NULL, COLUMN_TEXT, COLUMN_FLEX, 12 },
	{ "mailbox", NULL, COLUMN_TEXT, COLUMN_FLEX, 8 },
	{ "mailbox_id", NULL, COLUMN_NUMBER, COLUMN_JSON_ONLY },
	{ "uids", NULL, COLUMN_TEXT, COLUMN_HUMAN_ONLY },
	{ "uid_from", NULL, COLUMN_NUMBER, COLUMN_JSON_ONLY },
	{ "uid_to", NULL, COLUMN_NUMBER, COLUMN_JSON_ONLY },
	{ "step", NULL, COLUMN_TEXT },
	{ "state", NULL, COLUMN_TEXT, 0, 0, tint_quarantine },
	{ "attempts", "TRIES", COLUMN_NUMBER },
	{ "last_at", "LAST", COLUMN_AGE },
	{ "next_at", "NEXT", COLUMN_AGE },
	{ "reason", NULL, COLUMN_TEXT, COLUMN_FLEX, 12 },
};

static const struct listing quarantine_listing = {
	quarantine_columns, N_COLUMNS(quarantine_columns),
	"SELECT q.id, q.account_id, coalesce(a.email, q.account_id::text),"
	" coalesce(m.path, '?'), q.mailbox_id,"
	" CASE WHEN q.uid_from = 0 THEN 'folder'"
	"  WHEN q.uid_from = q.uid_to THEN q.uid_from::text"
	"  ELSE q.uid_from || ':' || q.uid_to END,"
	" q.uid_from, q.uid_to, q.step, q.state, q.attempts,"
	" extract(epoch FROM q.last_at)::bigint,"
	" extract(epoch FROM q.next_at)::bigint, q.reason"
	" FROM quarantine q LEFT JOIN accounts a ON a.id = q.account_id"
	" LEFT JOIN mailbox m ON m.id = q.mailbox_id"
	" WHERE $1::uuid IS NULL OR q.account_id = $1::uuid"
	" ORDER BY q.state = 'skipped', q.last_at DESC, q.id",
	"nothing in quarantine",
};

int
cmd_quarantine_list(struct ctl *ctl, const struct args *args, struct err *err)
{
	char text[UUID_TEXT_SIZE];
	const char *params[] = { NULL };
	struct uuid id;

	if (args->n_words > 0) {
		if (ctl_account(ctl, args->words[0], &id, err) == -1)
			return -1;
		params[0] = uuid_format(&id, text);
	}
	return ctl_list(ctl, &quarantine_listing, params, 1, err);
}

/* Its owner's children go by what they read when they began. */
static void
quarantine_tell_owner(struct ctl *ctl, const struct store_rows *rows)
{
	struct msg_event event = { .event = EVENT_QUARANTINE };
	struct err err = ERR_INIT;

	if (uuid_parse(ROWS_CELL(rows, 0, 1), &event.account_id) == -1)
		return;
	event.mailbox_id = strtonum(ROWS_CELL(rows, 0, 2), 0, INT64_MAX, NULL);
	event.done = strtonum(ROWS_CELL(rows, 0, 3), 0, INT64_MAX, NULL);
	snprintf(event.name, sizeof(event.name), "%s",
	    strcmp(ROWS_CELL(rows, 0, 0), "noted") == 0 ? "retry" :
	    ROWS_CELL(rows, 0, 0));
	if (ctl_redis(ctl, &err) == -1 ||
	    lease_client_publish(ctl->redis, &event, &err) == -1)
		ctl_note("%s (saved all the same; the next pass sees it)",
		    err.text);
}

static int
quarantine_change(
    struct ctl *ctl, const char *number, const char *sql, struct err *err)
{
	const char *params[] = { number }, *fault;
	struct store_rows *rows;

	strtonum(number, 1, INT64_MAX, &fault);
	if (fault != NULL)
		return err_set(err, ERR_PERMANENT, "\"%s\" is no number of an "
		    "entry (see: mailherdctl quarantine list)", number);
	if (ctl_query(ctl, sql, params, 1, &rows, err) == -1)
		return -1;
	if (rows->n_rows == 0)
		return err_set(err, ERR_GONE, "no entry %s (see: mailherdctl "
		    "quarantine list)", number);
	quarantine_tell_owner(ctl, rows);
	if (ctl->is_json)
		ctl_print_json(json_pack("{s:I, s:s}", "id",
		    (json_int_t)strtonum(number, 1, INT64_MAX, NULL), "state",
		    ROWS_CELL(rows, 0, 0)));
	return 0;
}

#define SQL_CHANGED " RETURNING state, account_id, mailbox_id, uid_from"

int
cmd_quarantine_retry(struct ctl *ctl, const struct args *args,
    struct err *err)
{
	/* A folder that is parked is so by this entry. */
	return quarantine_change(ctl, args->words[0],
	    "WITH q AS (UPDATE quarantine SET state = 'noted', attempts = 0,"
	    "  next_at = due_by_now() WHERE id = $1::bigint" SQL_CHANGED "),"
	    " m AS (UPDATE mailbox SET parked_until = NULL, park_reason = ''"
	    "  FROM q WHERE mailbox.id = q.mailbox_id)"
	    " SELECT * FROM q",
	    err);
}

int
cmd_quarantine_skip(struct ctl *ctl, const struct args *args, struct err *err)
{
	return quarantine_change(ctl, args->words[0],
	    "UPDATE quarantine SET state = 'skipped', next_at = NULL"
	    " WHERE id = $1::bigint" SQL_CHANGED,
	    err);
}
