/*
 * daemons.c - the daemons of this host, and asking them.
 *
 * Runs in: mailherdctl.  Blocks, at most some seconds.
 */
#include "ctl/daemons.h"

#include "ctl/socket.h"

#include <glob.h>
#include <libgen.h>

/* "sync-0" of ".../sync-0.sock": role and instance. */
static void
name_daemon(struct daemon *daemon)
{
	const char *base = strrchr(daemon->path, '/');
	size_t len;

	base = base != NULL ? base + 1 : daemon->path;
	len = strlen(base);
	if (len > 5 && strcmp(base + len - 5, ".sock") == 0)
		len -= 5;
	snprintf(daemon->name, sizeof(daemon->name), "%.*s", (int)len, base);
}

static void
add_daemon(struct daemons *found, struct arena *arena, const char *path)
{
	struct daemon *bigger = ARENA_ARRAY(arena, struct daemon,
	    found->n + 1);

	if (found->n > 0)
		memcpy(bigger, found->items, found->n * sizeof(*bigger));
	found->items = bigger;
	snprintf(bigger[found->n].path, SOCKET_PATH_SIZE, "%s", path);
	name_daemon(&bigger[found->n++]);
}

/* The sockets of all instances of a role, as conf_control_socket() names
 * them. */
static void
add_role(struct ctl *ctl, enum worker_role role, struct daemons *found)
{
	struct conf conf = *ctl->conf;
	char any[] = "*", pattern[SOCKET_PATH_SIZE];
	glob_t paths = { .gl_pathc = 0 };

	conf.worker_role = role;
	conf.instance = any;
	conf_control_socket(&conf, pattern, sizeof(pattern));
	if (glob(pattern, 0, NULL, &paths) != 0)
		paths.gl_pathc = 0;
	for (size_t i = 0; i < paths.gl_pathc; i++)
		add_daemon(found, ctl->arena, paths.gl_pathv[i]);
	globfree(&paths);
}

/* A socket, not a directory of them. */
static bool
is_path(const char *control_socket)
{
	size_t len = strlen(control_socket);

	return len > 0 && control_socket[len - 1] != '/';
}

/* The one that is named, or all of this host, sync before jobs. */
static struct daemons
find_daemons(struct ctl *ctl)
{
	struct daemons found = { .n = 0 };

	if (ctl->socket != NULL)
		add_daemon(&found, ctl->arena, ctl->socket);
	else if (is_path(ctl->conf->control_socket))
		add_daemon(&found, ctl->arena, ctl->conf->control_socket);
	if (found.n > 0)
		return found;
	add_role(ctl, ROLE_SYNC, &found);
	add_role(ctl, ROLE_JOBS, &found);
	return found;
}

static int
nobody_listens(struct ctl *ctl, const struct daemons *found, struct err *err)
{
	char path[SOCKET_PATH_SIZE];

	if (found->n == 1)
		return -1; /* socket_call has said it */
	if (found->n > 1)
		return err_set(err, ERR_NETWORK, "no daemon listens at %s or "
		    "any other of the %zu sockets there (is mailherd "
		    "running?)", found->items[0].path, found->n);
	conf_control_socket(ctl->conf, path, sizeof(path));
	return err_set(err, ERR_NETWORK, "no daemon listens in %s (is "
	    "mailherd running? another socket: -s)", dirname(path));
}

int
daemons_ask_all(struct ctl *ctl, json_t *request, daemons_on_reply *on_reply,
    void *arg, struct err *err)
{
	struct daemons found = find_daemons(ctl);
	struct err refused = ERR_INIT;
	size_t answers = 0;
	json_t *reply;

	for (size_t i = 0; i < found.n; i++) {
		if (socket_call(found.items[i].path, request, &reply, err) ==
		    0) {
			on_reply(ctl, &found.items[i], reply, arg);
			json_decref(reply);
			answers++;
		} else if (err->kind != ERR_NETWORK) {
			refused = *err;
			err_prefix(&refused, "%s", found.items[i].name);
		}
	}
	if (refused.kind != ERR_NONE) {
		*err = refused;
		return -1;
	}
	return answers > 0 ? 0 : nobody_listens(ctl, &found, err);
}

int
daemons_ask_owner(struct ctl *ctl, json_t *request, json_t **reply_r,
    struct err *err)
{
	struct daemons found = find_daemons(ctl);
	struct err failure = ERR_INIT;
	bool is_any = false;

	for (size_t i = 0; i < found.n; i++) {
		if (socket_call(found.items[i].path, request, reply_r,
		    &failure) == 0)
			return 0;
		/* Of those that listen, though they do not own the account,
		 * a sync daemon says it best. */
		if (!is_any || (err->kind == ERR_NETWORK &&
		    failure.kind != ERR_NETWORK))
			*err = failure;
		is_any = true;
	}
	return is_any ? -1 : nobody_listens(ctl, &found, err);
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
daemons_print_done(const struct ctl *ctl, const char *name, json_t *reply,
    const char *done)
{
	const char *text = json_string_value(json_object_get(reply, "text"));
	struct buf line = BUF_INIT;

	if (ctl->is_json) {
		if (name != NULL)
			json_object_set_new(reply, "daemon",
			    json_string(name));
		ctl_print_json(json_incref(reply));
		return;
	}
	if (name != NULL)
		buf_addf(&line, "%s: ", name);
	display_clean(&line, text != NULL ? text : done);
	puts(line.data);
	buf_release(&line);
}
