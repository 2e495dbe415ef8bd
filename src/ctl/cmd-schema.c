/*
 * cmd-schema.c - init and migrate.
 *
 * Runs in: mailherdctl.  Blocks.
 *
 * Both may be repeated at any time and by two operators at once: what is
 * there already is left alone.
 */
#include "ctl/commands.h"

#include "base/xmem.h"
#include "proc/vault.h"
#include "blob/blob.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

static void
on_step(void *arg, const char *file)
{
	const struct ctl *ctl = arg;

	if (!ctl->is_json)
		printf("schema    applied %s\n", file);
}

static int
schema_migrate(struct ctl *ctl, int *version_r, struct err *err)
{
	const char *dir = ctl->conf->schema_dir;

	if (store_schema_wanted(dir, version_r, err) == -1)
		return -1;
	if (*version_r != STORE_SCHEMA)
		return err_set(err, ERR_CONFIG, "the files in %s make schema "
		    "%d, this program was built for %d (setting "
		    "\"schema_dir\")", dir, *version_r, STORE_SCHEMA);
	return store_migrate(ctl->store, dir, on_step, ctl, version_r, err);
}

int
cmd_migrate(struct ctl *ctl, const struct args *args, struct err *err)
{
	int version;

	(void)args;
	if (schema_migrate(ctl, &version, err) == -1)
		return -1;
	if (ctl->is_json)
		ctl_print_json(json_pack("{s:i}", "schema", version));
	else
		printf("schema    at version %d\n", version);
	return 0;
}

/* --- init --------------------------------------------------------------- */

/* mkdir -p; only the last directory is ours to restrict. */
static int
schema_make_directory(const char *path, bool *created_r, struct err *err)
{
	char *part = xstrdup(path);
	int rc = 0;

	*created_r = false;
	for (char *p = part + 1; *p != '\0' && rc == 0; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(part, 0755) == -1 && errno != EEXIST)
			rc = err_set(err, ERR_CONFIG, "%s: %s", part,
			    strerror(errno));
		*p = '/';
	}
	if (rc == 0 && mkdir(path, 0750) == 0)
		*created_r = true;
	else if (rc == 0 && errno != EEXIST)
		rc = err_set(err, ERR_CONFIG, "%s: %s", path,
		    strerror(errno));
	free(part);
	return rc;
}

/* It is the daemon that writes blobs. */
static int
give_to_daemon(const struct ctl *ctl, const char *path, struct err *err)
{
	if (ctl->has_daemon &&
	    chown(path, ctl->daemon_uid, ctl->daemon_gid) == -1)
		return err_set(err, ERR_CONFIG, "%s: chown to %s: %s", path,
		    ctl->conf->user, strerror(errno));
	return 0;
}

static void
print_step(const struct ctl *ctl, const char *what, const char *path,
    bool created)
{
	if (!ctl->is_json)
		printf("%-8s  %s %s\n", what, created ? "created" : "found",
		    path);
}

int
cmd_init(struct ctl *ctl, const struct args *args, struct err *err)
{
	const struct conf *conf = ctl->conf;
	bool key_created, dir_created;
	int version;

	(void)args;
	ctl_act_as_caller();
	if (vault_create_key(conf->secret_key_file, &key_created, err) == -1)
		return -1;
	print_step(ctl, "key file", conf->secret_key_file, key_created);
	if (schema_make_directory(conf->blob_dir, &dir_created, err) == -1)
		return -1;
	if (dir_created && give_to_daemon(ctl, conf->blob_dir, err) == -1)
		return -1;
	ctl_act_as_daemon(ctl);
	if (schema_migrate(ctl, &version, err) == -1 ||
	    store_check(ctl->store, err) == -1 ||
	    blob_store_init(ctl->store, conf->blob_dir, err) == -1)
		return -1;
	print_step(ctl, "blobs", conf->blob_dir, dir_created);
	if (!ctl->is_json) {
		printf("schema    at version %d\n", version);
		if (key_created)
			ctl_note("keep a copy of %s: without it no stored "
			    "password can be opened", conf->secret_key_file);
		return 0;
	}
	ctl_print_json(json_pack("{s:i, s:b, s:b}", "schema", version,
	    "key_created", key_created, "blob_dir_created", dir_created));
	return 0;
}
