/*
 * server.h - a small Redis: the data, the commands, and scripts by the Lua
 * that Redis itself has, so that those of src/lease run here as they are.
 */
#ifndef SIMULATION_SERVER_H
#define SIMULATION_SERVER_H

#include "base/arena.h"

#include <stdint.h>

struct redisReply;

/* The reply lives in `memory`. */
struct redisReply *server_do(struct arena *memory, const char *const *argv,
    size_t argc);
struct redisReply *server_eval(struct arena *memory, const char *source,
    const char *const *args, size_t n_keys, size_t n_args);

/* Called by PUBLISH. */
void server_published(const char *channel, const char *message);

/* All it knows; and as it was at the last call. */
void data_save(void);
void data_load_saved(void);
void data_wipe(void);
/* A process of its own: INFO tells another run id. */
void data_new_run(void);
/* Nothing is left of an earlier history. */
void data_reset(void);

#endif
