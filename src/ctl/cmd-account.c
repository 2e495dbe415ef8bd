/*
 * cmd-account.c - account add, set, enable, disable, delete, refresh.
 *
 * Runs in: mailherdctl.  Blocks.
 *
 * The row in PostgreSQL comes first; Redis is told after the commit and may be
 * away.
 */
#include "ctl/commands.h"
#include "ctl/confirm.h"
#include "ctl/password.h"
#include "ctl/spec.h"

#include "proc/vault.h"

#include <string.h>

/* --- parts of an account ------------------------------------------------ */

/* Options in args to the account's servers; what is absent stays. */
static int
take_servers(struct ctl *ctl, const struct args *args, struct account *a,
    struct err *err)
{
	const char *imap = args_value(args, "imap");
	const char *smtp = args_value(args, "smtp");
	struct spec spec;

	if (imap != NULL) {
		if (spec_parse(imap, SPEC_IMAP, &spec, err) == -1)
			return err_prefix(err, "--imap");
		a->imap_host = arena_strdup(ctl->arena, spec.host);
		a->imap_port = spec.port;
		a->imap_tls = spec.tls;
	}
	if (smtp != NULL && *smtp == '\0') {
		a->smtp_host = "";
		a->smtp_port = 0;
	} else if (smtp != NULL) {
		if (spec_parse(smtp, SPEC_SMTP, &spec, err) == -1)
			return err_prefix(err, "--smtp");
		a->smtp_host = arena_strdup(ctl->arena, spec.host);
		a->smtp_port = spec.port;
		a->smtp_tls = spec.tls;
	}
	if ((imap != NULL && a->imap_tls == TLS_NONE) ||
	    (smtp != NULL && *a->smtp_host != '\0' && a->smtp_tls == TLS_NONE))
		ctl_note("\"none\" sends password and mail in clear text");
	return 0;
}

static void
account_take_text(
    const struct args *args, const char *option, const char **field)
{
	const char *value = args_value(args, option);

	if (value != NULL)
		*field = value;
}

struct secret {
	char text[PASSWORD_SIZE];
	size_t len;
};

static int
secret_seal(struct ctl *ctl, const struct uuid *account_id,
    const struct seal_address *address, const struct secret *secret,
    struct sealed *sealed_r, struct err *err)
{
	struct buf out = BUF_INIT;
	struct seal_bond bond;
	uint8_t *bytes;
	int rc;

	seal_bond_make(&bond, account_id, address);
	rc = vault_seal(&bond, secret->text, secret->len, &out, err);
	if (rc == 0) {
		bytes = arena_alloc(ctl->arena, out.len);
		memcpy(bytes, out.data, out.len);
		*sealed_r = (struct sealed){ bytes, out.len };
	}
	buf_release(&out);
	return rc;
}

/* One password, sealed for each of the servers it may be sent to. */
static int
secret_seal_for_servers(struct ctl *ctl, struct account *a,
    const struct secret *secret, struct err *err)
{
	const struct seal_address imap = { "imap", a->imap_host,
		tls_mode_name(a->imap_tls), a->imap_login, a->imap_port };
	const struct seal_address smtp = { "smtp", a->smtp_host,
		tls_mode_name(a->smtp_tls), a->smtp_login, a->smtp_port };
	struct sealed sealed, smtp_sealed = { NULL, 0 };

	if (secret_seal(ctl, &a->id, &imap, secret, &sealed, err) == -1 ||
	    (*a->smtp_host != '\0' && secret_seal(ctl, &a->id, &smtp, secret,
	    &smtp_sealed, err) == -1))
		return -1;
	a->secret = sealed.bytes;
	a->secret_len = sealed.len;
	a->smtp_secret = smtp_sealed.bytes;
	a->smtp_secret_len = smtp_sealed.len;
	a->auth = "password";
	return 0;
}

/* Asks for or reads the password and seals it for the servers of a. */
static int
take_password(struct ctl *ctl, const char *file, struct account *a,
    struct err *err)
{
	struct secret secret;
	char *prompt;
	int rc;

	prompt = arena_printf(ctl->arena, "Password of %s at %s: ",
	    a->imap_login, a->imap_host);
	/* Both files may be readable for root alone. */
	ctl_act_as_caller();
	rc = password_read(file, prompt, secret.text, &secret.len, err);
	if (rc == 0) {
		rc = vault_load(ctl->conf->secret_key_file, err);
		if (rc == -1)
			ctl_hint(err, "run: mailherdctl init");
	}
	ctl_act_as_daemon(ctl);
	if (rc == 0)
		rc = secret_seal_for_servers(ctl, a, &secret, err);
	explicit_bzero(&secret, sizeof(secret));
	vault_forget();
	return rc;
}

/* --- add ---------------------------------------------------------------- */

static int
fill_new(struct ctl *ctl, const struct args *args, struct account *a,
    struct err *err)
{
	a->email = args_value(args, "email");
	if (strchr(a->email, '@') == NULL)
		return err_set(err, ERR_PERMANENT, "\"%s\" is no e-mail "
		    "address", a->email);
	if (store_user_find(ctl->store, args_value(args, "user"), &a->user_id,
	    err) == -1)
		return err->kind == ERR_GONE ? ctl_hint(err, "add the user "
		    "first: mailherdctl user add EMAIL") : -1;
	uuid_generate(&a->id);
	a->name = a->smtp_host = "";
	a->imap_login = a->email;
	a->smtp_tls = TLS_IMPLICIT;
	account_take_text(args, "name", &a->name);
	account_take_text(args, "login", &a->imap_login);
	a->smtp_login = a->imap_login;
	account_take_text(args, "smtp-login", &a->smtp_login);
	return take_servers(ctl, args, a, err);
}

/* The same mailbox twice is a slip when it is the same user's: twice the
 * connections, twice the mail.  Several users may share one. */
static int
check_duplicate(struct ctl *ctl, const struct args *args,
    const struct account *a, struct err *err)
{
	char text[UUID_TEXT_SIZE];
	struct uuid id;
	bool is_found;

	if (args_has(args, "force"))
		return 0;
	if (store_account_duplicate(ctl->store, a, &id, &is_found, err) == -1)
		return -1;
	if (!is_found)
		return 0;
	return err_set(err, ERR_PERMANENT, "the user has %s at %s already: "
	    "account %s (--force adds it once more)", a->imap_login,
	    a->imap_host, uuid_format(&id, text));
}

int
cmd_account_add(struct ctl *ctl, const struct args *args, struct err *err)
{
	struct account a = { .state = ACCOUNT_NEW };
	struct uuid job_id;

	if (fill_new(ctl, args, &a, err) == -1 ||
	    check_duplicate(ctl, args, &a, err) == -1 ||
	    take_password(ctl, args_value(args, "password-file"), &a,
	    err) == -1 ||
	    store_account_add(ctl->store, &a, &job_id, err) == -1)
		return -1;
	announce_job(ctl, "bulk", &job_id);
	announce_state(ctl, &a.id, &a.user_id, ACCOUNT_NEW, "");
	ctl_print_id(ctl, "id", &a.id);
	if (!ctl->is_json && display_is_terminal())
		ctl_note("follow it with: mailherdctl account show -w %s",
		    a.email);
	return 0;
}

/* --- changes of state --------------------------------------------------- */

static int
account_load(struct ctl *ctl, const struct args *args, struct account **a_r,
    struct err *err)
{
	struct uuid id;

	if (ctl_account(ctl, args->words[0], &id, err) == -1)
		return -1;
	return store_account_load(ctl->store, &id, ctl->arena, a_r, err);
}

/* With -j the outcome; for people nothing: it was done. */
static void
print_state(const struct ctl *ctl, const struct account *a,
    enum account_state state)
{
	char id[UUID_TEXT_SIZE];

	if (ctl->is_json)
		ctl_print_json(json_pack("{s:s, s:s}", "id",
		    uuid_format(&a->id, id), "state",
		    account_state_name(state)));
}

static int
ctl_account_enable(struct ctl *ctl, const struct account *a, const char *reason,
    struct err *err)
{
	enum account_state state;
	struct uuid job_id;

	if (store_account_enable(ctl->store, &a->id, &state, &job_id, err) ==
	    -1)
		return -1;
	announce_state(ctl, &a->id, &a->user_id, state, reason);
	if (!uuid_is_null(&job_id))
		announce_job(ctl, "bulk", &job_id);
	print_state(ctl, a, state);
	return 0;
}

int
cmd_account_enable(struct ctl *ctl, const struct args *args, struct err *err)
{
	struct account *a;

	if (account_load(ctl, args, &a, err) == -1)
		return -1;
	if (a->state == ACCOUNT_DELETED)
		return err_set(err, ERR_PERMANENT, "%s is deleted", a->email);
	if (a->state != ACCOUNT_DISABLED && a->state != ACCOUNT_ERROR) {
		ctl_note("%s is %s already", a->email,
		    account_state_name(a->state));
		print_state(ctl, a, a->state);
		return 0;
	}
	return ctl_account_enable(ctl, a, "enabled by operator", err);
}

static int
ctl_account_leave(struct ctl *ctl, const struct account *a,
    enum account_state state, const char *reason, struct err *err)
{
	const unsigned expect = 1u << ACCOUNT_NEW |
	    1u << ACCOUNT_BOOTSTRAPPING | 1u << ACCOUNT_LIVE |
	    1u << ACCOUNT_DISABLED | 1u << ACCOUNT_ERROR | 1u << state;
	bool changed;

	/* Deleted for good, also when that happened a moment ago. */
	if (store_account_set_state(ctl->store, &a->id, expect, state, reason,
	    &changed, err) == -1)
		return -1;
	if (!changed)
		return err_set(err, ERR_PERMANENT, "%s is deleted", a->email);
	announce_state(ctl, &a->id, &a->user_id, state, reason);
	print_state(ctl, a, state);
	return 0;
}

int
cmd_account_disable(struct ctl *ctl, const struct args *args, struct err *err)
{
	struct account *a;

	if (account_load(ctl, args, &a, err) == -1)
		return -1;
	return ctl_account_leave(
	    ctl, a, ACCOUNT_DISABLED, "disabled by operator", err);
}

int
cmd_account_delete(struct ctl *ctl, const struct args *args, struct err *err)
{
	struct account *a;
	char question[320];

	if (account_load(ctl, args, &a, err) == -1)
		return -1;
	snprintf(question, sizeof(question), "Delete account %.200s and its "
	    "stored mail? (The mail at %.60s stays.)", a->email, a->imap_host);
	if (confirm(args_has(args, "yes"), question, err) == -1)
		return -1;
	return ctl_account_leave(
	    ctl, a, ACCOUNT_DELETED, "deleted by operator", err);
}

int
cmd_account_refresh(struct ctl *ctl, const struct args *args, struct err *err)
{
	struct account *a;
	struct uuid job_id;

	if (account_load(ctl, args, &a, err) == -1)
		return -1;
	if (a->state != ACCOUNT_LIVE)
		return err_set(err, ERR_PERMANENT, "%s is %s, only live "
		    "accounts are polled (see: mailherdctl account show %s)",
		    a->email, account_state_name(a->state), a->email);
	if (store_job_add(ctl->store, QUEUE_INTERACTIVE, "refresh_account_job",
	    &a->id, "{}", &job_id, err) == -1)
		return -1;
	announce_job(ctl, "interactive", &job_id);
	ctl_print_id(ctl, "job", &job_id);
	return 0;
}

/* --- set ---------------------------------------------------------------- */

/* Does this change promise another outcome of the next login? */
static bool
is_worth_a_try(const struct args *args)
{
	return args_has(args, "password") || args_has(args, "password-file") ||
	    args_has(args, "imap") || args_has(args, "login");
}

/* Would the password be sent to anybody it was not given for? */
static bool
is_sent_elsewhere(const struct account *was, const struct account *a)
{
	return strcmp(was->imap_host, a->imap_host) != 0 ||
	    was->imap_port != a->imap_port || was->imap_tls != a->imap_tls ||
	    strcmp(was->imap_login, a->imap_login) != 0 ||
	    (*a->smtp_host != '\0' &&
	    (strcmp(was->smtp_host, a->smtp_host) != 0 ||
	    was->smtp_port != a->smtp_port || was->smtp_tls != a->smtp_tls ||
	    strcmp(was->smtp_login, a->smtp_login) != 0));
}

static int
apply_changes(struct ctl *ctl, const struct args *args, struct account *a,
    struct err *err)
{
	const struct account was = *a;

	account_take_text(args, "email", &a->email);
	account_take_text(args, "name", &a->name);
	account_take_text(args, "login", &a->imap_login);
	account_take_text(args, "smtp-login", &a->smtp_login);
	if (take_servers(ctl, args, a, err) == -1)
		return -1;
	if (args_has(args, "password") || args_has(args, "password-file"))
		return take_password(ctl, args_value(args, "password-file"),
		    a, err);
	if (is_sent_elsewhere(&was, a) &&
	    take_password(ctl, NULL, a, err) == -1)
		return err_prefix(err, "a password is kept for one server, "
		    "port, TLS mode and login; for another give it again");
	return 0;
}

int
cmd_account_set(struct ctl *ctl, const struct args *args, struct err *err)
{
	struct account *a;
	struct uuid id;
	char *mark;
	bool any = false;

	for (size_t i = 0; i < args->n_options; i++)
		any = any || (args->values[i] != NULL &&
		    strcmp(args->options[i].name, "json") != 0);
	if (!any)
		return err_set(err, ERR_PERMANENT, "nothing to change (see: "
		    "mailherdctl help account set)");
	/* The mark first: what changes after it is noticed by the update. */
	if (ctl_account(ctl, args->words[0], &id, err) == -1 ||
	    store_account_mark(ctl->store, &id, ctl->arena, &mark, err) == -1 ||
	    account_load(ctl, args, &a, err) == -1 ||
	    apply_changes(ctl, args, a, err) == -1 ||
	    store_account_update(ctl->store, a, mark, err) == -1)
		return -1;
	/* What was refused is forgotten, also while the account is still live
	 * or on its way there (R-LIFE-6). */
	if (is_worth_a_try(args) && a->state != ACCOUNT_DISABLED)
		return ctl_account_enable(
		    ctl, a, "credentials or servers changed", err);
	/* The owner reads the row again before its next connection. */
	announce_state(ctl, &a->id, &a->user_id, a->state, a->state_reason);
	print_state(ctl, a, a->state);
	return 0;
}
