/*
 * control.h - the control socket: JSON lines between mailherdctl and master.
 *
 *	{"cmd":"status"}		{"ok":true, ...}
 *	{"cmd":"ps"}			{"ok":true,"children":[{...},...]}
 *	{"cmd":"explain","account":UUID}
 *					{"ok":true,"chain":["...",...], ...}
 *	{"cmd":"poll","account":UUID}		{"ok":true}
 *	{"cmd":"tier","account":UUID,"tier":"hot|warm|cold|auto"}
 *	{"cmd":"release","account":UUID}
 *	{"cmd":"drain"}, {"cmd":"reload"}, {"cmd":"stop"}
 *	{"cmd":"log","level":"debug","subsystem":"lease"}
 *	{"cmd":"metrics"}			{"ok":true,"text":"..."}
 *
 * Errors: {"ok":false,"error":"..."}.  Account is an id or an e-mail address.
 * Only root and the daemon's own user are heard.
 */
#ifndef MASTER_CONTROL_H
#define MASTER_CONTROL_H

#include "base/err.h"

#include <jansson.h>
#include <stddef.h>

struct control;
struct master;

/* -1: the socket cannot be made; ERR_TEMPORARY: not now. */
int control_new(struct control **control_r, struct master *m,
    struct err *err);
void control_free(struct control **control);

/*
 * One line in, one line out (to be freed, without the line end).  Never fails:
 * nonsense gives an error object.  commands.c.
 */
char *control_answer(struct master *m, const char *line, size_t len);

/* Longest line accepted. */
#define CONTROL_LINE_MAX 8192

#endif
