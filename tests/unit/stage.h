/*
 * stage.h - a real master on a private Redis, with children that play a part.
 *
 * For test_master.c.  Masters run as processes of their own; their children
 * are the functions of stage.c, which do what `script` (shared memory) says:
 * work, end, hang, die of a signal, talk nonsense.  Nothing here speaks IMAP
 * or SQL.
 */
#ifndef TESTS_UNIT_STAGE_H
#define TESTS_UNIT_STAGE_H

#include "base/uuid.h"
#include "ipc/messages.h"

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#define STAGE_ACCOUNTS 40

enum act {
	ACT_WELL,
	ACT_EXIT_DONE,	/* ends at once, as if all were done */
	ACT_EXIT_RETRY,
	ACT_SEGV,	/* in the middle of a risky step */
	ACT_HANG,
	ACT_NONSENSE,	/* speaks of somebody else's account */
	ACT_GARBAGE,	/* no frame at all */
	ACT_AUTH,	/* reports a refused login */
	ACT_LIMIT,	/* reports too many connections */
	ACT_BEHIND,	/* sees news that the hot child did not report */
	ACT_LEFT_LIVE,	/* reports that the row is not live */
	ACT_CLOSE,	/* closes its channel and stays */
	ACT_EARLY,	/* reports a pass nobody asked for */
	ACT_STILLBORN,	/* ends before it has said hello */
	ACT_GREEDY,	/* asks for a budget for ever, reads nothing */
};

struct script {
	/* what the clerk tells */
	unsigned n_accounts;
	struct uuid accounts[STAGE_ACCOUNTS], users[STAGE_ACCOUNTS];
	_Atomic bool is_live[STAGE_ACCOUNTS];
	_Atomic int64_t last_mail_secs;
	_Atomic bool is_database_away;
	_Atomic bool is_locked[STAGE_ACCOUNTS]; /* the row, by a stranger */
	_Atomic unsigned auth_failures;
	unsigned n_due; /* jobs due at each sweep */
	struct uuid due[8];
	/* what the others do; the clerk only its next time */
	_Atomic int clerk, hot, pool, job;
	/* what happened */
	_Atomic unsigned takeovers, hots, polls, jobs, risks, sweeps;
	_Atomic unsigned lost, held, lookups, peeks;
	_Atomic unsigned jobs_now, jobs_most; /* at the same time */
	_Atomic int64_t epoch, epochs[STAGE_ACCOUNTS];
	char owners[STAGE_ACCOUNTS][MSG_WORKER_SIZE];
};
extern struct script *script;

struct player; /* a running master */

/* Own directory, own Redis; ends the test when something does not start. */
void stage_setup(void);
void stage_teardown(void);
const char *stage_directory(void);
pid_t stage_redis_pid(void);
/* Started anew, empty, on the same socket. */
void stage_restart_redis(void);

/* role "sync" or "jobs"; settings "a=1", NULL. */
struct player *player_start(const char *role, const char *const *settings);
/* Without waiting for it to answer. */
struct player *player_start_unheard(const char *role,
    const char *const *settings);
pid_t player_pid(const struct player *player);
const char *player_socket(const struct player *player);
/* Waits for the end; the exit status, -1 when it does not end in time. */
int player_wait(struct player *player, int64_t msecs);
void player_kill(struct player *player);

/* One command; a new reference, NULL when nobody answers. */
json_t *player_ask(const struct player *player, const char *line);
/* A number of `status`, -1: no answer. */
long long player_status(const struct player *player, const char *key);
/* Child of that kind in that state (NULL: any); 0: none. */
pid_t player_child(const struct player *player, const char *kind,
    const char *state);

/* Redis, as an outsider sees it; text is static, "" for nil. */
const char *redis_say(const char *fmt, ...)
    __attribute__((format(printf, 1, 2)));

/* Waits for a state, with a deadline: no test sleeps for its own sake. */
#define WAIT_FOR(condition)                                              \
	do {                                                             \
		int64_t until_ = stage_now() + 60000;                    \
		while (!(condition)) {                                   \
			if (stage_now() > until_)                        \
				ck_abort_msg("waited too long: %s",      \
				    #condition);                         \
			stage_pause();                                   \
		}                                                        \
	} while (0)
int64_t stage_now(void);
void stage_pause(void);

#endif
