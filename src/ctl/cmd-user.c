/*
 * cmd-user.c - user add, list, active, delete.
 *
 * Runs in: mailherdctl.  Blocks.
 */
#include "ctl/commands.h"
#include "ctl/confirm.h"

static int
find_user(struct ctl *ctl, const char *name, struct uuid *id_r,
    struct err *err)
{
	if (store_user_find(ctl->store, name, id_r, err) == -1)
		return err->kind == ERR_GONE
		    ? ctl_hint(err, "see: mailherdctl user list") : -1;
	return 0;
}

int
cmd_user_add(struct ctl *ctl, const struct args *args, struct err *err)
{
	const char *name = args_value(args, "name");
	const char *quota = args_value(args, "quota");
	int64_t bytes = 0;
	struct uuid id;

	if (strchr(args->words[0], '@') == NULL)
		return err_set(err, ERR_PERMANENT, "\"%s\" is no e-mail "
		    "address", args->words[0]);
	if (quota != NULL && args_bytes(quota, &bytes, err) == -1)
		return -1;
	if (store_user_add(ctl->store, args->words[0],
	    name != NULL ? name : "", bytes, &id, err) == -1)
		return -1;
	ctl_print_id(ctl, "id", &id);
	return 0;
}

/* --- list --------------------------------------------------------------- */

static const struct column user_columns[] = {
	{ "email", NULL, COLUMN_TEXT, COLUMN_FLEX, 18 },
	{ "name", NULL, COLUMN_TEXT, COLUMN_FLEX | COLUMN_IF_SET, 8 },
	{ "accounts", NULL, COLUMN_NUMBER },
	/* Shown once the quota is counted (R-JOB-9). */
	{ "used_bytes", NULL, COLUMN_SIZE, COLUMN_JSON_ONLY },
	{ "quota_bytes", "QUOTA", COLUMN_SIZE },
	{ "last_active_at", "ACTIVE", COLUMN_AGE },
	{ "id", "ID", COLUMN_TEXT, COLUMN_DROP },
};

static const struct listing user_listing = {
	user_columns, N_COLUMNS(user_columns),
	"SELECT u.email, u.name,"
	" (SELECT count(*) FROM accounts a"
	"  WHERE a.user_id = u.id AND a.state <> 'deleted'),"
	" u.used_bytes, u.quota_bytes,"
	" extract(epoch FROM u.last_active_at)::bigint, u.id"
	" FROM users u WHERE u.deleted_at IS NULL ORDER BY lower(u.email)",
	"no users yet (mailherdctl user add EMAIL)",
};

int
cmd_user_list(struct ctl *ctl, const struct args *args, struct err *err)
{
	(void)args;
	return ctl_list(ctl, &user_listing, NULL, 0, err);
}

/* --- active ------------------------------------------------------------- */

int
cmd_user_active(struct ctl *ctl, const struct args *args, struct err *err)
{
	struct msg_event event = { .event = EVENT_USER_ACTIVE };
	int64_t ttl = ctl->conf->tier_session_grace_min * 60;

	if (find_user(ctl, args->words[0], &event.user_id, err) == -1 ||
	    store_user_active(ctl->store, &event.user_id, err) == -1 ||
	    lease_client_session(ctl->redis, &event.user_id, ttl, err) == -1)
		return -1;
	return lease_client_publish(ctl->redis, &event, err);
}

/* --- delete ------------------------------------------------------------- */

int
cmd_user_delete(struct ctl *ctl, const struct args *args, struct err *err)
{
	struct uuid id, *accounts;
	char question[320];
	size_t n;

	if (find_user(ctl, args->words[0], &id, err) == -1 ||
	    store_user_accounts(ctl->store, &id, ctl->arena, &accounts, &n,
	    err) == -1)
		return -1;
	snprintf(question, sizeof(question),
	    "Delete user %.200s, %zu account%s and their stored mail?",
	    args->words[0], n, n == 1 ? "" : "s");
	if (confirm(args_has(args, "yes"), question, err) == -1 ||
	    store_user_delete(ctl->store, &id, err) == -1)
		return -1;
	for (size_t i = 0; i < n; i++)
		announce_state(ctl, &accounts[i], &id, ACCOUNT_DELETED,
		    "user deleted");
	return 0;
}
