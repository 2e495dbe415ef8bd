/*
 * control.h - the control port: one JSON object per line each way.
 *
 * The commands stand in README.md.  A command has taken effect, and the news of
 * it are on their way to whoever idles, when its answer is written.
 */
#ifndef MOCKIMAPD_CONTROL_H
#define MOCKIMAPD_CONTROL_H

#include "mailbox.h"
#include "record.h"
#include "world.h"

#include <jansson.h>

struct control_call {
	struct world *world;
	const json_t *in;
	json_t *out;	   /* an object; what the answer holds besides ok */
	const char *error; /* set: it failed */
};

struct control;
struct control *control_new(struct world *world);
void control_free(struct control **control);
/* Takes the descriptor of a client. */
void control_open(struct control *control, int fd);
/* For one line, as from a client; the answer, to be freed. */
char *control_answer(struct world *world, const char *line, size_t len);

/* Arguments; what is missing or of another type sets `error`. */
const char *control_text(struct control_call *call, const char *key);
const char *control_text_or(const struct control_call *call, const char *key,
    const char *preset);
int64_t control_number_or(const struct control_call *call, const char *key,
    int64_t preset);
struct account *control_account(struct control_call *call);
struct folder *control_folder(struct control_call *call, const char *key);
void control_set(struct control_call *call, const char *key, json_t *value);

#define CONTROL(name) void name(struct control_call *call)
/* control_mail.c: changes, as by a second client */
CONTROL(control_deliver);
CONTROL(control_append);
CONTROL(control_replace);
CONTROL(control_flags);
CONTROL(control_expunge);
CONTROL(control_move);
CONTROL(control_create);
CONTROL(control_rename);
CONTROL(control_delete);
CONTROL(control_uidvalidity);
CONTROL(control_password);
CONTROL(control_traffic);
CONTROL(control_state);
/* control_look.c: counters, connections, log, faults, groups */
CONTROL(control_status);
CONTROL(control_accounts);
CONTROL(control_connections);
CONTROL(control_reset);
CONTROL(control_log);
CONTROL(control_group);
CONTROL(control_limit);
CONTROL(control_fault);
CONTROL(control_faults);
CONTROL(control_clear);
CONTROL(control_kick);

#endif
