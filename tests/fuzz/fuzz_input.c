/*
 * fuzz_input.c - any bytes of a server, up to where the parser begins.
 *
 * What the wire hands out must be whole lines and announced literals, nothing
 * else, whatever came in.
 */
#include "imap/stream.h"

#include "fuzz.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

/* The server's end of a connection that says `data` and closes. */
static int
server_that_says(const uint8_t *data, size_t size)
{
	int fds[2], big = 1 << 20;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) == -1)
		abort();
	setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &big, sizeof(big));
	if (send(fds[1], data, size, MSG_NOSIGNAL) == -1 && size > 0)
		abort();
	close(fds[1]);
	return fds[0];
}

static void
check_framing(const struct buf *out)
{
	const char *p = buf_str(out), *end = p + out->len, *nl;

	while (p < end) {
		unsigned long size = 0;
		const char *q;

		nl = memchr(p, '\n', (size_t)(end - p));
		if (nl == NULL)
			break; /* cut by the end of the stream */
		if (nl == p || nl[-1] != '\r')
			abort();
		for (q = nl - 1; q > p && q[-1] != '{'; q--)
			;
		if (nl[-2] == '}' && q > p && p[0] == '*' &&
		    strncmp(p, "* OK", 4) != 0 && strncmp(p, "* NO", 4) != 0 &&
		    strncmp(p, "* BAD", 5) != 0)
			size = strtoul(q, NULL, 10);
		p = nl + 1;
		if (size > (size_t)(end - p))
			break;
		p += size;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stream_params params = { .host = "fuzz", .max_line = 4096 };
	struct buf out = BUF_INIT;
	size_t chunk;
	struct stream *w;
	ssize_t n;

	if (size < 1 || size > 100000)
		return 0;
	chunk = data[0] % 4 == 0 ? 1 : (size_t)data[0] * 64;
	params.fd = server_that_says(data + 1, size - 1);
	w = stream_new(&params);
	stream_set_deadline(w, 1000);
	for (;;) {
		n = stream_low(w)->driver->mailstream_read(stream_low(w),
		    buf_reserve(&out, chunk), chunk);
		if (n == 0 || n > (ssize_t)chunk)
			abort();
		if (n < 0)
			break;
		out.len += (size_t)n;
		out.data[out.len] = '\0';
	}
	if (stream_error(w)->kind == ERR_NONE)
		abort();
	/* Continuation lines of a reply look like anything: only when no
	 * literal is about can lines be told apart. */
	if (memchr(data + 1, '{', size - 1) == NULL)
		check_framing(&out);
	stream_free(&w);
	buf_release(&out);
	return 0;
}
