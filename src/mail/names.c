/*
 * names.c - the words of the schema for our enums.
 *
 * Runs in: every process.  Never blocks.
 */
#include "mail/account.h"
#include "mail/folder.h"

#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char *const state_names[] = {
#define X(symbol, name) [symbol] = name,
	ACCOUNT_STATES(X)
#undef X
};
static const char *const tls_names[] = {
	[TLS_NONE] = "none",
	[TLS_STARTTLS] = "starttls",
	[TLS_IMPLICIT] = "tls",
};
static const char *const role_names[] = {
#define X(symbol, name) [symbol] = name,
	FOLDER_ROLES(X)
#undef X
};
static const char *
names_name_of(const char *const *names, size_t n, unsigned i)
{
	return i < n ? names[i] : "unknown";
}

static int
names_find(const char *const *names, size_t n, const char *name)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (strcmp(names[i], name) == 0)
			return (int)i;
	return -1;
}

const char *
account_state_name(enum account_state state)
{
	return names_name_of(state_names, COUNT(state_names), state);
}

int
account_state_parse(const char *name, enum account_state *state_r)
{
	int i = names_find(state_names, COUNT(state_names), name);

	if (i == -1)
		return -1;
	*state_r = (enum account_state)i;
	return 0;
}

const char *
tls_mode_name(enum tls_mode mode)
{
	return names_name_of(tls_names, COUNT(tls_names), mode);
}

int
tls_mode_parse(const char *name, enum tls_mode *mode_r)
{
	int i = names_find(tls_names, COUNT(tls_names), name);

	if (i == -1)
		return -1;
	*mode_r = (enum tls_mode)i;
	return 0;
}

const char *
folder_role_name(enum folder_role role)
{
	return names_name_of(role_names, COUNT(role_names), role);
}

int
folder_role_parse(const char *name, enum folder_role *role_r)
{
	int i = names_find(role_names, COUNT(role_names), name);

	if (i == -1)
		return -1;
	*role_r = (enum folder_role)i;
	return 0;
}
