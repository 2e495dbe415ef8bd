/*
 * login.c - proving who we are.
 *
 * Runs in: hot, pool and job children.  Blocks as the wire does.
 *
 * AUTHENTICATE PLAIN with an initial response where the server takes one (any
 * byte in name and password, one round trip), else LOGIN; AUTHENTICATE LOGIN,
 * over TLS, where there is nothing else.  What held the
 * password is overwritten before it is freed; where a server repeats it in its
 * words, they are kept without it (mask.h).
 */
#define _GNU_SOURCE
#include "imap/command.h"
#include "imap/words.h"

#include <bsd/string.h>

static void
login_wipe(struct buf *b)
{
	if (b->data != NULL)
		explicit_bzero(b->data, b->cap);
	buf_release(b);
}

static void
add_base64(struct buf *out, const char *bytes, size_t len)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz"
				     "0123456789+/";
	const unsigned char *p = (const unsigned char *)bytes;
	size_t i;

	for (i = 0; i < len; i += 3) {
		uint32_t v = (uint32_t)p[i] << 16;

		if (i + 1 < len)
			v |= (uint32_t)p[i + 1] << 8;
		if (i + 2 < len)
			v |= p[i + 2];
		buf_addc(out, digits[v >> 18 & 63]);
		buf_addc(out, digits[v >> 12 & 63]);
		buf_addc(out, i + 1 < len ? digits[v >> 6 & 63] : '=');
		buf_addc(out, i + 2 < len ? digits[v & 63] : '=');
	}
}

/*
 * Room for everything at once: a buffer that grows leaves copies of its
 * beginning behind.
 */
static void
login_reserve(struct buf *b, const char *login, const char *password)
{
	buf_reserve(b, 4 * (strlen(login) + strlen(password)) + 200);
}

static void
add_plain(struct buf *out, const char *login, const char *password)
{
	struct buf message = BUF_INIT;

	login_reserve(&message, login, password);
	buf_addc(&message, '\0');
	buf_adds(&message, login);
	buf_addc(&message, '\0');
	buf_adds(&message, password);
	add_base64(out, message.data, message.len);
	login_wipe(&message);
}

static int
send_secret(struct imap *r, const struct buf *out, struct err *err)
{
	if (stream_send(r->stream, out->data, out->len, true) == -1)
		return imap_die(r, stream_error(r->stream), err);
	return 0;
}

static int
authenticate_plain(struct imap *r, const char *login, const char *password,
    bool has_initial, struct reply *reply, struct err *err)
{
	struct buf out = BUF_INIT, response = BUF_INIT;
	const char *answers[2] = { NULL };
	int tag, result;

	login_reserve(&out, login, password);
	login_reserve(&response, login, password);
	tag = command_begin(r, &out);
	buf_adds(&out, "AUTHENTICATE PLAIN");
	if (has_initial) {
		buf_addc(&out, ' ');
		add_plain(&out, login, password);
	} else {
		add_plain(&response, login, password);
		buf_adds(&response, "\r\n");
		answers[0] = response.data;
	}
	buf_adds(&out, "\r\n");
	result = send_secret(r, &out, err);
	if (result == 0)
		result = command_reply_lines(r, tag, answers, reply, err);
	login_wipe(&out);
	login_wipe(&response);
	return result;
}

/* For servers that have nothing else.  It asks for the name, then for the
 * password, in whatever words; never an initial response (L006). */
static int
authenticate_login(struct imap *r, const char *login, const char *password,
    struct reply *reply, struct err *err)
{
	struct buf out = BUF_INIT, name = BUF_INIT, secret = BUF_INIT;
	const char *answers[3] = { NULL };
	int tag, result;

	login_reserve(&name, login, password);
	login_reserve(&secret, login, password);
	add_base64(&name, login, strlen(login));
	buf_adds(&name, "\r\n");
	add_base64(&secret, password, strlen(password));
	buf_adds(&secret, "\r\n");
	answers[0] = name.data;
	answers[1] = secret.data;
	tag = command_begin(r, &out);
	buf_adds(&out, "AUTHENTICATE LOGIN\r\n");
	result = send_secret(r, &out, err);
	if (result == 0)
		result = command_reply_lines(r, tag, answers, reply, err);
	buf_release(&out);
	login_wipe(&name);
	login_wipe(&secret);
	return result;
}

static bool
needs_literal(const char *s)
{
	for (; *s != '\0'; s++)
		if ((unsigned char)*s >= 0x7F || (unsigned char)*s < ' ')
			return true;
	return false;
}

/*
 * LOGIN in pieces: a literal needs the server's "+" before its bytes unless
 * the server has LITERAL+ (or LITERAL-, for short ones).
 */
static int
add_login_string(struct imap *r, struct buf *out, const char *s,
    struct err *err)
{
	bool can_push = imap_has(r, "LITERAL+") ||
	    (imap_has(r, "LITERAL-") && strlen(s) <= 4096);
	const char *line;
	struct reply reply;

	if (!needs_literal(s))
		return command_add_string(out, s, err);
	buf_addf(out, "{%zu%s}\r\n", strlen(s), can_push ? "+" : "");
	if (!can_push) {
		if (send_secret(r, out, err) == -1)
			return -1;
		buf_reset(out);
		do {
			if ((line = mailimap_read_line(r->imap)) == NULL)
				return imap_die(r, stream_error(r->stream),
				    err);
			if (command_is_tagged(line, r->last_tag, &reply)) {
				words_for_login(reply.text, true, r->host, err);
				return -1;
			}
		} while (line[0] != '+');
	}
	buf_adds(out, s);
	return 0;
}

static int
login_command(struct imap *r, const char *login, const char *password,
    struct reply *reply, struct err *err)
{
	struct buf out = BUF_INIT;
	int tag, result;

	login_reserve(&out, login, password);
	tag = command_begin(r, &out);
	buf_adds(&out, "LOGIN ");
	result = add_login_string(r, &out, login, err);
	buf_addc(&out, ' ');
	if (result == 0)
		result = add_login_string(r, &out, password, err);
	buf_adds(&out, "\r\n");
	if (result == 0)
		result = send_secret(r, &out, err);
	if (result == 0)
		result = command_reply_lines(r, tag, NULL, reply, err);
	login_wipe(&out);
	return result;
}

/* BAD, and not a word of the credentials. */
static bool
is_command_unknown(struct imap *r, const struct reply *reply)
{
	struct err why = ERR_INIT;

	if (reply->status != REPLY_BAD)
		return false;
	words_for_login(reply->text, true, r->host, &why);
	return why.kind == ERR_SERVER;
}

static int
imap_login_run(struct imap *r, const char *login, const char *password,
    struct reply *reply, struct err *err)
{
	bool has_plain = imap_has(r, "AUTH=PLAIN");
	bool has_login = imap_has(r, "AUTH=LOGIN") && stream_is_tls(r->stream);

	stream_set_deadline(r->stream, r->command_msecs);
	/* Never an initial response for LOGIN (L006). */
	if (has_plain && imap_has(r, "SASL-IR"))
		return authenticate_plain(r, login, password, true, reply,
		    err);
	if (!imap_has(r, "LOGINDISABLED")) {
		if (login_command(r, login, password, reply, err) == -1)
			return -1;
		return has_login && is_command_unknown(r, reply) ?
		    authenticate_login(r, login, password, reply, err) : 0;
	}
	if (has_plain)
		return authenticate_plain(r, login, password, false, reply,
		    err);
	if (has_login)
		return authenticate_login(r, login, password, reply, err);
	return err_set(err, stream_is_tls(r->stream) ? ERR_PERMANENT : ERR_TLS,
	    "%s takes no password login%s", r->host,
	    stream_is_tls(r->stream) ? "" : " without TLS");
}

int
login_run(struct imap *r, const char *login, const char *password,
    struct err *err)
{
	struct sanitize_notes *notes = stream_notes(r->stream);
	struct err refused = ERR_INIT;
	struct reply reply = { .status = REPLY_BAD };
	int result;

	if (strpbrk(login, "\r\n") != NULL || strpbrk(password, "\r\n") != NULL)
		return err_set(err, ERR_AUTH,
		    "a line end in the login name or password");
	if (imap_check(r, err) == -1)
		return -1;
	notes->has_capability = false;
	result = imap_login_run(r, login, password, &reply, err);
	if (result == -1)
		return -1;
	if (reply.status == REPLY_OK)
		return 0;
	words_for_login(reply.text, reply.status == REPLY_BAD, r->host,
	    &refused);
	return imap_die(r, &refused, err);
}
