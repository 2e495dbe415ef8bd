/*
 * orders.h - what a master is told to do, by signal or control socket.
 *
 * Runs in: master.  Never blocks.
 */
#ifndef MASTER_ORDERS_H
#define MASTER_ORDERS_H

#include "base/err.h"
#include "base/log.h"

struct json_t;
struct master;

void orders_start(struct master *m);
void orders_end(struct master *m);

void orders_stop(struct master *m, const char *why);
/* Stopping goes on when somebody has ended. */
void orders_stop_step(struct master *m);
void orders_drain(struct master *m);
void orders_undrain(struct master *m);
/* Tells in `reply`, unless that is NULL, which settings need a restart. */
int orders_reload(struct master *m, struct json_t *reply, struct err *err);
/* To all children; subsystem -1: all. */
void orders_log_level(struct master *m, enum log_level level, int subsystem);

#endif
