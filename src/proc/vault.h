/*
 * vault.h - sealing of credentials.
 *
 * The key lives in memory that a child does not inherit (MADV_WIPEONFORK).
 * Sealed form: version byte, nonce, XChaCha20-Poly1305 with the account id as
 * associated data, so that a sealed secret opens for its account only.
 */
#ifndef PROC_VAULT_H
#define PROC_VAULT_H

#include "base/err.h"
#include "base/uuid.h"

#include <stddef.h>
#include <stdint.h>

/* Makes the file (0600) when it is missing: *created_r.  mailherdctl init. */
int vault_create_key(const char *path, bool *created_r, struct err *err);
/* Refuses a file that others can read. */
int vault_load(const char *path, struct err *err);
void vault_forget(void);

#define VAULT_OVERHEAD 64 /* sealed size <= plain size + this */
int vault_seal(const struct uuid *account_id, const char *secret, size_t len,
    uint8_t *sealed_r, size_t size, size_t *len_r, struct err *err);
/* secret_r is terminated. */
int vault_open(const struct uuid *account_id, const uint8_t *sealed,
    size_t len, char *secret_r, size_t size, size_t *len_r, struct err *err);

#endif
