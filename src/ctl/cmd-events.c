/*
 * cmd-events.c - events as they pass.
 *
 * Runs in: mailherdctl, until interrupted.  Blocks.
 *
 * With -j the envelope of mailherdctl(8), untouched.  For people: when, what, and
 * the payload as key=value, accounts by their e-mail where PostgreSQL knows it.
 */
#include "ctl/commands.h"

/* Ids already looked up, as JSON: id -> e-mail. */
struct names {
	struct ctl *ctl;
	json_t *known;
	bool no_store;
};

static const char *
account_name(struct names *names, const char *id)
{
	const char *params[] = { id };
	struct err ignored = ERR_INIT;
	struct store_rows *rows;
	json_t *known = json_object_get(names->known, id);
	struct uuid uuid;

	if (known != NULL)
		return json_string_value(known);
	if (names->no_store || uuid_parse(id, &uuid) == -1)
		return id;
	if (ctl_store(names->ctl, false, &ignored) == -1 ||
	    ctl_query(names->ctl, "SELECT email FROM accounts"
	    " WHERE id = $1::uuid", params, 1, &rows, &ignored) == -1) {
		names->no_store = true;
		return id;
	}
	if (rows->n_rows == 0)
		return id;
	known = json_string(ROWS_CELL(rows, 0, 0));
	json_object_set_new(names->known, id, known);
	return json_string_value(known);
}

static enum tint
tint_event(const char *event)
{
	if (strcmp(event, "message.new") == 0)
		return TINT_GOOD;
	if (strcmp(event, "job.failed") == 0 ||
	    strcmp(event, "quota.exceeded") == 0)
		return TINT_BAD;
	return TINT_NONE;
}

/* One member of the payload; long lists of ids are shortened. */
static void
add_member(struct buf *out, struct names *names, const char *key,
    json_t *value)
{
	char *text;

	if (strcmp(key, "account_id") == 0 && json_is_string(value)) {
		buf_adds(out, " account=");
		display_clean(out, account_name(names,
		    json_string_value(value)));
		return;
	}
	if (json_is_array(value)) {
		size_t n = json_array_size(value);

		buf_addf(out, " %s=", key);
		for (size_t i = 0; i < n && i < 5; i++) {
			text = json_dumps(json_array_get(value, i),
			    JSON_ENCODE_ANY | JSON_COMPACT);
			buf_adds(out, i > 0 ? "," : "");
			display_clean(out, text);
			free(text);
		}
		buf_adds(out, n > 5 ? ",..." : "");
		return;
	}
	buf_addf(out, " %s=", key);
	if (json_is_string(value)) {
		display_clean(out, json_string_value(value));
	} else {
		text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
		display_clean(out, text);
		free(text);
	}
}

static void
print_event(struct names *names, json_t *envelope)
{
	const char *event = json_string_value(
	    json_object_get(envelope, "event"));
	time_t ts = json_integer_value(json_object_get(envelope, "ts"));
	struct buf line = BUF_INIT, name = BUF_INIT;
	char when[32] = "";
	struct tm tm;
	const char *key;
	json_t *value;

	display_clean(&name, event != NULL ? event : "?");
	if (localtime_r(&ts, &tm) != NULL)
		strftime(when, sizeof(when), "%H:%M:%S", &tm);
	buf_addf(&line, "%s%s%s  %s%-21s%s", display_tint(TINT_DIM), when,
	    display_plain(), display_tint(tint_event(buf_str(&name))),
	    buf_str(&name), display_plain());
	json_object_foreach(json_object_get(envelope, "payload"), key, value)
		if (!json_is_string(value) ||
		    *json_string_value(value) != '\0')
			add_member(&line, names, key, value);
	puts(line.data);
	buf_release(&line);
	buf_release(&name);
}

static void
print_message(struct names *names, const char *message)
{
	json_t *envelope = json_loads(message, 0, NULL);
	struct buf clean = BUF_INIT;

	if (json_is_object(envelope) && names->ctl->is_json) {
		/* Again through jansson: certainly one line, certainly JSON. */
		ctl_print_json(json_incref(envelope));
	} else if (json_is_object(envelope)) {
		print_event(names, envelope);
	} else if (!names->ctl->is_json) {
		display_clean(&clean, message);
		printf("not an event: %s\n", buf_str(&clean));
	}
	fflush(stdout);
	json_decref(envelope);
	buf_release(&clean);
}

/* Redis went away: wait for it, an operator wants to see what comes after. */
static void
events_reconnect(struct ctl *ctl, const struct args *args, const char *why)
{
	struct err err = ERR_INIT;

	ctl_note("%s (trying again; events meanwhile are lost)", why);
	for (;;) {
		lease_client_close(&ctl->redis);
		if (ctl_redis(ctl, &err) == 0 &&
		    lease_client_subscribe(ctl->redis,
		    (const char *const *)args->words, args->n_words,
		    &err) == 0)
			return;
		nanosleep(&(struct timespec){ .tv_sec = 1 }, NULL);
	}
}

static bool
is_event(const char *name)
{
	for (int e = 0; e < EVENT_COUNT; e++)
		if (strcmp(event_name(e), name) == 0)
			return true;
	return false;
}

int
cmd_events(struct ctl *ctl, const struct args *args, struct err *err)
{
	struct names names = { .ctl = ctl };

	for (size_t i = 0; i < args->n_words; i++)
		if (!is_event(args->words[i]))
			return err_set(err, ERR_PERMANENT, "no event \"%s\" "
			    "(message.new, sync.progress, ...: see "
			    "mailherdctl(8))", args->words[i]);
	if (lease_client_subscribe(ctl->redis,
	    (const char *const *)args->words, args->n_words, err) == -1)
		return -1;
	names.known = json_object();
	if (!ctl->is_json && display_is_terminal())
		ctl_note("waiting for events, end with ^C");
	for (;;) {
		struct arena *arena = arena_new("event");
		const char *message = NULL;

		if (lease_client_next(ctl->redis, -1, arena, &message, err) ==
		    -1)
			events_reconnect(ctl, args, err->text);
		if (message != NULL)
			print_message(&names, message);
		arena_free(&arena);
	}
}
