/*
 * source.c - libconfuse, kept from ending the process or writing to stderr.
 *
 * Runs in: every process, at start and at SIGHUP.  Blocks on one file.
 */
#include "conf/source.h"

#include "base/xmem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX_BYTES (1024 * 1024)

/* libconfuse hands its callbacks no pointer of ours; parsing is not nested. */
static struct {
	struct err *err;
	bool has_failed;
} parsing;

const char *
source_where(const cfg_t *cfg, char *out, size_t size)
{
	snprintf(out, size, "%s:%d",
	    cfg->filename != NULL ? cfg->filename : "?", cfg->line);
	return out;
}

static void
on_error(cfg_t *cfg, const char *fmt, va_list ap)
{
	char where[300], text[400];

	if (parsing.has_failed)
		return;
	parsing.has_failed = true;
	vsnprintf(text, sizeof(text), fmt, ap);
	err_set(parsing.err, ERR_CONFIG, "%s: %s",
	    source_where(cfg, where, sizeof(where)), text);
}

static int
source_read_all(int fd, const char *file, struct buf *text, struct err *err)
{
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) == -1 || !S_ISREG(st.st_mode))
		return err_set(err, ERR_CONFIG, "%s: not a regular file",
		    file);
	do {
		n = read(fd, buf_reserve(text, 65536), 65536);
		if (n == -1)
			return err_set(err, ERR_CONFIG, "%s: %s", file,
			    strerror(errno));
		text->len += (size_t)n;
	} while (n > 0 && text->len <= FILE_MAX_BYTES);
	if (text->len > FILE_MAX_BYTES)
		return err_set(err, ERR_CONFIG, "%s: larger than %d bytes",
		    file, FILE_MAX_BYTES);
	return 0;
}

int
source_read(const char *file, struct buf *text, struct err *err)
{
	/* O_NONBLOCK: a fifo must not hold up the start */
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK), result;

	if (fd == -1)
		return err_set(err, errno == ENOENT ? ERR_GONE : ERR_CONFIG,
		    "%s: %s", file, strerror(errno));
	result = source_read_all(fd, file, text, err);
	close(fd);
	return result;
}

/* Returns the end of the quoted string that begins at `p`. */
static char *
skip_string(char *p, const char *end)
{
	char quote = *p++;

	while (p < end && *p != quote)
		p += *p == '\\' && p + 1 < end ? 2 : 1;
	return p < end ? p + 1 : p;
}

/* Blanks a comment that begins at `p`, line ends kept; returns its end. */
static char *
blank_comment(char *p, const char *end)
{
	bool is_block = p + 1 < end && p[0] == '/' && p[1] == '*';

	for (; p < end; p++) {
		if (is_block && p + 1 < end && p[0] == '*' && p[1] == '/') {
			p[0] = p[1] = ' ';
			return p + 2;
		}
		if (*p == '\n' && !is_block)
			return p;
		if (*p != '\n')
			*p = ' ';
	}
	return p;
}

/* libconfuse 3.3 counts each comment as three lines: it gets to see none. */
static void
blank_comments(char *p, const char *end)
{
	bool is_inside = false; /* of a word: unix://path is one */

	while (p < end) {
		if (*p == '"' || *p == '\'') {
			p = skip_string(p, end);
			is_inside = false;
		} else if (*p == '#' || (!is_inside && p + 1 < end &&
			p[0] == '/' && (p[1] == '/' || p[1] == '*'))) {
			p = blank_comment(p, end);
		} else {
			is_inside = strchr(" \t\r\n={}()+,", *p) == NULL;
			p++;
		}
	}
}

/*
 * libconfuse takes a file that ends inside a section for a whole one; with a
 * last line of our own, which must be seen outside of any section, it does
 * not.
 */
static void
conf_source_parse(cfg_t *cfg, char *text, size_t len)
{
	FILE *stream = fmemopen(text, len, "r");

	if (stream == NULL)
		xmem_fail(len);
	if (cfg_parse_fp(cfg, stream) != CFG_SUCCESS)
		cfg_error(cfg, "not understood");
	else if (!cfg_getbool(cfg, "end_of_file"))
		cfg_error(cfg, "ends inside a string or comment");
	fclose(stream);
}

/*
 * From memory and not by name: libconfuse's scanner ends the process when it
 * cannot read (a directory, an I/O error).
 */
int
source_parse(cfg_t *cfg, const char *file, const char *text, size_t len,
    void (*on_parsed)(void *arg, cfg_t *cfg), void *arg, struct err *err)
{
	struct buf copy = BUF_INIT;

	parsing.err = err;
	parsing.has_failed = false;
	cfg_set_error_function(cfg, on_error);
	free(cfg->filename);
	cfg->filename = xstrdup(file);
	buf_add(&copy, text, len);
	buf_adds(&copy, "\nend_of_file = true\n");
	blank_comments(copy.data, copy.data + copy.len);
	if (memchr(text, '\0', len) != NULL)
		cfg_error(cfg, "the file has a NUL byte");
	else
		conf_source_parse(cfg, copy.data, copy.len);
	if (!parsing.has_failed && on_parsed != NULL)
		on_parsed(arg, cfg);
	buf_release(&copy);
	cfg_free(cfg);
	parsing.err = NULL;
	return parsing.has_failed ? -1 : 0;
}
