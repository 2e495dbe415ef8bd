/*
 * metrics.c - answers Prometheus.
 *
 * Runs in: the metrics child.  Waits for all its clients at once.
 *
 * Whoever reaches the port may say what he likes, as slowly as he likes and as
 * often: that is why this is no business of the master's.  This child listens
 * by itself, knows no secret, has few descriptors and little priority, and
 * asks the master for the text at most once in FRESH_MSECS.  Each client has a
 * place and a time; while all places are taken, others wait in the kernel.
 */
#include "config.h"

#include "child/child.h"

#include "base/buf.h"
#include "base/clock.h"
#include "child/hooks.h"
#include "child/http.h"

#include <bsd/string.h>

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CLIENTS_MAX 32
/* Clients, channel, listener, log, what libraries open for a moment. */
#define DESCRIPTORS_MAX (CLIENTS_MAX + 32)
#define READ_MSECS 5000	 /* for the whole request */
#define WRITE_MSECS 10000 /* for the text and the whole answer */
#define CLOSE_MSECS 1000  /* to read what we do not want to know */
#define FRESH_MSECS 1000
/* Without descriptors or memory: until the next try. */
#define PAUSE_MSECS 500

enum client_state {
	CLIENT_NONE,
	CLIENT_READING,
	CLIENT_WAITING, /* for the text */
	CLIENT_WRITING,
	CLIENT_CLOSING, /* so that the answer is not lost with an RST */
};

struct client {
	enum client_state state;
	int fd;
	int64_t deadline_mono;
	struct http_request request;
	size_t n_in;
	char in[HTTP_HEAD_MAX];
	struct buf out;
	size_t n_sent;
};

static struct {
	struct runtime rt;
	int listener;
	int64_t paused_until_mono;
	struct client clients[CLIENTS_MAX];
	struct buf text, coming; /* as the master told it; being told */
	int64_t text_mono; /* 0: none */
	bool is_asked;
} metrics;

/* --- clients ------------------------------------------------------------ */

static void
client_end(struct client *client)
{
	close(client->fd);
	buf_release(&client->out);
	client->state = CLIENT_NONE;
}

static void
client_becomes(struct client *client, enum client_state state, int64_t msecs)
{
	client->state = state;
	client->deadline_mono = clock_mono_msecs() + msecs;
}

static void
client_write(struct client *client)
{
	ssize_t n = send(client->fd, client->out.data + client->n_sent,
	    client->out.len - client->n_sent, MSG_NOSIGNAL);

	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n == -1) {
		client_end(client);
		return;
	}
	client->n_sent += (size_t)n;
	if (client->n_sent < client->out.len)
		return;
	shutdown(client->fd, SHUT_WR);
	client_becomes(client, CLIENT_CLOSING, CLOSE_MSECS);
}

static void
client_answer(struct client *client, int status, const struct buf *text)
{
	time_t now = (time_t)clock_wall_secs();
	char date[40];
	struct tm tm;

	gmtime_r(&now, &tm);
	strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", &tm);
	buf_reset(&client->out);
	buf_addf(&client->out, "HTTP/1.1 %d %s\r\nDate: %s\r\n"
	    "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
	    "Connection: close\r\n%sContent-Length: %zu\r\n\r\n", status,
	    http_reason(status), date,
	    status == 405 ? "Allow: GET, HEAD\r\n" : "", text->len);
	if (!client->request.is_head)
		buf_add(&client->out, text->data, text->len);
	client->n_sent = 0;
	client_becomes(client, CLIENT_WRITING, WRITE_MSECS);
	client_write(client);
}

static void
client_refuse(struct client *client, int status)
{
	struct buf text = BUF_INIT;

	buf_addf(&text, "%s\n", http_reason(status));
	client_answer(client, status, &text);
	buf_release(&text);
}

static bool
is_fresh(void)
{
	return metrics.text_mono != 0 &&
	    clock_mono_msecs() - metrics.text_mono < FRESH_MSECS;
}

static void
client_wants(struct client *client)
{
	static const struct msg_empty nothing;

	if (strcmp(client->request.path, "/metrics") != 0) {
		client_refuse(client, 404);
		return;
	}
	if (is_fresh()) {
		client_answer(client, 200, &metrics.text);
		return;
	}
	client_becomes(client, CLIENT_WAITING, WRITE_MSECS);
	if (!metrics.is_asked)
		runtime_send(&metrics.rt, MSG_WANT_METRICS, &nothing);
	metrics.is_asked = true;
}

static void
client_read(struct client *client)
{
	char scratch[4096];
	bool is_closing = client->state == CLIENT_CLOSING;
	char *to = is_closing ? scratch : client->in + client->n_in;
	size_t room = is_closing ? sizeof(scratch) :
	    sizeof(client->in) - client->n_in;
	ssize_t n = recv(client->fd, to, room, 0);
	int status;

	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		client_end(client);
		return;
	}
	if (is_closing)
		return;
	client->n_in += (size_t)n;
	status = http_parse(client->in, client->n_in, &client->request);
	if (status == 200)
		client_wants(client);
	else if (status != 0)
		client_refuse(client, status);
}

/* Too late: nobody is waited for. */
static void
client_expire(struct client *client)
{
	if (client->state == CLIENT_WAITING)
		client_refuse(client, 503);
	else
		client_end(client);
}

/* --- the text ----------------------------------------------------------- */

static void
metrics_take_text(const struct msg_metrics *msg)
{
	struct buf old = metrics.text;
	size_t i;

	buf_add(&metrics.coming, msg->text, msg->len);
	if (!msg->is_last)
		return;
	metrics.text = metrics.coming;
	metrics.coming = old;
	buf_reset(&metrics.coming);
	metrics.text_mono = clock_mono_msecs();
	metrics.is_asked = false;
	for (i = 0; i < CLIENTS_MAX; i++)
		if (metrics.clients[i].state == CLIENT_WAITING)
			client_answer(&metrics.clients[i], 200, &metrics.text);
}

static void
hear_master(void)
{
	struct frame frame;

	while (runtime_next(&metrics.rt, &frame, 0) == 1)
		if (frame.header.type == MSG_STOP)
			_exit(EXIT_DONE);
		else if (frame.header.type == MSG_METRICS)
			metrics_take_text(&frame.payload.metrics);
}

/* --- listening ---------------------------------------------------------- */

static _Noreturn void
cannot_listen(const char *why)
{
	log_error(&metrics.rt.log, "metrics_listen = %s: %s",
	    child_conf()->metrics_listen, why);
	_exit(EXIT_CONFIG);
}

static int
listen_at(const struct addrinfo *ai)
{
	static const int on = 1;
	int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC |
	    SOCK_NONBLOCK, 0);

	if (fd == -1)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, ai->ai_addr, ai->ai_addrlen) == 0 && listen(fd, 64) == 0)
		return fd;
	close(fd);
	return -1;
}

/* "host:port", "[::1]:port" or ":port", which is of this machine only. */
static int
listen_where(const char *spec)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
		.ai_flags = AI_PASSIVE }, *found, *ai;
	const char *colon = strrchr(spec, ':');
	char host[256] = "127.0.0.1";
	int fd = -1, rc;

	if (colon == NULL)
		cannot_listen("must be host:port");
	if (spec[0] == '[' && colon > spec && colon[-1] == ']')
		snprintf(host, sizeof(host), "%.*s", (int)(colon - spec - 2),
		    spec + 1);
	else if (colon > spec)
		snprintf(host, sizeof(host), "%.*s", (int)(colon - spec),
		    spec);
	rc = getaddrinfo(host, colon + 1, &hints, &found);
	if (rc != 0)
		cannot_listen(gai_strerror(rc));
	for (ai = found; ai != NULL && fd == -1; ai = ai->ai_next)
		fd = listen_at(ai);
	if (fd == -1)
		cannot_listen(strerror(errno));
	freeaddrinfo(found);
	return fd;
}

static struct client *
free_place(void)
{
	size_t i;

	for (i = 0; i < CLIENTS_MAX; i++)
		if (metrics.clients[i].state == CLIENT_NONE)
			return &metrics.clients[i];
	return NULL;
}

static void
accept_clients(void)
{
	struct client *client;
	int fd;

	while ((client = free_place()) != NULL) {
		fd = accept4(metrics.listener, NULL, NULL, SOCK_CLOEXEC |
		    SOCK_NONBLOCK);
		if (fd == -1 && (errno == EMFILE || errno == ENFILE ||
			errno == ENOBUFS || errno == ENOMEM))
			metrics.paused_until_mono = clock_mono_msecs() +
			    PAUSE_MSECS;
		if (fd == -1)
			return;
		memset(client, 0, offsetof(struct client, in));
		client->out = (struct buf)BUF_INIT;
		client->fd = fd;
		client_becomes(client, CLIENT_READING, READ_MSECS);
	}
}

/* --- the loop ----------------------------------------------------------- */

/* Nobody who takes this process over shall find in it what the template read
 * from the settings. */
static void
forget_secrets(void)
{
	const struct conf *conf = child_conf();
	extern char **environ;
	char **e;

	explicit_bzero(conf->database, strlen(conf->database));
	explicit_bzero(conf->redis_password, strlen(conf->redis_password));
	for (e = environ; *e != NULL; e++)
		if (strncmp(*e, "MAILHERD_", 9) == 0 ||
		    strncmp(*e, "PG", 2) == 0)
			explicit_bzero(*e, strlen(*e));
}

static short
wanted_events(const struct client *client)
{
	switch (client->state) {
	case CLIENT_READING:
	case CLIENT_CLOSING:
		return POLLIN;
	case CLIENT_WRITING:
		return POLLOUT;
	default:
		return 0;
	}
}

/* Until when there is nothing to do but for what is told. */
static int
fill_poll(struct pollfd pfds[CLIENTS_MAX + 2])
{
	int64_t now = clock_mono_msecs(), next = now + 60000;
	bool is_full = free_place() == NULL;
	const struct client *client;
	size_t i;

	pfds[0] = (struct pollfd){ metrics.rt.channel, POLLIN, 0 };
	pfds[1] = (struct pollfd){ is_full || now < metrics.paused_until_mono ?
	    -1 : metrics.listener, POLLIN, 0 };
	if (now < metrics.paused_until_mono)
		next = metrics.paused_until_mono;
	for (i = 0; i < CLIENTS_MAX; i++) {
		client = &metrics.clients[i];
		pfds[i + 2] = (struct pollfd){ client->state == CLIENT_NONE ?
		    -1 : client->fd, wanted_events(client), 0 };
		if (client->state != CLIENT_NONE &&
		    client->deadline_mono < next)
			next = client->deadline_mono;
	}
	return next > now ? (int)(next - now) : 0;
}

static void
serve_client(struct client *client, short events)
{
	if (client->state == CLIENT_WRITING && events != 0)
		client_write(client);
	else if (client->state == CLIENT_WAITING && events != 0)
		client_end(client); /* gone: POLLERR or POLLHUP */
	else if (events != 0)
		client_read(client);
	if (client->state != CLIENT_NONE &&
	    client->deadline_mono <= clock_mono_msecs())
		client_expire(client);
}

static void
metrics_serve(void)
{
	struct pollfd pfds[CLIENTS_MAX + 2];
	size_t i;

	if (poll(pfds, CLIENTS_MAX + 2, fill_poll(pfds)) == -1)
		return; /* a signal */
	if (pfds[0].revents != 0)
		hear_master();
	for (i = 0; i < CLIENTS_MAX; i++)
		if (metrics.clients[i].state != CLIENT_NONE)
			serve_client(&metrics.clients[i],
			    pfds[i + 2].revents);
	if (pfds[1].revents != 0)
		accept_clients();
}

void
metrics_main(const struct child_start *start)
{
	static const struct rlimit few = { DESCRIPTORS_MAX, DESCRIPTORS_MAX };

	runtime_init(&metrics.rt, start);
	metrics.listener = listen_where(child_conf()->metrics_listen);
	forget_secrets();
	setrlimit(RLIMIT_NOFILE, &few);
	if (nice(10) == -1)
		log_debug(&metrics.rt.log, "nice: %s", strerror(errno));
	proc_set_title("metrics");
	runtime_activity(&metrics.rt, "listening");
	for (;;)
		metrics_serve();
}
