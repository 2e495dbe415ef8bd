/*
 * tls.h - who we trust, and in which words we refuse the others.
 */
#ifndef REMOTE_TLS_H
#define REMOTE_TLS_H

#include "base/err.h"

#include <gnutls/gnutls.h>

/*
 * Loads the system's trust anchors and those of ca_file (NULL or "": none).
 * Once, before fork: each child that did it itself would cost 4 MB more.
 */
int tls_init(const char *ca_file, struct err *err);

/* Inside tls_init; rehearsal.c says what for. */
void tls_rehearse(gnutls_priority_t priority);

/* A client session for `host`: TLS 1.2 or newer, the chain, the name and the
 * dates verified inside the handshake. */
int tls_session_new(gnutls_session_t *session_r, const char *host, int fd,
    struct err *err);

/* Why the handshake failed, for people.  Always returns -1. */
int tls_describe_failure(gnutls_session_t session, const char *host, int code,
    struct err *err);

#endif
