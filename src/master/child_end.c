/*
 * child_end.c - how a child ended, and what that means.
 *
 * Runs in: master.  Pure.
 *
 * Policy is a row: the table `ends` says for each way a child can end, and for
 * each kind of child, what follows.
 */
#include "master/child_end.h"

#include "master/children.h"

#include <signal.h>
#include <sys/wait.h>

#define ROW(death, err, on_clerk, on_hot, on_pool, on_job, on_metrics)      \
	{                                                                   \
		.is_death = (death), .failure = (err),                      \
		.meaning = {                                                \
			[KIND_CLERK] = MEANS_##on_clerk,                    \
			[KIND_HOT] = MEANS_##on_hot,                        \
			[KIND_POOL] = MEANS_##on_pool,                      \
			[KIND_JOB] = MEANS_##on_job,                        \
			[KIND_METRICS] = MEANS_##on_metrics,                \
		},                                                          \
	}

/* What most of them are: somebody failed, and the step it was at is innocent;
 * or it died, and the step is suspect. */
#define FAILED(err) \
	ROW(false, err, BACKOFF, HOT_FAILURE, FAILURE, JOB_LOST, BACKOFF)
#define DIED \
	ROW(true, ERR_TEMPORARY, BACKOFF, HOT_FAILURE, FAILURE, JOB_LOST, \
	    BACKOFF)

static const struct end_row {
	bool is_death;
	enum err_kind failure;
	enum end_meaning meaning[KIND_COUNT];
} ends[CHILD_END_COUNT] = {
	/* death, failure; clerk, hot, pool, job, metrics */
	[END_WISHED] = ROW(false, ERR_STOPPED,
	    AGAIN, NOTHING, NOTHING, JOB_LOST, AGAIN),
	[END_NOT_MADE] = ROW(false, ERR_TEMPORARY,
	    BACKOFF, HOT_SOON, NOTHING, JOB_LOST, BACKOFF),
	/* With a pass in hand that is a failure, in IDLE it is not. */
	[END_DONE] = ROW(false, ERR_TEMPORARY,
	    BACKOFF, HOT_BACKOFF, FAILURE, JOB_LOST, BACKOFF),
	[END_FENCED] = ROW(false, ERR_FENCED,
	    BACKOFF, NOT_OURS, NOT_OURS, JOB_LOST, BACKOFF),
	[END_RETRY] = FAILED(ERR_TEMPORARY),
	[END_AUTH] = FAILED(ERR_AUTH),
	[END_LEASE_LOST] = FAILED(ERR_DEADLINE),
	[END_CONFIG] = FAILED(ERR_CONFIG),
	[END_MASTER_GONE] = FAILED(ERR_TEMPORARY),
	[END_STEP_LIMIT] = DIED,
	[END_BUG] = DIED,
	[END_HUNG] = DIED,
	[END_NONSENSE] = DIED,
	[END_CLOSED] = DIED,
	[END_DEAF] = DIED,
	[END_CRASHED] = DIED,
};

static const struct {
	enum child_exit status;
	enum child_end end;
} statuses[] = {
	{ EXIT_DONE, END_DONE },
	{ EXIT_RETRY, END_RETRY },
	{ EXIT_AUTH, END_AUTH },
	{ EXIT_FENCED, END_FENCED },
	{ EXIT_LEASE_LOST, END_LEASE_LOST },
	{ EXIT_CONFIG, END_CONFIG },
	{ EXIT_MASTER_GONE, END_MASTER_GONE },
	{ EXIT_STEP_LIMIT, END_STEP_LIMIT },
	{ EXIT_BUG, END_BUG },
};

/* What it was killed for, if that is what ended it. */
static const enum child_end kills[] = {
	[CAUSE_ITSELF] = END_CRASHED,
	[CAUSE_WISH] = END_WISHED,
	[CAUSE_NOT_MADE] = END_NOT_MADE,
	[CAUSE_HUNG] = END_HUNG,
	[CAUSE_NONSENSE] = END_NONSENSE,
	[CAUSE_CLOSED] = END_CLOSED,
	[CAUSE_DEAF] = END_DEAF,
};

enum child_end
child_end(const struct child *child)
{
	int status = child->wait_status;
	size_t i;

	/* However it obeyed. */
	if (child->cause == CAUSE_WISH || child->cause == CAUSE_NOT_MADE)
		return kills[child->cause];
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return kills[child->cause];
	/* Its channel is seen closed before its end is. */
	for (i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
		if (WIFEXITED(status) &&
		    WEXITSTATUS(status) == (int)statuses[i].status)
			return statuses[i].end;
	return END_CRASHED;
}

enum end_meaning
child_end_meaning(const struct child *child)
{
	return ends[child_end(child)].meaning[child->kind];
}

enum err_kind
child_end_failure(const struct child *child)
{
	return ends[child_end(child)].failure;
}

bool
child_end_is_death(const struct child *child)
{
	return ends[child_end(child)].is_death;
}

const char *
child_end_describe(const struct child *child, char *out, size_t size)
{
	char how[64];

	child_exit_describe(child->wait_status, how, sizeof(how));
	if (child->why[0] == '\0' || WIFEXITED(child->wait_status))
		snprintf(out, size, "%s", how);
	else
		snprintf(out, size, "%s (%s)", how, child->why);
	return out;
}
