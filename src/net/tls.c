/*
 * tls.c - who we trust, and in which words we refuse the others.
 *
 * tls_init runs in the parent, the rest in hot, pool and job children.
 * Never blocks.
 *
 * The session verifies chain, name and dates during the handshake, so no byte
 * of ours, a password least of all, goes to a peer that was not verified.
 */
#include "net/tls.h"

#include "base/buf.h"
#include "base/clock.h"
#include "net/net.h"

#include <gnutls/x509.h>

/* Without static RSA: who steals the key later would read what was recorded,
 * passwords among it. */
#define PRIORITY "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-RSA"
#define NAMES_SHOWN 4

static gnutls_certificate_credentials_t credentials;
static gnutls_priority_t priority;

static int
load_trust(const char *ca_file, struct err *err)
{
	bool has_file = ca_file != NULL && ca_file[0] != '\0';
	int system_count, r;

	system_count = gnutls_certificate_set_x509_system_trust(credentials);
	if (has_file) {
		r = gnutls_certificate_set_x509_trust_file(credentials,
		    ca_file, GNUTLS_X509_FMT_PEM);
		if (r <= 0)
			return err_set(err, ERR_CONFIG, "ca_file %s: %s",
			    ca_file,
			    r == 0 ? "holds no certificate" :
				     gnutls_strerror(r));
	} else if (system_count <= 0) {
		return err_set(err, ERR_CONFIG,
		    "the system has no trust anchors (package "
		    "ca-certificates) and no ca_file is set");
	}
	return 0;
}

int
tls_init(const char *ca_file, struct err *err)
{
	gnutls_certificate_credentials_t old = credentials;
	const char *where;
	int r;

	r = gnutls_certificate_allocate_credentials(&credentials);
	if (r < 0) {
		credentials = old;
		return err_set(err, ERR_CONFIG, "GnuTLS: %s",
		    gnutls_strerror(r));
	}
	if (load_trust(ca_file, err) == -1) {
		gnutls_certificate_free_credentials(credentials);
		credentials = old;
		return -1;
	}
	if (old != NULL)
		gnutls_certificate_free_credentials(old);
	if (priority != NULL)
		return 0;
	if ((r = gnutls_priority_init(&priority, PRIORITY, &where)) < 0)
		return err_set(err, ERR_CONFIG, "GnuTLS priority \"%s\": %s",
		    where, gnutls_strerror(r));
	tls_warm_up(priority);
	return 0;
}

void
tls_peer_init(struct tls_peer *peer, const char *host)
{
	peer->host = host;
	peer->facts[0] = (gnutls_typed_vdata_st){
		.type = GNUTLS_DT_DNS_HOSTNAME,
		.data = (unsigned char *)(uintptr_t)host };
	peer->facts[1] = (gnutls_typed_vdata_st){
		.type = GNUTLS_DT_KEY_PURPOSE_OID,
		.data = (unsigned char *)(uintptr_t)GNUTLS_KP_TLS_WWW_SERVER };
}

int
tls_session_new(gnutls_session_t *session_r, struct tls_peer *peer, int fd,
    bool with_alpn, struct err *err)
{
	static const gnutls_datum_t imap = {
		.data = (unsigned char *)(uintptr_t)"imap", .size = 4 };
	const char *host = peer->host;
	gnutls_session_t s = NULL;
	int r;

	/* No tickets: nothing ever resumes, and they cost memory. */
	r = gnutls_init(&s, GNUTLS_CLIENT | GNUTLS_NONBLOCK |
	    GNUTLS_NO_SIGNAL | GNUTLS_NO_TICKETS);
	if (r == 0)
		r = gnutls_priority_set(s, priority);
	if (r == 0 && !net_is_address(host))
		r = gnutls_server_name_set(s, GNUTLS_NAME_DNS, host,
		    strlen(host));
	if (r == 0 && with_alpn)
		r = gnutls_alpn_set_protocols(s, &imap, 1, 0);
	if (r == 0)
		r = gnutls_credentials_set(s, GNUTLS_CRD_CERTIFICATE,
		    credentials);
	if (r < 0) {
		if (s != NULL)
			gnutls_deinit(s);
		return err_set(err, ERR_TLS, "%s: TLS not started: %s", host,
		    gnutls_strerror(r));
	}
	gnutls_session_set_verify_cert2(s, peer->facts, 2, 0);
	gnutls_transport_set_int(s, fd);
	*session_r = s;
	return 0;
}

static void
add_reason(struct buf *b, const char *text)
{
	if (b->len > 0)
		buf_adds(b, "; ");
	buf_adds(b, text);
}

/* "mail.example.org, *.example.net": what the certificate is for. */
static void
add_names(struct buf *b, gnutls_x509_crt_t cert)
{
	char name[256];
	size_t len;
	unsigned i, shown = 0;
	int type;

	for (i = 0; shown < NAMES_SHOWN; i++) {
		len = sizeof(name);
		type = gnutls_x509_crt_get_subject_alt_name(cert, i, name,
		    &len, NULL);
		if (type == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)
			break;
		if (type != GNUTLS_SAN_DNSNAME)
			continue;
		buf_addf(b, "%s%.*s", shown++ > 0 ? ", " : "", (int)len, name);
	}
	if (shown > 0)
		return;
	len = sizeof(name);
	if (gnutls_x509_crt_get_dn_by_oid(cert, GNUTLS_OID_X520_COMMON_NAME, 0,
		0, name, &len) == 0)
		buf_addf(b, "%.*s", (int)len, name);
	else
		buf_adds(b, "nobody in particular");
}

static void
add_date(struct buf *b, const char *what, time_t when)
{
	char date[32];

	add_reason(b, what);
	if (when != (time_t)-1)
		buf_addf(b, " on %.10s",
		    clock_format_utc(date, sizeof(date), when));
}

static void
add_issuer(struct buf *b, gnutls_x509_crt_t cert)
{
	char issuer[200];
	size_t len = sizeof(issuer);

	if (gnutls_x509_crt_check_issuer(cert, cert))
		add_reason(b, "issuer not trusted (self-signed)");
	else if (gnutls_x509_crt_get_issuer_dn(cert, issuer, &len) == 0) {
		add_reason(b, "issuer not trusted (");
		buf_addf(b, "%.*s)", (int)len, issuer);
	} else
		add_reason(b, "issuer not trusted");
}

static void
add_certificate_reasons(struct buf *b, unsigned status, gnutls_x509_crt_t cert,
    const char *host)
{
	if (status & GNUTLS_CERT_EXPIRED)
		add_date(b, "certificate expired",
		    gnutls_x509_crt_get_expiration_time(cert));
	if (status & GNUTLS_CERT_NOT_ACTIVATED)
		add_date(b, "certificate becomes valid",
		    gnutls_x509_crt_get_activation_time(cert));
	if (status & GNUTLS_CERT_UNEXPECTED_OWNER) {
		add_reason(b, "certificate is for ");
		add_names(b, cert);
		buf_addf(b, ", not for %s", host);
	}
	if (status & GNUTLS_CERT_SIGNER_NOT_FOUND)
		add_issuer(b, cert);
	if (status & GNUTLS_CERT_REVOKED)
		add_reason(b, "certificate is revoked");
	if (status & GNUTLS_CERT_INSECURE_ALGORITHM)
		add_reason(b, "certificate is signed with an insecure "
			      "algorithm");
	if (status & GNUTLS_CERT_PURPOSE_MISMATCH)
		add_reason(b, "certificate is not for servers");
	if (status & (GNUTLS_CERT_SIGNER_NOT_CA |
		GNUTLS_CERT_SIGNER_CONSTRAINTS_FAILURE |
		GNUTLS_CERT_SIGNATURE_FAILURE))
		add_reason(b, "certificate chain is wrong");
}

static int
describe_certificate(gnutls_session_t session, const char *host,
    struct err *err)
{
	unsigned status = gnutls_session_get_verify_cert_status(session);
	gnutls_x509_crt_t cert = NULL;
	const gnutls_datum_t *chain;
	struct buf reasons = BUF_INIT;
	unsigned n = 0;

	chain = gnutls_certificate_get_peers(session, &n);
	if (chain != NULL && n > 0 && gnutls_x509_crt_init(&cert) == 0 &&
	    gnutls_x509_crt_import(cert, &chain[0], GNUTLS_X509_FMT_DER) == 0)
		add_certificate_reasons(&reasons, status, cert, host);
	if (reasons.len == 0)
		add_reason(&reasons, "certificate not accepted");
	err_set(err, ERR_TLS, "%s refused: %s", host, buf_str(&reasons));
	if (cert != NULL)
		gnutls_x509_crt_deinit(cert);
	buf_release(&reasons);
	return -1;
}

int
tls_describe_failure(gnutls_session_t session, const char *host, int code,
    struct err *err)
{
	if (code == GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR)
		return describe_certificate(session, host, err);
	if (code == GNUTLS_E_FATAL_ALERT_RECEIVED)
		return err_set(err, ERR_TLS, "%s: TLS handshake: server says "
		    "\"%s\"", host,
		    gnutls_alert_get_name(gnutls_alert_get(session)));
	if (code == GNUTLS_E_UNEXPECTED_PACKET_LENGTH ||
	    code == GNUTLS_E_UNEXPECTED_PACKET ||
	    code == GNUTLS_E_UNSUPPORTED_VERSION_PACKET)
		return err_set(err, ERR_TLS, "%s: TLS handshake: the server "
		    "does not speak TLS 1.2 or newer on this port (%s)", host,
		    gnutls_strerror(code));
	return err_set(err, ERR_TLS, "%s: TLS handshake: %s", host,
	    gnutls_strerror(code));
}
