/*
 * transport.h - bytes to and from one client, with or without TLS, whole,
 * slow, or cut off.
 */
#ifndef MOCKIMAPD_TRANSPORT_H
#define MOCKIMAPD_TRANSPORT_H

#include "base/banned.h"

#include <event2/buffer.h>
#include <event2/event.h>

#include <stdbool.h>
#include <stdint.h>

struct tls_server;
/* NULL with `why_r` when a file cannot be used. */
struct tls_server *tls_server_new(const char *cert, const char *key,
    const char **why_r);
void tls_server_free(struct tls_server **server);

struct transport;
struct transport_calls {
	void (*on_bytes)(void *arg);   /* something is in transport_in() */
	void (*on_written)(void *arg); /* everything is sent */
	void (*on_end)(void *arg, const char *why);
	void *arg;
};
/* Takes the descriptor. */
struct transport *transport_new(struct event_base *base, int fd,
    const struct transport_calls *calls);
void transport_free(struct transport **transport);
/* From the next byte on; what has come already is thrown away. */
bool transport_start_tls(struct transport *transport,
    struct tls_server *server);
bool transport_has_tls(const struct transport *transport);

/* False while the handshake is not done: nothing can be written. */
bool transport_is_ready(const struct transport *transport);
/* Decrypted; another buffer after transport_start_tls. */
struct evbuffer *transport_in(struct transport *transport);
/* Decrypts what could not be taken before. */
void transport_fill(struct transport *transport);
void transport_write(struct transport *transport, const void *bytes,
    size_t len);
/* Bytes not yet sent. */
size_t transport_pending(const struct transport *transport);
/* From now on so many bytes a second; 0: as they come. */
void transport_set_speed(struct transport *transport, int64_t bytes);
/* on_end after so many more bytes of output. */
void transport_set_limit(struct transport *transport, int64_t bytes);

#endif
