/*
 * control.c - the control socket.
 *
 * Runs in: master.  Never blocks.
 *
 * Clients are people's tools and may be slow, stuck or hostile: their number,
 * the length of a line, the time to finish it and the time to read the answer
 * are bounded, and a client beyond a bound is dropped without ceremony.  One
 * too many takes the place of who was silent longest, so that an operator gets
 * in whatever hangs there.  Without descriptors nobody is let in for a while.
 */
#include "config.h"

#include "master/control.h"

#include "base/log.h"
#include "base/xmem.h"
#include "master/state.h"
#include "proc/spawn.h"
#include "redis/loop.h"

#include <bsd/string.h>
#include <bsd/sys/queue.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define CLIENTS_MAX 32
/* A silent client is dropped, and one that does not read its answer. */
#define READ_SECS 300
#define WRITE_SECS 10
/* From the first byte of a line to its end. */
#define LINE_MSECS 10000
/* Without descriptors: until the next try. */
#define PAUSE_MSECS 500
/* Descriptors that no client gets: those are Redis's and the children's. */
#define RESERVE (SPAWN_RESERVE / 2)

struct control_client {
	TAILQ_ENTRY(control_client) entry;
	struct control *control;
	struct bufferevent *bev;
	struct event *line_timer; /* it has begun one */
};

struct control {
	struct master *m;
	char path[108];
	struct evconnlistener *listener;
	struct event *resume;
	/* who was silent longest is first */
	TAILQ_HEAD(, control_client) clients;
	size_t n_clients;
};

static void
client_free(struct control_client *client)
{
	TAILQ_REMOVE(&client->control->clients, client, entry);
	client->control->n_clients--;
	bufferevent_free(client->bev); /* closes */
	event_free(client->line_timer);
	free(client);
}

static void
client_is_heard(struct control_client *client)
{
	struct control *control = client->control;

	TAILQ_REMOVE(&control->clients, client, entry);
	TAILQ_INSERT_TAIL(&control->clients, client, entry);
}

static void
client_on_line_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	client_free(arg);
}

/* Byte for byte, an unfinished line would last for ever. */
static void
client_watch_line(struct control_client *client, bool is_begun)
{
	if (!is_begun)
		event_del(client->line_timer);
	else if (!event_pending(client->line_timer, EV_TIMEOUT, NULL))
		event_in_msecs(client->line_timer, LINE_MSECS);
}

static void
client_on_read(struct bufferevent *bev, void *arg)
{
	struct control_client *client = arg;
	struct evbuffer *in = bufferevent_get_input(bev);
	char *line, *answer;
	size_t len;

	/* One answer at a time: the next line waits until it is read. */
	if (evbuffer_get_length(bufferevent_get_output(bev)) > 0)
		return;
	line = evbuffer_readln(in, &len, EVBUFFER_EOL_LF);
	if (line == NULL) {
		if (evbuffer_get_length(in) >= CONTROL_LINE_MAX)
			client_free(client);
		else
			client_watch_line(client, evbuffer_get_length(in) > 0);
		return;
	}
	client_watch_line(client, false);
	client_is_heard(client);
	if (len >= CONTROL_LINE_MAX) {
		free(line);
		client_free(client);
		return;
	}
	answer = control_answer(client->control->m, line, len);
	free(line);
	bufferevent_write(bev, answer, strlen(answer));
	bufferevent_write(bev, "\n", 1);
	free(answer);
}

static void
client_on_written(struct bufferevent *bev, void *arg)
{
	/* Lines may have come in meanwhile. */
	if (evbuffer_get_length(bufferevent_get_input(bev)) > 0)
		client_on_read(bev, arg);
}

static void
client_on_end(struct bufferevent *bev, short what, void *arg)
{
	(void)bev;
	(void)what;
	client_free(arg);
}

static bool
client_may_connect(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
	    (peer.uid == 0 || peer.uid == geteuid());
}

/* The lowest free number is what a new one gets. */
static bool
control_has_descriptors(int fd)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) == -1 ||
	    (rlim_t)fd + RESERVE < limit.rlim_cur;
}

static void
control_on_resume(evutil_socket_t fd, short what, void *arg)
{
	struct control *control = arg;

	(void)fd;
	(void)what;
	evconnlistener_enable(control->listener);
}

/* Whom we cannot let in would wake us for ever. */
static void
control_on_accept_error(struct evconnlistener *listener, void *arg)
{
	struct control *control = arg;

	log_warn(NULL, "control socket: %s", strerror(errno));
	evconnlistener_disable(listener);
	event_in_msecs(control->resume, PAUSE_MSECS);
}

static void
control_on_accept(struct evconnlistener *listener, evutil_socket_t fd,
    struct sockaddr *from, int from_len, void *arg)
{
	static const struct timeval read_tv = { READ_SECS, 0 };
	static const struct timeval write_tv = { WRITE_SECS, 0 };
	struct control *control = arg;
	struct control_client *client;

	(void)listener;
	(void)from;
	(void)from_len;
	if (!client_may_connect(fd) || !control_has_descriptors(fd)) {
		close(fd);
		return;
	}
	if (control->n_clients >= CLIENTS_MAX)
		client_free(TAILQ_FIRST(&control->clients));
	client = xcalloc(1, sizeof(*client));
	client->control = control;
	client->bev = bufferevent_socket_new(control->m->base, fd,
	    BEV_OPT_CLOSE_ON_FREE);
	if (client->bev == NULL) {
		close(fd);
		free(client);
		return;
	}
	client->line_timer = event_new(control->m->base, -1, 0,
	    client_on_line_timer, client);
	TAILQ_INSERT_TAIL(&control->clients, client, entry);
	control->n_clients++;
	bufferevent_setcb(client->bev, client_on_read, client_on_written,
	    client_on_end, client);
	bufferevent_setwatermark(client->bev, EV_READ, 0, CONTROL_LINE_MAX);
	bufferevent_set_timeouts(client->bev, &read_tv, &write_tv);
	bufferevent_enable(client->bev, EV_READ | EV_WRITE);
}

/* --- the socket --------------------------------------------------------- */

/* A socket nobody listens on is what a killed master left. */
static int
control_remove_stale(const struct sockaddr_un *addr, struct err *err)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
	    0);
	int result;
	struct stat st;

	if (lstat(addr->sun_path, &st) == 0 && !S_ISSOCK(st.st_mode)) {
		close(fd);
		return err_set(err, ERR_CONFIG, "%s is no socket",
		    addr->sun_path);
	}
	result = connect(fd, (const struct sockaddr *)addr, sizeof(*addr));
	if (result == 0 || errno == EAGAIN) {
		close(fd);
		return err_set(err, ERR_TEMPORARY,
		    "%s: another mailherd is running", addr->sun_path);
	}
	close(fd);
	unlink(addr->sun_path);
	return 0;
}

static int
control_listen(struct control *control, struct err *err)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	mode_t old;
	int fd;

	if (strlcpy(addr.sun_path, control->path, sizeof(addr.sun_path)) >=
	    sizeof(addr.sun_path))
		return err_set(err, ERR_CONFIG,
		    "control_socket: the path is too long");
	if (control_remove_stale(&addr, err) == -1)
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	old = umask(0177);
	if (fd == -1 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) ==
	    -1 || listen(fd, 16) == -1) {
		err_set(err, errno == EADDRINUSE ? ERR_TEMPORARY : ERR_CONFIG,
		    "control socket %s: %s", control->path, strerror(errno));
		umask(old);
		if (fd != -1)
			close(fd);
		return -1;
	}
	umask(old);
	control->listener =
	    evconnlistener_new(control->m->base, control_on_accept, control,
		LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
	evconnlistener_set_error_cb(control->listener, control_on_accept_error);
	control->resume = event_new(control->m->base, -1, 0, control_on_resume,
	    control);
	return 0;
}

int
control_new(struct control **control_r, struct master *m, struct err *err)
{
	struct control *control = xcalloc(1, sizeof(*control));

	control->m = m;
	TAILQ_INIT(&control->clients);
	conf_control_socket(m->conf, control->path, sizeof(control->path));
	if (control_listen(control, err) == -1) {
		control_free(&control);
		return -1;
	}
	*control_r = control;
	return 0;
}

void
control_free(struct control **control_p)
{
	struct control *control = *control_p;

	if (control == NULL)
		return;
	*control_p = NULL;
	while (!TAILQ_EMPTY(&control->clients))
		client_free(TAILQ_FIRST(&control->clients));
	if (control->resume != NULL)
		event_free(control->resume);
	if (control->listener != NULL) {
		evconnlistener_free(control->listener);
		unlink(control->path);
	}
	free(control);
}
