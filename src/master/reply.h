/*
 * reply.h - members of an answer on the control socket.
 *
 * Private to control.c, commands.c, explain.c and metrics.c.
 */
#ifndef MASTER_REPLY_H
#define MASTER_REPLY_H

#include "base/text.h"
#include "base/uuid.h"
#include "master/state.h"

#include <jansson.h>

struct account;

/* Whatever the text was: one line of valid UTF-8. */
static inline void
reply_text(json_t *object, const char *key, const char *value)
{
	char clean[512];

	text_clean_line(clean, sizeof(clean), value, strlen(value));
	json_object_set_new(object, key, json_string(clean));
}

static inline void
reply_number(json_t *object, const char *key, int64_t value)
{
	json_object_set_new(object, key, json_integer(value));
}

/* null for no id. */
static inline void
reply_id(json_t *object, const char *key, const struct uuid *id)
{
	char text[UUID_TEXT_SIZE];

	json_object_set_new(object, key, uuid_is_null(id) ? json_null() :
	    json_string(uuid_format(id, text)));
}

/* explain.c: the whole story of an account of this worker. */
void explain_account(struct master *m, const struct account *account,
    json_t *reply);

#endif
