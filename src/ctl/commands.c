/*
 * commands.c - the table of commands.
 *
 * Runs in: mailherdctl.
 */
#include "ctl/commands.h"

#define OPTIONS(rows) .options = rows, .n_options = N_COLUMNS(rows)
#define ANY 1000 /* as many words as one likes */

static const struct option_row user_add_options[] = {
	{ "name", 0, "NAME", "the person's name" },
	{ "quota", 0, "BYTES", "stored mail allowed (5G, 500M; default 5G)" },
};
static const struct option_row account_add_options[] = {
	{ "user", 'u', "USER", "whose account it is: id or e-mail", true },
	{ "email", 0, "EMAIL", "the account's address", true },
	{ "imap", 0, "SPEC", "where the mail is: "
	    "host[:port][,tls|starttls|none]", true },
	{ "smtp", 0, "SPEC", "where mail is sent; same form" },
	{ "login", 0, "LOGIN", "name to log in with (default: the e-mail)" },
	{ "smtp-login", 0, "LOGIN", "the same for SMTP (default: as IMAP)" },
	{ "name", 0, "NAME", "name shown in mail that is sent" },
	{ "password-file", 'p', "FILE", "the password's file; - = standard "
	    "input; else you are asked" },
	{ "force", 'f', NULL, "also when the user has this mailbox already" },
};
static const struct option_row account_set_options[] = {
	{ "email", 0, "EMAIL", "new address" },
	{ "name", 0, "NAME", "name shown in mail that is sent" },
	{ "imap", 0, "SPEC", "host[:port][,tls|starttls|none]" },
	{ "smtp", 0, "SPEC", "the same; \"\" = none" },
	{ "login", 0, "LOGIN", "name to log in with at IMAP" },
	{ "smtp-login", 0, "LOGIN", "the same at SMTP" },
	{ "password", 'P', NULL, "ask for a new password" },
	{ "password-file", 'p', "FILE", "new password from FILE; - = "
	    "standard input" },
};
static const struct option_row account_list_options[] = {
	{ "user", 'u', "USER", "only this user's" },
	{ "state", 's', "STATE", "only those in this state" },
};
static const struct option_row account_show_options[] = {
	{ "watch", 'w', NULL, "follow a running backfill until it ends" },
};
static const struct option_row yes_options[] = {
	{ "yes", 'y', NULL, "do not ask" },
};
static const struct option_row message_list_options[] = {
	{ "account", 'a', "A", "id or e-mail of the account", true },
	{ "mailbox", 'm', "PATH", "only this folder" },
	{ "limit", 'n', "N", "at most N, newest first (default 50)" },
};
static const struct option_row message_search_options[] = {
	{ "account", 'a', "A", "id or e-mail of the account", true },
	{ "limit", 'n', "N", "at most N, newest first (default 50)" },
};
static const struct option_row thread_list_options[] = {
	{ "account", 'a', "A", "id or e-mail of the account", true },
	{ "limit", 'n', "N", "at most N, newest first (default 50)" },
};
static const struct option_row job_list_options[] = {
	{ "account", 'a', "A", "only this account's" },
	{ "state", 's', "STATE", "only queued, running, done or dead" },
	{ "limit", 'n', "N", "at most N (default 100)" },
};
static const struct option_row blob_gc_options[] = {
	{ "min-dead", 0, "PERCENT", "rewrite segments with at least this "
	    "share of dead bytes (default 50)" },
	{ "min-age", 0, "SECONDS", "leave alone what was written later "
	    "(default 3600)" },
};
static const struct option_row help_options[] = {
	{ "list", 0, NULL, "names and options only, for completion" },
};

const struct command commands[] = {
	/* --- setting up --- */
	{ "init", "", 0, 0, NEEDS_SERVER, GROUP_SETUP, cmd_init,
	    "create key file, blob directory and schema",
	    .more = "What is there already is left alone: safe to repeat." },
	{ "migrate", "", 0, 0, NEEDS_SERVER, GROUP_SETUP, cmd_migrate,
	    "bring the database schema to this version" },

	/* --- users and accounts --- */
	{ "user add", "EMAIL", 1, 1, NEEDS_STORE, GROUP_ACCOUNTS, cmd_user_add,
	    "add a user", OPTIONS(user_add_options) },
	{ "user list", "", 0, 0, NEEDS_STORE, GROUP_ACCOUNTS, cmd_user_list,
	    "list users" },
	{ "user active", "USER", 1, 1, NEEDS_STORE | NEEDS_REDIS,
	    GROUP_ACCOUNTS, cmd_user_active,
	    "tell of a login: the accounts become hot",
	    .more = "What an application does at each login and connect. The "
	    "session counts for\ntier_session_grace_min minutes; call it "
	    "again to keep it." },
	{ "user delete", "USER", 1, 1, NEEDS_STORE, GROUP_ACCOUNTS,
	    cmd_user_delete, "delete a user with all accounts",
	    OPTIONS(yes_options) },
	{ "account add", "", 0, 0, NEEDS_STORE, GROUP_ACCOUNTS,
	    cmd_account_add, "add an account and start its backfill",
	    OPTIONS(account_add_options), "The port may be left out: imap 993 "
	    "(tls), 143 (starttls); smtp 465, 587.\nAn IPv6 address stands in "
	    "brackets: [2001:db8::1]:993,tls" },
	{ "account list", "", 0, 0, NEEDS_STORE, GROUP_ACCOUNTS,
	    cmd_account_list, "list accounts with state, tier and owner",
	    OPTIONS(account_list_options) },
	{ "account show", "A", 1, 1, NEEDS_STORE, GROUP_ACCOUNTS,
	    cmd_account_show, "one account's state, and why it is so",
	    OPTIONS(account_show_options) },
	{ "account set", "A", 1, 1, NEEDS_STORE, GROUP_ACCOUNTS,
	    cmd_account_set, "change servers, login or password",
	    OPTIONS(account_set_options), "An account in state error is tried "
	    "again when its IMAP server,\nlogin or password changes." },
	{ "account enable", "A", 1, 1, NEEDS_STORE, GROUP_ACCOUNTS,
	    cmd_account_enable, "sync an account again" },
	{ "account disable", "A", 1, 1, NEEDS_STORE, GROUP_ACCOUNTS,
	    cmd_account_disable, "stop syncing, keep the copy" },
	{ "account delete", "A", 1, 1, NEEDS_STORE, GROUP_ACCOUNTS,
	    cmd_account_delete, "stop syncing, remove the copy",
	    OPTIONS(yes_options) },
	{ "account refresh", "A", 1, 1, NEEDS_STORE, GROUP_ACCOUNTS,
	    cmd_account_refresh, "poll all folders now, through a job" },

	/* --- mail --- */
	{ "mailbox list", "A", 1, 1, NEEDS_STORE, GROUP_MAIL, cmd_mailbox_list,
	    "list an account's folders" },
	{ "message list", "", 0, 0, NEEDS_STORE, GROUP_MAIL, cmd_message_list,
	    "list messages, newest first", OPTIONS(message_list_options) },
	{ "message show", "ID", 1, 1, NEEDS_STORE, GROUP_MAIL,
	    cmd_message_show, "headers, attachments, start of a message" },
	{ "message raw", "ID", 1, 1, NEEDS_STORE, GROUP_MAIL, cmd_message_raw,
	    "write the stored bytes, unchanged" },
	{ "message search", "QUERY...", 1, ANY, NEEDS_STORE, GROUP_MAIL,
	    cmd_message_search, "search subject, addresses and text",
	    OPTIONS(message_search_options), "QUERY: words that must all "
	    "occur, \"a phrase\", -without, begin*" },
	{ "thread list", "", 0, 0, NEEDS_STORE, GROUP_MAIL, cmd_thread_list,
	    "list conversations, newest first", OPTIONS(thread_list_options) },
	{ "thread show", "ID", 1, 1, NEEDS_STORE, GROUP_MAIL, cmd_thread_show,
	    "the messages of a conversation" },

	/* --- work --- */
	{ "job list", "", 0, 0, NEEDS_STORE, GROUP_WORK, cmd_job_list,
	    "list jobs", OPTIONS(job_list_options) },
	{ "job show", "J", 1, 1, NEEDS_STORE, GROUP_WORK, cmd_job_show,
	    "everything about one job" },
	{ "job retry", "J", 1, 1, NEEDS_STORE, GROUP_WORK, cmd_job_retry,
	    "run a dead or waiting job now" },
	{ "job drop", "J", 1, 1, NEEDS_STORE, GROUP_WORK, cmd_job_drop,
	    "remove a job that is not running" },
	{ "quarantine list", "[A]", 0, 1, NEEDS_STORE, GROUP_WORK,
	    cmd_quarantine_list, "what was set aside, having killed a child" },
	{ "quarantine retry", "Q", 1, 1, NEEDS_STORE, GROUP_WORK,
	    cmd_quarantine_retry, "try it again at the next pass" },
	{ "quarantine skip", "Q", 1, 1, NEEDS_STORE, GROUP_WORK,
	    cmd_quarantine_skip, "leave it alone for good" },
	{ "events", "[NAME...]", 0, ANY, NEEDS_REDIS, GROUP_WORK, cmd_events,
	    "print events as they pass" },

	/* --- daemons --- */
	{ "status", "", 0, 0, 0, GROUP_DAEMON, cmd_status,
	    "the running daemons of this host" },
	{ "ps", "", 0, 0, 0, GROUP_DAEMON, cmd_ps, "their children" },
	{ "workers", "", 0, 0, NEEDS_REDIS, GROUP_DAEMON, cmd_workers,
	    "all workers of the fleet, from Redis" },
	{ "explain", "A", 1, 1, 0, GROUP_DAEMON, cmd_explain,
	    "an account's whole story, and what comes next" },
	{ "poll", "A", 1, 1, 0, GROUP_DAEMON, cmd_poll,
	    "poll an account now" },
	{ "tier", "A hot|warm|cold|auto", 2, 2, 0, GROUP_DAEMON, cmd_tier,
	    "pin an account's tier, or let it go" },
	{ "release", "A", 1, 1, 0, GROUP_DAEMON, cmd_release,
	    "give an account to another worker" },
	{ "drain", "", 0, 0, 0, GROUP_DAEMON, cmd_drain,
	    "release everything and take nothing new" },
	{ "undrain", "", 0, 0, 0, GROUP_DAEMON, cmd_undrain,
	    "take accounts and jobs again" },
	{ "reload", "", 0, 0, 0, GROUP_DAEMON, cmd_reload,
	    "read the configuration again" },
	{ "stop", "", 0, 0, 0, GROUP_DAEMON, cmd_stop, "end gracefully" },
	{ "log", "LEVEL [SUBSYSTEM]", 1, 2, 0, GROUP_DAEMON, cmd_log,
	    "change what is logged: error, warn, info, debug",
	    .more = "Subsystems: core lease store imap mime sync jobs "
	    "proc" },
	{ "metrics", "", 0, 0, 0, GROUP_DAEMON, cmd_metrics,
	    "counters in Prometheus' text form" },

	/* --- blobs --- */
	{ "blob verify", "", 0, 0, NEEDS_STORE, GROUP_BLOBS, cmd_blob_verify,
	    "read every stored message and check its digest" },
	{ "blob gc", "", 0, 0, NEEDS_STORE, GROUP_BLOBS, cmd_blob_gc,
	    "give back the room of deleted messages",
	    OPTIONS(blob_gc_options) },

	{ "help", "[COMMAND...]", 0, 2, NEEDS_NOTHING, GROUP_OTHER, cmd_help,
	    "this overview, or all about one command",
	    OPTIONS(help_options) },
};
const size_t n_commands = N_COLUMNS(commands);

void
command_usage(const struct command *command, struct buf *out)
{
	buf_adds(out, command->name);
	if (*command->words != '\0')
		buf_addf(out, " %s", command->words);
	for (size_t i = 0; i < command->n_options; i++) {
		const struct option_row *o = &command->options[i];

		buf_addf(out, " %s--%s%s%s%s", o->required ? "" : "[",
		    o->name, o->value != NULL ? " " : "",
		    o->value != NULL ? o->value : "", o->required ? "" : "]");
	}
}

/* --- finding one -------------------------------------------------------- */

/* Does `name` begin with the word `family` and a blank? */
static bool
is_of_family(const char *name, const char *family)
{
	size_t len = strlen(family);

	return strncmp(name, family, len) == 0 && name[len] == ' ';
}

/* "user: add, list, active or delete?" */
static int
ask_which(const char *family, struct err *err)
{
	struct buf list = BUF_INIT;
	size_t n = 0, total = 0;

	for (size_t i = 0; i < n_commands; i++)
		total += is_of_family(commands[i].name, family);
	for (size_t i = 0; i < n_commands; i++) {
		if (!is_of_family(commands[i].name, family))
			continue;
		n++;
		buf_addf(&list, "%s%s", n == 1 ? "" : n == total ? " or "
		    : ", ", commands[i].name + strlen(family) + 1);
	}
	err_set(err, ERR_PERMANENT, "%s what? %s", family, buf_str(&list));
	buf_release(&list);
	return total > 0 ? 0 : -1;
}

/* Edits that turn one word into the other; words are short. */
static unsigned
commands_distance(const char *a, const char *b)
{
	unsigned row[64], previous, keep;
	size_t n = strlen(b);

	if (n >= 64)
		return 64;
	for (size_t j = 0; j <= n; j++)
		row[j] = (unsigned)j;
	for (size_t i = 1; a[i - 1] != '\0'; i++) {
		previous = row[0];
		row[0] = (unsigned)i;
		for (size_t j = 1; j <= n; j++) {
			keep = row[j];
			row[j] = previous + (a[i - 1] != b[j - 1]);
			if (keep + 1 < row[j])
				row[j] = keep + 1;
			if (row[j - 1] + 1 < row[j])
				row[j] = row[j - 1] + 1;
			previous = keep;
		}
	}
	return row[n];
}

static void
tell_unknown(const char *given, struct err *err)
{
	const char *nearest = NULL;
	unsigned best = 3;

	for (size_t i = 0; i < n_commands; i++) {
		unsigned d = commands_distance(given, commands[i].name);

		if (d < best) {
			best = d;
			nearest = commands[i].name;
		}
	}
	if (nearest != NULL)
		err_set(err, ERR_PERMANENT, "unknown command \"%s\" (did you "
		    "mean \"%s\"?)", given, nearest);
	else
		err_set(err, ERR_PERMANENT, "unknown command \"%s\" (see: "
		    "mailherdctl help)", given);
}

const struct command *
command_find(int argc, char **argv, int *used_r, struct err *err)
{
	struct buf two = BUF_INIT;
	const struct command *found = NULL;

	if (argc > 1)
		buf_addf(&two, "%s %s", argv[0], argv[1]);
	for (size_t i = 0; i < n_commands && found == NULL; i++) {
		if (strcmp(commands[i].name, argv[0]) == 0)
			*used_r = 1;
		else if (strcmp(commands[i].name, buf_str(&two)) == 0)
			*used_r = 2;
		else
			continue;
		found = &commands[i];
	}
	if (found == NULL && (argc > 1 || ask_which(argv[0], err) == -1))
		tell_unknown(argc > 1 ? buf_str(&two) : argv[0], err);
	buf_release(&two);
	return found;
}
