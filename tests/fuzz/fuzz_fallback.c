/*
 * fuzz_fallback.c - the extension alone, with any buffer and any stream.
 */
#include "../../src/imap/fallback.c"

#include "fuzz.h"

static struct {
	const uint8_t *p, *end;
} rest;

static ssize_t
read_rest(mailstream_low *low, void *to, size_t size)
{
	size_t n = (size_t)(rest.end - rest.p);

	(void)low;
	if (n == 0)
		return -1;
	if (n > size)
		n = size;
	memcpy(to, rest.p, n);
	rest.p += n;
	return (ssize_t)n;
}

static int
nothing(mailstream_low *low)
{
	(void)low;
	return 0;
}

static void
free_nothing(mailstream_low *low)
{
	(void)low;
}

/* Byte 0: the caller; byte 1: where the buffer ends and the stream begins. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static mailstream_low_driver driver = { .mailstream_read = read_rest,
		.mailstream_close = nothing, .mailstream_free = free_nothing };
	mailstream_low low = { .driver = &driver };
	struct mailimap_extension_data *result = NULL;
	mailstream *stream;
	MMAPString *buffer;
	size_t at = 0, cut;

	if (size < 3 || size > 100000)
		return 0;
	cut = 2 + (size - 2) * data[1] / 255;
	stream = mailstream_new(&low, 64);
	buffer = mmap_string_new_len((const char *)data + 2, cut - 2);
	rest.p = data + cut;
	rest.end = data + size;
	if (fallback_parse(data[0] % 5, stream, buffer, NULL, &at, &result, 0,
		NULL) == MAILIMAP_NO_ERROR) {
		if (at > buffer->len)
			abort();
		free_data(result);
	}
	mmap_string_free(buffer);
	mailstream_close(stream);
	return 0;
}
