/*
 * cmd-job.c - job list, show, retry, drop.
 *
 * Runs in: mailherdctl.  Blocks.
 *
 * The table `jobs` is the truth; what is changed here is rung for afterwards.
 */
#include "ctl/commands.h"

#define JOB_ROW                                                           \
	"j.id, left(j.id::text, 8), j.queue, j.kind, j.account_id,"       \
	" coalesce(a.email, ''),"                                         \
	" j.state, j.attempts,"                                           \
	" CASE WHEN j.state IN ('queued', 'running')"                     \
	"  THEN extract(epoch FROM j.run_at)::bigint END, j.last_error"

static const struct column job_columns[] = {
	{ "id", "ID", COLUMN_TEXT, COLUMN_JSON_ONLY },
	{ "short_id", "JOB", COLUMN_TEXT, COLUMN_HUMAN_ONLY },
	{ "queue", NULL, COLUMN_TEXT, COLUMN_JSON_ONLY },
	{ "kind", NULL, COLUMN_TEXT },
	{ "account_id", NULL, COLUMN_TEXT, COLUMN_JSON_ONLY },
	{ "account", NULL, COLUMN_TEXT, COLUMN_FLEX, 12 },
	{ "state", NULL, COLUMN_TEXT, 0, 0, tint_job_state },
	{ "attempts", "TRY", COLUMN_NUMBER },
	{ "run_at", "DUE", COLUMN_AGE, COLUMN_DROP },
	{ "last_error", NULL, COLUMN_TEXT, COLUMN_FLEX | COLUMN_IF_SET, 12,
	    tint_error },
};

static const struct listing job_listing = {
	job_columns, N_COLUMNS(job_columns),
	"SELECT " JOB_ROW
	" FROM jobs j LEFT JOIN accounts a ON a.id = j.account_id"
	" WHERE ($1::uuid IS NULL OR j.account_id = $1::uuid)"
	" AND ($2::text IS NULL OR j.state = $2)"
	" ORDER BY j.state = 'done', j.created_at DESC, j.id"
	" LIMIT $3::bigint",
	"no jobs",
};

static bool
is_job_state(const char *state)
{
	static const char *const states[] = { "queued", "running", "done",
		"dead" };

	for (size_t i = 0; i < N_COLUMNS(states); i++)
		if (strcmp(states[i], state) == 0)
			return true;
	return false;
}

int
cmd_job_list(struct ctl *ctl, const struct args *args, struct err *err)
{
	const char *account = args_value(args, "account");
	const char *state = args_value(args, "state");
	char id_text[UUID_TEXT_SIZE], limit_text[24];
	const char *params[] = { NULL, state, limit_text };
	struct uuid id;
	int64_t limit;

	if (state != NULL && !is_job_state(state))
		return err_set(err, ERR_PERMANENT, "--state %s: no such state "
		    "(queued, running, done, dead)", state);
	if (args_number(args, "limit", 1, 1000000, 100, &limit, err) == -1)
		return -1;
	if (account != NULL) {
		if (ctl_account(ctl, account, &id, err) == -1)
			return -1;
		params[0] = uuid_format(&id, id_text);
	}
	snprintf(limit_text, sizeof(limit_text), "%lld", (long long)limit);
	return ctl_list(ctl, &job_listing, params, 3, err);
}

/* --- show --------------------------------------------------------------- */

static const struct column show_columns[] = {
	{ "id", "Job", COLUMN_TEXT },
	{ "short_id", NULL, COLUMN_TEXT, COLUMN_JSON_ONLY | COLUMN_HUMAN_ONLY },
	{ "queue", "Queue", COLUMN_TEXT },
	{ "kind", "Kind", COLUMN_TEXT },
	{ "account_id", NULL, COLUMN_TEXT, COLUMN_JSON_ONLY },
	{ "account", "Account", COLUMN_TEXT, COLUMN_IF_SET },
	{ "state", "State", COLUMN_TEXT, 0, 0, tint_job_state },
	{ "attempts", "Attempts", COLUMN_NUMBER },
	{ "run_at", "Due", COLUMN_TIME },
	{ "last_error", "Last error", COLUMN_TEXT, COLUMN_IF_SET, 0,
	    tint_error },
	{ "max_attempts", "At most", COLUMN_NUMBER },
	{ "owner", "Worker", COLUMN_TEXT, COLUMN_IF_SET },
	{ "lock_until", "Held until", COLUMN_TIME, COLUMN_IF_SET },
	{ "created_at", "Created", COLUMN_TIME },
	{ "finished_at", "Finished", COLUMN_TIME, COLUMN_IF_SET },
	{ "payload", "Payload", COLUMN_JSON },
};

static int
no_such_job(const char *text, struct err *err)
{
	return err_set(err, ERR_GONE, "no job %s (see: mailherdctl job list)",
	    text);
}

/*
 * The whole id, or as much of its beginning as names one job: people see and
 * type the first eight characters, as with git.
 */
static int
find_job(struct ctl *ctl, const char *text, const char **id_r,
    struct err *err)
{
	const char *params[] = { text };
	struct store_rows *rows;
	struct uuid id;

	*id_r = text;
	if (uuid_parse(text, &id) == 0)
		return 0;
	if (strlen(text) < 4 || strspn(text, "0123456789abcdef-") <
	    strlen(text))
		return err_set(err, ERR_PERMANENT, "\"%s\" is no job id (see: "
		    "mailherdctl job list)", text);
	if (ctl_query(ctl, "SELECT id FROM jobs WHERE id::text LIKE $1 || '%'"
	    " LIMIT 2", params, 1, &rows, err) == -1)
		return -1;
	if (rows->n_rows > 1)
		return err_set(err, ERR_PERMANENT, "several jobs begin with "
		    "%s: give more of the id", text);
	if (rows->n_rows == 0)
		return no_such_job(text, err);
	*id_r = ROWS_CELL(rows, 0, 0);
	return 0;
}

int
cmd_job_show(struct ctl *ctl, const struct args *args, struct err *err)
{
	const char *params[1];
	struct store_rows *rows;
	struct table *t;

	if (find_job(ctl, args->words[0], &params[0], err) == -1 ||
	    ctl_query(ctl, "SELECT " JOB_ROW ", j.max_attempts, j.owner,"
	    " CASE WHEN j.state = 'running'"
	    "  THEN extract(epoch FROM j.lock_until)::bigint END,"
	    " extract(epoch FROM j.created_at)::bigint,"
	    " extract(epoch FROM j.finished_at)::bigint, j.payload"
	    " FROM jobs j LEFT JOIN accounts a ON a.id = j.account_id"
	    " WHERE j.id = $1::uuid", params, 1, &rows, err) == -1)
		return -1;
	if (rows->n_rows == 0)
		return no_such_job(args->words[0], err);
	t = table_new(show_columns, N_COLUMNS(show_columns), ctl->is_json);
	table_add(t, rows->cells);
	table_print_record(t);
	table_free(&t);
	return 0;
}

/* --- retry, drop -------------------------------------------------------- */

/* Runs the change and tells why when no row was fit for it. */
static int
change_job(struct ctl *ctl, const char *text, const char *sql,
    struct store_rows **rows_r, struct err *err)
{
	const char *params[1];
	struct store_rows *rows;

	if (find_job(ctl, text, &params[0], err) == -1 ||
	    ctl_query(ctl, sql, params, 1, rows_r, err) == -1)
		return -1;
	if ((*rows_r)->n_rows > 0)
		return 0;
	if (ctl_query(ctl, "SELECT state FROM jobs WHERE id = $1::uuid",
	    params, 1, &rows, err) == -1)
		return -1;
	if (rows->n_rows == 0)
		return no_such_job(text, err);
	return err_set(err, ERR_PERMANENT, "job %s is %s", text,
	    ROWS_CELL(rows, 0, 0));
}

int
cmd_job_retry(struct ctl *ctl, const struct args *args, struct err *err)
{
	struct store_rows *rows;
	struct uuid id;

	/* One queued job per key: where one waits already, that one is rung
	 * for and the dead one stays for the record. */
	if (change_job(ctl, args->words[0],
	    "WITH me AS (SELECT * FROM jobs WHERE id = $1::uuid"
	    "  AND state IN ('dead', 'queued')),"
	    " other AS (SELECT o.id, o.queue FROM jobs o, me"
	    "  WHERE o.dedup_key = me.dedup_key AND o.state = 'queued'"
	    "  AND o.id <> me.id),"
	    " changed AS (UPDATE jobs SET state = 'queued', run_at = now(),"
	    "  attempts = CASE WHEN jobs.state = 'dead' THEN 0"
	    "   ELSE jobs.attempts END,"
	    "  finished_at = NULL, owner = NULL, lock_until = NULL"
	    "  FROM me WHERE jobs.id = me.id"
	    "  AND NOT EXISTS (SELECT 1 FROM other)"
	    "  RETURNING jobs.id, jobs.queue)"
	    " SELECT id, queue FROM changed"
	    " UNION ALL SELECT id, queue FROM other", &rows, err) == -1)
		return -1;
	if (uuid_parse(ROWS_CELL(rows, 0, 0), &id) == -1)
		return err_set(err, ERR_DATABASE, "job id not understood");
	announce_job(ctl, ROWS_CELL(rows, 0, 1), &id);
	ctl_print_id(ctl, "id", &id);
	return 0;
}

int
cmd_job_drop(struct ctl *ctl, const struct args *args, struct err *err)
{
	struct store_rows *rows;

	return change_job(ctl, args->words[0],
	    "DELETE FROM jobs WHERE id = $1::uuid AND state <> 'running'"
	    " RETURNING id", &rows, err);
}
