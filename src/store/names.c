/*
 * names.c - the words of the schema for enums of store.h.
 *
 * Runs in: every process.  Never blocks.
 */
#include "store/store.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

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
store_names_name_of(const char *const *names, size_t n, unsigned i)
{
	return i < n ? names[i] : "unknown";
}

static int
store_names_find(const char *const *names, size_t n, const char *name)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (strcmp(names[i], name) == 0)
			return (int)i;
	return -1;
}

const char *
risk_step_name(enum risk_step step)
{
	return store_names_name_of(step_names, COUNT(step_names), step);
}

int
risk_step_parse(const char *name, enum risk_step *step_r)
{
	int i = store_names_find(step_names, COUNT(step_names), name);

	if (i == -1)
		return -1;
	*step_r = (enum risk_step)i;
	return 0;
}

const char *
job_queue_name(enum job_queue queue)
{
	return store_names_name_of(queue_names, COUNT(queue_names), queue);
}

int
job_queue_parse(const char *name, enum job_queue *queue_r)
{
	int i = store_names_find(queue_names, COUNT(queue_names), name);

	if (i == -1)
		return -1;
	*queue_r = (enum job_queue)i;
	return 0;
}
