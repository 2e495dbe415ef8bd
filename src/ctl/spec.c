/*
 * spec.c - reads host[:port][,tls|starttls|none].
 *
 * Runs in: mailherdctl.  Pure.
 */
#include "ctl/spec.h"

#include <bsd/stdlib.h>
#include <ctype.h>

/* Ports by service and enum tls_mode. */
static const uint16_t default_ports[][3] = {
	[SPEC_IMAP] = { [TLS_NONE] = 143, [TLS_STARTTLS] = 143,
	    [TLS_IMPLICIT] = 993 },
	[SPEC_SMTP] = { [TLS_NONE] = 587, [TLS_STARTTLS] = 587,
	    [TLS_IMPLICIT] = 465 },
};

#define HINT "(form: host[:port][,tls|starttls|none])"

/* A name or an address; "/path" would be a socket to some libraries. */
static bool
is_host_char(char c)
{
	return isalnum((unsigned char)c) || strchr(".-_", c) != NULL ||
	    (unsigned char)c >= 0x80;
}

static bool
is_host(const char *host, size_t len, bool is_ipv6)
{
	if (len == 0 || len >= SPEC_HOST_SIZE || host[0] == '-' ||
	    host[0] == '.')
		return false;
	for (size_t i = 0; i < len; i++)
		if (!is_host_char(host[i]) &&
		    (!is_ipv6 || strchr(":%", host[i]) == NULL))
			return false;
	return true;
}

/* Where the host ends; sets what follows the brackets or the name. */
static int
split_host(const char *text, size_t len, struct spec *spec, size_t *used_r,
    struct err *err)
{
	const char *end = memchr(text, ']', len);
	bool is_ipv6 = len > 0 && text[0] == '[';
	size_t start = is_ipv6 ? 1 : 0, host_len;

	if (is_ipv6 && end == NULL)
		return err_set(err, ERR_PERMANENT, "\"%s\": no closing ] "
		    HINT, text);
	if (is_ipv6) {
		host_len = (size_t)(end - text) - 1;
		*used_r = host_len + 2;
	} else {
		const char *colon = memchr(text, ':', len);

		host_len = colon != NULL ? (size_t)(colon - text) : len;
		*used_r = host_len;
		if (colon != NULL && memchr(colon + 1, ':',
		    len - host_len - 1) != NULL)
			return err_set(err, ERR_PERMANENT,
			    "\"%s\": put an IPv6 address in brackets, "
			    "[2001:db8::1]:993", text);
	}
	if (!is_host(text + start, host_len, is_ipv6))
		return err_set(err, ERR_PERMANENT, "\"%s\": no host name "
		    HINT, text);
	memcpy(spec->host, text + start, host_len);
	spec->host[host_len] = '\0';
	return 0;
}

static int
parse_port(const char *text, const char *digits, size_t len, uint16_t *port_r,
    struct err *err)
{
	const char *fault;
	char port[8];
	long long n;

	/* strtonum() would skip blanks and take a sign. */
	if (len == 0 || len >= sizeof(port) ||
	    strspn(digits, "0123456789") < len)
		return err_set(err, ERR_PERMANENT,
		    "\"%s\": the port is a number from 1 to 65535", text);
	memcpy(port, digits, len);
	port[len] = '\0';
	n = strtonum(port, 1, 65535, &fault);
	if (fault != NULL)
		return err_set(err, ERR_PERMANENT,
		    "\"%s\": the port is a number from 1 to 65535", text);
	*port_r = (uint16_t)n;
	return 0;
}

static enum tls_mode
usual_mode(enum spec_service service, uint16_t port)
{
	if (port == 0 || port == default_ports[service][TLS_IMPLICIT])
		return TLS_IMPLICIT;
	return TLS_STARTTLS;
}

int
spec_parse(const char *text, enum spec_service service, struct spec *spec_r,
    struct err *err)
{
	size_t len = strcspn(text, ","), used = 0;
	struct spec spec = { .port = 0 };

	if (split_host(text, len, &spec, &used, err) == -1)
		return -1;
	if (used < len && text[used] != ':')
		return err_set(err, ERR_PERMANENT, "\"%s\": not understood "
		    HINT, text);
	if (used < len && parse_port(text, text + used + 1, len - used - 1,
	    &spec.port, err) == -1)
		return -1;
	if (text[len] == '\0')
		spec.tls = usual_mode(service, spec.port);
	else if (tls_mode_parse(text + len + 1, &spec.tls) == -1)
		return err_set(err, ERR_PERMANENT, "\"%s\": after the comma "
		    "comes tls, starttls or none", text);
	if (spec.port == 0)
		spec.port = default_ports[service][spec.tls];
	*spec_r = spec;
	return 0;
}
