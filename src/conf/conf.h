/*
 * conf.h - the settings.
 *
 * One table (options.c) says of each setting its type, range, preset, whether
 * a reload may change it, and its help; loader, validator, `mailherd -t` and
 * the check of manual and sample file all read that table.  Order: preset,
 * file, environment (NAME in capitals), -o name=value.
 */
#ifndef CONF_CONF_H
#define CONF_CONF_H

#include "base/err.h"
#include "base/log.h"

#include <stdbool.h>
#include <stdint.h>

enum worker_role { ROLE_SYNC, ROLE_JOBS };

struct conf_host { /* host "imap.example.org" { conn_cap = 200 } */
	char *name;
	int64_t conn_cap;
};

struct conf_folder_name { /* folder_names = { "Gesendet=sent", ... } */
	char *name;
	char *role;
};

struct conf {
	char *file; /* where it was read from; "" when there is none */

	/* the ordinary ones */
	int64_t worker_role; /* enum worker_role */
	int64_t max_accounts_per_worker, lease_ttl, lease_renew;
	int64_t poll_warm, poll_cold;
	int64_t tier_hot_activity_h, tier_session_grace_min, tier_cold_after_d;
	int64_t hot_budget_per_worker, per_host_conn_cap;
	int64_t bulk_concurrency, parse_concurrency, stream_parse_mb;

	/* advanced cadences, seconds */
	int64_t claim_interval, claim_jitter, reconcile_interval;
	int64_t heartbeat_interval, heartbeat_ttl, rebalance_interval;
	int64_t tier_interval, idle_restart_secs;
	int64_t interactive_concurrency, interactive_timeout, bulk_timeout;
	int64_t bulk_slice;
	int64_t sweep_interval, search_merge_interval, purge_interval;
	int64_t blob_gc_interval;
	int64_t stop_timeout;

	/* advanced: IMAP and limits */
	int64_t connect_timeout, command_timeout, select_timeout;
	int64_t max_message_mb, max_line_kb;
	int64_t auth_refusals, auth_pause;
	int64_t backoff_first, backoff_max, host_connect_rate;
	int64_t risk_attempts; /* deaths before quarantine */
	int64_t child_memory_mb;
	int64_t batch_messages, batch_msecs;
	int64_t expunged_keep_d; /* days a soft-deleted row is kept */

	/* outside world */
	char *database, *redis, *redis_password, *redis_prefix;
	int64_t redis_db;
	char *blob_dir, *schema_dir, *quirks_file, *secret_key_file, *ca_file;
	char *control_socket, *instance, *user, *group;
	char *rawlog_dir; /* "" : off */
	char *metrics_listen;
	int64_t log_level;  /* enum log_level */
	int64_t log_target; /* enum log_target */
	char *log_file;	    /* with log_target stderr; "" : standard error */
	int64_t pool_min, pool_max, db_conn_cap;
	char *search_backend; /* "pg" or "none" */

	struct conf_host *hosts;
	size_t n_hosts;
	struct conf_folder_name *folder_names;
	size_t n_folder_names;
};

/*
 * Loads into a new struct.  `overrides` are "name=value" strings of -o.
 * file NULL: the default file, which may be missing.  Errors (ERR_CONFIG)
 * name file, line, setting and allowed range.
 */
int conf_load(struct conf **conf_r, const char *file,
    const char *const *overrides, size_t n_overrides, struct err *err);
void conf_free(struct conf **conf);

/*
 * SIGHUP: takes over from `fresh` what may change while running; returns the
 * names of changed settings that need a restart, comma separated ("" = none).
 */
const char *conf_adopt(struct conf *running, const struct conf *fresh,
    char *restart_r, size_t size);

int64_t conf_host_cap(const struct conf *conf, const char *host);
/* "/run/mailherd/sync-0.sock" unless set; per role and instance. */
const char *conf_control_socket(const struct conf *conf, char *out,
    size_t size);

/* For --help like output and scripts/check-options: one line per option,
 * "name\ttype\tmin\tmax\tpreset\tgroup\treload\thelp". */
void conf_print_options(FILE *to);
/* Is a password among the settings: of Redis, or in the database's string? */
bool conf_has_password(const struct conf *conf);
/* The effective settings, without secrets. */
void conf_print(const struct conf *conf, FILE *to);

#endif
