/*
 * options.c - THE table: every setting, its type, range, preset and meaning.
 *
 * Runs in: every process.  Never blocks.
 *
 * Loader, validator, reload, manual and sample file all follow this table;
 * scripts/check-options compares them.  A new setting is a field in conf.h, a
 * row here, a paragraph in man/mailherd.conf.5 and one in etc/mailherd.conf.
 */
#include "conf/options.h"

#include "base/text.h"
#include "base/xmem.h"

#include <bsd/stdlib.h>
#include <ctype.h>
#include <errno.h>
#include <strings.h>
#include <sys/un.h>

static const char *const role_names[] = { "sync", "jobs", NULL };
static const char *const level_names[] = { "error", "warn", "info", "debug",
	NULL };
static const char *const target_names[] = { "stderr", "syslog", "journal",
	NULL };
static const char *const search_names[] = { "pg", "none", NULL };

_Static_assert(ROLE_SYNC == 0 && ROLE_JOBS == 1, "role_names");
_Static_assert(LOG_LEVEL_ERROR == 0 && LOG_LEVEL_DEBUG == 3, "level_names");
_Static_assert(LOG_TARGET_STDERR == 0 && LOG_TARGET_JOURNAL == 2,
    "target_names");

#define NAMED(field) #field, .offset = offsetof(struct conf, field)
#define LIVE .reload = CONF_RELOAD_LIVE
#define RESTART .reload = CONF_RELOAD_RESTART

const struct option options[] = {
	/* --- main: what an operator thinks about ----------------------------- */
	{ NAMED(worker_role), .type = CONF_NAME, .names = role_names,
	    .preset = "sync", .group = CONF_MAIN, RESTART,
	    .help = "What this worker does: follow accounts (sync) or carry "
		    "out queued work (jobs)." },
	{ NAMED(max_accounts_per_worker), .type = CONF_INT, .min = 1,
	    .max = 100000, .preset = "400", .group = CONF_MAIN, LIVE,
	    .help = "Accounts a sync worker owns at most." },
	{ NAMED(lease_ttl), .type = CONF_SECS, .min = 5, .max = 3600,
	    .preset = "60", .group = CONF_MAIN, LIVE,
	    .help = "How long a lease outlives a silent master." },
	{ NAMED(lease_renew), .type = CONF_SECS, .min = 1, .max = 1800,
	    .preset = "20", .group = CONF_MAIN, LIVE,
	    .help = "Pause between renewals of the leases; less than half of "
		    "lease_ttl." },
	{ NAMED(poll_warm), .type = CONF_SECS, .min = 1, .max = 86400,
	    .preset = "180", .group = CONF_MAIN, LIVE,
	    .help = "Pause between polls of warm accounts, and of the special "
		    "folders of hot ones." },
	{ NAMED(poll_cold), .type = CONF_SECS, .min = 1, .max = 604800,
	    .preset = "900", .group = CONF_MAIN, LIVE,
	    .help = "Pause between polls of cold accounts, and of the other "
		    "folders of all; not less than poll_warm." },
	{ NAMED(tier_hot_activity_h), .type = CONF_INT, .min = 0, .max = 8760,
	    .preset = "24", .group = CONF_MAIN, LIVE,
	    .help = "Hours an account stays hot after mail arrived." },
	{ NAMED(tier_session_grace_min), .type = CONF_INT, .min = 1,
	    .max = 1440, .preset = "30", .group = CONF_MAIN, LIVE,
	    .help = "Minutes a user's session counts after the application "
		    "last refreshed it." },
	{ NAMED(tier_cold_after_d), .type = CONF_INT, .min = 0, .max = 3650,
	    .preset = "3", .group = CONF_MAIN, LIVE,
	    .help = "Days without session or mail after which an account is "
		    "cold." },
	{ NAMED(hot_budget_per_worker), .type = CONF_INT, .min = 0,
	    .max = 100000, .preset = "250", .group = CONF_MAIN, LIVE,
	    .help = "Hot accounts of a worker; above it those without session "
		    "that were active least recently become warm." },
	{ NAMED(per_host_conn_cap), .type = CONF_INT, .min = 1, .max = 10000,
	    .preset = "50", .group = CONF_MAIN, LIVE,
	    .help = "Connections of a worker to one host, IMAP and SMTP "
		    "together." },
	{ NAMED(bulk_concurrency), .type = CONF_INT, .min = 0, .max = 1000,
	    .preset = "2", .group = CONF_MAIN, LIVE,
	    .help = "Bulk jobs (backfills) a jobs worker runs at once." },
	{ NAMED(parse_concurrency), .type = CONF_INT, .min = 1, .max = 256,
	    .preset = "4", .group = CONF_MAIN, LIVE,
	    .help = "Messages a worker parses at once." },
	{ NAMED(stream_parse_mb), .type = CONF_INT, .min = 1, .max = 1024,
	    .preset = "8", .group = CONF_MAIN, LIVE,
	    .help = "MiB above which a message is never held in memory." },
	{ NAMED(search_backend), .type = CONF_CHOICE, .names = search_names,
	    .preset = "pg", .group = CONF_MAIN, RESTART,
	    .help = "Full-text search: in PostgreSQL (pg) or not kept at all "
		    "(none)." },

	/* --- the world outside ------------------------------------------------ */
	{ NAMED(database), .type = CONF_STRING, .preset = "dbname=mailherd",
	    .group = CONF_FILES, RESTART,
	    .help = "PostgreSQL: a libpq connection string; of several "
	    "hosts the one that takes writes." },
	{ NAMED(redis), .type = CONF_STRING, .preset = "127.0.0.1:6379",
	    .group = CONF_FILES, RESTART,
	    .help = "Redis: unix:/path or host:port." },
	{ NAMED(redis_db), .type = CONF_INT, .min = 0, .max = 65535,
	    .preset = "0", .group = CONF_FILES, RESTART,
	    .help = "Number of the Redis database." },
	{ NAMED(redis_password), .type = CONF_SECRET, .preset = "",
	    .group = CONF_FILES, RESTART,
	    .help = "Password of Redis; empty: none." },
	{ NAMED(redis_prefix), .type = CONF_STRING, .preset = "",
	    .group = CONF_FILES, RESTART,
	    .help = "Put before every key and channel." },
	{ NAMED(blob_dir), .type = CONF_PATH,
	    .preset = LOCALSTATEDIR "/lib/mailherd/blobs",
	    .group = CONF_FILES, RESTART,
	    .help = "Where raw messages are stored; the same directory for "
		    "all workers." },
	{ NAMED(schema_dir), .type = CONF_PATH,
	    .preset = PKGDATADIR "/schema", .group = CONF_FILES, RESTART,
	    .help = "Where the schema files NNN_name.sql are." },
	{ NAMED(quirks_file), .type = CONF_PATH,
	    .preset = SYSCONFDIR "/mailherd/quirks.conf",
	    .group = CONF_FILES, RESTART,
	    .help = "What to do otherwise for which mail server." },
	{ NAMED(secret_key_file), .type = CONF_PATH,
	    .preset = SYSCONFDIR "/mailherd/secret.key",
	    .group = CONF_FILES, RESTART,
	    .help = "Key that seals credentials; mode 0600, made by "
		    "mailherdctl init." },
	{ NAMED(ca_file), .type = CONF_PATH, .preset = "",
	    .group = CONF_FILES, LIVE,
	    .help = "PEM file of trust anchors beside the system's." },
	{ NAMED(control_socket), .type = CONF_PATH, .preset = "",
	    .group = CONF_FILES, RESTART,
	    .help = "Control socket, or with a slash at the end its directory; "
		    "empty: /run/mailherd/." },
	{ NAMED(instance), .type = CONF_STRING, .preset = "0",
	    .group = CONF_FILES, RESTART,
	    .help = "Tells workers of one role on one host apart: letters, "
		    "digits, dash, underscore." },
	{ NAMED(user), .type = CONF_STRING, .preset = "",
	    .group = CONF_FILES, RESTART, .env = "MAILHERD_USER",
	    .help = "User to run as when started by root; empty: stay." },
	{ NAMED(group), .type = CONF_STRING, .preset = "",
	    .group = CONF_FILES, RESTART, .env = "MAILHERD_GROUP",
	    .help = "Group to run as; empty: the user's own." },
	{ NAMED(rawlog_dir), .type = CONF_PATH, .preset = "",
	    .group = CONF_FILES, LIVE,
	    .help = "Directory for transcripts of IMAP sessions, secrets "
		    "blanked; empty: none." },
	{ NAMED(metrics_listen), .type = CONF_STRING, .preset = "",
	    .group = CONF_FILES, LIVE,
	    .help = "host:port that answers Prometheus; empty: none." },
	{ NAMED(log_level), .type = CONF_NAME, .names = level_names,
	    .preset = "info", .group = CONF_FILES, LIVE,
	    .help = "Least important line that is logged." },
	{ NAMED(log_target), .type = CONF_NAME, .names = target_names,
	    .preset = "stderr", .group = CONF_FILES, RESTART,
	    .help = "Where log lines go." },
	{ NAMED(log_file), .type = CONF_PATH, .preset = "",
	    .group = CONF_FILES, RESTART,
	    .help = "With log_target stderr: append to this file instead; "
		    "SIGUSR1 opens it anew." },

	/* --- advanced: processes and budgets ---------------------------------- */
	{ NAMED(pool_min), .type = CONF_INT, .min = 0, .max = 10000,
	    .preset = "1", .group = CONF_ADVANCED, LIVE,
	    .help = "Pool children kept waiting for work." },
	{ NAMED(pool_max), .type = CONF_INT, .min = 1, .max = 10000,
	    .preset = "8", .group = CONF_ADVANCED, LIVE,
	    .help = "Pool children at most: polls of a worker at once." },
	{ NAMED(db_conn_cap), .type = CONF_INT, .min = 3, .max = 1000,
	    .preset = "20", .group = CONF_ADVANCED, LIVE,
	    .help = "PostgreSQL sessions of a worker." },
	{ NAMED(child_memory_mb), .type = CONF_INT, .min = 128, .max = 65536,
	    .preset = "512", .group = CONF_ADVANCED, LIVE,
	    .help = "MiB of address space a child may use; hitting the limit "
		    "costs that pass only." },
	{ NAMED(interactive_concurrency), .type = CONF_INT, .min = 1,
	    .max = 1000, .preset = "20", .group = CONF_ADVANCED, LIVE,
	    .help = "Interactive jobs a jobs worker runs at once." },
	{ NAMED(interactive_timeout), .type = CONF_SECS, .min = 1,
	    .max = 3600, .preset = "120", .group = CONF_ADVANCED, LIVE,
	    .help = "An interactive job that takes longer is killed." },
	{ NAMED(bulk_timeout), .type = CONF_SECS, .min = 1, .max = 86400,
	    .preset = "3600", .group = CONF_ADVANCED, LIVE,
	    .help = "A bulk job that takes longer is killed; it goes on where "
		    "it was." },
	{ NAMED(bulk_slice), .type = CONF_SECS, .min = 1, .max = 3600,
	    .preset = "5", .group = CONF_ADVANCED, LIVE,
	    .help = "A bulk job has the worker for so long, at least, before "
		    "one that had less may go first." },
	{ NAMED(stop_timeout), .type = CONF_SECS, .min = 1, .max = 60,
	    .preset = "8", .group = CONF_ADVANCED, LIVE,
	    .help = "After SIGTERM, children get this long to end by "
		    "themselves." },

	/* --- advanced: cadences ------------------------------------------------ */
	{ NAMED(claim_interval), .type = CONF_SECS, .min = 1, .max = 3600,
	    .preset = "10", .group = CONF_ADVANCED, LIVE,
	    .help = "Pause between looks for accounts without a lease." },
	{ NAMED(claim_jitter), .type = CONF_SECS, .min = 0, .max = 3600,
	    .preset = "5", .group = CONF_ADVANCED, LIVE,
	    .help = "Added at random to claim_interval." },
	{ NAMED(reconcile_interval), .type = CONF_SECS, .min = 1,
	    .max = 86400, .preset = "300", .group = CONF_ADVANCED, LIVE,
	    .help = "Pause between comparisons of sync:live with PostgreSQL." },
	{ NAMED(heartbeat_interval), .type = CONF_SECS, .min = 1, .max = 300,
	    .preset = "10", .group = CONF_ADVANCED, LIVE,
	    .help = "Pause between heartbeats in Redis." },
	{ NAMED(heartbeat_ttl), .type = CONF_SECS, .min = 2, .max = 900,
	    .preset = "30", .group = CONF_ADVANCED, LIVE,
	    .help = "A worker silent for this long counts as gone; at least "
		    "twice heartbeat_interval." },
	{ NAMED(rebalance_interval), .type = CONF_SECS, .min = 1, .max = 3600,
	    .preset = "60", .group = CONF_ADVANCED, LIVE,
	    .help = "Pause between checks whether this worker owns more than "
		    "its share." },
	{ NAMED(tier_interval), .type = CONF_SECS, .min = 1, .max = 3600,
	    .preset = "120", .group = CONF_ADVANCED, LIVE,
	    .help = "Pause between evaluations of the tiers." },
	{ NAMED(idle_restart_secs), .type = CONF_SECS, .min = 1, .max = 1500,
	    .preset = "540", .group = CONF_ADVANCED, LIVE,
	    .help = "IDLE is issued again after this long; quirks may shorten "
		    "it." },
	{ NAMED(sweep_interval), .type = CONF_SECS, .min = 1, .max = 3600,
	    .preset = "5", .group = CONF_ADVANCED, LIVE,
	    .help = "Pause between looks for due, lost and orphaned jobs in "
		    "PostgreSQL." },
	{ NAMED(search_merge_interval), .type = CONF_SECS, .min = 1,
	    .max = 86400, .preset = "30", .group = CONF_ADVANCED, LIVE,
	    .help = "Pause between merges of new texts into the full-text "
			"index." },
	{ NAMED(purge_interval), .type = CONF_SECS, .min = 1, .max = 86400,
	    .preset = "60", .group = CONF_ADVANCED, LIVE,
	    .help = "Pause between removals of deleted accounts and "
		    "long-expunged messages." },
	{ NAMED(blob_gc_interval), .type = CONF_SECS, .min = 1,
	    .max = 2592000, .preset = "86400", .group = CONF_ADVANCED, LIVE,
	    .help = "Pause between collections of blobs that no row names any "
		    "more." },
	{ NAMED(expunged_keep_d), .type = CONF_INT, .min = 0, .max = 3650,
	    .preset = "30", .group = CONF_ADVANCED, LIVE,
	    .help = "Days the row of an expunged message is kept." },

	/* --- advanced: mail servers --------------------------------------------- */
	{ NAMED(connect_timeout), .type = CONF_SECS, .min = 1, .max = 600,
	    .preset = "30", .group = CONF_ADVANCED, LIVE,
	    .help = "For name lookup, connection, TLS and greeting together." },
	{ NAMED(command_timeout), .type = CONF_SECS, .min = 1, .max = 3600,
	    .preset = "60", .group = CONF_ADVANCED, LIVE,
	    .help = "For one IMAP command; while data flows, for each "
		    "stretch without progress." },
	{ NAMED(select_timeout), .type = CONF_SECS, .min = 1, .max = 3600,
	    .preset = "300", .group = CONF_ADVANCED, LIVE,
	    .help = "For opening one folder, while the server shows at least "
		    "each command_timeout that it is at work." },
	{ NAMED(max_message_mb), .type = CONF_INT, .min = 1, .max = 2047,
	    .preset = "256", .group = CONF_ADVANCED, LIVE,
	    .help = "MiB above which of a message only the header is "
		    "downloaded; not less than stream_parse_mb." },
	{ NAMED(max_line_kb), .type = CONF_INT, .min = 8, .max = 65536,
	    .preset = "1024", .group = CONF_ADVANCED, LIVE,
	    .help = "KiB of one line of a server's reply, literals aside." },
	{ NAMED(auth_refusals), .type = CONF_INT, .min = 1, .max = 100,
	    .preset = "5", .group = CONF_ADVANCED, LIVE,
	    .help = "Refused logins in a row after which an account goes to "
		    "state error." },
	{ NAMED(auth_pause), .type = CONF_SECS, .min = 1, .max = 86400,
	    .preset = "60", .group = CONF_ADVANCED, LIVE,
	    .help = "Pause after the first refused login; it doubles with "
		    "each.  Providers lock accounts that try more often." },
	{ NAMED(backoff_first), .type = CONF_SECS, .min = 1, .max = 3600,
	    .preset = "2", .group = CONF_ADVANCED, LIVE,
	    .help = "Pause after the first failure of an account; it doubles "
		    "with each." },
	{ NAMED(backoff_max), .type = CONF_SECS, .min = 1, .max = 86400,
	    .preset = "600", .group = CONF_ADVANCED, LIVE,
	    .help = "Longest such pause; not less than backoff_first." },
	{ NAMED(host_connect_rate), .type = CONF_INT, .min = 1,
	    .max = 10000, .preset = "50", .group = CONF_ADVANCED, LIVE,
	    .help = "Connections a sync worker begins to one host in a "
		    "second; when many accounts turn hot at once, they come "
		    "one after the other." },
	{ NAMED(risk_attempts), .type = CONF_INT, .min = 1, .max = 10,
	    .preset = "2", .group = CONF_ADVANCED, LIVE,
	    .help = "Deaths of a child, ended connections or refusals at one "
		    "message or folder before that is quarantined." },
	{ NAMED(batch_messages), .type = CONF_INT, .min = 1, .max = 1000,
	    .preset = "400", .group = CONF_ADVANCED, LIVE,
	    .help = "New messages written in one transaction at most." },
	{ NAMED(batch_msecs), .type = CONF_INT, .min = 1, .max = 10000,
	    .preset = "250", .group = CONF_ADVANCED, LIVE,
	    .help = "Milliseconds after which a batch is written even if it "
		    "is small." },
};
const size_t n_options = sizeof(options) / sizeof(options[0]);

size_t
option_find(const char *name)
{
	size_t i;

	for (i = 0; i < n_options; i++)
		if (strcmp(options[i].name, name) == 0)
			return i;
	return SIZE_MAX;
}

const char *
option_env(const struct option *option, char *out, size_t size)
{
	size_t i;

	snprintf(out, size, "%s",
	    option->env != NULL ? option->env : option->name);
	for (i = 0; out[i] != '\0'; i++)
		out[i] = (char)toupper((unsigned char)out[i]);
	return out;
}

/* "sync or jobs" */
static void
list_names(const char *const *names, const char *separator, char *out,
    size_t size)
{
	size_t i, used = 0;

	out[0] = '\0';
	for (i = 0; names[i] != NULL && used < size; i++)
		used += (size_t)snprintf(out + used, size - used, "%s%s",
		    i > 0 ? separator : "", names[i]);
}

static int
options_set_number(const struct option *option, int64_t *field,
    const char *value, struct err *err)
{
	const char *why;
	long long number = strtonum(value, option->min, option->max, &why);

	/* strtonum takes leading blanks; a setting has none */
	if (why != NULL || isspace((unsigned char)value[0]))
		return err_set(err, ERR_CONFIG,
		    "%s = %s: must be a whole number from %lld to %lld%s",
		    option->name, value, (long long)option->min,
		    (long long)option->max,
		    option->type == CONF_SECS ? " (seconds)" : "");
	*field = number;
	return 0;
}

static int
find_choice(const struct option *option, const char *value, size_t *index_r,
    struct err *err)
{
	char allowed[160];

	for (*index_r = 0; option->names[*index_r] != NULL; ++*index_r)
		if (strcmp(option->names[*index_r], value) == 0)
			return 0;
	list_names(option->names, " or ", allowed, sizeof(allowed));
	return err_set(err, ERR_CONFIG, "%s = %s: must be %s", option->name,
	    value, allowed);
}

static bool
is_instance_name(const char *value)
{
	size_t len = strspn(value, "abcdefghijklmnopqrstuvwxyz"
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");

	return len > 0 && len <= 32 && value[len] == '\0';
}

/* host:port, port 1..65535 */
static bool
is_endpoint(const char *value)
{
	const char *colon = strrchr(value, ':'), *why;

	if (colon == NULL || colon == value)
		return false;
	strtonum(colon + 1, 1, 65535, &why);
	return why == NULL;
}

/* What a single string setting must look like beyond being one line. */
static const char *
string_objection(const struct option *option, const char *value)
{
	size_t i;

	for (i = 0; value[i] != '\0'; i++)
		if (iscntrl((unsigned char)value[i]))
			return "must have no control characters";
	if (!text_is_utf8(value, i))
		return "must be UTF-8";
	if (option->type == CONF_PATH && value[0] != '/' &&
	    !(value[0] == '\0' && option->preset[0] == '\0'))
		return "must be an absolute path";
	if (strcmp(option->name, "instance") == 0 && !is_instance_name(value))
		return "must be 1 to 32 letters, digits, dashes, underscores";
	if (strcmp(option->name, "redis") == 0 &&
	    strncmp(value, "unix:/", 6) != 0 && !is_endpoint(value))
		return "must be unix:/path or host:port";
	if (strcmp(option->name, "metrics_listen") == 0 && value[0] != '\0' &&
	    !is_endpoint(value))
		return "must be host:port or empty";
	if (strcmp(option->name, "control_socket") == 0 &&
	    i >= sizeof(((struct sockaddr_un *)NULL)->sun_path))
		return "must be shorter than 108 bytes";
	return NULL;
}

static int
set_string(const struct option *option, char **field, const char *value,
    struct err *err)
{
	const char *objection = string_objection(option, value);

	if (objection != NULL && option->type == CONF_SECRET)
		return err_set(err, ERR_CONFIG, "%s: %s", option->name,
		    objection);
	if (objection != NULL)
		return err_set(err, ERR_CONFIG, "%s = %s: %s", option->name,
		    value, objection);
	free(*field);
	*field = xstrdup(value);
	return 0;
}

int
option_set(const struct option *option, struct conf *conf, const char *value,
    struct err *err)
{
	size_t choice;

	switch (option->type) {
	case CONF_INT:
	case CONF_SECS:
		return options_set_number(
		    option, option_number(option, conf), value, err);
	case CONF_NAME:
		if (find_choice(option, value, &choice, err) == -1)
			return -1;
		*option_number(option, conf) = (int64_t)choice;
		return 0;
	case CONF_CHOICE:
		if (find_choice(option, value, &choice, err) == -1)
			return -1;
		break;
	case CONF_STRING:
	case CONF_PATH:
	case CONF_SECRET:
		break;
	}
	return set_string(option, option_string(option, conf), value, err);
}

void
conf_print_options(FILE *to)
{
	static const char *const type_names[] = { [CONF_INT] = "integer",
		[CONF_SECS] = "seconds", [CONF_STRING] = "string",
		[CONF_PATH] = "path", [CONF_SECRET] = "string" };
	static const char *const group_names[] = { [CONF_MAIN] = "main",
		[CONF_ADVANCED] = "advanced", [CONF_FILES] = "files" };
	const struct option *o;
	char names[160], min[24], max[24];

	for (o = options; o < options + n_options; o++) {
		min[0] = max[0] = '\0';
		if (o->names != NULL)
			list_names(o->names, "|", names, sizeof(names));
		if (o->type == CONF_INT || o->type == CONF_SECS) {
			snprintf(min, sizeof(min), "%lld", (long long)o->min);
			snprintf(max, sizeof(max), "%lld", (long long)o->max);
		}
		fprintf(to, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", o->name,
		    o->names != NULL ? names : type_names[o->type], min, max,
		    o->preset, group_names[o->group],
		    o->reload == CONF_RELOAD_LIVE ? "live" : "restart",
		    o->help);
	}
}
