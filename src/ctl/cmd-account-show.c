/*
 * cmd-account-show.c - account list and account show.
 *
 * Runs in: mailherdctl.  Blocks.
 *
 * The row comes from PostgreSQL, tier, owner and lease from Redis.  With
 * Redis away the rest is still worth seeing.  `show` ends with what comes next
 * and what a person can do, because that is why one asks.
 */
#include "ctl/commands.h"
#include "ctl/daemons.h"
#include "ctl/follow.h"
#include "ctl/next.h"

#include <inttypes.h>

/* What both commands show, in this order. */
enum cell {
	CELL_EMAIL, CELL_USER, CELL_USER_ID, CELL_STATE, CELL_REASON,
	CELL_SINCE, CELL_NEXT, CELL_TIER, CELL_OWNER, CELL_TTL, CELL_CONNS,
	CELL_MAILBOXES, CELL_MESSAGES, CELL_ASIDE, CELL_LAST_MAIL, CELL_LAST_SYNC,
	CELL_NEXT_TRY, CELL_LAST_ERROR, CELL_EPOCH, CELL_IMAP, CELL_SMTP,
	CELL_ID,
	N_CELLS
};

/* "imap.example.org:993 tls, login ann" */
#define SQL_SERVER(kind)                                                  \
	"CASE WHEN a." kind "_host LIKE '%:%'"                            \
	"  THEN '[' || a." kind "_host || ']' ELSE a." kind "_host END"   \
	" || ':' || a." kind "_port || ' ' || a." kind "_tls ||"          \
	" ', login ' || a." kind "_login"

/* The cells in their order; NULL where Redis, or we, fill them in. */
#define SQL_ACCOUNT                                                       \
	"SELECT a.email, u.email, a.user_id, a.state, a.state_reason,"    \
	" extract(epoch FROM a.state_since)::bigint,"                     \
	" NULL, NULL, NULL, NULL, NULL,"                                  \
	" (SELECT count(*) FROM mailboxes m WHERE m.account_id = a.id),"  \
	" (SELECT coalesce(sum(m.messages), 0) FROM mailboxes m"          \
	"  WHERE m.account_id = a.id),"                                   \
	" (SELECT nullif(count(*), 0) FROM quarantine q"                  \
	"  WHERE q.account_id = a.id AND q.state <> 'noted'),"            \
	" extract(epoch FROM a.last_mail_at)::bigint,"                    \
	" extract(epoch FROM a.last_sync_at)::bigint,"                    \
	" extract(epoch FROM a.next_try_at)::bigint, a.last_error,"       \
	" coalesce(f.epoch, 0),"                                          \
	" " SQL_SERVER("imap") ","                                        \
	" CASE WHEN a.smtp_host <> '' THEN " SQL_SERVER("smtp") " END,"   \
	" a.id"                                                           \
	" FROM accounts a JOIN users u ON u.id = a.user_id"               \
	" LEFT JOIN account_fence f ON f.account_id = a.id"

static const struct column list_columns[] = {
	[CELL_EMAIL] = { "email", NULL, COLUMN_TEXT, COLUMN_FLEX, 20 },
	[CELL_USER] = { "user", NULL, COLUMN_TEXT, COLUMN_JSON_ONLY },
	[CELL_USER_ID] = { "user_id", NULL, COLUMN_TEXT, COLUMN_JSON_ONLY },
	[CELL_STATE] = { "state", NULL, COLUMN_TEXT, 0, 0,
	    tint_account_state },
	[CELL_REASON] = { "state_reason", "REASON", COLUMN_TEXT,
	    COLUMN_FLEX | COLUMN_DROP | COLUMN_IF_SET, 12 },
	[CELL_SINCE] = { "state_since", "SINCE", COLUMN_AGE,
	    COLUMN_DROP_FIRST },
	[CELL_NEXT] = { "next", NULL, COLUMN_TEXT,
	    COLUMN_JSON_ONLY | COLUMN_IF_SET },
	[CELL_TIER] = { "tier", NULL, COLUMN_TEXT, 0, 0, tint_tier },
	[CELL_OWNER] = { "owner", NULL, COLUMN_TEXT,
	    COLUMN_FLEX | COLUMN_DROP_FIRST | COLUMN_IF_SET, 12 },
	[CELL_TTL] = { "lease_ttl", NULL, COLUMN_NUMBER, COLUMN_JSON_ONLY },
	[CELL_CONNS] = { "connections", NULL, COLUMN_NUMBER,
	    COLUMN_JSON_ONLY },
	[CELL_MAILBOXES] = { "mailboxes", NULL, COLUMN_NUMBER,
	    COLUMN_JSON_ONLY },
	[CELL_MESSAGES] = { "messages", NULL, COLUMN_NUMBER },
	[CELL_ASIDE] = { "quarantined", "ASIDE", COLUMN_NUMBER,
	    COLUMN_IF_SET, 0, tint_error },
	[CELL_LAST_MAIL] = { "last_mail_at", "MAIL", COLUMN_AGE },
	[CELL_LAST_SYNC] = { "last_sync_at", "SYNC", COLUMN_AGE },
	[CELL_NEXT_TRY] = { "next_try", NULL, COLUMN_TIME, COLUMN_JSON_ONLY },
	[CELL_LAST_ERROR] = { "last_error", NULL, COLUMN_TEXT,
	    COLUMN_FLEX | COLUMN_DROP | COLUMN_IF_SET, 12, tint_error },
	[CELL_EPOCH] = { "lease_epoch", NULL, COLUMN_NUMBER,
	    COLUMN_JSON_ONLY },
	[CELL_IMAP] = { "imap", NULL, COLUMN_TEXT, COLUMN_JSON_ONLY },
	[CELL_SMTP] = { "smtp", NULL, COLUMN_TEXT, COLUMN_JSON_ONLY },
	[CELL_ID] = { "id", "ID", COLUMN_TEXT, COLUMN_DROP_FIRST },
};

static const struct column show_columns[] = {
	[CELL_EMAIL] = { "email", "Account", COLUMN_TEXT },
	[CELL_USER] = { "user", "User", COLUMN_TEXT },
	[CELL_USER_ID] = { "user_id", NULL, COLUMN_TEXT, COLUMN_JSON_ONLY },
	[CELL_STATE] = { "state", "State", COLUMN_TEXT, 0, 0,
	    tint_account_state },
	[CELL_REASON] = { "state_reason", "Reason", COLUMN_TEXT,
	    COLUMN_IF_SET },
	[CELL_SINCE] = { "state_since", "Since", COLUMN_TIME },
	[CELL_NEXT] = { "next", "Next", COLUMN_TEXT, COLUMN_IF_SET },
	[CELL_TIER] = { "tier", "Tier", COLUMN_TEXT, COLUMN_IF_SET, 0,
	    tint_tier },
	[CELL_OWNER] = { "owner", "Owner", COLUMN_TEXT, COLUMN_IF_SET },
	[CELL_TTL] = { "lease_ttl", "Lease left", COLUMN_SPAN,
	    COLUMN_IF_SET },
	[CELL_CONNS] = { "connections", "Connections", COLUMN_NUMBER,
	    COLUMN_IF_SET },
	[CELL_MAILBOXES] = { "mailboxes", "Folders", COLUMN_NUMBER },
	[CELL_MESSAGES] = { "messages", "Messages", COLUMN_NUMBER },
	[CELL_ASIDE] = { "quarantined", "Quarantined", COLUMN_NUMBER,
	    COLUMN_IF_SET, 0, tint_error },
	[CELL_LAST_MAIL] = { "last_mail_at", "Last mail", COLUMN_TIME },
	[CELL_LAST_SYNC] = { "last_sync_at", "Last sync", COLUMN_TIME },
	[CELL_NEXT_TRY] = { "next_try", "Next try", COLUMN_TIME,
	    COLUMN_IF_SET },
	[CELL_LAST_ERROR] = { "last_error", "Last error", COLUMN_TEXT,
	    COLUMN_IF_SET, 0, tint_error },
	[CELL_EPOCH] = { "lease_epoch", "Lease epoch", COLUMN_NUMBER },
	[CELL_IMAP] = { "imap", "IMAP", COLUMN_TEXT },
	[CELL_SMTP] = { "smtp", "SMTP", COLUMN_TEXT, COLUMN_IF_SET },
	[CELL_ID] = { "id", "ID", COLUMN_TEXT },
};

/* --- from Redis --------------------------------------------------------- */

/* Views of all rows' accounts; NULL with a note when Redis is away. */
static struct lease_view *
load_views(struct ctl *ctl, const struct store_rows *rows)
{
	struct lease_view *views;
	struct err err = ERR_INIT;
	struct uuid *ids;

	views = ARENA_ARRAY(ctl->arena, struct lease_view, rows->n_rows + 1);
	ids = ARENA_ARRAY(ctl->arena, struct uuid, rows->n_rows + 1);
	for (size_t r = 0; r < rows->n_rows; r++)
		uuid_parse(ROWS_CELL(rows, r, CELL_ID), &ids[r]);
	if (ctl_redis(ctl, &err) == 0 &&
	    lease_client_views(ctl->redis, ids, rows->n_rows, ctl->arena,
	    views, &err) == 0)
		return views;
	ctl_note("%s (tier, owner and lease are not known)", err.text);
	return NULL;
}

static void
fill_lease_cells(struct ctl *ctl, const struct lease_view *view,
    const char **cells)
{
	cells[CELL_TIER] = view->tier;
	cells[CELL_OWNER] = view->owner;
	if (view->conns > 0)
		cells[CELL_CONNS] = arena_printf(ctl->arena, "%" PRId64,
		    view->conns);
	if (view->ttl_secs >= 0)
		cells[CELL_TTL] = arena_printf(ctl->arena, "%" PRId64,
		    view->ttl_secs);
}

/* --- list --------------------------------------------------------------- */

static int
account_show_print_list(struct ctl *ctl, const struct store_rows *rows)
{
	const char *cells[N_CELLS];
	struct lease_view *views = NULL;
	struct table *t;

	if (rows->n_rows > 0)
		views = load_views(ctl, rows);
	t = table_new(list_columns, N_COLUMNS(list_columns), ctl->is_json);
	for (size_t r = 0; r < rows->n_rows; r++) {
		memcpy(cells, &ROWS_CELL(rows, r, 0), sizeof(cells));
		if (views != NULL)
			fill_lease_cells(ctl, &views[r], cells);
		table_add(t, cells);
	}
	table_print(t, "no accounts (mailherdctl account add)");
	table_free(&t);
	return 0;
}

int
cmd_account_list(struct ctl *ctl, const struct args *args, struct err *err)
{
	const char *user = args_value(args, "user");
	const char *state = args_value(args, "state");
	const char *params[] = { NULL, state };
	char text[UUID_TEXT_SIZE];
	enum account_state ignored;
	struct store_rows *rows;
	struct uuid id;

	if (state != NULL && account_state_parse(state, &ignored) == -1)
		return err_set(err, ERR_PERMANENT, "--state %s: no such state "
		    "(new, bootstrapping, live, disabled, error, deleted)",
		    state);
	if (user != NULL) {
		if (store_user_find(ctl->store, user, &id, err) == -1)
			return -1;
		params[0] = uuid_format(&id, text);
	}
	if (ctl_query(ctl, SQL_ACCOUNT
	    " WHERE ($1::uuid IS NULL OR a.user_id = $1::uuid)"
	    " AND (CASE WHEN $2::text IS NULL THEN a.state <> 'deleted'"
	    "  ELSE a.state = $2 END)"
	    " ORDER BY lower(a.email), a.id", params, 2, &rows, err) == -1)
		return -1;
	return account_show_print_list(ctl, rows);
}

/* --- show --------------------------------------------------------------- */

/* The owner knows best; `explain` says the same. */
static const char *
ask_next(struct ctl *ctl, const char *id)
{
	json_t *request = json_pack("{s:s, s:s}", "cmd", "explain", "account",
	    id), *reply;
	struct err elsewhere = ERR_INIT;
	const char *next = NULL;

	if (daemons_ask_owner(ctl, request, &reply, &elsewhere) == 0) {
		next = json_string_value(json_object_get(reply, "next"));
		if (next != NULL)
			next = arena_strdup(ctl->arena, next);
		json_decref(reply);
	}
	json_decref(request);
	return next;
}

static int
account_show_show(struct ctl *ctl, const struct uuid *id, struct err *err)
{
	char text[UUID_TEXT_SIZE];
	const char *params[] = { uuid_format(id, text) };
	const char *cells[N_CELLS];
	struct lease_view *views;
	struct store_rows *rows;
	struct table *t;

	if (ctl_query(ctl, SQL_ACCOUNT " WHERE a.id = $1::uuid", params, 1,
	    &rows, err) == -1)
		return -1;
	if (rows->n_rows == 0)
		return err_set(err, ERR_GONE, "no account %s", text);
	memcpy(cells, rows->cells, sizeof(cells));
	views = load_views(ctl, rows);
	if (views != NULL)
		fill_lease_cells(ctl, &views[0], cells);
	cells[CELL_NEXT] = cells[CELL_OWNER] == NULL ? NULL :
	    ask_next(ctl, text);
	if (cells[CELL_NEXT] == NULL)
		cells[CELL_NEXT] = next_step(ctl, &(struct next_facts){
	    .id = cells[CELL_ID], .email = cells[CELL_EMAIL],
	    .state = cells[CELL_STATE], .next_try_at = cells[CELL_NEXT_TRY] },
	    views);
	t = table_new(show_columns, N_COLUMNS(show_columns), ctl->is_json);
	table_add(t, cells);
	table_print_record(t);
	table_free(&t);
	return 0;
}

int
cmd_account_show(struct ctl *ctl, const struct args *args, struct err *err)
{
	struct uuid id;
	int rc = 0;

	if (ctl_account(ctl, args->words[0], &id, err) == -1)
		return -1;
	if (args_has(args, "watch"))
		rc = follow_backfill(ctl, &id, err);
	if (rc == -1 || account_show_show(ctl, &id, err) == -1)
		return -1;
	return rc;
}
