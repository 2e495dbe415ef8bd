/*
 * account.h - an account as every layer sees it.
 *
 * Plain data, in the arena of whoever read it.
 */
#ifndef MAIL_ACCOUNT_H
#define MAIL_ACCOUNT_H

#include "base/uuid.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* symbol, name in accounts.state */
#define ACCOUNT_STATES(X)                  \
	X(ACCOUNT_NEW, "new")              \
	X(ACCOUNT_BOOTSTRAPPING, "bootstrapping") \
	X(ACCOUNT_LIVE, "live")            \
	X(ACCOUNT_DISABLED, "disabled")    \
	X(ACCOUNT_ERROR, "error")          \
	X(ACCOUNT_DELETED, "deleted")
enum account_state {
#define X(symbol, name) symbol,
	ACCOUNT_STATES(X)
#undef X
};
const char *account_state_name(enum account_state state);
int account_state_parse(const char *name, enum account_state *state_r);

enum tls_mode { TLS_NONE, TLS_STARTTLS, TLS_IMPLICIT }; /* none starttls tls */
const char *tls_mode_name(enum tls_mode mode);
int tls_mode_parse(const char *name, enum tls_mode *mode_r);

struct account {
	struct uuid id, user_id;
	const char *email, *name;
	enum account_state state;
	const char *state_reason; /* "" when none */
	int64_t state_since_secs;
	const char *imap_host, *imap_login;
	uint16_t imap_port;
	enum tls_mode imap_tls;
	const char *smtp_host, *smtp_login; /* "" when none */
	uint16_t smtp_port;
	enum tls_mode smtp_tls;
	const char *auth;	/* "password" */
	/* sealed for imap_* and smtp_*, proc/vault.h; NULL: none */
	const uint8_t *secret, *smtp_secret;
	size_t secret_len, smtp_secret_len;
	int64_t epoch;
	const char *owner;
	int64_t last_mail_secs, last_sync_secs, last_active_secs; /* 0: never */
	int64_t next_try_secs;
	unsigned auth_failures;	/* refusals in a row */
	const char *last_error;
};

#endif
