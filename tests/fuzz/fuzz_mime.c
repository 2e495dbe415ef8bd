/*
 * fuzz_mime.c - any bytes to a message that can be stored; the same from
 * memory and from a file.
 */
#include "config.h"

#include "base/text.h"
#include "mime/mime.h"

#include "fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

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
	check(c->extra);
	if (strlen(c->text) != c->text_len ||
	    strlen(c->extra) != c->extra_len)
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

static bool
is_same(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static void
check_same(const struct content *a, const struct content *b)
{
	size_t i;

	if (a->state != b->state || !is_same(a->subject, b->subject) ||
	    !is_same(a->from_addr, b->from_addr) ||
	    !is_same(a->message_id, b->message_id) ||
	    !is_same(a->text, b->text) || !is_same(a->extra, b->extra) ||
	    a->n_recipients != b->n_recipients ||
	    a->n_references != b->n_references ||
	    a->n_attachments != b->n_attachments)
		abort();
	for (i = 0; i < a->n_attachments; i++)
		if (a->attachments[i].size != b->attachments[i].size ||
		    !is_same(a->attachments[i].filename,
		    b->attachments[i].filename))
			abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool is_ready;
	static int fd = -1;
	struct arena *arena = arena_new("fuzz");
	struct content content, of_file;

	if (!is_ready) {
		mime_init();
		fd = memfd_create("fuzz", MFD_CLOEXEC);
	}
	is_ready = true;
	if (fd == -1 || ftruncate(fd, 0) == -1 ||
	    pwrite(fd, data, size, 0) != (ssize_t)size)
		abort();
	mime_parse(arena, data, size, &mime_default_limits, &content);
	check_content(&content);
	mime_parse_fd(arena, fd, size, &mime_default_limits, &of_file);
	check_same(&content, &of_file);
	arena_free(&arena);
	return 0;
}
