/*
 * vault.c - the key that seals credentials, and sealing.
 *
 * Runs in: master and mailherdctl.  Blocks on one small file.
 *
 * The key and the fact that it is loaded share one page, which a child sees
 * as zeros (MADV_WIPEONFORK) and no core file holds.
 */
#include "config.h"

#include "proc/vault.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <sodium.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEY_SIZE crypto_aead_xchacha20poly1305_ietf_KEYBYTES
#define NONCE_SIZE crypto_aead_xchacha20poly1305_ietf_NPUBBYTES
#define TAG_SIZE crypto_aead_xchacha20poly1305_ietf_ABYTES
#define HEAD_SIZE (1 + NONCE_SIZE)
#define SEAL_VERSION 2 /* 1: bound to the account alone */
#define KEY_TEXT_SIZE sodium_base64_ENCODED_LEN(KEY_SIZE, \
    sodium_base64_VARIANT_ORIGINAL)

_Static_assert(HEAD_SIZE + TAG_SIZE <= VAULT_OVERHEAD, "VAULT_OVERHEAD");

struct page {
	uint32_t is_loaded;
	unsigned char key[KEY_SIZE];
};

static struct page *page; /* of its own; NULL: never loaded */

static int
init_sodium(struct err *err)
{
	if (sodium_init() == -1)
		return err_set(err, ERR_CONFIG, "libsodium does not start");
	return 0;
}

/* --- the file ------------------------------------------------------------------- */

static int
write_new(int fd, const char *path, struct err *err)
{
	unsigned char key[KEY_SIZE];
	char text[KEY_TEXT_SIZE + 1];
	size_t len;
	int result = 0;

	randombytes_buf(key, sizeof(key));
	sodium_bin2base64(text, KEY_TEXT_SIZE, key, sizeof(key),
	    sodium_base64_VARIANT_ORIGINAL);
	len = strlen(text);
	text[len++] = '\n';
	if (write(fd, text, len) != (ssize_t)len || fsync(fd) == -1)
		result = err_set(err, ERR_CONFIG, "%s: not written: %s", path,
		    strerror(errno));
	sodium_memzero(key, sizeof(key));
	sodium_memzero(text, sizeof(text));
	return result;
}

static void
sync_directory(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd == -1)
		return;
	fsync(fd);
	close(fd);
}

/* link() and not rename(): of two that create at once, the second must see
 * the first one's key, not replace it. */
static int
create_file(const char *path, bool *created_r, struct err *err)
{
	char temporary[PATH_MAX];
	int fd, result;

	snprintf(temporary, sizeof(temporary), "%s.%d.new", path,
	    (int)getpid());
	unlink(temporary);
	fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd == -1)
		return err_set(err, ERR_CONFIG, "%s: not created: %s", path,
		    strerror(errno));
	result = write_new(fd, path, err);
	close(fd);
	*created_r = result == 0 && link(temporary, path) == 0;
	if (result == 0 && !*created_r && errno != EEXIST)
		result = err_set(err, ERR_CONFIG, "%s: not created: %s", path,
		    strerror(errno));
	unlink(temporary);
	return result;
}

int
vault_create_key(const char *path, bool *created_r, struct err *err)
{
	char copy[PATH_MAX];
	const char *dir;

	*created_r = false;
	if (init_sodium(err) == -1)
		return -1;
	if (access(path, F_OK) == 0)
		return 0;
	snprintf(copy, sizeof(copy), "%s", path);
	dir = dirname(copy);
	if (mkdir(dir, 0750) == -1 && errno != EEXIST)
		return err_set(err, ERR_CONFIG, "%s: not created: %s", dir,
		    strerror(errno));
	if (create_file(path, created_r, err) == -1)
		return -1;
	sync_directory(dir);
	return 0;
}

static int
check_file(int fd, const char *path, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) == -1 || !S_ISREG(st.st_mode))
		return err_set(err, ERR_CONFIG, "%s: not a regular file",
		    path);
	if ((st.st_mode & 077) != 0)
		return err_set(err, ERR_CONFIG,
		    "%s: mode %04o lets others in; chmod 0600 it", path,
		    (unsigned)st.st_mode & 07777);
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return err_set(err, ERR_CONFIG,
		    "%s: belongs to another user (%u)", path,
		    (unsigned)st.st_uid);
	return 0;
}

/* 32 raw bytes, or their base64 with or without a line end. */
static int
parse_key(const unsigned char *text, size_t len, unsigned char *key)
{
	size_t key_len;

	if (len == KEY_SIZE) {
		memcpy(key, text, KEY_SIZE);
		return 0;
	}
	if (sodium_base642bin(key, KEY_SIZE, (const char *)text, len,
		" \t\r\n", &key_len, NULL, sodium_base64_VARIANT_ORIGINAL) == -1)
		return -1;
	return key_len == KEY_SIZE ? 0 : -1;
}

static int
read_key(int fd, const char *path, unsigned char *key, struct err *err)
{
	unsigned char text[128];
	ssize_t n = read(fd, text, sizeof(text));
	int result = 0;

	if (n == -1)
		result = err_set(err, ERR_CONFIG, "%s: %s", path,
		    strerror(errno));
	else if (parse_key(text, (size_t)n, key) == -1 ||
	    sodium_is_zero(key, KEY_SIZE))
		result = err_set(err, ERR_CONFIG,
		    "%s: not a key (32 bytes, raw or in base64)", path);
	sodium_memzero(text, sizeof(text));
	return result;
}

/* --- the page -------------------------------------------------------------------- */

static int
make_page(struct err *err)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	void *p;

	if (page != NULL)
		return 0;
	p = mmap(NULL, size, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return err_set(err, ERR_TEMPORARY, "no page for the key: %s",
		    strerror(errno));
	if (madvise(p, size, MADV_WIPEONFORK) == -1) {
		munmap(p, size);
		return err_set(err, ERR_CONFIG,
		    "MADV_WIPEONFORK: %s: Linux 4.14 or newer is needed",
		    strerror(errno));
	}
	madvise(p, size, MADV_DONTDUMP);
	mlock(p, size); /* best effort: RLIMIT_MEMLOCK may be 0 */
	page = p;
	return 0;
}

int
vault_load(const char *path, struct err *err)
{
	int fd, result;

	if (init_sodium(err) == -1 || make_page(err) == -1)
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd == -1)
		return err_set(err, ERR_CONFIG, "%s: %s%s", path,
		    strerror(errno), errno == ENOENT ?
		    "; mailherdctl init creates it" : "");
	result = check_file(fd, path, err);
	if (result == 0)
		result = read_key(fd, path, page->key, err);
	close(fd);
	page->is_loaded = result == 0;
	return result;
}

void
vault_forget(void)
{
	if (page != NULL)
		sodium_memzero(page, sizeof(*page));
}

/* --- sealing ----------------------------------------------------------------------- */

static int
check_loaded(struct err *err)
{
	if (page == NULL || !page->is_loaded)
		return err_set(err, ERR_CONFIG, "no key is loaded");
	return 0;
}

/* Each field with its end, so that no two addresses read alike. */
void
seal_bond_make(struct seal_bond *bond_r, const struct uuid *account_id,
    const struct seal_address *address)
{
	struct buf text = BUF_INIT;

	buf_addf(&text, "%s\n%s\n%u\n%s\n%s", address->service,
	    address->host, (unsigned)address->port, address->tls,
	    address->login);
	bond_r->account_id = *account_id;
	crypto_generichash(bond_r->address, sizeof(bond_r->address),
	    (const unsigned char *)text.data, text.len, NULL, 0);
	buf_release(&text);
}

#define BOND_SIZE (1 + sizeof(struct uuid) + SEAL_ADDRESS_SIZE)

static void
bond_encode(unsigned char out[BOND_SIZE], const struct seal_bond *bond)
{
	out[0] = SEAL_VERSION;
	memcpy(out + 1, bond->account_id.bytes, sizeof(struct uuid));
	memcpy(out + 1 + sizeof(struct uuid), bond->address,
	    SEAL_ADDRESS_SIZE);
}

int
vault_seal(const struct seal_bond *bond, const char *secret, size_t len,
    struct buf *out, struct err *err)
{
	unsigned char bound_to[BOND_SIZE], *sealed;
	unsigned long long sealed_len;

	if (check_loaded(err) == -1)
		return -1;
	sealed = (unsigned char *)buf_reserve(out, len + VAULT_OVERHEAD);
	bond_encode(bound_to, bond);
	sealed[0] = SEAL_VERSION;
	randombytes_buf(sealed + 1, NONCE_SIZE);
	crypto_aead_xchacha20poly1305_ietf_encrypt(sealed + HEAD_SIZE,
	    &sealed_len, (const unsigned char *)secret, len, bound_to,
	    sizeof(bound_to), NULL, sealed + 1, page->key);
	out->len += HEAD_SIZE + (size_t)sealed_len;
	return 0;
}

static int
check_sealed(const struct sealed *sealed, size_t size, struct err *err)
{
	if (sealed->len > 0 && sealed->bytes[0] < SEAL_VERSION)
		return err_set(err, ERR_CONFIG, "the secret was sealed by an "
		    "older version, for any server; store the password again: "
		    "mailherdctl account set --password");
	if (sealed->len < HEAD_SIZE + TAG_SIZE ||
	    sealed->bytes[0] != SEAL_VERSION)
		return err_set(err, ERR_CONFIG,
		    "not a sealed secret (%zu bytes)", sealed->len);
	if (sealed->len - HEAD_SIZE - TAG_SIZE >= size)
		return err_set(err, ERR_CONFIG, "the secret is too long");
	return 0;
}

int
vault_open(const struct seal_bond *bond, const struct sealed *sealed,
    char *secret_r, size_t size, size_t *len_r, struct err *err)
{
	unsigned char bound_to[BOND_SIZE];
	unsigned long long secret_len;

	if (check_loaded(err) == -1 || check_sealed(sealed, size, err) == -1)
		return -1;
	bond_encode(bound_to, bond);
	if (crypto_aead_xchacha20poly1305_ietf_decrypt(
		(unsigned char *)secret_r, &secret_len, NULL,
		sealed->bytes + HEAD_SIZE, sealed->len - HEAD_SIZE, bound_to,
		sizeof(bound_to), sealed->bytes + 1, page->key) == -1)
		return err_set(err, ERR_CONFIG, "the sealed secret does not "
		    "open: sealed with another key, or for another account, "
		    "server, port, TLS mode or login than the row names; "
		    "store the password again: mailherdctl account set "
		    "--password");
	secret_r[secret_len] = '\0';
	*len_r = (size_t)secret_len;
	return 0;
}
