/*
 * tls_warmup.c - a TLS connection with ourselves.
 *
 * Runs in: the parent, once, before fork.  Does not block.
 *
 * The first handshake of a process makes its libraries do what they do once
 * (symbols resolved, tables built, memory allocated for good).  Done here, the
 * pages that changes are shared by all children; done in each child, each has
 * its own copy of them.  Nothing depends on how it ends.
 */
#include "net/tls.h"

#include <gnutls/x509.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 20 /* of two sides in turn; a handshake takes four */

struct warmup {
	gnutls_x509_privkey_t key;
	gnutls_x509_crt_t cert;
	gnutls_certificate_credentials_t server_credentials, trust;
	gnutls_session_t server, client;
	int fds[2];
};

static int
make_certificate(struct warmup *r)
{
	static const unsigned char serial = 1;
	time_t now = time(NULL);

	if (gnutls_x509_privkey_init(&r->key) < 0 ||
	    gnutls_x509_crt_init(&r->cert) < 0 ||
	    gnutls_x509_privkey_generate(r->key, GNUTLS_PK_ECDSA,
		GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0) < 0)
		return -1;
	if (gnutls_x509_crt_set_version(r->cert, 3) < 0 ||
	    gnutls_x509_crt_set_serial(r->cert, &serial, 1) < 0 ||
	    gnutls_x509_crt_set_activation_time(r->cert, now - 60) < 0 ||
	    gnutls_x509_crt_set_expiration_time(r->cert, now + 60) < 0 ||
	    gnutls_x509_crt_set_subject_alt_name(r->cert, GNUTLS_SAN_DNSNAME,
		"localhost", 9, GNUTLS_FSAN_SET) < 0 ||
	    gnutls_x509_crt_set_key(r->cert, r->key) < 0)
		return -1;
	return gnutls_x509_crt_sign2(r->cert, r->cert, r->key,
	    GNUTLS_DIG_SHA256, 0);
}

/* The client trusts this certificate alone, for this one time. */
static int
make_sessions(struct warmup *r, gnutls_priority_t priority)
{
	if (gnutls_certificate_allocate_credentials(
		&r->server_credentials) < 0 ||
	    gnutls_certificate_allocate_credentials(&r->trust) < 0 ||
	    gnutls_certificate_set_x509_key(r->server_credentials, &r->cert,
		1, r->key) < 0 ||
	    gnutls_certificate_set_x509_trust(r->trust, &r->cert, 1) < 0)
		return -1;
	if (gnutls_init(&r->server, GNUTLS_SERVER | GNUTLS_NONBLOCK |
		GNUTLS_NO_SIGNAL | GNUTLS_NO_TICKETS) < 0 ||
	    gnutls_init(&r->client, GNUTLS_CLIENT | GNUTLS_NONBLOCK |
		GNUTLS_NO_SIGNAL | GNUTLS_NO_TICKETS) < 0 ||
	    gnutls_priority_set(r->server, priority) < 0 ||
	    gnutls_priority_set(r->client, priority) < 0 ||
	    gnutls_credentials_set(r->server, GNUTLS_CRD_CERTIFICATE,
		r->server_credentials) < 0 ||
	    gnutls_credentials_set(r->client, GNUTLS_CRD_CERTIFICATE,
		r->trust) < 0)
		return -1;
	gnutls_session_set_verify_cert(r->client, "localhost", 0);
	gnutls_transport_set_int(r->server, r->fds[0]);
	gnutls_transport_set_int(r->client, r->fds[1]);
	return 0;
}

static void
tls_warmup_perform(struct warmup *r)
{
	int client = GNUTLS_E_AGAIN, server = GNUTLS_E_AGAIN, i;
	char byte = '.';

	for (i = 0; i < ROUNDS && (client != 0 || server != 0); i++) {
		if (client != 0)
			client = gnutls_handshake(r->client);
		if (server != 0)
			server = gnutls_handshake(r->server);
	}
	if (client != 0 || server != 0)
		return;
	if (gnutls_record_send(r->client, &byte, 1) == 1 &&
	    gnutls_record_recv(r->server, &byte, 1) == 1 &&
	    gnutls_record_send(r->server, &byte, 1) == 1)
		gnutls_record_recv(r->client, &byte, 1);
}

static void
tls_warmup_release(struct warmup *r)
{
	if (r->client != NULL)
		gnutls_deinit(r->client);
	if (r->server != NULL)
		gnutls_deinit(r->server);
	if (r->trust != NULL)
		gnutls_certificate_free_credentials(r->trust);
	if (r->server_credentials != NULL)
		gnutls_certificate_free_credentials(r->server_credentials);
	gnutls_x509_crt_deinit(r->cert);
	gnutls_x509_privkey_deinit(r->key);
	close(r->fds[0]);
	close(r->fds[1]);
}

void
tls_warm_up(gnutls_priority_t priority)
{
	struct warmup r = { .key = NULL };

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0,
		r.fds) == -1)
		return;
	if (make_certificate(&r) == 0 && make_sessions(&r, priority) == 0)
		tls_warmup_perform(&r);
	tls_warmup_release(&r);
}
