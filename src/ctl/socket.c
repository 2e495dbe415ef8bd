/*
 * socket.c - client of the control socket.
 *
 * Runs in: mailherdctl.  Blocks, at most TIMEOUT_SECS a step.
 *
 * The daemon answers at once or not at all: a master that does not answer in
 * TIMEOUT_SECS is stopped or hung, and that is what a person is told.
 */
#include "ctl/socket.h"

#include "base/buf.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define TIMEOUT_SECS 10
#define REPLY_MAX (64 << 20)

static int
connect_failed(const char *path, int error, struct err *err)
{
	switch (error) {
	case ENOENT:
	case ECONNREFUSED:
		return err_set(err, ERR_NETWORK, "no daemon listens at %s (is "
		    "mailherd running? another socket: -s)", path);
	case EACCES:
	case EPERM:
		return err_set(err, ERR_PERMANENT, "%s: permission denied (be "
		    "root or the daemon's user)", path);
	default:
		return err_set(err, ERR_TEMPORARY, "%s: %s", path,
		    strerror(error));
	}
}

static int
open_socket(const char *path, int *fd_r, struct err *err)
{
	const struct timeval limit = { .tv_sec = TIMEOUT_SECS };
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd;

	if (strlen(path) >= sizeof(sun.sun_path))
		return err_set(err, ERR_CONFIG, "%s: longer than the %zu "
		    "bytes a socket path may have", path,
		    sizeof(sun.sun_path) - 1);
	memcpy(sun.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd == -1)
		return err_set(err, ERR_TEMPORARY, "socket: %s",
		    strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (connect(fd, (struct sockaddr *)&sun, sizeof(sun)) == -1) {
		connect_failed(path, errno, err);
		close(fd);
		return -1;
	}
	*fd_r = fd;
	return 0;
}

static int
io_failed(const char *path, struct err *err)
{
	if (errno == EAGAIN || errno == EWOULDBLOCK)
		return err_set(err, ERR_TEMPORARY, "%s: no answer in %d s "
		    "(the master is stopped or overloaded)", path,
		    TIMEOUT_SECS);
	return err_set(err, ERR_TEMPORARY, "%s: %s", path, strerror(errno));
}

static int
send_line(int fd, const char *path, json_t *request, struct err *err)
{
	char *text = json_dumps(request, JSON_COMPACT);
	struct buf line = BUF_INIT;
	size_t sent = 0;
	int rc = 0;

	buf_addf(&line, "%s\n", text);
	free(text);
	while (sent < line.len && rc == 0) {
		ssize_t n = send(fd, line.data + sent, line.len - sent,
		    MSG_NOSIGNAL);

		if (n >= 0)
			sent += (size_t)n;
		else if (errno != EINTR)
			rc = io_failed(path, err);
	}
	buf_release(&line);
	return rc;
}

/* Up to the line end, which is not kept. */
static int
socket_read_line(int fd, const char *path, struct buf *line, struct err *err)
{
	char *end, *room;
	ssize_t n;

	for (;;) {
		room = buf_reserve(line, 65536);
		n = recv(fd, room, 65536, 0);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return io_failed(path, err);
		if (n == 0)
			return err_set(err, ERR_TEMPORARY, "%s: the daemon "
			    "hung up without an answer (see its log)", path);
		line->len += (size_t)n;
		end = memchr(line->data + line->len - (size_t)n, '\n',
		    (size_t)n);
		if (end != NULL) {
			line->len = (size_t)(end - line->data);
			return 0;
		}
		if (line->len > REPLY_MAX)
			return err_set(err, ERR_PERMANENT,
			    "%s: the answer does not end", path);
	}
}

static int
check_reply(const char *path, json_t *reply, struct err *err)
{
	const char *why;

	if (!json_is_object(reply))
		return err_set(err, ERR_PERMANENT,
		    "%s: the answer is no JSON object (other version?)", path);
	if (json_is_true(json_object_get(reply, "ok")))
		return 0;
	why = json_string_value(json_object_get(reply, "error"));
	return err_set(err, ERR_PERMANENT, "%s",
	    why != NULL ? why : "refused without a reason");
}

int
socket_call(const char *path, json_t *request, json_t **reply_r,
    struct err *err)
{
	struct buf line = BUF_INIT;
	json_t *reply = NULL;
	int fd = -1, rc;

	if (open_socket(path, &fd, err) == -1)
		return -1;
	rc = send_line(fd, path, request, err);
	if (rc == 0)
		rc = socket_read_line(fd, path, &line, err);
	close(fd);
	if (rc == 0) {
		reply = json_loadb(line.data, line.len, 0, NULL);
		rc = check_reply(path, reply, err);
	}
	buf_release(&line);
	if (rc == -1)
		json_decref(reply);
	else
		*reply_r = reply;
	return rc;
}
