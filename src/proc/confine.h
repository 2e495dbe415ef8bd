/*
 * confine.h - inside proc: what a fork of the master lets go of.
 */
#ifndef PROC_CONFINE_H
#define PROC_CONFINE_H

#include "base/banned.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The rest of its life under `master`: PDEATHSIG.  Ends the process when that
 * one is gone already. */
void confine_bind(pid_t master);

/* Everything but the log and these two (-1: none); 0, 1 and 2 become /dev/null,
 * but for the log. */
void confine_descriptors(int a, int b);
/* Handlers and mask as at the start of a program, but for SIGHUP, SIGINT,
 * SIGUSR1, SIGUSR2 and SIGPIPE, which are ignored. */
void confine_signals(void);

/* No core file, no ptrace, no privilege. */
void confine_process(void);

/* Who is forked in between is the first to go when memory is short. */
void confine_prefer_for_oom(bool is_preferred);

/* On top of the address space now; 0: no limit. */
void confine_memory(uint64_t limit_bytes);

#endif
