/*
 * limits.c - processor time that one message may use.
 *
 * Runs in: children.
 *
 * A timer on processor time ticks once a second while the child computes; each
 * step sets the count back by a plain write, so that a message costs no system
 * call.  A message that is parsed for longer ends the process (EXIT_STEP_LIMIT)
 * with its note in place, and counts as a crash would (R-SYNC-9, L158).
 */
#include "child/limits.h"

#include "proc/kinds.h"

#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#define STEP_CPU_SECS 30

static volatile sig_atomic_t ticks, is_limited;

static void
on_tick(int sig)
{
	(void)sig;
	if (is_limited && ++ticks > STEP_CPU_SECS)
		_exit(EXIT_STEP_LIMIT);
}

void
limits_start(void)
{
	struct sigaction sa = { .sa_handler = on_tick,
		.sa_flags = SA_RESTART };
	struct itimerval every = { .it_interval = { .tv_sec = 1 },
		.it_value = { .tv_sec = 1 } };

	sigaction(SIGPROF, &sa, NULL);
	setitimer(ITIMER_PROF, &every, NULL);
}

void
limits_step(enum risk_step step)
{
	is_limited = step == RISK_PARSE || step == RISK_STORE;
	ticks = 0;
}
