/*
 * control_look.c - counters, connections, the log, faults and groups on the
 * control port.
 *
 * Runs in: mockimapd.  Never blocks.
 */
#include "config.h"

#include "control.h"

#include "fault.h"
#include "session.h"

#include <bsd/string.h>
#include <fnmatch.h>

#define LOG_LIMIT 100000

/* --- counters ------------------------------------------------------------ */

static json_t *
counters_to_json(const struct counters *c)
{
	return json_pack("{s:i,s:i,s:i,s:i,s:I,s:I,s:I,s:I,s:I,s:I,s:I}",
	    "connections", (int)c->connections,
	    "connections_peak", (int)c->connections_peak,
	    "idle", (int)c->idle, "idle_peak", (int)c->idle_peak,
	    "logins", (json_int_t)c->logins,
	    "refused", (json_int_t)c->refused,
	    "commands", (json_int_t)c->commands,
	    "delivered", (json_int_t)c->delivered,
	    "bodies", (json_int_t)c->bodies,
	    "bytes_out", (json_int_t)c->bytes_out,
	    "faults", (json_int_t)c->faults);
}

static void
merge(json_t *into, json_t *from)
{
	json_object_update(into, from);
	json_decref(from);
}

/* Of one account, or of all together. */
CONTROL(control_status)
{
	struct account *account;

	if (json_object_get(call->in, "account") == NULL) {
		merge(call->out, counters_to_json(&call->world->totals));
		control_set(call, "accounts", json_integer(
		    (json_int_t)call->world->n_accounts));
		control_set(call, "accepted", json_integer(
		    (json_int_t)call->world->totals.accepted));
		return;
	}
	account = control_account(call);
	if (account != NULL)
		merge(call->out, counters_to_json(&account->counters));
}

/* Counters of all that match: {login: {...}}. */
CONTROL(control_accounts)
{
	const struct world *world = call->world;
	const char *match = control_text_or(call, "match", "*");
	json_t *accounts = json_object();

	control_set(call, "accounts", accounts);
	for (size_t i = 0; i < world->n_accounts; i++) {
		const struct account *account = world->accounts[i];

		if (fnmatch(match, account->login, 0) == 0)
			json_object_set_new(accounts, account->login,
			    counters_to_json(&account->counters));
	}
}

CONTROL(control_connections)
{
	const char *match = control_text_or(call, "match", "*");
	json_t *list = json_array();
	struct session *s;

	control_set(call, "connections", list);
	LIST_FOREACH(s, &call->world->sessions, entry) {
		const char *login = s->account != NULL ? s->account->login :
		    "";

		if (fnmatch(match, login, 0) != 0)
			continue;
		json_array_append_new(list, json_pack(
		    "{s:i,s:s,s:i,s:s,s:b,s:I}", "conn", (int)s->conn,
		    "account", login, "port", (int)s->peer_port, "folder",
		    s->folder != NULL ? s->folder->name : "", "idle",
		    s->is_idle, "since_us", (json_int_t)s->since_usecs));
	}
}

/* Counts begin anew; peaks begin at what is now. */
static void
counters_reset(struct counters *c)
{
	*c = (struct counters){ .connections = c->connections,
		.connections_peak = c->connections, .idle = c->idle,
		.idle_peak = c->idle };
}

CONTROL(control_reset)
{
	struct world *world = call->world;

	counters_reset(&world->totals);
	for (size_t i = 0; i < world->n_accounts; i++)
		counters_reset(&world->accounts[i]->counters);
}

/* --- the log ------------------------------------------------------------- */

static bool
take_kinds(struct control_call *call, unsigned *kinds_r)
{
	const json_t *words = json_object_get(call->in, "kinds"), *word;
	size_t i;

	*kinds_r = words == NULL ? ~0U : 0;
	json_array_foreach(words, i, word) {
		const char *text = json_string_value(word);
		unsigned k = 0;

		while (k < RECORD_KIND_COUNT && (text == NULL ||
			strcmp(text, record_names[k]) != 0))
			k++;
		if (k == RECORD_KIND_COUNT) {
			call->error = "kinds: no such kind";
			return false;
		}
		*kinds_r |= 1U << k;
	}
	return true;
}

CONTROL(control_log)
{
	struct record_query query = {
		.since = (uint64_t)control_number_or(call, "since", 1),
		.limit = (size_t)control_number_or(call, "limit", LOG_LIMIT),
	};
	uint64_t next = 0, lost = 0;
	json_t *entries;

	if (json_object_get(call->in, "account") != NULL &&
	    (query.account = control_account(call)) == NULL)
		return;
	if (!take_kinds(call, &query.kinds))
		return;
	entries = record_read(call->world->record, &query, &next, &lost);
	control_set(call, "entries", entries);
	control_set(call, "next", json_integer((json_int_t)next));
	control_set(call, "lost", json_integer((json_int_t)lost));
}

/* --- groups and limits --------------------------------------------------- */

/* "full", or ["IDLE", "CONDSTORE", ...]; "without" takes some away. */
static bool
take_capabilities(struct control_call *call, const char *key, unsigned *caps_r)
{
	const json_t *value = json_object_get(call->in, key), *word;
	size_t i;
	unsigned caps;

	*caps_r = 0;
	if (json_is_string(value) &&
	    capability_parse(json_string_value(value), caps_r))
		return true;
	if (!json_is_array(value)) {
		call->error = "capabilities: no such set";
		return false;
	}
	json_array_foreach(value, i, word) {
		if (!json_is_string(word) ||
		    !capability_parse(json_string_value(word), &caps)) {
			call->error = "capabilities: no such word";
			return false;
		}
		*caps_r |= caps;
	}
	return true;
}

static void
take_text(const struct control_call *call, const char *key, char *out,
    size_t size)
{
	strlcpy(out, control_text_or(call, key, out), size);
}

static void
take_number(const struct control_call *call, const char *key, uint32_t *out)
{
	int64_t n = control_number_or(call, key, *out);

	if (n >= 0 && n <= INT32_MAX)
		*out = (uint32_t)n;
}

CONTROL(control_group)
{
	const char *name = control_text(call, "name");
	struct group *group;
	unsigned caps;

	if (name == NULL)
		return;
	group = world_group(call->world, name);
	take_text(call, "match", group->match, sizeof(group->match));
	take_text(call, "password", group->password, sizeof(group->password));
	take_text(call, "limit_text", group->limit_text,
	    sizeof(group->limit_text));
	take_number(call, "inbox", &group->inbox);
	take_number(call, "other", &group->other);
	take_number(call, "folders", &group->folders);
	take_number(call, "size", &group->size);
	take_number(call, "big_size", &group->big_size);
	take_number(call, "max_connections", &group->max_connections);
	if (json_is_number(json_object_get(call->in, "big_share")))
		group->big_share = json_number_value(
		    json_object_get(call->in, "big_share"));
	if (json_object_get(call->in, "capabilities") != NULL &&
	    take_capabilities(call, "capabilities", &caps))
		group->caps = caps;
	if (json_object_get(call->in, "without") != NULL &&
	    take_capabilities(call, "without", &caps))
		group->caps &= ~caps;
}

CONTROL(control_limit)
{
	int64_t n = control_number_or(call, "connections", 0);

	call->world->max_connections = n > 0 ? (unsigned)n : 0;
}

/* --- faults -------------------------------------------------------------- */

CONTROL(control_fault)
{
	struct fault *fault = fault_add(call->world->faults, call->in,
	    &call->error);

	if (fault != NULL)
		control_set(call, "id", json_integer(fault->id));
}

CONTROL(control_faults)
{
	control_set(call, "faults", faults_list(call->world->faults));
}

CONTROL(control_clear)
{
	int64_t id = control_number_or(call, "id", 0);

	control_set(call, "cleared", json_integer((json_int_t)
	    fault_clear(call->world->faults, (unsigned)id)));
}

/* Closes the connections of all that match; "idle": true only those in IDLE. */
CONTROL(control_kick)
{
	const char *match = control_text_or(call, "match",
	    control_text_or(call, "account", "*"));
	bool only_idle = json_is_true(json_object_get(call->in, "idle"));
	struct session *s, *next;
	json_int_t n = 0;

	LIST_FOREACH_SAFE(s, &call->world->sessions, entry, next) {
		if (fnmatch(match, s->account != NULL ? s->account->login :
			"", 0) != 0 || (only_idle && !s->is_idle))
			continue;
		session_close(s, "kicked");
		n++;
	}
	control_set(call, "closed", json_integer(n));
}
