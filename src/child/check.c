/*
 * check.c - what PostgreSQL and the blob directory must be for a start.
 *
 * Runs in: a process of its own before the master begins, and mailherd -t.
 * Blocks.
 *
 * Whatever a person has to mend stops the start: a daemon that runs and does
 * nothing is found hours later.  What passes by itself does not.
 */
#include "child/child.h"

#include "blob/blob.h"
#include "store/store.h"

#include <sysexits.h>

static int
check_told(const char *setting, const struct err *err)
{
	log_error(NULL, "%s: %s", setting, err->text);
	return err->kind == ERR_CONFIG ? EX_CONFIG : EX_UNAVAILABLE;
}

int
child_check_start(const void *arg)
{
	const struct conf *conf = arg;
	struct err err = ERR_INIT;
	struct store *store;
	int rc = EX_OK;

	if (store_open(&store, conf->database, "mailherd start", &err) == -1)
		return check_told("database", &err);
	if (store_check(store, &err) == -1)
		rc = check_told("database", &err);
	else if (blob_store_check(store, conf->blob_dir, &err) == -1)
		rc = check_told("blob_dir", &err);
	store_close(&store);
	return rc;
}
