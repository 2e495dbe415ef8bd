/*
 * hints.c - tier, pin, open session; publishing events.
 *
 * Runs in: master.  Never blocks.
 */
#include "lease/hints.h"

#include "base/clock.h"
#include "base/xmem.h"
#include "redis/events.h"
#include "redis/redis.h"
#include "redis/scripts.h"

#include <bsd/string.h>
#include <hiredis/hiredis.h>

#include <stdlib.h>

#define PAGE 100
#define KEY_SIZE 256

struct question {
	void (*on_hints)(void *arg, const struct uuid *account_id,
	    const struct hints *hints);
	void *arg;
	size_t n;
	struct uuid ids[PAGE];
};

static int64_t
session_left(const redisReply *pttl)
{
	if (pttl->type != REDIS_REPLY_INTEGER || pttl->integer == -2)
		return 0;
	/* Without expiry it is open until somebody removes it. */
	return pttl->integer == -1 ? INT32_MAX : pttl->integer;
}

static void
hints_on_answer(void *arg, const redisReply *reply)
{
	struct question *q = arg;
	struct hints hints;
	size_t i;

	if (reply != NULL && reply->type == REDIS_REPLY_ERROR)
		log_warn(NULL, "hints: %s", reply->str);
	for (i = 0; reply != NULL && reply->type == REDIS_REPLY_ARRAY &&
	    i < q->n && i * 3 + 2 < reply->elements; i++) {
		redisReply **r = &reply->element[i * 3];

		strlcpy(hints.tier, r[0]->str ? r[0]->str : "",
		    sizeof(hints.tier));
		strlcpy(hints.pin, r[1]->str ? r[1]->str : "",
		    sizeof(hints.pin));
		hints.session_msecs = session_left(r[2]);
		q->on_hints(q->arg, &q->ids[i], &hints);
	}
	free(q);
}

static void
ask_page(struct redis *redis, const struct uuid *account_ids,
    const struct uuid *user_ids, struct question *q)
{
	static char keys[PAGE * 3][KEY_SIZE];
	const char *args[PAGE * 3], *prefix = redis_prefix(redis);
	char text[UUID_TEXT_SIZE];
	size_t i;

	for (i = 0; i < q->n; i++) {
		q->ids[i] = account_ids[i];
		uuid_format(&account_ids[i], text);
		snprintf(keys[i * 3], KEY_SIZE, "%ssync:tier:%s", prefix, text);
		snprintf(keys[i * 3 + 1], KEY_SIZE, "%ssync:pin:%s", prefix,
		    text);
		uuid_format(&user_ids[i], text);
		snprintf(keys[i * 3 + 2], KEY_SIZE, "%ssess:active:%s", prefix,
		    text);
	}
	for (i = 0; i < q->n * 3; i++)
		args[i] = keys[i];
	if (redis_eval(redis, &script_hints, hints_on_answer, q, q->n * 3, args,
		q->n * 3) == -1)
		free(q);
}

void
hints_ask(struct redis *redis, const struct uuid *account_ids,
    const struct uuid *user_ids, size_t n,
    void (*on_hints)(void *, const struct uuid *, const struct hints *),
    void *arg)
{
	struct question *q;
	size_t done;

	for (done = 0; done < n; done += PAGE) {
		q = xcalloc(1, sizeof(*q));
		q->on_hints = on_hints;
		q->arg = arg;
		q->n = n - done < PAGE ? n - done : PAGE;
		ask_page(redis, account_ids + done, user_ids + done, q);
	}
}

void
hints_write_tier(struct redis *redis, const struct uuid *account_id,
    const char *tier)
{
	char text[UUID_TEXT_SIZE];

	redis_send(redis, NULL, NULL, "SET %ssync:tier:%s %s",
	    redis_prefix(redis), uuid_format(account_id, text), tier);
}

void
hints_write_pin(struct redis *redis, const struct uuid *account_id,
    const char *tier)
{
	char text[UUID_TEXT_SIZE];

	uuid_format(account_id, text);
	if (tier[0] == '\0')
		redis_send(redis, NULL, NULL, "DEL %ssync:pin:%s",
		    redis_prefix(redis), text);
	else
		redis_send(redis, NULL, NULL, "SET %ssync:pin:%s %s",
		    redis_prefix(redis), text, tier);
}

void
hints_set_live(struct redis *redis, const struct uuid *account_id,
    bool is_live)
{
	char text[UUID_TEXT_SIZE];

	redis_send(redis, NULL, NULL, "%s %ssync:live %s",
	    is_live ? "SADD" : "SREM", redis_prefix(redis),
	    uuid_format(account_id, text));
}

void
hints_forget(struct redis *redis, const struct uuid *account_id)
{
	const char *prefix = redis_prefix(redis);
	char text[UUID_TEXT_SIZE];

	uuid_format(account_id, text);
	redis_send(redis, NULL, NULL, "DEL %ssync:tier:%s %ssync:pin:%s",
	    prefix, text, prefix, text);
}

void
hints_publish(struct redis *redis, const struct msg_event *event)
{
	char channel[EVENT_CHANNEL_SIZE], *text;

	text = event_format(event, clock_wall_secs());
	if (text == NULL)
		return;
	redis_send(redis, NULL, NULL, "PUBLISH %s%s %s", redis_prefix(redis),
	    event_channel(event->event, channel, sizeof(channel)), text);
	free(text);
}
