/*
 * fuzz_response.c - any replies, through stream, sanitize, libetpan and our own
 * reading of LIST, STATUS, SELECT, FETCH and IDLE.
 *
 * The first byte chooses the command; its tag is 1.
 */
#include "base/text.h"
#include "base/xmem.h"
#include "imap/fallback.h"
#include "imap/command.h"

#include "fuzz.h"

#include <sys/socket.h>
#include <unistd.h>

static int
on_place(void *arg, const struct place *place)
{
	(void)arg;
	if (place->uid == 0 || place->flags.keywords == NULL)
		abort();
	return 0;
}

static int
on_bytes(void *arg, const char *p, size_t len)
{
	uint64_t *sum = arg;

	while (len-- > 0)
		*sum += (unsigned char)*p++;
	return 0;
}

static int
on_done(void *arg, const struct place *place, bool has_body)
{
	(void)has_body;
	return on_place(arg, place);
}

static void
on_drop(void *arg)
{
	(void)arg;
}

static void
on_too_large(void *arg, uint32_t uid)
{
	(void)arg;
	if (uid == 0)
		abort();
}

static struct imap *
session_that_reads(const uint8_t *data, size_t size)
{
	struct imap *r = xcalloc(1, sizeof(*r));
	struct stream_params params = { .host = "fuzz", .max_line = 1 << 16 };
	int fds[2], big = 1 << 20;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) == -1)
		abort();
	setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &big, sizeof(big));
	if (send(fds[1], data, size, MSG_NOSIGNAL) == -1 && size > 0)
		abort();
	shutdown(fds[1], SHUT_WR);
	params.fd = fds[0];
	r->stream = stream_new(&params);
	buf_adds(&stream_notes(r->stream)->capability,
	    "IMAP4rev1 SPECIAL-USE LIST-EXTENDED UNSELECT");
	r->imap = mailimap_new(0, NULL);
	r->imap->imap_stream = mailstream_new(stream_low(r->stream), 8192);
	r->command_msecs = 1000;
	r->max_literal = 1 << 12;
	r->max_reply = 1 << 16;
	stream_hide(r->stream, "gehe\"im");
	r->caps = IMAP_CONDSTORE | IMAP_IDLE;
	r->is_logged_in = r->is_selected = r->is_exists_known = true;
	r->imap->imap_selection_info = mailimap_selection_info_new();
	r->imap->imap_selection_info->sel_exists = 10;
	/* The peer stays open for what we send. */
	r->port = (uint16_t)fds[1];
	return r;
}

static void
run(struct imap *r, unsigned choice, struct arena *arena)
{
	static const char *const wires[] = { "INBOX", "A", "B" };
	static const uint32_t uids[] = { 1, 2, 3, 5, 8, 9, 70000 };
	struct cursor known = { .uidvalidity = 7, .uidnext = 100,
		.highestmodseq = 5 };
	struct imap_changes changes = { .arena = arena };
	struct imap_status status[3];
	struct imap_selected selected;
	struct imap_folder *folders;
	enum imap_wake wake;
	struct err err = ERR_INIT;
	uint64_t sum = 0;
	struct imap_sink sink = { .bytes = on_bytes, .done = on_done,
		.arg = &sum, .drop = on_drop, .too_large = on_too_large };
	bool yes;
	size_t i, n;

	switch (choice % 8) {
	case 0:
		if (imap_list(r, arena, &folders, &n, &err) == 0)
			for (i = 0; i < n; i++)
				if (folders[i].wire[0] == '\0' ||
				    !text_is_utf8(folders[i].path,
					strlen(folders[i].path)))
					abort();
		break;
	case 1:
		imap_status(r, wires, 3, status, &err);
		break;
	case 2:
		r->caps |= IMAP_QRESYNC;
		r->enable = ENABLE_SENT;
		r->is_qresync_on = true;
		if (imap_select(r, "INBOX", &known, &selected, &changes,
			&err) == 0)
			for (i = 1; i < changes.n_vanished; i++)
				if (changes.vanished[i] <=
				    changes.vanished[i - 1])
					abort();
		break;
	case 3:
		imap_scan_uids(r, 1, 0, ITEM_FLAGS | ITEM_MESSAGE_ID,
		    on_place, NULL, &err);
		break;
	case 4:
		imap_fetch(r, uids, 7, 4, &sink, &err);
		break;
	case 5:
		imap_idle(r, -1, 0, &wake, &err);
		break;
	case 6:
		imap_noop(r, &changes, &err);
		break;
	case 7:
		imap_is_too_large(r, 5, &yes, &err);
		break;
	}
	/* What is said of it is fit for people, and tells no password. */
	if (err.kind != ERR_NONE && (!text_is_utf8(err.text,
		strlen(err.text)) || strstr(err.text, "gehe\"im") != NULL))
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *arena;
	struct imap *r;
	struct err err = ERR_INIT;
	int peer;

	if (size < 1 || size > 100000)
		return 0;
	fallback_register(&err);
	log_set_level(LOG_LEVEL_ERROR);
	arena = arena_new("fuzz");
	r = session_that_reads(data + 1, size - 1);
	peer = r->port;
	run(r, data[0], arena);
	err_set(&r->dead, ERR_STOPPED, "done"); /* no LOGOUT */
	imap_close(&r);
	close(peer);
	arena_free(&arena);
	return 0;
}
