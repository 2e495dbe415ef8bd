/*
 * fuzz_http.c - what may reach the port of the metrics.
 */
#include "child/http.h"

#include "fuzz.h"

#include <stdlib.h>

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct http_request request;
	const char *text = (const char *)data;
	int status = http_parse(text, size, &request);

	if (status == 200 && (memchr(request.path, '\0',
		sizeof(request.path)) == NULL || request.path[0] != '/'))
		abort();
	if (status == 0 && size >= HTTP_HEAD_MAX)
		abort();
	/* What was refused stays refused, whatever follows. */
	if (status == 0 && size > 0) {
		int before = http_parse(text, size - 1, &request);

		if (before != 0)
			abort();
	}
	return 0;
}
