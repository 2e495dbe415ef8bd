/*
 * password.c - a secret from a file, from standard input or typed in.
 *
 * Runs in: mailherdctl.  Blocks.
 */
#include "ctl/password.h"

#include <bsd/readpassphrase.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Reads to the end; the file may be a pipe. */
static int
password_read_all(
    int fd, const char *name, char *secret, size_t *len_r, struct err *err)
{
	size_t len = 0;
	ssize_t n;

	while ((n = read(fd, secret + len, PASSWORD_SIZE - len)) != 0) {
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return err_set(err, ERR_PERMANENT, "%s: %s", name,
			    strerror(errno));
		len += (size_t)n;
		if (len == PASSWORD_SIZE)
			return err_set(err, ERR_PERMANENT, "%s: longer than a "
			    "password can be (%d bytes)", name,
			    PASSWORD_SIZE - 1);
	}
	*len_r = len;
	return 0;
}

static int
password_check(char *secret, size_t *len, const char *name, struct err *err)
{
	if (*len > 0 && secret[*len - 1] == '\n')
		(*len)--;
	if (*len > 0 && secret[*len - 1] == '\r')
		(*len)--;
	secret[*len] = '\0';
	if (*len == 0)
		return err_set(err, ERR_PERMANENT, "%s: no password in it",
		    name);
	if (memchr(secret, '\0', *len) != NULL ||
	    memchr(secret, '\n', *len) != NULL)
		return err_set(err, ERR_PERMANENT,
		    "%s: a password is one line", name);
	return 0;
}

static int
from_terminal(const char *prompt, char *secret, size_t *len_r,
    struct err *err)
{
	if (readpassphrase(prompt, secret, PASSWORD_SIZE,
	    RPP_ECHO_OFF | RPP_REQUIRE_TTY) == NULL)
		return err_set(err, ERR_PERMANENT, "no terminal to ask for "
		    "the password (use --password-file FILE, \"-\" = standard "
		    "input)");
	*len_r = strlen(secret);
	return password_check(secret, len_r, "terminal", err);
}

int
password_read(const char *file, const char *prompt,
    char secret_r[PASSWORD_SIZE], size_t *len_r, struct err *err)
{
	const char *name = "standard input";
	int fd = STDIN_FILENO, rc;

	if (file == NULL)
		return from_terminal(prompt, secret_r, len_r, err);
	if (strcmp(file, "-") != 0) {
		name = file;
		fd = open(file, O_RDONLY | O_CLOEXEC);
		if (fd == -1)
			return err_set(err, ERR_PERMANENT, "%s: %s", file,
			    strerror(errno));
	}
	rc = password_read_all(fd, name, secret_r, len_r, err);
	if (fd != STDIN_FILENO)
		close(fd);
	return rc == 0 ? password_check(secret_r, len_r, name, err) : -1;
}
