/*
 * limits.h - processor time that one message may use.
 */
#ifndef CHILD_LIMITS_H
#define CHILD_LIMITS_H

#include "store/store.h"

/* Once per child. */
void limits_start(void);
/* A new step begins: its time counts from here.  No system call. */
void limits_step(enum risk_step step);

#endif
