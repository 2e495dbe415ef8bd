/*
 * test_imap_dovecot.c - a whole session against a real Dovecot, plain,
 * STARTTLS and TLS.  Run it through tests/with-dovecot.
 */
#define _GNU_SOURCE
#include "base/buf.h"
#include "imap/imap.h"

#include <check.h>
#include <errno.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MESSAGES 500

static const struct {
	enum tls_mode tls;
	const char *user;
} ways[] = {
	{ TLS_NONE, "plain" },
	{ TLS_STARTTLS, "starttls" },
	{ TLS_IMPLICIT, "tls" },
};

static struct imap *imap;
static struct arena *arena;
static struct err err;
static char maildir[500];

#define OK(call)                                            \
	do {                                                \
		if ((call) == -1)                           \
			ck_abort_msg("%s: %s", #call, err.text); \
	} while (0)

/* The owner of the mail directory also owns what is put there. */
static void
give_away(const char *path)
{
	struct stat st;

	if (stat(getenv("MAILHERD_TEST_IMAP_MAIL"), &st) == 0 &&
	    chown(path, st.st_uid, st.st_gid) == -1)
		perror(path);
}

static void
make_dir(const char *name)
{
	char path[600];

	snprintf(path, sizeof(path), "%s%s", maildir, name);
	if (mkdir(path, 0700) == -1 && errno != EEXIST)
		perror(path);
	give_away(path);
}

static void
deliver(unsigned number)
{
	char tmp[600], new[600];
	FILE *fp;
	unsigned i;

	snprintf(tmp, sizeof(tmp), "%s/tmp/%u.test", maildir, number);
	snprintf(new, sizeof(new), "%s/new/%u.test", maildir, number);
	fp = fopen(tmp, "w");
	ck_assert_ptr_nonnull(fp);
	fprintf(fp, "From: a@example.org\r\nMessage-ID: <%u@example.org>\r\n"
	    "Subject: number %u\r\n\r\n", number, number);
	for (i = 0; i < 20 + number % 50; i++)
		fprintf(fp, "line %u of message %u\r\n", i, number);
	fclose(fp);
	give_away(tmp);
	ck_assert_int_eq(rename(tmp, new), 0);
}

static void
start(const char *user)
{
	unsigned i;

	err = (struct err)ERR_INIT;
	arena = arena_new("test");
	snprintf(maildir, sizeof(maildir), "%s/%s",
	    getenv("MAILHERD_TEST_IMAP_MAIL"), user);
	make_dir("");
	snprintf(maildir, sizeof(maildir), "%s/%s/Maildir",
	    getenv("MAILHERD_TEST_IMAP_MAIL"), user);
	make_dir("");
	make_dir("/tmp");
	make_dir("/new");
	make_dir("/cur");
	for (i = 1; i <= MESSAGES; i++)
		deliver(i);
}

static int
open_as(enum tls_mode tls, const char *user, const char *password)
{
	struct imap_params params = {
		.host = getenv("MAILHERD_TEST_IMAP_HOST"),
		.tls = tls, .login = user, .password = password,
		.connect_msecs = 10000, .command_msecs = 20000,
		.max_line = 1 << 20, .max_literal = 1 << 28,
		.max_reply = 8 << 20 };

	params.port = (uint16_t)strtol(getenv(tls == TLS_IMPLICIT ?
		"MAILHERD_TEST_IMAP_TLS_PORT" : "MAILHERD_TEST_IMAP_PORT"),
	    NULL, 10);
	return imap_open(&imap, &params, &err);
}

/* --- what comes in ------------------------------------------------------- */

static struct {
	uint32_t uids[MESSAGES + 10];
	char ids[MESSAGES + 10][40];
	size_t n;
	struct buf body;
	size_t n_bodies;
} got;

static int
on_place(void *arg, const struct place *place)
{
	(void)arg;
	ck_assert_uint_lt(got.n, MESSAGES + 10);
	ck_assert(place->has_flags && place->has_internal_date);
	ck_assert_uint_gt(place->size, 0);
	ck_assert_uint_gt(place->modseq, 0);
	snprintf(got.ids[got.n], sizeof(got.ids[0]), "%s", place->message_id);
	got.uids[got.n++] = place->uid;
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
	char id[60];
	size_t i;

	(void)arg;
	ck_assert(has_body);
	ck_assert_uint_eq(place->size, got.body.len);
	for (i = 0; i < got.n && got.uids[i] != place->uid; i++)
		;
	ck_assert_uint_lt(i, got.n);
	snprintf(id, sizeof(id), "Message-ID: <%s>\r\n", got.ids[i]);
	ck_assert_ptr_nonnull(strstr(got.body.data, id));
	buf_reset(&got.body);
	got.n_bodies++;
	return 0;
}

static const struct imap_folder *
find(const struct imap_folder *folders, size_t n, enum folder_role role)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (folders[i].role == role)
			return &folders[i];
	ck_abort_msg("no folder with role %d", role);
	return NULL;
}

static void
look_around(void)
{
	const struct imap_sink sink = { on_bytes, on_done, NULL, NULL };
	struct imap_folder *folders;
	struct imap_status status[2];
	struct imap_stats before, after;
	const char *wires[2];
	size_t n;

	OK(imap_list(imap, arena, &folders, &n, &err));
	wires[0] = find(folders, n, ROLE_INBOX)->wire;
	wires[1] = find(folders, n, ROLE_SENT)->wire;
	imap_stats(imap, &before);
	OK(imap_status(imap, wires, 2, status, &err));
	imap_stats(imap, &after);
	ck_assert_uint_eq(after.round_trips - before.round_trips, 1);
	ck_assert_uint_eq(status[0].messages, MESSAGES);
	ck_assert_uint_gt(status[0].highestmodseq, 0);
	ck_assert_uint_eq(status[1].messages, 0);
	memset(&got, 0, sizeof(got));
	OK(imap_select(imap, "INBOX", NULL, &(struct imap_selected){ 0 },
	    NULL, &err));
	OK(imap_scan_uids(imap, 1, 0, ITEM_FLAGS | ITEM_SIZE | ITEM_DATE |
		ITEM_MODSEQ | ITEM_MESSAGE_ID, on_place, NULL, &err));
	ck_assert_uint_eq(got.n, MESSAGES);
	OK(imap_fetch(imap, got.uids, got.n, 40, &sink, &err));
	ck_assert_uint_eq(got.n_bodies, MESSAGES);
}


static void
wait_for(pid_t pid)
{
	int status;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

static void
idle_and_deliver(void)
{
	enum imap_wake wake;
	int control[2];
	pid_t pid;

	ck_assert_int_eq(pipe(control), 0);
	pid = fork();
	if (pid == 0) {
		poll(NULL, 0, 200);
		deliver(MESSAGES + 1);
		_exit(0);
	}
	OK(imap_idle(imap, control[0], 20000, &wake, &err));
	ck_assert_int_eq(wake, WAKE_CHANGED);
	wait_for(pid);
	OK(imap_idle(imap, control[0], 100, &wake, &err));
	ck_assert_int_eq(write(control[1], "x", 1), 1);
	OK(imap_idle(imap, control[0], 20000, &wake, &err));
	ck_assert_int_eq(wake, WAKE_CONTROL);
}

/* Removing a file of the Maildir is an expunge by somebody else. */
static void
follow_changes(void)
{
	struct imap_changes changes = { .arena = arena };
	struct imap_changes more = { .arena = arena };
	struct imap_selected now, then;
	struct cursor known = { .uidvalidity = 0 };
	char command[700];

	OK(imap_unselect(imap, &err));
	OK(imap_select(imap, "INBOX", NULL, &then, NULL, &err));
	OK(imap_unselect(imap, &err));
	known.uidvalidity = then.uidvalidity;
	known.uidnext = then.uidnext;
	known.highestmodseq = then.highestmodseq;
	snprintf(command, sizeof(command), "cd %s && f=$(ls cur/7.test*) && "
	    "rm \"$f\" && f=$(ls cur/9.test*) && mv \"$f\" cur/9.test:2,S",
	    maildir);
	ck_assert_int_eq(system(command), 0);
	OK(imap_select(imap, "INBOX", &known, &now, &changes, &err));
	ck_assert_uint_eq(now.uidvalidity, then.uidvalidity);
	ck_assert_uint_eq(now.exists, then.exists - 1);
	ck_assert_uint_gt(now.highestmodseq, then.highestmodseq);
	ck_assert_uint_eq(changes.n_vanished, 1);
	ck_assert_uint_eq(changes.n_changed, 1);
	ck_assert_uint_eq(changes.changed[0].flags.bits, FLAG_SEEN);
	OK(imap_changed_since(imap, 1, then.uidnext - 1,
	    then.highestmodseq, &more, &err));
	ck_assert_uint_eq(more.n_vanished, 1);
	ck_assert_uint_eq(more.vanished[0], changes.vanished[0]);
	ck_assert_uint_eq(more.n_changed, 1);
}

START_TEST(a_whole_session)
{
	struct imap_selected selected;

	start(ways[_i].user);
	OK(open_as(ways[_i].tls, ways[_i].user, "secret"));
	ck_assert_uint_eq(imap_caps(imap) & (IMAP_QRESYNC | IMAP_IDLE |
		IMAP_MOVE | IMAP_UIDPLUS),
	    IMAP_QRESYNC | IMAP_IDLE | IMAP_MOVE | IMAP_UIDPLUS);
	look_around();
	idle_and_deliver();
	follow_changes();
	ck_assert_int_eq(imap_select(imap, "no such folder", NULL,
	    &selected, NULL, &err), -1);
	ck_assert_int_eq(err.kind, ERR_SERVER);
	imap_close(&imap);
	arena_free(&arena);
}
END_TEST

START_TEST(a_wrong_password_is_an_auth_error)
{
	ck_assert_int_eq(open_as(TLS_IMPLICIT, "ann", "wrong"), -1);
	ck_assert_msg(err.kind == ERR_AUTH, "%s", err.text);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("imap dovecot");
	TCase *t = tcase_create("dovecot");
	SRunner *runner;
	int failed;

	if (getenv("MAILHERD_TEST_IMAP_PORT") == NULL)
		return 77;
	if (imap_init(getenv("MAILHERD_TEST_IMAP_CA"), &err) == -1) {
		fprintf(stderr, "%s\n", err.text);
		return 99;
	}
	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, a_whole_session, 0, 3);
	tcase_add_test(t, a_wrong_password_is_an_auth_error);
	suite_add_tcase(suite, t);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
