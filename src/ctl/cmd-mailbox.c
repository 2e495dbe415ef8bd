/*
 * cmd-mailbox.c - mailbox list.
 *
 * Runs in: mailherdctl.  Blocks.
 */
#include "ctl/commands.h"

static const struct column mailbox_columns[] = {
	{ "path", NULL, COLUMN_TEXT, COLUMN_FLEX, 16 },
	{ "role", NULL, COLUMN_TEXT },
	{ "messages", NULL, COLUMN_NUMBER },
	{ "server_messages", "AT SERVER", COLUMN_NUMBER, COLUMN_DROP },
	{ "changed_at", "CHANGED", COLUMN_AGE },
	{ "uidvalidity", NULL, COLUMN_NUMBER, COLUMN_DROP },
	{ "uidnext", NULL, COLUMN_NUMBER, COLUMN_DROP },
	{ "highestmodseq", "MODSEQ", COLUMN_NUMBER, COLUMN_DROP },
	{ "parked_until", NULL, COLUMN_TIME, COLUMN_JSON_ONLY },
	{ "id", "ID", COLUMN_NUMBER, COLUMN_DROP },
	{ "note", NULL, COLUMN_TEXT, COLUMN_FLEX | COLUMN_IF_SET, 12,
	    tint_error },
};

/* note: why this folder is not simply followed. */
static const struct listing mailbox_listing = {
	mailbox_columns, N_COLUMNS(mailbox_columns),
	"SELECT path, role, messages, server_messages,"
	" extract(epoch FROM last_poll_at)::bigint,"
	" uidvalidity, uidnext, highestmodseq,"
	" extract(epoch FROM parked_until)::bigint, id,"
	" CASE WHEN park_reason <> ''"
	"   THEN 'parked: ' || park_reason"
	"  WHEN NOT is_selectable THEN 'not selectable'"
	"  WHEN missing_since IS NOT NULL THEN 'missing at the server'"
	"  WHEN is_remapping THEN 'UIDVALIDITY changed, matching'"
	"  WHEN uidvalidity IS NOT NULL AND backfill_below <> 1"
	"   THEN 'backfill below ' || backfill_below"
	"  WHEN doubt <> '' THEN 'to be compared: ' || doubt"
	"  WHEN no_condstore <> '' THEN 'no CONDSTORE: ' || no_condstore"
	"  WHEN no_uidnext_until > now()"
	"   THEN 'UIDNEXT is wrong: not believed for a while'"
	"  ELSE '' END"
	" FROM mailboxes WHERE account_id = $1::uuid"
	" ORDER BY role = 'inbox' DESC NULLS LAST, role IS NULL, path",
	"no folders known yet",
};

int
cmd_mailbox_list(struct ctl *ctl, const struct args *args, struct err *err)
{
	char text[UUID_TEXT_SIZE];
	const char *params[] = { text };
	struct uuid id;

	if (ctl_account(ctl, args->words[0], &id, err) == -1)
		return -1;
	uuid_format(&id, text);
	return ctl_list(ctl, &mailbox_listing, params, 1, err);
}
