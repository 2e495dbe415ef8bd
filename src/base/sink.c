/*
 * sink.c - where the lines of the log go.
 *
 * Runs in: every process.  Never blocks, once sink_never_wait() was called.
 *
 * Who reads a log may be slow, stopped or stuck, and that must cost lines of
 * the log, not leases or passes.  O_NONBLOCK belongs to the open file
 * description, and that of standard error is shared with the shell, the
 * service manager or whoever started us: they would lose output of theirs.  So
 * a pipe or terminal is opened again by way of /proc, which gives a description
 * of our own; a socket is told with each packet.  A regular file is written
 * to the page cache.
 */
#include "base/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static struct {
	int fd;
	bool is_socket;
	bool is_stream; /* of syslog: lines are told apart by NUL */
	bool must_ask;	/* blocking: is there room? */
	char file[512], syslog[108];
} sink = { .fd = STDERR_FILENO };

static void
sink_use(int fd)
{
	struct stat st;

	if (sink.fd > STDERR_FILENO && sink.fd != fd)
		close(sink.fd);
	sink.fd = fd;
	sink.is_socket = fd != -1 && fstat(fd, &st) == 0 &&
	    S_ISSOCK(st.st_mode);
}

int
sink_set_file(const char *path)
{
	int fd = STDERR_FILENO;

	if (path != NULL && path[0] != '\0') {
		/* O_NONBLOCK: it may be a fifo. */
		fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC |
		    O_NONBLOCK | O_NOCTTY, 0640);
		if (fd == -1)
			return -1;
	}
	sink_use(fd);
	snprintf(sink.file, sizeof(sink.file), "%s", path ? path : "");
	sink.syslog[0] = '\0';
	sink.is_stream = false;
	return 0;
}

/* --- syslog ------------------------------------------------------------- */

static int
syslog_connect(const char *path, int type)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	if (fd != -1 && connect(fd, (struct sockaddr *)&addr,
		sizeof(addr)) == -1) {
		close(fd);
		return -1;
	}
	return fd;
}

static int
syslog_open(void)
{
	int fd = syslog_connect(sink.syslog, SOCK_DGRAM);

	sink.is_stream = fd == -1 && errno == EPROTOTYPE;
	if (sink.is_stream)
		fd = syslog_connect(sink.syslog, SOCK_STREAM);
	sink_use(fd);
	return fd == -1 ? -1 : 0;
}

void
sink_set_syslog(const char *path)
{
	snprintf(sink.syslog, sizeof(sink.syslog), "%s", path);
	sink.file[0] = '\0';
	syslog_open(); /* or with the first line */
}

int
sink_reopen(void)
{
	char path[sizeof(sink.file)];

	if (sink.syslog[0] != '\0')
		return syslog_open();
	if (sink.file[0] == '\0')
		return 0;
	snprintf(path, sizeof(path), "%s", sink.file);
	return sink_set_file(path);
}

/* --- never waiting ------------------------------------------------------ */

void
sink_never_wait(void)
{
	static const int shared = STDERR_FILENO;
	struct stat st;
	char path[32];
	int own, flags;

	sink_use(sink.fd); /* of which sort it is */
	if (fstat(shared, &st) == -1 ||
	    !(S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode)))
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", shared);
	own = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (own != -1) {
		/* Libraries write there, too. */
		dup2(own, shared);
		close(own);
		return;
	}
	/*
	 * Somebody else's.  Of a pipe, its writers are those who started us,
	 * and a full pipe costs them lines as well: better than our leases.
	 * The terminal of a shell is left as it is.
	 */
	flags = fcntl(shared, F_GETFL);
	if (S_ISFIFO(st.st_mode) && flags != -1)
		fcntl(shared, F_SETFL, flags | O_NONBLOCK);
	else
		sink.must_ask = true;
}

static bool
sink_has_room(void)
{
	struct pollfd pfd = { .fd = sink.fd, .events = POLLOUT };

	return poll(&pfd, 1, 0) == 1 && (pfd.revents & POLLOUT) != 0;
}

static int
sink_send(const char *line, size_t len)
{
	ssize_t n;

	if (sink.is_stream)
		len++; /* with the NUL */
	do
		n = send(sink.fd, line, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n == -1 && errno == EINTR);
	return n == (ssize_t)len ? 0 : -1;
}

static bool
is_full(int error)
{
	return error == EAGAIN || error == ENOBUFS;
}

int
sink_write(const char *line, size_t len)
{
	ssize_t n;

	if (sink.syslog[0] != '\0') {
		if (sink.fd != -1 && sink_send(line, len) == 0)
			return 0;
		/* syslogd was started again? */
		if (sink.fd != -1 && is_full(errno))
			return -1;
		return syslog_open() == 0 ? sink_send(line, len) : -1;
	}
	if (sink.is_socket)
		return sink_send(line, len);
	if (sink.must_ask && sink.fd == STDERR_FILENO && !sink_has_room())
		return -1;
	do
		n = write(sink.fd, line, len);
	while (n == -1 && errno == EINTR);
	return n == (ssize_t)len ? 0 : -1;
}

int
sink_fd(void)
{
	return sink.fd != -1 ? sink.fd : STDERR_FILENO;
}
