/*
 * spec.h - where a mail server is, in one word: host[:port][,tls|starttls|none]
 */
#ifndef CTL_SPEC_H
#define CTL_SPEC_H

#include "base/err.h"
#include "store/store.h"

#include <stdint.h>

enum spec_service { SPEC_IMAP, SPEC_SMTP };

#define SPEC_HOST_SIZE 256

struct spec {
	char host[SPEC_HOST_SIZE]; /* without brackets */
	uint16_t port;
	enum tls_mode tls;
};

/*
 * Without a port: the service's port for the mode (imap 993, 143; smtp 465,
 * 587; none: 143, 587).  Without a mode: implicit TLS on the ports where that
 * is the custom and when there is no port, else STARTTLS; plain text only
 * when it is asked for.  An IPv6 address stands in brackets.
 */
int spec_parse(const char *text, enum spec_service service,
    struct spec *spec_r, struct err *err);

#endif
