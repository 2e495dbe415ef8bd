/*
 * fuzz_charset.c - any bytes, in any charset or without a label, to text that
 * can be stored; and the small readers that such text goes to.
 *
 * The first byte chooses the charset.
 */
#include "config.h"

#include "base/text.h"
#include "mime/charset.h"
#include "mime/date.h"
#include "mime/detect.h"
#include "mime/html.h"
#include "mime/subject.h"

#include "fuzz.h"

static void
check_text(const char *text, size_t len)
{
	if (!text_is_utf8(text, len) || memchr(text, '\0', len) != NULL)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool is_ready;
	struct arena *arena = arena_new("fuzz");
	const char *bytes = (const char *)data + 1, *text;
	struct buf html = BUF_INIT;
	enum charset charset;
	bool is_reply;
	int64_t secs;
	size_t len;

	if (!is_ready)
		detect_init();
	is_ready = true;
	if (size == 0) {
		arena_free(&arena);
		return 0;
	}
	charset = (enum charset)(data[0] % CHARSET_COUNT);
	text = charset_convert(arena, charset, bytes, size - 1, &len);
	check_text(text, len);
	if (detect_charset(bytes, size - 1) == CHARSET_GUESSED)
		abort();
	charset_of_raw(bytes, size - 1, charset);
	charset_find(bytes, size - 1);
	date_parse(text, len, &secs);
	html_to_text(&html, text, len, 1000);
	check_text(buf_str(&html), html.len);
	text = subject_base(arena, arena_strndup(arena, text, len), &is_reply);
	check_text(text, strlen(text));
	buf_release(&html);
	arena_free(&arena);
	return 0;
}
