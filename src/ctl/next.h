/*
 * next.h - what happens to an account next, and what a person can do.
 */
#ifndef CTL_NEXT_H
#define CTL_NEXT_H

#include "ctl/ctl.h"

/* Of the account's row. */
struct next_facts {
	const char *id, *email, *state;
	const char *next_try_at; /* NULL: now */
};
/* One sentence, in ctl->arena; NULL when nothing can be said.  `view` NULL:
 * Redis is away. */
const char *next_step(struct ctl *ctl, const struct next_facts *facts,
    const struct lease_view *view);

#endif
