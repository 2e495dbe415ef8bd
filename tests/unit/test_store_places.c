/*
 * test_store_places.c - messages that move, in either order of seeing it, and
 * folders as a whole.
 *
 * Under tests/with-postgres.
 */
#include "store_world.h"

#include "base/clock.h"

static struct world w;
static struct folder *inbox, *archive, *junk;

/* Live: what comes now may have moved. */
static void
open_world(void)
{
	world_open(&w);
	inbox = world_folder(&w, "INBOX");
	archive = world_folder(&w, "Archive");
	junk = world_folder(&w, "Junk");
	world_text(&w, "UPDATE accounts SET bootstrapped_at = now() "
	    "WHERE id = %s", world_account(&w));
}

static void
close_world(void)
{
	world_close(&w);
}

static int64_t
id_at(struct folder *f, uint32_t uid)
{
	return world_int(&w, "SELECT coalesce((SELECT id FROM messages "
	    "WHERE mailbox_id = %lld AND uid = %u AND deleted_at IS NULL), 0)",
	    (long long)f->id, uid);
}

static int64_t
arrive(struct folder *f, uint32_t uid, const char *id)
{
	struct mail m = { .uid = uid, .id = id, .bytes = id };

	world_deliver(&w, f, &m);
	return id_at(f, uid);
}

static void
vanish(struct folder *f, uint32_t uid)
{
	world_apply(&w, f, NULL, 0, &uid, 1);
}

static void
check_counters(void)
{
	ck_assert_int_eq(0, world_int(&w, "SELECT count(*) FROM mailbox b "
	    "WHERE account_id = %s AND deleted_at IS NULL "
	    "AND messages <> (SELECT count(*) "
	    "FROM message_state s WHERE s.mailbox_id = b.id "
	    "AND uid IS NOT NULL AND s.deleted_at IS NULL)",
	    world_account(&w)));
	ck_assert_int_eq(0, world_int(&w, "SELECT count(*) FROM threads t "
	    "WHERE account_id = %s AND messages <> (SELECT count(*) "
	    "FROM messages m WHERE m.thread_id = t.id "
	    "AND m.deleted_at IS NULL)", world_account(&w)));
	ck_assert_int_eq(0, world_int(&w, "SELECT count(*) FROM blob b "
	    "WHERE refs <> (SELECT count(*) FROM message m "
	    "WHERE m.blob_id = b.id)"));
}

/* --- moves (R-SYNC-5, F-B4) ---------------------------------------------------- */

START_TEST(a_move_seen_from_its_end_keeps_the_id)
{
	int64_t id = arrive(archive, 5, "m@x"), there;

	there = arrive(inbox, 9, "m@x");
	ck_assert_int_ne(there, id);
	check_counters();
	vanish(archive, 5);
	ck_assert_int_eq(id_at(inbox, 9), id);
	ck_assert_int_eq(id_at(archive, 5), 0);
	ck_assert_uint_eq(w.result.updated.n, 1);
	ck_assert_int_eq(w.result.updated.ids[0], id);
	ck_assert_uint_eq(w.result.deleted.n, 1);
	ck_assert_int_eq(w.result.deleted.ids[0], there);
	check_counters();
	/* And on: the row made for a moment is never taken for a message. */
	vanish(inbox, 9);
	ck_assert_int_eq(arrive(junk, 2, "m@x"), id);
	check_counters();
}
END_TEST

START_TEST(a_move_and_back_again_seen_from_their_ends)
{
	int64_t id = arrive(inbox, 1, "m@x");

	arrive(archive, 1, "m@x");
	vanish(inbox, 1);
	ck_assert_int_eq(id_at(archive, 1), id);
	arrive(inbox, 2, "m@x");
	vanish(archive, 1);
	ck_assert_int_eq(id_at(inbox, 2), id);
	arrive(junk, 1, "m@x");
	arrive(inbox, 3, "m@x");
	vanish(inbox, 2);
	check_counters();
}
END_TEST

/* A copy may have another date than what it was made of, and is known by it
 * when UIDs are void. */
START_TEST(a_message_has_the_date_of_its_place)
{
	struct mail m = { .uid = 5, .id = "m@x", .bytes = "m@x", .date = 3 };
	int64_t id;

	world_deliver(&w, archive, &m);
	id = id_at(archive, 5);
	m.uid = 9;
	m.date = 7;
	world_deliver(&w, inbox, &m);
	vanish(archive, 5);
	ck_assert_int_eq(id_at(inbox, 9), id);
	ck_assert_int_eq(1750000000 + 7 * 86400, world_int(&w, "SELECT "
	    "extract(epoch FROM internal_date)::bigint FROM messages "
	    "WHERE id = %lld", (long long)id));
	ck_assert_int_eq(1, world_int(&w, "SELECT count(*) FROM threads t "
	    "JOIN messages m ON m.thread_id = t.id WHERE m.id = %lld "
	    "AND t.last_at = m.internal_date", (long long)id));
	/* One that had been deleted comes back with a third date. */
	vanish(inbox, 9);
	m.uid = 2;
	m.date = 9;
	world_deliver(&w, junk, &m);
	ck_assert_int_eq(id_at(junk, 2), id);
	ck_assert_int_eq(1, world_int(&w, "SELECT count(*) FROM threads t "
	    "JOIN messages m ON m.thread_id = t.id WHERE m.id = %lld "
	    "AND t.last_at = m.internal_date", (long long)id));
	check_counters();
}
END_TEST

START_TEST(a_copy_stays_a_copy)
{
	int64_t id = arrive(archive, 5, "m@x"), copy = arrive(inbox, 9, "m@x");

	/* The copy goes: the message is where it was. */
	vanish(inbox, 9);
	ck_assert_int_eq(id_at(archive, 5), id);
	ck_assert_uint_eq(w.result.updated.n, 0);
	ck_assert_uint_eq(w.result.deleted.n, 1);
	ck_assert_int_eq(w.result.deleted.ids[0], copy);
	/* A copy made long ago is a message of its own. */
	copy = arrive(junk, 7, "m@x");
	world_text(&w, "UPDATE message_state SET twin_since = "
	    "now() - interval '2 days' WHERE message_id = %lld",
	    (long long)copy);
	vanish(archive, 5);
	ck_assert_int_eq(w.result.deleted.ids[0], id);
	ck_assert_int_eq(id_at(junk, 7), copy);
	check_counters();
}
END_TEST

/* One of two copies has been deleted, the other one moves: seen from its end,
 * the deleted one seems to come back. */
START_TEST(a_deleted_copy_does_not_become_the_message_that_moves)
{
	int64_t a = arrive(inbox, 1, "m@x"), b = arrive(archive, 1, "m@x");

	world_text(&w, "UPDATE message_state SET twin_since = NULL "
	    "WHERE account_id = %s", world_account(&w));
	vanish(inbox, 1);
	arrive(junk, 4, "m@x");
	vanish(archive, 1);
	ck_assert_int_eq(id_at(junk, 4), b);
	check_counters();
	/* The same with the younger one deleted. */
	a = arrive(archive, 2, "m@x");
	world_text(&w, "UPDATE message_state SET twin_since = NULL "
	    "WHERE account_id = %s", world_account(&w));
	vanish(archive, 2);
	arrive(inbox, 3, "m@x");
	vanish(junk, 4);
	ck_assert_int_eq(id_at(inbox, 3), b);
	ck_assert_int_ne(a, b);
	check_counters();
}
END_TEST

START_TEST(the_same_bytes_delivered_twice_are_two_messages)
{
	int64_t a = arrive(inbox, 1, "m@x"), b = arrive(inbox, 2, "m@x");

	vanish(inbox, 1);
	ck_assert_int_eq(id_at(inbox, 2), b);
	ck_assert_int_eq(w.result.deleted.ids[0], a);
	check_counters();
}
END_TEST

START_TEST(of_twins_that_moved_seen_from_their_ends_each_keeps_an_id)
{
	int64_t a = arrive(inbox, 1, "m@x"), b = arrive(inbox, 2, "m@x");
	const uint32_t gone[] = { 1, 2 };

	arrive(archive, 1, "m@x");
	arrive(archive, 2, "m@x");
	world_apply(&w, inbox, NULL, 0, gone, 2);
	ck_assert_int_eq(a + b, id_at(archive, 1) + id_at(archive, 2));
	ck_assert(id_at(archive, 1) == a || id_at(archive, 1) == b);
	check_counters();
}
END_TEST

START_TEST(the_first_download_of_two_folders_meets_copies_only)
{
	int64_t id, copy;

	world_text(&w, "UPDATE accounts SET bootstrapped_at = NULL "
	    "WHERE id = %s", world_account(&w));
	id = arrive(archive, 5, "m@x");
	copy = arrive(inbox, 9, "m@x");
	vanish(archive, 5);
	ck_assert_int_eq(w.result.deleted.ids[0], id);
	ck_assert_int_eq(id_at(inbox, 9), copy);
	check_counters();
}
END_TEST

START_TEST(what_was_changed_of_the_new_row_goes_along)
{
	int64_t id = arrive(archive, 5, "m@x"), there;

	there = arrive(inbox, 9, "m@x");
	world_text(&w, "INSERT INTO changes (account_id, message_id, kind, "
	    "flags_add) VALUES (%s, %lld, 'flags', 2)", world_account(&w),
	    (long long)there);
	world_text(&w, "INSERT INTO drafts (account_id, message_id) "
	    "VALUES (%s, %lld)", world_account(&w), (long long)there);
	vanish(archive, 5);
	ck_assert_int_eq(id, world_int(&w, "SELECT c.message_id "
	    "FROM changes c JOIN drafts d USING (message_id) "
	    "WHERE c.account_id = %s", world_account(&w)));
	ck_assert_str_eq("t", world_text(&w, "SELECT flagged FROM messages "
	    "WHERE id = %lld", (long long)id));
}
END_TEST

/* Larger than max_message_mb: there are no bytes to tell it by. */
START_TEST(a_message_without_bytes_moves_too)
{
	struct content c = { .message_id = "big@x", .snippet = "" };
	struct mail m = { .uid = 1, .id = "big@x" };
	struct place place = mail_place(&m);
	int64_t id;

	batch_add(w.batch, &place, NULL, &c);
	world_commit(&w, inbox);
	id = id_at(inbox, 1);
	ck_assert_int_ne(id, 0);
	vanish(inbox, 1);
	place.uid = 4;
	batch_add(w.batch, &place, NULL, &c);
	world_commit(&w, archive);
	ck_assert_int_eq(id_at(archive, 4), id);
	check_counters();
}
END_TEST

/* --- folders in slices (F-E8) ----------------------------------------------------- */

/* More than a slice of them, with rows for PostgreSQL alone. */
static void
fill(struct folder *f, int n)
{
	world_text(&w, "WITH t AS (INSERT INTO threads (id, account_id, "
	    "messages, first_at, last_at, authors, people, subject) SELECT "
	    "nextval('thread_id'), %s, 1, now(), now(), '{}', '{}', '' FROM "
	    "generate_series(1, "
	    "%d) RETURNING id), m AS (INSERT INTO message (id, thread_id, "
	    "size, internal_date, sent_at, account_id, parse_state, "
	    "has_attachments, snippet, parse_reason, recipients) "
	    "SELECT nextval('message_id'), id, 100, now(), now(), %s, 0, "
	    "false, '', '', '{}' FROM t RETURNING id), s AS (INSERT INTO "
	    "message_state (message_id, mailbox_id, uid, flags, account_id, "
	    "keywords) SELECT id, %lld, row_number() OVER (ORDER BY id), 0, "
	    "%s, '{}' FROM m RETURNING 1) UPDATE mailbox SET messages = %d, "
	    "uidvalidity = 7, uidnext = %d WHERE id = %lld",
	    world_account(&w), n, world_account(&w), (long long)f->id,
	    world_account(&w), n, n + 1, (long long)f->id);
}

START_TEST(a_change_of_uidvalidity_goes_on_where_it_was_interrupted)
{
	struct folder *f;
	bool has_more;
	int slices = 0;

	fill(inbox, 9000);
	f = world_reload(&w, inbox->id);
	must(store_folder_remap(w.s, &w.fence, f, &w.err), &w);
	must(store_folder_void(w.s, &w.fence, f, &has_more, &w.err), &w);
	ck_assert(has_more);
	/* Killed; the next one is told that it is not done. */
	f = world_reload(&w, inbox->id);
	ck_assert_uint_eq(f->cursor.uidvalidity, 0);
	ck_assert(f->is_remapping);
	for (; has_more; slices++)
		must(store_folder_void(w.s, &w.fence, f, &has_more,
		    &w.err), &w);
	ck_assert_int_eq(slices, 5);
	ck_assert_int_eq(9000, world_int(&w, "SELECT count(*) FROM "
	    "message_state WHERE mailbox_id = %lld AND uid IS NULL "
	    "AND lost_at IS NOT NULL AND deleted_at IS NULL",
	    (long long)f->id));
	for (slices = 0, has_more = true; has_more; slices++)
		must(store_folder_settle(w.s, &w.fence, f, w.arena, &w.result,
		    &has_more, &w.err), &w);
	ck_assert_int_eq(slices, 10);
	ck_assert(!world_reload(&w, inbox->id)->is_remapping);
	check_counters();
}
END_TEST

START_TEST(a_deleted_folder_is_emptied_by_the_clerk_if_need_be)
{
	struct folder_op op = { .kind = FOLDER_VANISH, .id = archive->id };
	int64_t id = arrive(archive, 20000, "m@x"), n = 0;
	bool has_more;

	fill(archive, 9000);
	arrive(inbox, 1, "m@x");
	must(store_folders_write(w.s, &w.fence, &op, 1, &w.refused, &w.err),
	    &w);
	must(store_folder_empty(w.s, &w.fence, archive->id, w.arena,
	    &w.result, &has_more, &w.err), &w);
	ck_assert(has_more);
	ck_assert_uint_eq(w.result.deleted.n, 1000);
	/* Not at once: its own child is likely to be at it. */
	must(store_purge(w.s, 1000, 30, &has_more, &w.err), &w);
	ck_assert_int_eq(8001, world_int(&w, "SELECT count(*) FROM "
	    "message_state WHERE mailbox_id = %lld AND deleted_at IS NULL",
	    (long long)archive->id));
	world_text(&w, "UPDATE mailbox SET deleted_at = deleted_at - "
	    "interval '2 minutes' WHERE id = %lld", (long long)archive->id);
	for (has_more = true; has_more && n < 20; n++)
		must(store_purge(w.s, 1000, 30, &has_more, &w.err), &w);
	ck_assert_int_eq(0, world_int(&w, "SELECT count(*) FROM "
	    "message_state WHERE mailbox_id = %lld AND deleted_at IS NULL",
	    (long long)archive->id));
	/* What had moved out of it is still the same. */
	ck_assert_int_eq(id_at(inbox, 1), id);
	check_counters();
}
END_TEST

START_TEST(a_missing_folder_writes_no_row_of_its_messages)
{
	struct folder_op missing = { .kind = FOLDER_MISSING,
		.id = archive->id };
	struct folder_op back = { .kind = FOLDER_UPDATE, .id = archive->id,
		.delimiter = '/', .is_selectable = true };
	const char *before;

	fill(archive, 100);
	before = world_text(&w, "SELECT string_agg(ctid::text, ',' ORDER BY "
	    "uid) FROM message_state WHERE mailbox_id = %lld",
	    (long long)archive->id);
	must(store_folders_write(w.s, &w.fence, &missing, 1, &w.refused,
	    &w.err), &w);
	must(store_folders_write(w.s, &w.fence, &back, 1, &w.refused,
	    &w.err), &w);
	ck_assert_str_eq(before, world_text(&w, "SELECT string_agg("
	    "ctid::text, ',' ORDER BY uid) FROM message_state "
	    "WHERE mailbox_id = %lld", (long long)archive->id));
}
END_TEST

START_TEST(messages_of_a_missing_folder_are_recognised_by_header)
{
	struct mail m = { .uid = 1, .id = "m@x", .bytes = "m@x" };
	struct folder_op missing = { .kind = FOLDER_MISSING,
		.id = archive->id };
	int64_t id = world_deliver(&w, archive, &m);
	struct place place = mail_place(&m);
	bool recognised;

	place.size = (uint64_t)world_int(&w, "SELECT size FROM message "
	    "WHERE id = %lld", (long long)id);
	place.uid = 12;
	must(store_folders_write(w.s, &w.fence, &missing, 1, &w.refused,
	    &w.err), &w);
	must(store_recognise(w.s, &w.fence, junk, &place, 1, &recognised,
	    w.arena, &w.result, &w.err), &w);
	ck_assert(recognised);
	ck_assert_int_eq(id_at(junk, 12), id);
	check_counters();
}
END_TEST

/* --- what is compared ---------------------------------------------------------------- */

START_TEST(another_message_under_the_same_uid_is_told)
{
	struct mail m[] = { { .uid = 1, .id = "1@x" },
		{ .uid = 2, .id = "2@x" }, { .uid = 3 },
		{ .uid = 4, .id = "4@x" } };
	struct place p[4];
	bool unlike[4];
	size_t i;

	for (i = 0; i < 4; i++) {
		world_deliver(&w, inbox, &m[i]);
		p[i] = mail_place(&m[i]);
		p[i].message_id = NULL;
		p[i].size = (uint64_t)world_int(&w, "SELECT size FROM "
		    "messages WHERE mailbox_id = %lld AND uid = %u",
		    (long long)inbox->id, m[i].uid);
	}
	p[0].size++;
	p[1].internal_date_secs++;
	p[3].size = 0; /* not told */
	must(store_unlike(w.s, inbox->id, p, 4, false, unlike, &w.err), &w);
	ck_assert(unlike[0] && unlike[1] && !unlike[2] && !unlike[3]);
	p[0].message_id = "1@x";
	p[1].message_id = "other@x";
	p[2].size++;
	must(store_unlike(w.s, inbox->id, p, 4, true, unlike, &w.err), &w);
	ck_assert(!unlike[0] && unlike[1] && !unlike[2] && !unlike[3]);
	p[2].internal_date_secs++;
	must(store_unlike(w.s, inbox->id, p, 4, true, unlike, &w.err), &w);
	ck_assert(unlike[2]);
}
END_TEST

START_TEST(uids_are_told_as_ranges)
{
	static const uint32_t uids[] = { 1, 2, 3, 7, 9, 10, 4294967295u };
	struct uid_range *r;
	size_t n, i;

	must(store_uid_ranges(w.s, inbox->id, w.arena, &r, &n, &w.err), &w);
	ck_assert_uint_eq(n, 0);
	for (i = 0; i < 7; i++)
		arrive(inbox, uids[i], NULL);
	must(store_uid_ranges(w.s, inbox->id, w.arena, &r, &n, &w.err), &w);
	ck_assert_uint_eq(n, 4);
	ck_assert(r[0].first == 1 && r[0].last == 3 && r[0].before == 0);
	ck_assert(r[1].first == 7 && r[1].last == 7 && r[1].before == 3);
	ck_assert(r[2].first == 9 && r[2].last == 10 && r[2].before == 4);
	ck_assert(r[3].first == 4294967295u && r[3].before == 6);
}
END_TEST

/* --- upkeep -------------------------------------------------------------------------- */

/* F-B16: a day, two, four days; anew after a long good time. */
START_TEST(distrust_lasts_longer_each_time_and_ends)
{
	static const int days[] = { 1, 2, 4, 8, 16, 32, 32 };
	enum distrust what;
	int64_t until;
	size_t i;

	for (what = DISTRUST_CONDSTORE; what <= DISTRUST_UIDNEXT; what++)
		for (i = 0; i < sizeof(days) / sizeof(days[0]); i++) {
			must(store_folder_distrust(w.s, &w.fence, inbox, what,
			    "it lied", &w.err), &w);
			until = what == DISTRUST_CONDSTORE ?
			    inbox->no_condstore_until_secs :
			    inbox->no_uidnext_until_secs;
			ck_assert_int_le(labs(until - clock_wall_secs() -
			    days[i] * 86400L), 60);
		}
	world_text(&w, "UPDATE mailbox SET no_condstore_until = now() - "
	    "interval '40 days' WHERE id = %lld", (long long)inbox->id);
	must(store_folder_distrust(w.s, &w.fence, inbox, DISTRUST_CONDSTORE,
	    "it lied", &w.err), &w);
	ck_assert_int_le(labs(inbox->no_condstore_until_secs -
	    clock_wall_secs() - 86400L), 60);
	ck_assert_int_eq(world_reload(&w, inbox->id)->no_condstore_until_secs,
	    inbox->no_condstore_until_secs);
}
END_TEST

/* F-B16: who holds the fence of the oldest does not hold up the others. */
START_TEST(purge_goes_around_a_fence_that_is_held)
{
	struct world other;
	struct folder *f;
	struct mail m = { .uid = 1, .id = "1@x" };
	struct store *holder;
	struct store_rows *rows;
	const uint32_t one = 1;
	bool more;

	world_open(&other);
	f = world_folder(&other, "INBOX");
	world_deliver(&other, f, &m);
	world_apply(&other, f, NULL, 0, &one, 1);
	arrive(inbox, 1, "2@x");
	vanish(inbox, 1);
	world_text(&w, "UPDATE message_state SET deleted_at = now() - "
	    "CASE account_id WHEN %s THEN interval '31 days' "
	    "ELSE interval '99 days' END WHERE deleted_at IS NOT NULL",
	    world_account(&w));
	holder = world_session(&other);
	must(store_query(holder, w.arena, "BEGIN", NULL, 0, &rows, &w.err),
	    &w);
	must(store_query(holder, w.arena, "SELECT FROM account_fence WHERE "
	    "account_id <> (SELECT account_id FROM message_state "
	    "WHERE deleted_at > now() - interval '40 days' LIMIT 1) "
	    "FOR UPDATE", NULL, 0, &rows, &w.err), &w);
	must(store_purge(w.s, 100, 30, &more, &w.err), &w);
	ck_assert(more);
	ck_assert_int_eq(0, world_int(&w, "SELECT count(*) FROM message "
	    "WHERE account_id = %s", world_account(&w)));
	ck_assert_int_eq(1, world_int(&other, "SELECT count(*) FROM message "
	    "WHERE account_id = %s", world_account(&other)));
	store_close(&holder);
	world_close(&other);
}
END_TEST

static Suite *
make_suite(void)
{
	Suite *suite = suite_create("store places");
	TCase *t = tcase_create("places");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, open_world, close_world);
	tcase_add_test(t, a_move_seen_from_its_end_keeps_the_id);
	tcase_add_test(t, a_move_and_back_again_seen_from_their_ends);
	tcase_add_test(t, a_deleted_copy_does_not_become_the_message_that_moves);
	tcase_add_test(t, a_message_has_the_date_of_its_place);
	tcase_add_test(t, a_copy_stays_a_copy);
	tcase_add_test(t, the_same_bytes_delivered_twice_are_two_messages);
	tcase_add_test(t,
	    of_twins_that_moved_seen_from_their_ends_each_keeps_an_id);
	tcase_add_test(t, the_first_download_of_two_folders_meets_copies_only);
	tcase_add_test(t, what_was_changed_of_the_new_row_goes_along);
	tcase_add_test(t, a_message_without_bytes_moves_too);
	tcase_add_test(t,
	    a_change_of_uidvalidity_goes_on_where_it_was_interrupted);
	tcase_add_test(t, a_deleted_folder_is_emptied_by_the_clerk_if_need_be);
	tcase_add_test(t, a_missing_folder_writes_no_row_of_its_messages);
	tcase_add_test(t,
	    messages_of_a_missing_folder_are_recognised_by_header);
	tcase_add_test(t, another_message_under_the_same_uid_is_told);
	tcase_add_test(t, uids_are_told_as_ranges);
	tcase_add_test(t, distrust_lasts_longer_each_time_and_ends);
	tcase_add_test(t, purge_goes_around_a_fence_that_is_held);
	suite_add_tcase(suite, t);
	return suite;
}

int
main(void)
{
	return world_run(make_suite());
}
