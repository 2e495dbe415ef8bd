/*
 * daemons.c - the daemons of this host, and asking them.
 *
 * Runs in: mailherdctl.  Blocks, at most some seconds.
 */
#include "ctl/daemons.h"

#include "ctl/socket.h"

#include <glob.h>

#define MAX_DAEMONS 2

static bool
is_one_named(const struct ctl *ctl)
{
	return ctl->socket != NULL || *ctl->conf->control_socket != '\0';
}

static size_t
find_daemons(const struct ctl *ctl, struct daemon daemons[MAX_DAEMONS])
{
	static const struct {
		enum worker_role role;
		const char *name;
	} roles[MAX_DAEMONS] = { { ROLE_SYNC, "sync" }, { ROLE_JOBS, "jobs" } };
	struct conf conf = *ctl->conf;

	if (is_one_named(ctl)) {
		snprintf(daemons[0].path, SOCKET_PATH_SIZE, "%s",
		    ctl->socket != NULL ? ctl->socket : conf.control_socket);
		daemons[0].role = NULL;
		return 1;
	}
	for (size_t i = 0; i < MAX_DAEMONS; i++) {
		conf.worker_role = roles[i].role;
		conf_control_socket(&conf, daemons[i].path, SOCKET_PATH_SIZE);
		daemons[i].role = roles[i].name;
	}
	return MAX_DAEMONS;
}

static int
nobody_listens(const struct daemon *daemons, size_t n, struct err *err)
{
	if (n == 1)
		return -1; /* socket_call has said it */
	return err_set(err, ERR_NETWORK, "no daemon listens at %s or %s (is "
	    "mailherd running? another socket: -s)", daemons[0].path,
	    daemons[1].path);
}

int
daemons_ask_first(struct ctl *ctl, json_t *request, json_t **reply_r,
    const char **role_r, struct err *err)
{
	struct daemon daemons[MAX_DAEMONS];
	size_t n = find_daemons(ctl, daemons);

	for (size_t i = 0; i < n; i++) {
		*role_r = daemons[i].role;
		if (socket_call(daemons[i].path, request, reply_r, err) == 0)
			return 0;
		if (err->kind != ERR_NETWORK)
			return -1;
	}
	return nobody_listens(daemons, n, err);
}

int
daemons_ask_all(struct ctl *ctl, const char *cmd, daemons_on_reply *on_reply,
    void *arg, struct err *err)
{
	struct daemon daemons[MAX_DAEMONS];
	size_t n = find_daemons(ctl, daemons), answers = 0;
	json_t *request = json_pack("{s:s}", "cmd", cmd), *reply;
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i++) {
		if (socket_call(daemons[i].path, request, &reply, err) == 0) {
			on_reply(ctl, &daemons[i], reply, arg);
			json_decref(reply);
			answers++;
		} else if (err->kind != ERR_NETWORK) {
			rc = -1;
		}
	}
	json_decref(request);
	if (rc == 0 && answers == 0)
		return nobody_listens(daemons, n, err);
	return rc;
}

/* The sockets of all instances, as conf_control_socket() names them. */
static void
find_instances(const struct ctl *ctl, glob_t *found)
{
	struct conf conf = *ctl->conf;
	char any[] = "*", pattern[SOCKET_PATH_SIZE];

	conf.worker_role = ROLE_SYNC;
	conf.instance = any;
	conf_control_socket(&conf, pattern, sizeof(pattern));
	if (glob(pattern, 0, NULL, found) != 0)
		found->gl_pathc = 0;
}

int
daemons_ask_owner(struct ctl *ctl, json_t *request, json_t **reply_r,
    struct err *err)
{
	struct daemon daemons[MAX_DAEMONS];
	struct err failure = ERR_INIT;
	glob_t found = { .gl_pathc = 0 };
	int rc;

	find_daemons(ctl, daemons);
	rc = socket_call(daemons[0].path, request, reply_r, err);
	if (rc == 0 || is_one_named(ctl))
		return rc;
	find_instances(ctl, &found);
	for (size_t i = 0; i < found.gl_pathc && rc == -1; i++) {
		if (strcmp(found.gl_pathv[i], daemons[0].path) == 0)
			continue;
		rc = socket_call(found.gl_pathv[i], request, reply_r,
		    &failure);
		/* Somebody listens, though it does not own the account. */
		if (rc == -1 && failure.kind != ERR_NETWORK)
			*err = failure;
	}
	globfree(&found);
	return rc;
}

int
daemons_account_id(struct ctl *ctl, const char *name,
    char text[UUID_TEXT_SIZE], struct err *err)
{
	struct uuid id;

	if (uuid_parse(name, &id) == -1 &&
	    (ctl_store(ctl, true, err) == -1 ||
	    ctl_account(ctl, name, &id, err) == -1))
		return -1;
	uuid_format(&id, text);
	return 0;
}

void
daemons_print_done(const struct ctl *ctl, const char *role, json_t *reply,
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
