/*
 * test_store.c - schema, accounts, the fence, quarantine, jobs, blob rows.
 *
 * Runs under tests/with-postgres.
 */
#include "store_world.h"

#include "base/clock.h"
#include "store/session.h"

#include <bsd/stdlib.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct world w;

static void
open_world(void)
{
	world_open(&w);
}

static void
close_world(void)
{
	world_close(&w);
}

#define TO_TEXT_(n) #n
#define TO_TEXT(n) TO_TEXT_(n)

static void write_file(const char *dir, const char *name, const char *text);

/* --- schema ------------------------------------------------------------------- */

/* A database that no other test sees. */
static const char *
new_database(void)
{
	char name[32];

	snprintf(name, sizeof(name), "t%08x%08x", arc4random(), arc4random());
	world_text(&w, "CREATE DATABASE %s TEMPLATE template0", name);
	return arena_printf(w.arena, "%s dbname=%s", world_db(), name);
}

static int
migrate(const char *db, const char *dir, struct err *err)
{
	struct store *s;
	int version = 0, rc;

	if (store_open(&s, db, "test", err) == -1)
		return -1;
	rc = store_migrate(s, dir, NULL, NULL, &version, err);
	store_close(&s);
	return rc == -1 ? -1 : version;
}

static int
wanted_version(void)
{
	int version;

	must(store_schema_wanted(SCHEMA_DIR, &version, &w.err), &w);
	return version;
}

static void
on_step(void *arg, const char *file)
{
	ck_assert_int_eq(file[0], '0');
	++*(int *)arg;
}

START_TEST(migrate_twice_is_migrate_once)
{
	const char *db = new_database();
	int steps = 0, version = -1;
	struct store *s;

	must(store_open(&s, db, "test", &w.err), &w);
	must(store_schema_version(s, &version, &w.err), &w);
	ck_assert_int_eq(version, 0);
	must(store_migrate(s, SCHEMA_DIR, on_step, &steps, &version, &w.err),
	    &w);
	ck_assert_int_eq(steps, wanted_version());
	must(store_migrate(s, SCHEMA_DIR, on_step, &steps, &version, &w.err),
	    &w);
	ck_assert_int_eq(steps, wanted_version());
	must(store_schema_version(s, &version, &w.err), &w);
	ck_assert_int_eq(version, wanted_version());
	store_close(&s);
}
END_TEST

START_TEST(migrations_at_the_same_time_do_it_once)
{
	const char *db = new_database();
	struct err err = ERR_INIT;
	int i, status;
	pid_t pid;

	for (i = 0; i < 3; i++) {
		pid = fork();
		if (pid == 0)
			_exit(migrate(db, SCHEMA_DIR, &err) ==
			    wanted_version() ? 0 : 1);
	}
	for (i = 0; i < 3; i++) {
		ck_assert_int_ne(-1, wait(&status));
		ck_assert_int_eq(status, 0);
	}
	ck_assert_int_eq(wanted_version(), migrate(db, SCHEMA_DIR, &err));
}
END_TEST

START_TEST(a_newer_database_is_left_alone)
{
	const char *db = new_database();
	struct err err = ERR_INIT;
	struct store_rows *rows;
	struct store *s;

	ck_assert_int_ne(-1, migrate(db, SCHEMA_DIR, &err));
	must(store_open(&s, db, "test", &w.err), &w);
	must(store_query(s, w.arena, "INSERT INTO schema_version "
	    "(version, name, works_with) VALUES (900, 'future', 900)", NULL,
	    0, &rows, &w.err), &w);
	store_close(&s);
	ck_assert_int_eq(-1, migrate(db, SCHEMA_DIR, &err));
	ck_assert_int_eq(err.kind, ERR_CONFIG);
	ck_assert_ptr_nonnull(strstr(err.text, "newer"));
}
END_TEST

/* B8: a session is of no use with a schema that the program does not know. */
START_TEST(only_a_schema_that_fits_is_worked_with)
{
	static const struct {
		const char *sql, *words;
	} cases[] = {
		{ "SELECT 1", NULL },
		{ "INSERT INTO schema_version (version, name, works_with) "
		  "VALUES (900, 'future', 900)", "upgrade mailherd" },
		/* a rolling upgrade: the file lets older programs go on */
		{ "UPDATE schema_version SET works_with = " TO_TEXT(
		  STORE_SCHEMA) " WHERE version = 900", NULL },
		{ "DELETE FROM schema_version WHERE version >= " TO_TEXT(
		  STORE_SCHEMA), "mailherdctl migrate" },
		{ "DELETE FROM schema_version", "mailherdctl init" },
		{ "DROP SCHEMA mailherd CASCADE", "mailherdctl init" },
	};
	const char *db = new_database();
	struct err err = ERR_INIT;
	struct store_rows *rows;
	struct store *s;
	size_t i;
	int rc;

	ck_assert_int_eq(STORE_SCHEMA, wanted_version());
	ck_assert_int_ne(-1, migrate(db, SCHEMA_DIR, &err));
	must(store_open(&s, db, "test", &w.err), &w);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		must(store_query(s, w.arena, cases[i].sql, NULL, 0, &rows,
		    &w.err), &w);
		rc = store_check(s, &err);
		ck_assert_int_eq(rc, cases[i].words == NULL ? 0 : -1);
		if (cases[i].words == NULL)
			continue;
		ck_assert_int_eq(err.kind, ERR_CONFIG);
		ck_assert_ptr_nonnull(strstr(err.text, cases[i].words));
	}
	store_close(&s);
}
END_TEST

START_TEST(a_file_says_which_older_programs_go_on)
{
	const char *db = new_database();
	char dir[] = "/tmp/mailherd-schema.XXXXXX";
	struct err err = ERR_INIT;
	struct store_rows *rows;
	struct store *s;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	write_file(dir, "001_one.sql", "-- tables\nCREATE TABLE one (i int);");
	write_file(dir, "002_two.sql", "-- a column\n-- works with: 1\n"
	    "CREATE TABLE two (i int);");
	write_file(dir, "003_three.sql", "-- works with: 7\nSELECT 1");
	ck_assert_int_eq(3, migrate(db, dir, &err));
	must(store_open(&s, db, "test", &w.err), &w);
	must(store_query(s, w.arena, "SELECT array_agg(works_with ORDER BY "
	    "version) FROM schema_version", NULL, 0, &rows, &w.err), &w);
	ck_assert_str_eq(rows->cells[0], "{1,1,3}");
	store_close(&s);
}
END_TEST

static void
write_file(const char *dir, const char *name, const char *text)
{
	const char *path = arena_printf(w.arena, "%s/%s", dir, name);
	FILE *f = fopen(path, "w");

	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
}

START_TEST(a_step_that_fails_leaves_nothing)
{
	const char *db = new_database();
	char dir[] = "/tmp/mailherd-schema.XXXXXX";
	struct err err = ERR_INIT;
	struct store_rows *rows;
	struct store *s;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	write_file(dir, "001_one.sql", "CREATE TABLE one (i int);");
	write_file(dir, "002_two.sql",
	    "CREATE TABLE two (i int); SELECT 1/0;");
	write_file(dir, "README", "no schema");
	ck_assert_int_eq(-1, migrate(db, dir, &err));
	ck_assert_ptr_nonnull(strstr(err.text, "002_two.sql"));
	write_file(dir, "002_two.sql", "CREATE TABLE two (i int)");
	ck_assert_int_eq(2, migrate(db, dir, &err));
	must(store_open(&s, db, "test", &w.err), &w);
	must(store_query(s, w.arena, "SELECT count(*) FROM one, two", NULL, 0,
	    &rows, &w.err), &w);
	store_close(&s);
	/* A gap is no schema. */
	write_file(dir, "004_four.sql", "");
	ck_assert_int_eq(-1, migrate(db, dir, &err));
	ck_assert_int_eq(err.kind, ERR_CONFIG);
	unlink(arena_printf(w.arena, "%s/001_one.sql", dir));
	unlink(arena_printf(w.arena, "%s/002_two.sql", dir));
	unlink(arena_printf(w.arena, "%s/004_four.sql", dir));
	unlink(arena_printf(w.arena, "%s/README", dir));
	rmdir(dir);
}
END_TEST

START_TEST(no_server_is_a_database_error)
{
	struct err err = ERR_INIT;
	struct store *s;

	ck_assert_int_eq(-1, store_open(&s, "host=/nonexistent", "test",
	    &err));
	ck_assert_int_eq(err.kind, ERR_DATABASE);
	ck_assert_int_eq(-1, store_open(&s, "hots=x", "test", &err));
	ck_assert_int_eq(err.kind, ERR_CONFIG);
}
END_TEST

/* --- the fence (R-LEASE-6) --------------------------------------------------------- */

START_TEST(a_superseded_owner_writes_nothing)
{
	struct folder *inbox = world_folder(&w, "INBOX");
	struct mail m = { .uid = 1 };
	struct folder_op op = { .kind = FOLDER_CREATE, .wire = "X",
		.path = "X" };
	struct store *other;
	struct account *account;

	must(store_open(&other, world_db(), "test", &w.err), &w);
	must(store_account_take_over(other, &w.account_id, "next", w.arena,
	    &account, &w.err), &w);
	ck_assert_int_eq(account->epoch, w.fence.epoch + 1);
	ck_assert_str_eq(account->owner, "next");
	world_add(&w, &m);
	ck_assert_int_eq(-1, world_try_commit(&w, inbox, 2));
	ck_assert_int_eq(w.err.kind, ERR_FENCED);
	ck_assert_int_eq(-1, store_folders_write(w.s, &w.fence, &op, 1,
	    &w.refused, &w.err));
	ck_assert_int_eq(w.err.kind, ERR_FENCED);
	ck_assert_int_eq(-1, store_account_synced(w.s, &w.fence, 0, &w.err));
	ck_assert_int_eq(w.err.kind, ERR_FENCED);
	ck_assert_int_eq(0, world_int(&w, "SELECT count(*) FROM messages "
	    "WHERE account_id = %s", world_account(&w)));
	/* The new owner writes. */
	fence_init(&w.fence, &w.account_id, account->epoch, "next");
	world_add(&w, &m);
	world_commit(&w, world_reload(&w, inbox->id));
	store_close(&other);
}
END_TEST

/*
 * F-B12.  A failover to a standby that had not got the last commit: `test` was
 * told epoch 1, the new primary knows nothing of it and gives 1 to `next`.
 */
START_TEST(two_owners_of_one_epoch_are_told_apart)
{
	struct folder *inbox = world_folder(&w, "INBOX");
	struct mail m = { .uid = 1 };
	struct folder_op op = { .kind = FOLDER_CREATE, .wire = "X",
		.path = "X" };
	struct err failure = ERR_INIT;
	struct account *account;
	bool is_it;

	world_text(&w, "UPDATE account_fence SET epoch = epoch - 1, owner = ''"
	    " WHERE account_id = %s", world_account(&w));
	must(store_account_take_over(w.s, &w.account_id, "next", w.arena,
	    &account, &w.err), &w);
	ck_assert_int_eq(account->epoch, w.fence.epoch);
	ck_assert_str_eq(account->owner, "next");
	ck_assert(!fence_is_of(&w.fence, account));

	world_add(&w, &m);
	ck_assert_int_eq(-1, world_try_commit(&w, inbox, 2));
	ck_assert_int_eq(w.err.kind, ERR_FENCED);
	ck_assert_int_eq(-1, store_folders_write(w.s, &w.fence, &op, 1,
	    &w.refused, &w.err));
	ck_assert_int_eq(w.err.kind, ERR_FENCED);
	ck_assert_int_eq(-1, store_account_synced(w.s, &w.fence, 0, &w.err));
	ck_assert_int_eq(w.err.kind, ERR_FENCED);
	err_set(&failure, ERR_NETWORK, "stale words");
	ck_assert_int_eq(-1, store_account_failed(w.s, &w.fence, &failure,
	    1750000000, 3, &is_it, &w.err));
	ck_assert_int_eq(w.err.kind, ERR_FENCED);
	ck_assert_int_eq(-1, store_account_try_login(w.s, &w.fence, 100,
	    &is_it, &w.err));
	ck_assert_int_eq(w.err.kind, ERR_FENCED);
	world_text(&w, "UPDATE accounts SET state = 'bootstrapping' "
	    "WHERE id = %s", world_account(&w));
	ck_assert_int_eq(-1, store_account_live(w.s, &w.fence, &is_it,
	    &w.err));
	ck_assert_int_eq(w.err.kind, ERR_FENCED);
	ck_assert_str_eq("0|1||bootstrapping|t", world_text(&w, "SELECT "
	    "concat_ws('|', (SELECT count(*) FROM messages "
	    "WHERE account_id = a.id), (SELECT count(*) FROM mailbox "
	    "WHERE account_id = a.id), last_error, state, "
	    "next_try_at IS NULL) FROM accounts a WHERE id = %s",
	    world_account(&w)));

	fence_init(&w.fence, &w.account_id, account->epoch, account->owner);
	world_add(&w, &m);
	world_commit(&w, world_reload(&w, inbox->id));
	must(store_account_live(w.s, &w.fence, &is_it, &w.err), &w);
	ck_assert(is_it);
}
END_TEST

START_TEST(every_way_out_of_live_raises_the_fence)
{
	static const enum account_state out[] = { ACCOUNT_DISABLED,
		ACCOUNT_ERROR, ACCOUNT_DELETED, ACCOUNT_BOOTSTRAPPING };
	bool changed;

	must(store_account_set_state(w.s, &w.account_id, 0, ACCOUNT_LIVE, "",
	    &changed, &w.err), &w);
	must(store_account_synced(w.s, &w.fence, 1750000000, &w.err), &w);
	must(store_account_set_state(w.s, &w.account_id, 1u << ACCOUNT_NEW,
	    out[_i], "why", &changed, &w.err), &w);
	ck_assert(!changed);
	must(store_account_synced(w.s, &w.fence, 0, &w.err), &w);
	must(store_account_set_state(w.s, &w.account_id, 1u << ACCOUNT_LIVE,
	    out[_i], "why", &changed, &w.err), &w);
	ck_assert(changed);
	ck_assert_int_eq(-1, store_account_synced(w.s, &w.fence, 0, &w.err));
	ck_assert_int_eq(w.err.kind, ERR_FENCED);
}
END_TEST

static void
wait_stopped(pid_t pid)
{
	int status;

	ck_assert_int_eq(pid, waitpid(pid, &status, WUNTRACED));
	ck_assert(WIFSTOPPED(status));
}

/*
 * A child that has the fence in its hand when it is stopped: the pipeline is
 * sent, and worked off, up to but not with its end.
 */
static void
stop_in_mid_pipeline(struct folder *inbox)
{
	PGresult *results[1] = { NULL };
	PGresult *res = NULL;
	struct params p;
	int rc, i;

	w.s = world_session(&w);
	params_init(&p);
	param_int8(&p, inbox->id);
	rc = session_begin_fenced(w.s, &w.fence, &w.err);
	if (rc == 0)
		rc = session_send(w.s, "UPDATE mailbox SET uidnext = 99 "
		    "WHERE id = $1", &p, &w.err);
	PQsendFlushRequest(w.s->conn);
	/* BEGIN and the fence, each with the NULL after it. */
	for (i = 0; rc == 0 && i < 4; i++) {
		while (PQflush(w.s->conn) == 1)
			;
		rc = session_result(w.s, &res, &w.err);
		if (i == 2 && PQresultStatus(res) != PGRES_TUPLES_OK)
			_exit(43);
		PQclear(res);
	}
	if (rc == -1)
		_exit(44);
	raise(SIGSTOP);
	rc = session_end(w.s, &w.err);
	if (rc == 0)
		rc = session_collect_all(w.s, 1, results, &w.err);
	_exit(rc == -1 ? 42 : 0);
}

START_TEST(a_predecessor_stopped_in_mid_pipeline_is_ended)
{
	struct folder *inbox = world_folder(&w, "INBOX");
	struct account *account;
	struct store *other;
	int64_t start;
	int status;
	pid_t pid;

	/* No session across the fork. */
	store_close(&w.s);
	pid = fork();
	if (pid == 0)
		stop_in_mid_pipeline(inbox);
	wait_stopped(pid);
	must(store_open(&other, world_db(), "test", &w.err), &w);
	start = clock_mono_msecs();
	must(store_account_take_over(other, &w.account_id, "next", w.arena,
	    &account, &w.err), &w);
	ck_assert_int_eq(account->epoch, w.fence.epoch + 1);
	ck_assert_int_lt(clock_mono_msecs() - start, 10000);
	kill(pid, SIGCONT);
	ck_assert_int_eq(pid, waitpid(pid, &status, 0));
	ck_assert_int_eq(WEXITSTATUS(status), 42);
	w.s = other;
	ck_assert_int_eq(0, world_int(&w, "SELECT count(*) FROM messages "
	    "WHERE account_id = %s", world_account(&w)));
	ck_assert_int_eq(0, world_int(&w, "SELECT uidnext FROM mailbox "
	    "WHERE id = %lld", (long long)inbox->id));
}
END_TEST

/* Commits messages until it is fenced out or its session ended. */
static void
write_until_fenced(int64_t folder_id)
{
	struct folder *folder;
	struct mail m = { 0 };

	w.s = world_session(&w);
	folder = world_reload(&w, folder_id);
	m.uid = folder->cursor.uidnext;
	do {
		m.uid++;
		world_add(&w, &m);
	} while (world_try_commit(&w, folder, m.uid + 1) == 0);
	_exit(w.err.kind == ERR_FENCED || w.err.kind == ERR_DATABASE ? 0 : 1);
}

static int64_t
rows(void)
{
	return world_int(&w, "SELECT count(*) FROM message WHERE "
	    "account_id = %s", world_account(&w));
}

/* Wherever it is stopped: what is there at the hand-over is all there ever
 * is of it. */
START_TEST(nothing_of_a_predecessor_comes_after_the_hand_over)
{
	int64_t folder_id = world_folder(&w, "INBOX")->id, before, after;
	struct account *account;
	int round, status;
	pid_t pid;

	store_close(&w.s);
	for (round = 0; round < 10; round++) {
		pid = fork();
		if (pid == 0)
			write_until_fenced(folder_id);
		must(store_open(&w.s, world_db(), "test", &w.err), &w);
		before = rows();
		while (rows() == before)
			;
		/* Not to wait for anything, only to hit another place. */
		usleep(arc4random_uniform(20000));
		kill(pid, SIGSTOP);
		wait_stopped(pid);
		must(store_account_take_over(w.s, &w.account_id, "next",
		    w.arena, &account, &w.err), &w);
		before = rows();
		kill(pid, SIGCONT);
		ck_assert_int_eq(pid, waitpid(pid, &status, 0));
		ck_assert_int_eq(status, 0);
		after = rows();
		ck_assert_int_eq(before, after);
		ck_assert_int_eq(after, world_int(&w, "SELECT messages FROM "
		    "mailbox WHERE id = %lld", (long long)folder_id));
		fence_init(&w.fence, &w.account_id, account->epoch, "next");
		store_close(&w.s);
	}
	w.s = world_session(&w);
}
END_TEST

/* F-A10: psql left in a transaction.  It is not ended, and not waited for. */
START_TEST(a_row_locked_by_a_stranger_is_told_soon)
{
	struct account *account;
	struct store *psql;
	int64_t start;

	must(store_open(&psql, world_db(), "psql", &w.err), &w);
	must(session_run(psql, "BEGIN", NULL, NULL, &w.err), &w);
	must(session_run(psql, arena_printf(w.arena, "SELECT FROM "
	    "account_fence WHERE account_id = %s FOR UPDATE",
	    world_account(&w)), NULL, NULL, &w.err), &w);
	/* Not a predecessor that is stuck: the world's own session rests. */
	store_close(&w.s);
	must(store_open(&w.s, world_db(), "mailherd clerk", &w.err), &w);
	start = clock_mono_msecs();
	ck_assert_int_eq(-1, store_account_take_over(w.s, &w.account_id,
	    "next", w.arena, &account, &w.err));
	ck_assert_int_lt(clock_mono_msecs() - start, 5000);
	ck_assert_int_eq(w.err.kind, ERR_TEMPORARY);
	ck_assert_ptr_nonnull(strstr(w.err.text, "psql"));
	/* The session goes on, for the next account. */
	ck_assert(store_is_usable(w.s));
	must(session_run(psql, "COMMIT", NULL, NULL, &w.err), &w);
	must(store_account_take_over(w.s, &w.account_id, "next", w.arena,
	    &account, &w.err), &w);
	store_close(&psql);
}
END_TEST

/* What PostgreSQL says of one statement is not "PostgreSQL is away". */
static const struct {
	const char *sql;
	enum err_kind kind;
} sqlstates[] = {
	{ "DO $$ BEGIN RAISE SQLSTATE '55P03'; END $$", ERR_TEMPORARY },
	{ "DO $$ BEGIN RAISE SQLSTATE '57014'; END $$", ERR_TEMPORARY },
	{ "DO $$ BEGIN RAISE SQLSTATE '40001'; END $$", ERR_TEMPORARY },
	{ "DO $$ BEGIN RAISE SQLSTATE '40P01'; END $$", ERR_TEMPORARY },
	{ "DO $$ BEGIN RAISE SQLSTATE '53100'; END $$", ERR_TEMPORARY },
	{ "DO $$ BEGIN RAISE SQLSTATE '53200'; END $$", ERR_TEMPORARY },
	{ "DO $$ BEGIN RAISE SQLSTATE 'XX001'; END $$", ERR_TEMPORARY },
	{ "SELECT nonsense", ERR_TEMPORARY },
	{ "SELECT 1/0", ERR_PERMANENT },
	{ "SET default_transaction_read_only = on", ERR_NONE },
	{ "CREATE TABLE no (n int)", ERR_DATABASE }, /* a standby says so */
	{ "SELECT pg_terminate_backend(pg_backend_pid())", ERR_DATABASE },
	{ "SELECT 1", ERR_DATABASE },
};

START_TEST(only_a_lost_session_is_postgresql_away)
{
	size_t i;

	for (i = 0; i < sizeof(sqlstates) / sizeof(sqlstates[0]); i++) {
		struct err err = ERR_INIT;

		session_run(w.s, sqlstates[i].sql, NULL, NULL, &err);
		ck_assert_msg(err.kind == sqlstates[i].kind, "%s: %s, %s",
		    sqlstates[i].sql, err_kind_name(err.kind), err.text);
		ck_assert(store_is_usable(w.s) == (i < 11));
	}
}
END_TEST

START_TEST(an_account_can_be_disabled_though_its_owner_is_stuck)
{
	struct folder *inbox = world_folder(&w, "INBOX");
	bool changed;
	int status;
	pid_t pid;

	must(store_account_set_state(w.s, &w.account_id, 0, ACCOUNT_LIVE, "",
	    &changed, &w.err), &w);
	store_close(&w.s);
	pid = fork();
	if (pid == 0)
		stop_in_mid_pipeline(inbox);
	wait_stopped(pid);
	must(store_open(&w.s, world_db(), "test", &w.err), &w);
	must(store_account_set_state(w.s, &w.account_id, 0, ACCOUNT_DISABLED,
	    "by hand", &changed, &w.err), &w);
	ck_assert(changed);
	kill(pid, SIGCONT);
	ck_assert_int_eq(pid, waitpid(pid, &status, 0));
	ck_assert_int_eq(WEXITSTATUS(status), 42);
}
END_TEST

/* --- accounts ------------------------------------------------------------------------ */

START_TEST(an_account_is_found_and_loaded)
{
	char text[UUID_TEXT_SIZE];
	struct account *a;
	struct uuid id;

	must(store_account_find(w.s, w.email, &id, &w.err), &w);
	ck_assert(uuid_is_equal(&id, &w.account_id));
	must(store_account_find(w.s, uuid_format(&id, text), &id, &w.err),
	    &w);
	must(store_account_load(w.s, &id, w.arena, &a, &w.err), &w);
	ck_assert_int_eq(a->state, ACCOUNT_NEW);
	ck_assert_str_eq(a->imap_host, "imap.example.org");
	ck_assert_int_eq(a->imap_port, 993);
	ck_assert_int_eq(a->imap_tls, TLS_IMPLICIT);
	ck_assert_uint_eq(a->secret_len, 4);
	ck_assert_mem_eq(a->secret, "seal", 4);
	ck_assert_int_eq(-1, store_account_find(w.s, "nobody@example.org",
	    &id, &w.err));
	ck_assert_int_eq(w.err.kind, ERR_GONE);
}
END_TEST

START_TEST(an_address_of_two_accounts_is_ambiguous)
{
	struct account a = { .user_id = w.user_id, .email = w.email,
		.imap_host = "h", .imap_login = "l", .imap_port = 143 };
	struct uuid id;

	uuid_generate(&a.id);
	must(store_account_add(w.s, &a, &id, &w.err), &w);
	ck_assert_int_eq(-1, store_account_find(w.s, w.email, &id, &w.err));
	ck_assert_int_eq(w.err.kind, ERR_PERMANENT);
	ck_assert_ptr_nonnull(strstr(w.err.text, "several"));
}
END_TEST

START_TEST(an_account_is_added_with_fence_and_job)
{
	ck_assert_str_eq("queued|bulk|sync_bootstrap_account", world_text(&w,
	    "SELECT concat_ws('|', state, queue, kind) FROM jobs "
	    "WHERE account_id = %s AND payload->>'account_id' = "
	    "account_id::text", world_account(&w)));
}
END_TEST

START_TEST(refusals_in_a_row_end_in_error)
{
	struct err auth = { .kind = ERR_AUTH, .text = "password refused" };
	struct err network = { .kind = ERR_NETWORK, .text = "no route" };
	struct account *a;
	bool dead;

	must(store_account_failed(w.s, &w.fence, &auth, 1750000100, 3, &dead,
	    &w.err), &w);
	must(store_account_synced(w.s, &w.fence, 0, &w.err), &w);
	must(store_account_failed(w.s, &w.fence, &auth, 1750000100, 2, &dead,
	    &w.err), &w);
	ck_assert(!dead);
	must(store_account_failed(w.s, &w.fence, &network, 1750000200, 2,
	    &dead, &w.err), &w);
	ck_assert(!dead);
	must(store_account_load(w.s, &w.account_id, w.arena, &a, &w.err), &w);
	ck_assert_int_eq(a->next_try_secs, 1750000200);
	ck_assert_str_eq(a->last_error, "no route");
	ck_assert_uint_eq(a->auth_failures, 1);
	must(store_account_failed(w.s, &w.fence, &auth, 1750000300, 2, &dead,
	    &w.err), &w);
	ck_assert(dead);
	must(store_account_load(w.s, &w.account_id, w.arena, &a, &w.err), &w);
	ck_assert_int_eq(a->state, ACCOUNT_ERROR);
	ck_assert_str_eq(a->state_reason, "password refused");
}
END_TEST

START_TEST(enable_goes_on_where_it_was)
{
	enum account_state state;
	struct uuid job;
	bool changed;

	must(store_account_set_state(w.s, &w.account_id, 0, ACCOUNT_DISABLED,
	    "", &changed, &w.err), &w);
	must(store_account_enable(w.s, &w.account_id, &state, &job, &w.err),
	    &w);
	ck_assert_int_eq(state, ACCOUNT_BOOTSTRAPPING);
	/* The one that was queued when it was added. */
	ck_assert(uuid_is_equal(&job, &w.job_id));
	must(store_account_set_state(w.s, &w.account_id, 0, ACCOUNT_LIVE, "",
	    &changed, &w.err), &w);
	must(store_account_set_state(w.s, &w.account_id, 0, ACCOUNT_ERROR,
	    "", &changed, &w.err), &w);
	must(store_account_enable(w.s, &w.account_id, &state, &job, &w.err),
	    &w);
	ck_assert_int_eq(state, ACCOUNT_LIVE);
	ck_assert(uuid_is_null(&job));
}
END_TEST

static void
run_sql(struct store *s, const char *sql)
{
	struct store_rows *rows;

	must(store_query(s, w.arena, sql, NULL, 0, &rows, &w.err), &w);
}

/* B5: a delete that commits while an enable waits is not undone by it. */
START_TEST(enable_does_not_undo_a_delete)
{
	struct err err = ERR_INIT;
	enum account_state state;
	struct account *a;
	struct uuid job;
	struct store *other;
	int status;
	pid_t pid;

	must(store_account_set_state(w.s, &w.account_id, 0, ACCOUNT_DISABLED,
	    "", NULL, &w.err), &w);
	must(store_open(&other, world_db(), "deleting", &w.err), &w);
	run_sql(other, "BEGIN");
	run_sql(other, arena_printf(w.arena, "SELECT account_set_state(%s, "
	    "'{}', 'deleted', '')", world_account(&w)));
	pid = fork();
	if (pid == 0) {
		struct store *s;

		if (store_open(&s, world_db(), "enabling", &err) == -1)
			_exit(2);
		_exit(store_account_enable(s, &w.account_id, &state, &job,
		    &err) == -1 && err.kind == ERR_GONE ? 0 : 1);
	}
	while (world_int(&w, "SELECT count(*) FROM pg_stat_activity WHERE "
	    "application_name = 'enabling' AND wait_event_type = 'Lock'") == 0)
		;
	run_sql(other, "COMMIT");
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	must(store_account_load(w.s, &w.account_id, w.arena, &a, &w.err), &w);
	ck_assert_int_eq(a->state, ACCOUNT_DELETED);
	store_close(&other);
}
END_TEST

START_TEST(settings_change_and_users_go)
{
	struct account *a;
	struct uuid *ids, id;
	char *mark;
	size_t n;

	must(store_account_load(w.s, &w.account_id, w.arena, &a, &w.err), &w);
	a->imap_host = "other.example.org";
	a->secret = (const uint8_t *)"\0\1\2";
	a->secret_len = 3;
	must(store_account_mark(w.s, &a->id, w.arena, &mark, &w.err), &w);
	must(store_account_update(w.s, a, mark, &w.err), &w);
	/* Somebody else's change since the mark is not undone. */
	ck_assert_int_eq(-1, store_account_update(w.s, a, mark, &w.err));
	ck_assert_int_eq(w.err.kind, ERR_TEMPORARY);
	must(store_account_load(w.s, &w.account_id, w.arena, &a, &w.err), &w);
	ck_assert_str_eq(a->imap_host, "other.example.org");
	ck_assert_uint_eq(a->secret_len, 3);
	ck_assert_int_eq(-1, store_user_add(w.s, w.email, "", 0, &id,
	    &w.err));
	ck_assert_int_eq(w.err.kind, ERR_PERMANENT);
	must(store_user_active(w.s, &w.user_id, &w.err), &w);
	must(store_user_accounts(w.s, &w.user_id, w.arena, &ids, &n, &w.err),
	    &w);
	ck_assert_uint_eq(n, 1);
	must(store_user_delete(w.s, &w.user_id, &w.err), &w);
	must(store_user_accounts(w.s, &w.user_id, w.arena, &ids, &n, &w.err),
	    &w);
	ck_assert_uint_eq(n, 0);
	ck_assert_int_eq(-1, store_user_find(w.s, w.email, &id, &w.err));
	ck_assert_int_eq(-1, store_account_synced(w.s, &w.fence, 0, &w.err));
}
END_TEST

START_TEST(live_accounts_are_listed)
{
	struct uuid *ids;
	size_t i, n;
	int found = 0;
	bool changed;

	must(store_account_set_state(w.s, &w.account_id, 0, ACCOUNT_LIVE, "",
	    &changed, &w.err), &w);
	must(store_live_ids(w.s, w.arena, &ids, &n, &w.err), &w);
	for (i = 0; i < n; i++)
		found += uuid_is_equal(&ids[i], &w.account_id);
	ck_assert_int_eq(found, 1);
}
END_TEST

/* --- folders ------------------------------------------------------------------------------ */

/* F-A7: a wire name is bytes, more than fit into an index, and no text. */
START_TEST(any_wire_name_is_a_folder)
{
	static char longest[4097], longer[4097];
	struct folder_op ops[] = {
		{ .kind = FOLDER_CREATE, .wire = "INBOX", .path = "INBOX" },
		{ .kind = FOLDER_CREATE, .wire = "Entw\xFCrfe\\134",
		    .path = "Entw\xC3\xBCrfe" },
		{ .kind = FOLDER_CREATE, .wire = longest, .path = "long" },
		{ .kind = FOLDER_CREATE, .wire = longer, .path = "longer" },
	};
	struct folder_op rename = { .kind = FOLDER_RENAME,
		.wire = "\x80\xFF", .path = "other" };
	struct folder *f;
	size_t n, i;

	for (i = 0; i < sizeof(longest) - 1; i++)
		longest[i] = longer[i] = (char)(arc4random() % 255 + 1);
	longer[4095] = (char)(longer[4095] == 1 ? 2 : 1);
	must(store_folders_write(w.s, &w.fence, ops, 4, &w.refused, &w.err),
	    &w);
	must(store_folders_write(w.s, &w.fence, ops, 4, &w.refused, &w.err),
	    &w);
	ck_assert_uint_eq(w.refused.n, 0);
	must(store_folders_load(w.s, &w.account_id, w.arena, &f, &n, &w.err),
	    &w);
	ck_assert_uint_eq(n, 4);
	for (i = 0; i < n; i++)
		ck_assert_str_eq(f[i].wire, ops[i].wire);
	rename.id = f[1].id;
	must(store_folders_write(w.s, &w.fence, &rename, 1, &w.refused,
	    &w.err), &w);
	f = world_reload(&w, f[1].id);
	ck_assert_str_eq(f->wire, rename.wire);
}
END_TEST

START_TEST(a_refused_folder_is_left_out_alone)
{
	struct folder_op ops[700];
	struct folder *f;
	size_t n, i;

	world_text(&w, "ALTER TABLE mailbox ADD CONSTRAINT no_sevens "
	    "CHECK (path !~ '7$') NOT VALID");
	for (i = 0; i < 700; i++)
		ops[i] = (struct folder_op){ .kind = FOLDER_CREATE,
			.wire = arena_printf(w.arena, "w%zu", i),
			.path = arena_printf(w.arena, "p%zu", i) };
	/* What is no text is refused for another reason. */
	ops[650].path = "\xFF";
	must(store_folders_write(w.s, &w.fence, ops, 700, &w.refused,
	    &w.err), &w);
	ck_assert_uint_eq(w.refused.n, 71);
	ck_assert_ptr_eq(w.refused.first, &ops[7]);
	ck_assert_ptr_nonnull(strstr(w.refused.why.text, "no_sevens"));
	must(store_folders_load(w.s, &w.account_id, w.arena, &f, &n, &w.err),
	    &w);
	ck_assert_uint_eq(n, 629);
	for (i = 0; i < 700; i++)
		ck_assert_int_eq(ops[i].is_refused, i % 10 == 7 || i == 650);
	world_text(&w, "ALTER TABLE mailbox DROP CONSTRAINT no_sevens");
}
END_TEST

START_TEST(folders_are_written_loaded_and_parked)
{
	struct folder_op ops[] = {
		{ .kind = FOLDER_CREATE, .wire = "INBOX", .path = "INBOX",
		    .delimiter = '.', .role = ROLE_INBOX,
		    .is_selectable = true },
		{ .kind = FOLDER_CREATE, .wire = "B&APY-se",
		    .path = "B\xC3\xB6se", .is_selectable = false },
	};
	const struct risk_rule rule = { .limit = 1, .pause_secs = 180 };
	struct risk refused = { .step = RISK_FOLDER };
	struct folder *f;
	size_t n;

	must(store_folders_write(w.s, &w.fence, ops, 2,
	    &w.refused, &w.err), &w);
	/* Again: the same rows. */
	must(store_folders_write(w.s, &w.fence, ops, 2,
	    &w.refused, &w.err), &w);
	must(store_folders_load(w.s, &w.account_id, w.arena, &f, &n, &w.err),
	    &w);
	ck_assert_uint_eq(n, 2);
	ck_assert_int_eq(f[0].id, ops[0].id);
	ck_assert_int_eq(f[0].role, ROLE_INBOX);
	ck_assert_int_eq(f[0].delimiter, '.');
	ck_assert_int_eq(f[1].delimiter, 0);
	ck_assert(!f[1].is_selectable);
	ck_assert_str_eq(f[1].path, "B\xC3\xB6se");
	refused.folder_id = f[0].id;
	must(store_risk_count(w.s, &w.account_id, &refused, "NO: broken",
	    &rule, &w.err), &w);
	ck_assert(refused.is_news);
	must(store_folder_distrust(w.s, &w.fence, &f[0], DISTRUST_CONDSTORE,
	    "went backwards", &w.err), &w);
	f = world_reload(&w, f[0].id);
	ck_assert_int_eq(f->parked_until_secs, refused.next_secs);
	ck_assert_str_eq(f->park_reason, "NO: broken");
	ck_assert_uint_eq(f->park_failures, 1);
	ck_assert_str_eq(f->no_condstore, "went backwards");
	must(store_risk_clear(w.s, &w.fence, &refused, &w.err), &w);
	ck_assert_int_eq(0, world_reload(&w, f->id)->parked_until_secs);
}
END_TEST

/* --- quarantine (R-SYNC-9) ------------------------------------------------------------------ */

START_TEST(the_second_death_parks)
{
	struct folder *inbox = world_folder(&w, "INBOX");
	struct risk risk = { .folder_id = inbox->id, .step = RISK_PARSE,
		.uid_from = 5, .uid_to = 9 };
	const struct risk_rule rule = { .limit = 2, .pause_secs = 180 };
	struct risk *risks;
	size_t n;

	must(store_risk_count(w.s, &w.account_id, &risk, "signal 11", &rule,
	    &w.err), &w);
	must(store_risks_load(w.s, &w.account_id, w.arena, &risks, &n,
	    &w.err), &w);
	ck_assert_uint_eq(n, 1);
	ck_assert_uint_eq(risks[0].attempts, 1);
	ck_assert(!risks[0].is_parked);
	must(store_risk_count(w.s, &w.account_id, &risk, "signal 11", &rule,
	    &w.err), &w);
	must(store_risks_load(w.s, &w.account_id, w.arena, &risks, &n,
	    &w.err), &w);
	ck_assert(risks[0].is_parked);
	ck_assert_int_eq(risks[0].step, RISK_PARSE);
	ck_assert_uint_eq(risks[0].uid_to, 9);
	world_text(&w, "UPDATE quarantine SET state = 'skipped' "
	    "WHERE account_id = %s", world_account(&w));
	must(store_risk_count(w.s, &w.account_id, &risk, "signal 11", &rule,
	    &w.err), &w);
	must(store_risks_load(w.s, &w.account_id, w.arena, &risks, &n,
	    &w.err), &w);
	ck_assert(risks[0].is_skipped);
	must(store_risk_clear(w.s, &w.fence, &risk, &w.err), &w);
	must(store_risks_load(w.s, &w.account_id, w.arena, &risks, &n,
	    &w.err), &w);
	ck_assert_uint_eq(n, 0);
	/* Of a folder that is not there nothing is noted. */
	risk.folder_id = -1;
	must(store_risk_count(w.s, &w.account_id, &risk, "x", &rule,
	    &w.err), &w);
	must(store_risks_load(w.s, &w.account_id, w.arena, &risks, &n,
	    &w.err), &w);
	ck_assert_uint_eq(n, 0);
}
END_TEST

/* Minutes, hours, a day; what can be gone around is, at once. */
START_TEST(what_is_parked_is_tried_again_later_and_later)
{
	static const struct {
		enum risk_step step;
		unsigned attempts; /* before this one */
		bool is_parked;
		int64_t pause;
	} cases[] = {
		{ RISK_FETCH, 0, false, 20 },
		{ RISK_FETCH, 1, true, 180 },
		{ RISK_FETCH, 2, true, 1080 },
		{ RISK_FETCH, 3, true, 6480 },
		{ RISK_FETCH, 4, true, 38880 },
		{ RISK_FETCH, 5, true, 86400 },
		{ RISK_FETCH, 4000000000u, true, 86400 },
		{ RISK_FOLDER, 0, false, 20 },
		{ RISK_FOLDER, 1, true, 180 },
		{ RISK_PARSE, 1, true, 0 },
		{ RISK_PARSE, 2, true, 0 },
		{ RISK_PARSE, 3, true, 6480 },
		{ RISK_STORE, 1, true, 0 },
	};
	const struct risk_rule rule = { .limit = 2, .first_pause_secs = 20,
		.pause_secs = 180 };
	const struct risk_rule unproved = { .limit = UINT32_MAX,
		.pause_secs = 180 };
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct risk was = { .step = cases[i].step,
			.attempts = cases[i].attempts,
			.is_parked = cases[i].attempts >= 2 };
		struct risk r = risk_after_attempt(&was, &rule, 1000000);

		ck_assert_int_eq(r.is_parked, cases[i].is_parked);
		ck_assert_int_eq(r.is_news, cases[i].attempts == 1);
		ck_assert_int_eq(r.next_secs, 1000000 + cases[i].pause);
		/* What is not proved parks nobody, and frees nobody. */
		r = risk_after_attempt(&was, &unproved, 1000000);
		ck_assert_int_eq(r.is_parked, was.is_parked);
		was.is_skipped = true;
		was.next_secs = 0;
		r = risk_after_attempt(&was, &rule, 1000000);
		ck_assert_int_eq(r.next_secs, 0);
	}
}
END_TEST

/* --- jobs (R-JOB-2, R-JOB-3) ------------------------------------------------------------------- */

static const char *
job_state(const struct uuid *id)
{
	char text[UUID_TEXT_SIZE];

	return world_text(&w, "SELECT state FROM jobs WHERE id = '%s'",
	    uuid_format(id, text));
}

static int
take_job(struct store *s, const struct uuid *id, const char *owner,
    struct job **job_r)
{
	const struct job_ring ring = { .id = *id };

	return store_job_take(s, &ring, owner, 60, w.arena, job_r, &w.err);
}

static int
end_job(const struct uuid *id, const char *owner, unsigned number)
{
	const struct job_attempt attempt = { *id, owner, number };

	return store_job_done(w.s, &attempt, &w.err);
}

static int
fail_job(const struct uuid *id, const char *owner, const struct err *failure,
    const struct job_again *again, bool *dead_r)
{
	const struct job_attempt attempt = { *id, owner, 0 };

	return store_job_failed(w.s, &attempt, failure, again, dead_r, &w.err);
}

START_TEST(a_job_is_taken_once_and_done)
{
	struct uuid id, again;
	struct job *job;

	must(store_job_add(w.s, QUEUE_INTERACTIVE, "refresh_account_job",
	    &w.account_id, "{\"a\": \"x'\\\"\"}", &id, &w.err), &w);
	must(store_job_add(w.s, QUEUE_INTERACTIVE, "refresh_account_job",
	    &w.account_id, NULL, &again, &w.err), &w);
	ck_assert(uuid_is_equal(&id, &again));
	must(take_job(w.s, &id, "one", &job), &w);
	ck_assert_str_eq(job->kind, "refresh_account_job");
	ck_assert_str_eq(job->payload, "{\"a\": \"x'\\\"\"}");
	ck_assert_int_eq(job->queue, QUEUE_INTERACTIVE);
	ck_assert_uint_eq(job->attempts, 1);
	ck_assert(uuid_is_equal(&job->account_id, &w.account_id));
	ck_assert_int_eq(-1, take_job(w.s, &id, "two", &job));
	ck_assert_int_eq(w.err.kind, ERR_GONE);
	/* Meanwhile another is queued, but has to wait. */
	must(store_job_add(w.s, QUEUE_INTERACTIVE, "refresh_account_job",
	    &w.account_id, NULL, &again, &w.err), &w);
	ck_assert(!uuid_is_equal(&id, &again));
	ck_assert_int_eq(-1, take_job(w.s, &again, "two", &job));
	ck_assert_int_eq(w.err.kind, ERR_GONE);
	ck_assert_int_eq(-1, end_job(&id, "two", 1));
	must(end_job(&id, "one", 1), &w);
	ck_assert_str_eq(job_state(&id), "done");
	must(take_job(w.s, &again, "two", &job),
	    &w);
}
END_TEST

START_TEST(of_many_takers_one_gets_the_job)
{
	struct uuid id;
	int i, status, winners = 0;

	must(store_job_add(w.s, QUEUE_BULK, "later", &w.account_id, NULL, &id,
	    &w.err), &w);
	for (i = 0; i < 4; i++) {
		struct job *job;
		struct store *s;

		if (fork() != 0)
			continue;
		if (store_open(&s, world_db(), "taker", &w.err) == -1)
			_exit(2);
		_exit(take_job(s, &id, "taker", &job) == 0 ? 0 : w.err.kind == ERR_GONE ? 1 : 2);
	}
	for (i = 0; i < 4; i++) {
		ck_assert_int_ne(-1, wait(&status));
		ck_assert_int_ne(WEXITSTATUS(status), 2);
		winners += WEXITSTATUS(status) == 0;
	}
	ck_assert_int_eq(winners, 1);
}
END_TEST

/* B11: a job that was put back and taken again is not ended by its first
 * attempt, not even in the same worker. */
START_TEST(only_the_attempt_that_runs_has_a_say)
{
	struct err net = { .kind = ERR_NETWORK, .text = "no route" };
	const struct job_again soon = { 0, 0 };
	struct job_attempt first, second;
	struct uuid id;
	struct job *job;
	bool dead;

	must(store_job_add(w.s, QUEUE_INTERACTIVE, "x", &w.account_id, NULL,
	    &id, &w.err), &w);
	must(take_job(w.s, &id, "one", &job), &w);
	first = (struct job_attempt){ id, "one", job->attempts };
	must(store_job_prove(w.s, &first, &w.err), &w);
	world_text(&w, "UPDATE jobs SET lock_until = now() - "
	    "interval '1 second' WHERE kind = 'x' AND account_id = %s",
	    world_account(&w));
	must(store_jobs_requeue(w.s, &w.err), &w);
	ck_assert_int_eq(-1, store_job_prove(w.s, &first, &w.err));
	must(take_job(w.s, &id, "one", &job), &w);
	second = (struct job_attempt){ id, "one", job->attempts };
	ck_assert_uint_eq(second.number, first.number + 1);
	ck_assert_int_eq(-1, store_job_prove(w.s, &first, &w.err));
	ck_assert_int_eq(w.err.kind, ERR_GONE);
	ck_assert_int_eq(-1, store_job_done(w.s, &first, &w.err));
	ck_assert_int_eq(-1, store_job_yield(w.s, &first, &w.err));
	ck_assert_int_eq(-1, store_job_failed(w.s, &first, &net, &soon, &dead,
	    &w.err));
	ck_assert_str_eq(job_state(&id), "running");
	must(store_job_done(w.s, &second, &w.err), &w);
}
END_TEST

static void
bulk_job(const char *kind, int64_t served_msecs, struct uuid *id_r)
{
	must(store_job_add(w.s, QUEUE_BULK, kind, &w.account_id, NULL, id_r,
	    &w.err), &w);
	world_text(&w, "UPDATE jobs SET served_msecs = %lld WHERE kind = '%s' "
	    "AND account_id = %s RETURNING id", (long long)served_msecs, kind,
	    world_account(&w));
}

/* A9: whose bulk job had least of the workers goes first, and those who had
 * more make room for it. */
START_TEST(bulk_jobs_take_turns)
{
	const struct job_ring ring = { .is_bulk = true };
	struct job_attempt big;
	struct uuid first, second, *ids;
	struct job *job;
	size_t n;

	world_text(&w, "DELETE FROM jobs");
	bulk_job("big", 60000, &first);
	must(store_job_take(w.s, &ring, "one", 60, w.arena, &job, &w.err),
	    &w);
	ck_assert(uuid_is_equal(&job->id, &first));
	big = (struct job_attempt){ first, "one", job->attempts };
	must(store_jobs_to_yield(w.s, "one", 0, w.arena, &ids, &n), &w);
	ck_assert_uint_eq(n, 0); /* nobody waits */
	bulk_job("other", 40000, &second);
	must(store_jobs_to_yield(w.s, "one", 0, w.arena, &ids, &n), &w);
	ck_assert_uint_eq(n, 0); /* one that had more than half as much */
	bulk_job("small", 0, &second);
	must(store_jobs_to_yield(w.s, "one", 5, w.arena, &ids, &n), &w);
	ck_assert_uint_eq(n, 0); /* its turn is not over */
	must(store_jobs_to_yield(w.s, "two", 0, w.arena, &ids, &n), &w);
	ck_assert_uint_eq(n, 0); /* somebody else's */
	must(store_jobs_to_yield(w.s, "one", 0, w.arena, &ids, &n), &w);
	ck_assert_uint_eq(n, 1);
	ck_assert(uuid_is_equal(&ids[0], &first));
	must(store_job_yield(w.s, &big, &w.err), &w);
	ck_assert_int_eq(0, world_int(&w, "SELECT attempts FROM jobs "
	    "WHERE kind = 'big'"));
	ck_assert_int_ge(world_int(&w, "SELECT served_msecs FROM jobs "
	    "WHERE kind = 'big'"), 60000);
	/* Whatever is rung for. */
	must(store_job_take(w.s, &(struct job_ring){ first, true }, "one", 60,
	    w.arena, &job, &w.err), &w);
	ck_assert_str_eq(job->kind, "small");
	must(store_job_take(w.s, &ring, "one", 60, w.arena, &job, &w.err),
	    &w);
	ck_assert_str_eq(job->kind, "other");
}
END_TEST

START_TEST(a_failed_job_waits_or_dies)
{
	struct err net = { .kind = ERR_NETWORK, .text = "no route" };
	struct err never = { .kind = ERR_PERMANENT, .text = "no such thing" };
	const int64_t now = clock_wall_secs();
	const struct job_again later = { now + 3600, now };
	const struct job_again at_once = { now, now };
	struct uuid id;
	struct job *job;
	bool dead;

	must(store_job_add(w.s, QUEUE_BULK, "x", &w.account_id, NULL, &id,
	    &w.err), &w);
	must(take_job(w.s, &id, "one", &job), &w);
	must(fail_job(&id, "one", &net, &later, &dead), &w);
	ck_assert(!dead);
	ck_assert_int_eq(-1, take_job(w.s, &id, "one", &job));
	ck_assert_int_eq(w.err.kind, ERR_GONE);
	world_text(&w, "UPDATE jobs SET run_at = now() WHERE kind = 'x' "
	    "AND account_id = %s", world_account(&w));
	must(take_job(w.s, &id, "one", &job), &w);
	ck_assert_uint_eq(job->attempts, 2);
	ck_assert_int_eq(-1, fail_job(&id, "two", &net, &at_once, &dead));
	must(fail_job(&id, "one", &never, &at_once, &dead),
	    &w);
	ck_assert(dead);
	ck_assert_str_eq(job_state(&id), "dead");
}
END_TEST

START_TEST(a_job_that_got_further_starts_its_attempts_anew)
{
	struct folder *inbox = world_folder(&w, "INBOX");
	struct risk risk = { .folder_id = inbox->id, .step = RISK_PARSE,
		.uid_from = 5, .uid_to = 5 };
	const struct risk_rule rule = { .limit = 2, .pause_secs = 180 };
	struct err net = { .kind = ERR_NETWORK, .text = "no route" };
	const int64_t now = clock_wall_secs();
	const struct job_again again = { now + 3600, now };
	struct job *job;
	bool dead;
	int i;

	/* Each death is one of a message that is noted, or parked, by it. */
	for (i = 0; i < 30; i++) {
		risk.uid_from = risk.uid_to = 5 + (unsigned)i / 2;
		must(store_risk_count(w.s, &w.account_id, &risk, "signal 11",
		    &rule, &w.err), &w);
		must(take_job(w.s, &w.job_id, "one", &job), &w);
		ck_assert_uint_eq(job->attempts, 1);
		must(fail_job(&w.job_id, "one", &net, &again, &dead), &w);
		ck_assert(!dead);
	}
	/* Nothing more is known: an attempt is an attempt. */
	must(take_job(w.s, &w.job_id, "one", &job), &w);
	must(fail_job(&w.job_id, "one", &net, &again, &dead), &w);
	ck_assert_int_eq(-1, take_job(w.s, &w.job_id, "one", &job));
	world_text(&w, "UPDATE jobs SET run_at = now() WHERE account_id = %s",
	    world_account(&w));
	must(take_job(w.s, &w.job_id, "one", &job), &w);
	ck_assert_uint_eq(job->attempts, 2);
}
END_TEST


static bool
is_due(const struct uuid *id, int64_t rung_secs)
{
	struct due_job *due;
	size_t i, n;
	bool found = false;

	must(store_jobs_requeue(w.s, &w.err), &w);
	must(store_jobs_due(w.s, 1000, rung_secs, w.arena, &due, &n, &w.err),
	    &w);
	for (i = 0; i < n; i++)
		found = found || uuid_is_equal(&due[i].id, id);
	return found;
}

START_TEST(what_outlived_its_lock_is_queued_again)
{
	struct uuid id;
	struct job *job;

	must(store_job_add(w.s, QUEUE_BULK, "x", &w.account_id, NULL, &id,
	    &w.err), &w);
	ck_assert(is_due(&id, 30));
	ck_assert(!is_due(&id, 30)); /* has been rung for */
	must(take_job(w.s, &id, "one", &job), &w);
	ck_assert(!is_due(&id, 0));
	world_text(&w, "UPDATE jobs SET lock_until = now() - "
	    "interval '1 second' WHERE kind = 'x' AND account_id = %s",
	    world_account(&w));
	ck_assert(is_due(&id, 0));
	ck_assert_int_eq(-1, end_job(&id, "one", 1));
	ck_assert_int_eq(w.err.kind, ERR_GONE);
	/* The last attempt of all. */
	world_text(&w, "UPDATE jobs SET state = 'running', owner = 'one', "
	    "lock_until = now() - interval '1 second', attempts = 20 "
	    "WHERE kind = 'x' AND account_id = %s", world_account(&w));
	ck_assert(!is_due(&id, 0));
	ck_assert_str_eq(job_state(&id), "dead");
}
END_TEST

START_TEST(refresh_queues_a_job)
{
	const char *id = world_text(&w, "SELECT refresh(%s)",
	    world_account(&w));

	ck_assert_str_eq("interactive|refresh_account_job", world_text(&w,
	    "SELECT concat_ws('|', queue, kind) FROM jobs WHERE id = '%s'",
	    id));
}
END_TEST

/* --- blob rows ------------------------------------------------------------------------------------ */

static int
count_blob(void *arg, const struct blob_ref *ref)
{
	(void)ref;
	++*(int *)arg;
	return 0;
}

START_TEST(blobs_are_listed_and_moved)
{
	struct folder *inbox = world_folder(&w, "INBOX");
	struct mail m = { .uid = 1 };
	int64_t id = world_deliver(&w, inbox, &m);
	struct blob_ref ref, to, wrong;
	struct segment_use *use;
	uint64_t dead;
	int n = 0, before;
	size_t n_use;
	bool moved;

	must(store_message_blob(w.s, id, &ref, &w.err), &w);
	ck_assert_mem_eq(ref.digest, mail_blob(&w, &m).digest, DIGEST_SIZE);
	ck_assert_int_eq(ref.segment, 7);
	to = wrong = ref;
	to.segment = 1000;
	to.offset = 4;
	wrong.offset = 12345;
	must(store_blob_move(w.s, &wrong, &to, &moved, &w.err), &w);
	ck_assert(!moved);
	must(store_blob_move(w.s, &ref, &to, &moved, &w.err), &w);
	ck_assert(moved);
	must(store_message_blob(w.s, id, &ref, &w.err), &w);
	ck_assert_int_eq(ref.segment, 1000);
	must(store_blobs_each(w.s, count_blob, &n, &w.err), &w);
	ck_assert_int_ge(n, 1);
	before = n;
	must(store_segment_each(w.s, 999, count_blob, &n, &w.err), &w);
	ck_assert_int_eq(n, before);
	must(store_segment_each(w.s, 1000, count_blob, &n, &w.err), &w);
	ck_assert_int_eq(n, before + 1);
	/* F-E5: counted once, then kept up to date by what is deleted. */
	must(store_segment_count(w.s, 1000, 5000, 64, &dead, &w.err), &w);
	ck_assert_uint_eq(dead, 5000 - 100 - 64);
	world_apply(&w, inbox, NULL, 0, &m.uid, 1);
	world_text(&w, "SELECT messages_remove(%s, ARRAY[%lld]::bigint[])",
	    world_account(&w), (long long)id);
	must(store_segments(w.s, w.arena, &use, &n_use, &w.err), &w);
	while (n_use > 0 && use->id != 1000)
		use++, n_use--;
	ck_assert_uint_ge(n_use, 1);
	ck_assert_uint_eq(use->counted_size, 5000);
	ck_assert_uint_eq(use->dead_bytes, 5000 - 64);
	must(store_segment_forget(w.s, 1000, &w.err), &w);
	ck_assert_int_eq(-1, store_message_blob(w.s, -1, &ref, &w.err));
	ck_assert_int_eq(w.err.kind, ERR_GONE);
}
END_TEST

START_TEST(a_file_of_its_own_is_reported_dead)
{
	struct folder *inbox = world_folder(&w, "INBOX");
	struct mail m = { .uid = 1 };
	struct place place = mail_place(&m);
	struct blob_ref blob = mail_blob(&w, &m);
	struct content c = { .snippet = "" };
	uint8_t (*digests)[DIGEST_SIZE];
	const uint32_t gone[] = { 1 };
	size_t n;
	bool more;

	blob.segment = 0;
	batch_add(w.batch, &place, &blob, &c);
	world_commit(&w, inbox);
	world_apply(&w, inbox, NULL, 0, gone, 1);
	world_text(&w, "UPDATE message_state SET deleted_at = now() - "
	    "interval '31 days' WHERE account_id = %s", world_account(&w));
	do
		must(store_purge(w.s, 100, 30, &more, &w.err), &w);
	while (more);
	must(store_blob_files_dead(w.s, 0, 10, w.arena, &digests, &n, &w.err),
	    &w);
	ck_assert_uint_eq(n, 1);
	ck_assert_mem_eq(digests[0], blob.digest, DIGEST_SIZE);
	must(store_blob_file_forget(w.s, digests[0], &w.err), &w);
	must(store_blob_files_dead(w.s, 0, 10, w.arena, &digests, &n, &w.err),
	    &w);
	ck_assert_uint_eq(n, 0);
}
END_TEST

/* --- tables for people ----------------------------------------------------------------------------- */

START_TEST(a_query_gives_names_texts_and_nulls)
{
	const char *params[] = { "5", NULL, "x'y" };
	struct store_rows *rows;

	must(store_query(w.s, w.arena, "SELECT i AS number, $2::text AS nil, "
	    "$3::text AS word FROM generate_series(1, $1::int) i", params, 3,
	    &rows, &w.err), &w);
	ck_assert_uint_eq(rows->n_columns, 3);
	ck_assert_uint_eq(rows->n_rows, 5);
	ck_assert_str_eq(rows->columns[1], "nil");
	ck_assert_str_eq(rows->cells[4 * 3], "5");
	ck_assert_ptr_null(rows->cells[1]);
	ck_assert_str_eq(rows->cells[2], "x'y");
	ck_assert_int_eq(-1, store_query(w.s, w.arena, "SELECT 1/0", NULL, 0,
	    &rows, &w.err));
	ck_assert_int_eq(w.err.kind, ERR_PERMANENT);
	ck_assert_int_eq(-1, store_query(w.s, w.arena, "SELECT * FROM nothing",
	    NULL, 0, &rows, &w.err));
	ck_assert_int_eq(w.err.kind, ERR_TEMPORARY);
	ck_assert_int_eq(1, world_int(&w, "SELECT 1"));
}
END_TEST

static Suite *
make_suite(void)
{
	Suite *suite = suite_create("store");
	TCase *t = tcase_create("store");

	tcase_add_checked_fixture(t, open_world, close_world);
	tcase_set_timeout(t, 300);
	tcase_add_test(t, migrate_twice_is_migrate_once);
	tcase_add_test(t, migrations_at_the_same_time_do_it_once);
	tcase_add_test(t, a_newer_database_is_left_alone);
	tcase_add_test(t, only_a_schema_that_fits_is_worked_with);
	tcase_add_test(t, a_file_says_which_older_programs_go_on);
	tcase_add_test(t, a_step_that_fails_leaves_nothing);
	tcase_add_test(t, no_server_is_a_database_error);
	tcase_add_test(t, a_superseded_owner_writes_nothing);
	tcase_add_test(t, two_owners_of_one_epoch_are_told_apart);
	tcase_add_test(t, a_row_locked_by_a_stranger_is_told_soon);
	tcase_add_test(t, only_a_lost_session_is_postgresql_away);
	tcase_add_loop_test(t, every_way_out_of_live_raises_the_fence, 0, 4);
	tcase_add_test(t, a_predecessor_stopped_in_mid_pipeline_is_ended);
	tcase_add_test(t, nothing_of_a_predecessor_comes_after_the_hand_over);
	tcase_add_test(t, an_account_can_be_disabled_though_its_owner_is_stuck);
	tcase_add_test(t, an_account_is_found_and_loaded);
	tcase_add_test(t, an_address_of_two_accounts_is_ambiguous);
	tcase_add_test(t, an_account_is_added_with_fence_and_job);
	tcase_add_test(t, refusals_in_a_row_end_in_error);
	tcase_add_test(t, enable_goes_on_where_it_was);
	tcase_add_test(t, enable_does_not_undo_a_delete);
	tcase_add_test(t, settings_change_and_users_go);
	tcase_add_test(t, live_accounts_are_listed);
	tcase_add_test(t, any_wire_name_is_a_folder);
	tcase_add_test(t, a_refused_folder_is_left_out_alone);
	tcase_add_test(t, folders_are_written_loaded_and_parked);
	tcase_add_test(t, the_second_death_parks);
	tcase_add_test(t, what_is_parked_is_tried_again_later_and_later);
	tcase_add_test(t, a_job_that_got_further_starts_its_attempts_anew);
	tcase_add_test(t, a_job_is_taken_once_and_done);
	tcase_add_test(t, of_many_takers_one_gets_the_job);
	tcase_add_test(t, only_the_attempt_that_runs_has_a_say);
	tcase_add_test(t, bulk_jobs_take_turns);
	tcase_add_test(t, a_failed_job_waits_or_dies);
	tcase_add_test(t, what_outlived_its_lock_is_queued_again);
	tcase_add_test(t, refresh_queues_a_job);
	tcase_add_test(t, blobs_are_listed_and_moved);
	tcase_add_test(t, a_file_of_its_own_is_reported_dead);
	tcase_add_test(t, a_query_gives_names_texts_and_nulls);
	suite_add_tcase(suite, t);
	return suite;
}

int
main(void)
{
	return world_run(make_suite());
}
