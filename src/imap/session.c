/*
 * session.c - a connection from the login to LOGOUT, and what is known of it.
 *
 * Runs in: hot, pool and job children; imap_init in the parent.  Blocks.
 */
#define _GNU_SOURCE
#include "imap/session.h"

#include "imap/fallback.h"
#include "imap/command.h"
#include "net/net.h"
#include "net/tls.h"

#define LOGOUT_MSECS 1000

static const struct quirks_table *quirks_table;

int
imap_init(const char *ca_file, struct err *err)
{
	if (tls_init(ca_file, err) == -1)
		return -1;
	net_init();
	return fallback_register(err);
}

int
imap_renew_trust(const char *ca_file, struct err *err)
{
	return tls_init(ca_file, err);
}

void
imap_set_quirks(const struct quirks_table *table)
{
	quirks_table = table;
}

int
imap_die(struct imap *r, const struct err *why, struct err *err)
{
	if (r->dead.kind == ERR_NONE)
		r->dead = *why;
	*err = r->dead;
	return -1;
}

int
imap_check(struct imap *r, struct err *err)
{
	struct err stop = ERR_INIT;

	if (r->dead.kind != ERR_NONE) {
		*err = r->dead;
		return -1;
	}
	if (r->may_go_on != NULL && r->may_go_on(r->arg, &stop) == -1)
		return imap_die(r, &stop, err);
	return 0;
}

/* --- capabilities -------------------------------------------------------- */

bool
imap_has(struct imap *r, const char *capability)
{
	const char *words = buf_str(&stream_notes(r->stream)->capability);
	size_t len = strlen(capability), n;

	for (; *words != '\0'; words += n + (words[n] != '\0')) {
		n = strcspn(words, " ");
		if (n == len && strncasecmp(words, capability, n) == 0)
			return true;
	}
	return false;
}

void
imap_note_capabilities(struct imap *r, const char *greeting)
{
	static const struct {
		const char *word;
		unsigned caps;
	} known[] = {
		{ "CONDSTORE", IMAP_CONDSTORE },
		{ "QRESYNC", IMAP_CONDSTORE | IMAP_QRESYNC },
		{ "IDLE", IMAP_IDLE },
		{ "MOVE", IMAP_MOVE },
		{ "UIDPLUS", IMAP_UIDPLUS },
		{ "SPECIAL-USE", IMAP_SPECIAL_USE },
		{ "LIST-STATUS", IMAP_LIST_STATUS },
		{ "OBJECTID", IMAP_OBJECTID },
		{ "IMAP4rev2", IMAP_IDLE | IMAP_MOVE | IMAP_UIDPLUS |
			IMAP_SPECIAL_USE | IMAP_LIST_STATUS },
	};
	struct quirks more;
	size_t i;

	quirks_match(quirks_table, r->host, greeting,
	    buf_str(&stream_notes(r->stream)->capability), &more);
	quirks_add(&r->quirks, &more);
	r->caps = 0;
	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (imap_has(r, known[i].word))
			r->caps |= known[i].caps;
	if (r->quirks.no_condstore)
		r->caps &= ~(unsigned)(IMAP_CONDSTORE | IMAP_QRESYNC);
	if (r->quirks.no_qresync)
		r->caps &= ~(unsigned)IMAP_QRESYNC;
	if (r->quirks.no_mailboxid)
		r->caps &= ~(unsigned)IMAP_OBJECTID;
	if (r->quirks.no_idle)
		r->caps &= ~(unsigned)IMAP_IDLE;
}

int
imap_ask_capability(struct imap *r, struct err *err)
{
	struct buf out = BUF_INIT;
	struct reply reply;
	int tag, result;

	if (stream_notes(r->stream)->has_capability)
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
imap_forget_capabilities(struct imap *r)
{
	struct sanitize_notes *notes = stream_notes(r->stream);

	buf_reset(&notes->capability);
	notes->has_capability = false;
}

/* --- closing ------------------------------------------------------------- */

void
imap_drop(struct imap *r)
{
	if (r->imap != NULL) {
		/* With a stream it would send LOGOUT and wait. */
		if (r->imap->imap_stream != NULL)
			mailstream_close(r->imap->imap_stream);
		r->imap->imap_stream = NULL;
		mailimap_free(r->imap);
		r->imap = NULL;
	}
	stream_free(&r->stream);
}

/* LOGOUT is a courtesy: nobody waits for its answer, unless the server is known
 * to count: our next connection must not come before this one is gone. */
static void
say_goodbye(struct imap *r)
{
	struct buf out = BUF_INIT;
	struct err err = ERR_INIT;
	struct reply reply;
	int tag;

	if (r->stream == NULL || r->dead.kind != ERR_NONE || !r->is_logged_in)
		return;
	tag = command_begin(r, &out);
	buf_adds(&out, "LOGOUT\r\n");
	stream_set_deadline(r->stream, LOGOUT_MSECS);
	if (stream_send(r->stream, out.data, out.len, false) == 0 &&
	    r->quirks.conn_cap != 0)
		command_reply_lines(r, tag, NULL, &reply, &err);
	buf_release(&out);
}

void
imap_close(struct imap **r_p)
{
	struct imap *r = *r_p;

	if (r == NULL)
		return;
	say_goodbye(r);
	imap_drop(r);
	if (r->gave_socket != NULL)
		r->gave_socket(r->arg);
	free(r);
	*r_p = NULL;
}

/* --- questions ----------------------------------------------------------- */

unsigned
imap_caps(const struct imap *r)
{
	return r->caps;
}

const struct quirks *
imap_quirks(const struct imap *r)
{
	return &r->quirks;
}

int64_t
imap_idle_limit_msecs(const struct imap *r)
{
	return r->quirks.idle_secs * 1000;
}

void
imap_stats(const struct imap *r, struct imap_stats *stats_r)
{
	const struct stream_counts *c = stream_counts(r->stream);

	stats_r->round_trips = c->round_trips;
	stats_r->bytes_in = c->bytes_in;
	stats_r->bytes_out = c->bytes_out;
	stats_r->is_slowed = r->is_slowed;
}
