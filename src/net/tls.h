/*
 * tls.h - who we trust, and in which words we refuse the others.
 */
#ifndef NET_TLS_H
#define NET_TLS_H

#include "base/err.h"

#include <gnutls/gnutls.h>

#include <stdbool.h>

/*
 * Loads the system's trust anchors and those of ca_file (NULL or "": none).
 * Once, before fork: each child that did it itself would cost 4 MB more.
 */
int tls_init(const char *ca_file, struct err *err);

/* Inside tls_init; tls_warmup.c says what for. */
void tls_warm_up(gnutls_priority_t priority);

/* Who the other side must be: the server of that name.  Lives as long as the
 * session, which keeps pointers to it. */
struct tls_peer {
	const char *host;
	gnutls_typed_vdata_st facts[2];
};
void tls_peer_init(struct tls_peer *peer, const char *host);

/* A client session: TLS 1.2 or newer, the chain, the name, the dates and that
 * the certificate is one of servers verified inside the handshake. */
int tls_session_new(gnutls_session_t *session_r, struct tls_peer *peer,
    int fd, bool with_alpn, struct err *err);

/* Why the handshake failed, for people.  Always returns -1. */
int tls_describe_failure(gnutls_session_t session, const char *host, int code,
    struct err *err);

#endif
