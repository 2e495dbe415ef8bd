/*
 * http.h - one request for the metrics, read strictly.
 */
#ifndef CHILD_HTTP_H
#define CHILD_HTTP_H

#include "base/banned.h"

#include <stdbool.h>
#include <stddef.h>

#define HTTP_HEAD_MAX 8192
#define HTTP_PATH_SIZE 128

struct http_request {
	bool is_head; /* HEAD: an answer without its text */
	char path[HTTP_PATH_SIZE];
};

/*
 * 0: more bytes are needed.  200: understood, and request_r is filled in.
 * Else the status to refuse it with; the connection is then of no use.
 */
int http_parse(const char *bytes, size_t len, struct http_request *request_r);
const char *http_reason(int status);

#endif
