/*
 * open.c - a connection from the first packet to the end of the login.
 *
 * Runs in: hot, pool and job children.  Blocks.
 *
 * Up to the end of the login no byte of the server reaches libetpan's parser:
 * greeting and replies are read as lines (some greetings crash it).
 *
 * A name often has several addresses, and one of them is half dead: it takes
 * connections and says nothing, or BYE.  What fails before the greeting goes to
 * another address, while the time for all of it together lasts; an address has
 * half of what is left, the last one all.
 */
#include "imap/session.h"

#include "base/clock.h"
#include "base/text.h"
#include "base/xmem.h"
#include "imap/command.h"
#include "net/net.h"

/* Less is not worth a handshake. */
#define SHARE_LEAST_MSECS 500

struct opening {
	struct imap *r;
	const struct imap_params *params;
	struct net_wait wait; /* with the deadline of it all */
	struct net_targets *targets;
	bool no_alpn;
	bool is_preauth;
	char greeting[240];
};

static int
wire_lost(struct imap *r, struct err *err)
{
	return imap_die(r, stream_error(r->stream), err);
}

/* --- one address --------------------------------------------------------- */

static int
connect_wire(struct opening *o, struct err *err)
{
	struct imap *r = o->r;
	struct stream_params wire = { .fd = -1, .host = r->host,
		.no_alpn = o->no_alpn, .max_line = o->params->max_line,
		.may_go_on = o->params->may_go_on, .arg = o->params->arg };

	if (rawlog_open(&wire.rawlog, o->params->rawlog_path, err) == -1)
		return -1;
	if (net_connect(o->targets, &o->wait, &wire.fd, err) == -1) {
		rawlog_close(&wire.rawlog);
		return -1;
	}
	r->stream = stream_new(&wire);
	/* A server may have heard the password before, and tell it to whoever
	 * comes. */
	stream_hide(r->stream, o->params->password);
	rawlog_note(wire.rawlog, "connected to %s port %u", r->host, r->port);
	r->imap = mailimap_new(0, NULL);
	if (r->imap == NULL)
		xmem_fail(sizeof(*r->imap));
	r->imap->imap_stream = mailstream_new(stream_low(r->stream),
	    STREAM_BUFFER);
	if (r->imap->imap_stream == NULL)
		xmem_fail(STREAM_BUFFER);
	return 0;
}

static int
start_tls(struct opening *o, struct err *err)
{
	struct imap *r = o->r;
	struct err cause = ERR_INIT;

	stream_set_deadline(r->stream, o->params->connect_msecs);
	if (r->imap->imap_stream->read_buffer_len > 0)
		stream_fail(r->stream, ERR_TLS, "bytes in the clear came behind "
		    "the answer to STARTTLS: somebody may be tampering with "
		    "the connection");
	if (stream_error(r->stream)->kind != ERR_NONE)
		return wire_lost(r, err);
	if (stream_start_tls(r->stream, &cause) == -1)
		return imap_die(r, &cause, err);
	return 0;
}

static int
read_greeting(struct opening *o, struct err *err)
{
	struct imap *r = o->r;
	struct err odd = ERR_INIT;
	const char *line, *text;

	stream_set_deadline(r->stream, o->params->connect_msecs);
	if ((line = mailimap_read_line(r->imap)) == NULL)
		return wire_lost(r, err);
	text = line;
	if (strncasecmp(line, "* OK ", 5) == 0)
		text += 5;
	else if (strncasecmp(line, "* PREAUTH", 9) == 0) {
		text += 9;
		o->is_preauth = true;
	} else {
		err_set(&odd, ERR_PROTOCOL, "%s: no IMAP greeting", r->host);
		return imap_die(r, &odd, err);
	}
	text_clean_line(o->greeting, sizeof(o->greeting), text,
	    strcspn(text, "\r\n"));
	return 0;
}

/* How long the address may take that is connected now. */
static int64_t
share_until(const struct opening *o)
{
	int64_t now = clock_mono_msecs();
	int64_t left = o->wait.deadline_mono_msecs - now;

	if (net_targets_left(o->targets) == 0 || left < 2 * SHARE_LEAST_MSECS)
		return o->wait.deadline_mono_msecs;
	return now + left / 2;
}

static int
try_address(struct opening *o, struct err *err)
{
	if (connect_wire(o, err) == -1)
		return -1;
	stream_set_limit(o->r->stream, share_until(o));
	if ((o->params->tls == TLS_IMPLICIT && start_tls(o, err) == -1) ||
	    read_greeting(o, err) == -1)
		return -1;
	stream_set_limit(o->r->stream, o->wait.deadline_mono_msecs);
	return 0;
}

/* --- all of them --------------------------------------------------------- */

static bool
is_about_the_address(const struct err *err)
{
	return err->kind == ERR_NETWORK || err->kind == ERR_DEADLINE ||
	    err->kind == ERR_TLS || err->kind == ERR_PROTOCOL ||
	    err->kind == ERR_THROTTLED;
}

/* Is there another address, or another way, and time for it? */
static bool
can_try_again(struct opening *o, const struct err *failure)
{
	struct imap *r = o->r;
	bool had_no_socket = r->stream == NULL;

	if (!is_about_the_address(failure) || had_no_socket ||
	    o->wait.deadline_mono_msecs - clock_mono_msecs() <
		SHARE_LEAST_MSECS)
		return false;
	if (!o->no_alpn && stream_is_alpn_refused(r->stream)) {
		o->no_alpn = true;
		net_targets_put_back(o->targets);
	}
	return net_targets_left(o->targets) > 0;
}

/* Of several failures a request to wait counts most, then the first. */
static int
open_reach(struct opening *o, struct err *err)
{
	struct imap *r = o->r;
	struct err first = ERR_INIT, failure = ERR_INIT;

	if (net_resolve(r->host, r->port, &o->wait, &o->targets, err) == -1)
		return -1;
	while (try_address(o, &failure) == -1) {
		if (first.kind == ERR_NONE ||
		    failure.kind == ERR_THROTTLED ||
		    !is_about_the_address(&failure))
			first = failure;
		if (!can_try_again(o, &failure)) {
			*err = first;
			return -1;
		}
		log_debug(r->log, "another address of the name: %s",
		    failure.text);
		imap_drop(r);
		r->dead = failure = (struct err)ERR_INIT;
	}
	return 0;
}

/* --- from the greeting on ------------------------------------------------ */

static int
run_starttls(struct opening *o, struct err *err)
{
	struct imap *r = o->r;
	struct buf out = BUF_INIT;
	struct err why = ERR_INIT;
	struct reply reply;
	int tag, result;

	/* Nothing can be protected any more (L003). */
	if (o->is_preauth) {
		err_set(&why, ERR_TLS, "%s: the server is logged in before "
		    "TLS was started (PREAUTH)", r->host);
		return imap_die(r, &why, err);
	}
	if (imap_ask_capability(r, err) == -1)
		return -1;
	if (!imap_has(r, "STARTTLS")) {
		err_set(&why, ERR_TLS, "%s offers no STARTTLS on this port; "
		    "the account wants it", r->host);
		return imap_die(r, &why, err);
	}
	tag = command_begin(r, &out);
	buf_adds(&out, "STARTTLS");
	result = command_send(r, &out, err);
	buf_release(&out);
	if (result == 0)
		result = command_reply_lines(r, tag, NULL, &reply, err);
	if (result == -1)
		return -1;
	if (reply.status != REPLY_OK) {
		err_set(&why, ERR_TLS, "%s refused STARTTLS: %s", r->host,
		    reply.text);
		return imap_die(r, &why, err);
	}
	if (start_tls(o, err) == -1)
		return -1;
	imap_forget_capabilities(r); /* they came in the clear */
	return 0;
}

static int
log_in(struct opening *o, struct err *err)
{
	struct imap *r = o->r;

	if (imap_ask_capability(r, err) == -1)
		return -1;
	imap_note_capabilities(r, o->greeting);
	if (!o->is_preauth) {
		/* Those before login are not to be trusted (L012). */
		if (login_run(r, o->params->login, o->params->password,
			err) == -1)
			return -1;
		if (imap_ask_capability(r, err) == -1)
			return -1;
		imap_note_capabilities(r, o->greeting);
	}
	r->is_logged_in = true;
	if (imap_has(r, "ID") || r->quirks.id_before_select)
		r->id_later = ++r->last_tag;
	r->imap->imap_state = MAILIMAP_STATE_AUTHENTICATED;
	return 0;
}

static int
open_session(struct imap *r, const struct imap_params *params,
    struct err *err)
{
	struct opening o = { .r = r, .params = params,
		.wait = { .may_go_on = params->may_go_on, .arg = params->arg,
		    .deadline_mono_msecs = clock_mono_msecs() +
			params->connect_msecs } };
	int rv;

	rv = open_reach(&o, err);
	if (rv == 0 && params->tls == TLS_STARTTLS)
		rv = run_starttls(&o, err);
	net_targets_free(&o.targets);
	if (rv == -1)
		return -1;
	stream_set_limit(r->stream, 0);
	rv = log_in(&o, err);
	stream_hide_later(r->stream);
	return rv;
}

int
imap_open(struct imap **r_r, const struct imap_params *params,
    struct err *err)
{
	struct imap *r = xcalloc(1, sizeof(*r));

	*r_r = NULL;
	r->port = params->port;
	r->log = params->log;
	r->command_msecs = params->command_msecs;
	r->select_msecs = params->select_msecs;
	r->max_literal = params->max_literal;
	r->max_reply = params->max_reply;
	r->may_go_on = params->may_go_on;
	r->arg = params->arg;
	if (net_clean_host(r->host, params->host, err) == -1 ||
	    imap_check(r, err) == -1 ||
	    (params->want_socket != NULL &&
		params->want_socket(params->arg, r->host, r->port, err) ==
		    -1)) {
		free(r);
		return -1;
	}
	r->gave_socket = params->gave_socket;
	if (open_session(r, params, err) == -1) {
		if (r->dead.kind == ERR_NONE)
			r->dead = *err; /* no LOGOUT */
		imap_close(&r);
		return -1;
	}
	*r_r = r;
	return 0;
}
