/*
 * cmd-owner.c - orders about one account, to the daemon that owns it: poll,
 * tier, release.
 *
 * Runs in: mailherdctl.  Blocks, at most some seconds.
 *
 * The owner may be a daemon of another host.  A pin is then left in Redis,
 * where the owner looks; the others say who the owner is.
 */
#include "ctl/commands.h"
#include "ctl/daemons.h"

/* Who owns it, from Redis; NULL: nobody, or not known. */
static const char *
find_owner(struct ctl *ctl, const char *text)
{
	struct lease_view view;
	struct err ignored = ERR_INIT;
	struct uuid id;

	if (uuid_parse(text, &id) == -1 || ctl_redis(ctl, &ignored) == -1 ||
	    lease_client_views(ctl->redis, &id, 1, ctl->arena, &view,
		&ignored) == -1)
		return NULL;
	return view.owner;
}

/* Nobody owns an account that is not live: what to do is to be said. */
static int
check_live(struct ctl *ctl, const char *text, struct err *err)
{
	struct err unknown = ERR_INIT;
	struct account *a;
	struct uuid id;

	if (uuid_parse(text, &id) == -1 ||
	    ctl_store(ctl, true, &unknown) == -1 ||
	    store_account_load(ctl->store, &id, ctl->arena, &a, &unknown) ==
	    -1 || a->state == ACCOUNT_LIVE)
		return 0;
	return err_set(err, ERR_PERMANENT, "%s is %s: only live accounts are "
	    "worked for (see: mailherdctl account show %s)", a->email,
	    account_state_name(a->state), a->email);
}

static int
not_here(struct ctl *ctl, const char *id, struct err *err)
{
	const char *owner;

	if (check_live(ctl, id, err) == -1)
		return -1;
	owner = find_owner(ctl, id);
	if (owner == NULL)
		return -1; /* as it was said */
	return err_set(err, ERR_PERMANENT, "the account is owned by %s: give "
	    "the command on that host", owner);
}

/* Takes the reference to `request`. */
static int
order_owner(struct ctl *ctl, const char *id, json_t *request,
    const char *done, struct err *err)
{
	json_t *reply;
	int rc = daemons_ask_owner(ctl, request, &reply, err);

	json_decref(request);
	if (rc == -1)
		return not_here(ctl, id, err);
	daemons_print_done(ctl, "sync", reply, done);
	json_decref(reply);
	return 0;
}

int
cmd_poll(struct ctl *ctl, const struct args *args, struct err *err)
{
	char id[UUID_TEXT_SIZE];

	if (daemons_account_id(ctl, args->words[0], id, err) == -1)
		return -1;
	return order_owner(ctl, id, json_pack("{s:s, s:s}", "cmd", "poll",
	    "account", id), "poll started", err);
}

int
cmd_release(struct ctl *ctl, const struct args *args, struct err *err)
{
	char id[UUID_TEXT_SIZE];

	if (daemons_account_id(ctl, args->words[0], id, err) == -1)
		return -1;
	return order_owner(ctl, id, json_pack("{s:s, s:s}", "cmd", "release",
	    "account", id), "lease is being released", err);
}

/* --- tier --------------------------------------------------------------- */

static int
check_tier(const char *tier, struct err *err)
{
	static const char *const tiers[] = { "hot", "warm", "cold", "auto" };

	for (size_t i = 0; i < N_COLUMNS(tiers); i++)
		if (strcmp(tiers[i], tier) == 0)
			return 0;
	return err_set(err, ERR_PERMANENT, "no tier \"%s\" (hot, warm, cold "
	    "or auto)", tier);
}

/* Nobody here owns it: whoever does looks each tier_interval. */
static int
pin_in_redis(struct ctl *ctl, const char *text, const char *tier,
    struct err *err)
{
	struct uuid id;

	uuid_parse(text, &id);
	if (ctl_redis(ctl, err) == -1 ||
	    lease_client_set_pin(ctl->redis, &id,
	    strcmp(tier, "auto") == 0 ? "" : tier, err) == -1)
		return -1;
	if (ctl->is_json)
		ctl_print_json(json_pack("{s:b}", "ok", 1));
	else
		printf("noted for its owner, which sees it within %lld s\n",
		    (long long)ctl->conf->tier_interval);
	return 0;
}

int
cmd_tier(struct ctl *ctl, const struct args *args, struct err *err)
{
	const char *tier = args->words[1];
	struct err not_owned = ERR_INIT;
	char id[UUID_TEXT_SIZE];
	json_t *request, *reply;
	int rc;

	if (check_tier(tier, err) == -1 ||
	    daemons_account_id(ctl, args->words[0], id, err) == -1)
		return -1;
	request = json_pack("{s:s, s:s, s:s}", "cmd", "tier", "account", id,
	    "tier", tier);
	rc = daemons_ask_owner(ctl, request, &reply, &not_owned);
	json_decref(request);
	if (rc == -1)
		return pin_in_redis(ctl, id, tier, err);
	daemons_print_done(ctl, "sync", reply, strcmp(tier, "auto") == 0
	    ? "tier is chosen by activity again" : "tier pinned");
	json_decref(reply);
	return 0;
}
