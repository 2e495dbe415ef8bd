/*
 * control.c - the control port: one JSON object per line each way.
 *
 * Runs in: mockimapd.  Never blocks.
 */
#include "config.h"

#include "control.h"

#include "base/arena.h"
#include "base/xmem.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <unistd.h>

#define LINE_MAX_BYTES (1024 * 1024)

static CONTROL(control_ping);
static CONTROL(control_quit);

static const struct {
	const char *name;
	void (*run)(struct control_call *call);
} commands[] = {
	{ "ping", control_ping },
	{ "quit", control_quit },
	{ "deliver", control_deliver },
	{ "append", control_append },
	{ "replace", control_replace },
	{ "flags", control_flags },
	{ "expunge", control_expunge },
	{ "move", control_move },
	{ "create", control_create },
	{ "rename", control_rename },
	{ "delete", control_delete },
	{ "uidvalidity", control_uidvalidity },
	{ "password", control_password },
	{ "traffic", control_traffic },
	{ "state", control_state },
	{ "status", control_status },
	{ "accounts", control_accounts },
	{ "connections", control_connections },
	{ "reset", control_reset },
	{ "log", control_log },
	{ "group", control_group },
	{ "limit", control_limit },
	{ "fault", control_fault },
	{ "faults", control_faults },
	{ "clear", control_clear },
	{ "kick", control_kick },
};

struct client {
	LIST_ENTRY(client) entry;
	struct world *world;
	struct bufferevent *bev;
};

struct control {
	struct world *world;
	LIST_HEAD(, client) clients;
};

/* --- arguments ----------------------------------------------------------- */

const char *
control_text_or(const struct control_call *call, const char *key,
    const char *preset)
{
	const char *s = json_string_value(json_object_get(call->in, key));

	return s != NULL ? s : preset;
}

const char *
control_text(struct control_call *call, const char *key)
{
	const char *s = control_text_or(call, key, NULL);

	if (s == NULL && call->error == NULL) {
		json_object_set_new(call->out, "argument", json_string(key));
		call->error = "an argument is missing or no text";
	}
	return s;
}

int64_t
control_number_or(const struct control_call *call, const char *key,
    int64_t preset)
{
	const json_t *value = json_object_get(call->in, key);

	return json_is_integer(value) ? json_integer_value(value) : preset;
}

struct account *
control_account(struct control_call *call)
{
	const char *login = control_text(call, "account");
	struct account *account = login == NULL ? NULL :
	    world_account(call->world, login);

	if (account == NULL && call->error == NULL)
		call->error = "no group has such an account";
	return account;
}

struct folder *
control_folder(struct control_call *call, const char *key)
{
	struct account *account = control_account(call);
	struct folder *folder = account == NULL ? NULL :
	    folder_find(account, control_text_or(call, key, "INBOX"));

	if (folder == NULL && call->error == NULL)
		call->error = "no such folder";
	return folder;
}

void
control_set(struct control_call *call, const char *key, json_t *value)
{
	json_object_set_new(call->out, key, value);
}

static CONTROL(control_ping)
{
	control_set(call, "pid", json_integer(getpid()));
}

static CONTROL(control_quit)
{
	struct timeval soon = { 0, 50000 }; /* the answer goes out before */

	event_base_loopexit(call->world->base, &soon);
}

/* --- answering ----------------------------------------------------------- */

static void
run(struct control_call *call)
{
	const char *name = control_text(call, "cmd");

	if (name == NULL)
		return;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(name, commands[i].name) == 0) {
			commands[i].run(call);
			return;
		}
	call->error = "no such command";
}

char *
control_answer(struct world *world, const char *line, size_t len)
{
	json_t *in = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);
	struct control_call call = { world, in, json_object(), NULL };
	char *answer;

	if (json_is_object(in))
		run(&call);
	else
		call.error = "not a JSON object";
	json_object_set_new(call.out, "ok", json_boolean(call.error == NULL));
	if (call.error != NULL)
		json_object_set_new(call.out, "error",
		    json_string(call.error));
	/* When it took effect, for whoever measures from there. */
	json_object_set_new(call.out, "mono_us",
	    json_integer(record_mono_usecs()));
	answer = json_dumps(call.out, JSON_COMPACT);
	json_decref(call.out);
	json_decref(in);
	arena_reset(world->arena);
	return answer;
}

/* --- clients ------------------------------------------------------------- */

static void
client_free(struct client *client)
{
	LIST_REMOVE(client, entry);
	bufferevent_free(client->bev); /* closes */
	free(client);
}

static void
on_read(struct bufferevent *bev, void *arg)
{
	struct client *client = arg;
	struct evbuffer *in = bufferevent_get_input(bev);
	size_t len;
	char *line;

	while ((line = evbuffer_readln(in, &len, EVBUFFER_EOL_LF)) != NULL) {
		char *answer = control_answer(client->world, line, len);

		free(line);
		if (answer != NULL)
			bufferevent_write(bev, answer, strlen(answer));
		bufferevent_write(bev, "\n", 1);
		free(answer);
	}
	if (evbuffer_get_length(in) > LINE_MAX_BYTES)
		client_free(client);
}

static void
on_event(struct bufferevent *bev, short what, void *arg)
{
	(void)bev;
	(void)what;
	client_free(arg);
}

struct control *
control_new(struct world *world)
{
	struct control *control = xcalloc(1, sizeof(*control));

	control->world = world;
	LIST_INIT(&control->clients);
	return control;
}

void
control_open(struct control *control, int fd)
{
	struct client *client = xcalloc(1, sizeof(*client));

	client->world = control->world;
	client->bev = bufferevent_socket_new(control->world->base, fd,
	    BEV_OPT_CLOSE_ON_FREE);
	LIST_INSERT_HEAD(&control->clients, client, entry);
	bufferevent_setcb(client->bev, on_read, NULL, on_event, client);
	bufferevent_enable(client->bev, EV_READ | EV_WRITE);
}

void
control_free(struct control **control)
{
	struct client *client;

	if (*control == NULL)
		return;
	while ((client = LIST_FIRST(&(*control)->clients)) != NULL)
		client_free(client);
	free(*control);
	*control = NULL;
}
