/*
 * test_briefing.c - what a hot child begins with, by way of the clerk.
 *
 * Runs under tests/with-postgres.
 */
#include "store_world.h"

#include "account/session.h"

#include <check.h>

static struct world w;
static struct conf conf;
static bool is_briefed; /* was a briefing asked for, and whole? */

static void
open_world(void)
{
	world_open(&w);
	world_text(&w, "UPDATE accounts SET state = 'live', imap_login = 'ann', "
	    "secret = '\\x00ff10'::bytea, auth_failures = 2, "
	    "last_error = 'once' WHERE id = %s", world_account(&w));
	conf.database = (char *)(uintptr_t)world_db();
	is_briefed = false;
}

static void
close_world(void)
{
	world_close(&w);
}

static struct folder *
add_inbox(void)
{
	struct folder *inbox = world_folder(&w, "INBOX");

	world_text(&w, "UPDATE mailbox SET role = 'inbox', uidvalidity = 7, "
	    "uidnext = 4294967290, highestmodseq = 9223372036854775807, "
	    "backfill_below = 5, server_messages = 6, flag_scan_uid = 8, "
	    "no_condstore = 'it lied', last_poll_at = to_timestamp(1000000) "
	    "WHERE id = %lld", (long long)inbox->id);
	return world_reload(&w, inbox->id);
}

static int
brief(void *arg, struct msg_briefing *b)
{
	(void)arg;
	must(account_brief(w.s, &w.account_id, w.arena, b, &w.err), &w);
	is_briefed = b->is_whole;
	return 0;
}

static int
want(void *arg, enum resource resource, const char *host, uint16_t port,
    uint32_t *id_r, struct err *err)
{
	(void)arg, (void)resource, (void)host, (void)port, (void)err;
	*id_r = 1;
	return 0;
}

static void
give_back(void *arg, uint32_t id)
{
	(void)arg, (void)id;
}

static int
may_go_on(void *arg, struct err *err)
{
	(void)arg, (void)err;
	return 0;
}

static void
note(void *arg, const struct slot_note *step)
{
	(void)arg, (void)step;
}

static const struct account_hooks hooks = {.want = want,
    .give_back = give_back,
    .may_go_on = may_go_on,
    .note = note,
    .brief = brief};

static struct session *
open_session(int64_t epoch)
{
	struct fence fence = w.fence;

	fence.epoch = epoch;
	return session_new(&conf, &hooks, &fence);
}

/* Loads; true: from a briefing alone. */
static bool
begins_briefed(void)
{
	struct session *s = open_session(w.fence.epoch);
	bool is_alone;

	must(session_load_inbox(s, &w.err), &w);
	is_alone = s->db.store == NULL;
	ck_assert(is_alone == is_briefed);
	session_free(&s);
	return is_alone;
}

START_TEST(a_briefing_says_what_a_load_says)
{
	struct session *s = open_session(w.fence.epoch);
	struct session *own = open_session(w.fence.epoch);
	struct folder *told, *read;

	world_folder(&w, "Archive");
	add_inbox();
	must(session_load_inbox(s, &w.err), &w);
	must(session_load(own, 1u << ACCOUNT_LIVE, &w.err), &w);
	ck_assert_ptr_null(s->db.store);
	ck_assert(uuid_is_equal(&s->account->id, &own->account->id));
	ck_assert(uuid_is_equal(&s->account->user_id, &own->account->user_id));
	ck_assert_str_eq(s->account->email, own->account->email);
	ck_assert_str_eq(s->account->imap_host, own->account->imap_host);
	ck_assert_str_eq(s->account->imap_login, "ann");
	ck_assert_uint_eq(s->account->imap_port, own->account->imap_port);
	ck_assert_int_eq(s->account->imap_tls, own->account->imap_tls);
	ck_assert_uint_eq(s->account->secret_len, 3);
	ck_assert_mem_eq(s->account->secret, "\x00\xff\x10", 3);
	ck_assert_int_eq(s->account->epoch, own->account->epoch);
	ck_assert_int_eq(s->account->next_try_secs,
	    own->account->next_try_secs);
	ck_assert_uint_eq(s->account->auth_failures, 2);
	ck_assert_str_eq(s->account->last_error, "once");

	ck_assert_uint_eq(s->n_folders, 1);
	told = session_inbox(s);
	read = session_inbox(own);
	ck_assert_int_eq(told->id, read->id);
	ck_assert_str_eq(told->wire, "INBOX");
	ck_assert_str_eq(told->path, "INBOX");
	ck_assert_int_eq(told->delimiter, '/');
	ck_assert_mem_eq(&told->cursor, &read->cursor, sizeof(read->cursor));
	ck_assert_uint_eq(told->cursor.uidnext, 4294967290u);
	ck_assert_str_eq(told->no_condstore, "it lied");
	ck_assert_int_eq(told->generation, read->generation);
	ck_assert_int_eq(told->stored, read->stored);
	ck_assert_int_eq(told->last_poll_secs, read->last_poll_secs);
	ck_assert(told->is_remapping == read->is_remapping);
	session_free(&s);
	session_free(&own);
}
END_TEST

/* Each makes the child read for itself. */
static const char *const unusual[] = {
	"DELETE FROM mailbox WHERE id = %lld",
	"UPDATE mailbox SET role = NULL WHERE id = %lld",
	"UPDATE mailbox SET is_selectable = false WHERE id = %lld",
	"UPDATE mailbox SET missing_since = now() WHERE id = %lld",
	"UPDATE mailbox SET park_failures = 1 WHERE id = %lld",
	"UPDATE mailbox SET wire = repeat('x', 64)::bytea WHERE id = %lld",
	"UPDATE accounts SET imap_login = repeat('x', 256) "
	"WHERE id = (SELECT account_id FROM mailbox WHERE id = %lld)",
	"UPDATE accounts SET secret = decode(repeat('00', 513), 'hex') "
	"WHERE id = (SELECT account_id FROM mailbox WHERE id = %lld)",
	"INSERT INTO quarantine (account_id, mailbox_id, step, uid_from, "
	"uid_to) SELECT account_id, id, 'parse', 1, 1 FROM mailbox "
	"WHERE id = %lld",
};
#define N_UNUSUAL ((int)(sizeof(unusual) / sizeof(unusual[0])))

START_TEST(what_is_unusual_is_read_by_the_child)
{
	struct folder *inbox = add_inbox();

	ck_assert(begins_briefed());
	world_text(&w, unusual[_i], (long long)inbox->id);
	ck_assert(!begins_briefed());
}
END_TEST

START_TEST(what_just_fits_is_briefed)
{
	struct folder *inbox = add_inbox();

	world_text(&w, "UPDATE mailbox SET wire = repeat('x', 63)::bytea "
	    "WHERE id = %lld", (long long)inbox->id);
	world_text(&w, "UPDATE accounts SET imap_login = repeat('x', 255), "
	    "secret = decode(repeat('00', 512), 'hex') WHERE id = %s",
	    world_account(&w));
	ck_assert(begins_briefed());
}
END_TEST

/* F-B12: the epoch is ours, and the row says somebody else's. */
START_TEST(a_briefing_of_another_owner_fences)
{
	struct session *s = open_session(w.fence.epoch);
	struct err err = ERR_INIT;

	add_inbox();
	world_text(&w, "UPDATE account_fence SET owner = 'another' "
	    "WHERE account_id = %s", world_account(&w));
	ck_assert_int_eq(session_load_inbox(s, &err), -1);
	ck_assert_int_eq(err.kind, ERR_FENCED);
	session_free(&s);
}
END_TEST

/* Of another epoch, or of an account that is not to be synced any more. */
START_TEST(who_is_no_owner_is_told_so)
{
	struct session *s = open_session(w.fence.epoch - 1);
	struct err err = ERR_INIT;

	add_inbox();
	ck_assert_int_eq(session_load_inbox(s, &err), -1);
	ck_assert_int_eq(err.kind, ERR_FENCED);
	session_free(&s);
	world_text(&w, "UPDATE accounts SET state = 'disabled' WHERE id = %s",
	    world_account(&w));
	s = open_session(w.fence.epoch);
	ck_assert_int_eq(session_load_inbox(s, &err), -1);
	ck_assert(err.kind == ERR_GONE || err.kind == ERR_FENCED);
	session_free(&s);
}
END_TEST

static Suite *
make_suite(void)
{
	Suite *suite = suite_create("briefing");
	TCase *t = tcase_create("briefing");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, open_world, close_world);
	tcase_add_test(t, a_briefing_says_what_a_load_says);
	tcase_add_loop_test(t, what_is_unusual_is_read_by_the_child, 0,
	    N_UNUSUAL);
	tcase_add_test(t, what_just_fits_is_briefed);
	tcase_add_test(t, a_briefing_of_another_owner_fences);
	tcase_add_test(t, who_is_no_owner_is_told_so);
	suite_add_tcase(suite, t);
	return suite;
}

int
main(void)
{
	return world_run(make_suite());
}
