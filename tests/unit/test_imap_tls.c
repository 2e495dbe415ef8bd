/*
 * test_imap_tls.c - which servers are trusted, and that a refused one never
 * sees a login.
 *
 * The certificates are made here; a forked GnuTLS server shows one of them,
 * with implicit TLS or after STARTTLS, and tells through a pipe what it heard.
 */
#include "base/clock.h"
#include "imap/imap.h"

#include <check.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define DAY 86400

enum cert_name {
	CERT_CA,
	CERT_GOOD,	   /* localhost and 127.0.0.1 */
	CERT_SELF_SIGNED,
	CERT_OTHER_HOST,   /* mail.example.org */
	CERT_EXPIRED,
	CERT_NOT_YET,
	CERT_STRANGER,	   /* of an authority nobody knows */
	CERT_CLIENT,	   /* for clients alone (F-D3) */
	CERT_RSA,
	CERT_COUNT,
};

static struct cert {
	gnutls_x509_privkey_t key;
	gnutls_x509_crt_t crt;
} certs[CERT_COUNT], stranger_ca;
static char ca_path[] = "/tmp/mailherd-test-ca.XXXXXX";

static void
fine(int r)
{
	if (r < 0) {
		fprintf(stderr, "GnuTLS: %s\n", gnutls_strerror(r));
		exit(99);
	}
}

/* Of the next certificates. */
static const char *purpose;
static gnutls_pk_algorithm_t algorithm = GNUTLS_PK_ECDSA;

static void
make_cert(struct cert *c, const struct cert *issuer, const char *name,
    bool has_address, int from_days, int to_days)
{
	static unsigned serial;
	unsigned char number[4] = { 1, 2, 3, (unsigned char)++serial };
	unsigned char address[4] = { 127, 0, 0, 1 };
	time_t now = time(NULL);
	bool is_ca = issuer == NULL && strstr(name, "authority") != NULL;

	fine(gnutls_x509_privkey_init(&c->key));
	fine(gnutls_x509_privkey_generate(c->key, algorithm,
	    algorithm == GNUTLS_PK_RSA ? 2048 :
	    GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0));
	fine(gnutls_x509_crt_init(&c->crt));
	fine(gnutls_x509_crt_set_version(c->crt, 3));
	fine(gnutls_x509_crt_set_serial(c->crt, number, sizeof(number)));
	fine(gnutls_x509_crt_set_key(c->crt, c->key));
	fine(gnutls_x509_crt_set_dn_by_oid(c->crt, GNUTLS_OID_X520_COMMON_NAME,
	    0, name, (unsigned)strlen(name)));
	fine(gnutls_x509_crt_set_activation_time(c->crt,
	    now + (time_t)from_days * DAY));
	fine(gnutls_x509_crt_set_expiration_time(c->crt,
	    now + (time_t)to_days * DAY));
	fine(gnutls_x509_crt_set_basic_constraints(c->crt, is_ca, -1));
	if (is_ca)
		fine(gnutls_x509_crt_set_key_usage(c->crt,
		    GNUTLS_KEY_KEY_CERT_SIGN));
	else
		fine(gnutls_x509_crt_set_subject_alt_name(c->crt,
		    GNUTLS_SAN_DNSNAME, name, (unsigned)strlen(name),
		    GNUTLS_FSAN_SET));
	if (has_address)
		fine(gnutls_x509_crt_set_subject_alt_name(c->crt,
		    GNUTLS_SAN_IPADDRESS, address, sizeof(address),
		    GNUTLS_FSAN_APPEND));
	if (purpose != NULL)
		fine(gnutls_x509_crt_set_key_purpose_oid(c->crt, purpose, 0));
	fine(gnutls_x509_crt_sign2(c->crt, issuer ? issuer->crt : c->crt,
	    issuer ? issuer->key : c->key, GNUTLS_DIG_SHA256, 0));
}

static void
make_certs(void)
{
	const struct cert *ca = &certs[CERT_CA];
	gnutls_datum_t pem;
	int fd = mkstemp(ca_path);

	make_cert(&certs[CERT_CA], NULL, "test authority", false, -9, 9);
	make_cert(&stranger_ca, NULL, "strange authority", false, -9, 9);
	make_cert(&certs[CERT_GOOD], ca, "localhost", true, -1, 9);
	make_cert(&certs[CERT_SELF_SIGNED], NULL, "localhost", true, -1, 9);
	make_cert(&certs[CERT_OTHER_HOST], ca, "mail.example.org", false, -1,
	    9);
	make_cert(&certs[CERT_EXPIRED], ca, "localhost", true, -5, -2);
	make_cert(&certs[CERT_NOT_YET], ca, "localhost", true, 3, 9);
	make_cert(&certs[CERT_STRANGER], &stranger_ca, "localhost", true, -1,
	    9);
	purpose = GNUTLS_KP_TLS_WWW_CLIENT;
	make_cert(&certs[CERT_CLIENT], ca, "localhost", true, -1, 9);
	purpose = GNUTLS_KP_TLS_WWW_SERVER;
	algorithm = GNUTLS_PK_RSA;
	make_cert(&certs[CERT_RSA], ca, "localhost", true, -1, 9);
	fine(gnutls_x509_crt_export2(certs[CERT_CA].crt, GNUTLS_X509_FMT_PEM,
	    &pem));
	if (fd == -1 || write(fd, pem.data, pem.size) != (ssize_t)pem.size)
		exit(99);
	close(fd);
	gnutls_free(pem.data);
}

/* --- the server ---------------------------------------------------------- */

static pid_t server_pid;
static int heard_fd;
static const char *capabilities = "IMAP4rev1";
static const char *alpn;   /* it takes no other; NULL: it knows none */
static int pause_msecs;	   /* before the handshake, and before the greeting */
static int n_connections = 1;

static bool
read_line(gnutls_session_t s, int fd, char *line, size_t size)
{
	size_t n = 0;
	ssize_t r;

	while (n < size - 1) {
		r = s != NULL ? gnutls_record_recv(s, line + n, 1) :
				read(fd, line + n, 1);
		if (r != 1)
			return false;
		if (line[n++] == '\n')
			break;
	}
	line[n] = '\0';
	return true;
}

static void
say(gnutls_session_t s, int fd, const char *text)
{
	ssize_t n = s != NULL ? gnutls_record_send(s, text, strlen(text)) :
				write(fd, text, strlen(text));
	(void)n;
}

static gnutls_session_t
handshake(int fd, enum cert_name name, const char *priority)
{
	/* Static: a server ends with them in use, that is no leak. */
	static gnutls_certificate_credentials_t cred;
	static gnutls_session_t s;
	int r;

	fine(gnutls_certificate_allocate_credentials(&cred));
	fine(gnutls_certificate_set_x509_key(cred, &certs[name].crt, 1,
	    certs[name].key));
	fine(gnutls_init(&s, GNUTLS_SERVER));
	fine(gnutls_priority_set_direct(s, priority, NULL));
	fine(gnutls_credentials_set(s, GNUTLS_CRD_CERTIFICATE, cred));
	gnutls_transport_set_int(s, fd);
	if (alpn != NULL)
		fine(gnutls_alpn_set_protocols(s, &(gnutls_datum_t){
			.data = (unsigned char *)(uintptr_t)alpn,
			.size = (unsigned)strlen(alpn) }, 1,
		    GNUTLS_ALPN_MANDATORY));
	poll(NULL, 0, pause_msecs);
	if ((r = gnutls_handshake(s)) < 0) {
		gnutls_alert_send_appropriate(s, r);
		return NULL;
	}
	return s;
}

static void
tell_alpn(gnutls_session_t s, int heard)
{
	gnutls_datum_t chosen;

	if (gnutls_alpn_get_selected_protocol(s, &chosen) == 0 &&
	    (write(heard, "ALPN ", 5) == -1 ||
		write(heard, chosen.data, chosen.size) == -1))
		_exit(1);
}

/* The dialogue of AUTHENTICATE LOGIN (F-D8). */
static void
ask_twice(gnutls_session_t s, int fd, int heard)
{
	static const char *const questions[] = { "+ VXNlcm5hbWU6\r\n",
		"+ UGFzc3dvcmQ6\r\n" };
	char line[1000];
	int i;

	for (i = 0; i < 2; i++) {
		say(s, fd, questions[i]);
		if (!read_line(s, fd, line, sizeof(line)) ||
		    write(heard, line, strlen(line)) == -1)
			_exit(1);
	}
}

/* Every line the client sends goes into `heard`. */
static void
serve(int fd, int heard, enum tls_mode mode, enum cert_name name,
    const char *priority)
{
	gnutls_session_t s = NULL;
	char line[1000], answer[1100];

	if (mode == TLS_IMPLICIT) {
		if ((s = handshake(fd, name, priority)) == NULL)
			return;
		tell_alpn(s, heard);
		poll(NULL, 0, pause_msecs);
	}
	snprintf(line, sizeof(line), "* OK [CAPABILITY %s STARTTLS] hi\r\n",
	    capabilities);
	say(s, fd, line);
	while (read_line(s, fd, line, sizeof(line))) {
		int tag = (int)strtol(line, NULL, 10);

		if (write(heard, line, strlen(line)) == -1)
			_exit(1);
		snprintf(answer, sizeof(answer),
		    "* CAPABILITY %s\r\n%d OK done\r\n", capabilities, tag);
		if (strstr(line, "AUTHENTICATE LOGIN") != NULL)
			ask_twice(s, fd, heard);
		if (strstr(line, "STARTTLS") != NULL) {
			snprintf(answer, sizeof(answer), "%d OK go\r\n", tag);
			say(s, fd, answer);
			if ((s = handshake(fd, name, priority)) == NULL)
				return;
			continue;
		}
		say(s, fd, answer);
	}
}

static uint16_t
start_server(enum tls_mode mode, enum cert_name name, const char *priority)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);
	int listener = socket(AF_INET, SOCK_STREAM, 0), heard[2];

	ck_assert_int_eq(bind(listener, (struct sockaddr *)&addr, len), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	getsockname(listener, (struct sockaddr *)&addr, &len);
	ck_assert_int_eq(pipe(heard), 0);
	server_pid = fork();
	if (server_pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGPIPE, SIG_IGN);
		close(heard[0]);
		for (; n_connections > 0; n_connections--) {
			int fd = accept(listener, NULL, NULL);

			serve(fd, heard[1], mode, name, priority);
			close(fd);
		}
		_exit(0);
	}
	close(listener);
	close(heard[1]);
	heard_fd = heard[0];
	return ntohs(addr.sin_port);
}

static const char *
end_server(void)
{
	static char text[4000];
	size_t n = 0;
	ssize_t r;

	while ((r = read(heard_fd, text + n, sizeof(text) - 1 - n)) > 0)
		n += (size_t)r;
	text[n] = '\0';
	close(heard_fd);
	waitpid(server_pid, NULL, 0);
	return text;
}

/* --- tests --------------------------------------------------------------- */

static struct err err;

static int
try(const char *host, enum tls_mode mode, enum cert_name name,
    const char *priority)
{
	struct imap_params params = { .host = host,
		.port = start_server(mode, name, priority), .tls = mode,
		.login = "ann", .password = "secret", .connect_msecs = 10000,
		.command_msecs = 10000, .max_line = 65536,
		.max_literal = 65536,
		.max_reply = 1 << 20 };
	struct imap *r;
	int result;

	err = (struct err)ERR_INIT;
	result = imap_open(&r, &params, &err);
	imap_close(&r);
	return result;
}

static const enum tls_mode modes[] = { TLS_IMPLICIT, TLS_STARTTLS };
static const char *const good_hosts[] = { "localhost", "localhost.",
	"127.0.0.1" };

START_TEST(a_good_server_is_trusted)
{
	const char *heard;

	if (try(good_hosts[_i / 2], modes[_i % 2], CERT_GOOD, "NORMAL") == -1)
		ck_abort_msg("%s: %s", good_hosts[_i / 2], err.text);
	heard = end_server();
	ck_assert_ptr_nonnull(strstr(heard, "LOGIN \"ann\" \"secret\""));
	/* L012: what came in the clear is not used behind STARTTLS. */
	if (modes[_i % 2] == TLS_STARTTLS)
		ck_assert_ptr_nonnull(strstr(heard, "CAPABILITY"));
}
END_TEST

static const struct {
	const char *host;
	enum cert_name cert;
	const char *part;
} refused[] = {
	{ "localhost", CERT_SELF_SIGNED,
	    "issuer not trusted (self-signed)" },
	{ "localhost", CERT_STRANGER,
	    "issuer not trusted (CN=strange authority)" },
	{ "localhost", CERT_OTHER_HOST,
	    "certificate is for mail.example.org, not for localhost" },
	{ "127.0.0.1", CERT_OTHER_HOST,
	    "certificate is for mail.example.org, not for 127.0.0.1" },
	{ "localhost", CERT_EXPIRED, "certificate expired on 20" },
	{ "localhost", CERT_NOT_YET, "certificate becomes valid on 20" },
	{ "localhost", CERT_CLIENT, "certificate is not for servers" },
};

START_TEST(a_bad_certificate_is_refused_by_its_fault)
{
	enum tls_mode mode = modes[_i % 2];
	const char *heard;

	ck_assert_int_eq(try(refused[_i / 2].host, mode, refused[_i / 2].cert,
	    "NORMAL"), -1);
	ck_assert_msg(err.kind == ERR_TLS, "%s: %s", err_kind_name(err.kind),
	    err.text);
	ck_assert_msg(strstr(err.text, refused[_i / 2].part) != NULL, "%s",
	    err.text);
	heard = end_server();
	ck_assert_ptr_null(strstr(heard, "LOGIN"));
	ck_assert_ptr_null(strstr(heard, "AUTHENTICATE"));
}
END_TEST

START_TEST(old_tls_is_refused)
{
	ck_assert_int_eq(try("localhost", TLS_IMPLICIT, CERT_GOOD,
	    "NORMAL:-VERS-ALL:+VERS-TLS1.1:+VERS-TLS1.0"), -1);
	ck_assert_msg(err.kind == ERR_TLS, "%s", err.text);
	ck_assert_ptr_null(strstr(end_server(), "LOGIN"));
}
END_TEST

/* F-D3: what was recorded must not be readable with a key stolen later. */
START_TEST(static_rsa_is_refused)
{
	ck_assert_int_eq(try("localhost", TLS_IMPLICIT, CERT_RSA,
	    "NORMAL:-VERS-ALL:+VERS-TLS1.2:-KX-ALL:+RSA"), -1);
	ck_assert_msg(err.kind == ERR_TLS, "%s", err.text);
	ck_assert_ptr_null(strstr(end_server(), "LOGIN"));
	if (try("localhost", TLS_IMPLICIT, CERT_RSA,
		"NORMAL:-VERS-ALL:+VERS-TLS1.2") == -1)
		ck_abort_msg("%s", err.text);
	end_server();
}
END_TEST

START_TEST(alpn_says_imap)
{
	alpn = "imap";
	if (try("localhost", TLS_IMPLICIT, CERT_GOOD, "NORMAL") == -1)
		ck_abort_msg("%s", err.text);
	ck_assert_ptr_nonnull(strstr(end_server(), "ALPN imap"));
}
END_TEST

/* Some proxy before it knows the protocols of the web only. */
START_TEST(a_server_that_refuses_alpn_is_asked_without)
{
	alpn = "h2";
	n_connections = 2;
	if (try("localhost", TLS_IMPLICIT, CERT_GOOD, "NORMAL") == -1)
		ck_abort_msg("%s", err.text);
	ck_assert_ptr_nonnull(strstr(end_server(), "LOGIN"));
}
END_TEST

/* F-D8 */
START_TEST(authenticate_login_where_there_is_nothing_else)
{
	const char *heard;

	capabilities = "IMAP4rev1 LOGINDISABLED AUTH=LOGIN";
	if (try("localhost", modes[_i], CERT_GOOD, "NORMAL") == -1)
		ck_abort_msg("%s", err.text);
	heard = end_server();
	ck_assert_ptr_nonnull(strstr(heard,
	    "AUTHENTICATE LOGIN\r\nYW5u\r\nc2VjcmV0\r\n"));
	ck_assert_ptr_null(strstr(heard, "LOGIN \"ann\""));
}
END_TEST

/* F-D4: neither takes longer than connect_timeout, both do. */
START_TEST(handshake_and_greeting_share_their_time)
{
	int64_t begin = clock_mono_msecs();
	struct imap_params params = { .host = "localhost",
		.tls = TLS_IMPLICIT, .login = "ann", .password = "secret",
		.connect_msecs = 1200, .command_msecs = 9000,
		.max_line = 65536, .max_literal = 65536,
		.max_reply = 1 << 20 };
	struct imap *r;

	pause_msecs = 900;
	params.port = start_server(TLS_IMPLICIT, CERT_GOOD, "NORMAL");
	err = (struct err)ERR_INIT;
	ck_assert_int_eq(imap_open(&r, &params, &err), -1);
	ck_assert_int_eq(err.kind, ERR_DEADLINE);
	ck_assert_int_ge(clock_mono_msecs() - begin, 1100);
	ck_assert_ptr_null(strstr(end_server(), "LOGIN"));
}
END_TEST

/* A plain server where TLS is expected: its greeting is no handshake. */
START_TEST(a_plain_server_on_a_tls_port_is_refused)
{
	struct imap_params params = { .host = "localhost",
		.port = start_server(TLS_NONE, CERT_GOOD, "NORMAL"),
		.tls = TLS_IMPLICIT, .login = "ann", .password = "secret",
		.connect_msecs = 5000, .command_msecs = 5000,
		.max_line = 65536, .max_literal = 65536,
		.max_reply = 1 << 20 };
	struct imap *r;

	err = (struct err)ERR_INIT;
	ck_assert_int_eq(imap_open(&r, &params, &err), -1);
	ck_assert_int_eq(err.kind, ERR_TLS);
	ck_assert_msg(strstr(err.text, "does not speak TLS") != NULL, "%s",
	    err.text);
	ck_assert_ptr_null(strstr(end_server(), "LOGIN"));
}
END_TEST

START_TEST(a_silent_handshake_ends_at_the_deadline)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	struct imap_params params = { .host = "localhost",
		.tls = TLS_IMPLICIT, .login = "ann", .password = "secret",
		.connect_msecs = 400, .command_msecs = 5000,
		.max_line = 65536, .max_literal = 65536,
		.max_reply = 1 << 20 };
	int64_t begin = clock_mono_msecs();
	struct imap *r;

	ck_assert_int_eq(bind(listener, (struct sockaddr *)&addr, len), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	getsockname(listener, (struct sockaddr *)&addr, &len);
	params.port = ntohs(addr.sin_port);
	err = (struct err)ERR_INIT;
	ck_assert_int_eq(imap_open(&r, &params, &err), -1);
	ck_assert_int_eq(err.kind, ERR_DEADLINE);
	ck_assert_int_lt(clock_mono_msecs() - begin, 3000);
	close(listener);
}
END_TEST

START_TEST(a_bad_ca_file_is_a_configuration_error)
{
	err = (struct err)ERR_INIT;
	ck_assert_int_eq(imap_init("/nonexistent/ca.pem", &err), -1);
	ck_assert_int_eq(err.kind, ERR_CONFIG);
	/* what was loaded before still works */
	ck_assert_int_eq(try("localhost", TLS_IMPLICIT, CERT_GOOD, "NORMAL"),
	    0);
	end_server();
}
END_TEST

#define COUNT(a) (int)(sizeof(a) / sizeof((a)[0]))

int
main(void)
{
	Suite *suite = suite_create("imap tls");
	TCase *t = tcase_create("tls");
	SRunner *runner;
	int failed;

	signal(SIGPIPE, SIG_IGN);
	make_certs();
	err = (struct err)ERR_INIT;
	if (imap_init(ca_path, &err) == -1) {
		fprintf(stderr, "%s\n", err.text);
		return 99;
	}
	unlink(ca_path);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, a_good_server_is_trusted, 0,
	    COUNT(good_hosts) * 2);
	tcase_add_loop_test(t, a_bad_certificate_is_refused_by_its_fault, 0,
	    COUNT(refused) * 2);
	tcase_add_test(t, old_tls_is_refused);
	tcase_add_test(t, static_rsa_is_refused);
	tcase_add_test(t, alpn_says_imap);
	tcase_add_test(t, a_server_that_refuses_alpn_is_asked_without);
	tcase_add_loop_test(t, authenticate_login_where_there_is_nothing_else,
	    0, 2);
	tcase_add_test(t, handshake_and_greeting_share_their_time);
	tcase_add_test(t, a_plain_server_on_a_tls_port_is_refused);
	tcase_add_test(t, a_silent_handshake_ends_at_the_deadline);
	tcase_add_test(t, a_bad_ca_file_is_a_configuration_error);
	suite_add_tcase(suite, t);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
