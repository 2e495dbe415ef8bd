/*
 * session.c - a connection from the login to LOGOUT, and what is known of it.
 *
 * Runs in: hot, pool and job children; remote_init in the parent.  Blocks.
 */
#define _GNU_SOURCE
#include "remote/session.h"

#include "remote/catchall.h"
#include "remote/command.h"
#include "remote/net.h"
#include "remote/tls.h"

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

int
remote_renew_trust(const char *ca_file, struct err *err)
{
	return tls_init(ca_file, err);
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

int
session_ask_capability(struct remote *r, struct err *err)
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

void
session_forget_capabilities(struct remote *r)
{
	struct mend_notes *notes = wire_notes(r->wire);

	buf_reset(&notes->capability);
	notes->has_capability = false;
}

/* --- closing ------------------------------------------------------------- */

void
session_drop(struct remote *r)
{
	if (r->imap != NULL) {
		/* With a stream it would send LOGOUT and wait. */
		if (r->imap->imap_stream != NULL)
			mailstream_close(r->imap->imap_stream);
		r->imap->imap_stream = NULL;
		mailimap_free(r->imap);
		r->imap = NULL;
	}
	wire_free(&r->wire);
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
	session_drop(r);
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
