/*
 * names.c - the words of the schema for our enums.
 *
 * Runs in: every process.  Never blocks.
 */
#include "store/store.h"

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
static const char *const step_names[] = {
	[RISK_NONE] = "none",
	[RISK_FOLDER] = "folder",
	[RISK_FETCH] = "fetch",
	[RISK_PARSE] = "parse",
	[RISK_STORE] = "store",
};
static const char *const queue_names[] = {
	[QUEUE_INTERACTIVE] = "interactive",
	[QUEUE_BULK] = "bulk",
};

static const char *
name_of(const char *const *names, size_t n, unsigned i)
{
	return i < n ? names[i] : "unknown";
}

static int
find(const char *const *names, size_t n, const char *name)
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
	return name_of(state_names, COUNT(state_names), state);
}

int
account_state_parse(const char *name, enum account_state *state_r)
{
	int i = find(state_names, COUNT(state_names), name);

	if (i == -1)
		return -1;
	*state_r = (enum account_state)i;
	return 0;
}

const char *
tls_mode_name(enum tls_mode mode)
{
	return name_of(tls_names, COUNT(tls_names), mode);
}

int
tls_mode_parse(const char *name, enum tls_mode *mode_r)
{
	int i = find(tls_names, COUNT(tls_names), name);

	if (i == -1)
		return -1;
	*mode_r = (enum tls_mode)i;
	return 0;
}

const char *
folder_role_name(enum folder_role role)
{
	return name_of(role_names, COUNT(role_names), role);
}

int
folder_role_parse(const char *name, enum folder_role *role_r)
{
	int i = find(role_names, COUNT(role_names), name);

	if (i == -1)
		return -1;
	*role_r = (enum folder_role)i;
	return 0;
}

const char *
risk_step_name(enum risk_step step)
{
	return name_of(step_names, COUNT(step_names), step);
}

int
risk_step_parse(const char *name, enum risk_step *step_r)
{
	int i = find(step_names, COUNT(step_names), name);

	if (i == -1)
		return -1;
	*step_r = (enum risk_step)i;
	return 0;
}

const char *
job_queue_name(enum job_queue queue)
{
	return name_of(queue_names, COUNT(queue_names), queue);
}

int
job_queue_parse(const char *name, enum job_queue *queue_r)
{
	int i = find(queue_names, COUNT(queue_names), name);

	if (i == -1)
		return -1;
	*queue_r = (enum job_queue)i;
	return 0;
}
