/*
 * test_http.c - requests for the metrics: what is understood, what refused.
 */
#include "child/http.h"

#include <check.h>

#define GET "GET /metrics HTTP/1.1\r\nHost: a\r\n"

struct row {
	int status;
	const char *text;
	size_t len; /* 0: as a string */
};

static const struct row rows[] = {
	{ 200, "GET /metrics HTTP/1.1\r\nHost: localhost:9100\r\n\r\n", 0 },
	{ 200, "GET /metrics HTTP/1.1\r\nhOST:[::1]:9100 \t\r\n\r\n", 0 },
	{ 200, "GET /metrics HTTP/1.1\r\nHost:\r\n\r\n", 0 },
	{ 200, "GET /metrics?a=b HTTP/1.0\r\n\r\n", 0 },
	{ 200, "GET http://h:1/metrics HTTP/1.1\r\nHost: h\r\n\r\n", 0 },
	{ 200, "HEAD /metrics HTTP/1.1\r\nHost: a\r\n\r\n", 0 },
	{ 200, GET "Accept: text/plain;q=0.5\t,*/*\r\nContent-Length: 0\r\n"
	    "X-Empty:\r\nX-Old: caf\xe9\r\n\r\n", 0 },
	/* what follows the head is not read */
	{ 200, GET "\r\nGET /more HTTP/1.1\n", 0 },

	/* more is needed */
	{ 0, "", 0 },
	{ 0, "G", 0 },
	{ 0, GET, 0 },
	{ 0, GET "\r", 0 },

	/* the first line */
	{ 400, "\r\n\r\n", 0 },
	{ 400, "\r\n" GET "\r\n", 0 },
	{ 400, " GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", 0 },
	{ 400, "GET  /metrics HTTP/1.1\r\nHost: a\r\n\r\n", 0 },
	{ 400, "GET\t/metrics HTTP/1.1\r\nHost: a\r\n\r\n", 0 },
	{ 400, "GET /metrics  HTTP/1.1\r\nHost: a\r\n\r\n", 0 },
	{ 400, "GET /metrics HTTP/1.1 \r\nHost: a\r\n\r\n", 0 },
	{ 400, "GET /met rics HTTP/1.1\r\nHost: a\r\n\r\n", 0 },
	{ 400, "GET /metrics\r\n\r\n", 0 },
	{ 400, "GET HTTP/1.1\r\nHost: a\r\n\r\n", 0 },
	{ 400, "GET  HTTP/1.1\r\nHost: a\r\n\r\n", 0 },
	{ 400, "G(T /metrics HTTP/1.1\r\nHost: a\r\n\r\n", 0 },
	{ 400, "GET metrics HTTP/1.1\r\nHost: a\r\n\r\n", 0 },
	{ 400, "GET /metrics#x HTTP/1.1\r\nHost: a\r\n\r\n", 0 },
	{ 400, "GET http:///metrics HTTP/1.1\r\nHost: a\r\n\r\n", 0 },
	{ 400, "GET * HTTP/1.1\r\nHost: a\r\n\r\n", 0 },
	{ 400, "GET /metr\xc3\xa9s HTTP/1.1\r\nHost: a\r\n\r\n", 0 },

	/* versions */
	{ 400, "GET /metrics HTTP/0.9\r\nHost: a\r\n\r\n", 0 },
	{ 400, "GET /metrics HTTP/1.2\r\nHost: a\r\n\r\n", 0 },
	{ 400, "GET /metrics HTTP/1.10\r\nHost: a\r\n\r\n", 0 },
	{ 400, "GET /metrics HTTP/01.1\r\nHost: a\r\n\r\n", 0 },
	{ 400, "GET /metrics HTTP/2.0\r\nHost: a\r\n\r\n", 0 },
	{ 400, "GET /metrics http/1.1\r\nHost: a\r\n\r\n", 0 },
	{ 400, "GET /metrics HTTP/1\r\nHost: a\r\n\r\n", 0 },
	{ 400, "GET /metrics HTTP/+1.1\r\nHost: a\r\n\r\n", 0 },
	{ 400, "GET /metrics HTTP /1.1\r\nHost: a\r\n\r\n", 0 },
	{ 400, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 0 },

	/* hosts */
	{ 400, "GET /metrics HTTP/1.1\r\n\r\n", 0 },
	{ 400, GET "Host: a\r\n\r\n", 0 },
	{ 400, GET "HOST: b\r\n\r\n", 0 },
	{ 400, "GET /metrics HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", 0 },
	{ 400, "GET /metrics HTTP/1.1\r\nHost: a b\r\n\r\n", 0 },
	{ 400, "GET /metrics HTTP/1.1\r\nHost: a/b\r\n\r\n", 0 },
	{ 400, "GET /metrics HTTP/1.1\r\nHost: a@b\r\n\r\n", 0 },

	/* lengths and codings */
	{ 400, GET "Content-Length: 0\r\nContent-Length: 0\r\n\r\n", 0 },
	{ 400, GET "Content-Length: 0\r\ncontent-length: 5\r\n\r\n", 0 },
	{ 400, GET "Content-Length: 0, 0\r\n\r\n", 0 },
	{ 400, GET "Content-Length: +0\r\n\r\n", 0 },
	{ 400, GET "Content-Length: -1\r\n\r\n", 0 },
	{ 400, GET "Content-Length: 0x0\r\n\r\n", 0 },
	{ 400, GET "Content-Length: 1 2\r\n\r\n", 0 },
	{ 400, GET "Content-Length:\r\n\r\n", 0 },
	{ 400, GET "Content-Length: 99999999999999999999\r\n\r\n", 0 },
	{ 413, GET "Content-Length: 5\r\n\r\nhello", 0 },
	{ 400, GET "Transfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n0\r\n\r\n",
	    0 },
	{ 400, GET "Transfer-Encoding: identity\r\n\r\n", 0 },
	{ 400, GET "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
	    0 },

	/* lines */
	{ 400, "GET /metrics HTTP/1.1\nHost: a\n\n", 0 },
	{ 400, GET "X: a\nY: b\r\n\r\n", 0 },
	{ 400, GET "X: a\rb\r\n\r\n", 0 },
	{ 400, GET "X: a\0b\r\n\r\n", sizeof(GET "X: a\0b\r\n\r\n") - 1 },
	{ 400, "GET /met\0rics HTTP/1.1\r\nHost: a\r\n\r\n", 35 },
	{ 400, GET "X: a\x01\r\n\r\n", 0 },
	{ 400, GET "X: a\x7f\r\n\r\n", 0 },
	{ 400, GET "X : a\r\n\r\n", 0 },
	{ 400, GET " X: a\r\n\r\n", 0 },
	{ 400, GET "X: a\r\n b\r\n\r\n", 0 },
	{ 400, GET ": a\r\n\r\n", 0 },
	{ 400, GET "no colon\r\n\r\n", 0 },
	{ 400, GET "X(: a\r\n\r\n", 0 },
	/* seen before the end */
	{ 400, "\x16\x03\x01\x02", 0 },
	{ 400, "GET /metrics HTTP/1.1\n", 0 },

	/* methods */
	{ 405, "POST /metrics HTTP/1.1\r\nHost: a\r\n\r\n", 0 },
	{ 405, "get /metrics HTTP/1.1\r\nHost: a\r\n\r\n", 0 },
	{ 405, "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 0 },
	{ 405, "CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n", 0 },
};

START_TEST(each_request_is_understood_or_refused)
{
	const struct row *row = &rows[_i];
	size_t len = row->len > 0 ? row->len : strlen(row->text), n;
	struct http_request request;

	ck_assert_msg(http_parse(row->text, len, &request) == row->status,
	    "%s: %d instead of %d", row->text,
	    http_parse(row->text, len, &request), row->status);
	if (row->status == 200)
		ck_assert_str_eq(request.path, "/metrics");
	/* Whatever came of it before its end was no other answer. */
	for (n = 0; n < len; n++) {
		int status = http_parse(row->text, n, &request);

		ck_assert(status == 0 || status == row->status);
	}
}
END_TEST

START_TEST(heads_and_names_have_limits)
{
	static const char rest[] = " HTTP/1.0\r\n\r\n";
	static char text[HTTP_HEAD_MAX + 1];
	struct http_request request;

	memset(text, 'a', sizeof(text));
	memcpy(text, GET "X: ", sizeof(GET "X: ") - 1);
	ck_assert_int_eq(http_parse(text, HTTP_HEAD_MAX - 1, &request), 0);
	ck_assert_int_eq(http_parse(text, HTTP_HEAD_MAX, &request), 431);
	memset(text, 'a', sizeof(text));
	memcpy(text, "GET /", 5);
	memcpy(text + 5 + HTTP_PATH_SIZE, rest, sizeof(rest));
	ck_assert_int_eq(http_parse(text, strlen(text), &request), 414);
	memcpy(text + 5 + HTTP_PATH_SIZE - 2, rest, sizeof(rest));
	ck_assert_int_eq(http_parse(text, strlen(text), &request), 200);
	ck_assert_uint_eq(strlen(request.path), HTTP_PATH_SIZE - 1);
}
END_TEST

START_TEST(an_answer_to_head_has_no_text)
{
	static const char head[] = "HEAD /x HTTP/1.0\r\n\r\n";
	static const char get[] = "GET /x HTTP/1.0\r\n\r\n";
	struct http_request request;

	ck_assert_int_eq(http_parse(head, sizeof(head) - 1, &request), 200);
	ck_assert(request.is_head);
	ck_assert_int_eq(http_parse(get, sizeof(get) - 1, &request), 200);
	ck_assert(!request.is_head);
	ck_assert_str_eq(request.path, "/x");
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("http");
	TCase *tc = tcase_create("http");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_loop_test(tc, each_request_is_understood_or_refused, 0,
	    sizeof(rows) / sizeof(rows[0]));
	tcase_add_test(tc, heads_and_names_have_limits);
	tcase_add_test(tc, an_answer_to_head_has_no_text);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
