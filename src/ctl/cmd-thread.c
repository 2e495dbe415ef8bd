/*
 * cmd-thread.c - thread list, show.
 *
 * Runs in: mailherdctl.  Blocks.
 */
#include "ctl/commands.h"

#include <bsd/stdlib.h>

static const struct column thread_columns[] = {
	{ "id", "ID", COLUMN_NUMBER },
	{ "last_at", "LAST", COLUMN_TIME },
	{ "messages", "N", COLUMN_NUMBER },
	{ "unseen", "NEW", COLUMN_NUMBER },
	{ "from", NULL, COLUMN_TEXT, COLUMN_FLEX, 12 },
	{ "subject", NULL, COLUMN_TEXT, COLUMN_FLEX, 24 },
};

static const struct listing thread_listing = {
	thread_columns, N_COLUMNS(thread_columns),
	"SELECT t.id, extract(epoch FROM t.last_at)::bigint, t.messages,"
	" (SELECT count(*) FROM messages m WHERE m.thread_id = t.id"
	"  AND m.deleted_at IS NULL AND NOT m.seen),"
	" (SELECT string_agg(who, ', ') FROM (SELECT"
	"  coalesce(nullif(m.from_name, ''), m.from_addr) AS who"
	"  FROM messages m WHERE m.thread_id = t.id AND m.deleted_at IS NULL"
	"  GROUP BY 1 ORDER BY min(m.internal_date) LIMIT 4) w),"
	" t.subject"
	" FROM threads t WHERE t.account_id = $1::uuid AND t.messages > 0"
	" ORDER BY t.last_at DESC, t.id DESC LIMIT $2::bigint",
	"no conversations",
};

int
cmd_thread_list(struct ctl *ctl, const struct args *args, struct err *err)
{
	const char *account = args_value(args, "account");
	char text[UUID_TEXT_SIZE], limit_text[24];
	const char *params[] = { text, limit_text };
	struct uuid id;
	int64_t limit;

	if (args_number(args, "limit", 1, INT32_MAX, 50, &limit, err) == -1 ||
	    ctl_account(ctl, account, &id, err) == -1)
		return -1;
	uuid_format(&id, text);
	snprintf(limit_text, sizeof(limit_text), "%lld", (long long)limit);
	return ctl_list(ctl, &thread_listing, params, 2, err);
}

static const struct column member_columns[] = {
	{ "id", "ID", COLUMN_NUMBER },
	{ "mailbox", NULL, COLUMN_TEXT, COLUMN_FLEX, 7 },
	{ "date", NULL, COLUMN_TIME },
	{ "from", NULL, COLUMN_TEXT, COLUMN_FLEX, 12 },
	{ "subject", NULL, COLUMN_TEXT, COLUMN_FLEX, 24 },
	{ "seen", NULL, COLUMN_BOOL },
	{ "size", NULL, COLUMN_SIZE, COLUMN_DROP },
	{ "snippet", NULL, COLUMN_TEXT, COLUMN_BELOW },
};

static const struct listing member_listing = {
	member_columns, N_COLUMNS(member_columns),
	"SELECT m.id, b.path, extract(epoch FROM m.sent_at)::bigint,"
	" coalesce(nullif(m.from_name, ''), m.from_addr), m.subject, m.seen,"
	" m.size, m.snippet"
	" FROM messages m JOIN mailbox b ON b.id = m.mailbox_id"
	" WHERE m.thread_id = $1::bigint AND m.deleted_at IS NULL"
	" ORDER BY m.internal_date, m.id",
	NULL,
};

int
cmd_thread_show(struct ctl *ctl, const struct args *args, struct err *err)
{
	const char *params[] = { args->words[0] }, *fault;
	struct store_rows *rows;

	strtonum(args->words[0], 1, INT64_MAX, &fault);
	if (fault != NULL)
		return err_set(err, ERR_PERMANENT, "\"%s\" is no thread id "
		    "(see: mailherdctl thread list)", args->words[0]);
	if (ctl_query(ctl, "SELECT 1 FROM threads WHERE id = $1::bigint",
	    params, 1, &rows, err) == -1)
		return -1;
	if (rows->n_rows == 0)
		return err_set(err, ERR_GONE, "no thread %s", args->words[0]);
	return ctl_list(ctl, &member_listing, params, 1, err);
}
