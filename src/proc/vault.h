/*
 * vault.h - sealing of credentials.
 *
 * The key lives in memory that a child does not inherit (MADV_WIPEONFORK).
 * Sealed form: version byte, nonce, XChaCha20-Poly1305.  The account and the
 * address that the secret is for (service, host, port, TLS mode, login) are the
 * associated data: whoever can write the accounts table, but has not the key,
 * can neither move a password to another account nor have it sent to another
 * server.
 */
#ifndef PROC_VAULT_H
#define PROC_VAULT_H

#include "base/buf.h"
#include "base/err.h"
#include "base/uuid.h"

#include <stddef.h>
#include <stdint.h>

/* Makes the file (0600) when it is missing: *created_r.  mailherdctl init. */
int vault_create_key(const char *path, bool *created_r, struct err *err);
/* Refuses a file that others can read. */
int vault_load(const char *path, struct err *err);
void vault_forget(void);

/* Where a secret may be sent. */
struct seal_address {
	const char *service; /* "imap", "smtp" */
	const char *host, *tls, *login; /* as in the account's row */
	uint16_t port;
};

/* What a seal is bound to; plain data, so that a child can name it to the
 * master in a message. */
#define SEAL_ADDRESS_SIZE 32
struct seal_bond {
	struct uuid account_id;
	uint8_t address[SEAL_ADDRESS_SIZE]; /* digest of a seal_address */
};
void seal_bond_make(struct seal_bond *bond_r, const struct uuid *account_id,
    const struct seal_address *address);

struct sealed {
	const uint8_t *bytes;
	size_t len;
};

#define VAULT_OVERHEAD 64 /* sealed size <= plain size + this */
/* Appends the sealed form to out. */
int vault_seal(const struct seal_bond *bond, const char *secret, size_t len,
    struct buf *out, struct err *err);
/* secret_r is terminated.  ERR_CONFIG when it was sealed with another key, or
 * for another account or address. */
int vault_open(const struct seal_bond *bond, const struct sealed *sealed,
    char *secret_r, size_t size, size_t *len_r, struct err *err);

#endif
