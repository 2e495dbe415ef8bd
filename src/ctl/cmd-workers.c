/*
 * cmd-workers.c - the fleet, from the heartbeats in Redis.
 *
 * Runs in: mailherdctl.  Blocks.
 */
#include "ctl/commands.h"

/* Keys beyond worker_id, role and alive_s are the heartbeat's own. */
static const struct column worker_columns[] = {
	{ "worker_id", "WORKER", COLUMN_TEXT, COLUMN_FLEX, 20 },
	{ "role", NULL, COLUMN_TEXT },
	{ "owned", NULL, COLUMN_NUMBER },
	{ "hot", NULL, COLUMN_NUMBER },
	{ "warm", NULL, COLUMN_NUMBER },
	{ "cold", NULL, COLUMN_NUMBER },
	{ "sockets_open", "SOCKETS", COLUMN_NUMBER },
	{ "running", NULL, COLUMN_NUMBER, COLUMN_DROP },
	{ "ts", "SEEN", COLUMN_AGE },
	{ "ttl_s", NULL, COLUMN_NUMBER, COLUMN_JSON_ONLY },
	{ "heartbeat", NULL, COLUMN_JSON, COLUMN_JSON_ONLY },
};

/* The heartbeat with what stands around it; tiers become members. */
static json_t *
worker_object(const struct worker_view *worker, const char *role)
{
	json_t *heartbeat = json_loads(worker->heartbeat, 0, NULL), *object;
	const char *key;
	json_t *value;

	object = json_is_object(heartbeat) ? json_copy(heartbeat)
					   : json_object();
	json_object_foreach(json_object_get(heartbeat, "tiers"), key, value)
		json_object_set(object, key, value);
	json_object_set_new(object, "worker_id",
	    json_string(worker->worker_id));
	json_object_set_new(object, "role", json_string(role));
	json_object_set_new(object, "ttl_s", json_integer(worker->ttl_secs));
	json_object_set_new(object, "heartbeat", heartbeat != NULL
	    ? heartbeat : json_null());
	return object;
}

static int
add_family(struct ctl *ctl, struct table *t, const char *role,
    struct err *err)
{
	struct worker_view *workers;
	size_t n;

	if (lease_client_workers(ctl->redis, role, ctl->arena, &workers, &n,
	    err) == -1)
		return -1;
	for (size_t i = 0; i < n; i++) {
		json_t *object = worker_object(&workers[i], role);

		table_add_object(t, object);
		json_decref(object);
	}
	return 0;
}

int
cmd_workers(struct ctl *ctl, const struct args *args, struct err *err)
{
	struct table *t = table_new(worker_columns, N_COLUMNS(worker_columns),
	    ctl->is_json);
	int rc;

	(void)args;
	rc = add_family(ctl, t, "sync", err);
	if (rc == 0)
		rc = add_family(ctl, t, "jobs", err);
	if (rc == 0)
		table_print(t, "no worker is alive (its heartbeat lasts 30 s)");
	table_free(&t);
	return rc;
}
