/*
 * rawlog.c - what went over the wire, for whoever debugs one account.
 *
 * Runs in: hot, pool and job children.  Blocks only as a local file does.
 */
#include "net/rawlog.h"

#include "base/clock.h"
#include "base/text.h"
#include "base/xmem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

#define LINE_SHOWN 2000

struct rawlog {
	int fd;
	int64_t start_mono_msecs;
	const struct mask *mask; /* NULL: nothing to hide yet */
};

int
rawlog_open(struct rawlog **l_r, const char *path, struct err *err)
{
	struct rawlog *l;
	int fd;

	*l_r = NULL;
	if (path == NULL || path[0] == '\0')
		return 0;
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW,
	    0600);
	if (fd == -1)
		return err_set(err, ERR_CONFIG, "rawlog %s: %s", path,
		    strerror(errno));
	l = xcalloc(1, sizeof(*l));
	l->fd = fd;
	l->start_mono_msecs = clock_mono_msecs();
	*l_r = l;
	return 0;
}

void
rawlog_close(struct rawlog **l)
{
	if (*l == NULL)
		return;
	close((*l)->fd);
	free(*l);
	*l = NULL;
}

void
rawlog_hide(struct rawlog *l, const struct mask *mask)
{
	if (l != NULL)
		l->mask = mask;
}

static void
write_line(struct rawlog *l, char direction, const char *text, size_t len)
{
	char clean[LINE_SHOWN], line[LINE_SHOWN + 40];
	int64_t msecs = clock_mono_msecs() - l->start_mono_msecs;
	ssize_t n;
	int used;

	text_clean_line(clean, sizeof(clean), text, len);
	used = snprintf(line, sizeof(line), "%d %6lld.%03d %c %s\n",
	    (int)getpid(), (long long)(msecs / 1000), (int)(msecs % 1000),
	    direction, clean);
	do
		n = write(l->fd, line, (size_t)used);
	while (n == -1 && errno == EINTR);
}

static size_t
without_line_end(const char *line, size_t len)
{
	while (len > 0 && (line[len - 1] == '\n' || line[len - 1] == '\r'))
		len--;
	return len;
}

void
rawlog_in(struct rawlog *l, const char *line, size_t len)
{
	struct buf shown = BUF_INIT;

	if (l == NULL)
		return;
	mask_add(&shown, l->mask, line, without_line_end(line, len));
	write_line(l, 'S', shown.data, shown.len);
	buf_release(&shown);
}

void
rawlog_out(struct rawlog *l, const char *line, size_t len, bool is_secret)
{
	size_t n;

	if (l == NULL)
		return;
	if (is_secret) {
		rawlog_note(l, "(sent %zu bytes that are not shown)", len);
		return;
	}
	for (; len > 0; line += n, len -= n) {
		const char *end = memchr(line, '\n', len);

		n = end != NULL ? (size_t)(end - line) + 1 : len;
		write_line(l, 'C', line, without_line_end(line, n));
	}
}

void
rawlog_note(struct rawlog *l, const char *fmt, ...)
{
	char text[400];
	va_list ap;

	if (l == NULL)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	write_line(l, '#', text, strlen(text));
}
