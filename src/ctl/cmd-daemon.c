/*
 * cmd-daemon.c - questions and orders to the daemons of this host.
 *
 * Runs in: mailherdctl.  Blocks, at most some seconds.
 *
 * All of them answer, each by its name; what is about one account is in
 * cmd-owner.c.
 */
#include "ctl/commands.h"
#include "ctl/daemons.h"

/* --- status ------------------------------------------------------------- */

static enum tint
tint_running(const char *cell)
{
	return strcmp(cell, "running") == 0 ? TINT_GOOD : TINT_WARN;
}

/* A count that should be nought. */
static enum tint
tint_count(const char *cell)
{
	return strcmp(cell, "0") == 0 ? TINT_NONE : TINT_BAD;
}

static enum tint
tint_warned(const char *cell)
{
	return strcmp(cell, "0") == 0 ? TINT_NONE : TINT_WARN;
}

#define STATUS_HEAD                                                       \
	{ "daemon", "Daemon", COLUMN_TEXT },                              \
	{ "role", "Role", COLUMN_TEXT },                                  \
	{ "worker_id", "Worker", COLUMN_TEXT },                           \
	{ "version", "Version", COLUMN_TEXT, COLUMN_IF_SET },             \
	{ "state", "State", COLUMN_TEXT, COLUMN_IF_SET, 0, tint_running },\
	{ "uptime_s", "Up for", COLUMN_SPAN },                            \
	{ "redis", "Redis", COLUMN_TEXT, 0, 0, tint_health },             \
	{ "postgres", "PostgreSQL", COLUMN_TEXT, 0, 0, tint_health },     \
	{ "children", "Children", COLUMN_NUMBER },                        \
	{ "sockets_open", "Sockets", COLUMN_NUMBER },                     \
	{ "log_lines_lost", "Log lines lost", COLUMN_NUMBER, COLUMN_IF_SET,\
	    0, tint_warned }

static const struct column sync_columns[] = {
	STATUS_HEAD,
	{ "owned", "Accounts", COLUMN_NUMBER },
	{ "hot", "  hot", COLUMN_NUMBER },
	{ "warm", "  warm", COLUMN_NUMBER },
	{ "cold", "  cold", COLUMN_NUMBER },
	{ "polled_instead", "  not in IDLE", COLUMN_NUMBER, COLUMN_IF_SET, 0,
	    tint_warned },
	{ "polled_instead_text", "  because", COLUMN_TEXT,
	    COLUMN_IF_SET | COLUMN_HUMAN_ONLY },
	{ "live", "Live in all", COLUMN_NUMBER, COLUMN_IF_SET },
	{ "workers", "Workers", COLUMN_NUMBER, COLUMN_IF_SET },
	{ "polls", "Polls", COLUMN_NUMBER },
	{ "new_messages", "New messages", COLUMN_NUMBER },
	{ "errors", "Errors", COLUMN_NUMBER },
	{ "leases_lost", "Leases lost", COLUMN_NUMBER, 0, 0, tint_count },
	{ "fenced", "Fenced", COLUMN_NUMBER, 0, 0, tint_count },
	{ "idle_silent", "IDLE silent", COLUMN_NUMBER, COLUMN_IF_SET, 0,
	    tint_warned },
	{ "child_deaths", "Died", COLUMN_NUMBER, COLUMN_IF_SET, 0,
	    tint_count },
};

static const struct column jobs_columns[] = {
	STATUS_HEAD,
	{ "jobs_running", "Running", COLUMN_NUMBER, COLUMN_IF_SET },
	{ "jobs_waiting", "Waiting", COLUMN_NUMBER, COLUMN_IF_SET },
	{ "jobs_done", "Done", COLUMN_NUMBER, COLUMN_IF_SET },
	{ "jobs_failed", "Failed", COLUMN_NUMBER, COLUMN_IF_SET },
	{ "new_messages", "New messages", COLUMN_NUMBER },
	{ "fenced", "Fenced", COLUMN_NUMBER, 0, 0, tint_count },
	{ "child_deaths", "Died", COLUMN_NUMBER, COLUMN_IF_SET, 0,
	    tint_count },
};

/* "host_full 3, silent 1" */
static void
add_reasons(json_t *reply)
{
	struct buf text = BUF_INIT;
	const char *why;
	json_t *count;

	json_object_foreach(json_object_get(reply, "polled_instead_why"), why,
	    count)
		buf_addf(&text, "%s%s %lld", text.len > 0 ? ", " : "", why,
		    (long long)json_integer_value(count));
	if (text.len > 0)
		json_object_set_new(reply, "polled_instead_text",
		    json_string(buf_str(&text)));
	buf_release(&text);
}

static void
print_status(struct ctl *ctl, const struct daemon *daemon, json_t *reply,
    void *arg)
{
	const char *role = json_string_value(json_object_get(reply, "role"));
	bool is_jobs = role != NULL && strcmp(role, "jobs") == 0;
	size_t *n = arg;
	struct table *t;

	json_object_set_new(reply, "daemon", json_string(daemon->name));
	if (ctl->is_json) {
		json_object_del(reply, "ok");
		ctl_print_json(json_incref(reply));
		return;
	}
	add_reasons(reply);
	if ((*n)++ > 0)
		putchar('\n');
	t = is_jobs ? table_new(jobs_columns, N_COLUMNS(jobs_columns), false)
	    : table_new(sync_columns, N_COLUMNS(sync_columns), false);
	table_add_object(t, reply);
	table_print_record(t);
	table_free(&t);
}

int
cmd_status(struct ctl *ctl, const struct args *args, struct err *err)
{
	json_t *request = json_pack("{s:s}", "cmd", "status");
	size_t n = 0;
	int rc;

	(void)args;
	rc = daemons_ask_all(ctl, request, print_status, &n, err);
	json_decref(request);
	return rc;
}

/* --- ps ----------------------------------------------------------------- */

static enum tint
tint_child_state(const char *cell)
{
	return strcmp(cell, "idle") == 0 ? TINT_DIM : TINT_NONE;
}

static const struct column ps_columns[] = {
	{ "pid", NULL, COLUMN_NUMBER },
	{ "daemon", NULL, COLUMN_TEXT, COLUMN_DROP_FIRST },
	{ "role", NULL, COLUMN_TEXT, COLUMN_JSON_ONLY },
	{ "kind", NULL, COLUMN_TEXT },
	{ "state", NULL, COLUMN_TEXT, 0, 0, tint_child_state },
	{ "since_s", "FOR", COLUMN_SPAN },
	{ "rss_kb", "RSS KB", COLUMN_NUMBER },
	{ "account", NULL, COLUMN_TEXT, COLUMN_FLEX | COLUMN_HUMAN_ONLY, 16 },
	{ "account_id", NULL, COLUMN_TEXT, COLUMN_JSON_ONLY },
	{ "job_id", NULL, COLUMN_TEXT, COLUMN_JSON_ONLY },
	{ "generation", "GEN", COLUMN_NUMBER, COLUMN_DROP_FIRST },
	{ "activity", "DOES", COLUMN_TEXT,
	    COLUMN_FLEX | COLUMN_IF_SET | COLUMN_DROP, 10 },
};

/* Accounts by e-mail where PostgreSQL can be asked: people know no ids. */
static void
name_account(struct ctl *ctl, json_t *child)
{
	json_t *id = json_object_get(child, "account_id");
	const char *params[] = { json_string_value(id) };
	struct err ignored = ERR_INIT;
	struct store_rows *rows;
	struct uuid uuid;

	if (ctl->is_json || params[0] == NULL ||
	    uuid_parse(params[0], &uuid) == -1)
		return;
	json_object_set(child, "account", id);
	if (ctl_store(ctl, false, &ignored) == 0 &&
	    ctl_query(ctl, "SELECT email FROM accounts WHERE id = $1::uuid",
	    params, 1, &rows, &ignored) == 0 && rows->n_rows > 0)
		json_object_set_new(child, "account",
		    json_string(ROWS_CELL(rows, 0, 0)));
}

static void
add_children(struct ctl *ctl, const struct daemon *daemon, json_t *reply,
    void *arg)
{
	struct table *t = arg;
	json_t *child;
	size_t i;

	json_array_foreach(json_object_get(reply, "children"), i, child) {
		json_object_set_new(child, "daemon",
		    json_string(daemon->name));
		json_object_set_new(child, "role", json_stringn(daemon->name,
		    strcspn(daemon->name, "-")));
		name_account(ctl, child);
		table_add_object(t, child);
	}
}

int
cmd_ps(struct ctl *ctl, const struct args *args, struct err *err)
{
	struct table *t = table_new(ps_columns, N_COLUMNS(ps_columns),
	    ctl->is_json);
	json_t *request = json_pack("{s:s}", "cmd", "ps");
	int rc;

	(void)args;
	rc = daemons_ask_all(ctl, request, add_children, t, err);
	json_decref(request);
	if (rc == 0)
		table_print(t, "no children");
	table_free(&t);
	return rc;
}

/* --- the daemon as a whole ---------------------------------------------- */

static void
print_done(struct ctl *ctl, const struct daemon *daemon, json_t *reply,
    void *arg)
{
	daemons_print_done(ctl, daemon->name, reply, arg);
}

/* Sends the order to all; takes the reference to `request`. */
static int
daemon_order(
    struct ctl *ctl, json_t *request, const char *done, struct err *err)
{
	char *text = arena_strdup(ctl->arena, done);
	int rc = daemons_ask_all(ctl, request, print_done, text, err);

	json_decref(request);
	return rc;
}

int
cmd_drain(struct ctl *ctl, const struct args *args, struct err *err)
{
	(void)args;
	return daemon_order(ctl, json_pack("{s:s}", "cmd", "drain"),
	    "draining: takes nothing new, releases what it has", err);
}

int
cmd_undrain(struct ctl *ctl, const struct args *args, struct err *err)
{
	(void)args;
	return daemon_order(ctl, json_pack("{s:s}", "cmd", "undrain"),
	    "takes accounts and jobs again", err);
}

int
cmd_reload(struct ctl *ctl, const struct args *args, struct err *err)
{
	(void)args;
	return daemon_order(ctl, json_pack("{s:s}", "cmd", "reload"),
	    "configuration read again", err);
}

int
cmd_stop(struct ctl *ctl, const struct args *args, struct err *err)
{
	(void)args;
	return daemon_order(
	    ctl, json_pack("{s:s}", "cmd", "stop"), "stopping", err);
}

int
cmd_log(struct ctl *ctl, const struct args *args, struct err *err)
{
	enum log_subsystem subsystem;
	enum log_level level;
	json_t *request;

	if (log_level_parse(args->words[0], &level) == -1)
		return err_set(err, ERR_PERMANENT, "no level \"%s\" (error, "
		    "warn, info or debug)", args->words[0]);
	request = json_pack("{s:s, s:s}", "cmd", "log", "level",
	    args->words[0]);
	if (args->n_words == 2) {
		if (log_subsystem_parse(args->words[1], &subsystem) == -1) {
			json_decref(request);
			return err_set(err, ERR_PERMANENT, "no subsystem "
			    "\"%s\" (core, lease, store, imap, mime, sync, "
			    "jobs or proc)", args->words[1]);
		}
		json_object_set_new(request, "subsystem",
		    json_string(args->words[1]));
	}
	return daemon_order(ctl, request, "log level changed", err);
}

static void
print_metrics(struct ctl *ctl, const struct daemon *daemon, json_t *reply,
    void *arg)
{
	const char *text = json_string_value(json_object_get(reply, "text"));
	size_t *n = arg;

	if (ctl->is_json) {
		json_object_del(reply, "ok");
		json_object_set_new(reply, "daemon",
		    json_string(daemon->name));
		ctl_print_json(json_incref(reply));
	} else if (text != NULL) {
		if ((*n)++ > 0)
			putchar('\n');
		fputs(text, stdout);
	}
}

int
cmd_metrics(struct ctl *ctl, const struct args *args, struct err *err)
{
	json_t *request = json_pack("{s:s}", "cmd", "metrics");
	size_t n = 0;
	int rc;

	(void)args;
	rc = daemons_ask_all(ctl, request, print_metrics, &n, err);
	json_decref(request);
	return rc;
}
