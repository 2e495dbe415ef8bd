/*
 * test_store_mail.c - messages: ingest, flags, identity, threads.
 *
 * Runs under tests/with-postgres.
 */
#include "store_world.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/xmem.h"
#include "mail/tsvector.h"

#include <check.h>
#include <sys/wait.h>
#include <unistd.h>

static struct world w;
static struct folder *inbox;

static void
open_world(void)
{
	world_open(&w);
	inbox = world_folder(&w, "INBOX");
}

static void
close_world(void)
{
	world_close(&w);
}

static int64_t
id_at(struct folder *f, uint32_t uid)
{
	return world_int(&w, "SELECT id FROM messages WHERE mailbox_id = %lld "
	    "AND uid = %u AND deleted_at IS NULL", (long long)f->id, uid);
}

static int64_t
rows_of(const char *what)
{
	return world_int(&w, "SELECT count(*) FROM %s WHERE account_id = %s",
	    what, world_account(&w));
}

/* Counters say what the rows say. */
static void
check_counters(void)
{
	ck_assert_int_eq(0, world_int(&w, "SELECT count(*) FROM mailbox b "
	    "WHERE account_id = %s AND messages <> (SELECT count(*) "
	    "FROM message_state s WHERE s.mailbox_id = b.id "
	    "AND uid IS NOT NULL AND s.deleted_at IS NULL)",
	    world_account(&w)));
	ck_assert_int_eq(0, world_int(&w, "SELECT count(*) FROM threads t "
	    "WHERE account_id = %s AND messages <> (SELECT count(*) "
	    "FROM messages m WHERE m.thread_id = t.id "
	    "AND m.deleted_at IS NULL)", world_account(&w)));
	ck_assert_int_eq(0, world_int(&w, "SELECT count(*) FROM threads t "
	    "WHERE account_id = %s AND messages > 0 AND last_at <> "
	    "(SELECT max(internal_date) FROM messages m WHERE "
	    "m.thread_id = t.id AND m.deleted_at IS NULL)",
	    world_account(&w)));
	ck_assert_int_eq(0, world_int(&w, "SELECT count(*) FROM messages m "
	    "WHERE account_id = %s AND NOT EXISTS (SELECT FROM threads t "
	    "WHERE t.id = m.thread_id AND t.account_id = m.account_id)",
	    world_account(&w)));
	ck_assert_int_eq(0, world_int(&w, "SELECT count(*) FROM blob b "
	    "WHERE refs <> (SELECT count(*) FROM message m "
	    "WHERE m.blob_id = b.id)"));
}

/* --- ingest ------------------------------------------------------------------ */

START_TEST(a_message_is_a_row_with_all_it_said)
{
	struct address rcpt[] = {
		{ TO, "A \"quoted\" \\ name", "ann@example.org" },
		{ CC, "", "cc@example.org" },
		{ BCC, "Tab\there", "" },
		{ REPLY_TO, "", "reply@example.org" },
	};
	struct attachment files[] = {
		{ "r\xC3\xA9sum\xC3\xA9.pdf", "application/pdf", NULL, 9,
		    false },
		{ NULL, "image/png", "cid@x", 5, true },
	};
	const char *refs[] = { "a@x", "b@x" };
	struct mail m = { .uid = 5, .flags = FLAG_SEEN | FLAG_DELETED,
		.keywords = "$Label1 zz" };
	struct place place = mail_place(&m);
	struct blob_ref blob = mail_blob(&w, &m);
	struct content c = { .state = PARSE_PARTIAL,
		.state_reason = "too many parts", .subject = "Re: Hi",
		.base_subject = "Hi", .is_reply = true, .from_name = "Bob",
		.from_addr = "bob@example.net", .recipients = rcpt,
		.n_recipients = 4, .message_id = "m@x", .in_reply_to = "b@x",
		.references = refs, .n_references = 2, .text = "needle",
		.text_len = 6, .snippet = "need", .attachments = files,
		.n_attachments = 2, .has_attachments = true };
	int64_t id;

	batch_add(w.batch, &place, &blob, &c);
	world_commit(&w, inbox);
	ck_assert_uint_eq(w.result.created.n, 1);
	ck_assert_int_eq(w.result.newest_mail_secs, place.internal_date_secs);
	id = w.result.created.ids[0];
	ck_assert_str_eq("Re: Hi|bob@example.net|Bob|m@x|b@x|a@x b@x|partial|"
	    "too many parts|t|f|f|t|{$Label1,zz}|t|need|100", world_text(&w,
	    "SELECT concat_ws('|', subject, from_addr, from_name, message_id,"
	    " in_reply_to, refs, parse_state, parse_reason, seen, flagged, "
	    "answered, marked_deleted, keywords, has_attachments, snippet, "
	    "size) FROM messages WHERE id = %lld", (long long)id));
	ck_assert_str_eq("A \"quoted\" \\ name", world_text(&w,
	    "SELECT recipients#>>'{to,0,name}' FROM messages WHERE id = %lld",
	    (long long)id));
	ck_assert_str_eq("Tab\there|cc@example.org|reply@example.org",
	    world_text(&w, "SELECT concat_ws('|', "
	    "recipients#>>'{bcc,0,name}', recipients#>>'{cc,0,addr}', "
	    "recipients#>>'{reply_to,0,addr}') FROM messages WHERE id = %lld",
	    (long long)id));
	ck_assert_int_eq(2, world_int(&w, "SELECT count(*) FROM attachments "
	    "WHERE message_id = %lld AND (filename IS NULL) = inline",
	    (long long)id));
	/* No Date header: the server's date. */
	ck_assert_str_eq("t", world_text(&w, "SELECT sent_at = internal_date "
	    "FROM messages WHERE id = %lld", (long long)id));
	ck_assert_int_eq(inbox->stored, 1);
	check_counters();
}
END_TEST

START_TEST(search_finds_subject_people_files_and_text)
{
	struct mail m = { .uid = 1, .subject = "Quarterly figures",
		.from = "zoe@example.com", .text = "the needle lies here" };
	const char *words[] = { "quarterly", "zoe", "needle", "example.com" };
	int64_t id = world_deliver(&w, inbox, &m);
	int round;
	size_t i;

	for (round = 0; round < 2; round++) {
		for (i = 0; i < 4; i++)
			ck_assert_int_eq(id, world_int(&w,
			    "SELECT search_found(%s, $x$%s$x$)",
			    world_account(&w), tsquery_build(w.arena,
			    words[i])));
		ck_assert_int_eq(rows_of("search_fresh"), round == 0);
		ck_assert_int_eq(rows_of("search_merged"), round == 1);
		world_text(&w, "INSERT INTO search_due VALUES (%s)",
		    world_account(&w));
		must(store_search_merge(w.s, 1000, &w.err), &w);
	}
}
END_TEST

/* F-E2: the index is asked for less than the query says, and finds the same as
 * a look at every text; words of another account do not count. */
START_TEST(the_index_finds_what_a_look_at_every_text_finds)
{
	static const char *const texts[] = { "the quick brown fox",
		"the brown quick fox", "quicksand and a fox", "", "lazy dog",
		"it's quick-witted fox@example.org", "dog the fox" };
	static const char *const queries[] = { "'quick'", "'qui':*",
		"'quick' <-> 'brown'", "'quick' <2> 'fox'", "!'quick'",
		"'fox' & !'quick'", "!('quick' <-> 'brown')",
		"'fox' & !('quick' <-> 'brown')", "'dog' | 'quick' <-> 'fox'",
		"'dog' | !'fox'", "'quick':D", "'quick':A", "'qui':*D",
		"'lazi':*|'do':*", "'fox@example.org'", "'it''s'",
		"'the' <-> ('quick' | 'brown')" };
	struct world other;
	struct mail m = { 0 };
	size_t i, round;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		m.uid = (uint32_t)i + 1;
		m.text = texts[i];
		world_deliver(&w, inbox, &m);
	}
	world_open(&other);
	world_deliver(&other, world_folder(&other, "INBOX"), &m);
	for (round = 0; round < 2; round++) {
		for (i = 0; i < sizeof(queries) / sizeof(queries[0]); i++)
			ck_assert_str_eq(world_text(&w, "SELECT array_agg("
			    "message_id ORDER BY 1) FROM message_fts WHERE "
			    "account_id = %s AND tsv @@ $x$%s$x$::tsquery",
			    world_account(&w), queries[i]),
			    world_text(&w, "SELECT array_agg(f ORDER BY 1) "
			    "FROM search_found(%s, $x$%s$x$) f",
			    world_account(&w), queries[i]));
		world_text(&w, "INSERT INTO search_due VALUES (%s), (%s)",
		    world_account(&w), world_account(&other));
		must(store_search_merge(w.s, 10000, &w.err), &w);
		ck_assert_int_eq(rows_of("search_fresh"), 0);
	}
	world_close(&other);
}
END_TEST

/* F-E2, F-E6: an account is merged when it has so many texts, others are left
 * alone, and nothing is left in the pending list. */
START_TEST(a_long_tail_is_merged_and_a_short_one_is_not)
{
	struct mail m = { .text = "needle" };
	struct world other;
	int n;

	world_open(&other);
	m.uid = 1;
	world_deliver(&other, world_folder(&other, "INBOX"), &m);
	for (n = 0; n < 5; n++) {
		for (; m.uid <= (uint32_t)(n + 1) * 450; m.uid++)
			world_add(&w, &m);
		world_commit(&w, inbox);
		must(store_search_merge(w.s, 10000, &w.err), &w);
		/* A full merge looks again whether there is more. */
		ck_assert_int_eq(rows_of("search_fresh"),
		    n < 4 ? (n + 1) * 450 : 0);
	}
	ck_assert_int_eq(rows_of("search_merged"), 2250);
	ck_assert_int_eq(2250, world_int(&w, "SELECT count(*) FROM "
	    "search_found(%s, 'needle')", world_account(&w)));
	ck_assert_int_eq(1, world_int(&w, "SELECT count(*) FROM search_fresh "
	    "WHERE account_id = %s", world_account(&other)));
	ck_assert_int_eq(0, world_int(&w, "SELECT gin_clean_pending_list("
	    "i.indexrelid) FROM pg_index i JOIN pg_class c "
	    "ON c.oid = i.indexrelid WHERE i.indrelid = (SELECT tableoid "
	    "FROM search_merged WHERE account_id = %s LIMIT 1) "
	    "AND c.relam = (SELECT oid FROM pg_am WHERE amname = 'gin')",
	    world_account(&w)));
	world_close(&other);
}
END_TEST

START_TEST(ingest_twice_changes_nothing)
{
	struct mail m[] = { { .uid = 1, .id = "1@x" },
		{ .uid = 2, .id = "2@x", .refs = "1@x" } };
	int round;

	for (round = 0; round < 3; round++) {
		world_add(&w, &m[0]);
		world_add(&w, &m[1]);
		world_add(&w, &m[1]);
		world_commit(&w, inbox);
		ck_assert_uint_eq(w.result.created.n, round == 0 ? 2 : 0);
		ck_assert_uint_eq(w.result.updated.n, 0);
	}
	ck_assert_int_eq(rows_of("message"), 2);
	ck_assert_int_eq(rows_of("message_fts"), 2);
	ck_assert_int_eq(rows_of("threads"), 1);
	check_counters();
}
END_TEST

START_TEST(a_batch_half_known_adds_the_other_half)
{
	struct mail m = { 0 };
	uint32_t uid;

	for (uid = 2; uid <= 40; uid += 2) {
		m.uid = uid;
		world_add(&w, &m);
	}
	world_commit(&w, inbox);
	for (uid = 1; uid <= 40; uid++) {
		m.uid = uid;
		world_add(&w, &m);
	}
	world_commit(&w, inbox);
	ck_assert_uint_eq(w.result.created.n, 20);
	ck_assert_int_eq(rows_of("message"), 40);
	ck_assert_int_eq(0, world_int(&w, "SELECT count(*) FROM messages "
	    "WHERE account_id = %s AND blob IS NULL", world_account(&w)));
	check_counters();
}
END_TEST

START_TEST(same_bytes_twice_are_two_rows_and_one_blob)
{
	struct mail m[] = { { .uid = 1, .bytes = "twins" },
		{ .uid = 2, .bytes = "twins" }, { .uid = 3 } };

	world_add(&w, &m[0]);
	world_add(&w, &m[2]);
	world_add(&w, &m[1]);
	world_commit(&w, inbox);
	ck_assert_uint_eq(w.result.created.n, 3);
	ck_assert_int_eq(1, world_int(&w, "SELECT count(DISTINCT blob) "
	    "FROM messages WHERE account_id = %s AND uid < 3",
	    world_account(&w)));
	check_counters();
}
END_TEST

START_TEST(a_message_without_blob_is_a_row)
{
	struct place place = { .uid = 1, .size = 777 };
	struct content c = { .state = PARSE_OVER_QUOTA, .snippet = "" };

	batch_add(w.batch, &place, NULL, &c);
	world_commit(&w, inbox);
	ck_assert_str_eq("over_quota|777|f", world_text(&w, "SELECT "
	    "concat_ws('|', parse_state, size, blob IS NOT NULL) "
	    "FROM messages WHERE account_id = %s", world_account(&w)));
	check_counters();
}
END_TEST

START_TEST(strange_text_is_kept_as_it_is)
{
	struct mail m = { .uid = 1, .subject = "{\"',\\} NULL \x01\x1F\x7F "
		"\xF0\x9F\x98\x80 \xE2\x80\xAE $$;--", .from = "\\x\",'",
		.to = "\x02\"\\\n{}", .keywords = "{a \"b", .id = "{}\\,\"",
		.text = "'' \\ :*&|!()<-> \xF0\x9F\x98\x80" };
	int64_t id = world_deliver(&w, inbox, &m);

	ck_assert_str_eq(m.subject, world_text(&w, "SELECT subject "
	    "FROM messages WHERE id = %lld", (long long)id));
	ck_assert_str_eq(m.to, world_text(&w, "SELECT "
	    "recipients#>>'{to,0,addr}' FROM messages WHERE id = %lld",
	    (long long)id));
	ck_assert_int_eq(2, world_int(&w, "SELECT cardinality(keywords) "
	    "FROM messages WHERE id = %lld", (long long)id));
}
END_TEST

/* L229 */
START_TEST(bad_text_costs_its_letters_not_the_batch)
{
	struct mail m = { .uid = 1, .subject = "a\xFF" "b", .to = "\xC3(" };
	struct mail good = { .uid = 2 };

	world_add(&w, &m);
	world_add(&w, &good);
	world_commit(&w, inbox);
	ck_assert_uint_eq(w.result.created.n, 2);
	ck_assert_str_eq("a\xEF\xBF\xBD" "b|\xEF\xBF\xBD(", world_text(&w,
	    "SELECT concat_ws('|', subject, recipients#>>'{to,0,addr}') "
	    "FROM messages WHERE id = %lld",
	    (long long)w.result.created.ids[0]));
}
END_TEST

/* L230 */
START_TEST(a_message_id_of_15000_letters_is_no_problem)
{
	char *long_id = xmalloc(15001), *more;
	struct mail m = { .uid = 1, .id = long_id };
	struct mail reply = { .uid = 2, .id = "r@x", .reply = long_id };
	int64_t first, second;

	memset(long_id, 'm', 15000);
	long_id[15000] = '\0';
	first = world_deliver(&w, inbox, &m);
	second = world_deliver(&w, inbox, &reply);
	ck_assert_int_eq(15000, world_int(&w, "SELECT length(message_id) "
	    "FROM messages WHERE id = %lld", (long long)first));
	ck_assert_int_eq(world_thread(&w, first), world_thread(&w, second));
	more = long_id;
	free(more);
}
END_TEST

START_TEST(dates_without_sense_are_bent)
{
	struct place place = { .uid = 1, .has_internal_date = true,
		.internal_date_secs = INT64_MAX };
	struct content c = { .snippet = "", .has_sent_at = true,
		.sent_at_secs = INT64_MIN };

	batch_add(w.batch, &place, NULL, &c);
	world_commit(&w, inbox);
	ck_assert_str_eq("9999|1", world_text(&w, "SELECT concat_ws('|', "
	    "extract(year FROM internal_date), extract(year FROM sent_at)) "
	    "FROM messages WHERE account_id = %s", world_account(&w)));
}
END_TEST

START_TEST(an_old_plan_writes_nothing)
{
	struct folder *mine = world_reload(&w, inbox->id);
	struct mail a = { .uid = 1 }, b = { .uid = 2 };

	world_deliver(&w, inbox, &a);
	world_add(&w, &b);
	ck_assert_int_eq(-1, world_try_commit(&w, mine, 3));
	ck_assert_int_eq(w.err.kind, ERR_STALE);
	ck_assert_int_eq(rows_of("message"), 1);
	check_counters();
	/* The session is as good as new. */
	mine = world_reload(&w, inbox->id);
	ck_assert_int_ne(0, world_deliver(&w, mine, &b));
	ck_assert_uint_eq(mine->cursor.uidnext, 2);
	ck_assert_int_eq(mine->generation, world_reload(&w,
	    inbox->id)->generation);
}
END_TEST

START_TEST(a_folder_that_is_gone_takes_nothing)
{
	struct folder_op op = { .kind = FOLDER_VANISH, .id = inbox->id };
	struct mail m = { .uid = 1 };

	must(store_folders_write(w.s, &w.fence, &op, 1,
	    &w.refused, &w.err), &w);
	world_add(&w, &m);
	ck_assert_int_eq(-1, world_try_commit(&w, inbox, 2));
	ck_assert_int_eq(w.err.kind, ERR_GONE);
	ck_assert_int_eq(rows_of("message"), 0);
}
END_TEST

START_TEST(a_big_batch_does_not_deadlock_the_pipeline)
{
	/* Far more than both socket buffers. */
	static char text[400000];
	struct mail m = { .text = text, .subject = "big" };
	size_t i;
	uint32_t uid;

	for (i = 0; i + 8 < sizeof(text); i += 8)
		snprintf(text + i, 9, "w%06zx ", i);
	for (uid = 1; uid <= 30; uid++) {
		m.uid = uid;
		world_add(&w, &m);
	}
	ck_assert_uint_gt(batch_bytes(w.batch), 4000000);
	world_commit(&w, inbox);
	ck_assert_uint_eq(w.result.created.n, 30);
}
END_TEST

#define ROUNDS 15
#define SHARED 60

/* Batches of the same bytes in both orders, as two accounts on one list. */
static int
deliver_shared(bool is_backwards)
{
	struct world here;
	struct folder *folder;
	int round, i, rc = 0;

	world_open(&here);
	folder = world_folder(&here, "INBOX");
	for (round = 0; rc == 0 && round < ROUNDS; round++) {
		for (i = 0; i < SHARED; i++) {
			struct mail m = { .uid = (uint32_t)(round * SHARED +
			    i + 1) };
			struct place place = mail_place(&m);
			struct blob_ref blob = { .segment = 8 };
			struct content c = { .snippet = "" };
			int n = is_backwards ? SHARED - i : i + 1;

			snprintf((char *)blob.digest, DIGEST_SIZE, "%d %d",
			    n * 7919 % 1000, round);
			batch_add(here.batch, &place, &blob, &c);
		}
		rc = world_try_commit(&here, folder,
		    folder->cursor.uidnext + SHARED);
	}
	world_close(&here);
	return rc;
}

/* L236 */
START_TEST(accounts_that_share_bytes_do_not_lock_each_other_out)
{
	int i, status;

	for (i = 0; i < 2; i++)
		if (fork() == 0)
			_exit(deliver_shared(i == 1) == 0 ? 0 : 1);
	for (i = 0; i < 2; i++) {
		ck_assert_int_ne(-1, wait(&status));
		ck_assert_int_eq(status, 0);
	}
	check_counters();
}
END_TEST

/* --- flags and expunge -------------------------------------------------------- */

START_TEST(only_real_changes_are_reported)
{
	struct mail m[] = { { .uid = 1 }, { .uid = 2 }, { .uid = 3 } };
	struct mail change[] = { { .uid = 1, .flags = FLAG_SEEN },
		{ .uid = 2 }, { .uid = 3, .keywords = "a b" },
		{ .uid = 9, .flags = FLAG_SEEN } };
	uint32_t gone[] = { 2, 77 };
	int64_t id = world_deliver(&w, inbox, &m[0]);

	world_deliver(&w, inbox, &m[1]);
	world_deliver(&w, inbox, &m[2]);
	world_apply(&w, inbox, change, 4, NULL, 0);
	ck_assert_uint_eq(w.result.updated.n, 2);
	ck_assert_int_eq(w.result.updated.ids[0], id);
	world_apply(&w, inbox, change, 4, gone, 2);
	ck_assert_uint_eq(w.result.updated.n, 0);
	ck_assert_uint_eq(w.result.deleted.n, 1);
	ck_assert_int_eq(inbox->stored, 2);
	world_apply(&w, inbox, NULL, 0, gone, 2);
	ck_assert_uint_eq(w.result.deleted.n, 0);
	check_counters();
}
END_TEST

START_TEST(a_change_of_ours_is_not_overwritten)
{
	struct mail m = { .uid = 1, .flags = FLAG_SEEN, .keywords = "a c" };
	struct mail told = { .uid = 1, .flags = FLAG_SEEN | FLAG_ANSWERED,
		.keywords = "a d" };
	const uint32_t gone[] = { 1 };
	int64_t id = world_deliver(&w, inbox, &m);

	world_text(&w, "INSERT INTO changes (account_id, message_id, kind, "
	    "flags_add, flags_remove, keywords_add, keywords_remove) "
	    "VALUES (%s, %lld, 'flags', 2, 1, '{b}', '{a}')",
	    world_account(&w), (long long)id);
	world_apply(&w, inbox, &told, 1, NULL, 0);
	ck_assert_str_eq("6|{b,d}", world_text(&w, "SELECT concat_ws('|', "
	    "flags, keywords) FROM message_state WHERE message_id = %lld",
	    (long long)id));
	/* Nor when it moves meanwhile. */
	world_apply(&w, inbox, NULL, 0, gone, 1);
	world_deliver(&w, world_folder(&w, "Archive"), &m);
	ck_assert_uint_eq(w.result.updated.n, 1);
	ck_assert_str_eq("2|{b,c}", world_text(&w, "SELECT concat_ws('|', "
	    "flags, keywords) FROM message_state WHERE message_id = %lld",
	    (long long)id));
}
END_TEST

START_TEST(places_and_known_uids_are_those_that_live)
{
	struct mail m = { .flags = FLAG_SEEN, .keywords = "k1 k2" };
	const uint32_t gone[] = { 4 };
	const uint32_t asked[] = { 1, 3, 4, 5, 99 };
	struct place *places;
	bool known[5];
	size_t n;

	for (m.uid = 1; m.uid <= 6; m.uid++)
		world_add(&w, &m);
	world_commit(&w, inbox);
	world_apply(&w, inbox, NULL, 0, gone, 1);
	must(store_places(w.s, inbox->id, 2, 5, 10, w.arena, &places, &n,
	    &w.err), &w);
	ck_assert_uint_eq(n, 3);
	ck_assert_uint_eq(places[1].uid, 3);
	ck_assert_uint_eq(places[1].flags.bits, FLAG_SEEN);
	ck_assert_str_eq(places[1].flags.keywords, "k1 k2");
	must(store_places(w.s, inbox->id, 1, UINT32_MAX, 2, w.arena, &places,
	    &n, &w.err), &w);
	ck_assert_uint_eq(n, 2);
	must(store_known_uids(w.s, inbox->id, asked, 5, known, &w.err), &w);
	ck_assert(known[0] && known[1] && !known[2] && known[3] && !known[4]);
}
END_TEST

/* --- identity (R-SYNC-5, R-SYNC-6) ------------------------------------------------ */

START_TEST(a_moved_message_keeps_its_id_and_thread)
{
	struct folder *archive = world_folder(&w, "Archive");
	struct mail m = { .uid = 5, .id = "m@x", .flags = FLAG_SEEN };
	struct mail other = { .uid = 6, .id = "o@x" };
	struct mail there = { .uid = 3, .id = "m@x", .flags = FLAG_FLAGGED };
	const uint32_t gone[] = { 5 };
	int64_t id, thread;
	bool is_lost;

	id = world_deliver(&w, inbox, &m);
	world_deliver(&w, inbox, &other);
	thread = world_thread(&w, id);
	world_apply(&w, inbox, NULL, 0, gone, 1);
	must(store_has_unplaced(w.s, &w.account_id, &is_lost, &w.err), &w);
	ck_assert(is_lost);
	ck_assert_int_eq(0, world_deliver(&w, archive, &there));
	ck_assert_uint_eq(w.result.updated.n, 1);
	ck_assert_int_eq(w.result.updated.ids[0], id);
	ck_assert_int_eq(id_at(archive, 3), id);
	ck_assert_int_eq(world_thread(&w, id), thread);
	ck_assert_str_eq("t|f", world_text(&w, "SELECT concat_ws('|', "
	    "flagged, seen) FROM messages WHERE id = %lld", (long long)id));
	must(store_has_unplaced(w.s, &w.account_id, &is_lost, &w.err), &w);
	ck_assert(!is_lost);
	ck_assert_int_eq(rows_of("message"), 2);
	check_counters();
}
END_TEST

/* L110: nothing is announced as new on the way back either. */
START_TEST(a_message_that_moved_and_came_back_is_the_same)
{
	struct folder *archive = world_folder(&w, "Archive");
	struct mail m = { .uid = 5, .id = "m@x" };
	struct mail there = { .uid = 3, .id = "m@x" };
	struct mail back = { .uid = 9, .id = "m@x" };
	const uint32_t gone[] = { 5 }, gone_there[] = { 3 };
	int64_t id = world_deliver(&w, inbox, &m);

	world_apply(&w, inbox, NULL, 0, gone, 1);
	ck_assert_int_eq(0, world_deliver(&w, archive, &there));
	ck_assert_uint_eq(w.result.created.n, 0);
	world_apply(&w, archive, NULL, 0, gone_there, 1);
	ck_assert_int_eq(0, world_deliver(&w, inbox, &back));
	ck_assert_uint_eq(w.result.created.n, 0);
	ck_assert_int_eq(id_at(inbox, 9), id);
	ck_assert_int_eq(rows_of("message"), 1);
	check_counters();
}
END_TEST

START_TEST(of_twins_that_moved_each_keeps_one_id)
{
	struct folder *archive = world_folder(&w, "Archive");
	struct mail m = { .bytes = "twins" };
	const uint32_t gone[] = { 1, 2 };
	int64_t a, b;

	for (m.uid = 1; m.uid <= 2; m.uid++)
		world_add(&w, &m);
	world_commit(&w, inbox);
	a = w.result.created.ids[0];
	b = w.result.created.ids[1];
	world_apply(&w, inbox, NULL, 0, gone, 2);
	for (m.uid = 11; m.uid <= 13; m.uid++)
		world_add(&w, &m);
	world_commit(&w, archive);
	ck_assert_uint_eq(w.result.updated.n, 2);
	ck_assert_uint_eq(w.result.created.n, 1);
	ck_assert_int_eq(id_at(archive, 11), a);
	ck_assert_int_eq(id_at(archive, 12), b);
	check_counters();
}
END_TEST

START_TEST(of_twins_the_one_lost_last_has_moved)
{
	struct folder *archive = world_folder(&w, "Archive");
	struct mail m = { .uid = 5, .id = "m@x" };
	struct mail twin = { .uid = 3, .id = "m@x" };
	struct mail moved = { .uid = 9, .id = "m@x" };
	const uint32_t gone[] = { 5 }, gone_there[] = { 3 };
	int64_t id;

	world_deliver(&w, inbox, &m);
	id = world_deliver(&w, archive, &twin);
	world_apply(&w, inbox, NULL, 0, gone, 1);
	world_apply(&w, archive, NULL, 0, gone_there, 1);
	ck_assert_int_eq(0, world_deliver(&w, inbox, &moved));
	ck_assert_int_eq(id_at(inbox, 9), id);
	check_counters();
}
END_TEST

START_TEST(an_expunge_of_long_ago_is_not_undone)
{
	struct folder *archive = world_folder(&w, "Archive");
	struct mail m = { .uid = 1, .bytes = "old" };
	const uint32_t gone[] = { 1 };
	int64_t id = world_deliver(&w, inbox, &m);

	world_apply(&w, inbox, NULL, 0, gone, 1);
	world_text(&w, "UPDATE message_state SET lost_at = now() - "
	    "interval '8 days', deleted_at = now() - interval '8 days' "
	    "WHERE message_id = %lld", (long long)id);
	ck_assert_int_ne(0, world_deliver(&w, archive, &m));
	ck_assert_int_ne(id, id_at(archive, 1));
	check_counters();
}
END_TEST

START_TEST(a_deleted_uid_that_shows_up_again_is_alive)
{
	struct mail m = { .uid = 1, .id = "1@x" };
	struct mail other = { .uid = 1, .bytes = "other", .id = "2@x" };
	const uint32_t gone[] = { 1 };
	int64_t id = world_deliver(&w, inbox, &m);

	world_apply(&w, inbox, NULL, 0, gone, 1);
	ck_assert_int_eq(0, world_deliver(&w, inbox, &m));
	ck_assert_uint_eq(w.result.updated.n, 1);
	ck_assert_int_eq(id_at(inbox, 1), id);
	check_counters();
	/* With other bytes it is another message. */
	world_apply(&w, inbox, NULL, 0, gone, 1);
	ck_assert_int_ne(0, world_deliver(&w, inbox, &other));
	ck_assert_int_ne(id_at(inbox, 1), id);
	check_counters();
}
END_TEST

START_TEST(uids_that_swapped_are_recognised_by_header)
{
	struct mail m[] = { { .uid = 1, .id = "1@x" },
		{ .uid = 2, .id = "2@x", .date = 1 },
		{ .uid = 3, .id = "3@x", .date = 2 } };
	struct mail now[] = { { .uid = 2, .id = "1@x" },
		{ .uid = 1, .id = "2@x", .date = 1 },
		{ .uid = 4, .id = "new@x" }, { .uid = 5 } };
	struct place places[4];
	bool recognised[4], has_more;
	int64_t ids[3];
	size_t i;

	for (i = 0; i < 3; i++)
		ids[i] = world_deliver(&w, inbox, &m[i]);
	world_remap(&w, inbox);
	ck_assert(world_reload(&w, inbox->id)->is_remapping);
	check_counters();
	for (i = 0; i < 4; i++)
		places[i] = mail_place(&now[i]);
	must(store_recognise(w.s, &w.fence, inbox, places, 4, recognised,
	    w.arena, &w.result, &w.err), &w);
	ck_assert(recognised[0] && recognised[1]);
	ck_assert(!recognised[2] && !recognised[3]);
	ck_assert_int_eq(id_at(inbox, 2), ids[0]);
	ck_assert_int_eq(id_at(inbox, 1), ids[1]);
	ck_assert_int_eq(inbox->stored, 2);
	/* Again, as after a crash: the same answer, nothing changes. */
	must(store_recognise(w.s, &w.fence, inbox, places, 4, recognised,
	    w.arena, &w.result, &w.err), &w);
	ck_assert(recognised[0] && recognised[1] && !recognised[2]);
	ck_assert_uint_eq(w.result.updated.n, 0);
	check_counters();
	must(store_folder_settle(w.s, &w.fence, inbox, w.arena, &w.result,
	    &has_more, &w.err), &w);
	ck_assert(!has_more);
	ck_assert_uint_eq(w.result.deleted.n, 1);
	ck_assert_int_eq(w.result.deleted.ids[0], ids[2]);
	ck_assert(!world_reload(&w, inbox->id)->is_remapping);
	check_counters();
}
END_TEST

START_TEST(uids_that_swapped_are_recognised_by_content)
{
	struct mail m[] = { { .uid = 1, .bytes = "a" },
		{ .uid = 2, .bytes = "b" } };
	struct mail now[] = { { .uid = 1, .bytes = "b" },
		{ .uid = 2, .bytes = "a" } };
	int64_t a = world_deliver(&w, inbox, &m[0]);
	int64_t b = world_deliver(&w, inbox, &m[1]);

	world_remap(&w, inbox);
	world_add(&w, &now[0]);
	world_add(&w, &now[1]);
	world_commit(&w, inbox);
	ck_assert_uint_eq(w.result.created.n, 0);
	ck_assert_uint_eq(w.result.updated.n, 2);
	ck_assert_int_eq(id_at(inbox, 1), b);
	ck_assert_int_eq(id_at(inbox, 2), a);
	check_counters();
}
END_TEST

/* Nothing is said of its messages yet: they are compared at the next look. */
START_TEST(a_renamed_folder_keeps_its_messages)
{
	struct mail m = { .uid = 4, .id = "1@x" };
	struct folder_op op = { .kind = FOLDER_RENAME, .id = inbox->id,
		.wire = "Neu", .path = "Neu" };
	int64_t id = world_deliver(&w, inbox, &m);
	struct folder *f;

	must(store_folders_write(w.s, &w.fence, &op, 1,
	    &w.refused, &w.err), &w);
	f = world_reload(&w, inbox->id);
	ck_assert_str_eq(f->wire, "Neu");
	ck_assert_str_eq(f->doubt, "renamed");
	ck_assert_int_eq(id_at(f, 4), id);
	must(store_folder_verified(w.s, &w.fence, f, true, &w.err), &w);
	ck_assert_str_eq(world_reload(&w, f->id)->doubt, "");
}
END_TEST

START_TEST(messages_of_a_missing_folder_are_found_elsewhere)
{
	struct folder *other = world_folder(&w, "Other");
	struct mail m[] = { { .uid = 1, .bytes = "a" },
		{ .uid = 2, .bytes = "b" } };
	struct mail there = { .uid = 9, .bytes = "a" };
	struct folder_op missing = { .kind = FOLDER_MISSING,
		.id = inbox->id };
	struct folder_op back = { .kind = FOLDER_UPDATE, .id = inbox->id,
		.delimiter = '/', .role = ROLE_INBOX, .is_selectable = true };
	struct folder_op vanish = { .kind = FOLDER_VANISH, .id = inbox->id };
	int64_t a, b;

	a = world_deliver(&w, inbox, &m[0]);
	b = world_deliver(&w, inbox, &m[1]);
	must(store_folders_write(w.s, &w.fence, &missing, 1,
	    &w.refused, &w.err), &w);
	ck_assert_int_ne(0, world_reload(&w, inbox->id)->missing_since_secs);
	ck_assert_int_eq(0, world_deliver(&w, other, &there));
	ck_assert_int_eq(id_at(other, 9), a);
	check_counters();
	/* It is back, and what did not turn up is where it was. */
	must(store_folders_write(w.s, &w.fence, &back, 1,
	    &w.refused, &w.err), &w);
	ck_assert_int_eq(0, world_reload(&w, inbox->id)->missing_since_secs);
	ck_assert_int_eq(id_at(inbox, 2), b);
	check_counters();
	must(store_folders_write(w.s, &w.fence, &vanish, 1,
	    &w.refused, &w.err), &w);
	ck_assert_ptr_null(world_reload(&w, inbox->id));
	world_empty(&w, inbox);
	ck_assert_int_eq(id_at(inbox, 2), 0);
	check_counters();
}
END_TEST

/* --- threads (R-MSG-3) --------------------------------------------------------------- */

/* All in one thread of its own. */
static void
check_one_thread(const int64_t *ids, size_t n)
{
	int64_t thread = world_thread(&w, ids[0]);
	size_t i;

	for (i = 1; i < n; i++)
		ck_assert_int_eq(world_thread(&w, ids[i]), thread);
	ck_assert_int_eq(world_int(&w, "SELECT messages FROM threads "
	    "WHERE id = %lld", (long long)thread), (int64_t)n);
	check_counters();
}

START_TEST(a_thread_in_any_order)
{
	static const int orders[6][3] = { { 0, 1, 2 }, { 0, 2, 1 },
		{ 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
	struct mail m[] = { { .uid = 1, .id = "1@x" },
		{ .uid = 2, .id = "2@x", .reply = "1@x" },
		{ .uid = 3, .id = "3@x", .reply = "2@x" } };
	int64_t ids[3];
	int i;

	for (i = 0; i < 3; i++)
		ids[i] = world_deliver(&w, inbox, &m[orders[_i][i]]);
	check_one_thread(ids, 3);
}
END_TEST

#define CHAIN 30

/* Every second message of a chain, in an order of its own. */
static int
deliver_half(struct folder *folder, int half)
{
	char id[32], reply[32];
	struct mail m = { .id = id, .reply = reply };
	int i, n, rc = 0;

	w.s = world_session(&w);
	for (i = 0; rc == 0 && i < CHAIN / 2; i++) {
		n = (i * 7 + 3 * half) % (CHAIN / 2) * 2 + half;
		m.uid = (uint32_t)i + 1;
		snprintf(id, sizeof(id), "%d@x", n);
		snprintf(reply, sizeof(reply), "%d@x", n - 1);
		world_add(&w, &m);
		rc = world_try_commit(&w, folder, m.uid + 1);
	}
	return rc;
}

/* L182 */
START_TEST(a_thread_that_comes_by_two_workers_at_once)
{
	struct folder *folders[2] = { inbox, world_folder(&w, "Sent") };
	int i, status;

	store_close(&w.s);
	for (i = 0; i < 2; i++)
		if (fork() == 0)
			_exit(deliver_half(folders[i], i) == 0 ? 0 : 1);
	for (i = 0; i < 2; i++) {
		ck_assert_int_ne(-1, wait(&status));
		ck_assert_int_eq(status, 0);
	}
	w.s = world_session(&w);
	ck_assert_int_eq(rows_of("message"), CHAIN);
	ck_assert_int_eq(rows_of("threads"), 1);
	check_counters();
}
END_TEST

START_TEST(a_late_message_merges_two_threads)
{
	struct mail m[] = { { .uid = 1, .id = "1@x" },
		{ .uid = 2, .id = "2@x" },
		{ .uid = 3, .id = "3@x", .refs = "2@x" },
		{ .uid = 4, .id = "4@x", .refs = "1@x 2@x" } };
	int64_t ids[4];
	int i;

	for (i = 0; i < 4; i++)
		ids[i] = world_deliver(&w, inbox, &m[i]);
	check_one_thread(ids, 4);
	ck_assert_int_eq(rows_of("threads"), 1);
	ck_assert_int_eq(1, world_int(&w, "SELECT count(DISTINCT thread_id) "
	    "FROM thread_ref WHERE account_id = %s", world_account(&w)));
}
END_TEST

START_TEST(one_batch_merges_a_chain_of_threads)
{
	struct mail old[] = { { .uid = 1, .id = "1@x" },
		{ .uid = 2, .id = "2@x" }, { .uid = 3, .id = "3@x" },
		{ .uid = 4, .id = "4@x" } };
	struct mail link[] = { { .uid = 5, .id = "5@x", .refs = "3@x 4@x" },
		{ .uid = 6, .id = "6@x", .refs = "1@x 2@x" },
		{ .uid = 7, .id = "7@x", .refs = "2@x 3@x" } };
	int64_t ids[7];
	int i;

	for (i = 0; i < 4; i++)
		ids[i] = world_deliver(&w, inbox, &old[i]);
	for (i = 0; i < 3; i++)
		world_add(&w, &link[i]);
	world_commit(&w, inbox);
	for (i = 0; i < 3; i++)
		ids[4 + i] = w.result.created.ids[i];
	check_one_thread(ids, 7);
	ck_assert_int_eq(rows_of("threads"), 1);
}
END_TEST

/* Separate components of a batch meet in threads that are there. */
START_TEST(components_of_a_batch_that_meet_only_in_the_table)
{
	struct mail old[] = {
		{ .uid = 1, .id = "1@x", .refs = "a@x" },
		{ .uid = 2, .id = "2@x", .refs = "b@x c@x" },
		{ .uid = 3, .id = "3@x", .refs = "d@x" } };
	struct mail link[] = { { .uid = 4, .id = "4@x", .refs = "a@x b@x" },
		{ .uid = 5, .id = "5@x", .refs = "c@x d@x" } };
	int64_t ids[5];
	int i;

	for (i = 0; i < 3; i++)
		ids[i] = world_deliver(&w, inbox, &old[i]);
	for (i = 0; i < 2; i++)
		world_add(&w, &link[i]);
	world_commit(&w, inbox);
	for (i = 0; i < 2; i++)
		ids[3 + i] = w.result.created.ids[i];
	check_one_thread(ids, 5);
}
END_TEST

START_TEST(of_thousands_of_references_the_first_and_last_count)
{
	struct buf refs = BUF_INIT;
	struct mail m = { .uid = 1, .id = "m@x" };
	struct mail first = { .uid = 2, .id = "ref-0@x" };
	struct mail last = { .uid = 3, .id = "ref-1999@x" };
	int64_t ids[3];
	int i;

	for (i = 0; i < 2000; i++)
		buf_addf(&refs, "%sref-%d@x", i > 0 ? " " : "", i);
	m.refs = buf_str(&refs);
	ids[0] = world_deliver(&w, inbox, &m);
	ids[1] = world_deliver(&w, inbox, &first);
	ids[2] = world_deliver(&w, inbox, &last);
	check_one_thread(ids, 3);
	ck_assert_int_eq(rows_of("thread_ref"), 101);
	buf_release(&refs);
}
END_TEST

/* L179 */
START_TEST(self_references_and_loops_are_harmless)
{
	struct mail m[] = { { .uid = 1, .id = "1@x", .refs = "1@x 2@x 1@x",
		.reply = "1@x" }, { .uid = 2, .id = "2@x", .refs = "1@x",
		.reply = "2@x" } };
	int64_t ids[2];

	ids[0] = world_deliver(&w, inbox, &m[0]);
	ids[1] = world_deliver(&w, inbox, &m[1]);
	check_one_thread(ids, 2);
}
END_TEST

/* L175, L176 */
START_TEST(message_ids_shared_and_missing)
{
	struct mail m[] = { { .uid = 1, .id = "same@x", .bytes = "a" },
		{ .uid = 2, .id = "same@x", .bytes = "b" },
		{ .uid = 3 }, { .uid = 4 } };
	int64_t ids[4];
	int i;

	for (i = 0; i < 4; i++)
		ids[i] = world_deliver(&w, inbox, &m[i]);
	ck_assert_int_eq(rows_of("message"), 4);
	ck_assert_int_ne(world_thread(&w, ids[2]), world_thread(&w, ids[3]));
	check_one_thread(ids, 2);
}
END_TEST

START_TEST(a_reply_without_references_joins_by_subject)
{
	struct mail m[] = {
		{ .uid = 1, .id = "1@x", .subject = "Plan", .date = 1 },
		{ .uid = 2, .id = "2@x", .subject = "plan", .is_reply = true,
		    .date = 3 },
		{ .uid = 3, .id = "3@x", .subject = "Plan", .date = 4 },
		{ .uid = 4, .id = "4@x", .subject = "Plan", .is_reply = true,
		    .date = 5, .from = "stranger@example.com" },
		{ .uid = 5, .id = "5@x", .subject = "Plan", .is_reply = true,
		    .date = 90 } };
	int64_t ids[5];
	int i;

	/* 0: as they came; 1: the newest first; 2, 3: in one batch. */
	for (i = 0; i < 5; i++) {
		int k = _i % 2 == 0 ? i : 4 - i;

		if (_i < 2)
			ids[k] = world_deliver(&w, inbox, &m[k]);
		else
			world_add(&w, &m[k]);
	}
	if (_i >= 2) {
		world_commit(&w, inbox);
		for (i = 0; i < 5; i++)
			ids[i] = id_at(inbox, (uint32_t)i + 1);
	}
	check_counters();
	/* One of the two first messages has the reply, never both. */
	ck_assert_int_ne(world_thread(&w, ids[0]), world_thread(&w, ids[2]));
	ck_assert_int_eq(world_thread(&w, ids[1]), world_thread(&w, ids[0]));
	/* Another person, and much later: alone. */
	for (i = 0; i < 3; i++) {
		ck_assert_int_ne(world_thread(&w, ids[3]),
		    world_thread(&w, ids[i]));
		ck_assert_int_ne(world_thread(&w, ids[4]),
		    world_thread(&w, ids[i]));
	}
}
END_TEST

/*
 * F-A1, F-B15: auto-replies to a newsletter that went out under an alias.  What
 * they have in common is the alias and the subject: strangers stay strangers,
 * and what one of them costs does not grow with their number.
 */
START_TEST(strangers_who_reply_to_an_alias_stay_strangers)
{
	struct mail first = { .uid = 1, .id = "0@x", .subject = "News",
		.from = "news@example.org", .to = "news@example.org" };
	struct mail m = { .subject = "news", .is_reply = true,
		.to = "news@example.org" };
	int64_t start, msecs, least = INT64_MAX, last = 0;
	int64_t ids[2];
	int n = 0, batch, i;

	ids[0] = world_deliver(&w, inbox, &first);
	for (batch = 0; batch < 10; batch++) {
		for (i = 0; i < 200; i++, n++) {
			m.uid = (uint32_t)n + 2;
			m.id = arena_printf(w.arena, "r%d@x", n);
			m.from = arena_printf(w.arena, "s%d@example.net", n);
			world_add(&w, &m);
		}
		start = clock_mono_msecs();
		world_commit(&w, inbox);
		msecs = clock_mono_msecs() - start;
		least = msecs < least ? msecs : least;
		last = msecs;
	}
	ck_assert_int_eq(rows_of("threads"), 2001);
	ck_assert_int_lt(last, least * 8 + 400);
	/* One of them again, soon, and one of two who were both there. */
	m.uid = 5000;
	m.id = "again@x";
	m.from = "s1999@example.net";
	ids[1] = world_deliver(&w, inbox, &m);
	ck_assert_int_eq(rows_of("threads"), 2001);
	ck_assert_int_eq(world_thread(&w, ids[1]), world_thread(&w,
	    id_at(inbox, 2001)));
	ck_assert_int_ne(world_thread(&w, ids[0]), world_thread(&w, ids[1]));
	check_counters();
}
END_TEST

/* F-B15: under which addresses we write ourselves is learnt from Sent. */
START_TEST(an_address_that_sent_mail_comes_from_is_our_own)
{
	struct folder *sent = world_folder(&w, "Sent");
	struct mail ours = { .uid = 1, .id = "1@x", .subject = "News",
		.from = "News@example.org", .to = "news@example.org" };
	struct mail mine = { .uid = 2, .id = "2@x", .subject = "Plan",
		.from = "news@example.org", .to = "bob@example.net" };
	struct mail m[] = { { .uid = 1, .id = "3@x", .subject = "News",
		.is_reply = true, .from = "a@example.com",
		.to = "news@example.org" },
		{ .uid = 2, .id = "4@x", .subject = "News", .is_reply = true,
		.from = "news@example.org", .to = "b@example.com" },
		{ .uid = 3, .id = "5@x", .subject = "Plan", .is_reply = true,
		.from = "bob@example.net", .to = "news@example.org" },
		{ .uid = 4, .id = "6@x", .subject = "Plan", .is_reply = true,
		.from = "news@example.org", .to = "bob@example.net",
		.date = 1 } };
	int64_t first, plan, ids[4];
	int i;

	world_text(&w, "UPDATE mailbox SET role = 'sent' WHERE id = %lld",
	    (long long)sent->id);
	first = world_deliver(&w, sent, &ours);
	plan = world_deliver(&w, sent, &mine);
	ck_assert_int_eq(1, world_int(&w, "SELECT cardinality(aliases) "
	    "FROM accounts WHERE id = %s", world_account(&w)));
	for (i = 0; i < 4; i++)
		ids[i] = world_deliver(&w, inbox, &m[i]);
	ck_assert_int_ne(world_thread(&w, ids[0]), world_thread(&w, first));
	ck_assert_int_ne(world_thread(&w, ids[1]), world_thread(&w, ids[0]));
	/* To whom it was sent may answer, and we may write once more. */
	ck_assert_int_eq(world_thread(&w, ids[2]), world_thread(&w, plan));
	ck_assert_int_eq(world_thread(&w, ids[3]), world_thread(&w, plan));
	check_counters();
}
END_TEST

static const char *
last_day(int64_t message)
{
	return world_text(&w, "SELECT (extract(epoch FROM last_at) - "
	    "1750000000)::bigint / 86400 || ' ' || messages FROM threads "
	    "WHERE id = %lld", (long long)world_thread(&w, message));
}

/* F-B14: what is deleted does not count, whoever deleted it. */
START_TEST(a_thread_row_is_right_after_every_write)
{
	struct mail m[] = { { .uid = 1, .id = "1@x", .date = 1 },
		{ .uid = 2, .id = "2@x", .refs = "1@x", .date = 2 },
		{ .uid = 3, .id = "3@x", .refs = "1@x", .date = 3 },
		{ .uid = 4, .id = "4@x", .date = 9 } };
	struct mail link = { .uid = 5, .id = "5@x", .refs = "1@x 4@x",
		.date = 4 };
	struct folder_op op = { .kind = FOLDER_VANISH };
	struct folder *other = world_folder(&w, "Other");
	const uint32_t gone[] = { 3, 2, 4, 1 };
	int64_t ids[4], thread;
	int i;

	for (i = 0; i < 4; i++)
		ids[i] = world_deliver(&w, inbox, &m[i]);
	thread = world_thread(&w, ids[0]);
	ck_assert_str_eq(last_day(ids[0]), "3 3");
	world_apply(&w, inbox, NULL, 0, gone, 1);
	ck_assert_str_eq(last_day(ids[0]), "2 2");
	ck_assert_uint_eq(w.result.threads.n, 1);
	ck_assert_int_eq(w.result.threads.ids[0], thread);
	/* Back again, under the same UID, then elsewhere. */
	world_deliver(&w, inbox, &m[2]);
	ck_assert_str_eq(last_day(ids[0]), "3 3");
	ck_assert_int_eq(w.result.threads.ids[0], thread);
	world_apply(&w, inbox, NULL, 0, gone, 1);
	world_deliver(&w, other, &m[2]);
	ck_assert_str_eq(last_day(ids[0]), "3 3");
	op.id = other->id;
	must(store_folders_write(w.s, &w.fence, &op, 1,
	    &w.refused, &w.err), &w);
	world_empty(&w, other);
	ck_assert_str_eq(last_day(ids[0]), "2 2");
	/* All gone, then one is back. */
	world_apply(&w, inbox, NULL, 0, gone, 2);
	world_apply(&w, inbox, NULL, 0, gone + 3, 1);
	world_deliver(&w, inbox, &m[0]);
	ck_assert_str_eq(last_day(ids[0]), "1 1");
	/* A thread whose only message is deleted brings no date along; both
	 * are told, and the larger one keeps its id. */
	world_apply(&w, inbox, NULL, 0, gone + 2, 1);
	world_deliver(&w, inbox, &link);
	ck_assert_str_eq(last_day(ids[0]), "4 2");
	ck_assert_int_eq(world_thread(&w, ids[0]), thread);
	ck_assert_int_eq(world_thread(&w, ids[3]), thread);
	ck_assert_uint_eq(w.result.threads.n, 2);
	check_counters();
}
END_TEST

/* F-A1: of two threads the larger one stays where it is. */
START_TEST(a_merge_moves_the_smaller_thread)
{
	struct mail m = { .uid = 1, .id = "old@x" };
	struct mail link = { .uid = 100, .id = "link@x",
		.refs = "old@x big@x" };
	int64_t old = world_deliver(&w, inbox, &m), big, i;

	m = (struct mail){ .id = "big@x" };
	for (i = 2; i < 12; i++) {
		m.uid = (uint32_t)i;
		m.refs = "big@x";
		m.id = arena_printf(w.arena, "b%d@x", (int)i);
		world_add(&w, &m);
	}
	world_commit(&w, inbox);
	big = world_thread(&w, id_at(inbox, 2));
	ck_assert_int_gt(big, world_thread(&w, old));
	world_deliver(&w, inbox, &link);
	ck_assert_int_eq(world_thread(&w, old), big);
	check_counters();
}
END_TEST

START_TEST(threads_do_not_cross_accounts)
{
	struct mail m = { .uid = 1, .id = "1@x", .subject = "S" };
	struct mail r = { .uid = 2, .id = "2@x", .refs = "1@x" };
	int64_t first = world_deliver(&w, inbox, &m), second;
	int64_t thread = world_thread(&w, first);
	struct world here = w;

	world_open(&w);
	inbox = world_folder(&w, "INBOX");
	second = world_deliver(&w, inbox, &r);
	ck_assert_int_ne(thread, world_thread(&w, second));
	world_close(&w);
	w = here;
}
END_TEST

/* --- removal ---------------------------------------------------------------------------- */

START_TEST(purge_removes_what_was_expunged_long_ago)
{
	struct mail m[] = { { .uid = 1, .bytes = "twins", .id = "1@x" },
		{ .uid = 2, .bytes = "twins", .id = "2@x" },
		{ .uid = 3, .id = "3@x", .subject = "S" } };
	const uint32_t gone[] = { 1, 3 };
	const char *twins, *dead;
	int64_t keep;
	bool more;
	int i;

	for (i = 0; i < 3; i++)
		world_add(&w, &m[i]);
	world_commit(&w, inbox);
	keep = id_at(inbox, 2);
	twins = world_text(&w, "SELECT blob FROM messages WHERE id = %lld",
	    (long long)keep);
	dead = "SELECT coalesce(sum(dead), 0) FROM segment WHERE id = 7";
	ck_assert_int_eq(world_int(&w, "%s", dead), 0);
	world_apply(&w, inbox, NULL, 0, gone, 2);
	world_text(&w, "UPDATE message_state SET deleted_at = now() - "
	    "interval '31 days', lost_at = now() - interval '31 days' "
	    "WHERE account_id = %s AND deleted_at IS NOT NULL",
	    world_account(&w));
	do
		must(store_purge(w.s, 1, 30, &more, &w.err), &w);
	while (more);
	ck_assert_int_eq(rows_of("message"), 1);
	ck_assert_int_eq(rows_of("message_state"), 1);
	ck_assert_int_eq(rows_of("message_fts"), 1);
	ck_assert_int_eq(rows_of("threads"), 1);
	ck_assert_int_eq(rows_of("thread_ref"), 1);
	ck_assert_int_eq(1, world_int(&w, "SELECT refs FROM blob "
	    "WHERE digest = '%s'", twins));
	ck_assert_int_eq(world_int(&w, "%s", dead), 100);
	check_counters();
}
END_TEST

START_TEST(purge_removes_a_deleted_account)
{
	struct mail m = { 0 };
	struct err err = ERR_INIT;
	struct account *account;
	bool more;

	for (m.uid = 1; m.uid <= 25; m.uid++)
		world_add(&w, &m);
	world_commit(&w, inbox);
	must(store_account_set_state(w.s, &w.account_id, 0, ACCOUNT_DELETED,
	    "", NULL, &w.err), &w);
	do
		must(store_purge(w.s, 10, 30, &more, &w.err), &w);
	while (more);
	ck_assert_int_eq(rows_of("message"), 0);
	ck_assert_int_eq(rows_of("message_fts"), 0);
	ck_assert_int_eq(rows_of("thread_ref"), 0);
	ck_assert_int_eq(rows_of("threads"), 0);
	ck_assert_int_eq(rows_of("mailbox"), 0);
	ck_assert_int_eq(rows_of("jobs"), 0);
	ck_assert_int_eq(-1, store_account_load(w.s, &w.account_id, w.arena,
	    &account, &err));
	ck_assert_int_eq(err.kind, ERR_GONE);
}
END_TEST

static Suite *
make_suite(void)
{
	Suite *suite = suite_create("store mail");
	TCase *t = tcase_create("mail");

	tcase_add_checked_fixture(t, open_world, close_world);
	tcase_set_timeout(t, 300);
	tcase_add_test(t, a_message_is_a_row_with_all_it_said);
	tcase_add_test(t, search_finds_subject_people_files_and_text);
	tcase_add_test(t, the_index_finds_what_a_look_at_every_text_finds);
	tcase_add_test(t, a_long_tail_is_merged_and_a_short_one_is_not);
	tcase_add_test(t, ingest_twice_changes_nothing);
	tcase_add_test(t, a_batch_half_known_adds_the_other_half);
	tcase_add_test(t, same_bytes_twice_are_two_rows_and_one_blob);
	tcase_add_test(t, a_message_without_blob_is_a_row);
	tcase_add_test(t, strange_text_is_kept_as_it_is);
	tcase_add_test(t, bad_text_costs_its_letters_not_the_batch);
	tcase_add_test(t, a_message_id_of_15000_letters_is_no_problem);
	tcase_add_test(t, dates_without_sense_are_bent);
	tcase_add_test(t, an_old_plan_writes_nothing);
	tcase_add_test(t, a_folder_that_is_gone_takes_nothing);
	tcase_add_test(t, a_big_batch_does_not_deadlock_the_pipeline);
	tcase_add_test(t,
	    accounts_that_share_bytes_do_not_lock_each_other_out);
	tcase_add_test(t, only_real_changes_are_reported);
	tcase_add_test(t, a_change_of_ours_is_not_overwritten);
	tcase_add_test(t, places_and_known_uids_are_those_that_live);
	tcase_add_test(t, a_moved_message_keeps_its_id_and_thread);
	tcase_add_test(t, a_message_that_moved_and_came_back_is_the_same);
	tcase_add_test(t, of_twins_that_moved_each_keeps_one_id);
	tcase_add_test(t, of_twins_the_one_lost_last_has_moved);
	tcase_add_test(t, an_expunge_of_long_ago_is_not_undone);
	tcase_add_test(t, a_deleted_uid_that_shows_up_again_is_alive);
	tcase_add_test(t, uids_that_swapped_are_recognised_by_header);
	tcase_add_test(t, uids_that_swapped_are_recognised_by_content);
	tcase_add_test(t, a_renamed_folder_keeps_its_messages);
	tcase_add_test(t, messages_of_a_missing_folder_are_found_elsewhere);
	tcase_add_loop_test(t, a_thread_in_any_order, 0, 6);
	tcase_add_test(t, a_thread_that_comes_by_two_workers_at_once);
	tcase_add_test(t, a_late_message_merges_two_threads);
	tcase_add_test(t, one_batch_merges_a_chain_of_threads);
	tcase_add_test(t, components_of_a_batch_that_meet_only_in_the_table);
	tcase_add_test(t, of_thousands_of_references_the_first_and_last_count);
	tcase_add_test(t, self_references_and_loops_are_harmless);
	tcase_add_test(t, message_ids_shared_and_missing);
	tcase_add_loop_test(t, a_reply_without_references_joins_by_subject, 0,
	    4);
	tcase_add_test(t, strangers_who_reply_to_an_alias_stay_strangers);
	tcase_add_test(t, an_address_that_sent_mail_comes_from_is_our_own);
	tcase_add_test(t, a_thread_row_is_right_after_every_write);
	tcase_add_test(t, a_merge_moves_the_smaller_thread);
	tcase_add_test(t, threads_do_not_cross_accounts);
	tcase_add_test(t, purge_removes_what_was_expunged_long_ago);
	tcase_add_test(t, purge_removes_a_deleted_account);
	suite_add_tcase(suite, t);
	return suite;
}

int
main(void)
{
	return world_run(make_suite());
}
