/*
 * scripts.h - what is done in Redis in one step; src/redis/scripts/NAME.lua.
 *
 * Each says there what its keys and arguments are.  scripts.c is made of them
 * (scripts/embed-lua).
 */
#ifndef REDIS_SCRIPTS_H
#define REDIS_SCRIPTS_H

#include "redis/redis.h"

extern struct redis_script script_claim;
extern struct redis_script script_conns_take;
extern struct redis_script script_conns_tell;
extern struct redis_script script_era_confirm;
extern struct redis_script script_era_enter;
extern struct redis_script script_heartbeat;
extern struct redis_script script_hints;
extern struct redis_script script_inherit;
extern struct redis_script script_push;
extern struct redis_script script_release;
extern struct redis_script script_renew;
extern struct redis_script script_turn;
extern struct redis_script script_unlisted;

#endif
