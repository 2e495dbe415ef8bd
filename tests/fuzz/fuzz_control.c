/*
 * fuzz_control.c - a line on the control socket, or a message on an events
 * channel of Redis; the first byte says which.
 *
 * The master is a real one without children, Redis or accounts: what is
 * tested is that whatever comes gets one line of JSON as an answer.
 */
#include "base/log.h"
#include "redis/events.h"
#include "master/accounts.h"
#include "master/children.h"
#include "master/clerk.h"
#include "master/control.h"
#include "master/exporter.h"
#include "master/budgets.h"
#include "master/messages.h"
#include "master/state.h"

#include "fuzz.h"

#include <event2/event.h>

static char nowhere[] = "";
static struct conf conf = { .log_level = LOG_LEVEL_ERROR,
	.metrics_listen = nowhere };
static const char *const bad_settings[] = { "no=such" };

/* A sync worker that no Redis has told anything. */
static void
count_nothing(const struct master *m, struct role_figures *figures)
{
	(void)m, (void)figures;
}

static void
add_nothing(const struct master *m, json_t *json)
{
	(void)m, (void)json;
}

static void
do_nothing(struct master *m)
{
	(void)m;
}

static bool
has_nothing(const struct master *m)
{
	(void)m;
	return true;
}

static const struct role_ops *
make_role(void)
{
	static struct role_ops role;

	role = role_sync;
	role.count = count_nothing;
	role.describe = role.add_status = add_nothing;
	role.stop = role.drain = role.undrain = do_nothing;
	role.is_quiet = has_nothing;
	return &role;
}

static struct master *
make_master(void)
{
	static struct master m = { .conf = &conf };

	if (m.base != NULL)
		return &m;
	m.role = make_role();
	m.base = event_base_new();
	m.params.conf = &conf;
	m.params.overrides = bad_settings; /* "reload" changes nothing */
	m.params.n_overrides = 1;
	m.children = children_new(&(struct children_params){ .base = m.base,
	    .conf = &conf, .on_ready = messages_on_ready,
	    .on_message = messages_on_message, .on_end = messages_on_end, .arg = &m });
	m.budgets = budgets_new(&conf, 1, NULL, &m);
	m.clerk = clerk_new(&m, "main", 1000);
	m.stop_timer = evtimer_new(m.base, NULL, NULL);
	m.accounts = accounts_new(&(struct accounts_params){ .m = &m,
	    .on_due = do_nothing, .on_evaluate = do_nothing });
	m.exporter = exporter_new(&m);
	return &m;
}

static void
try_line(const char *line, size_t len)
{
	char *answer = control_answer(make_master(), line, len);
	json_t *json = json_loads(answer, 0, NULL);

	if (!json_is_boolean(json_object_get(json, "ok")) ||
	    strchr(answer, '\n') != NULL)
		abort();
	json_decref(json);
	free(answer);
}

static void
try_event(const char *text, size_t len)
{
	struct err err = ERR_INIT;
	struct msg_event event;
	char *again;

	if (event_parse(text, len, &event, &err) == -1) {
		if (err.kind != ERR_PROTOCOL)
			abort();
		return;
	}
	if (event.event >= EVENT_COUNT || event.n_ids > MSG_IDS_MAX)
		abort();
	again = event_format(&event, 0);
	if (again == NULL || event_parse(again, strlen(again), &event, &err) ==
	    -1)
		abort();
	free(again);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	log_set_level(LOG_LEVEL_ERROR);
	if (data[0] & 1)
		try_line((const char *)data + 1, size - 1);
	else
		try_event((const char *)data + 1, size - 1);
	return 0;
}
