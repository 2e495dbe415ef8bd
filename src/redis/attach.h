/*
 * attach.h - the loop reads and writes for a connection of hiredis.
 *
 * Runs in: master.  Never blocks.
 *
 * Instead of the adapter that comes with hiredis: what Redis says about leases
 * is heard before anything else in the same turn of the loop (R-LEASE-5), and
 * the adapter of hiredis cannot be told so in all its versions.
 */
#ifndef REDIS_ATTACH_H
#define REDIS_ATTACH_H

struct event_base;
struct redisAsyncContext;

void attach_to_loop(struct redisAsyncContext *ac, struct event_base *base);

#endif
