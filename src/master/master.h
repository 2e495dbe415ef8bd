/*
 * master.h - the supervisor of both roles.
 *
 * Runs in: master.  Does little and never blocks, so that it survives whatever
 * kills a child, and children may be plain blocking code.
 */
#ifndef MASTER_MASTER_H
#define MASTER_MASTER_H

#include "conf/conf.h"
#include "conf/quirks.h"

#include <stddef.h>

struct master_params {
	struct conf *conf; /* changed in place by a reload */
	const struct quirks_table *quirks; /* may be NULL */
	/* Where conf came from, for SIGHUP. */
	const char *file; /* NULL: the default */
	const char *const *overrides;
	size_t n_overrides;
	/* At a reload: what children inherit from files; may be NULL.  Local
	 * files of the operator's, read in some 20 ms. */
	void (*refresh)(void);
};

/* Runs until asked to stop; returns the exit status. */
int master_main(const struct master_params *params);

/* How many places proc/slots must have. */
unsigned master_slots(void);

#endif
