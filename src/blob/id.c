/*
 * id.c - which blob directory belongs to which database.
 *
 * Runs in: children, mailherdctl, the check at start.  May block on the disk.
 *
 * Each database has an id (table blob_store), and its blob directory has the
 * same in the file store-id.  A mount point whose file system is not there, an
 * empty disk, another database's directory: none of them has it, and nothing
 * is written there.  Segments are numbered, so that rows which point into the
 * wrong directory would read as other people's mail.
 */
#include "blob/blob_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ID_FILE "store-id"

int
blob_dir_id(const struct blob_dir *dir, struct uuid *id_r, struct err *err)
{
	char text[UUID_TEXT_SIZE];
	ssize_t n;
	int fd = openat(dir->fd, ID_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd == -1 && errno == ENOENT)
		return err_set(err, ERR_STORAGE, "%s: no blob store, the file "
		    ID_FILE " is missing (is the file system mounted?  "
		    "mailherdctl init makes a new one)", dir->path);
	if (fd == -1)
		return blob_fail(dir, ID_FILE, "not opened", err);
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	if (uuid_parse(text, id_r) == -1)
		return err_set(err, ERR_STORAGE, "%s/" ID_FILE ": no id in it",
		    dir->path);
	return 0;
}

/* link() and not rename(): what is there is never replaced. */
static int
id_file_write(const struct blob_dir *dir, const struct uuid *id,
    struct err *err)
{
	char name[64], text[UUID_TEXT_SIZE + 1];
	size_t len;
	int fd, rc = 0;

	snprintf(name, sizeof(name), ID_FILE ".%d", (int)getpid());
	unlinkat(dir->fd, name, 0);
	fd = openat(dir->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
	    0640);
	if (fd == -1)
		return blob_fail(dir, name, "not created", err);
	uuid_format(id, text);
	len = strlen(text);
	text[len++] = '\n';
	if (write(fd, text, len) != (ssize_t)len || fsync(fd) == -1)
		rc = blob_fail(dir, name, "not written", err);
	close(fd);
	if (rc == 0 && linkat(dir->fd, name, dir->fd, ID_FILE, 0) == -1)
		rc = blob_fail(dir, ID_FILE, "not created", err);
	unlinkat(dir->fd, name, 0);
	return rc == 0 ? blob_dir_sync(dir, "", err) : -1;
}

static int
refuse_other(const struct blob_dir *dir, const struct uuid *found,
    const struct uuid *wanted, struct err *err)
{
	char a[UUID_TEXT_SIZE], b[UUID_TEXT_SIZE];

	return err_set(err, ERR_CONFIG, "%s belongs to another database: its "
	    "id is %s, this database's %s (settings \"blob_dir\", "
	    "\"database\")", dir->path, uuid_format(found, a),
	    uuid_format(wanted, b));
}

bool
blob_dir_has_id(const struct blob_dir *dir)
{
	return faccessat(dir->fd, ID_FILE, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
	    errno != ENOENT;
}

int
blob_dir_check(const struct blob_dir *dir, const struct uuid *id,
    struct err *err)
{
	struct uuid found;

	if (blob_dir_id(dir, &found, err) == -1)
		return -1;
	return uuid_is_equal(&found, id) ? 0 :
	    refuse_other(dir, &found, id, err);
}

int
blob_store_make(const char *path, const struct uuid *id, struct err *err)
{
	struct blob_dir dir;
	int rc;

	if (blob_dir_open(&dir, path, err) == -1)
		return -1;
	rc = blob_dir_has_id(&dir) ? blob_dir_check(&dir, id, err) : 0;
	if (rc == 0)
		rc = blob_dir_make_subdirectories(&dir, err);
	if (rc == 0 && !blob_dir_has_id(&dir))
		rc = id_file_write(&dir, id, err);
	blob_dir_close(&dir);
	return rc;
}
