/*
 * privileges.c - from root to the daemon's user, once and for good.
 *
 * Runs in: master at start, before the first fork.
 */
#include "config.h"

#include "proc/spawn.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

int
proc_drop_privileges(const char *user, const char *group, struct err *err)
{
	const struct passwd *pw;
	const struct group *gr;
	uid_t uid;
	gid_t gid;

	if (geteuid() != 0 || user[0] == '\0')
		return 0;
	pw = getpwnam(user);
	if (pw == NULL)
		return err_set(err, ERR_CONFIG, "user = %s: no such user",
		    user);
	uid = pw->pw_uid;
	gid = pw->pw_gid;
	if (group[0] != '\0') {
		gr = getgrnam(group);
		if (gr == NULL)
			return err_set(err, ERR_CONFIG,
			    "group = %s: no such group", group);
		gid = gr->gr_gid;
	}
	if (initgroups(user, gid) == -1 || setresgid(gid, gid, gid) == -1 ||
	    setresuid(uid, uid, uid) == -1)
		return err_set(err, ERR_CONFIG, "not become user %s: %s", user,
		    strerror(errno));
	/* never trust a drop that was not tried */
	if (uid != 0 && (setuid(0) == 0 || seteuid(0) == 0))
		return err_set(err, ERR_CONFIG,
		    "became user %s, but root again as well", user);
	return 0;
}
