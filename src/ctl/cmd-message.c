/*
 * cmd-message.c - message list, search, show, raw.
 *
 * Runs in: mailherdctl.  Blocks.
 */
#include "ctl/commands.h"

#include "blob/blob.h"
#include "mail/tsvector.h"

#include <bsd/stdlib.h>
#include <errno.h>

/* "Ann <ann@example.org>", as headers have it. */
#define SQL_FROM                                                          \
	"CASE WHEN coalesce(m.from_name, '') = '' THEN m.from_addr"       \
	" WHEN m.from_addr IS NULL THEN m.from_name"                      \
	" ELSE m.from_name || ' <' || m.from_addr || '>' END"
/* What fits a narrow column. */
#define SQL_FROM_SHORT                                                    \
	"coalesce(nullif(m.from_name, ''), m.from_addr, '')"
#define SQL_FLAGS                                                         \
	"concat_ws(' ', CASE WHEN m.seen THEN 'seen' END,"                \
	" CASE WHEN m.flagged THEN 'flagged' END,"                        \
	" CASE WHEN m.answered THEN 'answered' END,"                      \
	" CASE WHEN m.draft THEN 'draft' END,"                            \
	" CASE WHEN m.marked_deleted THEN 'deleted' END,"                 \
	" nullif(array_to_string(m.keywords, ' '), ''))"
/* One letter each: New, ! flagged, Answered, Draft, x deleted, @ files. */
#define SQL_MARKS                                                         \
	"concat(CASE WHEN NOT m.seen THEN 'N' END,"                       \
	" CASE WHEN m.flagged THEN '!' END,"                              \
	" CASE WHEN m.answered THEN 'A' END,"                             \
	" CASE WHEN m.draft THEN 'D' END,"                                \
	" CASE WHEN m.marked_deleted THEN 'x' END,"                       \
	" CASE WHEN m.has_attachments THEN '@' END)"

#define SQL_MESSAGE                                                       \
	"m.id, m.uid, b.path, extract(epoch FROM m.sent_at)::bigint,"     \
	" extract(epoch FROM m.internal_date)::bigint,"                   \
	" " SQL_FROM ", " SQL_FROM_SHORT ", m.subject, " SQL_FLAGS ","    \
	" " SQL_MARKS ", m.size, m.thread_id"
#define SQL_SOURCE                                                        \
	" FROM messages m JOIN mailbox b ON b.id = m.mailbox_id"

static enum tint
tint_marks(const char *cell)
{
	return *cell == 'N' ? TINT_GOOD : TINT_NONE;
}

#define MESSAGE_COLUMNS                                                   \
	{ "id", "ID", COLUMN_NUMBER },                                    \
	{ "uid", "UID", COLUMN_NUMBER, COLUMN_DROP },                     \
	{ "mailbox", NULL, COLUMN_TEXT, COLUMN_FLEX | COLUMN_DROP, 7 },   \
	{ "date", NULL, COLUMN_TIME, COLUMN_JSON_ONLY },                  \
	{ "arrived", NULL, COLUMN_TIME },                                 \
	{ "from", NULL, COLUMN_TEXT, COLUMN_JSON_ONLY },                  \
	{ "from_short", "FROM", COLUMN_TEXT,                              \
	    COLUMN_FLEX | COLUMN_HUMAN_ONLY, 12 },                        \
	{ "subject", NULL, COLUMN_TEXT, COLUMN_FLEX, 26 },                \
	{ "flags", NULL, COLUMN_WORDS, COLUMN_JSON_ONLY },                \
	{ "marks", "FLAGS", COLUMN_TEXT, COLUMN_HUMAN_ONLY, 0,            \
	    tint_marks },                                                 \
	{ "size", NULL, COLUMN_SIZE, COLUMN_DROP_FIRST },                 \
	{ "thread_id", NULL, COLUMN_NUMBER, COLUMN_JSON_ONLY }

/* --- list, search ------------------------------------------------------- */

static const struct column list_columns[] = { MESSAGE_COLUMNS };
static const struct column search_columns[] = {
	MESSAGE_COLUMNS,
	{ "snippet", NULL, COLUMN_TEXT, COLUMN_BELOW },
};

static const struct listing message_listing = {
	list_columns, N_COLUMNS(list_columns),
	"SELECT " SQL_MESSAGE SQL_SOURCE
	" WHERE m.account_id = $1::uuid AND m.deleted_at IS NULL"
	" AND ($2::text IS NULL OR b.path = $2)"
	" ORDER BY m.internal_date DESC, m.id DESC LIMIT $3::bigint",
	"no messages",
};
static const struct listing search_listing = {
	search_columns, N_COLUMNS(search_columns),
	"SELECT " SQL_MESSAGE ", m.snippet" SQL_SOURCE
	" WHERE m.id IN (SELECT search_found($1::uuid, $2::tsquery))"
	" AND m.deleted_at IS NULL"
	" ORDER BY m.internal_date DESC, m.id DESC LIMIT $3::bigint",
	"nothing found",
};

/* --account and --limit as parameters; `out` outlives the query. */
struct message_scope {
	struct uuid account;
	char account_text[UUID_TEXT_SIZE];
	char limit_text[24];
};

static int
read_scope(struct ctl *ctl, const struct args *args, struct message_scope *out,
    struct err *err)
{
	const char *account = args_value(args, "account");
	int64_t limit;

	if (args_number(args, "limit", 1, INT32_MAX, 50, &limit, err) == -1 ||
	    ctl_account(ctl, account, &out->account, err) == -1)
		return -1;
	uuid_format(&out->account, out->account_text);
	snprintf(out->limit_text, sizeof(out->limit_text), "%lld",
	    (long long)limit);
	return 0;
}

static int
check_mailbox(struct ctl *ctl, const struct message_scope *scope,
    const char *path, struct err *err)
{
	const char *params[] = { scope->account_text, path };
	struct store_rows *rows;

	if (ctl_query(ctl, "SELECT 1 FROM mailboxes WHERE account_id ="
	    " $1::uuid AND path = $2", params, 2, &rows, err) == -1)
		return -1;
	if (rows->n_rows == 0)
		return err_set(err, ERR_GONE, "no folder \"%s\" (see: "
		    "mailherdctl mailbox list A)", path);
	return 0;
}

int
cmd_message_list(struct ctl *ctl, const struct args *args, struct err *err)
{
	const char *path = args_value(args, "mailbox");
	struct message_scope scope;
	const char *params[] = { scope.account_text, path, scope.limit_text };

	if (read_scope(ctl, args, &scope, err) == -1 ||
	    (path != NULL && check_mailbox(ctl, &scope, path, err) == -1))
		return -1;
	return ctl_list(ctl, &message_listing, params, 3, err);
}

int
cmd_message_search(struct ctl *ctl, const struct args *args, struct err *err)
{
	struct buf query = BUF_INIT;
	struct message_scope scope;
	const char *params[] = { scope.account_text, NULL, scope.limit_text };

	for (size_t i = 0; i < args->n_words; i++)
		buf_addf(&query, "%s%s", i > 0 ? " " : "", args->words[i]);
	params[1] = tsquery_build(ctl->arena, buf_str(&query));
	buf_release(&query);
	if (params[1] == NULL)
		return err_set(err, ERR_PERMANENT, "no word to search for");
	if (read_scope(ctl, args, &scope, err) == -1)
		return -1;
	return ctl_list(ctl, &search_listing, params, 3, err);
}

/* --- show --------------------------------------------------------------- */

static int
message_id(const char *text, int64_t *id_r, struct err *err)
{
	const char *fault;

	*id_r = strtonum(text, 1, INT64_MAX, &fault);
	if (fault != NULL)
		return err_set(err, ERR_PERMANENT, "\"%s\" is no message id "
		    "(see: mailherdctl message list)", text);
	return 0;
}

/* The addresses of one kind in the recipients column, one line. */
#define SQL_RECIPIENTS(kind)                                              \
	"(SELECT string_agg(CASE WHEN coalesce(r ->> 'name', '') = ''"    \
	"  THEN r ->> 'addr' ELSE (r ->> 'name') || ' <' ||"              \
	"  coalesce(r ->> 'addr', '') || '>' END, ', ')"                  \
	" FROM jsonb_array_elements(m.recipients -> '" kind "') r)"

static const struct column show_columns[] = {
	{ "subject", "Subject", COLUMN_TEXT, 0, 0, NULL },
	{ "from", "From", COLUMN_TEXT },
	{ "to", "To", COLUMN_TEXT, COLUMN_IF_SET },
	{ "cc", "Cc", COLUMN_TEXT, COLUMN_IF_SET },
	{ "bcc", "Bcc", COLUMN_TEXT, COLUMN_IF_SET },
	{ "reply_to", "Reply-To", COLUMN_TEXT, COLUMN_IF_SET },
	{ "date", "Date", COLUMN_TIME },
	{ "received", "Received", COLUMN_TIME },
	{ "message_id", "Message-ID", COLUMN_TEXT, COLUMN_IF_SET },
	{ "in_reply_to", "In-Reply-To", COLUMN_TEXT, COLUMN_IF_SET },
	{ "account_id", NULL, COLUMN_TEXT, COLUMN_JSON_ONLY },
	{ "account", "Account", COLUMN_TEXT },
	{ "mailbox", "Folder", COLUMN_TEXT },
	{ "uid", "UID", COLUMN_NUMBER },
	{ "id", "ID", COLUMN_NUMBER },
	{ "flags", "Flags", COLUMN_WORDS, COLUMN_IF_SET },
	{ "size", "Size", COLUMN_SIZE },
	{ "thread_id", "Thread", COLUMN_NUMBER },
	{ "thread_messages", "In thread", COLUMN_NUMBER },
	{ "parse_state", "Parsed", COLUMN_TEXT, 0, 0, tint_health },
	{ "parse_reason", "Because", COLUMN_TEXT, COLUMN_IF_SET },
	{ "deleted_at", "Deleted", COLUMN_TIME, COLUMN_IF_SET },
	{ "snippet", NULL, COLUMN_TEXT, COLUMN_JSON_ONLY },
	{ "attachments", NULL, COLUMN_JSON, COLUMN_JSON_ONLY },
	{ "digest", NULL, COLUMN_TEXT, COLUMN_JSON_ONLY },
};

static const char show_sql[] =
    "SELECT m.subject, " SQL_FROM ", " SQL_RECIPIENTS("to") ","
    " " SQL_RECIPIENTS("cc") ", " SQL_RECIPIENTS("bcc") ","
    " " SQL_RECIPIENTS("reply_to") ","
    " extract(epoch FROM m.sent_at)::bigint,"
    " extract(epoch FROM m.internal_date)::bigint,"
    " m.message_id, m.in_reply_to, m.account_id, a.email, b.path, m.uid,"
    " m.id, " SQL_FLAGS ", m.size, m.thread_id,"
    " (SELECT t.messages FROM threads t WHERE t.id = m.thread_id),"
    " m.parse_state, m.parse_reason,"
    " extract(epoch FROM m.deleted_at)::bigint, m.snippet,"
    " (SELECT coalesce(jsonb_agg(jsonb_build_object('filename', filename,"
    "  'content_type', content_type, 'size', size, 'content_id',"
    "  content_id, 'inline', inline) ORDER BY ordinal), '[]')"
    "  FROM attachments WHERE message_id = m.id),"
    " encode(m.blob, 'hex')"
    " FROM messages m LEFT JOIN mailbox b ON b.id = m.mailbox_id"
    " LEFT JOIN accounts a ON a.id = m.account_id"
    " WHERE m.id = $1::bigint";

static const struct column attachment_columns[] = {
	{ "filename", "ATTACHMENT", COLUMN_TEXT, COLUMN_FLEX, 16 },
	{ "content_type", "TYPE", COLUMN_TEXT, COLUMN_FLEX, 12 },
	{ "size", "SIZE", COLUMN_SIZE },
	{ "inline", "INLINE", COLUMN_BOOL },
};

static const struct listing attachment_listing = {
	attachment_columns, N_COLUMNS(attachment_columns),
	"SELECT filename, content_type, size, inline FROM attachments"
	" WHERE message_id = $1::bigint ORDER BY ordinal",
	NULL,
};

/* Which column of show_columns bears this key. */
static size_t
show_column(const char *key)
{
	size_t c = 0;

	while (strcmp(show_columns[c].key, key) != 0)
		c++;
	return c;
}

static void
print_snippet(const char *snippet)
{
	struct buf text = BUF_INIT, lines = BUF_INIT;

	if (snippet == NULL || *snippet == '\0')
		return;
	display_clean_text(&text, snippet);
	display_wrap(&lines, buf_str(&text), 0, display_columns());
	printf("\n%s\n", buf_str(&lines));
	buf_release(&text);
	buf_release(&lines);
}

int
cmd_message_show(struct ctl *ctl, const struct args *args, struct err *err)
{
	const char *params[] = { args->words[0] };
	struct store_rows *rows;
	struct table *t;
	int64_t id;

	if (message_id(args->words[0], &id, err) == -1 ||
	    ctl_query(ctl, show_sql, params, 1, &rows, err) == -1)
		return -1;
	if (rows->n_rows == 0)
		return err_set(err, ERR_GONE, "no message %s",
		    args->words[0]);
	t = table_new(show_columns, N_COLUMNS(show_columns), ctl->is_json);
	table_add(t, rows->cells);
	table_print_record(t);
	table_free(&t);
	if (ctl->is_json)
		return 0;
	if (strcmp(ROWS_CELL(rows, 0, show_column("attachments")), "[]") !=
	    0) {
		putchar('\n');
		if (ctl_list(ctl, &attachment_listing, params, 1, err) == -1)
			return -1;
	}
	print_snippet(ROWS_CELL(rows, 0, show_column("snippet")));
	return 0;
}

/* --- raw ---------------------------------------------------------------- */

struct output {
	struct err *err;
	bool has_begun;
};

static int
message_write_out(void *arg, const void *bytes, size_t len)
{
	struct output *out = arg;

	out->has_begun = true;
	if (fwrite(bytes, 1, len, stdout) != len)
		return err_set(out->err, ERR_STORAGE, "standard output: %s",
		    strerror(errno));
	return 0;
}

int
cmd_message_raw(struct ctl *ctl, const struct args *args, struct err *err)
{
	struct output out = { .err = err };
	struct blob_ref ref;
	int64_t id;

	if (message_id(args->words[0], &id, err) == -1)
		return -1;
	for (int attempt = 0; attempt < 2; attempt++) {
		if (store_message_blob(ctl->store, id, &ref, err) == -1)
			return -1;
		if (blob_read(ctl->conf->blob_dir, &ref, message_write_out,
			&out, err) == 0)
			return 0;
		/* The collection may have moved it since we read the row. */
		if (err->kind != ERR_GONE || out.has_begun)
			return -1;
	}
	return -1;
}
