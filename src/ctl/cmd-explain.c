/*
 * cmd-explain.c - an account's whole story, and what comes next.
 *
 * Runs in: mailherdctl.  Blocks, at most some seconds.
 *
 * The daemon that owns the account knows most, and is asked when it runs on
 * this host.  An account of another worker, or of nobody, is told from
 * PostgreSQL and Redis, in the same form and with the same JSON keys; either
 * of them may be away.
 */
#include "ctl/commands.h"
#include "ctl/daemons.h"
#include "ctl/next.h"

#include "base/clock.h"

#include <inttypes.h>

enum cell {
	CELL_ID, CELL_EMAIL, CELL_USER_ID, CELL_STATE, CELL_REASON,
	CELL_SINCE, CELL_HOST, CELL_LAST_MAIL, CELL_LAST_SYNC, CELL_LAST_ERROR,
	CELL_REFUSALS, CELL_WAIT, CELL_EPOCH, CELL_FENCE_OWNER, CELL_ACTIVE,
	CELL_NEXT_TRY, CELL_ASIDE, CELL_ASIDE_WHAT, CELL_ASIDE_NEXT,
};

#define SQL_SECS(column) " extract(epoch FROM " column ")::bigint"

static const char sql[] = "SELECT a.id, a.email, a.user_id, a.state,"
    " a.state_reason," SQL_SECS("a.state_since") ", a.imap_host,"
    SQL_SECS("a.last_mail_at") "," SQL_SECS("a.last_sync_at") ","
    " a.last_error, a.auth_failures,"
    " greatest(0, ceil(extract(epoch FROM a.next_try_at - now())))::bigint,"
    " coalesce(f.epoch, 0), coalesce(f.owner, ''),"
    SQL_SECS("u.last_active_at") "," SQL_SECS("a.next_try_at") ","
    " coalesce(q.n, 0), q.what, " SQL_SECS("q.next_at")
    " FROM accounts a JOIN users u ON u.id = a.user_id"
    " LEFT JOIN account_fence f ON f.account_id = a.id"
    " LEFT JOIN (SELECT count(*) AS n, min(q.next_at) AS next_at,"
    "  (array_agg(b.path || CASE WHEN q.uid_from = 0 THEN '' ELSE"
    "   ', UID ' || q.uid_from END || ': ' || q.reason"
    "   ORDER BY q.last_at DESC))[1] AS what"
    "  FROM quarantine q JOIN mailbox b ON b.id = q.mailbox_id"
    "  WHERE q.account_id = $1::uuid AND q.state <> 'noted') q ON true"
    " WHERE a.id = $1::uuid";

struct story {
	struct ctl *ctl;
	json_t *object, *chain;
	const char *const *row;	/* NULL: PostgreSQL is away */
	const struct lease_view *view; /* NULL: Redis is away */
	int64_t session_secs;	/* left; -1: not known */
	int64_t now;		/* wall */
};

static void explain_say(struct story *s, const char *label, const char *fmt,
    ...) __attribute__((format(printf, 3, 4)));

static void
explain_say(struct story *s, const char *label, const char *fmt, ...)
{
	struct buf line = BUF_INIT;
	char text[900];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	buf_addf(&line, "%-9s ", label);
	display_clean(&line, text);
	json_array_append_new(s->chain, json_string(buf_str(&line)));
	buf_release(&line);
}

static void
explain_set_number(struct story *s, const char *key, int64_t value)
{
	json_object_set_new(s->object, key, json_integer(value));
}

static void
explain_set_text(struct story *s, const char *key, const char *value)
{
	json_object_set_new(s->object, key, value != NULL ?
	    json_string(value) : json_null());
}

static int64_t
explain_number(const struct story *s, enum cell cell)
{
	return s->row[cell] == NULL ? 0 : strtoll(s->row[cell], NULL, 10);
}

/* "3 min", since then; "" when it never was. */
static const char *
explain_ago(const struct story *s, enum cell cell)
{
	char span[32];

	if (s->row[cell] == NULL)
		return "";
	return arena_printf(s->ctl->arena, "%s ago",
	    clock_format_span(
		span, sizeof(span), s->now - explain_number(s, cell)));
}

/* --- the parts ---------------------------------------------------------- */

static void
tell_row(struct story *s)
{
	const char *const *row = s->row;
	char span[32];

	explain_set_text(s, "email", row[CELL_EMAIL]);
	explain_set_text(s, "state", row[CELL_STATE]);
	explain_set_text(s, "state_reason", row[CELL_REASON]);
	explain_set_number(s, "state_since", explain_number(s, CELL_SINCE));
	explain_set_text(s, "host", row[CELL_HOST]);
	explain_say(s, "account", "%s", row[CELL_EMAIL]);
	explain_say(s, "state", "%s since %s%s%s", row[CELL_STATE],
	    clock_format_span(
		span, sizeof(span), s->now - explain_number(s, CELL_SINCE)),
	    row[CELL_REASON][0] != '\0' ? ": " : "", row[CELL_REASON]);
	explain_set_number(s, "quarantined", explain_number(s, CELL_ASIDE));
	if (explain_number(s, CELL_ASIDE) == 0)
		return;
	explain_set_number(
	    s, "quarantine_next_at", explain_number(s, CELL_ASIDE_NEXT));
	explain_say(s, "aside", "%s in quarantine, the last: %s",
	    row[CELL_ASIDE], row[CELL_ASIDE_WHAT]);
	if (explain_number(s, CELL_ASIDE_NEXT) > s->now)
		explain_say(s, "aside", "tried again in %s",
		    clock_format_span(span, sizeof(span),
			explain_number(s, CELL_ASIDE_NEXT) - s->now));
}

static void
explain_tell_owner(struct story *s)
{
	const struct lease_view *view = s->view;

	if (s->row != NULL)
		explain_set_number(s, "epoch", explain_number(s, CELL_EPOCH));
	if (view == NULL) {
		explain_say(s, "owner", "not known, Redis is away%s%s",
		    s->row != NULL ? "; the last to write is " : "",
		    s->row != NULL ? s->row[CELL_FENCE_OWNER] : "");
		return;
	}
	explain_set_text(s, "owner", view->owner);
	explain_set_number(
	    s, "lease_left_s", view->ttl_secs > 0 ? view->ttl_secs : 0);
	json_object_set_new(s->object, "listed",
	    json_boolean(view->is_listed));
	if (view->owner != NULL)
		explain_say(
		    s, "owner", "%s, which knows more: ask there", view->owner);
	else
		explain_say(s, "owner", "nobody%s",
		    view->is_listed ? "; it is listed for claiming" : "");
	if (view->owner != NULL)
		explain_say(s, "lease", "%" PRId64 " s left%s%s",
		    view->ttl_secs, s->row != NULL ? ", epoch " : "",
		    s->row != NULL ? s->row[CELL_EPOCH] : "");
	else if (s->row != NULL)
		explain_say(s, "lease", "none; the last epoch is %s",
		    s->row[CELL_EPOCH]);
}

static const char *
tier_rule(const struct story *s)
{
	const struct lease_view *view = s->view;

	if (view->pin != NULL)
		return "pinned by an operator";
	if (view->owner == NULL)
		return "as the last owner left it";
	return "by its owner's rules";
}

static void
explain_tell_tier(struct story *s)
{
	const struct lease_view *view = s->view;
	char span[32];

	if (view == NULL)
		return;
	explain_set_text(s, "tier", view->tier);
	explain_set_text(s, "tier_rule", tier_rule(s));
	json_object_set_new(s->object, "pinned",
	    json_boolean(view->pin != NULL));
	explain_set_number(s, "connections", view->conns);
	if (s->session_secs >= 0)
		explain_set_number(s, "session_left_s", s->session_secs);
	if (view->tier != NULL || view->pin != NULL)
		explain_say(s, "tier", "%s: %s",
		    view->pin != NULL ? view->pin : view->tier, tier_rule(s));
	if (s->session_secs > 0)
		explain_say(s, "session", "ends in %s unless it is refreshed",
		    clock_format_span(span, sizeof(span), s->session_secs));
	explain_say(s, "budget",
	    "%" PRId64 " connection%s of this account over all "
	    "workers",
	    view->conns, view->conns == 1 ? "" : "s");
}

static void
explain_tell_health(struct story *s)
{
	const char *const *row = s->row;
	int64_t wait = explain_number(s, CELL_WAIT);
	char span[32];

	explain_set_number(
	    s, "last_mail_at", explain_number(s, CELL_LAST_MAIL));
	explain_set_number(
	    s, "last_pass_at", explain_number(s, CELL_LAST_SYNC));
	explain_set_text(s, "last_error", row[CELL_LAST_ERROR]);
	explain_set_number(s, "refusals", explain_number(s, CELL_REFUSALS));
	explain_set_number(s, "wait_s", wait);
	if (row[CELL_LAST_MAIL] != NULL)
		explain_say(
		    s, "last mail", "%s", explain_ago(s, CELL_LAST_MAIL));
	if (row[CELL_LAST_ERROR][0] != '\0')
		explain_say(s, "health", "the last pass failed: %s",
		    row[CELL_LAST_ERROR]);
	else if (row[CELL_LAST_SYNC] != NULL)
		explain_say(s, "health", "good, the last pass ended %s",
		    explain_ago(s, CELL_LAST_SYNC));
	else
		explain_say(s, "health", "no pass yet");
	if (explain_number(s, CELL_REFUSALS) > 0)
		explain_say(s, "refused", "%s of %lld logins in a row",
		    row[CELL_REFUSALS], (long long)s->ctl->conf->auth_refusals);
	if (wait > 0)
		explain_say(s, "wait",
		    "%s, nothing is asked of the server until then",
		    clock_format_span(span, sizeof(span), wait));
}

static void
explain_tell_next(struct story *s)
{
	const char *text;

	if (s->row == NULL)
		return;
	text = next_step(s->ctl,
	    &(struct next_facts){.id = s->row[CELL_ID],
		.email = s->row[CELL_EMAIL],
		.state = s->row[CELL_STATE],
		.next_try_at = explain_number(s, CELL_WAIT) > 0
				   ? s->row[CELL_NEXT_TRY]
				   : NULL},
	    s->view);
	explain_set_text(s, "next", text);
	if (text != NULL)
		explain_say(s, "next", "%s", text);
}

/* --- where it comes from ------------------------------------------------ */

static int
load_row(struct ctl *ctl, const char *id, const char *const **row_r,
    struct err *err)
{
	const char *params[] = { id };
	struct store_rows *rows;

	*row_r = NULL;
	if (ctl_store(ctl, true, err) == -1 ||
	    ctl_query(ctl, sql, params, 1, &rows, err) == -1)
		return -1;
	if (rows->n_rows == 0)
		return err_set(err, ERR_GONE, "no account %s", id);
	*row_r = (const char *const *)rows->cells;
	return 0;
}

static int
load_view(struct story *s, const char *text, struct lease_view *view,
    struct err *err)
{
	struct uuid id, user;

	uuid_parse(text, &id);
	if (ctl_redis(s->ctl, err) == -1 || lease_client_views(s->ctl->redis,
		&id, 1, s->ctl->arena, view, err) == -1)
		return -1;
	s->view = view;
	if (s->row != NULL && uuid_parse(s->row[CELL_USER_ID], &user) == 0)
		return lease_client_session_left(s->ctl->redis, &user,
		    &s->session_secs, err);
	return 0;
}

/* The same lines and members as a daemon's, as far as the tables go. */
static int
tell_from_tables(struct ctl *ctl, const char *id, json_t **object_r,
    struct err *err)
{
	struct err away = ERR_INIT;
	struct lease_view view;
	struct story s = { .ctl = ctl, .session_secs = -1,
		.now = clock_wall_secs() };

	if (load_row(ctl, id, &s.row, err) == -1 && err->kind == ERR_GONE)
		return -1;
	if (s.row == NULL)
		ctl_note("%s (what is in PostgreSQL is not known)", err->text);
	if (load_view(&s, id, &view, &away) == -1) {
		if (s.row == NULL)
			return -1;
		ctl_note("%s (owner, lease and tier are not known)",
		    away.text);
	}
	s.object = *object_r = json_object();
	s.chain = json_array();
	explain_set_text(&s, "account_id", id);
	if (s.row != NULL)
		tell_row(&s);
	explain_tell_owner(&s);
	explain_tell_tier(&s);
	if (s.row != NULL)
		explain_tell_health(&s);
	explain_tell_next(&s);
	json_object_set_new(s.object, "chain", s.chain);
	return 0;
}

/* What the daemon cannot know: it does not read PostgreSQL. */
static void
explain_add_state(struct ctl *ctl, const char *id, json_t *reply)
{
	json_t *chain = json_object_get(reply, "chain");
	struct err ignored = ERR_INIT;
	struct story s = { .ctl = ctl, .object = reply,
		.chain = json_array(), .now = clock_wall_secs() };
	size_t i = json_array_size(chain) > 0 ? 1 : 0, n;
	json_t *line;

	if (load_row(ctl, id, &s.row, &ignored) == 0) {
		tell_row(&s);
		/* The first line of both is the account's name. */
		for (n = 1; (line = json_array_get(s.chain, n)) != NULL; n++)
			json_array_insert(chain, i + n - 1, line);
	}
	json_decref(s.chain);
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

/* Daemons tell times as numbers, 0 for never; -j tells them as elsewhere. */
static void
tell_times(json_t *reply)
{
	static const char *const keys[] = { "state_since", "last_mail_at",
		"last_pass_at", "last_error_at", "quarantine_next_at" };

	for (size_t i = 0; i < N_COLUMNS(keys); i++) {
		json_t *value = json_object_get(reply, keys[i]);
		char secs[24];

		if (!json_is_integer(value))
			continue;
		snprintf(secs, sizeof(secs), "%lld",
		    (long long)json_integer_value(value));
		json_object_set_new(reply, keys[i], cell_json(COLUMN_TIME,
		    json_integer_value(value) == 0 ? NULL : secs));
	}
}

int
cmd_explain(struct ctl *ctl, const struct args *args, struct err *err)
{
	char id[UUID_TEXT_SIZE];
	struct err not_owned = ERR_INIT;
	json_t *request, *reply = NULL;
	bool is_owners;

	if (daemons_account_id(ctl, args->words[0], id, err) == -1)
		return -1;
	request = json_pack("{s:s, s:s}", "cmd", "explain", "account", id);
	is_owners = daemons_ask_owner(ctl, request, &reply, &not_owned) == 0;
	json_decref(request);
	if (is_owners)
		explain_add_state(ctl, id, reply);
	else if (tell_from_tables(ctl, id, &reply, err) == -1)
		return -1;
	json_object_del(reply, "ok");
	json_object_set_new(reply, "source", json_string(is_owners ?
	    "owner" : "tables"));
	if (ctl->is_json) {
		tell_times(reply);
		ctl_print_json(json_incref(reply));
	} else {
		print_chain(reply);
	}
	json_decref(reply);
	return 0;
}
