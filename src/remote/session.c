/*
 * session.c - a connection from the first packet to LOGOUT.
 *
 * Runs in: hot, pool and job children; remote_init in the parent.  Blocks.
 *
 * Up to the end of the login no byte of the server reaches libetpan's parser:
 * greeting and replies are read as lines (some greetings crash it).
 */
#define _GNU_SOURCE
#include "remote/session.h"

#include "base/clock.h"
#include "base/text.h"
#include "base/xmem.h"
#include "remote/catchall.h"
#include "remote/command.h"
#include "remote/net.h"
#include "remote/tls.h"

#include <gnutls/gnutls.h>

#define LOGOUT_MSECS 1000

static const struct quirks_table *quirks_table;

int
remote_init(const char *ca_file, struct err *err)
{
	if (tls_init(ca_file, err) == -1)
		return -1;
	net_init();
	return catchall_register(err);
}

void
remote_set_quirks(const struct quirks_table *table)
{
	quirks_table = table;
}

int
session_die(struct remote *r, const struct err *why, struct err *err)
{
	if (r->dead.kind == ERR_NONE)
		r->dead = *why;
	*err = r->dead;
	return -1;
}

int
session_check(struct remote *r, struct err *err)
{
	struct err stop = ERR_INIT;

	if (r->dead.kind != ERR_NONE) {
		*err = r->dead;
		return -1;
	}
	if (r->may_go_on != NULL && r->may_go_on(r->arg, &stop) == -1)
		return session_die(r, &stop, err);
	return 0;
}

/* --- capabilities -------------------------------------------------------- */

bool
session_has(struct remote *r, const char *capability)
{
	const char *words = buf_str(&wire_notes(r->wire)->capability);
	size_t len = strlen(capability), n;

	for (; *words != '\0'; words += n + (words[n] != '\0')) {
		n = strcspn(words, " ");
		if (n == len && strncasecmp(words, capability, n) == 0)
			return true;
	}
	return false;
}

void
session_note_capabilities(struct remote *r, const char *greeting)
{
	static const struct {
		const char *word;
		unsigned caps;
	} known[] = {
		{ "CONDSTORE", REMOTE_CONDSTORE },
		{ "QRESYNC", REMOTE_CONDSTORE | REMOTE_QRESYNC },
		{ "IDLE", REMOTE_IDLE },
		{ "MOVE", REMOTE_MOVE },
		{ "UIDPLUS", REMOTE_UIDPLUS },
		{ "SPECIAL-USE", REMOTE_SPECIAL_USE },
		{ "LIST-STATUS", REMOTE_LIST_STATUS },
		{ "IMAP4rev2", REMOTE_IDLE | REMOTE_MOVE | REMOTE_UIDPLUS |
			REMOTE_SPECIAL_USE | REMOTE_LIST_STATUS },
	};
	struct quirks more;
	size_t i;

	quirks_match(quirks_table, r->host, greeting,
	    buf_str(&wire_notes(r->wire)->capability), &more);
	quirks_add(&r->quirks, &more);
	r->caps = 0;
	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (session_has(r, known[i].word))
			r->caps |= known[i].caps;
	if (r->quirks.no_condstore)
		r->caps &= ~(unsigned)(REMOTE_CONDSTORE | REMOTE_QRESYNC);
	if (r->quirks.no_qresync)
		r->caps &= ~(unsigned)REMOTE_QRESYNC;
	if (r->quirks.no_idle)
		r->caps &= ~(unsigned)REMOTE_IDLE;
}

/* CAPABILITY, when it has not come by itself. */
static int
ask_capability(struct remote *r, struct err *err)
{
	struct buf out = BUF_INIT;
	struct reply reply;
	int tag, result;

	if (wire_notes(r->wire)->has_capability)
		return 0;
	tag = command_begin(r, &out);
	buf_adds(&out, "CAPABILITY");
	result = command_send(r, &out, err);
	buf_release(&out);
	if (result == 0)
		result = command_reply_lines(r, tag, NULL, &reply, err);
	return result == 0 ? reply_check(r, &reply, "CAPABILITY", err) : -1;
}

static void
forget_capabilities(struct remote *r)
{
	struct mend_notes *notes = wire_notes(r->wire);

	buf_reset(&notes->capability);
	notes->has_capability = false;
}

/* --- opening ------------------------------------------------------------- */

static int
wire_lost(struct remote *r, struct err *err)
{
	return session_die(r, wire_error(r->wire), err);
}

static int
read_greeting(struct remote *r, enum tls_mode mode, char *greeting,
    size_t size, bool *is_preauth_r, struct err *err)
{
	struct err odd = ERR_INIT;
	const char *line, *text;

	if ((line = mailimap_read_line(r->imap)) == NULL)
		return wire_lost(r, err);
	text = line;
	if (strncasecmp(line, "* OK ", 5) == 0)
		text += 5;
	else if (strncasecmp(line, "* PREAUTH", 9) == 0) {
		text += 9;
		*is_preauth_r = true;
	} else {
		err_set(&odd, ERR_PROTOCOL, "%s: no IMAP greeting", r->host);
		return session_die(r, &odd, err);
	}
	text_clean_line(greeting, size, text, strcspn(text, "\r\n"));
	/* Nothing can be protected any more (L003). */
	if (*is_preauth_r && mode == TLS_STARTTLS) {
		err_set(&odd, ERR_TLS, "%s: the server is logged in before "
		    "TLS was started (PREAUTH)", r->host);
		return session_die(r, &odd, err);
	}
	return 0;
}

static int
start_tls(struct remote *r, int64_t msecs, struct err *err)
{
	struct err cause = ERR_INIT;

	wire_set_deadline(r->wire, msecs);
	if (r->imap->imap_stream->read_buffer_len > 0)
		wire_fail(r->wire, ERR_TLS, "bytes in the clear came behind "
		    "the answer to STARTTLS: somebody may be tampering with "
		    "the connection");
	if (wire_error(r->wire)->kind != ERR_NONE)
		return wire_lost(r, err);
	if (wire_start_tls(r->wire, &cause) == -1)
		return session_die(r, &cause, err);
	return 0;
}

static int
run_starttls(struct remote *r, int64_t msecs, struct err *err)
{
	struct buf out = BUF_INIT;
	struct err why = ERR_INIT;
	struct reply reply;
	int tag, result;

	if (ask_capability(r, err) == -1)
		return -1;
	if (!session_has(r, "STARTTLS")) {
		err_set(&why, ERR_TLS, "%s offers no STARTTLS on this port; "
		    "the account wants it", r->host);
		return session_die(r, &why, err);
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
		return session_die(r, &why, err);
	}
	if (start_tls(r, msecs, err) == -1)
		return -1;
	forget_capabilities(r); /* they came in the clear */
	return 0;
}

static int
connect_wire(struct remote *r, const struct remote_params *params,
    struct err *err)
{
	struct wire_params wire = { .fd = -1, .host = r->host,
		.max_line = params->max_line, .may_go_on = params->may_go_on,
		.arg = params->arg };

	if (rawlog_open(&wire.rawlog, params->rawlog_path, err) == -1)
		return -1;
	if (net_connect(r->host, r->port,
		clock_mono_msecs() + params->connect_msecs, params->may_go_on,
		params->arg, &wire.fd, err) == -1) {
		rawlog_close(&wire.rawlog);
		return -1;
	}
	r->wire = wire_new(&wire);
	rawlog_note(wire.rawlog, "connected to %s port %u", r->host, r->port);
	r->imap = mailimap_new(0, NULL);
	if (r->imap == NULL)
		xmem_fail(sizeof(*r->imap));
	r->imap->imap_stream = mailstream_new(wire_low(r->wire),
	    STREAM_BUFFER);
	if (r->imap->imap_stream == NULL)
		xmem_fail(STREAM_BUFFER);
	return 0;
}

static int
open_session(struct remote *r, const struct remote_params *params,
    struct err *err)
{
	char greeting[240];
	bool is_preauth = false;
	int64_t msecs = params->connect_msecs;

	if (connect_wire(r, params, err) == -1)
		return -1;
	if (params->tls == TLS_IMPLICIT && start_tls(r, msecs, err) == -1)
		return -1;
	wire_set_deadline(r->wire, msecs);
	if (read_greeting(r, params->tls, greeting, sizeof(greeting),
		&is_preauth, err) == -1)
		return -1;
	if (params->tls == TLS_STARTTLS && run_starttls(r, msecs, err) == -1)
		return -1;
	if (ask_capability(r, err) == -1)
		return -1;
	session_note_capabilities(r, greeting);
	if (!is_preauth) {
		/* Those before login are not to be trusted (L012). */
		if (login_run(r, params->login, params->password, err) == -1)
			return -1;
		if (ask_capability(r, err) == -1)
			return -1;
		session_note_capabilities(r, greeting);
	}
	r->is_logged_in = true;
	if (session_has(r, "ID") || r->quirks.id_before_select)
		r->id_later = ++r->last_tag;
	r->imap->imap_state = MAILIMAP_STATE_AUTHENTICATED;
	return 0;
}

int
remote_open(struct remote **r_r, const struct remote_params *params,
    struct err *err)
{
	struct remote *r = xcalloc(1, sizeof(*r));

	*r_r = NULL;
	r->port = params->port;
	r->log = params->log;
	r->command_msecs = params->command_msecs;
	r->max_literal = params->max_literal;
	r->max_reply = params->max_reply;
	r->may_go_on = params->may_go_on;
	r->arg = params->arg;
	if (net_clean_host(r->host, params->host, err) == -1 ||
	    session_check(r, err) == -1 ||
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
		remote_close(&r);
		return -1;
	}
	*r_r = r;
	return 0;
}

/* LOGOUT is a courtesy: nobody waits for its answer, unless the server is known
 * to count: our next connection must not come before this one is gone. */
static void
say_goodbye(struct remote *r)
{
	struct buf out = BUF_INIT;
	struct err err = ERR_INIT;
	struct reply reply;
	int tag;

	if (r->wire == NULL || r->dead.kind != ERR_NONE || !r->is_logged_in)
		return;
	tag = command_begin(r, &out);
	buf_adds(&out, "LOGOUT\r\n");
	wire_set_deadline(r->wire, LOGOUT_MSECS);
	if (wire_send(r->wire, out.data, out.len, false) == 0 &&
	    r->quirks.conn_cap != 0)
		command_reply_lines(r, tag, NULL, &reply, &err);
	buf_release(&out);
}

void
remote_close(struct remote **r_p)
{
	struct remote *r = *r_p;

	if (r == NULL)
		return;
	say_goodbye(r);
	if (r->imap != NULL) {
		/* With a stream it would send LOGOUT and wait. */
		if (r->imap->imap_stream != NULL)
			mailstream_close(r->imap->imap_stream);
		r->imap->imap_stream = NULL;
		mailimap_free(r->imap);
	}
	wire_free(&r->wire);
	if (r->gave_socket != NULL)
		r->gave_socket(r->arg);
	free(r);
	*r_p = NULL;
}

/* --- questions ----------------------------------------------------------- */

unsigned
remote_caps(const struct remote *r)
{
	return r->caps;
}

const struct quirks *
remote_quirks(const struct remote *r)
{
	return &r->quirks;
}

int64_t
remote_idle_limit_msecs(const struct remote *r)
{
	return r->quirks.idle_secs * 1000;
}

void
remote_stats(const struct remote *r, struct remote_stats *stats_r)
{
	const struct wire_counts *c = wire_counts(r->wire);

	stats_r->round_trips = c->round_trips;
	stats_r->bytes_in = c->bytes_in;
	stats_r->bytes_out = c->bytes_out;
	stats_r->is_slowed = r->is_slowed;
}
