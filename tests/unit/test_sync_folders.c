/*
 * test_sync_folders.c - what a LIST means for our folders.
 */
#include "sync/folders.h"

#include "sync/roles.h"

#include <check.h>
#include <time.h>

static struct arena *arena;

static void
setup(void)
{
	arena = arena_new("test");
}

static void
teardown(void)
{
	arena_free(&arena);
}

static struct folder
ours(int64_t id, const char *name, uint32_t uidvalidity, uint32_t uidnext)
{
	struct folder f = { .id = id, .path = name, .wire = name,
		.delimiter = '/', .is_selectable = true,
		.cursor = { .uidvalidity = uidvalidity,
		    .uidnext = uidnext } };

	if (is_inbox_name(name))
		f.role = ROLE_INBOX;
	return f;
}

static struct imap_folder
theirs(const char *name, enum folder_role role)
{
	struct imap_folder f = { .wire = name, .path = name,
		.delimiter = '/', .role = role, .is_selectable = true };

	return f;
}

static struct imap_status
status(uint32_t uidvalidity, uint32_t uidnext)
{
	struct imap_status st = { .is_known = true,
		.uidvalidity = uidvalidity, .uidnext = uidnext };

	return st;
}

static struct folder_op *ops;
static size_t n_ops;

static void
diff(const struct folder *local, size_t n_local,
    const struct imap_folder *listed, const struct imap_status *st,
    size_t n_listed)
{
	struct imap_status *none = ARENA_ARRAY(arena, struct imap_status,
	    n_listed + 2);
	struct imap_folder *whole;
	size_t n;
	bool is_whole;

	folders_normalise(arena, listed, n_listed, &whole, &n, &is_whole);
	folders_diff(arena, NULL, local, n_local, whole,
	    st != NULL ? st : none, n, is_whole, &ops, &n_ops);
}

static const struct folder_op *
find_op(enum folder_op_kind kind, int64_t id)
{
	size_t i;

	for (i = 0; i < n_ops; i++)
		if (ops[i].kind == kind && ops[i].id == id)
			return &ops[i];
	return NULL;
}

START_TEST(a_new_account_gets_all_its_folders)
{
	struct imap_folder listed[] = { theirs("INBOX", ROLE_NONE),
		theirs("Sent", ROLE_SENT), theirs("Work", ROLE_NONE) };

	diff(NULL, 0, listed, NULL, 3);
	ck_assert_uint_eq(n_ops, 3);
	ck_assert_int_eq(ops[0].kind, FOLDER_CREATE);
	ck_assert_int_eq(ops[0].role, ROLE_INBOX);
	ck_assert_int_eq(ops[1].role, ROLE_SENT);
	ck_assert_int_eq(ops[2].role, ROLE_NONE);
}
END_TEST

START_TEST(an_equal_list_changes_nothing)
{
	struct folder local[] = { ours(1, "INBOX", 1, 5),
		ours(2, "Work", 2, 9) };
	struct imap_folder listed[] = { theirs("INBOX", ROLE_NONE),
		theirs("Work", ROLE_NONE) };

	diff(local, 2, listed, NULL, 2);
	ck_assert_uint_eq(n_ops, 0);
}
END_TEST

START_TEST(inbox_in_any_case_is_one_folder) /* L058 */
{
	struct folder local[] = { ours(1, "INBOX", 1, 5) };
	struct imap_folder listed[] = { theirs("Inbox", ROLE_NONE),
		theirs("INBOX", ROLE_NONE) };

	diff(local, 1, listed, NULL, 2);
	ck_assert_uint_eq(n_ops, 0);
}
END_TEST

START_TEST(other_names_differ_by_case) /* L059 */
{
	struct imap_folder listed[] = { theirs("INBOX", ROLE_NONE),
		theirs("Test", ROLE_NONE), theirs("test", ROLE_NONE) };

	diff(NULL, 0, listed, NULL, 3);
	ck_assert_uint_eq(n_ops, 3);
}
END_TEST

START_TEST(a_list_without_inbox_proves_no_absence) /* L063 */
{
	struct folder local[] = { ours(1, "INBOX", 1, 5),
		ours(2, "Work", 2, 9) };
	struct imap_folder listed[] = { theirs("Other", ROLE_NONE) };

	diff(local, 2, listed, NULL, 1);
	ck_assert_ptr_null(find_op(FOLDER_MISSING, 2));
	ck_assert_ptr_nonnull(find_op(FOLDER_CREATE, 0));
	diff(local, 2, NULL, NULL, 0);
	ck_assert_ptr_null(find_op(FOLDER_MISSING, 2));
	ck_assert_ptr_null(find_op(FOLDER_MISSING, 1));
}
END_TEST

START_TEST(a_folder_is_missing_first_and_gone_second)
{
	struct folder local[] = { ours(1, "INBOX", 1, 5),
		ours(2, "Work", 2, 9) };
	struct imap_folder listed[] = { theirs("INBOX", ROLE_NONE) };

	diff(local, 2, listed, NULL, 1);
	ck_assert_uint_eq(n_ops, 1);
	ck_assert_ptr_nonnull(find_op(FOLDER_MISSING, 2));
	local[1].missing_since_secs = 1000;
	diff(local, 2, listed, NULL, 1);
	ck_assert_uint_eq(n_ops, 1);
	ck_assert_ptr_nonnull(find_op(FOLDER_VANISH, 2));
}
END_TEST

START_TEST(a_folder_that_is_back_is_updated)
{
	struct folder local[] = { ours(1, "INBOX", 1, 5),
		ours(2, "Work", 2, 9) };
	struct imap_folder listed[] = { theirs("INBOX", ROLE_NONE),
		theirs("Work", ROLE_NONE) };

	local[1].missing_since_secs = 1000;
	diff(local, 2, listed, NULL, 2);
	ck_assert_uint_eq(n_ops, 1);
	ck_assert_ptr_nonnull(find_op(FOLDER_UPDATE, 2));
}
END_TEST

START_TEST(a_folder_deleted_above_its_subfolders_is_gone)
{
	struct folder local[] = { ours(1, "INBOX", 1, 5),
		ours(2, "A", 2, 9), ours(3, "A/B", 3, 4) };
	struct imap_folder listed[] = { theirs("INBOX", ROLE_NONE),
		theirs("A", ROLE_NONE), theirs("A/B", ROLE_NONE) };

	listed[1].is_selectable = false;
	diff(local, 3, listed, NULL, 3);
	ck_assert_uint_eq(n_ops, 1);
	ck_assert_ptr_nonnull(find_op(FOLDER_MISSING, 2));
	local[1].missing_since_secs = 1000;
	diff(local, 3, listed, NULL, 3);
	ck_assert_uint_eq(n_ops, 1);
	ck_assert_ptr_nonnull(find_op(FOLDER_VANISH, 2));
	/* The name stays, as a row of its own. */
	local[1] = local[2];
	diff(local, 2, listed, NULL, 3);
	ck_assert_uint_eq(n_ops, 1);
	ck_assert_ptr_nonnull(find_op(FOLDER_CREATE, 0));
	ck_assert(!ops[0].is_selectable);
}
END_TEST

START_TEST(a_rename_is_known_by_its_uidvalidity)
{
	struct folder local[] = { ours(1, "INBOX", 1, 5),
		ours(2, "Work", 22, 9) };
	struct imap_folder listed[] = { theirs("INBOX", ROLE_NONE),
		theirs("Job", ROLE_NONE) };
	struct imap_status st[] = { status(1, 5), status(22, 9) };

	diff(local, 2, listed, st, 2);
	ck_assert_uint_eq(n_ops, 1);
	ck_assert_ptr_nonnull(find_op(FOLDER_RENAME, 2));
	ck_assert_str_eq(ops[0].wire, "Job");
}
END_TEST

START_TEST(no_rename_when_uidnext_fell)
{
	struct folder local[] = { ours(1, "INBOX", 1, 5),
		ours(2, "Work", 22, 9) };
	struct imap_folder listed[] = { theirs("INBOX", ROLE_NONE),
		theirs("Job", ROLE_NONE) };
	struct imap_status st[] = { status(1, 5), status(22, 8) };

	diff(local, 2, listed, st, 2);
	ck_assert_uint_eq(n_ops, 2);
	ck_assert_ptr_nonnull(find_op(FOLDER_MISSING, 2));
	ck_assert_ptr_nonnull(find_op(FOLDER_CREATE, 0));
}
END_TEST

START_TEST(no_rename_when_two_came)
{
	struct folder local[] = { ours(1, "INBOX", 1, 5),
		ours(2, "Work", 22, 9) };
	struct imap_folder listed[] = { theirs("INBOX", ROLE_NONE),
		theirs("Job", ROLE_NONE), theirs("Play", ROLE_NONE) };
	struct imap_status st[] = { status(1, 5), status(22, 9),
		status(22, 10) };

	diff(local, 2, listed, st, 3);
	ck_assert_ptr_null(find_op(FOLDER_RENAME, 2));
	ck_assert_ptr_nonnull(find_op(FOLDER_MISSING, 2));
}
END_TEST

START_TEST(no_rename_where_all_folders_share_a_uidvalidity)
{
	struct folder local[] = { ours(1, "INBOX", 1, 5),
		ours(2, "Work", 1, 9) };
	struct imap_folder listed[] = { theirs("INBOX", ROLE_NONE),
		theirs("Job", ROLE_NONE) };
	struct imap_status st[] = { status(1, 5), status(1, 9) };

	diff(local, 2, listed, st, 2);
	ck_assert_ptr_null(find_op(FOLDER_RENAME, 2));
	ck_assert_ptr_nonnull(find_op(FOLDER_MISSING, 2));
}
END_TEST

START_TEST(a_tree_that_is_renamed_keeps_every_folder)
{
	struct folder local[] = { ours(1, "INBOX", 1, 5),
		ours(2, "A", 22, 9), ours(3, "A/B", 23, 4) };
	struct imap_folder listed[] = { theirs("INBOX", ROLE_NONE),
		theirs("Z", ROLE_NONE), theirs("Z/B", ROLE_NONE) };
	struct imap_status st[] = { status(1, 5), status(22, 9),
		status(23, 4) };

	diff(local, 3, listed, st, 3);
	ck_assert_uint_eq(n_ops, 2);
	ck_assert_str_eq(find_op(FOLDER_RENAME, 2)->wire, "Z");
	ck_assert_str_eq(find_op(FOLDER_RENAME, 3)->wire, "Z/B");
}
END_TEST

/* --- roles --------------------------------------------------------------- */

static enum folder_role roles[16];

static void
assign(const struct imap_folder *listed, size_t n,
    const struct folder *local, size_t n_local)
{
	roles_assign(arena, NULL, listed, n, local, n_local, roles);
}

START_TEST(flags_win_over_names) /* L067 */
{
	struct imap_folder listed[] = { theirs("Trash", ROLE_NONE),
		theirs("Deleted Items", ROLE_TRASH),
		theirs("Papierkorb", ROLE_DRAFTS) };

	assign(listed, 3, NULL, 0);
	ck_assert_int_eq(roles[0], ROLE_NONE);
	ck_assert_int_eq(roles[1], ROLE_TRASH);
	ck_assert_int_eq(roles[2], ROLE_DRAFTS);
}
END_TEST

START_TEST(names_in_other_languages) /* L068 */
{
	struct imap_folder listed[] = { theirs("INBOX", ROLE_NONE),
		theirs("Éléments envoyés", ROLE_NONE),
		theirs("Brouillons", ROLE_NONE),
		theirs("Corbeille", ROLE_NONE),
		theirs("迷惑メール", ROLE_NONE),
		theirs("Архив", ROLE_NONE) };

	assign(listed, 6, NULL, 0);
	ck_assert_int_eq(roles[0], ROLE_INBOX);
	ck_assert_int_eq(roles[1], ROLE_SENT);
	ck_assert_int_eq(roles[2], ROLE_DRAFTS);
	ck_assert_int_eq(roles[3], ROLE_TRASH);
	ck_assert_int_eq(roles[4], ROLE_JUNK);
	ck_assert_int_eq(roles[5], ROLE_ARCHIVE);
}
END_TEST

/* L070: Gmail lets its users hide All Mail and Important. */
START_TEST(hidden_special_folders_are_not_needed)
{
	struct imap_folder listed[] = { theirs("INBOX", ROLE_NONE),
		theirs("[Gmail]", ROLE_NONE),
		theirs("[Gmail]/Sent Mail", ROLE_SENT),
		theirs("[Gmail]/Bin", ROLE_TRASH),
		theirs("Work", ROLE_NONE) };

	diff(NULL, 0, listed, NULL, 5);
	ck_assert_uint_eq(n_ops, 5);
	ck_assert_int_eq(ops[0].role, ROLE_INBOX);
	ck_assert_int_eq(ops[2].role, ROLE_SENT);
	ck_assert_int_eq(ops[3].role, ROLE_TRASH);
	ck_assert_int_eq(ops[4].role, ROLE_NONE);
}
END_TEST

START_TEST(a_role_has_one_folder_and_the_better_name_gets_it)
{
	struct imap_folder listed[] = { theirs("Sent Items", ROLE_NONE),
		theirs("Sent", ROLE_NONE) };

	assign(listed, 2, NULL, 0);
	ck_assert_int_eq(roles[0], ROLE_NONE);
	ck_assert_int_eq(roles[1], ROLE_SENT);
}
END_TEST

START_TEST(who_has_a_role_keeps_it)
{
	struct folder local[] = { ours(1, "Sent Items", 1, 1) };
	struct imap_folder listed[] = { theirs("Sent", ROLE_NONE),
		theirs("Sent Items", ROLE_NONE) };

	local[0].role = ROLE_SENT;
	assign(listed, 2, local, 1);
	ck_assert_int_eq(roles[0], ROLE_NONE);
	ck_assert_int_eq(roles[1], ROLE_SENT);
}
END_TEST

START_TEST(a_users_own_subfolder_is_not_special)
{
	struct imap_folder listed[] = { theirs("Projects/Archive",
		ROLE_NONE), theirs("INBOX/Trash", ROLE_NONE) };

	assign(listed, 2, NULL, 0);
	ck_assert_int_eq(roles[0], ROLE_NONE);
	ck_assert_int_eq(roles[1], ROLE_TRASH);
}
END_TEST

START_TEST(names_of_the_configuration_count_first)
{
	struct conf_folder_name names[] = { { (char *)(uintptr_t)"Postausgang",
		(char *)(uintptr_t)"sent" } };
	struct conf conf = { .folder_names = names, .n_folder_names = 1 };
	struct imap_folder listed[] = { theirs("Sent", ROLE_NONE),
		theirs("Postausgang", ROLE_NONE) };

	roles_assign(arena, &conf, listed, 2, NULL, 0, roles);
	ck_assert_int_eq(roles[0], ROLE_NONE);
	ck_assert_int_eq(roles[1], ROLE_SENT);
}
END_TEST

/* F-A9.  Quadratic work takes minutes here, even on a fast machine. */
#define MANY 100000

static const char *
many_name(char prefix, int i)
{
	return arena_printf(arena, "%c%06d", prefix, i);
}

/* In the second round all folders have one UIDVALIDITY, and all are gone. */
START_TEST(a_hundred_thousand_folders_take_no_minute)
{
	struct folder *local = ARENA_ARRAY(arena, struct folder, MANY);
	struct imap_folder *listed = ARENA_ARRAY(arena,
	    struct imap_folder, MANY);
	struct imap_status *st = ARENA_ARRAY(arena, struct imap_status,
	    MANY + 1);
	clock_t begun;
	int i;

	for (i = 0; i < MANY; i++) {
		local[i] = ours(i + 1, many_name('a', i), (uint32_t)i + 1, 9);
		local[i].role = ROLE_SENT;
		/* the second half has another name now */
		listed[i] = theirs(many_name(i < MANY / 2 ? 'a' : 'b', i),
		    ROLE_SENT);
		st[i] = status((uint32_t)i + 1, 9);
	}
	listed[0].wire = listed[0].path = "INBOX";
	st[0] = status(MANY + 1, 9);
	begun = clock();
	diff(local, MANY, listed, st, MANY);
	ck_assert_int_lt((clock() - begun) / CLOCKS_PER_SEC, 20);
	ck_assert_ptr_nonnull(find_op(FOLDER_RENAME, MANY));
	ck_assert_ptr_nonnull(find_op(FOLDER_RENAME, MANY / 2 + 1));
	ck_assert_ptr_null(find_op(FOLDER_RENAME, MANY / 2));
	ck_assert_ptr_nonnull(find_op(FOLDER_MISSING, 1));
	for (i = 0; i < MANY; i++) {
		local[i].cursor.uidvalidity = 7;
		st[i] = status(7, 9);
		if (i > 0)
			listed[i] = theirs(many_name('c', i), ROLE_SENT);
	}
	begun = clock();
	diff(local, MANY, listed, st, MANY);
	ck_assert_int_lt((clock() - begun) / CLOCKS_PER_SEC, 20);
	ck_assert_uint_eq(n_ops, 2 * MANY);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("sync folders");
	TCase *tc = tcase_create("folders");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_new_account_gets_all_its_folders);
	tcase_add_test(tc, an_equal_list_changes_nothing);
	tcase_add_test(tc, inbox_in_any_case_is_one_folder);
	tcase_add_test(tc, other_names_differ_by_case);
	tcase_add_test(tc, a_list_without_inbox_proves_no_absence);
	tcase_add_test(tc, a_folder_is_missing_first_and_gone_second);
	tcase_add_test(tc, a_folder_that_is_back_is_updated);
	tcase_add_test(tc, a_folder_deleted_above_its_subfolders_is_gone);
	tcase_add_test(tc, a_rename_is_known_by_its_uidvalidity);
	tcase_add_test(tc, no_rename_when_uidnext_fell);
	tcase_add_test(tc, no_rename_when_two_came);
	tcase_add_test(tc, no_rename_where_all_folders_share_a_uidvalidity);
	tcase_add_test(tc, a_tree_that_is_renamed_keeps_every_folder);
	tcase_add_test(tc, flags_win_over_names);
	tcase_add_test(tc, names_in_other_languages);
	tcase_add_test(tc, hidden_special_folders_are_not_needed);
	tcase_add_test(tc, a_role_has_one_folder_and_the_better_name_gets_it);
	tcase_add_test(tc, who_has_a_role_keeps_it);
	tcase_add_test(tc, a_users_own_subfolder_is_not_special);
	tcase_add_test(tc, names_of_the_configuration_count_first);
	tcase_add_test(tc, a_hundred_thousand_folders_take_no_minute);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
