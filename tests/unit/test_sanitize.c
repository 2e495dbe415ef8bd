/*
 * test_sanitize.c - what servers send, made fit for the parser.
 */
#include "base/arena.h"
#include "imap/sanitize.h"
#include "imap/names.h"
#include "imap/words.h"

#include <check.h>

static struct sanitizer sanitizer;
static struct buf out;

static void
start(void)
{
	sanitize_init(&sanitizer);
}

static void
stop(void)
{
	sanitize_release(&sanitizer);
	buf_release(&out);
}

/* What the parser sees of one line. */
static const char *
mended(const char *line)
{
	buf_reset(&out);
	ck_assert_int_eq(sanitize_line(&sanitizer, line, strlen(line), &out),
	    SANITIZE_PASS);
	return buf_str(&out);
}

static const struct {
	const char *id, *line, *expected;
} lines[] = {
	{ "blank line", "\r\n", "" },
	{ "bare LF", "* 3 EXISTS\n", "* 3 EXISTS\r\n" },
	{ "L041", "*  2 EXISTS\r\n", "* 2 EXISTS\r\n" },
	{ "recent", "* 0 RECENT\r\n", "" },
	{ "expunge", "* 44 EXPUNGE \r\n", "* 44 EXPUNGE\r\n" },
	{ "huge number", "* 4294967297 EXISTS\r\n", "" },
	{ "L031", "* 0 FETCH (FLAGS ())\r\n", "" },
	{ "L033", "* FLAGS (\\Answered \\Seen $label1 \004Junk)\r\n", "" },
	{ "L037 flags", "* FLAGS ()\r\n", "" },
	{ "L039 unknown line", "* XFOO hi (a \"b\"\r\n", "" },
	{ "namespace", "* NAMESPACE ((\"\" \"/\") NIL\r\n", "" },
	{ "annotation", "* ANNOTATION \"x\" \"y\" (\"v\"\r\n", "" },
	{ "L034 search", "* SEARCH 7456 \r\n", "" },
	{ "search", "* SEARCH 1 2 (MODSEQ 9)\r\n", "" },
	{ "esearch", "* ESEARCH (TAG \"4\") UID ALL 1:3\r\n", "" },

	/* status lines and codes */
	{ "no text", "7 OK\r\n", "7 OK -\r\n" },
	{ "no text, blank", "7 NO \r\n", "7 NO -\r\n" },
	{ "no text, code", "7 OK [READ-WRITE]\r\n", "7 OK [READ-WRITE]\r\n" },
	{ "L078", "* OK [HIGHESTMODSEQ 102784]\r\n",
	    "* OK [HIGHESTMODSEQ 102784]\r\n" },
	{ "permanentflags crash", "* OK [PERMANENTFLAGS (\r\n",
	    "* OK (PERMANENTFLAGS (\r\n" },
	{ "permanentflags crash 2", "* OK [PERMANENTFLAGS (] \r\n",
	    "* OK (PERMANENTFLAGS (] \r\n" },
	{ "badcharset crash", "* NO [BADCHARSET (\"x\")] no\r\n",
	    "* NO (BADCHARSET (\"x\")] no\r\n" },
	{ "code never closed", "* OK [UIDVALIDITY 5\r\n",
	    "* OK (UIDVALIDITY 5\r\n" },
	{ "code of letters", "* OK [UIDNEXT abc] x\r\n",
	    "* OK (UIDNEXT abc] x\r\n" },
	{ "code too large", "* OK [UIDVALIDITY 99999999999] x\r\n",
	    "* OK (UIDVALIDITY 99999999999] x\r\n" },
	{ "L042", "* [COPYUID 7 5 11] moved\r\n",
	    "* OK [COPYUID 7 5 11] moved\r\n" },
	{ "L105", "7 OK [COPYUID 7 ] done\r\n",
	    "7 OK [COPYUID 7 ] done\r\n" },
	{ "failure codes are text", "7 NO [UNAVAILABLE] later\r\n",
	    "7 NO (UNAVAILABLE] later\r\n" },
	{ "no literal in text", "7 NO try {5}\r\n", "7 NO try {5}\r\n" },
	{ "continuation", "+\r\n", "+ -\r\n" },

	/* VANISHED */
	{ "vanished", "* VANISHED 4:6,9\r\n", "* VANISHED 4:6,9\r\n" },
	{ "earlier", "* VANISHED (earlier)  4:6\r\n",
	    "* VANISHED (EARLIER) 4:6\r\n" },
	{ "empty vanished", "* VANISHED\r\n", "" },
	{ "vanished nothing", "* VANISHED (EARLIER) \r\n", "" },
	{ "vanished star", "* VANISHED 1:*\r\n", "" },
	{ "vanished words", "* VANISHED all of them\r\n", "" },

	/* LIST */
	{ "list", "* LIST (\\HasNoChildren) \"/\" \"A\"\r\n",
	    "* LIST (\\HasNoChildren) \"/\" \"A\"\r\n" },
	{ "L037 list", "* LIST () \"/\" \"A\"\r\n",
	    "* LIST () \"/\" \"A\"\r\n" },
	{ "L052", "* LIST () \"/\" \"[Gmail]/G&APY-nderilmi&AV8-\"\r\n",
	    "* LIST () \"/\" \"[Gmail]/G&APY-nderilmi&AV8-\"\r\n" },
	{ "L056", "* LIST () \"/\" Foo]Bar\r\n",
	    "* LIST () \"/\" \"Foo]Bar\"\r\n" },
	{ "L061", "* LIST () \"/\" \"Old \"\r\n",
	    "* LIST () \"/\" \"Old \"\r\n" },
	{ "bare with blank and tab", "* LIST () \"/\" Sent\tItems old\r\n",
	    "* LIST () \"/\" \"Sent\tItems old\"\r\n" },
	{ "childinfo", "* LIST () \"/\" \"A\" (\"CHILDINFO\" (\"X\"))\r\n",
	    "* LIST () \"/\" \"A\"\r\n" },
	{ "bare childinfo", "* LIST () \"/\" A (\"CHILDINFO\" (\"X\"))\r\n",
	    "* LIST () \"/\" \"A\"\r\n" },
	{ "escapes", "* LIST () \"\\\\\" \"a\\\\b \\\"c\\\"\"\r\n",
	    "* LIST () \"\\\\\" \"a\\\\b \\\"c\\\"\"\r\n" },
	{ "no delimiter", "* LIST (\\Noinferiors) NIL INBOX\r\n",
	    "* LIST (\\Noinferiors) NIL \"INBOX\"\r\n" },
	{ "xlist", "* XLIST (\\Drafts \\Drafts) \"|\" \"D\"\r\n",
	    "* LIST (\\Drafts \\Drafts) \"|\" \"D\"\r\n" },
	{ "odd flags", "* LIST (foo \\Sent \\a\"b) \"/\" S\r\n",
	    "* LIST (\\Sent) \"/\" \"S\"\r\n" },
	{ "list without name", "* LIST () \"/\"\r\n", "" },
	{ "list without flags", "* LIST \"/\" x\r\n", "" },
	{ "lsub", "* LSUB () \"/\" x\r\n", "" },

	/* STATUS */
	{ "status", "* STATUS \"a (b\" (MESSAGES 3 UIDNEXT 9)\r\n",
	    "* STATUS x (MESSAGES 3 UIDNEXT 9)\r\n" },
	{ "L034", "* STATUS INBOX (MESSAGES 0) \r\n",
	    "* STATUS x (MESSAGES 0)\r\n" },
	{ "L035", "* STATUS \"INBOX\" ()\r\n", "* STATUS x ()\r\n" },
	{ "L035 unknown", "* STATUS \"RUU\" (FOO x)\r\n", "* STATUS x ()\r\n" },
	{ "bare name", "* STATUS a b (UIDVALIDITY 7)\r\n",
	    "* STATUS x (UIDVALIDITY 7)\r\n" },
	{ "mailboxid", "* STATUS a (MAILBOXID (F(1)) MESSAGES 4)\r\n",
	    "* STATUS x (MESSAGES 4)\r\n" },
	{ "size", "* STATUS a (SIZE 99999999999 MESSAGES 4)\r\n",
	    "* STATUS x (MESSAGES 4)\r\n" },
	{ "negative", "* STATUS a (MESSAGES -1 UIDNEXT 5)\r\n",
	    "* STATUS x (UIDNEXT 5)\r\n" },

	/* FETCH */
	{ "fetch", "* 1 FETCH (UID 5 FLAGS (\\Seen a))\r\n",
	    "* 1 FETCH (UID 5 FLAGS (\\Seen a))\r\n" },
	{ "lower case", "* 1 fetch (uid 5 flags ())\r\n",
	    "* 1 FETCH (UID 5 FLAGS ())\r\n" },
	{ "L033 fetch", "* 1 FETCH (UID 5 FLAGS (a \004Junk b))\r\n",
	    "* 1 FETCH (UID 5 FLAGS (a b))\r\n" },
	{ "flag in quotes", "* 1 FETCH (FLAGS (a \"x y\" (z) b) UID 5)\r\n",
	    "* 1 FETCH (FLAGS (a b) UID 5)\r\n" },
	/* any word of UTF-8 is a keyword; spelled as keywords.h says */
	{ "8-bit flag", "* 1 FETCH (FLAGS (Caf\303\251 b) UID 5)\r\n",
	    "* 1 FETCH (FLAGS (mh=Caf=C3=A9 b) UID 5)\r\n" },
	{ "brackets and slashes", "* 2 FETCH (FLAGS (Important! Perso/Travail "
	    "[keyword with]bracket 100%) UID 2)\r\n",
	    "* 2 FETCH (FLAGS (Important! Perso/Travail [keyword "
	    "mh=with=5Dbracket mh=100=25) UID 2)\r\n" },
	{ "one of our spelling", "* 2 FETCH (FLAGS (mh=x) UID 2)\r\n",
	    "* 2 FETCH (FLAGS (mh=mh=3Dx) UID 2)\r\n" },
	{ "Latin-1 and C1 flags",
	    "* 1 FETCH (FLAGS (Caf\351 a\302\205b c) UID 5)\r\n",
	    "* 1 FETCH (FLAGS (c) UID 5)\r\n" },
	{ "quoted flag", "* 1 FETCH (UID 5 FLAGS \"\\\\Flagged\")\r\n",
	    "* 1 FETCH (UID 5 FLAGS (\\Flagged))\r\n" },
	{ "quoted flag unescaped",
	    "* 1 FETCH (UID 5 FLAGS (\"\\Seen\" x))\r\n",
	    "* 1 FETCH (UID 5 FLAGS (\\Seen x))\r\n" },
	{ "quoted list", "* 1 FETCH (UID 5 FLAGS \"(\\\\Answered \\\\Seen)\""
	    ")\r\n", "* 1 FETCH (UID 5 FLAGS (\\Answered \\Seen))\r\n" },
	{ "NIL flags", "* 1 FETCH (UID 5 FLAGS NIL)\r\n",
	    "* 1 FETCH (UID 5 FLAGS ())\r\n" },
	{ "NIL among flags", "* 1 FETCH (UID 5 FLAGS (NIL \\Seen NIL))\r\n",
	    "* 1 FETCH (UID 5 FLAGS (\\Seen))\r\n" },
	{ "L039 unknown item",
	    "* 1 FETCH (UID 5 FLAGS () X-FOO (a \"b)\" (c)))\r\n",
	    "* 1 FETCH (UID 5 FLAGS ())\r\n" },
	{ "L039 objectid",
	    "* 1 FETCH (EMAILID (M1) THREADID NIL UID 5)\r\n",
	    "* 1 FETCH (UID 5)\r\n" },
	{ "L046", "* 1 FETCH (UID 5 BODY[2] )\r\n", "* 1 FETCH (UID 5)\r\n" },
	{ "L046 whole", "* 1 FETCH (UID 5 BODY[] )\r\n",
	    "* 1 FETCH (UID 5 BODY[] NIL)\r\n" },
	{ "NIL body", "* 1 FETCH (UID 5 BODY[] NIL)\r\n",
	    "* 1 FETCH (UID 5 BODY[] NIL)\r\n" },
	{ "body in quotes", "* 1 FETCH (UID 5 BODY[] \"a\\\"b\")\r\n",
	    "* 1 FETCH (UID 5 BODY[] \"a\\\"b\")\r\n" },
	{ "L077", "* 1 FETCH (MODSEQ (-1) FLAGS () UID 1)\r\n",
	    "* 1 FETCH (FLAGS () UID 1)\r\n" },
	{ "L077 zero", "* 1 FETCH (MODSEQ (0) UID 1)\r\n",
	    "* 1 FETCH (UID 1)\r\n" },
	{ "modseq bare", "* 1 FETCH (MODSEQ 12 UID 1)\r\n",
	    "* 1 FETCH (MODSEQ (12) UID 1)\r\n" },
	{ "L145",
	    "* 1 FETCH (UID 1 INTERNALDATE \"00-Jan-0000 00:00:00 +0000\")"
	    "\r\n",
	    "* 1 FETCH (UID 1 INTERNALDATE \"00-Jan-0000 00:00:00 +0000\")"
	    "\r\n" },
	{ "no date", "* 1 FETCH (UID 1 INTERNALDATE \"yesterday\")\r\n",
	    "* 1 FETCH (UID 1)\r\n" },
	{ "date NIL", "* 1 FETCH (UID 1 INTERNALDATE NIL)\r\n",
	    "* 1 FETCH (UID 1)\r\n" },
	{ "huge uid", "* 1 FETCH (UID 4294967297 FLAGS ())\r\n",
	    "* 1 FETCH (FLAGS ())\r\n" },
	{ "huge size", "* 1 FETCH (UID 1 RFC822.SIZE 5000000000)\r\n",
	    "* 1 FETCH (UID 1 RFC822.SIZE 4294967295)\r\n" },
	{ "mail.ru decimals", "* 1 FETCH (UID 1 RFC822.SIZE 12.0)\r\n",
	    "* 1 FETCH (UID 1 RFC822.SIZE 12)\r\n" },
	{ "L022",
	    "* 1 FETCH (UID 5 BODYSTRUCTURE (\"a \"b\" c\") FLAGS ())\r\n",
	    "* 1 FETCH (UID 5 FLAGS ())\r\n" },
	{ "L015",
	    "* 1 FETCH (UID 5 BODYSTRUCTURE (NIL \"alternative\" "
	    "(\"boundary\" \"x\") NIL NIL) FLAGS ())\r\n",
	    "* 1 FETCH (UID 5 FLAGS ())\r\n" },
	{ "L016",
	    "* 1 FETCH (UID 5 BODYSTRUCTURE (\"ALTERNATIVE\" "
	    "(\"BOUNDARY\" \"x\") NIL NIL) FLAGS ())\r\n",
	    "* 1 FETCH (UID 5 FLAGS ())\r\n" },
	{ "L018",
	    "* 1 FETCH (UID 5 BODYSTRUCTURE (\"application\" \"pdf\" NIL NIL "
	    "NIL \"base64\" 10 NIL (NIL NIL) NIL NIL) FLAGS ())\r\n",
	    "* 1 FETCH (UID 5 FLAGS ())\r\n" },
	{ "L020",
	    "* 1 FETCH (UID 5 BODYSTRUCTURE ((\"text\" \"plain\" NIL NIL NIL "
	    "\"8bit\" 5 0 NIL NIL NIL NIL) \"alternative\" (\"boundary\" "
	    "NIL)) FLAGS ())\r\n",
	    "* 1 FETCH (UID 5 FLAGS ())\r\n" },
	{ "L023",
	    "* 1 FETCH (UID 5 BODYSTRUCTURE (\"text\" \"plain\" NIL NIL NIL "
	    "\"7bit\" 10 1 NIL NIL NIL ()) FLAGS ())\r\n",
	    "* 1 FETCH (UID 5 FLAGS ())\r\n" },
	{ "L025", /* a field too few */
	    "* 1 FETCH (UID 5 ENVELOPE (\"Tue, 3 Mar 2026\" \"S\" ((\"A\" NIL "
	    "\"a\" \"example.org\")) NIL NIL NIL NIL NIL NIL) FLAGS ())\r\n",
	    "* 1 FETCH (UID 5 FLAGS ())\r\n" },
	{ "L026",
	    "* 1 FETCH (UID 5 ENVELOPE (NIL \"S\" (NIL (\"A\" NIL \"a\" "
	    "\"example.org\")) NIL NIL NIL NIL NIL NIL \"<m@x>\") "
	    "FLAGS ())\r\n",
	    "* 1 FETCH (UID 5 FLAGS ())\r\n" },
	{ "L028",
	    "* 1 FETCH (UID 5 ENVELOPE (NIL \"S\" ((\"Microsoft Exchange "
	    "Server\" NIL NIL \".MISSING-HOST-NAME.\")) NIL NIL NIL NIL NIL "
	    "NIL NIL) FLAGS ())\r\n",
	    "* 1 FETCH (UID 5 FLAGS ())\r\n" },
	{ "L030",
	    "* 1 FETCH (UID 5 (ENVELOPE (NIL NIL NIL NIL NIL NIL NIL NIL NIL "
	    "NIL)) FLAGS ())\r\n",
	    "* 1 FETCH (UID 5 FLAGS ())\r\n" },
	{ "L030 uid behind",
	    "* 1 FETCH ((ENVELOPE (NIL \"a (\" NIL)) X-Y 1 UID 5)\r\n",
	    "* 1 FETCH (UID 5)\r\n" },
	{ "L118", /* labels are never asked for */
	    "* 1 FETCH (X-GM-LABELS (\"a (b\" \"\\\\Inbox\" "
	    "\"say \\\"hi\\\"\") FLAGS () UID 5)\r\n",
	    "* 1 FETCH (FLAGS () UID 5)\r\n" },
	{ "L120",
	    "* 1 FETCH (X-GM-LABELS ([Mailbox] +plus NIL) FLAGS () UID 5)\r\n",
	    "* 1 FETCH (FLAGS () UID 5)\r\n" },
	{ "blank before )", "* 1 FETCH (UID 5 FLAGS (\\Seen ) )\r\n",
	    "* 1 FETCH (UID 5 FLAGS (\\Seen))\r\n" },
	{ "labels",
	    "* 1 FETCH (X-GM-LABELS ([Mailbox] \"a (b\" NIL) UID 5)\r\n",
	    "* 1 FETCH (UID 5)\r\n" },
	{ "never closed", "* 1 FETCH (UID 5 FLAGS (\\Seen\r\n",
	    "* 1 FETCH (UID 5)\r\n" },
	{ "no list", "* 1 FETCH UID 5\r\n", "" },
	{ "nothing of use", "* 1 FETCH (X 5)\r\n", "" },
	{ "qip", "* 6 FETCH ()\r\n", "" },
};

START_TEST(a_line_is_reduced_to_what_was_asked_for)
{
	ck_assert_msg(strcmp(mended(lines[_i].line), lines[_i].expected) == 0,
	    "%s: %s became %s", lines[_i].id, lines[_i].line, buf_str(&out));
	ck_assert(!sanitizer.has_literal);
	ck_assert_int_eq(sanitizer.reply, REPLY_NONE);
}
END_TEST

/* RFC 8474 */
START_TEST(the_id_of_a_folder_is_passed_on)
{
	ck_assert_str_eq(mended("* STATUS a (MAILBOXID (F2-a_9) "
	    "MESSAGES 3)\r\n"), "* STATUS x (MAILBOXID (F2-a_9) MESSAGES 3)\r\n");
	ck_assert_str_eq(mended("* STATUS a (MESSAGES 3 mailboxid (F2))\r\n"),
	    "* STATUS x (MESSAGES 3 MAILBOXID (F2))\r\n");
	ck_assert_str_eq(mended("* STATUS a (MAILBOXID (F2 9) UIDNEXT 3)\r\n"),
	    "* STATUS x (UIDNEXT 3)\r\n");
	ck_assert_str_eq(mended("* STATUS a (MAILBOXID () UIDNEXT 3)\r\n"),
	    "* STATUS x (UIDNEXT 3)\r\n");
	ck_assert_str_eq(mended("* STATUS a (MAILBOXID F2 UIDNEXT 3)\r\n"),
	    "* STATUS x (UIDNEXT 3)\r\n");
}
END_TEST

/* Some server answered twice; some proxy repeats what it has heard. */
START_TEST(a_command_is_answered_once)
{
	ck_assert_str_ne(mended("7 OK done\r\n"), "");
	ck_assert_str_eq(mended("7 OK done\r\n"), "");
	ck_assert_str_eq(mended("3 NO no\r\n"), "");
	ck_assert_str_ne(mended("8 OK done\r\n"), "");
}
END_TEST

START_TEST(the_literal_of_a_body_is_kept)
{
	ck_assert_str_eq(mended("* 1 FETCH (FLAGS () BODY[] {5}\r\n"),
	    "* 1 FETCH (FLAGS () BODY[] {5}\r\n");
	ck_assert(sanitizer.has_literal && sanitizer.keep_literal);
	ck_assert_uint_eq(sanitizer.literal, 5);
	ck_assert_str_eq(mended(" UID 7)\r\n"), " UID 7)\r\n");
	ck_assert(!sanitizer.has_literal);
	ck_assert_str_eq(mended("* 2 EXISTS\r\n"), "* 2 EXISTS\r\n");
}
END_TEST

START_TEST(the_literal_of_another_item_is_thrown_away)
{
	static const char *const parts[] = { "X \"y\" {7}\r\n",
		") UID 3)\r\n" };
	const char *first = "* 1 FETCH (UID 5 ENVELOPE (NIL {3}\r\n";

	ck_assert_int_eq(sanitize_line(&sanitizer, first, strlen(first), &out),
	    SANITIZE_HOLD);
	ck_assert(sanitizer.has_literal && !sanitizer.keep_literal);
	ck_assert_int_eq(sanitize_line(&sanitizer, parts[0], strlen(parts[0]), &out),
	    SANITIZE_HOLD);
	ck_assert_uint_eq(sanitizer.literal, 7);
	ck_assert_int_eq(sanitize_line(&sanitizer, parts[1], strlen(parts[1]), &out),
	    SANITIZE_PASS);
	ck_assert_str_eq(buf_str(&out), "* 1 FETCH (UID 5 UID 3)\r\n");
}
END_TEST

/* B1: what follows a body must be the end of its reply. */
static const struct {
	const char *after;
	enum sanitize_verdict verdict;
} behind_bodies[] = {
	{ ")\r\n", SANITIZE_PASS },
	{ " )\r\n", SANITIZE_PASS },
	{ " UID 5)\r\n", SANITIZE_PASS },
	{ " FLAGS (\\Seen) UID 5 MODSEQ (7))\r\n", SANITIZE_PASS },
	{ "\r\n", SANITIZE_TORN },
	{ "7 OK done\r\n", SANITIZE_TORN },
	{ "* 6 FETCH (UID 6 BODY[] {3}\r\n", SANITIZE_TORN },
	{ ") more text\r\n", SANITIZE_TORN },
	{ "rest of a word (in brackets)\r\n", SANITIZE_TORN },
	{ "word word)\r\n", SANITIZE_TORN },
	{ " UID 5\r\n", SANITIZE_TORN },
	{ " UID 5) {3}\r\n", SANITIZE_TORN },
	{ "(x))\r\n", SANITIZE_TORN },
	/* The literal swallowed ")" and the beginning of the next reply. */
	{ "UID 6 FLAGS ())\r\n", SANITIZE_TORN },
	{ " FLAGS () RFC822.SIZE 3 BODY[] {3}\r\n", SANITIZE_TORN },
	{ " BODY[] \"x\")\r\n", SANITIZE_TORN },
	{ " BODY[HEADER.FIELDS (MESSAGE-ID)] {3}\r\n", SANITIZE_TORN },
};

START_TEST(a_body_ends_where_its_length_says)
{
	const char *after = behind_bodies[_i].after;

	mended("* 5 FETCH (UID 5 BODY[] {5}\r\n");
	ck_assert(sanitizer.has_literal && sanitizer.keep_literal);
	buf_reset(&out);
	ck_assert_msg((int)sanitize_line(&sanitizer, after, strlen(after), &out) ==
	    (int)behind_bodies[_i].verdict, "%s", after);
}
END_TEST

START_TEST(literals_of_unknown_lines_are_thrown_away)
{
	ck_assert_str_eq(mended("* ID (\"name\" {4}\r\n"), "");
	ck_assert(sanitizer.has_literal && !sanitizer.keep_literal);
	ck_assert_str_eq(mended(" \"x\" {9}\r\n"), "");
	ck_assert(sanitizer.has_literal);
	ck_assert_str_eq(mended(")\r\n"), "");
	ck_assert_int_eq(sanitizer.reply, REPLY_NONE);
}
END_TEST

START_TEST(folder_names_may_be_literals)
{
	ck_assert_str_eq(mended("* LIST () \"/\" {3}\r\n"),
	    "* LIST () \"/\" {3}\r\n");
	ck_assert(sanitizer.has_literal && sanitizer.keep_literal);
	ck_assert_str_eq(mended(" (\"CHILDINFO\" (\"X\"))\r\n"), "\r\n");
	buf_reset(&out);
	ck_assert_int_eq(sanitize_line(&sanitizer, "* STATUS {3}\r\n", 14, &out),
	    SANITIZE_HOLD);
	ck_assert(sanitizer.has_literal && !sanitizer.keep_literal);
	ck_assert_str_eq(mended(" (MESSAGES 2)\r\n"),
	    "* STATUS x (MESSAGES 2)\r\n");
}
END_TEST

START_TEST(a_literal_larger_than_any_number_is_seen_as_such)
{
	mended("* 1 FETCH (UID 5 BODY[] {99999999999999999999999}\r\n");
	ck_assert(sanitizer.has_literal);
	ck_assert_uint_eq(sanitizer.literal, UINT64_MAX);
}
END_TEST

START_TEST(depth_costs_nothing) /* L038 */
{
	enum { DEPTH = 30000 };
	struct buf line = BUF_INIT;
	int i;

	buf_adds(&line, "* 1 FETCH (UID 5 BODYSTRUCTURE ");
	for (i = 0; i < DEPTH; i++)
		buf_addc(&line, '(');
	for (i = 0; i < DEPTH; i++)
		buf_addc(&line, ')');
	buf_adds(&line, " FLAGS (\\Seen))\r\n");
	ck_assert_str_eq(mended(line.data),
	    "* 1 FETCH (UID 5 FLAGS (\\Seen))\r\n");
	buf_release(&line);
}
END_TEST

START_TEST(capabilities_are_noted)
{
	mended("* CAPABILITY IMAP4rev1 \"APPENDLIMIT=26214400\"  IDLE \r\n");
	ck_assert_str_eq(buf_str(&sanitizer.notes.capability),
	    "IMAP4rev1 APPENDLIMIT=26214400 IDLE");
	mended("2 OK [CAPABILITY IMAP4rev1 MOVE] Logged in\r\n");
	ck_assert_str_eq(buf_str(&sanitizer.notes.capability), "IMAP4rev1 MOVE");
	mended("* ENABLED QRESYNC\r\n");
	ck_assert(sanitizer.notes.enabled_qresync);
}
END_TEST

START_TEST(bye_and_stray_lines_end_the_session)
{
	ck_assert_int_eq(sanitize_line(&sanitizer, "* BYE idle too long\r\n", 21, &out),
	    SANITIZE_BYE);
	ck_assert_str_eq(sanitizer.notes.last_words, "idle too long");
	ck_assert_int_eq(sanitize_line(&sanitizer, "Server Unavailable. 15\r\n", 24,
	    &out), SANITIZE_STRAY);
	ck_assert_str_eq(sanitizer.notes.last_words, "Server Unavailable. 15");
	ck_assert_uint_eq(out.len, 0);
}
END_TEST

/* --- names --------------------------------------------------------------- */

static const struct {
	const char *wire, *path;
} names[] = {
	{ "INBOX", "INBOX" },
	{ "Inbox", "INBOX" }, /* L058 */
	{ "Test", "Test" },
	{ "[Gmail]/G&APY-nderilmi&AV8- Postalar",
	    "[Gmail]/G\303\266nderilmi\305\237 Postalar" },
	{ "R&-D", "R&D" }, /* L054 */
	{ "&AMk-l&AOk-ments envoy&AOk-s",
	    "\303\211l\303\251ments envoy\303\251s" },
	{ "&ZeVnLIqe-", "\346\227\245\346\234\254\350\252\236" },
	{ "&2D3eAA-", "\360\237\230\200" },
	{ "&U,BTFw-", "\345\217\260\345\214\227" },
	/* broken: shown as they are */
	{ "R&D", "R&D" },
	{ "a&", "a&" },
	{ "&AOk", "&AOk" },
	{ "&2D0-", "&2D0-" },
	{ "&AAA-", "&AAA-" },
	{ "&AO-k", "&AO-k" },
	{ "b\303\274cher", "b\303\274cher" },
	/* Latin-1 and Windows-1252 (F-A7) */
	{ "b\374cher", "b\303\274cher" },
	{ "\200 &APw-", "\342\202\254 &APw-" },
	{ "\377\300\200", "\303\277\303\200\342\202\254" },
	{ "a\033[31m\tb", "a\357\277\275[31m\357\277\275b" },
	{ "\302\205", "\357\277\275" },
};

START_TEST(names_are_decoded_or_guessed)
{
	struct arena *arena = arena_new("test");

	ck_assert_str_eq(name_for_people(arena, names[_i].wire),
	    names[_i].path);
	arena_free(&arena);
}
END_TEST

/* --- words --------------------------------------------------------------- */

static const struct {
	const char *text;
	bool is_bad;
	enum err_kind kind;
	uint32_t wait;
} logins[] = {
	{ "[AUTHENTICATIONFAILED] Invalid credentials", false, ERR_AUTH, 0 },
	{ "LOGIN failed.", false, ERR_AUTH, 0 },
	{ "Invalid user or password", true, ERR_AUTH, 0 },
	{ "[ALERT] Application-specific password required", false, ERR_AUTH,
	    0 },
	{ "[AUTHENTICATIONFAILED] Internal error", false, ERR_AUTH, 0 },
	/* L125, L219 */
	{ "[ALERT] Too many simultaneous connections. (Failure)", false,
	    ERR_THROTTLED, 120 },
	{ "[UNAVAILABLE] Maximum number of connections from user+IP exceeded "
	  "(mail_max_userip_connections=10)", false, ERR_THROTTLED, 120 },
	{ "[UNAVAILABLE] Temporary authentication failure", false,
	    ERR_THROTTLED, 60 },
	{ "[LIMIT] no", false, ERR_THROTTLED, 120 },
	{ "[INUSE] try later", false, ERR_THROTTLED, 60 },
	{ "Account exceeded command or bandwidth limits. (Failure)", false,
	    ERR_THROTTLED, 3600 },
	/* L128 */
	{ "Request is throttled. Suggested Backoff Time: 178755 milliseconds",
	    true, ERR_THROTTLED, 179 },
	{ "Rate limit hit, try again in 2 minutes", false, ERR_THROTTLED,
	    120 },
	{ "throttled, retry after 99999999999 s", false, ERR_THROTTLED,
	    86400 },
	/* L008 */
	{ "User is authenticated but not connected.", true, ERR_THROTTLED,
	    900 },
	{ "Unknown command", true, ERR_SERVER, 0 },
	{ "[OVERQUOTA] your mailbox is full", false, ERR_SERVER, 0 },
	{ "[SERVERBUG] sorry", false, ERR_THROTTLED, 60 },
};

/* R-CONN-3: which of them speak of the number of connections? */
START_TEST(limits_of_connections_are_known)
{
	static const struct {
		const char *text;
		bool is_limit;
	} rows[] = {
		{ "[ALERT] Too many simultaneous connections. (Failure)",
		    true },
		{ "[UNAVAILABLE] Maximum number of connections from user+IP "
		  "exceeded (mail_max_userip_connections=10)", true },
		{ "[LIMIT] no", true },
		{ "Request is throttled. Suggested Backoff Time: 1000 "
		  "milliseconds", false },
		{ "Account exceeded command or bandwidth limits.", false },
		{ "Server Unavailable. 15", false },
	};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct err err = ERR_INIT;

		ck_assert_msg(words_ask_to_wait(rows[i].text, "h", "w", &err),
		    "%s", rows[i].text);
		ck_assert_msg(err.is_limit == rows[i].is_limit, "%s",
		    rows[i].text);
		ck_assert_int_eq(err.kind, ERR_THROTTLED);
	}
	ck_assert(words_slow_down("Success [THROTTLED]"));
	ck_assert(!words_slow_down("Success"));
}
END_TEST

START_TEST(refused_logins_are_told_apart)
{
	struct err err = ERR_INIT;

	words_for_login(logins[_i].text, logins[_i].is_bad, "h", &err);
	ck_assert_msg(err.kind == logins[_i].kind, "%s: %s", logins[_i].text,
	    err_kind_name(err.kind));
	ck_assert_uint_eq(err.retry_after_secs, logins[_i].wait);
	ck_assert_ptr_nonnull(strstr(err.text, logins[_i].text));
}
END_TEST

#define COUNT(a) (int)(sizeof(a) / sizeof((a)[0]))

int
main(void)
{
	Suite *suite = suite_create("mend");
	TCase *t = tcase_create("mend");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(t, start, stop);
	tcase_add_loop_test(t, a_line_is_reduced_to_what_was_asked_for, 0,
	    COUNT(lines));
	tcase_add_test(t, the_id_of_a_folder_is_passed_on);
	tcase_add_test(t, a_command_is_answered_once);
	tcase_add_test(t, the_literal_of_a_body_is_kept);
	tcase_add_test(t, the_literal_of_another_item_is_thrown_away);
	tcase_add_loop_test(t, a_body_ends_where_its_length_says, 0,
	    sizeof(behind_bodies) / sizeof(behind_bodies[0]));
	tcase_add_test(t, literals_of_unknown_lines_are_thrown_away);
	tcase_add_test(t, folder_names_may_be_literals);
	tcase_add_test(t, a_literal_larger_than_any_number_is_seen_as_such);
	tcase_add_test(t, depth_costs_nothing);
	tcase_add_test(t, capabilities_are_noted);
	tcase_add_test(t, bye_and_stray_lines_end_the_session);
	tcase_add_loop_test(t, names_are_decoded_or_guessed, 0,
	    COUNT(names));
	tcase_add_test(t, limits_of_connections_are_known);
	tcase_add_loop_test(t, refused_logins_are_told_apart, 0,
	    COUNT(logins));
	suite_add_tcase(suite, t);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
