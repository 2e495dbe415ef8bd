/*
 * transport.c - bytes to and from one client, with or without TLS, whole,
 * slow, or cut off.
 *
 * Runs in: mockimapd.  Never blocks.
 *
 * GnuTLS reads from and writes to the buffers of the bufferevent, which does
 * the waiting; neither knows of the other.
 */
#include "config.h"

#include "transport.h"

#include "base/xmem.h"

#include <errno.h>
#include <event2/bufferevent.h>
#include <gnutls/gnutls.h>
#include <unistd.h>

#define IN_MAX (256 * 1024) /* read ahead of what the session takes */
#define RECORD_MAX 16384
#define SLOW_TICK_MSECS 100

struct tls_server {
	gnutls_certificate_credentials_t credentials;
	gnutls_priority_t priority;
};

struct transport {
	struct transport_calls calls;
	struct bufferevent *bev;
	gnutls_session_t tls; /* NULL: none */
	bool is_shaken;	      /* the handshake is done */
	struct evbuffer *plain; /* decrypted */
	int64_t speed, limit;
	struct evbuffer *held; /* output of a slow one */
	struct event *tick;
	bool is_cut; /* `limit` is reached: ends when all is sent */
	bool has_ended;
};

struct tls_server *
tls_server_new(const char *cert, const char *key, const char **why_r)
{
	struct tls_server *server = xcalloc(1, sizeof(*server));
	int rc;

	gnutls_certificate_allocate_credentials(&server->credentials);
	rc = gnutls_certificate_set_x509_key_file(server->credentials, cert,
	    key, GNUTLS_X509_FMT_PEM);
	if (rc >= 0)
		rc = gnutls_priority_init(&server->priority, "NORMAL", NULL);
	if (rc < 0) {
		*why_r = gnutls_strerror(rc);
		tls_server_free(&server);
		return NULL;
	}
	return server;
}

void
tls_server_free(struct tls_server **server)
{
	if (*server == NULL)
		return;
	gnutls_certificate_free_credentials((*server)->credentials);
	if ((*server)->priority != NULL)
		gnutls_priority_deinit((*server)->priority);
	free(*server);
	*server = NULL;
}

static void
end(struct transport *t, const char *why)
{
	if (t->has_ended)
		return;
	t->has_ended = true;
	t->calls.on_end(t->calls.arg, why);
}

/* --- GnuTLS between the buffers ------------------------------------------ */

static ssize_t
on_push(gnutls_transport_ptr_t arg, const void *bytes, size_t len)
{
	struct transport *t = arg;

	if (bufferevent_write(t->bev, bytes, len) == -1) {
		gnutls_transport_set_errno(t->tls, ENOMEM);
		return -1;
	}
	return (ssize_t)len;
}

static ssize_t
on_pull(gnutls_transport_ptr_t arg, void *bytes, size_t len)
{
	struct transport *t = arg;
	struct evbuffer *in = bufferevent_get_input(t->bev);

	if (evbuffer_get_length(in) == 0) {
		gnutls_transport_set_errno(t->tls, EAGAIN);
		return -1;
	}
	return evbuffer_remove(in, bytes, len);
}

static int
on_pull_wait(gnutls_transport_ptr_t arg, unsigned msecs)
{
	struct transport *t = arg;

	(void)msecs;
	return evbuffer_get_length(bufferevent_get_input(t->bev)) > 0;
}

bool
transport_start_tls(struct transport *t, struct tls_server *server)
{
	struct evbuffer *in = bufferevent_get_input(t->bev);

	if (server == NULL || t->tls != NULL ||
	    gnutls_init(&t->tls, GNUTLS_SERVER | GNUTLS_NONBLOCK) < 0)
		return false;
	gnutls_priority_set(t->tls, server->priority);
	gnutls_credentials_set(t->tls, GNUTLS_CRD_CERTIFICATE,
	    server->credentials);
	gnutls_transport_set_ptr(t->tls, t);
	gnutls_transport_set_push_function(t->tls, on_push);
	gnutls_transport_set_pull_function(t->tls, on_pull);
	gnutls_transport_set_pull_timeout_function(t->tls, on_pull_wait);
	evbuffer_drain(in, evbuffer_get_length(in));
	t->plain = evbuffer_new();
	return true;
}

bool
transport_has_tls(const struct transport *t)
{
	return t->tls != NULL;
}

bool
transport_is_ready(const struct transport *t)
{
	return t->tls == NULL || t->is_shaken;
}

static bool
shake(struct transport *t)
{
	int rc;

	do
		rc = gnutls_handshake(t->tls);
	while (rc < 0 && rc != GNUTLS_E_AGAIN && !gnutls_error_is_fatal(rc));
	if (rc == GNUTLS_E_AGAIN)
		return false;
	if (rc < 0) {
		end(t, gnutls_strerror(rc));
		return false;
	}
	t->is_shaken = true;
	/* What was to be said before it was possible. */
	t->calls.on_written(t->calls.arg);
	return true;
}

void
transport_fill(struct transport *t)
{
	char bytes[RECORD_MAX];

	if (t->tls == NULL || t->has_ended || (!t->is_shaken && !shake(t)))
		return;
	while (evbuffer_get_length(t->plain) < IN_MAX) {
		ssize_t n = gnutls_record_recv(t->tls, bytes, sizeof(bytes));

		if (n > 0) {
			evbuffer_add(t->plain, bytes, (size_t)n);
		} else if (n == GNUTLS_E_AGAIN) {
			return;
		} else if (n == 0 || gnutls_error_is_fatal((int)n)) {
			end(t, n == 0 ? "TLS closed" :
				gnutls_strerror((int)n));
			return;
		}
	}
}

struct evbuffer *
transport_in(struct transport *t)
{
	return t->tls != NULL ? t->plain : bufferevent_get_input(t->bev);
}

/* --- output -------------------------------------------------------------- */

static void
send_now(struct transport *t, const char *bytes, size_t len)
{
	if (t->tls == NULL) {
		bufferevent_write(t->bev, bytes, len);
		return;
	}
	while (len > 0) {
		ssize_t n = gnutls_record_send(t->tls, bytes,
		    len < RECORD_MAX ? len : RECORD_MAX);

		if (n < 0 && gnutls_error_is_fatal((int)n)) {
			end(t, gnutls_strerror((int)n));
			return;
		}
		if (n > 0) {
			bytes += n;
			len -= (size_t)n;
		}
	}
}

static void
on_tick(int fd, short what, void *arg)
{
	struct transport *t = arg;
	int64_t n = t->speed * SLOW_TICK_MSECS / 1000;
	char bytes[RECORD_MAX];
	int got;

	(void)fd;
	(void)what;
	if (n < 1)
		n = 1;
	if (t->speed == 0 || n > (int64_t)sizeof(bytes))
		n = sizeof(bytes);
	got = evbuffer_remove(t->held, bytes, (size_t)n);
	if (got > 0)
		send_now(t, bytes, (size_t)got);
	else
		event_del(t->tick);
}

static void
hold(struct transport *t, const void *bytes, size_t len)
{
	static const struct timeval tick = { 0, SLOW_TICK_MSECS * 1000 };

	evbuffer_add(t->held, bytes, len);
	if (!event_pending(t->tick, EV_TIMEOUT, NULL))
		event_add(t->tick, &tick);
}

void
transport_write(struct transport *t, const void *bytes, size_t len)
{
	if (t->has_ended || t->is_cut || len == 0)
		return;
	if (t->limit >= 0) {
		t->is_cut = (int64_t)len >= t->limit;
		if (t->is_cut)
			len = (size_t)t->limit;
		t->limit -= (int64_t)len;
	}
	if (t->held != NULL)
		hold(t, bytes, len);
	else
		send_now(t, bytes, len);
	if (t->is_cut && transport_pending(t) == 0)
		end(t, "dropped");
}

size_t
transport_pending(const struct transport *t)
{
	return evbuffer_get_length(bufferevent_get_output(t->bev)) +
	    (t->held != NULL ? evbuffer_get_length(t->held) : 0) +
	    (t->tls != NULL && !t->is_shaken);
}

void
transport_set_speed(struct transport *t, int64_t bytes)
{
	t->speed = bytes;
	if (t->held != NULL)
		return;
	t->held = evbuffer_new();
	t->tick = event_new(bufferevent_get_base(t->bev), -1, EV_PERSIST,
	    on_tick, t);
}

void
transport_set_limit(struct transport *t, int64_t bytes)
{
	t->limit = bytes;
}

/* --- life ---------------------------------------------------------------- */

static void
on_read(struct bufferevent *bev, void *arg)
{
	struct transport *t = arg;

	(void)bev;
	transport_fill(t);
	if (!t->has_ended)
		t->calls.on_bytes(t->calls.arg);
}

static void
on_write(struct bufferevent *bev, void *arg)
{
	struct transport *t = arg;

	(void)bev;
	if (t->has_ended || transport_pending(t) > 0)
		return;
	if (t->is_cut)
		end(t, "dropped");
	else
		t->calls.on_written(t->calls.arg);
}

static void
on_event(struct bufferevent *bev, short what, void *arg)
{
	(void)bev;
	end(arg, what & BEV_EVENT_EOF ? "closed by the client" : "reset");
}

struct transport *
transport_new(struct event_base *base, int fd,
    const struct transport_calls *calls)
{
	struct transport *t = xcalloc(1, sizeof(*t));

	t->calls = *calls;
	t->limit = -1;
	t->bev = bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
	if (t->bev == NULL) {
		close(fd);
		free(t);
		return NULL;
	}
	bufferevent_setcb(t->bev, on_read, on_write, on_event, t);
	bufferevent_setwatermark(t->bev, EV_READ, 0, IN_MAX);
	bufferevent_enable(t->bev, EV_READ | EV_WRITE);
	return t;
}

void
transport_free(struct transport **transport)
{
	struct transport *t = *transport;

	if (t == NULL)
		return;
	if (t->tls != NULL)
		gnutls_deinit(t->tls);
	if (t->plain != NULL)
		evbuffer_free(t->plain);
	if (t->held != NULL)
		evbuffer_free(t->held);
	if (t->tick != NULL)
		event_free(t->tick);
	bufferevent_free(t->bev); /* closes */
	free(t);
	*transport = NULL;
}
