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

#include <errno.h>
#include <grp.h>
#include <pwd.h>
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
migrate(struct ctl *ctl, int *version_r, struct err *err)
{
	return store_migrate(ctl->store, ctl->conf->schema_dir, on_step, ctl,
	    version_r, err);
}

int
cmd_migrate(struct ctl *ctl, const struct args *args, struct err *err)
{
	int version;

	(void)args;
	if (migrate(ctl, &version, err) == -1)
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
make_directory(const char *path, bool *created_r, struct err *err)
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

/* The daemon drops privileges before it writes blobs. */
static int
give_to_daemon(const struct conf *conf, const char *path, struct err *err)
{
	const struct passwd *pw;
	const struct group *gr = NULL;

	if (geteuid() != 0 || *conf->user == '\0')
		return 0;
	pw = getpwnam(conf->user);
	if (pw == NULL)
		return err_set(err, ERR_CONFIG, "no user \"%s\" (setting "
		    "\"user\"; create it: adduser --system --group %s)",
		    conf->user, conf->user);
	if (*conf->group != '\0' && (gr = getgrnam(conf->group)) == NULL)
		return err_set(err, ERR_CONFIG, "no group \"%s\" (setting "
		    "\"group\")", conf->group);
	if (chown(path, pw->pw_uid, gr != NULL ? gr->gr_gid : pw->pw_gid) ==
	    -1)
		return err_set(err, ERR_CONFIG, "%s: chown to %s: %s", path,
		    conf->user, strerror(errno));
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
	if (vault_create_key(conf->secret_key_file, &key_created, err) == -1)
		return -1;
	print_step(ctl, "key file", conf->secret_key_file, key_created);
	if (make_directory(conf->blob_dir, &dir_created, err) == -1)
		return -1;
	if (dir_created && give_to_daemon(conf, conf->blob_dir, err) == -1)
		return -1;
	print_step(ctl, "blobs", conf->blob_dir, dir_created);
	if (migrate(ctl, &version, err) == -1)
		return -1;
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
