/*
 * bind.c - a blob directory and its database: made for each other, and
 * checked.
 *
 * Runs in: clerk, mailherdctl, the check at start.  Blocks.
 */
#include "blob/blob_private.h"
#include "store/store.h"

static int
blob_bind_on_bytes(void *arg, const void *bytes, size_t len)
{
	(void)arg;
	(void)bytes;
	(void)len;
	return 0;
}

/* A directory from before ids, or put back from a backup without the file, is
 * this database's when the newest blob is in it. */
static int
newest_is_there(struct store *s, const char *path, struct err *err)
{
	struct err missing = ERR_INIT;
	struct blob_ref newest;
	bool is_any;

	if (store_blob_newest(s, &newest, &is_any, err) == -1)
		return -1;
	if (!is_any ||
	    blob_read(path, &newest, blob_bind_on_bytes, NULL, &missing) == 0)
		return 0;
	return err_set(err, ERR_CONFIG, "%s: the database has blobs that are "
	    "not there (is the file system mounted?): %s", path,
	    missing.text);
}

int
blob_store_init(struct store *s, const char *path, struct err *err)
{
	struct blob_dir dir;
	bool is_new;

	if (blob_dir_open(&dir, path, err) == -1)
		return -1;
	is_new = !blob_dir_has_id(&dir);
	blob_dir_close(&dir);
	if (is_new && newest_is_there(s, path, err) == -1)
		return -1;
	return blob_store_make(path, store_blob_id(s), err);
}

int
blob_store_check(struct store *s, const char *path, struct err *err)
{
	struct blob_dir dir;
	int rc;

	if (blob_dir_open(&dir, path, err) == -1)
		rc = -1;
	else {
		rc = blob_dir_check(&dir, store_blob_id(s), err);
		blob_dir_close(&dir);
	}
	if (rc == -1)
		err->kind = ERR_CONFIG;
	return rc;
}
