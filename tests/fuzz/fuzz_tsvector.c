/*
 * fuzz_tsvector.c - any text to an index, any line to a query.
 */
#include "mail/tsvector.h"

#include "fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *arena = arena_new("fuzz");
	struct tsv_input in[] = { { (const char *)data, size / 2, 'A' },
		{ (const char *)data + size / 2, size - size / 2, 'D' } };
	struct buf out = BUF_INIT;
	char *query = arena_strndup(arena, (const char *)data, size);

	tsvector_build(&out, in, 2);
	if (out.len < 4)
		abort();
	tsquery_build(arena, query);
	buf_release(&out);
	arena_free(&arena);
	return 0;
}
