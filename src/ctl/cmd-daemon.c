/*
 * cmd-daemon.c - questions and orders to the daemons of this host.
 *
 * Runs in: mailherdctl.  Blocks, at most some seconds.
 *
 * A host usually runs a sync and a jobs daemon, each with its socket.  status
 * and ps ask both; everything else goes to the first that listens, sync before
 * jobs, and says which it was.  -s, or the setting control_socket, names one.
 */
#include "ctl/commands.h"
#include "ctl/socket.h"

#define SOCKET_PATH_SIZE 512

struct target {
	char path[SOCKET_PATH_SIZE];
	const char *role; /* NULL: not known, the path was given */
};
#define MAX_TARGETS 2

static size_t
find_targets(const struct ctl *ctl, struct target targets[MAX_TARGETS])
{
	static const struct {
		enum worker_role role;
		const char *name;
	} roles[MAX_TARGETS] = { { ROLE_SYNC, "sync" }, { ROLE_JOBS, "jobs" } };
	struct conf conf = *ctl->conf;

	if (ctl->socket != NULL || *conf.control_socket != '\0') {
		snprintf(targets[0].path, SOCKET_PATH_SIZE, "%s",
		    ctl->socket != NULL ? ctl->socket : conf.control_socket);
		targets[0].role = NULL;
		return 1;
	}
	for (size_t i = 0; i < MAX_TARGETS; i++) {
		conf.worker_role = roles[i].role;
		conf_control_socket(&conf, targets[i].path, SOCKET_PATH_SIZE);
		targets[i].role = roles[i].name;
	}
	return MAX_TARGETS;
}

static int
nobody_listens(const struct target *targets, size_t n, struct err *err)
{
	if (n == 1)
		return -1; /* socket_call has said it */
	return err_set(err, ERR_NETWORK, "no daemon listens at %s or %s (is "
	    "mailherd running? another socket: -s)", targets[0].path,
	    targets[1].path);
}

/* The first target that listens answers. */
static int
ask_first(struct ctl *ctl, json_t *request, json_t **reply_r,
    const char **role_r, struct err *err)
{
	struct target targets[MAX_TARGETS];
	size_t n = find_targets(ctl, targets);

	for (size_t i = 0; i < n; i++) {
		*role_r = targets[i].role;
		if (socket_call(targets[i].path, request, reply_r, err) == 0)
			return 0;
		if (err->kind != ERR_NETWORK)
			return -1;
	}
	return nobody_listens(targets, n, err);
}

typedef void on_reply(struct ctl *ctl, const struct target *target,
    json_t *reply, void *arg);

/* Every target that listens answers; none listening is the only failure. */
static int
ask_all(struct ctl *ctl, const char *cmd, on_reply *on_reply, void *arg,
    struct err *err)
{
	struct target targets[MAX_TARGETS];
	size_t n = find_targets(ctl, targets), answers = 0;
	json_t *request = json_pack("{s:s}", "cmd", cmd), *reply;
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i++) {
		if (socket_call(targets[i].path, request, &reply, err) == 0) {
			on_reply(ctl, &targets[i], reply, arg);
			json_decref(reply);
			answers++;
		} else if (err->kind != ERR_NETWORK) {
			rc = -1;
		}
	}
	json_decref(request);
	if (rc == 0 && answers == 0)
		return nobody_listens(targets, n, err);
	return rc;
}

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

#define STATUS_HEAD                                                       \
	{ "role", "Role", COLUMN_TEXT },                                  \
	{ "worker_id", "Worker", COLUMN_TEXT },                           \
	{ "version", "Version", COLUMN_TEXT, COLUMN_IF_SET },             \
	{ "state", "State", COLUMN_TEXT, COLUMN_IF_SET, 0, tint_running },\
	{ "uptime_s", "Up for", COLUMN_SPAN },                            \
	{ "redis", "Redis", COLUMN_TEXT, 0, 0, tint_health },             \
	{ "postgres", "PostgreSQL", COLUMN_TEXT, 0, 0, tint_health },     \
	{ "children", "Children", COLUMN_NUMBER },                        \
	{ "sockets_open", "Sockets", COLUMN_NUMBER }

static const struct column sync_columns[] = {
	STATUS_HEAD,
	{ "owned", "Accounts", COLUMN_NUMBER },
	{ "hot", "  hot", COLUMN_NUMBER },
	{ "warm", "  warm", COLUMN_NUMBER },
	{ "cold", "  cold", COLUMN_NUMBER },
	{ "live", "Live in all", COLUMN_NUMBER, COLUMN_IF_SET },
	{ "workers", "Workers", COLUMN_NUMBER, COLUMN_IF_SET },
	{ "polls", "Polls", COLUMN_NUMBER },
	{ "new_messages", "New messages", COLUMN_NUMBER },
	{ "errors", "Errors", COLUMN_NUMBER },
	{ "leases_lost", "Leases lost", COLUMN_NUMBER, 0, 0, tint_count },
	{ "fenced", "Fenced", COLUMN_NUMBER, 0, 0, tint_count },
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

static void
print_status(struct ctl *ctl, const struct target *target, json_t *reply,
    void *arg)
{
	const char *role = json_string_value(json_object_get(reply, "role"));
	bool is_jobs = role != NULL && strcmp(role, "jobs") == 0;
	size_t *n = arg;
	struct table *t;

	(void)target;
	if (ctl->is_json) {
		json_object_del(reply, "ok");
		ctl_print_json(json_incref(reply));
		return;
	}
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
	size_t n = 0;

	(void)args;
	return ask_all(ctl, "status", print_status, &n, err);
}

/* --- ps ----------------------------------------------------------------- */

static enum tint
tint_child_state(const char *cell)
{
	return strcmp(cell, "idle") == 0 ? TINT_DIM : TINT_NONE;
}

static const struct column ps_columns[] = {
	{ "pid", NULL, COLUMN_NUMBER },
	{ "role", NULL, COLUMN_TEXT, COLUMN_IF_SET | COLUMN_DROP_FIRST },
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
add_children(struct ctl *ctl, const struct target *target, json_t *reply,
    void *arg)
{
	struct table *t = arg;
	json_t *child;
	size_t i;

	json_array_foreach(json_object_get(reply, "children"), i, child) {
		if (target->role != NULL)
			json_object_set_new(child, "role",
			    json_string(target->role));
		name_account(ctl, child);
		table_add_object(t, child);
	}
}

int
cmd_ps(struct ctl *ctl, const struct args *args, struct err *err)
{
	struct table *t = table_new(ps_columns, N_COLUMNS(ps_columns),
	    ctl->is_json);
	int rc;

	(void)args;
	rc = ask_all(ctl, "ps", add_children, t, err);
	if (rc == 0)
		table_print(t, "no children");
	table_free(&t);
	return rc;
}

/* --- one account -------------------------------------------------------- */

/* An id needs no database; an e-mail does. */
static int
account_id(struct ctl *ctl, const char *name, char text[UUID_TEXT_SIZE],
    struct err *err)
{
	struct uuid id;

	if (uuid_parse(name, &id) == -1 &&
	    (ctl_store(ctl, true, err) == -1 ||
	    ctl_account(ctl, name, &id, err) == -1))
		return -1;
	uuid_format(&id, text);
	return 0;
}

/* What a daemon did, as a person is told; with -j its reply. */
static void
print_done(const struct ctl *ctl, const char *role, json_t *reply,
    const char *done)
{
	const char *text = json_string_value(json_object_get(reply, "text"));
	struct buf line = BUF_INIT;

	if (ctl->is_json) {
		if (role != NULL)
			json_object_set_new(reply, "role", json_string(role));
		ctl_print_json(json_incref(reply));
		return;
	}
	if (role != NULL)
		buf_addf(&line, "%s: ", role);
	display_clean(&line, text != NULL ? text : done);
	puts(line.data);
	buf_release(&line);
}

/* Sends the order; takes the reference to `request`. */
static int
order(struct ctl *ctl, json_t *request, const char *done, struct err *err)
{
	const char *role;
	json_t *reply;
	int rc;

	rc = ask_first(ctl, request, &reply, &role, err);
	json_decref(request);
	if (rc == -1)
		return -1;
	print_done(ctl, role, reply, done);
	json_decref(reply);
	return 0;
}

static void
print_chain(json_t *reply)
{
	json_t *line;
	size_t i;

	json_array_foreach(json_object_get(reply, "chain"), i, line) {
		struct buf text = BUF_INIT;

		if (json_is_string(line))
			display_clean(&text, json_string_value(line));
		puts(buf_str(&text));
		buf_release(&text);
	}
}

int
cmd_explain(struct ctl *ctl, const struct args *args, struct err *err)
{
	char id[UUID_TEXT_SIZE];
	const char *role;
	json_t *request, *reply;
	int rc;

	if (account_id(ctl, args->words[0], id, err) == -1)
		return -1;
	request = json_pack("{s:s, s:s}", "cmd", "explain", "account", id);
	rc = ask_first(ctl, request, &reply, &role, err);
	json_decref(request);
	if (rc == -1)
		return -1;
	if (ctl->is_json) {
		json_object_del(reply, "ok");
		ctl_print_json(json_incref(reply));
	} else {
		print_chain(reply);
	}
	json_decref(reply);
	return 0;
}

int
cmd_poll(struct ctl *ctl, const struct args *args, struct err *err)
{
	char id[UUID_TEXT_SIZE];

	if (account_id(ctl, args->words[0], id, err) == -1)
		return -1;
	return order(ctl, json_pack("{s:s, s:s}", "cmd", "poll", "account",
	    id), "poll started", err);
}

int
cmd_tier(struct ctl *ctl, const struct args *args, struct err *err)
{
	static const char *const tiers[] = { "hot", "warm", "cold", "auto" };
	const char *tier = args->words[1];
	char id[UUID_TEXT_SIZE];
	bool known = false;

	for (size_t i = 0; i < N_COLUMNS(tiers); i++)
		known = known || strcmp(tiers[i], tier) == 0;
	if (!known)
		return err_set(err, ERR_PERMANENT, "no tier \"%s\" (hot, warm, "
		    "cold or auto)", tier);
	if (account_id(ctl, args->words[0], id, err) == -1)
		return -1;
	return order(ctl, json_pack("{s:s, s:s, s:s}", "cmd", "tier",
	    "account", id, "tier", tier), strcmp(tier, "auto") == 0
	    ? "tier is chosen by activity again" : "tier pinned", err);
}

int
cmd_release(struct ctl *ctl, const struct args *args, struct err *err)
{
	char id[UUID_TEXT_SIZE];

	if (account_id(ctl, args->words[0], id, err) == -1)
		return -1;
	return order(ctl, json_pack("{s:s, s:s}", "cmd", "release", "account",
	    id), "lease is being released", err);
}

/* --- the daemon as a whole ---------------------------------------------- */

int
cmd_drain(struct ctl *ctl, const struct args *args, struct err *err)
{
	(void)args;
	return order(ctl, json_pack("{s:s}", "cmd", "drain"),
	    "draining: takes nothing new, releases what it has", err);
}

int
cmd_reload(struct ctl *ctl, const struct args *args, struct err *err)
{
	(void)args;
	return order(ctl, json_pack("{s:s}", "cmd", "reload"),
	    "configuration read again", err);
}

int
cmd_stop(struct ctl *ctl, const struct args *args, struct err *err)
{
	(void)args;
	return order(ctl, json_pack("{s:s}", "cmd", "stop"), "stopping", err);
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
			    "\"%s\" (core, lease, store, remote, mime, sync, "
			    "jobs or proc)", args->words[1]);
		}
		json_object_set_new(request, "subsystem",
		    json_string(args->words[1]));
	}
	return order(ctl, request, "log level changed", err);
}

int
cmd_metrics(struct ctl *ctl, const struct args *args, struct err *err)
{
	json_t *request = json_pack("{s:s}", "cmd", "metrics"), *reply;
	const char *role, *text;
	int rc;

	(void)args;
	rc = ask_first(ctl, request, &reply, &role, err);
	json_decref(request);
	if (rc == -1)
		return -1;
	text = json_string_value(json_object_get(reply, "text"));
	if (ctl->is_json) {
		json_object_del(reply, "ok");
		ctl_print_json(json_incref(reply));
	} else if (text != NULL) {
		fputs(text, stdout);
	}
	json_decref(reply);
	return 0;
}
