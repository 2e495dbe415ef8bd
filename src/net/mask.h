/*
 * mask.h - of a connection: a password in what a server says.
 *
 * Servers repeat the login line in their errors, and what they say goes to
 * logs, to accounts.last_error and to whoever asks.  So words of a server are
 * kept only with the password taken out, as it is, quoted, or in base64.  What
 * is remembered of it is not the password but lengths and keyed checksums.
 */
#ifndef NET_MASK_H
#define NET_MASK_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

#define MASK_FORMS 5 /* plain, quoted, base64 behind 0, 1 or 2 other bytes */

struct mask {
	const char *password; /* until mask_forget: pieces count, too */
	uint64_t base; /* random; of the checksum */
	unsigned n;
	struct mask_form {
		size_t len;
		uint64_t sum;
		bool is_base64; /* the whole word goes */
	} forms[MASK_FORMS];
};

/* `password` is kept until mask_forget. */
void mask_init(struct mask *mask, const char *password);
void mask_forget(struct mask *mask);
/* Bytes of a line, with "*" where the password was.  mask NULL or without
 * forms: as they are. */
void mask_add(struct buf *out, const struct mask *mask, const char *bytes,
    size_t len);

#endif
