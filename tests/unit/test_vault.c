/*
 * test_vault.c - key file, sealing, and what a child cannot do.
 */
#include "base/clock.h"
#include "proc/vault.h"

#include <check.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct err err;
static char dir[64], path[200];
static struct uuid ann, bob;

static void
set_up(void)
{
	bool created;

	snprintf(dir, sizeof(dir), "/tmp/test_vault.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/etc/secret.key", dir);
	uuid_generate(&ann);
	uuid_generate(&bob);
	ck_assert_int_eq(vault_create_key(path, &created, &err), 0);
	ck_assert(created);
	ck_assert_int_eq(vault_load(path, &err), 0);
}

static void
tear_down(void)
{
	char sub[200];

	unlink(path);
	snprintf(sub, sizeof(sub), "%s/etc", dir);
	ck_assert_int_eq(rmdir(sub), 0); /* nothing temporary is left */
	rmdir(dir);
}

static size_t
seal(const struct uuid *id, const char *secret, uint8_t out[200])
{
	size_t len;

	ck_assert_int_eq(vault_seal(id, secret, strlen(secret), out, 200, &len,
	    &err), 0);
	ck_assert_uint_le(len, strlen(secret) + VAULT_OVERHEAD);
	return len;
}

START_TEST(what_is_sealed_opens_again)
{
	uint8_t sealed[200], again[200];
	char secret[100];
	size_t len = seal(&ann, "pass word", sealed), secret_len;

	ck_assert_int_eq(vault_open(&ann, sealed, len, secret, sizeof(secret),
	    &secret_len, &err), 0);
	ck_assert_str_eq(secret, "pass word");
	ck_assert_uint_eq(secret_len, 9);
	seal(&ann, "pass word", again);
	ck_assert_mem_ne(sealed, again, len); /* a nonce of its own */
	len = seal(&ann, "", sealed);
	ck_assert_int_eq(vault_open(&ann, sealed, len, secret, sizeof(secret),
	    &secret_len, &err), 0);
	ck_assert_str_eq(secret, "");
}
END_TEST

START_TEST(a_seal_opens_for_its_account_only)
{
	uint8_t sealed[200];
	char secret[100];
	size_t len = seal(&ann, "pass word", sealed), secret_len;

	ck_assert_int_eq(vault_open(&bob, sealed, len, secret, sizeof(secret),
	    &secret_len, &err), -1);
	ck_assert_int_eq(err.kind, ERR_CONFIG);
}
END_TEST

START_TEST(damage_and_short_buffers_are_refused)
{
	uint8_t sealed[200];
	char secret[100];
	size_t len = seal(&ann, "pass word", sealed), secret_len, i;

	for (i = 0; i < len; i++) {
		sealed[i] ^= 1;
		ck_assert_int_eq(vault_open(&ann, sealed, len, secret,
		    sizeof(secret), &secret_len, &err), -1);
		sealed[i] ^= 1;
		ck_assert_int_eq(vault_open(&ann, sealed, i, secret,
		    sizeof(secret), &secret_len, &err), -1);
	}
	ck_assert_int_eq(vault_open(&ann, sealed, len, secret, 9, &secret_len,
	    &err), -1);
	ck_assert_int_eq(vault_open(&ann, sealed, len, secret, 10, &secret_len,
	    &err), 0);
	ck_assert_int_eq(vault_seal(&ann, "secret", 6, sealed, 10, &len, &err),
	    -1);
}
END_TEST

START_TEST(a_child_has_no_key)
{
	uint8_t sealed[200];
	char secret[100];
	size_t len = seal(&ann, "pass word", sealed), secret_len;
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(vault_open(&ann, sealed, len, secret, sizeof(secret),
		    &secret_len, &err) == -1 &&
		    strcmp(err.text, "no key is loaded") == 0 ? 0 : 1);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	/* and the master still has it */
	ck_assert_int_eq(vault_open(&ann, sealed, len, secret, sizeof(secret),
	    &secret_len, &err), 0);
}
END_TEST

START_TEST(a_key_that_others_can_read_is_refused)
{
	struct stat st;

	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
	chmod(path, 0640);
	ck_assert_int_eq(vault_load(path, &err), -1);
	ck_assert_int_eq(err.kind, ERR_CONFIG);
	ck_assert_ptr_nonnull(strstr(err.text, "0640"));
	chmod(path, 0600);
	ck_assert_int_eq(vault_load(path, &err), 0);
}
END_TEST

START_TEST(creating_twice_keeps_the_first_key)
{
	uint8_t sealed[200];
	char secret[100];
	size_t len = seal(&ann, "x", sealed), secret_len;
	bool created;

	ck_assert_int_eq(vault_create_key(path, &created, &err), 0);
	ck_assert(!created);
	vault_forget();
	ck_assert_int_eq(vault_open(&ann, sealed, len, secret, sizeof(secret),
	    &secret_len, &err), -1);
	ck_assert_int_eq(vault_load(path, &err), 0);
	ck_assert_int_eq(vault_open(&ann, sealed, len, secret, sizeof(secret),
	    &secret_len, &err), 0);
}
END_TEST

static void
write_key(const char *bytes, size_t len)
{
	FILE *f = fopen(path, "w");

	fwrite(bytes, 1, len, f);
	fclose(f);
}

START_TEST(key_files_are_raw_or_base64)
{
	char zeros[32] = { 0 };

	write_key("0123456789abcdef0123456789abcdef", 32);
	ck_assert_int_eq(vault_load(path, &err), 0);
	write_key("MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\r\n", 46);
	ck_assert_int_eq(vault_load(path, &err), 0);
	write_key("MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZQ==\n", 45);
	ck_assert_int_eq(vault_load(path, &err), -1);
	write_key("not a key", 9);
	ck_assert_int_eq(vault_load(path, &err), -1);
	write_key(zeros, sizeof(zeros));
	ck_assert_int_eq(vault_load(path, &err), -1);
	write_key("", 0);
	ck_assert_int_eq(vault_load(path, &err), -1);
	unlink(path);
	ck_assert_int_eq(vault_load(path, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.text, "mailherdctl init"));
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("vault");
	TCase *tc = tcase_create("all");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, what_is_sealed_opens_again);
	tcase_add_test(tc, a_seal_opens_for_its_account_only);
	tcase_add_test(tc, damage_and_short_buffers_are_refused);
	tcase_add_test(tc, a_child_has_no_key);
	tcase_add_test(tc, a_key_that_others_can_read_is_refused);
	tcase_add_test(tc, creating_twice_keeps_the_first_key);
	tcase_add_test(tc, key_files_are_raw_or_base64);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
