/*
 * ctl.c - sessions, queries and notices that commands share.
 *
 * Runs in: mailherdctl.  Blocks.
 */
#include "ctl/ctl.h"

#include "base/text.h"

#include <bsd/string.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <sysexits.h>
#include <unistd.h>

int
ctl_hint(struct err *err, const char *hint)
{
	size_t used = strlen(err->text);

	while (used > 0 && err->text[used - 1] == ' ')
		used--;
	if (used + strlen(hint) + 4 < sizeof(err->text))
		snprintf(err->text + used, sizeof(err->text) - used, " (%s)",
		    hint);
	return -1;
}

void
ctl_note(const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fputs("mailherdctl: note: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

void
ctl_print_json(json_t *object)
{
	char *line = json_dumps(object, JSON_COMPACT | JSON_ENCODE_ANY);

	/* json_pack() refuses what is not UTF-8; we clean before. */
	if (line == NULL)
		die_bug("a reply that is no JSON");
	puts(line);
	free(line);
	json_decref(object);
}

void
ctl_print_id(const struct ctl *ctl, const char *key, const struct uuid *id)
{
	char text[UUID_TEXT_SIZE];

	uuid_format(id, text);
	if (ctl->is_json)
		ctl_print_json(json_pack("{s:s}", key, text));
	else
		puts(text);
}

/* --- who acts ------------------------------------------------------------ */

int
ctl_find_daemon(struct ctl *ctl, struct err *err)
{
	const struct conf *conf = ctl->conf;
	const struct passwd *pw;
	const struct group *gr = NULL;

	if (getuid() != 0 || *conf->user == '\0')
		return 0;
	pw = getpwnam(conf->user);
	if (pw == NULL)
		return err_set(err, ERR_CONFIG, "no user \"%s\" (setting "
		    "\"user\"; create it: adduser --system --group %s)",
		    conf->user, conf->user);
	if (*conf->group != '\0' && (gr = getgrnam(conf->group)) == NULL)
		return err_set(err, ERR_CONFIG, "no group \"%s\" (setting "
		    "\"group\")", conf->group);
	ctl->has_daemon = true;
	ctl->daemon_uid = pw->pw_uid;
	ctl->daemon_gid = gr != NULL ? gr->gr_gid : pw->pw_gid;
	if (initgroups(conf->user, ctl->daemon_gid) == -1)
		return err_set(err, ERR_CONFIG, "groups of %s: %s",
		    conf->user, strerror(errno));
	ctl_act_as_daemon(ctl);
	return 0;
}

void
ctl_act_as_daemon(const struct ctl *ctl)
{
	if (ctl->has_daemon && (setegid(ctl->daemon_gid) == -1 ||
	    seteuid(ctl->daemon_uid) == -1))
		die(EX_NOPERM, "not become the user of the daemons: %s",
		    strerror(errno));
}

void
ctl_act_as_caller(void)
{
	if (seteuid(getuid()) == -1 || setegid(getgid()) == -1)
		die(EX_NOPERM, "not become root again: %s", strerror(errno));
}

/* --- sessions ----------------------------------------------------------- */

int
ctl_redis(struct ctl *ctl, struct err *err)
{
	if (ctl->redis != NULL)
		return 0;
	return lease_client_open(&ctl->redis, ctl->conf, err);
}

int
ctl_store(struct ctl *ctl, bool need_schema, struct err *err)
{
	if (ctl->store == NULL && store_open(&ctl->store, ctl->conf->database,
	    "mailherdctl", err) == -1)
		return ctl_hint(err, "setting \"database\"");
	return need_schema ? store_check(ctl->store, err) : 0;
}

int
ctl_account(struct ctl *ctl, const char *name, struct uuid *id_r,
    struct err *err)
{
	if (store_account_find(ctl->store, name, id_r, err) == -1)
		return err->kind == ERR_GONE
		    ? ctl_hint(err, "see: mailherdctl account list") : -1;
	return 0;
}

/* --- queries ------------------------------------------------------------ */

int
ctl_query(struct ctl *ctl, const char *sql, const char *const *params,
    size_t n_params, struct store_rows **rows_r, struct err *err)
{
	return store_query(ctl->store, ctl->arena, sql, params, n_params,
	    rows_r, err);
}

int
ctl_list(struct ctl *ctl, const struct listing *listing,
    const char *const *params, size_t n_params, struct err *err)
{
	struct store_rows *rows;
	struct table *t;

	if (ctl_query(ctl, listing->sql, params, n_params, &rows, err) == -1)
		return -1;
	t = table_new(listing->columns, listing->n_columns, ctl->is_json);
	for (size_t r = 0; r < rows->n_rows; r++)
		table_add(t, &ROWS_CELL(rows, r, 0));
	table_print(t, listing->empty);
	table_free(&t);
	return 0;
}

/* --- telling the daemons ------------------------------------------------ */

static int
publish_state(struct ctl *ctl, const struct uuid *account_id,
    const struct uuid *user_id, enum account_state state, const char *reason,
    struct err *err)
{
	struct msg_event event = {
		.event = EVENT_ACCOUNT_STATE,
		.account_id = *account_id,
		.user_id = *user_id,
	};

	strlcpy(event.name, account_state_name(state), sizeof(event.name));
	strlcpy(event.reason, reason, sizeof(event.reason));
	return lease_client_publish(ctl->redis, &event, err);
}

/* Once is enough: what comes after would fail alike. */
static void
note_away(struct ctl *ctl, const struct err *err, const char *consequence)
{
	if (!ctl->is_redis_away)
		ctl_note("%s (saved all the same; %s)", err->text,
		    consequence);
	ctl->is_redis_away = true;
	lease_client_close(&ctl->redis);
}

void
announce_state(struct ctl *ctl, const struct uuid *account_id,
    const struct uuid *user_id, enum account_state state, const char *reason)
{
	struct err err = ERR_INIT;

	if (ctl->is_redis_away)
		return;
	if (ctl_redis(ctl, &err) == -1 ||
	    lease_client_set_live(ctl->redis, account_id,
	    state == ACCOUNT_LIVE, &err) == -1 ||
	    publish_state(ctl, account_id, user_id, state, reason, &err) == -1)
		note_away(ctl, &err, "the workers see it at their next "
		    "reconcile");
}

void
announce_job(struct ctl *ctl, const char *queue, const struct uuid *job_id)
{
	struct err err = ERR_INIT;

	if (ctl->is_redis_away)
		return;
	if (ctl_redis(ctl, &err) == -1 ||
	    lease_client_ring(ctl->redis, queue, job_id, &err) == -1)
		note_away(ctl, &err, "the job starts at the next sweep");
}

/* --- colours of words --------------------------------------------------- */

struct word_tint {
	const char *word;
	enum tint tint;
};

static enum tint
ctl_look_up(const struct word_tint *words, const char *cell)
{
	for (; words->word != NULL; words++)
		if (strcmp(words->word, cell) == 0)
			return words->tint;
	return TINT_NONE;
}

enum tint
tint_account_state(const char *cell)
{
	static const struct word_tint words[] = {
		{ "live", TINT_GOOD }, { "bootstrapping", TINT_WARN },
		{ "new", TINT_WARN }, { "error", TINT_BAD },
		{ "disabled", TINT_DIM }, { "deleted", TINT_DIM }, { NULL },
	};

	return ctl_look_up(words, cell);
}

enum tint
tint_job_state(const char *cell)
{
	static const struct word_tint words[] = {
		{ "running", TINT_GOOD }, { "queued", TINT_NONE },
		{ "dead", TINT_BAD }, { "done", TINT_DIM }, { NULL },
	};

	return ctl_look_up(words, cell);
}

enum tint
tint_tier(const char *cell)
{
	static const struct word_tint words[] = {
		{ "hot", TINT_GOOD }, { "cold", TINT_DIM }, { NULL },
	};

	return ctl_look_up(words, cell);
}

enum tint
tint_error(const char *cell)
{
	return *cell != '\0' ? TINT_BAD : TINT_NONE;
}

enum tint
tint_health(const char *cell)
{
	static const struct word_tint words[] = {
		{ "ok", TINT_GOOD }, { "up", TINT_GOOD }, { "yes", TINT_GOOD },
		{ "true", TINT_GOOD }, { "connected", TINT_GOOD },
		{ "down", TINT_BAD }, { "away", TINT_BAD }, { "no", TINT_BAD },
		{ "false", TINT_BAD }, { NULL },
	};

	return ctl_look_up(words, cell);
}
