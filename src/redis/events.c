/*
 * events.c - events to JSON and back.
 *
 * Runs in: master, mailherdctl.  Pure.
 *
 * One table says which fields each event carries, in both directions; it is
 * the table of mailherdctl(8), events.
 */
#include "redis/events.h"

#include "base/arena.h"
#include "base/text.h"

#include <jansson.h>
#include <stddef.h>

enum field {
	F_ACCOUNT = 1 << 0,
	F_USER = 1 << 1,
	F_STATE = 1 << 2, /* name, as "state" */
	F_REASON = 1 << 3,
	F_PATH = 1 << 4,   /* name, as "mailbox" */
	F_CHANGE = 1 << 5, /* name, as "change" */
	F_PROGRESS = 1 << 6,
	F_MAILBOX_ID = 1 << 7,
	F_IDS = 1 << 8, /* message_ids and count */
	F_JOB = 1 << 9, /* as "id" */
	F_THREADS = 1 << 10, /* thread_ids and count */
	F_UID = 1 << 11, /* done, as "uid"; 0: the folder */
};

static const char *
ids_key(unsigned has)
{
	return has & F_THREADS ? "thread_ids" : "message_ids";
}

static const unsigned fields_of[EVENT_COUNT] = {
	[EVENT_ACCOUNT_STATE] = F_ACCOUNT | F_USER | F_STATE | F_REASON,
	[EVENT_USER_ACTIVE] = F_USER,
	[EVENT_PROGRESS] = F_ACCOUNT | F_PATH | F_PROGRESS,
	[EVENT_MESSAGE_NEW] = F_ACCOUNT | F_MAILBOX_ID | F_IDS,
	[EVENT_MESSAGE_UPDATED] = F_ACCOUNT | F_MAILBOX_ID | F_IDS,
	[EVENT_MESSAGE_DELETED] = F_ACCOUNT | F_MAILBOX_ID | F_IDS,
	[EVENT_THREAD] = F_ACCOUNT | F_THREADS,
	[EVENT_MAILBOX] = F_ACCOUNT | F_MAILBOX_ID | F_CHANGE,
	[EVENT_QUARANTINE] = F_ACCOUNT | F_MAILBOX_ID | F_UID | F_CHANGE |
	    F_REASON,
	[EVENT_JOB_FAILED] = F_JOB | F_ACCOUNT | F_STATE | F_REASON,
	[EVENT_OUTBOX] = F_JOB | F_ACCOUNT | F_STATE | F_REASON,
	[EVENT_QUOTA] = F_USER,
};

static const struct {
	enum field field;
	const char *key;
	size_t offset;
} id_fields[] = {
	{ F_JOB, "id", offsetof(struct msg_event, job_id) },
	{ F_ACCOUNT, "account_id", offsetof(struct msg_event, account_id) },
	{ F_USER, "user_id", offsetof(struct msg_event, user_id) },
};

static const struct {
	enum field field;
	const char *key;
	size_t offset;
} text_fields[] = {
	{ F_STATE, "state", offsetof(struct msg_event, name) },
	{ F_PATH, "mailbox", offsetof(struct msg_event, name) },
	{ F_CHANGE, "change", offsetof(struct msg_event, name) },
	{ F_REASON, "reason", offsetof(struct msg_event, reason) },
};

static const struct {
	enum field field;
	const char *key;
	size_t offset;
} number_fields[] = {
	{ F_MAILBOX_ID, "mailbox_id", offsetof(struct msg_event, mailbox_id) },
	{ F_PROGRESS, "done", offsetof(struct msg_event, done) },
	{ F_UID, "uid", offsetof(struct msg_event, done) },
	{ F_PROGRESS, "total", offsetof(struct msg_event, total) },
};

#define N_OF(table) (sizeof(table) / sizeof((table)[0]))
#define AT(event, off) ((const char *)(event) + (off))
#define AT_RW(event, off) ((char *)(event) + (off))

const char *
event_channel(enum event_name event, char *out, size_t size)
{
	snprintf(out, size, "events:%s", event_name(event));
	return out;
}

/* Texts come from children, that is, from foreign mail. */
static json_t *
events_text_json(const char *text)
{
	char clean[MSG_TEXT_SIZE * 3];

	text_clean_line(clean, sizeof(clean), text,
	    strnlen(text, MSG_TEXT_SIZE));
	return json_string(clean);
}

static json_t *
ids_json(const struct msg_event *event)
{
	json_t *ids = json_array();
	uint32_t i;

	for (i = 0; i < event->n_ids && i < MSG_IDS_MAX; i++)
		json_array_append_new(ids, json_integer(event->ids[i]));
	return ids;
}

static json_t *
payload_json(const struct msg_event *event)
{
	unsigned has = fields_of[event->event];
	char text[UUID_TEXT_SIZE];
	json_t *payload = json_object();
	int64_t number;
	struct uuid id;
	size_t i;

	for (i = 0; i < N_OF(id_fields); i++) {
		if ((has & id_fields[i].field) == 0)
			continue;
		memcpy(&id, AT(event, id_fields[i].offset), sizeof(id));
		if (!uuid_is_null(&id))
			json_object_set_new(payload, id_fields[i].key,
			    json_string(uuid_format(&id, text)));
	}
	for (i = 0; i < N_OF(text_fields); i++)
		if (has & text_fields[i].field)
			json_object_set_new(payload, text_fields[i].key,
			    events_text_json(AT(event, text_fields[i].offset)));
	for (i = 0; i < N_OF(number_fields); i++) {
		if ((has & number_fields[i].field) == 0)
			continue;
		memcpy(&number, AT(event, number_fields[i].offset),
		    sizeof(number));
		json_object_set_new(payload, number_fields[i].key,
		    json_integer(number));
	}
	if (has & (F_IDS | F_THREADS)) {
		json_object_set_new(payload, ids_key(has), ids_json(event));
		json_object_set_new(payload, "count",
		    json_integer(event->count));
	}
	return payload;
}

char *
event_format(const struct msg_event *event, int64_t ts_secs)
{
	json_t *json;
	char *text;

	if (event->event >= EVENT_COUNT)
		return NULL;
	json = json_object();
	json_object_set_new(json, "event",
	    json_string(event_name(event->event)));
	json_object_set_new(json, "ts", json_integer(ts_secs));
	json_object_set_new(json, "payload", payload_json(event));
	text = json_dumps(json, JSON_COMPACT);
	json_decref(json);
	return text;
}

static int
event_by_name(const char *name, uint32_t *event_r)
{
	uint32_t i;

	for (i = 0; name != NULL && i < EVENT_COUNT; i++) {
		if (strcmp(name, event_name(i)) == 0) {
			*event_r = i;
			return 0;
		}
	}
	return -1;
}

static int
parse_ids(const json_t *payload, struct msg_event *event, struct err *err)
{
	const char *text;
	struct uuid id;
	size_t i;

	for (i = 0; i < N_OF(id_fields); i++) {
		if ((fields_of[event->event] & id_fields[i].field) == 0)
			continue;
		text = json_string_value(
		    json_object_get(payload, id_fields[i].key));
		if (text == NULL)
			continue;
		if (uuid_parse(text, &id) == -1)
			return err_set(err, ERR_PROTOCOL,
			    "event %s: %s is no id", event_name(event->event),
			    id_fields[i].key);
		memcpy(AT_RW(event, id_fields[i].offset), &id, sizeof(id));
	}
	return 0;
}

static void
parse_plain(const json_t *payload, struct msg_event *event)
{
	unsigned has = fields_of[event->event];
	const json_t *array, *item;
	const char *text;
	int64_t number;
	size_t i;

	for (i = 0; i < N_OF(text_fields); i++) {
		text = json_string_value(
		    json_object_get(payload, text_fields[i].key));
		if ((has & text_fields[i].field) && text != NULL)
			text_clean_line(AT_RW(event, text_fields[i].offset),
			    MSG_TEXT_SIZE, text, strlen(text));
	}
	for (i = 0; i < N_OF(number_fields); i++) {
		if ((has & number_fields[i].field) == 0)
			continue;
		number = json_integer_value(
		    json_object_get(payload, number_fields[i].key));
		memcpy(AT_RW(event, number_fields[i].offset), &number,
		    sizeof(number));
	}
	if ((has & (F_IDS | F_THREADS)) == 0)
		return;
	array = json_object_get(payload, ids_key(has));
	for (i = 0; i < json_array_size(array) && i < MSG_IDS_MAX; i++) {
		item = json_array_get(array, i);
		event->ids[event->n_ids++] = json_integer_value(item);
	}
	event->count = (uint32_t)json_integer_value(
	    json_object_get(payload, "count"));
}

int
event_parse(const char *text, size_t len, struct msg_event *event_r,
    struct err *err)
{
	struct msg_event event = { .event = 0 };
	json_t *json = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
	const json_t *payload = json_object_get(json, "payload");
	int result = -1;

	if (!json_is_object(json) || !json_is_object(payload))
		err_set(err, ERR_PROTOCOL, "event is no JSON object");
	else if (event_by_name(json_string_value(json_object_get(json,
		     "event")), &event.event) == -1)
		err_set(err, ERR_PROTOCOL, "event of unknown name");
	else if (parse_ids(payload, &event, err) == 0) {
		parse_plain(payload, &event);
		*event_r = event;
		result = 0;
	}
	json_decref(json);
	return result;
}
