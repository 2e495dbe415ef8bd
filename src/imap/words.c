/*
 * words.c - what servers mean by what they say.
 *
 * Runs in: hot, pool and job children.  Never blocks.
 */
#define _GNU_SOURCE
#include "imap/words.h"

#include <ctype.h>

#define WAIT_MAX_SECS (24 * 3600)

/* Parts of texts, looked for without case; the first that fits. */
static const struct {
	const char *words;
	uint32_t wait_secs;
	bool is_limit; /* of connections */
} waits[] = {
	/* Exchange Online: no licence, a limit, a wrong shared name (L008). */
	{ "authenticated but not connected", 900 },
	{ "bandwidth limit", 3600 },	       /* Gmail, per day */
	{ "throttled", 300 },		       /* Exchange Online (L128) */
	{ "suggested backoff", 300 },
	{ "too many simultaneous", 120, true },      /* Gmail (L125) */
	{ "too many connections", 120, true },
	{ "too many concurrent", 120, true },
	{ "too many login", 600 },
	{ "too many request", 300 },
	{ "too many failed", 900 },
	{ "too many invalid", 300 },
	{ "maximum number of connections", 120, true }, /* Dovecot (L219) */
	{ "connection limit", 120, true },
	{ "connections exceeded", 120, true },
	{ "rate limit", 300 },
	{ "server unavailable", 60 },	       /* Exchange (L044) */
	{ "temporarily unavailable", 60 },
	{ "[limit]", 120, true },
};

/* Codes and words that, at login, speak of the server and not of our
 * credentials. */
static const struct {
	const char *words;
	uint32_t wait_secs;
} login_waits[] = {
	{ "[unavailable]", 60 },
	{ "[inuse]", 60 },
	{ "[serverbug]", 60 },
	{ "[contactadmin]", 900 },
	{ "try again later", 120 },
	{ "temporary", 60 },
	{ "internal error", 60 },
	{ "internal server error", 60 },
	{ "backend", 60 },
	{ "timed out", 60 },
	{ "timeout", 60 },
	{ "service not available", 60 },
	{ "service unavailable", 60 },
};

/* "Suggested Backoff Time: 178755 milliseconds", "retry in 30 seconds". */
static bool
stated_wait(const char *text, uint32_t *secs_r)
{
	static const char *const before[] = { "backoff time:", "retry after",
		"retry in", "try again in", "wait" };
	const char *p = NULL;
	char *end;
	unsigned long long n;
	size_t i;

	for (i = 0; i < sizeof(before) / sizeof(before[0]) && p == NULL; i++)
		if ((p = strcasestr(text, before[i])) != NULL)
			p += strlen(before[i]);
	if (p == NULL)
		return false;
	while (*p == ' ' || *p == ':')
		p++;
	if (!isdigit((unsigned char)*p))
		return false;
	n = strtoull(p, &end, 10);
	while (*end == ' ')
		end++;
	if (strncasecmp(end, "milli", 5) == 0 || strncasecmp(end, "ms", 2) == 0)
		n = n / 1000 + 1;
	else if (strncasecmp(end, "min", 3) == 0)
		n = n < WAIT_MAX_SECS ? n * 60 : WAIT_MAX_SECS;
	else if (strncasecmp(end, "hour", 4) == 0)
		n = n < WAIT_MAX_SECS ? n * 3600 : WAIT_MAX_SECS;
	*secs_r = n > WAIT_MAX_SECS ? WAIT_MAX_SECS : (uint32_t)n;
	return true;
}

bool
words_ask_to_wait(const char *text, const char *host, const char *what,
    struct err *err)
{
	uint32_t wait;
	size_t i;

	for (i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		if (strcasestr(text, waits[i].words) == NULL)
			continue;
		if (!stated_wait(text, &wait))
			wait = waits[i].wait_secs;
		err_set(err, ERR_THROTTLED, "%s %s: %s", host, what, text);
		err->retry_after_secs = wait;
		err->is_limit = waits[i].is_limit;
		return true;
	}
	return false;
}

bool
words_slow_down(const char *text)
{
	return strcasestr(text, "[throttled]") != NULL;
}

static bool
cannot_log_in_now(const char *text, const char *host, struct err *err)
{
	uint32_t wait;
	size_t i;

	if (strcasestr(text, "[authenticationfailed]") != NULL)
		return false;
	for (i = 0; i < sizeof(login_waits) / sizeof(login_waits[0]); i++) {
		if (strcasestr(text, login_waits[i].words) == NULL)
			continue;
		if (!stated_wait(text, &wait))
			wait = login_waits[i].wait_secs;
		err_set(err, ERR_THROTTLED, "%s cannot log in now: %s", host,
		    text);
		err->retry_after_secs = wait;
		return true;
	}
	return false;
}

void
words_for_login(const char *text, bool is_bad, const char *host,
    struct err *err)
{
	static const char *const credentials[] = { "authenticat", "login",
		"password", "credential", "user" };
	size_t i;

	if (words_ask_to_wait(text, host, "lets nobody in now", err) ||
	    cannot_log_in_now(text, host, err))
		return;
	/* A full mailbox that is shut: nobody's password is wrong. */
	if (strcasestr(text, "[overquota]") != NULL) {
		err_set(err, ERR_SERVER, "%s lets nobody in: %s", host, text);
		return;
	}
	for (i = 0; is_bad && i < sizeof(credentials) / sizeof(credentials[0]);
	    i++)
		if (strcasestr(text, credentials[i]) != NULL)
			is_bad = false;
	if (is_bad) /* our command was not understood */
		err_set(err, ERR_SERVER, "%s does not take the login "
		    "command: %s", host, text);
	else
		err_set(err, ERR_AUTH, "%s refused the login: %s", host, text);
}

void
words_for_bye(const char *text, const char *host, struct err *err)
{
	if (!words_ask_to_wait(text, host, "ended the session", err))
		err_set(err, ERR_NETWORK, "%s ended the session: %s", host,
		    text[0] != '\0' ? text : "BYE");
}

void
words_for_stray(const char *text, const char *host, struct err *err)
{
	if (!words_ask_to_wait(text, host, "says", err))
		err_set(err, ERR_PROTOCOL, "%s sent a line that is no reply: "
		    "%.80s", host, text);
}
