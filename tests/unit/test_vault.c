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

static const struct seal_address imap = { "imap", "imap.example.org", "tls",
	"ann", 993 };

static struct seal_bond
bond_of(const struct uuid *id, const struct seal_address *address)
{
	struct seal_bond bond;

	seal_bond_make(&bond, id, address);
	return bond;
}

static size_t
seal(const struct uuid *id, const char *secret, uint8_t out[200])
{
	const struct seal_bond bond = bond_of(id, &imap);
	struct buf sealed = BUF_INIT;
	size_t len;

	ck_assert_int_eq(vault_seal(&bond, secret, strlen(secret), &sealed,
	    &err), 0);
	len = sealed.len;
	ck_assert_uint_le(len, strlen(secret) + VAULT_OVERHEAD);
	memcpy(out, sealed.data, len);
	buf_release(&sealed);
	return len;
}

static int
open_for(const struct seal_bond *bond, const uint8_t *sealed, size_t len,
    char *secret_r, size_t size)
{
	const struct sealed all = { sealed, len };
	size_t secret_len = 0;
	int rc;

	rc = vault_open(bond, &all, secret_r, size, &secret_len, &err);
	if (rc == 0)
		ck_assert_uint_eq(secret_len, strlen(secret_r));
	return rc;
}

static int
unseal(const struct uuid *id, const uint8_t *sealed, size_t len,
    char *secret_r, size_t size)
{
	const struct seal_bond bond = bond_of(id, &imap);

	return open_for(&bond, sealed, len, secret_r, size);
}

START_TEST(what_is_sealed_opens_again)
{
	uint8_t sealed[200], again[200];
	char secret[100];
	size_t len = seal(&ann, "pass word", sealed);

	ck_assert_int_eq(unseal(&ann, sealed, len, secret, sizeof(secret)), 0);
	ck_assert_str_eq(secret, "pass word");
	seal(&ann, "pass word", again);
	ck_assert_mem_ne(sealed, again, len); /* a nonce of its own */
	len = seal(&ann, "", sealed);
	ck_assert_int_eq(unseal(&ann, sealed, len, secret, sizeof(secret)), 0);
	ck_assert_str_eq(secret, "");
}
END_TEST

START_TEST(a_seal_opens_for_its_account_only)
{
	uint8_t sealed[200];
	char secret[100];
	size_t len = seal(&ann, "pass word", sealed);

	ck_assert_int_eq(unseal(&bob, sealed, len, secret, sizeof(secret)), -1);
	ck_assert_int_eq(err.kind, ERR_CONFIG);
}
END_TEST

/* Whoever can write the accounts table gets no password sent elsewhere. */
START_TEST(a_seal_opens_for_its_address_only)
{
	const struct seal_address others[] = {
		{ "smtp", "imap.example.org", "tls", "ann", 993 },
		{ "imap", "imap.example.com", "tls", "ann", 993 },
		{ "imap", "imap.example.org", "none", "ann", 993 },
		{ "imap", "imap.example.org", "starttls", "ann", 993 },
		{ "imap", "imap.example.org", "tls", "bob", 993 },
		{ "imap", "imap.example.org", "tls", "ann", 143 },
		{ "imap", "imap.example.org", "tls", "", 993 },
		/* what is left out in one place stands in another */
		{ "imap", "imap.example.org\n993\ntls", "tls", "ann", 993 },
		{ "imap", "", "tls", "ann", 993 },
	};
	uint8_t sealed[200];
	char secret[100];
	size_t i, len = seal(&ann, "pass word", sealed);
	struct seal_bond bond = bond_of(&ann, &imap);

	ck_assert_int_eq(open_for(&bond, sealed, len, secret, 100), 0);
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		bond = bond_of(&ann, &others[i]);
		memset(secret, 0, sizeof(secret));
		ck_assert_msg(open_for(&bond, sealed, len, secret, 100) == -1,
		    "case %zu", i);
		ck_assert_int_eq(err.kind, ERR_CONFIG);
		ck_assert_ptr_nonnull(strstr(err.text, "account set"));
		ck_assert_str_ne(secret, "pass word");
	}
}
END_TEST

START_TEST(a_seal_of_the_first_version_is_refused_with_the_remedy)
{
	uint8_t sealed[200];
	char secret[100];
	size_t len = seal(&ann, "pass word", sealed);

	sealed[0] = 1;
	ck_assert_int_eq(unseal(&ann, sealed, len, secret, 100), -1);
	ck_assert_ptr_nonnull(strstr(err.text, "account set --password"));
}
END_TEST

START_TEST(damage_and_short_buffers_are_refused)
{
	uint8_t sealed[200];
	char secret[100];
	size_t len = seal(&ann, "pass word", sealed), i;

	for (i = 0; i < len; i++) {
		sealed[i] ^= 1;
		ck_assert_int_eq(unseal(&ann, sealed, len, secret, sizeof(secret)), -1);
		sealed[i] ^= 1;
		ck_assert_int_eq(unseal(&ann, sealed, i, secret, sizeof(secret)), -1);
	}
	ck_assert_int_eq(unseal(&ann, sealed, len, secret, 9), -1);
	ck_assert_int_eq(unseal(&ann, sealed, len, secret, 10), 0);
}
END_TEST

START_TEST(a_child_has_no_key)
{
	uint8_t sealed[200];
	char secret[100];
	size_t len = seal(&ann, "pass word", sealed);
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(unseal(&ann, sealed, len, secret, sizeof(secret)) == -1 &&
		    strcmp(err.text, "no key is loaded") == 0 ? 0 : 1);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	/* and the master still has it */
	ck_assert_int_eq(unseal(&ann, sealed, len, secret, sizeof(secret)), 0);
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
	size_t len = seal(&ann, "x", sealed);
	bool created;

	ck_assert_int_eq(vault_create_key(path, &created, &err), 0);
	ck_assert(!created);
	vault_forget();
	ck_assert_int_eq(unseal(&ann, sealed, len, secret, sizeof(secret)), -1);
	ck_assert_int_eq(vault_load(path, &err), 0);
	ck_assert_int_eq(unseal(&ann, sealed, len, secret, sizeof(secret)), 0);
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
	tcase_add_test(tc, a_seal_opens_for_its_address_only);
	tcase_add_test(tc,
	    a_seal_of_the_first_version_is_refused_with_the_remedy);
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
