/*
 * fuzz_mime.c - any bytes to a message that can be stored.
 */
#include "base/text.h"
#include "mime/mime.h"

#include "fuzz.h"

const char fuzz_more_seeds[] = "tests/corpus";

static void
check(const char *s)
{
	if (s != NULL && !text_is_utf8(s, strlen(s)))
		abort();
}

static void
check_content(const struct content *c)
{
	size_t i;

	check(c->subject);
	check(c->base_subject);
	check(c->message_id);
	check(c->in_reply_to);
	check(c->snippet);
	check(c->text);
	if (strlen(c->text) != c->text_len)
		abort();
	for (i = 0; i < c->n_senders; i++) {
		check(c->senders[i].name);
		check(c->senders[i].addr);
	}
	for (i = 0; i < c->n_recipients; i++) {
		check(c->recipients[i].name);
		check(c->recipients[i].addr);
	}
	for (i = 0; i < c->n_references; i++)
		check(c->references[i]);
	for (i = 0; i < c->n_attachments; i++) {
		check(c->attachments[i].filename);
		check(c->attachments[i].content_type);
		check(c->attachments[i].content_id);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool is_ready;
	struct arena *arena = arena_new("fuzz");
	struct content content;

	if (!is_ready)
		mime_init();
	is_ready = true;
	mime_parse(arena, data, size, &mime_default_limits, &content);
	check_content(&content);
	arena_free(&arena);
	return 0;
}
