/*
 * test_imap.c - a session against a scripted server.
 *
 * Test names carry the number of the field case they stand for (L...).
 */
#define _GNU_SOURCE
#include "config.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/heap.h"
#include "conf/quirks.h"
#include "imap/imap.h"
#include "scripted_imapd.h"

#include <check.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define CAPS "IMAP4rev1 IDLE UNSELECT"
#define GREET SAY("* OK [CAPABILITY IMAP4rev1 SASL-IR AUTH=PLAIN] hi\r\n")
#define LOGIN(caps)                                                      \
	GREET, HEAR("* AUTHENTICATE PLAIN AGFubgBzZWNyZXQ="),            \
	    SAY("%1 OK [CAPABILITY " caps "] in\r\n")
#define AGAIN HEAR("* UNSELECT"), HEAR("* SELECT \"INBOX\""),              \
	    SAY("%2 OK\r\n* 3 EXISTS\r\n%1 OK\r\n")
#define SELECTED                                                         \
	HEAR("* SELECT \"INBOX\""),                                      \
	    SAY("* 3 EXISTS\r\n* OK [UIDVALIDITY 7] x\r\n"               \
		"* OK [UIDNEXT 12] x\r\n%1 OK [READ-WRITE] done\r\n")

static struct imap *imap;
static struct arena *arena;
static struct err err;
static unsigned sockets;

static int
want_socket(void *arg, const char *host, uint16_t port, struct err *e)
{
	(void)arg;
	(void)host;
	(void)port;
	(void)e;
	sockets++;
	return 0;
}

static void
gave_socket(void *arg)
{
	(void)arg;
	sockets--;
}

static void
start(void)
{
	err = (struct err)ERR_INIT;
	arena = arena_new("test");
	sockets = 0;
}

static void
stop(void)
{
	imap_close(&imap);
	arena_free(&arena);
}

static struct imap_params
usual(uint16_t port)
{
	return (struct imap_params){ .host = "127.0.0.1", .port = port,
		.tls = TLS_NONE, .login = "ann", .password = "secret",
		.connect_msecs = 30000, .command_msecs = 30000,
		.max_line = 1 << 16, .max_literal = 1 << 20,
		.max_reply = 1 << 20,
		.want_socket = want_socket, .gave_socket = gave_socket };
}

static int
try_open(const struct step *steps, struct imap_params params)
{
	params.port = scripted_start(steps);
	return imap_open(&imap, &params, &err);
}

static void
open_with(const struct step *steps)
{
	if (try_open(steps, usual(0)) == -1)
		ck_abort_msg("open: %s", err.text);
}

/* For servers that fall silent. */
static void
open_impatient(const struct step *steps)
{
	struct imap_params params = usual(0);

	params.command_msecs = heap_is_checked() ? 2000 : 400;
	if (try_open(steps, params) == -1)
		ck_abort_msg("open: %s", err.text);
}

static void
select_inbox(void)
{
	struct imap_selected selected;

	if (imap_select(imap, "INBOX", NULL, &selected, NULL, &err) == -1)
		ck_abort_msg("select: %s", err.text);
}

static void
finish(void)
{
	imap_close(&imap);
	ck_assert_int_eq(scripted_finish(), 0);
	ck_assert_uint_eq(sockets, 0);
}

#define OK(call)                                            \
	do {                                                \
		if ((call) == -1)                           \
			ck_abort_msg("%s: %s", #call, err.text); \
	} while (0)

/* Every later call must fail the same way, and nothing more may be sent. */
static void
is_dead(enum err_kind kind)
{
	struct imap_status status;
	const char *wire = "INBOX";

	ck_assert_msg(err.kind == kind, "%s: %s", err_kind_name(err.kind),
	    err.text);
	ck_assert_int_eq(imap_status(imap, &wire, 1, &status, &err), -1);
	ck_assert_int_eq(err.kind, kind);
}

/* --- what is collected --------------------------------------------------- */

static struct {
	struct place places[64];
	char keywords[64][100], message_ids[64][100];
	bool has_body[64];
	char bodies[64][100];
	size_t sizes[64];
	size_t n, n_dropped;
	struct buf body;
} got;

static int
on_place(void *arg, const struct place *place)
{
	size_t i = got.n++;

	(void)arg;
	ck_assert_uint_lt(i, 64);
	got.places[i] = *place;
	snprintf(got.keywords[i], 100, "%s", place->flags.keywords);
	snprintf(got.message_ids[i], 100, "%s",
	    place->message_id != NULL ? place->message_id : "");
	return 0;
}

static int
on_bytes(void *arg, const char *p, size_t len)
{
	(void)arg;
	buf_add(&got.body, p, len);
	return 0;
}

static int
on_done(void *arg, const struct place *place, bool has_body)
{
	got.has_body[got.n] = has_body;
	got.sizes[got.n] = got.body.len;
	snprintf(got.bodies[got.n], 100, "%s", buf_str(&got.body));
	buf_reset(&got.body);
	return on_place(arg, place);
}

static void
on_drop(void *arg)
{
	(void)arg;
	got.n_dropped++;
	buf_reset(&got.body);
}

static const struct imap_sink sink = { .bytes = on_bytes, .done = on_done,
	.drop = on_drop };

static int
fetch(const uint32_t *uids, size_t n)
{
	memset(&got, 0, sizeof(got));
	return imap_fetch(imap, uids, n, 0, &sink, &err);
}

static int
scan(void)
{
	memset(&got, 0, sizeof(got));
	return imap_scan_uids(imap, 1, 0, ITEM_FLAGS, on_place, NULL,
	    &err);
}

/* --- the straight path --------------------------------------------------- */

START_TEST(a_poll_is_login_and_one_flight)
{
	static const struct step steps[] = { LOGIN(CAPS " ID CONDSTORE"),
		HEAR("* ID (\"name\" \"mailherd\" *)"),
		HEAR("* STATUS \"INBOX\" (MESSAGES UIDNEXT UIDVALIDITY "
		     "HIGHESTMODSEQ)"),
		HEAR("* STATUS \"a \\\\\\\"b\" (*"), HEAR("* STATUS \"C\" (*"),
		SAY("* ID NIL\r\n%4 OK\r\n"
		    "* STATUS INBOX (MESSAGES 3 UIDNEXT 9 UIDVALIDITY 7 "
		    "HIGHESTMODSEQ 44)\r\n%3 OK x\r\n"
		    "%2 NO [NONEXISTENT] gone\r\n"
		    "* STATUS C ()\r\n%1 OK x\r\n"),
		END };
	static const char *const wires[] = { "INBOX", "a \"b", "C" };
	struct imap_status status[3];
	struct imap_stats stats;

	open_with(steps);
	OK(imap_status(imap, wires, 3, status, &err));
	ck_assert(status[0].is_known);
	ck_assert_uint_eq(status[0].messages, 3);
	ck_assert_uint_eq(status[0].uidnext, 9);
	ck_assert_uint_eq(status[0].uidvalidity, 7);
	ck_assert_uint_eq(status[0].highestmodseq, 44);
	ck_assert(!status[1].is_known);
	ck_assert_str_eq(status[1].no_text, "[NONEXISTENT] gone");
	ck_assert(!status[2].is_known); /* L035 */
	imap_stats(imap, &stats);
	ck_assert_uint_eq(stats.round_trips, 2);
	finish();
}
END_TEST

START_TEST(status_goes_along_with_list)
{
	static const struct step steps[] = { LOGIN(CAPS " ID"),
		HEAR("* ID (*"), HEAR("* LIST \"\" \"\\*\""),
		HEAR("* STATUS \"INBOX\" (*"), HEAR("* STATUS \"Gone\" (*"),
		SAY("* ID NIL\r\n%4 OK\r\n"
		    "* LIST () \"/\" INBOX\r\n%3 OK\r\n"
		    "* STATUS INBOX (MESSAGES 3 UIDNEXT 9)\r\n%2 OK\r\n"
		    "%1 NO gone\r\n"),
		END };
	const char *const wires[] = { "INBOX", "Gone" };
	struct imap_status status[2];
	struct imap_flight along = { wires, 2, status, 0 };
	struct imap_folder *folders;
	struct imap_stats stats;
	size_t n;

	open_with(steps);
	OK(imap_list_with(imap, &along, arena, &folders, &n, &err));
	ck_assert_uint_eq(n, 1);
	ck_assert_uint_eq(along.n_answered, 2);
	ck_assert_uint_eq(status[0].uidnext, 9);
	ck_assert(!status[1].is_known);
	imap_stats(imap, &stats);
	ck_assert_uint_eq(stats.round_trips, 2);
	finish();
}
END_TEST

START_TEST(status_refused_along_with_list_is_left_to_be_asked)
{
	static const struct step steps[] = {
		LOGIN(CAPS " CONDSTORE SPECIAL-USE LIST-EXTENDED"),
		HEAR("* LIST \"\" \"\\*\" RETURN (SPECIAL-USE)"),
		HEAR("* STATUS \"INBOX\" (* HIGHESTMODSEQ)"),
		SAY("%2 BAD no such thing\r\n%1 BAD unknown item\r\n"),
		HEAR("* LIST \"\" \"\\*\""),
		SAY("* LIST () \"/\" INBOX\r\n%1 OK\r\n"),
		HEAR("* STATUS \"INBOX\" (MESSAGES UIDNEXT UIDVALIDITY)"),
		SAY("* STATUS INBOX (MESSAGES 1)\r\n%1 OK\r\n"), END };
	const char *wire = "INBOX";
	struct imap_status status;
	struct imap_flight along = { &wire, 1, &status, 0 };
	struct imap_folder *folders;
	size_t n;

	open_with(steps);
	OK(imap_list_with(imap, &along, arena, &folders, &n, &err));
	ck_assert_uint_eq(n, 1);
	ck_assert_uint_eq(along.n_answered, 0);
	OK(imap_status(imap, &wire, 1, &status, &err));
	ck_assert_uint_eq(status.messages, 1);
	finish();
}
END_TEST

START_TEST(status_without_highestmodseq_when_that_is_bad)
{
	static const struct step steps[] = { LOGIN(CAPS " CONDSTORE"),
		HEAR("* STATUS \"INBOX\" (* HIGHESTMODSEQ)"),
		SAY("%1 BAD unknown item\r\n"),
		HEAR("* STATUS \"INBOX\" (MESSAGES UIDNEXT UIDVALIDITY)"),
		SAY("* STATUS INBOX (MESSAGES 1)\r\n%1 OK\r\n"), END };
	const char *wire = "INBOX";
	struct imap_status status;

	open_with(steps);
	OK(imap_status(imap, &wire, 1, &status, &err));
	ck_assert_uint_eq(status.messages, 1);
	finish();
}
END_TEST

START_TEST(scan_reads_flags_dates_and_ids)
{
	static const struct step steps[] = { LOGIN(CAPS " CONDSTORE"),
		HEAR("* SELECT \"INBOX\" (CONDSTORE)"),
		SAY("* 2 EXISTS\r\n%1 OK x\r\n"),
		HEAR("* UID FETCH 3:9 (UID FLAGS RFC822.SIZE INTERNALDATE "
		     "MODSEQ BODY.PEEK\\[HEADER.FIELDS (MESSAGE-ID)\\])"),
		SAY("* 1 FETCH (UID 5 FLAGS (\\Seen b \\Recent $a Caf\303\251 b "
		    "with]bracket) "
		    "RFC822.SIZE 44 INTERNALDATE "
		    "\" 3-Mar-2026 10:00:00 +0545\" MODSEQ (9) "
		    "BODY[HEADER.FIELDS (\"MESSAGE-ID\")] {31}\r\n"
		    "Message-ID:\r\n <m@example.org>\r\n)\r\n"),
		/* L145; not asked for; without UID */
		SAY("* 2 FETCH (UID 6 INTERNALDATE "
		    "\"00-Jan-0000 00:00:00 +0000\")\r\n"
		    "* 3 FETCH (UID 10 FLAGS ())\r\n"
		    "* 4 FETCH (UID 2 FLAGS ())\r\n"
		    "* 5 FETCH (FLAGS (\\Seen))\r\n%1 OK done\r\n"),
		END };
	struct imap_selected selected;

	open_with(steps);
	OK(imap_select(imap, "INBOX", NULL, &selected, NULL, &err));
	memset(&got, 0, sizeof(got));
	OK(imap_scan_uids(imap, 3, 9, ITEM_FLAGS | ITEM_SIZE | ITEM_DATE |
		ITEM_MODSEQ | ITEM_MESSAGE_ID, on_place, NULL, &err));
	ck_assert_uint_eq(got.n, 2);
	ck_assert_uint_eq(got.places[0].uid, 5);
	ck_assert_uint_eq(got.places[0].flags.bits, FLAG_SEEN);
	ck_assert_str_eq(got.keywords[0],
	    "$a b Caf\303\251 with]bracket");
	ck_assert_uint_eq(got.places[0].size, 44);
	ck_assert_uint_eq(got.places[0].modseq, 9);
	ck_assert(got.places[0].has_internal_date);
	/* L227: 2026-03-03T04:15:00Z */
	ck_assert_int_eq(got.places[0].internal_date_secs, 1772511300);
	ck_assert_str_eq(got.message_ids[0], "m@example.org");
	ck_assert_uint_eq(got.places[1].uid, 6);
	ck_assert(!got.places[1].has_internal_date);
	ck_assert(!got.places[1].has_flags); /* L115 */
	finish();
}
END_TEST

START_TEST(bodies_stream_with_two_commands_in_flight)
{
	static const struct step steps[] = { LOGIN(CAPS), SELECTED,
		HEAR("* UID FETCH 1:3,5 (UID FLAGS INTERNALDATE RFC822.SIZE "
		     "BODY.PEEK\\[\\])"),
		HEAR("* UID FETCH 7 (*"),
		SAY("* 1 FETCH (BODY[] {5}\r\nhello UID 1 FLAGS (\\Seen))\r\n"
		    /* unsolicited, in between (no body of its own) */
		    "* 9 FETCH (FLAGS (\\Seen))\r\n"
		    "* 2 FETCH (UID 2 RFC822.SIZE 3 BODY[] {3}\r\nabc)\r\n"
		    "* 2 FETCH (UID 2 FLAGS (x))\r\n"
		    "* 4 EXPUNGE\r\n"),
		PAUSE,
		SAY("* 3 FETCH (UID 3 BODY[] {0}\r\n)\r\n%2 OK x\r\n"
		    "* 5 FETCH (UID 7 BODY[] \"q\\\"t\")\r\n%1 OK x\r\n"),
		END };
	static const uint32_t uids[] = { 5, 3, 2, 1, 7 };

	open_with(steps);
	select_inbox();
	memset(&got, 0, sizeof(got));
	OK(imap_fetch(imap, uids, 5, 4, &sink, &err));
	ck_assert_uint_eq(got.n, 4);
	ck_assert_uint_eq(got.places[0].uid, 1);
	ck_assert_str_eq(got.bodies[0], "hello");
	ck_assert_str_eq(got.bodies[1], "abc");
	ck_assert_uint_eq(got.places[2].uid, 3);
	ck_assert(got.has_body[2]);
	ck_assert_uint_eq(got.sizes[2], 0);
	ck_assert_str_eq(got.bodies[3], "q\"t");
	ck_assert_uint_eq(got.n_dropped, 0);
	finish();
}
END_TEST

/* L136, L046, NIL: said once, when the command is answered. */
START_TEST(a_message_without_a_body_is_reported_as_such)
{
	static const struct step steps[] = { LOGIN(CAPS), SELECTED,
		HEAR("* UID FETCH *"),
		SAY("* 1 FETCH (UID 5 FLAGS (a))\r\n"
		    "* 2 FETCH (UID 6 BODY[] )\r\n"
		    "* 3 FETCH (UID 7 BODY[] NIL)\r\n"
		    "* 4 FETCH (UID 8 FLAGS ())\r\n"
		    "* 4 FETCH (UID 8 BODY[] {1}\r\nx)\r\n%1 OK x\r\n"),
		END };
	static const uint32_t uids[] = { 5, 6, 7, 8, 9 };

	open_with(steps);
	select_inbox();
	OK(fetch(uids, 5));
	ck_assert_uint_eq(got.n, 4);
	ck_assert_uint_eq(got.places[0].uid, 8);
	ck_assert(got.has_body[0]);
	ck_assert_uint_eq(got.places[1].uid, 5);
	ck_assert(!got.has_body[1] && !got.has_body[2] && !got.has_body[3]);
	ck_assert_str_eq(got.keywords[1], "a");
	finish();
}
END_TEST

/* L030: Domino answers in an order of its own. */
/* F-B1: the bytes of the message, whatever its size was said to be. */
START_TEST(a_wrong_size_makes_a_message_come_alone)
{
	static const struct step steps[] = { LOGIN(CAPS), SELECTED,
		HEAR("* UID FETCH 5:6 *"),
		SAY("* 1 FETCH (UID 5 FLAGS () RFC822.SIZE 3 BODY[] {5}\r\n"
		    "abcde)\r\n* 2 FETCH (UID 6 FLAGS () RFC822.SIZE 1 "
		    "BODY[] {1}\r\nx)\r\n%1 OK x\r\n"),
		HEAR("* UID FETCH 5 *"),
		SAY("* 1 FETCH (UID 5 FLAGS () RFC822.SIZE 3 BODY[] {5}\r\n"
		    "abcde)\r\n%1 OK x\r\n"),
		END };
	static const uint32_t uids[] = { 5, 6 };

	open_with(steps);
	select_inbox();
	OK(fetch(uids, 2));
	ck_assert_uint_eq(got.n, 2);
	ck_assert_str_eq(got.bodies[0], "x");
	ck_assert_uint_eq(got.places[1].uid, 5);
	ck_assert_str_eq(got.bodies[1], "abcde");
	finish();
}
END_TEST

/* F-B1: alone as in company. */
static const struct {
	const char *id, *reply;
} torn[] = {
	{ "it swallows the flags",
	    "* 1 FETCH (UID 5 RFC822.SIZE 3 BODY[] {12}\r\n"
	    "abc FLAGS ())\r\n%1 OK x\r\n" },
	{ "the rest of the body looks like the end",
	    "* 1 FETCH (UID 5 FLAGS () RFC822.SIZE 13 BODY[] {3}\r\n"
	    "abc)\r\nrest.)\r\n%1 OK x\r\n" },
	{ "the rest of the body is text",
	    "* 1 FETCH (UID 5 FLAGS () RFC822.SIZE 7 BODY[] {3}\r\n"
	    "abcdefg)\r\n%1 OK x\r\n" },
	{ "a second message in its place",
	    "* 1 FETCH (UID 5 FLAGS () RFC822.SIZE 7 BODY[] {3}\r\nabc)\r\n"
	    "* 1 FETCH (UID 5 FLAGS () RFC822.SIZE 7 BODY[] {3}\r\nabc)\r\n"
	    "%1 OK x\r\n" },
};

START_TEST(a_torn_message_is_none)
{
	static struct step steps[] = { LOGIN(CAPS), SELECTED,
		HEAR("* UID FETCH *"), { STEP_SAY, NULL }, CLOSE };
	static const uint32_t uid = 5;

	steps[sizeof(steps) / sizeof(steps[0]) - 2].text = torn[_i].reply;
	open_with(steps);
	select_inbox();
	ck_assert_int_eq(fetch(&uid, 1), -1);
	ck_assert_msg(err.kind == ERR_PROTOCOL, "%s: %s", torn[_i].id,
	    err.text);
	ck_assert_uint_eq(got.n, 0);
	finish();
}
END_TEST

/* F-B17 */
static uint32_t too_large_uid;

static void
on_too_large(void *arg, uint32_t uid)
{
	(void)arg;
	too_large_uid = uid;
}

START_TEST(a_message_above_the_limit_is_skipped)
{
	static const struct step steps[] = { LOGIN(CAPS), SELECTED,
		HEAR("* UID FETCH 5:6 *"),
		SAY("* 1 FETCH (UID 5 FLAGS () RFC822.SIZE 3 BODY[] {12}\r\n"
		    "abcdef\r\n12)\r FLAGS ())\r\n"
		    "* 2 FETCH (UID 6 FLAGS () RFC822.SIZE 1 "
		    "BODY[] {1}\r\nx)\r\n%1 OK x\r\n"),
		HEAR("* UID FETCH 5 (UID BODY.PEEK\\[\\]<10.1>)"),
		SAY("* 1 FETCH (UID 5 BODY[]<10> {1}\r\nx)\r\n%1 OK\r\n"),
		HEAR("* UID FETCH 6 (UID BODY.PEEK\\[\\]<10.1>)"),
		SAY("* 2 FETCH (UID 6 BODY[]<10> \"\")\r\n%1 OK\r\n"),
		HEAR("* UID FETCH 6 (UID BODY.PEEK\\[\\]<10.1>)"),
		SAY("* 2 FETCH (UID 6 BODY[]<10> {0}\r\n)\r\n%1 OK\r\n"),
		HEAR("* UID FETCH 6 (UID BODY.PEEK\\[\\]<10.1>)"),
		SAY("%1 NO not that\r\n"), END };
	static const uint32_t uids[] = { 5, 6 };
	struct imap_params params = usual(0);
	struct imap_sink large = sink;
	bool yes;

	large.too_large = on_too_large;
	params.max_literal = 10;
	if (try_open(steps, params) == -1)
		ck_abort_msg("open: %s", err.text);
	select_inbox();
	OK(imap_fetch(imap, uids, 2, 0, &large, &err));
	ck_assert_uint_eq(too_large_uid, 5);
	ck_assert_uint_eq(got.n, 1);
	ck_assert_str_eq(got.bodies[0], "x");
	OK(imap_is_too_large(imap, 5, &yes, &err));
	ck_assert(yes);
	OK(imap_is_too_large(imap, 6, &yes, &err));
	ck_assert(!yes);
	OK(imap_is_too_large(imap, 6, &yes, &err));
	ck_assert(!yes);
	OK(imap_is_too_large(imap, 6, &yes, &err));
	ck_assert(yes);
	finish();
}
END_TEST

START_TEST(messages_may_come_in_any_order)
{
	static const struct step steps[] = { LOGIN(CAPS), SELECTED,
		HEAR("* UID FETCH *"),
		SAY("* 9 FETCH (UID 9 BODY[] {1}\r\nc)\r\n"
		    "* 2 FETCH (BODY[] {1}\r\na UID 2)\r\n"
		    "* 7 FETCH (UID 5 BODY[] {1}\r\nb)\r\n%1 OK x\r\n"),
		END };
	static const uint32_t uids[] = { 2, 5, 9 };

	open_with(steps);
	select_inbox();
	OK(fetch(uids, 3));
	ck_assert_uint_eq(got.n, 3);
	ck_assert_uint_eq(got.places[0].uid, 9);
	ck_assert_str_eq(got.bodies[0], "c");
	ck_assert_uint_eq(got.places[1].uid, 2);
	ck_assert_str_eq(got.bodies[1], "a");
	ck_assert_uint_eq(got.places[2].uid, 5);
	ck_assert_str_eq(got.bodies[2], "b");
	finish();
}
END_TEST

/* L100: numbers move while a FETCH runs; UIDs are what counts. */
START_TEST(an_expunge_during_a_scan_mixes_nothing_up)
{
	static const struct step steps[] = { LOGIN(CAPS), SELECTED,
		HEAR("* UID FETCH *"),
		SAY("* 3 FETCH (UID 33 FLAGS (a))\r\n* 1 EXPUNGE\r\n"
		    "* 3 FETCH (UID 44 FLAGS (b))\r\n%1 OK x\r\n"),
		END };

	open_with(steps);
	select_inbox();
	OK(scan());
	ck_assert_uint_eq(got.n, 2);
	ck_assert_uint_eq(got.places[0].uid, 33);
	ck_assert_str_eq(got.keywords[0], "a");
	ck_assert_uint_eq(got.places[1].uid, 44);
	ck_assert_str_eq(got.keywords[1], "b");
	finish();
}
END_TEST

START_TEST(bodies_not_asked_for_and_doubles_are_dropped)
{
	static const struct step steps[] = { LOGIN(CAPS), SELECTED,
		HEAR("* UID FETCH *"),
		SAY("* 1 FETCH (UID 4 BODY[] {1}\r\na)\r\n"
		    "* 2 FETCH (UID 5 BODY[] {1}\r\nb)\r\n"
		    "* 2 FETCH (UID 5 BODY[] {1}\r\nc)\r\n"
		    "* 3 FETCH (BODY[] {1}\r\nd)\r\n%1 OK x\r\n"),
		END };
	static const uint32_t uids[] = { 5 };

	open_with(steps);
	select_inbox();
	OK(fetch(uids, 1));
	ck_assert_uint_eq(got.n, 1);
	ck_assert_str_eq(got.bodies[0], "b");
	ck_assert_uint_eq(got.n_dropped, 3);
	finish();
}
END_TEST

START_TEST(a_refused_fetch_leaves_the_session_usable)
{
	static const struct step steps[] = { LOGIN(CAPS), SELECTED,
		HEAR("* UID FETCH *"), HEAR("* UID FETCH *"),
		SAY("* 1 FETCH (UID 1 BODY[] {1}\r\na)\r\n"
		    "%2 NO [SERVERBUG] some messages\r\n%1 OK x\r\n"),
		HEAR("* UNSELECT"), SAY("%1 OK x\r\n"), END };
	static const uint32_t uids[] = { 1, 2, 3 };

	open_with(steps);
	select_inbox();
	memset(&got, 0, sizeof(got));
	ck_assert_int_eq(imap_fetch(imap, uids, 3, 1, &sink, &err), -1);
	ck_assert_int_eq(err.kind, ERR_SERVER);
	ck_assert_ptr_nonnull(strstr(err.text, "[SERVERBUG] some messages"));
	ck_assert_uint_eq(got.n, 1);
	OK(imap_unselect(imap, &err));
	finish();
}
END_TEST

/* L223: commands below the line limit, sets ascending. */
START_TEST(long_sets_are_split)
{
	enum { N = 3000 };
	static struct step steps[40] = { LOGIN(CAPS), SELECTED };
	static uint32_t uids[N];
	size_t i, at = 6;

	while (steps[at - 1].kind == STEP_END)
		at--;
	/* 3,000 sparse UIDs of 6 digits: 3 commands of 1,114 or less */
	for (i = 0; i < 2; i++)
		steps[at++] = (struct step)HEAR("* UID FETCH 1*");
	steps[at++] = (struct step)SAY("%2 OK\r\n");
	steps[at++] = (struct step)HEAR("* UID FETCH 1*");
	steps[at++] = (struct step)SAY("%2 OK\r\n%1 OK\r\n");
	steps[at] = (struct step)END;
	for (i = 0; i < N; i++)
		uids[i] = 100000 + 2 * (uint32_t)i;
	open_with(steps);
	select_inbox();
	memset(&got, 0, sizeof(got));
	OK(imap_fetch(imap, uids, N, N, &sink, &err));
	finish();
}
END_TEST

/* --- SELECT and QRESYNC -------------------------------------------------- */

START_TEST(qresync_brings_changes_and_vanished)
{
	static const struct step steps[] = {
		LOGIN(CAPS " ENABLE QRESYNC"),
		HEAR("* ENABLE QRESYNC"),
		HEAR("* SELECT \"INBOX\" (QRESYNC (7 90 1:99))"),
		SAY("* ENABLED QRESYNC\r\n%2 OK x\r\n"
		    "* OK [CLOSED] x\r\n* 3 EXISTS\r\n* 0 RECENT\r\n"
		    "* FLAGS (\\Seen)\r\n* OK [PERMANENTFLAGS (\r\n"
		    "* OK [UIDVALIDITY 7] x\r\n* OK [UIDNEXT 105] x\r\n"
		    "* OK [HIGHESTMODSEQ 95]\r\n"
		    "* VANISHED (EARLIER) 41,43:45,200:4294967295\r\n"
		    "* VANISHED (EARLIER) 44\r\n" /* L072: two of them */
		    "* 1 FETCH (UID 40 FLAGS (\\Seen) MODSEQ (93))\r\n"
		    "%1 OK [READ-ONLY] x\r\n"),
		HEAR("* UID FETCH 1:4294967295 (UID FLAGS MODSEQ) "
		     "(CHANGEDSINCE 95 VANISHED)"),
		SAY("* VANISHED 60\r\n* VANISHED (EARLIER) 50:52\r\n"
		    "* 2 FETCH (UID 70 MODSEQ (99) FLAGS ())\r\n%1 OK x\r\n"),
		END };
	struct cursor known = { .uidvalidity = 7, .uidnext = 100,
		.highestmodseq = 90 };
	struct imap_changes changes = { .arena = arena };
	struct imap_changes more = { .arena = arena };
	struct imap_selected selected;

	open_with(steps);
	ck_assert_uint_eq(imap_caps(imap) & IMAP_QRESYNC,
	    IMAP_QRESYNC);
	OK(imap_select(imap, "INBOX", &known, &selected, &changes, &err));
	ck_assert_uint_eq(selected.exists, 3);
	ck_assert_uint_eq(selected.uidnext, 105);
	ck_assert_uint_eq(selected.highestmodseq, 95);
	ck_assert(selected.is_read_only);
	ck_assert_uint_eq(changes.n_vanished, 4);
	ck_assert_uint_eq(changes.vanished[0], 41);
	ck_assert_uint_eq(changes.vanished[3], 45);
	ck_assert(!changes.is_cut);
	ck_assert_uint_eq(changes.n_changed, 1);
	ck_assert_uint_eq(changes.changed[0].uid, 40);
	ck_assert_uint_eq(changes.changed[0].modseq, 93);
	OK(imap_changed_since(imap, 0, 0, 95, &more, &err));
	ck_assert_uint_eq(more.n_vanished, 4);
	ck_assert_uint_eq(more.n_changed, 1);
	finish();
}
END_TEST

/* What is still said of the folder before is not news of this one. */
START_TEST(news_of_the_folder_before_are_void)
{
	static const struct step steps[] = { LOGIN(CAPS " QRESYNC"),
		HEAR("* ENABLE QRESYNC"), HEAR("* SELECT \"A\" (CONDSTORE)"),
		SAY("* ENABLED QRESYNC\r\n%2 OK x\r\n* 9 EXISTS\r\n%1 OK\r\n"),
		HEAR("* UNSELECT"), HEAR("* SELECT \"B\" (QRESYNC (7 9 1:19))"),
		SAY("* 1 FETCH (UID 4 FLAGS (\\Seen) MODSEQ (99))\r\n"
		    "* VANISHED 3\r\n* 8 EXISTS\r\n%2 OK\r\n"
		    "* OK [UIDVALIDITY 7] x\r\n* 2 EXISTS\r\n"
		    "* VANISHED (EARLIER) 11\r\n%1 OK\r\n"),
		END };
	struct cursor known = { .uidvalidity = 7, .uidnext = 20,
		.highestmodseq = 9 };
	struct imap_changes changes = { .arena = arena };
	struct imap_selected selected;

	open_with(steps);
	OK(imap_select(imap, "A", NULL, &selected, NULL, &err));
	OK(imap_select(imap, "B", &known, &selected, &changes, &err));
	ck_assert_uint_eq(selected.exists, 2);
	ck_assert_uint_eq(changes.n_changed, 0);
	ck_assert_uint_eq(changes.n_vanished, 1);
	ck_assert_uint_eq(changes.vanished[0], 11);
	finish();
}
END_TEST

START_TEST(changes_of_another_uidvalidity_are_void)
{
	static const struct step steps[] = { LOGIN(CAPS " QRESYNC"),
		HEAR("* ENABLE QRESYNC"), HEAR("* SELECT *"),
		SAY("* ENABLED QRESYNC\r\n%2 OK x\r\n* 3 EXISTS\r\n"
		    "* OK [UIDVALIDITY 3] x\r\n* VANISHED (EARLIER) 1:9\r\n"
		    "%1 OK x\r\n"),
		END };
	struct cursor known = { .uidvalidity = 9, .uidnext = 10,
		.highestmodseq = 5 };
	struct imap_changes changes = { .arena = arena };
	struct imap_selected selected;

	open_with(steps);
	OK(imap_select(imap, "INBOX", &known, &selected, &changes, &err));
	ck_assert_uint_eq(selected.uidvalidity, 3);
	ck_assert_uint_eq(changes.n_vanished, 0);
	finish();
}
END_TEST

START_TEST(a_vanished_bomb_is_cut)
{
	static const struct step steps[] = { LOGIN(CAPS " CONDSTORE"),
		HEAR("* SELECT *"), SAY("%1 OK\r\n"), HEAR("* UID FETCH *"),
		SAY("* VANISHED 1:4294967295\r\n%1 OK\r\n"), END };
	struct imap_changes changes = { .arena = arena };
	struct imap_selected selected;

	open_with(steps);
	OK(imap_select(imap, "INBOX", NULL, &selected, NULL, &err));
	OK(imap_changed_since(imap, 0, 0, 1, &changes, &err));
	ck_assert(changes.is_cut);
	ck_assert_uint_eq(changes.n_vanished, 0);
	finish();
}
END_TEST

/* D6: a reply leaves no more in memory than max_reply, whatever it says; who
 * asked knows that it is not whole. */
static const char *const flood_lines[] = {
	"* 1 EXPUNGE\r\n",
	"* 7 FETCH (UID 7 FLAGS (\\Seen) MODSEQ (7))\r\n",
	"* VANISHED 3:9\r\n",
	"* LIST () \"/\" \"some folder\"\r\n",
	"* STATUS \"x\" (MESSAGES 3)\r\n",
	"* OK still here\r\n",
};

START_TEST(a_flood_of_lines_is_cut)
{
	const char *line = flood_lines[_i];
	size_t lines = (size_t)4 << 20, len = strlen(line), i;
	char *text = malloc(lines + 100), *p = text;
	struct step steps[] = { LOGIN(CAPS " CONDSTORE"),
		HEAR("* SELECT *"), SAY("%1 OK\r\n"), HEAR("* UID FETCH *"),
		{ STEP_SAY, text }, HEAR("* NOOP"), SAY("%1 OK\r\n"), END };
	struct imap_changes changes = { .arena = arena };
	struct imap_changes more = { .arena = arena };
	struct imap_selected selected;
	size_t before;

	for (i = 0; i + len <= lines; i += len, p += len)
		memcpy(p, line, len);
	memcpy(p, "%1 OK done\r\n", sizeof("%1 OK done\r\n"));
	open_with(steps);
	free(text);
	OK(imap_select(imap, "INBOX", NULL, &selected, NULL, &err));
	before = mallinfo2().uordblks + mallinfo2().hblkhd;
	OK(imap_changed_since(imap, 0, 0, 1, &changes, &err));
	ck_assert(changes.is_cut);
	ck_assert_uint_lt(mallinfo2().uordblks + mallinfo2().hblkhd,
	    before + (3 << 20));
	OK(imap_noop(imap, &more, &err));
	ck_assert(!more.is_cut);
	finish();
}
END_TEST

static int
count_in_order(void *arg, const struct place *place)
{
	uint32_t *n = arg;

	ck_assert_uint_eq(place->uid, ++*n);
	return 0;
}

/* F-D6: what was asked for is not lost to the limit. */
START_TEST(a_long_scan_goes_on_in_another_command)
{
	char first[50000], rest[50000];
	struct step steps[] = { LOGIN(CAPS), SELECTED,
		HEAR("* UID FETCH 1:\\* (UID FLAGS)"),
		{ STEP_SAY, first }, HEAR("* UID FETCH [5-9]??:\\* *"),
		{ STEP_SAY, rest }, END };
	struct imap_params params = usual(0);
	size_t a = 0, b = 0;
	uint32_t n = 0;
	int i;

	for (i = 1; i <= 1000; i++) {
		char line[60];
		int len = snprintf(line, sizeof(line),
		    "* %d FETCH (UID %d FLAGS ())\r\n", i, i);

		memcpy(first + a, line, (size_t)len + 1);
		a += (size_t)len;
		if (i >= 500) {
			memcpy(rest + b, line, (size_t)len + 1);
			b += (size_t)len;
		}
	}
	memcpy(first + a, "%1 OK x\r\n", sizeof("%1 OK x\r\n"));
	memcpy(rest + b, "%1 OK x\r\n", sizeof("%1 OK x\r\n"));
	params.max_reply = 20000;
	if (try_open(steps, params) == -1)
		ck_abort_msg("open: %s", err.text);
	select_inbox();
	OK(imap_scan_uids(imap, 1, 0, ITEM_FLAGS, count_in_order, &n,
	    &err));
	ck_assert_uint_eq(n, 1000);
	finish();
}
END_TEST

/* L075: ENABLE answered without ENABLED; L082. */
START_TEST(enable_without_enabled_is_not_qresync)
{
	static const struct step steps[] = { LOGIN(CAPS " QRESYNC"),
		HEAR("* ENABLE QRESYNC"),
		HEAR("* SELECT \"INBOX\" (CONDSTORE)"),
		SAY("%2 OK ENABLE completed\r\n%1 OK x\r\n"),
		HEAR("* UID FETCH 1:9 (UID FLAGS MODSEQ) (CHANGEDSINCE 4)"),
		SAY("%1 OK\r\n"), END };
	struct imap_changes changes = { .arena = arena };
	struct imap_selected selected;

	open_with(steps);
	OK(imap_select(imap, "INBOX", NULL, &selected, NULL, &err));
	OK(imap_changed_since(imap, 1, 9, 4, &changes, &err));
	finish();
}
END_TEST

START_TEST(select_falls_back_when_its_parameters_are_bad)
{
	static const struct step steps[] = { LOGIN(CAPS " QRESYNC"),
		HEAR("* ENABLE QRESYNC"), HEAR("* SELECT \"a\" (QRESYNC *"),
		SAY("%2 BAD what\r\n%1 BAD what\r\n"),
		HEAR("* SELECT \"a\" (CONDSTORE)"), SAY("%1 BAD what\r\n"),
		HEAR("* SELECT \"a\""),
		SAY("* 1 EXISTS\r\n%1 OK x\r\n"), END };
	struct cursor known = { .uidvalidity = 9, .highestmodseq = 5 };
	struct imap_changes changes = { .arena = arena };
	struct imap_selected selected;

	open_with(steps);
	OK(imap_select(imap, "a", &known, &selected, &changes, &err));
	ck_assert_uint_eq(selected.exists, 1);
	finish();
}
END_TEST

/* L073, L086, L142 */
START_TEST(zero_and_absent_numbers_are_unknown)
{
	static const struct step steps[] = { LOGIN(CAPS " CONDSTORE"),
		HEAR("* SELECT *"),
		SAY("* 0 EXISTS\r\n* OK [UIDVALIDITY 0] x\r\n"
		    "* OK [HIGHESTMODSEQ 0] x\r\n%1 OK x\r\n"),
		END };
	struct imap_selected selected;

	open_with(steps);
	OK(imap_select(imap, "INBOX", NULL, &selected, NULL, &err));
	ck_assert_uint_eq(selected.uidvalidity, 0);
	ck_assert_uint_eq(selected.uidnext, 0);
	ck_assert_uint_eq(selected.highestmodseq, 0);
	finish();
}
END_TEST

/* L065, L134 */
START_TEST(a_folder_that_cannot_be_selected_is_a_server_error)
{
	static const struct step steps[] = { LOGIN(CAPS),
		HEAR("* SELECT \"Calendar\""),
		SAY("%1 NO [NONEXISTENT] no such folder\r\n"), SELECTED, END };
	struct imap_selected selected;

	open_with(steps);
	ck_assert_int_eq(imap_select(imap, "Calendar", NULL, &selected,
	    NULL, &err), -1);
	ck_assert_int_eq(err.kind, ERR_SERVER);
	select_inbox();
	finish();
}
END_TEST

/* L135 */
START_TEST(unsafe_login_is_answered_with_id)
{
	static const struct step steps[] = { LOGIN(CAPS),
		HEAR("* SELECT \"INBOX\""),
		SAY("%1 NO SELECT Unsafe Login. Please contact "
		    "kefu@188.com for help\r\n"),
		HEAR("* ID (*"), HEAR("* SELECT \"INBOX\""),
		SAY("%2 OK\r\n* 1 EXISTS\r\n%1 OK\r\n"), END };

	open_with(steps);
	select_inbox();
	finish();
}
END_TEST

/* --- LIST ---------------------------------------------------------------- */

static struct imap_folder *folders;
static size_t n_folders;

static const struct imap_folder *
folder(const char *wire)
{
	size_t i;

	for (i = 0; i < n_folders; i++)
		if (strcmp(folders[i].wire, wire) == 0)
			return &folders[i];
	ck_abort_msg("no folder %s", wire);
	return NULL;
}

START_TEST(list_reads_names_roles_and_flags)
{
	static const struct step steps[] = {
		LOGIN(CAPS " SPECIAL-USE LIST-EXTENDED"),
		HEAR("* LIST \"\" \"\\*\" RETURN (SPECIAL-USE)"),
		SAY("* LIST (\\HasNoChildren) \"/\" \"Inbox\"\r\n" /* L058 */
		    "* LIST (\\Sent) \"/\" \"&AMk-l&AOk-ments\"\r\n"
		    "* LIST (\\Noselect) \"/\" \"[Gmail]\"\r\n"
		    "* LIST (\\NonExistent) \"/\" Gone\r\n"
		    "* LIST () \"/\" \"Test\"\r\n* LIST () \"/\" \"test\"\r\n"
		    "* LIST () \"/\" \"Old \"\r\n" /* L061 */
		    "* LIST (\\Junk) \"/\" \"R&-D\"\r\n" /* L054 */
		    "* LIST () \"\\\\\" {5}\r\na \"b\\\r\n"
		    "* LIST () \"/\" Foo]Bar\r\n" /* L056 */
		    "* LIST () \"/\" \"test\"\r\n"
		    "* LIST () \"\374\" \"Entw&APw-rfe\"\r\n"
		    "* LIST () \"/\" \"Entw\374rfe\"\r\n"
		    "* LIST () \"/\" \"Entw\303\274rfe\"\r\n"
		    "* LIST () NIL \"nul\"\r\n%1 OK done\r\n"),
		END };

	open_with(steps);
	OK(imap_list(imap, arena, &folders, &n_folders, &err));
	ck_assert_uint_eq(n_folders, 14);
	ck_assert_str_eq(folder("Inbox")->path, "INBOX");
	ck_assert_int_eq(folder("Inbox")->role, ROLE_INBOX);
	ck_assert_int_eq(folder("&AMk-l&AOk-ments")->role, ROLE_SENT);
	ck_assert_str_eq(folder("&AMk-l&AOk-ments")->path,
	    "\303\211l\303\251ments");
	ck_assert(!folder("[Gmail]")->is_selectable);
	ck_assert(!folder("Gone")->is_selectable);
	ck_assert(folder("Test")->is_selectable);
	ck_assert_str_eq(folder("Old ")->path, "Old ");
	ck_assert_str_eq(folder("R&-D")->path, "R&D");
	ck_assert_int_eq(folder("R&-D")->role, ROLE_JUNK);
	ck_assert_int_eq(folder("a \"b\\")->delimiter, '\\');
	ck_assert_int_eq(folder("nul")->delimiter, '\0');
	/* One name in three spellings (F-A7). */
	ck_assert_str_eq(folder("Entw&APw-rfe")->path, "Entw\303\274rfe");
	ck_assert_str_eq(folder("Entw\303\274rfe")->path,
	    "Entw\303\274rfe (2)");
	ck_assert_str_eq(folder("Entw\374rfe")->path,
	    "Entw\303\274rfe (3)");
	ck_assert_int_eq(folder("Entw&APw-rfe")->delimiter, '\0');
	finish();
}
END_TEST

/* L052, L054, L056, L061: a name goes back byte for byte. */
static const struct {
	const char *listed, *sent;
} wire_names[] = {
	{ "\"[Gmail]/G&APY-nderilmi&AV8- Postalar\"",
	    "\"\\[Gmail\\]/G&APY-nderilmi&AV8- Postalar\"" },
	{ "\"R&-D\"", "\"R&-D\"" },
	{ "Foo]Bar", "\"Foo\\]Bar\"" },
	{ "\"Old \"", "\"Old \"" },
	{ "\"b\303\274cher\"", "\"b\303\274cher\"" },
	{ "\"b\374cher\"", "\"b\374cher\"" },
};

START_TEST(names_go_back_as_they_came)
{
	static char listed[200], sent[200];
	static struct step steps[] = { LOGIN(CAPS), HEAR("* LIST *"),
		{ STEP_SAY, listed }, { STEP_HEAR, sent },
		SAY("* 1 EXISTS\r\n%1 OK x\r\n"), END };
	struct imap_selected selected;

	snprintf(listed, sizeof(listed), "* LIST () \"/\" %s\r\n"
	    "%%1 OK done\r\n", wire_names[_i].listed);
	snprintf(sent, sizeof(sent), "* SELECT %s", wire_names[_i].sent);
	open_with(steps);
	OK(imap_list(imap, arena, &folders, &n_folders, &err));
	ck_assert_uint_eq(n_folders, 1);
	OK(imap_select(imap, folders[0].wire, NULL, &selected, NULL,
	    &err));
	finish();
}
END_TEST

/* L062 */
START_TEST(an_empty_extended_list_is_asked_again_plainly)
{
	static const struct step steps[] = {
		LOGIN(CAPS " SPECIAL-USE LIST-EXTENDED"),
		HEAR("* LIST * RETURN *"), SAY("%1 OK done\r\n"),
		HEAR("* LIST \"\" \"\\*\""),
		SAY("* LIST () \".\" INBOX\r\n%1 OK done\r\n"), END };

	open_with(steps);
	OK(imap_list(imap, arena, &folders, &n_folders, &err));
	ck_assert_uint_eq(n_folders, 1);
	finish();
}
END_TEST

START_TEST(xlist_is_used_where_special_use_lacks)
{
	static const struct step steps[] = { LOGIN(CAPS " XLIST"),
		HEAR("* XLIST \"\" \"\\*\""),
		SAY("* XLIST (\\Inbox) \"|\" INBOX\r\n"
		    "* XLIST (\\Drafts \\Drafts) \"|\" D\r\n"
		    "* XLIST (\\Spam) \"|\" S\r\n%1 OK done\r\n"), END };

	open_with(steps);
	OK(imap_list(imap, arena, &folders, &n_folders, &err));
	ck_assert_int_eq(folder("D")->role, ROLE_DRAFTS);
	ck_assert_int_eq(folder("S")->role, ROLE_JUNK);
	finish();
}
END_TEST

/* L063: never taken for "all folders are gone". */
START_TEST(an_empty_list_is_an_error)
{
	static const struct step steps[] = { LOGIN(CAPS), HEAR("* LIST *"),
		SAY("%1 OK done\r\n"), HEAR("* LIST *"),
		SAY("* LIST () \"/\" x\r\n%1 NO later\r\n"), END };

	open_with(steps);
	ck_assert_int_eq(imap_list(imap, arena, &folders, &n_folders,
	    &err), -1);
	ck_assert_int_eq(err.kind, ERR_SERVER);
	ck_assert_int_eq(imap_list(imap, arena, &folders, &n_folders,
	    &err), -1);
	ck_assert_int_eq(err.kind, ERR_SERVER);
	finish();
}
END_TEST

START_TEST(a_cut_list_is_an_error)
{
	static const struct step steps[] = { LOGIN(CAPS), HEAR("* LIST *"),
		SAY("* LIST () \"/\" INBOX\r\n* LIST () \"/\" \"A"), CLOSE };

	open_with(steps);
	ck_assert_int_eq(imap_list(imap, arena, &folders, &n_folders,
	    &err), -1);
	is_dead(ERR_NETWORK);
	finish();
}
END_TEST

START_TEST(line_ends_in_names_are_never_sent)
{
	static const struct step steps[] = { LOGIN(CAPS), SELECTED, END };
	const char *evil = "x\r\n99 DELETE Archive";
	struct imap_selected selected;
	struct imap_status status;

	open_with(steps);
	ck_assert_int_eq(imap_select(imap, evil, NULL, &selected, NULL,
	    &err), -1);
	ck_assert_int_eq(err.kind, ERR_PERMANENT);
	ck_assert_int_eq(imap_status(imap, &evil, 1, &status, &err), -1);
	ck_assert_int_eq(err.kind, ERR_PERMANENT);
	select_inbox();
	finish();
}
END_TEST

/* --- odd lines during a FETCH -------------------------------------------- */

static const char *const odd_lines[] = {
	"* XFOO hi\r\n",
	"* 1 FETCH (UID 5 FLAGS () X-FOO (a \"b\" (c)))\r\n",
	"* 0 FETCH (FLAGS ())\r\n",		    /* L031 */
	"* 919 FETCH (FLAGS () UID 919)\r\n* 919 EXISTS\r\n", /* L048 */
	"*  2 EXISTS\r\n",			    /* L041 */
	"* [COPYUID 7 5 11]\r\n",		    /* L042 */
	"* NAMESPACE ((\"\" \"/\") NIL\r\n",
	"* ANNOTATION \"x\"\r\n",
	"* OK [PERMANENTFLAGS (\r\n",
	"* OK [BADCHARSET (\"x\")] y\r\n",
	"* SEARCH 1 2 (MODSEQ 9)\r\n",
	"* VANISHED\r\n",
	"* VANISHED 4:6\r\n",			    /* L072 */
	"* FLAGS ()\r\n* LIST () \"/\" \"A\"\r\n", /* L037 */
	"* ESEARCH (TAG \"x\")\r\n",
	"\r\n\r\n",
	"* 3 EXPUNGE\r\n* 3 EXPUNGE\r\n",	    /* L100 */
	"* ID (\"x\" {3}\r\na\r\n NIL)\r\n",
	"* CAPABILITY IMAP4rev1 UNSELECT \r\n",	    /* L034 */
	"* 1 FETCH (ENVELOPE (NIL \"a \"b\" c\" NIL) UID 5)\r\n", /* L022 */
	"* OK\r\n",
	"+ what\r\n",
	"* 1 FETCH (UID 5 BODYSTRUCTURE (((((((\r\n",
	"* LIST () \"/\" x (\"CHILDINFO\" (\"y\"))\r\n",
};

START_TEST(odd_lines_do_not_disturb)
{
	static char text[1000];
	static struct step steps[] = { LOGIN(CAPS), SELECTED,
		HEAR("* UID FETCH *"), { STEP_SAY, text },
		HEAR("* UNSELECT"), SAY("%1 OK\r\n"), END };
	static const uint32_t uids[] = { 8, 9 };

	snprintf(text, sizeof(text), "%s* 8 FETCH (UID 8 BODY[] {2}\r\nab)"
	    "\r\n%s* 9 FETCH (UID 9 BODY[] {2}\r\ncd)\r\n%s%%1 OK\r\n",
	    odd_lines[_i], odd_lines[_i], odd_lines[_i]);
	open_with(steps);
	select_inbox();
	OK(fetch(uids, 2));
	ck_assert_uint_eq(got.n, 2);
	ck_assert_str_eq(got.bodies[0], "ab");
	ck_assert_str_eq(got.bodies[1], "cd");
	OK(imap_unselect(imap, &err));
	finish();
}
END_TEST

/* --- the end comes early (L050, L094) ------------------------------------ */

static const struct {
	const char *said;
	enum err_kind kind;
} ends[] = {
	{ "", ERR_NETWORK },
	{ "* 1 FETCH (UID 1 BO", ERR_NETWORK },
	{ "* 1 FETCH (UID 1 BODY[] {100}\r\nabc", ERR_NETWORK },
	{ "* 1 FETCH (UID 1 BODY[] {3}\r\nabc", ERR_NETWORK },
	{ "* 1 FETCH (UID 1 BODY[] {3}\r\nabc)\r\n", ERR_NETWORK },
	{ "* 1 FETCH (UID 1 BODY[] \"abc", ERR_NETWORK },
	{ "* BYE idle too long\r\n* BYE idle too long\r\n", ERR_NETWORK },
	{ "* 1 FETCH (UID 1 BODY[] {3}\r\nabc)\r\n* BYE bye\r\n", ERR_NETWORK },
	{ "* BYE Too many connections\r\n", ERR_THROTTLED },
	{ "Server Unavailable. 15\r\n", ERR_THROTTLED }, /* L044 */
	{ "what is this\r\n", ERR_PROTOCOL },
	{ "999 OK wrong tag\r\n", ERR_PROTOCOL },
};

START_TEST(the_session_ends_with_the_right_words)
{
	static struct step steps[] = { LOGIN(CAPS), SELECTED,
		HEAR("* UID FETCH *"), { STEP_SAY, NULL }, CLOSE };
	static const uint32_t uids[] = { 1, 2 };
	size_t i;

	for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		if (steps[i].kind == STEP_CLOSE)
			steps[i - 1].text = ends[_i].said;
	open_with(steps);
	select_inbox();
	ck_assert_int_eq(fetch(uids, 2), -1);
	is_dead(ends[_i].kind);
	finish();
}
END_TEST

/* At a command about one object they are about it, until the third in a row
 * (L008, L128, F-A5); one that is done in between says that all is well. */
START_TEST(words_that_ask_to_wait_are_about_the_object)
{
	static const char throttled[] = "BAD Request is throttled. Suggested "
	    "Backoff Time: 178755 milliseconds";
	static struct step steps[] = { LOGIN(CAPS), SELECTED,
		HEAR("* UID FETCH *"), SAY("%1 NO Server temporarily "
		    "unavailable\r\n"),
		HEAR("* UNSELECT"), HEAR("* SELECT *"),
		SAY("%2 OK\r\n%1 NO [LIMIT] later\r\n"),
		HEAR("* UID FETCH *"), SAY("%1 OK done\r\n"),
		HEAR("* UID FETCH *"), { STEP_SAY, NULL },
		HEAR("* UID FETCH *"), { STEP_SAY, NULL },
		HEAR("* SELECT *"), { STEP_SAY, NULL }, CLOSE };
	static const uint32_t uids[] = { 1, 2 };
	static char said[100];
	struct imap_selected selected;
	size_t i;

	snprintf(said, sizeof(said), "%%1 %s\r\n", throttled);
	for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		if (steps[i].kind == STEP_SAY && steps[i].text == NULL)
			steps[i].text = said;
	open_with(steps);
	select_inbox();
	for (i = 0; i < 5; i++) {
		if (i == 1) {
			ck_assert_int_eq(imap_select(imap, "A", NULL,
			    &selected, NULL, &err), -1);
			ck_assert_int_eq(err.kind, ERR_SERVER);
			continue;
		}
		ck_assert_int_eq(fetch(uids, 2), i == 2 ? 0 : -1);
		ck_assert_int_eq(imap_is_busy(imap), i != 2);
		if (i != 2)
			ck_assert_int_eq(err.kind, ERR_SERVER);
	}
	ck_assert_int_eq(imap_select(imap, "B", NULL, &selected, NULL, &err),
	    -1);
	is_dead(ERR_THROTTLED);
	ck_assert_uint_eq(err.retry_after_secs, 179);
	finish();
}
END_TEST

/* "Still here" prolongs a SELECT up to a bound of its own (F-A3). */
START_TEST(a_select_that_shows_signs_of_life_is_waited_for)
{
	static const struct step steps[] = { LOGIN(CAPS), HEAR("* SELECT *"),
		DRIP("* OK Still here\r\n") };
	struct imap_params params = usual(0);
	struct imap_selected selected;
	int64_t begin;

	params.command_msecs = 400;
	params.select_msecs = 1500;
	if (try_open(steps, params) == -1)
		ck_abort_msg("open: %s", err.text);
	begin = clock_mono_msecs();
	ck_assert_int_eq(imap_select(imap, "A", NULL, &selected, NULL,
	    &err), -1);
	ck_assert_int_ge(clock_mono_msecs() - begin, 1500);
	ck_assert_int_lt(clock_mono_msecs() - begin, 5000);
	is_dead(ERR_DEADLINE);
	finish();
}
END_TEST

START_TEST(silence_ends_at_the_deadline)
{
	static const struct step steps[] = { LOGIN(CAPS), SELECTED,
		HEAR("* UID FETCH *"),
		SAY("* 1 FETCH (UID 1 BODY[] {100}\r\nabc"), END };
	static const uint32_t uids[] = { 1 };
	int64_t begin;

	open_impatient(steps);
	select_inbox();
	begin = clock_mono_msecs();
	ck_assert_int_eq(fetch(uids, 1), -1);
	ck_assert_int_lt(clock_mono_msecs() - begin, 3000);
	is_dead(ERR_DEADLINE);
	finish();
}
END_TEST

/* A dripping server does not move the deadline of a command. */
START_TEST(dripping_ends_at_the_deadline)
{
	static const struct step steps[] = { LOGIN(CAPS), HEAR("* STATUS *"),
		DRIP("* OK Still here\r\n") };
	const char *wire = "INBOX";
	struct imap_status status;

	open_impatient(steps);
	ck_assert_int_eq(imap_status(imap, &wire, 1, &status, &err), -1);
	is_dead(ERR_DEADLINE);
	finish();
}
END_TEST

/* While data flows a FETCH has no end in time, but a least rate. */
START_TEST(a_dripping_fetch_is_cut)
{
	static const struct step steps[] = { LOGIN(CAPS), SELECTED,
		HEAR("* UID FETCH *"),
		SAY("* 1 FETCH (UID 1 BODY[] {100000}\r\n"),
		DRIP("x") };
	static const uint32_t uids[] = { 1 };

	open_impatient(steps);
	select_inbox();
	ck_assert_int_eq(fetch(uids, 1), -1);
	ck_assert_ptr_nonnull(strstr(err.text, "of waiting"));
	is_dead(ERR_DEADLINE);
	finish();
}
END_TEST

START_TEST(a_scan_that_cannot_name_a_message_fails)
{
	static const struct step steps[] = { LOGIN(CAPS), SELECTED,
		HEAR("* UID FETCH *"),
		SAY("* 1 FETCH (UID 1 FLAGS ())\r\n"
		    "* 2 FETCH (FLAGS (\\Seen) \"UID 2\r\n"
		    "* 3 FETCH (UID 3 FLAGS ())\r\n%1 OK\r\n"),
		HEAR("* UID FETCH *"),
		SAY("* 3 FETCH (UID 3 FLAGS ())\r\n%1 OK\r\n"), END };

	open_with(steps);
	select_inbox();
	ck_assert_int_eq(scan(), -1);
	ck_assert_int_eq(err.kind, ERR_SERVER);
	ck_assert_uint_eq(got.n, 2);
	OK(scan());
	finish();
}
END_TEST

/* L051 */
START_TEST(an_endless_line_is_cut)
{
	static const struct step steps[] = { LOGIN(CAPS), SELECTED,
		HEAR("* UID FETCH *"),
		REPEAT("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa") };

	open_with(steps);
	select_inbox();
	ck_assert_int_eq(scan(), -1);
	is_dead(ERR_PROTOCOL);
	finish();
}
END_TEST

START_TEST(endless_lines_are_cut)
{
	static const struct step steps[] = { LOGIN(CAPS), HEAR("* STATUS *"),
		REPEAT("* OK x\r\n* OK x\r\n* OK x\r\n* OK x\r\n") };
	const char *wire = "INBOX";
	struct imap_status status;

	open_with(steps);
	ck_assert_int_eq(imap_status(imap, &wire, 1, &status, &err), -1);
	is_dead(ERR_PROTOCOL);
	finish();
}
END_TEST

static const char *const huge[] = {
	"* 1 FETCH (UID 1 BODY[] {4000000000}\r\n",
	"* 1 FETCH (UID 1 BODY[] {4294967299}\r\n",
	"* 1 FETCH (UID 1 BODY[] {18446744073709551617}\r\n",
	"* 1 FETCH (UID 1 ENVELOPE (NIL {4000000000}\r\n",
	"* ID (NIL {4000000000}\r\n",
};

START_TEST(huge_literals_are_refused)
{
	static struct step steps[] = { LOGIN(CAPS), SELECTED,
		HEAR("* UID FETCH *"), { STEP_SAY, NULL }, END };
	static const uint32_t uids[] = { 1 };
	size_t i;

	for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		if (steps[i].kind == STEP_END)
			steps[i - 1].text = huge[_i];
	open_with(steps);
	select_inbox();
	ck_assert_int_eq(fetch(uids, 1), -1);
	is_dead(ERR_PROTOCOL);
	finish();
}
END_TEST

static int
refuse_to_go_on(void *arg, struct err *e)
{
	int *calls_left = arg;

	if (*calls_left < 0 || (*calls_left)-- > 0)
		return 0;
	*calls_left = 0;
	return err_set(e, ERR_FENCED, "lease lost");
}

START_TEST(the_caller_can_stop_a_session)
{
	static const struct step steps[] = { LOGIN(CAPS), HEAR("* SELECT *"),
		END };
	struct imap_params params = usual(0);
	struct imap_selected selected;
	int calls_left = -1; /* no limit */

	params.may_go_on = refuse_to_go_on;
	params.arg = &calls_left;
	params.want_socket = NULL;
	params.gave_socket = NULL;
	OK(try_open(steps, params));
	calls_left = 1; /* before SELECT; refused while waiting */
	ck_assert_int_eq(imap_select(imap, "INBOX", NULL, &selected, NULL,
	    &err), -1);
	is_dead(ERR_FENCED);
	finish();
}
END_TEST

static int
refuse_place(void *arg, const struct place *place)
{
	(void)arg;
	(void)place;
	return -1;
}

START_TEST(a_callback_can_end_a_scan)
{
	static const struct step steps[] = { LOGIN(CAPS), SELECTED,
		HEAR("* UID FETCH *"),
		SAY("* 1 FETCH (UID 1 FLAGS ())\r\n"
		    "* 2 FETCH (UID 2 FLAGS ())\r\n"), END };

	open_with(steps);
	select_inbox();
	ck_assert_int_eq(imap_scan_uids(imap, 1, 0, ITEM_FLAGS,
	    refuse_place, NULL, &err), -1);
	is_dead(ERR_STOPPED);
	finish();
}
END_TEST

/* --- IDLE ---------------------------------------------------------------- */

static enum imap_wake wake;

static void
idle_until(int64_t msecs, enum imap_wake expected)
{
	int fds[2];

	ck_assert_int_eq(pipe(fds), 0);
	OK(imap_idle(imap, fds[0], msecs, &wake, &err));
	ck_assert_int_eq(wake, expected);
	close(fds[0]);
	close(fds[1]);
}

START_TEST(idle_wakes_on_news)
{
	static const struct step steps[] = { LOGIN(CAPS), SELECTED,
		HEAR("* IDLE"), SAY("+ idling\r\n* OK Still here\r\n"
		    "*  3 EXISTS\r\n* FLAGS (x)\r\n* 0 RECENT\r\n"), /* L041 */
		PAUSE, SAY("* 4 EXI"), PAUSE, SAY("STS\r\n"), HEAR("DONE"),
		SAY("%2 OK done\r\n"), END };

	open_with(steps);
	select_inbox();
	idle_until(5000, WAKE_CHANGED);
	finish();
}
END_TEST

/* The library does not see it: same segment as "+". */
START_TEST(idle_sees_news_in_the_segment_of_the_plus)
{
	static const struct step steps[] = { LOGIN(CAPS), SELECTED,
		HEAR("* IDLE"), SAY("+ idling\r\n* 4 EXISTS\r\n"), HEAR("DONE"),
		SAY("%2 OK done\r\n"), END };

	open_with(steps);
	select_inbox();
	idle_until(5000, WAKE_CHANGED);
	finish();
}
END_TEST

/* L098 */
START_TEST(idle_bears_news_before_the_plus)
{
	static const struct step steps[] = { LOGIN(CAPS), SELECTED,
		HEAR("* IDLE"),
		SAY("* FLAGS (\\Seen)\r\n* 5 EXISTS\r\n+ idling\r\n"),
		HEAR("DONE"), SAY("%2 OK done\r\n"), END };

	open_with(steps);
	select_inbox();
	idle_until(5000, WAKE_CHANGED);
	finish();
}
END_TEST

/* News that came behind the reply before it. */
START_TEST(idle_sees_news_from_before)
{
	static const struct step steps[] = { LOGIN(CAPS),
		HEAR("* SELECT *"),
		SAY("* 3 EXISTS\r\n%1 OK x\r\n* 1 EXPUNGE\r\n"),
		HEAR("* IDLE"), SAY("+\r\n"), HEAR("DONE"),
		SAY("%2 OK done\r\n"), END };

	open_with(steps);
	select_inbox();
	idle_until(5000, WAKE_CHANGED);
	finish();
}
END_TEST

/* L092: the time is the caller's. */
START_TEST(idle_ends_in_time)
{
	static const struct step steps[] = { LOGIN(CAPS), SELECTED,
		HEAR("* IDLE"), SAY("+ idling\r\n"), HEAR("DONE"),
		SAY("%2 OK done\r\n"), AGAIN, END };

	open_with(steps);
	select_inbox();
	idle_until(200, WAKE_TIMEOUT);
	select_inbox();
	finish();
}
END_TEST

START_TEST(idle_wakes_on_the_control_descriptor)
{
	static const struct step steps[] = { LOGIN(CAPS), SELECTED,
		HEAR("* IDLE"), SAY("+ idling\r\n"), HEAR("DONE"),
		SAY("%2 OK done\r\n"), END };
	int fds[2];

	open_with(steps);
	select_inbox();
	ck_assert_int_eq(pipe(fds), 0);
	ck_assert_int_eq(write(fds[1], "x", 1), 1);
	OK(imap_idle(imap, fds[0], 10000, &wake, &err));
	ck_assert_int_eq(wake, WAKE_CONTROL);
	finish();
}
END_TEST

/* What comes between the last look and DONE is not lost. */
START_TEST(idle_counts_news_that_come_while_it_ends)
{
	static const struct step steps[] = { LOGIN(CAPS), SELECTED,
		HEAR("* IDLE"), SAY("+ idling\r\n"), HEAR("DONE"),
		SAY("* 9 EXISTS\r\n%2 OK done\r\n"), END };

	open_with(steps);
	select_inbox();
	idle_until(100, WAKE_CHANGED);
	finish();
}
END_TEST

/* L094, L096 */
START_TEST(idle_ends_with_bye_or_eof)
{
	static const struct step bye[] = { LOGIN(CAPS), SELECTED,
		HEAR("* IDLE"), SAY("+ idling\r\n"), PAUSE,
		SAY("* BYE idle too long\r\n* BYE idle too long\r\n"), END };
	static const struct step eof[] = { LOGIN(CAPS), SELECTED,
		HEAR("* IDLE"), SAY("+ idling\r\n"), PAUSE, CLOSE };
	int fds[2];

	open_with(_i == 0 ? bye : eof);
	select_inbox();
	ck_assert_int_eq(pipe(fds), 0);
	ck_assert_int_eq(imap_idle(imap, fds[0], 5000, &wake, &err), -1);
	is_dead(ERR_NETWORK);
	finish();
}
END_TEST

/* A8: a capability that was a mistake, and an IDLE that is over at once; it is
 * not tried for ever. */
START_TEST(idle_that_does_not_work_is_given_up)
{
	static const struct step refused[] = { LOGIN(CAPS " IDLE"),
		HEAR("* SELECT *"), SAY("* 1 EXISTS\r\n%1 OK\r\n"),
		HEAR("* IDLE"), SAY("%1 BAD no such command\r\n"), END };
	static const struct step over[] = { LOGIN(CAPS " IDLE"),
		HEAR("* SELECT *"), SAY("* 1 EXISTS\r\n%1 OK\r\n"),
		HEAR("* IDLE"), SAY("+ ok\r\n%1 OK idle over\r\n"),
		HEAR("* IDLE"), SAY("+ ok\r\n%1 OK idle over\r\n"),
		HEAR("* IDLE"), SAY("+ ok\r\n%1 OK idle over\r\n"), END };
	struct imap_selected selected;
	int i, n = _i == 0 ? 1 : 3;

	open_with(_i == 0 ? refused : over);
	OK(imap_select(imap, "INBOX", NULL, &selected, NULL, &err));
	for (i = 0; i < n; i++) {
		ck_assert(imap_caps(imap) & IMAP_IDLE);
		idle_until(5000, WAKE_TIMEOUT);
	}
	ck_assert(!(imap_caps(imap) & IMAP_IDLE));
	finish();
}
END_TEST

START_TEST(noop_tells_what_happened)
{
	static const struct step steps[] = { LOGIN(CAPS), SELECTED,
		HEAR("* NOOP"),
		SAY("* 1 EXPUNGE\r\n* 2 FETCH (FLAGS (\\Seen))\r\n"
		    "* 5 EXISTS\r\n%1 OK\r\n"), END };
	struct imap_changes changes = { .arena = arena };

	open_with(steps);
	select_inbox();
	OK(imap_noop(imap, &changes, &err));
	ck_assert_uint_eq(changes.n_expunged, 1);
	ck_assert_uint_eq(changes.n_unnamed, 1);
	ck_assert_uint_eq(changes.exists, 5);
	finish();
}
END_TEST

/* --- logging in ---------------------------------------------------------- */

/* L012: capabilities from before login are not used after it. */
START_TEST(capabilities_are_asked_again_after_login)
{
	static const struct step steps[] = {
		SAY("* OK hi\r\n"), HEAR("* CAPABILITY"),
		SAY("* CAPABILITY IMAP4rev1 IDLE MOVE\r\n%1 OK\r\n"),
		HEAR("* LOGIN \"ann\" \"secret\""), SAY("%1 OK in\r\n"),
		HEAR("* CAPABILITY"),
		SAY("* capability imap4rev1 move uidplus\r\n%1 OK\r\n"), END };

	open_with(steps);
	ck_assert_uint_eq(imap_caps(imap), IMAP_MOVE | IMAP_UIDPLUS);
	finish();
}
END_TEST

static void
login_as(const struct step *steps, const char *login, const char *password)
{
	struct imap_params params = usual(0);

	params.login = login;
	params.password = password;
	if (try_open(steps, params) == -1)
		ck_abort_msg("open: %s", err.text);
	finish();
}

/* L007, L014 */
START_TEST(names_and_passwords_are_quoted)
{
	static const struct step steps[] = {
		SAY("* OK [CAPABILITY IMAP4rev1] hi\r\n"),
		HEAR("* LOGIN \"ann@example.org\\\\\\\\team@example.org\" "
		     "\"a\\\\\"b\\\\\\\\c %d\""),
		SAY("%1 OK [CAPABILITY IMAP4rev1] in\r\n"), END };

	login_as(steps, "ann@example.org\\team@example.org", "a\"b\\c %d");
}
END_TEST

/* L007 */
START_TEST(an_8_bit_password_goes_as_a_literal)
{
	static const struct step steps[] = {
		SAY("* OK [CAPABILITY IMAP4rev1] hi\r\n"),
		HEAR("* LOGIN \"ann\" {4}"), SAY("+ go on\r\n"),
		HEAR("p\303\244s"),
		SAY("1 OK [CAPABILITY IMAP4rev1] in\r\n"), END };

	login_as(steps, "ann", "p\303\244s");
}
END_TEST

START_TEST(a_literal_needs_no_waiting_where_the_server_says_so)
{
	static const struct step steps[] = {
		SAY("* OK [CAPABILITY IMAP4rev1 LITERAL+] hi\r\n"),
		HEAR("* LOGIN \"ann\" {4+}"), HEAR("p\303\244s"),
		SAY("1 OK [CAPABILITY IMAP4rev1] in\r\n"), END };

	login_as(steps, "ann", "p\303\244s");
}
END_TEST

/* L006 */
START_TEST(auth_login_gets_no_initial_response)
{
	static const struct step steps[] = {
		SAY("* OK [CAPABILITY IMAP4rev1 SASL-IR AUTH=LOGIN] hi\r\n"),
		HEAR("* LOGIN \"ann\" \"secret\""),
		SAY("%1 OK [CAPABILITY IMAP4rev1] in\r\n"), END };

	login_as(steps, "ann", "secret");
}
END_TEST

START_TEST(plain_in_two_steps)
{
	static const struct step steps[] = {
		SAY("* OK [CAPABILITY IMAP4rev1 LOGINDISABLED AUTH=PLAIN] "
		    "hi\r\n"),
		HEAR("* AUTHENTICATE PLAIN"), SAY("+\r\n"),
		HEAR("AGFubgBzZWNyZXQ="),
		SAY("1 OK [CAPABILITY IMAP4rev1] in\r\n"), END };

	login_as(steps, "ann", "secret");
}
END_TEST

static const struct {
	const char *id;
	enum err_kind kind;
	const char *part; /* of the error text */
	struct step steps[8];
} refusals[] = {
	{ "authentication failed", ERR_AUTH, "Invalid credentials",
	    { GREET, HEAR("*"),
	      SAY("%1 NO [AUTHENTICATIONFAILED] Invalid credentials\r\n") } },
	{ "L004-like", ERR_AUTH, "failed",
	    { GREET, HEAR("*"), SAY("+ eyJzdGF0dXMiOiI0MDAifQ==\r\n"),
	      HEAR(""), SAY("1 NO AUTHENTICATE failed.\r\n") } },
	{ "L125", ERR_THROTTLED, "Too many",
	    { GREET, HEAR("*"),
	      SAY("%1 NO [ALERT] Too many simultaneous connections. "
		  "(Failure)\r\n") } },
	{ "L219", ERR_THROTTLED, "Maximum number",
	    { GREET, HEAR("*"),
	      SAY("%1 NO [UNAVAILABLE] Maximum number of connections from "
		  "user+IP exceeded (mail_max_userip_connections=10)\r\n") } },
	{ "the password in the answer", ERR_AUTH, "ann/****** is wrong",
	    { GREET, HEAR("*"), SAY("%1 NO ann/secret is wrong\r\n") } },
	{ "in a BYE", ERR_NETWORK, "LOGIN \"ann\" \"******\"",
	    { GREET, HEAR("*"),
	      SAY("* BYE bad command: LOGIN \"ann\" \"SECRET\"\r\n") } },
	{ "in a stray line", ERR_PROTOCOL, "\"******\"",
	    { GREET, HEAR("*"),
	      SAY("Error: LOGIN \"ann\" \"secret\"\r\n") } },
	{ "in a code", ERR_AUTH, "[X ann ******] no",
	    { GREET, HEAR("*"), SAY("%1 NO [X ann secret] no\r\n") } },
	{ "in base64 of PLAIN", ERR_AUTH, "AUTHENTICATE PLAIN ****",
	    { GREET, HEAR("*"), SAY("%1 NO bad: AUTHENTICATE PLAIN "
		"AGFubgBzZWNyZXQ= again\r\n") } },
	{ "in base64 of LOGIN", ERR_AUTH, "(********)",
	    { GREET, HEAR("*"), SAY("%1 NO bad (c2VjcmV0)\r\n") } },
	/* What a line's end, or the server, has cut off. */
	{ "cut by the server", ERR_AUTH, "LOGIN \"ann\" \"****...",
	    { GREET, HEAR("*"),
	      SAY("%1 NO bad: LOGIN \"ann\" \"sEcR...\r\n") } },
	{ "cut by the line", ERR_NETWORK, "LOGIN \"ann\" \"****",
	    { GREET, HEAR("*"),
	      SAY("* BYE bad: LOGIN \"ann\" \"secr\r\net\"\r\n") } },
	{ "the rest of it", ERR_PROTOCOL, ": ****\"",
	    { GREET, HEAR("*"), SAY("cret\" is no command\r\n") } },
	{ "base64 cut by the line", ERR_AUTH, "PLAIN ************",
	    { GREET, HEAR("*"),
	      SAY("%1 NO bad: AUTHENTICATE PLAIN AGFubgBzZWNy\r\n") } },
	{ "a word that begins so", ERR_AUTH, "******ary wanted",
	    { GREET, HEAR("*"), SAY("%1 NO Secretary wanted\r\n") } },
	{ "in the greeting", ERR_NETWORK, "go away, ******",
	    { SAY("* BYE go away, secret\r\n") } },
	{ "BYE as greeting", ERR_NETWORK, "go away",
	    { SAY("* BYE go away\r\n") } },
	{ "busy as greeting", ERR_THROTTLED, "too many connections",
	    { SAY("* BYE too many connections from you\r\n") } },
	{ "no greeting", ERR_PROTOCOL, "",
	    { SAY("220 smtp.example.org ESMTP\r\n") } },
	{ "crash greeting", ERR_AUTH, "",
	    { SAY("* OK [PERMANENTFLAGS (] \r\n"), HEAR("* CAPABILITY"),
	      SAY("%1 OK\r\n"), HEAR("* LOGIN *"), SAY("%1 NO x\r\n") } },
	{ "login disabled", ERR_TLS, "without TLS",
	    { SAY("* OK [CAPABILITY IMAP4rev1 LOGINDISABLED] hi\r\n") } },
	{ "silence", ERR_DEADLINE, "", { END } },
	{ "eof", ERR_NETWORK, "closed", { CLOSE } },
};

START_TEST(refused_logins_say_why)
{
	struct imap_params params = usual(0);

	params.connect_msecs = params.command_msecs = 1000;
	ck_assert_int_eq(try_open(refusals[_i].steps, params), -1);
	ck_assert_msg(err.kind == refusals[_i].kind, "%s: %s: %s",
	    refusals[_i].id, err_kind_name(err.kind), err.text);
	ck_assert_msg(strstr(err.text, refusals[_i].part) != NULL, "%s: %s",
	    refusals[_i].id, err.text);
	ck_assert_ptr_null(strstr(err.text, "secret"));
	ck_assert_ptr_null(imap);
	finish();
}
END_TEST

/* L003, STARTTLS stripped, L001: the password never leaves. */
static const struct {
	const char *id, *part;
	struct step steps[6];
} strippers[] = {
	{ "L003", "PREAUTH", { SAY("* PREAUTH IMAP4rev1 hi\r\n") } },
	{ "stripped", "no STARTTLS", { GREET } },
	{ "refused", "refused STARTTLS",
	    { SAY("* OK [CAPABILITY IMAP4rev1 STARTTLS] hi\r\n"),
	      HEAR("* STARTTLS"), SAY("%1 NO not today\r\n") } },
	{ "L001", "in the clear",
	    { SAY("* OK [CAPABILITY IMAP4rev1 STARTTLS] hi\r\n"),
	      HEAR("* STARTTLS"), SAY("%1 OK go\r\n2 OK in\r\n") } },
};

START_TEST(nothing_is_sent_when_starttls_goes_wrong)
{
	struct imap_params params = usual(0);

	params.tls = TLS_STARTTLS;
	ck_assert_int_eq(try_open(strippers[_i].steps, params), -1);
	ck_assert_msg(err.kind == ERR_TLS, "%s: %s", strippers[_i].id,
	    err.text);
	ck_assert_msg(strstr(err.text, strippers[_i].part) != NULL, "%s: %s",
	    strippers[_i].id, err.text);
	finish();
}
END_TEST

START_TEST(preauth_is_fine_where_tls_is_not_asked_for)
{
	static const struct step steps[] = {
		SAY("* PREAUTH [CAPABILITY " CAPS "] hi\r\n"), SELECTED, END };

	open_with(steps);
	select_inbox();
	finish();
}
END_TEST

START_TEST(the_rawlog_has_no_secrets)
{
	static const struct step steps[] = {
		SAY("* OK [CAPABILITY IMAP4rev1] hi\r\n"), HEAR("* LOGIN *"),
		SAY("* OK your password is secret\r\n"
		    "%1 OK [CAPABILITY IMAP4rev1] in\r\n"), SELECTED, END };
	char path[] = "/tmp/mailherd-rawlog.XXXXXX", text[4000];
	struct imap_params params = usual(0);
	struct stat st;
	FILE *fp;

	close(mkstemp(path));
	unlink(path);
	params.rawlog_path = path;
	OK(try_open(steps, params));
	select_inbox();
	finish();
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0600);
	fp = fopen(path, "r");
	text[fread(text, 1, sizeof(text) - 1, fp)] = '\0';
	fclose(fp);
	unlink(path);
	ck_assert_ptr_nonnull(strstr(text, "SELECT \"INBOX\""));
	ck_assert_ptr_nonnull(strstr(text, "UIDVALIDITY 7"));
	ck_assert_ptr_null(strstr(text, "secret"));
	ck_assert_ptr_null(strstr(text, "c2VjcmV0"));
}
END_TEST

/* The heap of this process, without what the test itself holds. */
static bool
heap_holds(const char *secret)
{
	size_t from = 0, to = 0, len = strlen(secret), n = 0;
	char line[300], *copy;
	FILE *fp = fopen("/proc/self/maps", "r");

	while (fgets(line, sizeof(line), fp) != NULL)
		if (strstr(line, "[heap]") != NULL)
			sscanf(line, "%zx-%zx", &from, &to);
	fclose(fp);
	/* Compared in place: a copy on the heap would find itself. */
	for (copy = (char *)from; copy + len <= (char *)to; copy++)
		n += memcmp(copy, secret, len) == 0;
	return n > 0;
}

START_TEST(the_password_does_not_stay_in_memory)
{
	static const struct step plain[] = { LOGIN(CAPS), END };
	static const struct step login[] = {
		SAY("* OK [CAPABILITY IMAP4rev1] hi\r\n"), HEAR("* LOGIN *"),
		SAY("%1 OK [CAPABILITY IMAP4rev1] in\r\n"), END };

#ifdef MAILHERD_SANITIZED
	return; /* the heap is elsewhere and not ours to read */
#endif
	open_with(_i == 0 ? plain : login);
	ck_assert(!heap_holds("AGFubgBzZWNy"));
	ck_assert(!heap_holds("secret\""));
	ck_assert(!heap_holds("ann secret"));
	finish();
}
END_TEST

/* --- quirks ------------------------------------------------------------ */

static void
use_quirks(const char *text)
{
	char path[] = "/tmp/mailherd-quirks.XXXXXX";
	int fd = mkstemp(path);
	struct quirks_table *table;

	ck_assert_int_eq(write(fd, text, strlen(text)), (int)strlen(text));
	close(fd);
	OK(quirks_load(&table, path, &err));
	unlink(path);
	imap_set_quirks(table);
}

START_TEST(quirks_match_by_greeting_and_by_capability_after_login)
{
	static const struct step steps[] = { GREET, HEAR("* AUTHENTICATE *"),
		SAY("%1 OK [CAPABILITY " CAPS " QRESYNC XODD] in\r\n"),
		HEAR("* ID (*"), HEAR("* SELECT \"INBOX\" (CONDSTORE)"),
		SAY("%2 BAD what\r\n%1 OK\r\n"), END };
	struct imap_selected selected;

	use_quirks("server \"a\" {\ngreeting = { \"hi\" }\nidle_secs = 180\n"
		   "id_before_select = true\n}\n"
		   "server \"b\" {\ncapability = { \"XODD\" }\n"
		   "no_qresync = true\nidle_secs = 55\n}\n");
	open_with(steps);
	ck_assert_uint_eq(imap_caps(imap), IMAP_CONDSTORE | IMAP_IDLE);
	ck_assert_int_eq(imap_idle_limit_msecs(imap), 55000);
	OK(imap_select(imap, "INBOX", NULL, &selected, NULL, &err));
	finish();
}
END_TEST

START_TEST(quirks_match_by_host)
{
	static const struct step steps[] = { LOGIN(CAPS " CONDSTORE"),
		HEAR("* SELECT \"INBOX\""), SAY("%1 OK\r\n"), END };
	struct imap_selected selected;

	use_quirks("server \"a\" {\nhosts = { \"127.0.0.1\" }\n"
		   "no_condstore = true\nno_idle = true\n}\n");
	open_with(steps);
	ck_assert_uint_eq(imap_caps(imap), 0);
	OK(imap_select(imap, "INBOX", NULL, &selected, NULL, &err));
	finish();
}
END_TEST

static const char *const bad_hosts[] = { "", "/run/imap.sock", "a b", "a\nb",
	"../x", "ex\"ample.org" };

START_TEST(odd_host_names_are_refused)
{
	struct imap_params params = usual(143);

	params.host = bad_hosts[_i];
	ck_assert_int_eq(imap_open(&imap, &params, &err), -1);
	ck_assert_int_eq(err.kind, ERR_PERMANENT);
}
END_TEST

START_TEST(a_closed_port_is_a_network_error)
{
	struct imap_params params = usual(1);

	ck_assert_int_eq(imap_open(&imap, &params, &err), -1);
	ck_assert_int_eq(err.kind, ERR_NETWORK);
	ck_assert_uint_eq(sockets, 0);
}
END_TEST

#define COUNT(a) (int)(sizeof(a) / sizeof((a)[0]))

static TCase *
new_case(Suite *suite, const char *name)
{
	TCase *t = tcase_create(name);

	tcase_add_checked_fixture(t, start, stop);
	tcase_set_timeout(t, 60);
	suite_add_tcase(suite, t);
	return t;
}

int
main(void)
{
	Suite *suite = suite_create("imap");
	TCase *t = new_case(suite, "path");
	SRunner *runner;
	int failed;

	/* Once, as the daemon does: the tests are forked. */
	if (imap_init(NULL, &err) == -1) {
		fprintf(stderr, "%s\n", err.text);
		return 99;
	}
	tcase_add_test(t, a_poll_is_login_and_one_flight);
	tcase_add_test(t, status_goes_along_with_list);
	tcase_add_test(t, status_refused_along_with_list_is_left_to_be_asked);
	tcase_add_test(t, status_without_highestmodseq_when_that_is_bad);
	tcase_add_test(t, scan_reads_flags_dates_and_ids);
	tcase_add_test(t, bodies_stream_with_two_commands_in_flight);
	tcase_add_test(t, a_message_without_a_body_is_reported_as_such);
	tcase_add_test(t, a_wrong_size_makes_a_message_come_alone);
	tcase_add_loop_test(t, a_torn_message_is_none, 0, COUNT(torn));
	tcase_add_test(t, a_message_above_the_limit_is_skipped);
	tcase_add_test(t, messages_may_come_in_any_order);
	tcase_add_test(t, an_expunge_during_a_scan_mixes_nothing_up);
	tcase_add_test(t, bodies_not_asked_for_and_doubles_are_dropped);
	tcase_add_test(t, a_refused_fetch_leaves_the_session_usable);
	tcase_add_test(t, long_sets_are_split);
	t = new_case(suite, "select");
	tcase_add_test(t, qresync_brings_changes_and_vanished);
	tcase_add_test(t, news_of_the_folder_before_are_void);
	tcase_add_test(t, changes_of_another_uidvalidity_are_void);
	tcase_add_test(t, a_vanished_bomb_is_cut);
	tcase_add_loop_test(t, a_flood_of_lines_is_cut, 0,
	    COUNT(flood_lines));
	tcase_add_test(t, a_long_scan_goes_on_in_another_command);
	tcase_add_test(t, enable_without_enabled_is_not_qresync);
	tcase_add_test(t, select_falls_back_when_its_parameters_are_bad);
	tcase_add_test(t, zero_and_absent_numbers_are_unknown);
	tcase_add_test(t,
	    a_folder_that_cannot_be_selected_is_a_server_error);
	tcase_add_test(t, unsafe_login_is_answered_with_id);
	t = new_case(suite, "list");
	tcase_add_test(t, list_reads_names_roles_and_flags);
	tcase_add_loop_test(t, names_go_back_as_they_came, 0,
	    COUNT(wire_names));
	tcase_add_test(t, an_empty_extended_list_is_asked_again_plainly);
	tcase_add_test(t, xlist_is_used_where_special_use_lacks);
	tcase_add_test(t, an_empty_list_is_an_error);
	tcase_add_test(t, a_cut_list_is_an_error);
	tcase_add_test(t, line_ends_in_names_are_never_sent);
	t = new_case(suite, "hostile");
	tcase_add_loop_test(t, odd_lines_do_not_disturb, 0, COUNT(odd_lines));
	tcase_add_loop_test(t, the_session_ends_with_the_right_words, 0,
	    COUNT(ends));
	tcase_add_test(t, silence_ends_at_the_deadline);
	tcase_add_test(t, dripping_ends_at_the_deadline);
	tcase_add_test(t, words_that_ask_to_wait_are_about_the_object);
	tcase_add_test(t, a_select_that_shows_signs_of_life_is_waited_for);
	tcase_add_test(t, a_dripping_fetch_is_cut);
	tcase_add_test(t, a_scan_that_cannot_name_a_message_fails);
	tcase_add_test(t, an_endless_line_is_cut);
	tcase_add_test(t, endless_lines_are_cut);
	tcase_add_loop_test(t, huge_literals_are_refused, 0, COUNT(huge));
	tcase_add_test(t, the_caller_can_stop_a_session);
	tcase_add_test(t, a_callback_can_end_a_scan);
	t = new_case(suite, "idle");
	tcase_add_test(t, idle_wakes_on_news);
	tcase_add_test(t, idle_sees_news_in_the_segment_of_the_plus);
	tcase_add_test(t, idle_bears_news_before_the_plus);
	tcase_add_test(t, idle_sees_news_from_before);
	tcase_add_test(t, idle_ends_in_time);
	tcase_add_test(t, idle_wakes_on_the_control_descriptor);
	tcase_add_test(t, idle_counts_news_that_come_while_it_ends);
	tcase_add_loop_test(t, idle_ends_with_bye_or_eof, 0, 2);
	tcase_add_loop_test(t, idle_that_does_not_work_is_given_up, 0, 2);
	tcase_add_test(t, noop_tells_what_happened);
	t = new_case(suite, "login");
	tcase_add_test(t, capabilities_are_asked_again_after_login);
	tcase_add_test(t, names_and_passwords_are_quoted);
	tcase_add_test(t, an_8_bit_password_goes_as_a_literal);
	tcase_add_test(t, a_literal_needs_no_waiting_where_the_server_says_so);
	tcase_add_test(t, auth_login_gets_no_initial_response);
	tcase_add_test(t, plain_in_two_steps);
	tcase_add_loop_test(t, refused_logins_say_why, 0, COUNT(refusals));
	tcase_add_loop_test(t, nothing_is_sent_when_starttls_goes_wrong, 0,
	    COUNT(strippers));
	tcase_add_test(t, preauth_is_fine_where_tls_is_not_asked_for);
	tcase_add_test(t, the_rawlog_has_no_secrets);
	tcase_add_loop_test(t, the_password_does_not_stay_in_memory, 0, 2);
	tcase_add_test(t,
	    quirks_match_by_greeting_and_by_capability_after_login);
	tcase_add_test(t, quirks_match_by_host);
	tcase_add_loop_test(t, odd_host_names_are_refused, 0,
	    COUNT(bad_hosts));
	tcase_add_test(t, a_closed_port_is_a_network_error);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
