/*
 * socket.h - a question to a running daemon over its control socket.
 *
 * One JSON object per line each way: {"cmd":"status"} -> {"ok":true,...} or
 * {"ok":false,"error":"..."}.
 */
#ifndef CTL_SOCKET_H
#define CTL_SOCKET_H

#include "base/err.h"

#include <jansson.h>

/*
 * Sends `request` (the reference stays the caller's) and waits for the line.
 * *reply_r is a new reference.  A reply that is not ok is an error with the
 * daemon's words (ERR_PERMANENT); ERR_NETWORK: nobody listens there.
 */
int socket_call(const char *path, json_t *request, json_t **reply_r,
    struct err *err);

#endif
