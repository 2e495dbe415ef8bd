/*
 * display.c - text as a terminal shows it.
 *
 * Runs in: mailherdctl.
 *
 * Everything mailherdctl prints for people passes through display_clean():
 * subjects, folder names and server replies were written by strangers.
 */
#include "config.h" /* _GNU_SOURCE: wcwidth */

#include "ctl/display.h"

#include "base/text.h"

#include <bsd/stdlib.h>
#include <locale.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

static int forced_colours = -1;

void
display_init(void)
{
	/* wcwidth() knows nothing beyond ASCII in the C locale. */
	if (setlocale(LC_CTYPE, "C.UTF-8") == NULL)
		setlocale(LC_CTYPE, "");
}

/* The next character of valid UTF-8 and its length. */
static wchar_t
display_decode(const unsigned char *p, unsigned len)
{
	switch (len) {
	case 1:
		return p[0];
	case 2:
		return (p[0] & 0x1f) << 6 | (p[1] & 0x3f);
	case 3:
		return (p[0] & 0x0f) << 12 | (p[1] & 0x3f) << 6 |
		    (p[2] & 0x3f);
	default:
		return (p[0] & 0x07) << 18 | (p[1] & 0x3f) << 12 |
		    (p[2] & 0x3f) << 6 | (p[3] & 0x3f);
	}
}

static bool
is_bidi_control(wchar_t c)
{
	return (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) ||
	    c == 0x200e || c == 0x200f || c == 0x061c;
}

static bool
is_control(wchar_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 ||
	    c == 0x2029 || c == 0xfeff;
}

static void
ctl_display_clean(struct buf *out, const char *s, bool keep_lines)
{
	const unsigned char *p = (const unsigned char *)s;
	size_t left = strlen(s);

	while (left > 0) {
		unsigned len = text_utf8_char(p, left);
		wchar_t c = len > 0 ? display_decode(p, len) : 0xfffd;

		if (len == 0) {
			buf_adds(out, "\xef\xbf\xbd");
			len = 1;
		} else if (c == '\n' && keep_lines) {
			buf_addc(out, '\n');
		} else if (c == '\r' && keep_lines) {
			; /* CRLF is one line end */
		} else if (c == '\t' || c == '\n' || c == '\r') {
			buf_addc(out, ' ');
		} else if (is_control(c)) {
			buf_adds(out, "\xef\xbf\xbd");
		} else if (!is_bidi_control(c)) {
			buf_add(out, p, len);
		}
		p += len;
		left -= len;
	}
}

void
display_clean(struct buf *out, const char *s)
{
	ctl_display_clean(out, s, false);
}

void
display_clean_text(struct buf *out, const char *s)
{
	ctl_display_clean(out, s, true);
}

static size_t
char_width(wchar_t c)
{
	int width = wcwidth(c);

	return width >= 0 ? (size_t)width : 1;
}

size_t
display_width(const char *s)
{
	const unsigned char *p = (const unsigned char *)s;
	size_t left = strlen(s), width = 0;

	while (left > 0) {
		unsigned len = text_utf8_char(p, left);

		width += len > 0 ? char_width(display_decode(p, len)) : 1;
		len = len > 0 ? len : 1;
		p += len;
		left -= len;
	}
	return width;
}

size_t
display_cut(struct buf *out, const char *s, size_t width)
{
	const unsigned char *p = (const unsigned char *)s;
	size_t left = strlen(s), taken = 0, full = display_width(s);

	if (full <= width) {
		buf_adds(out, s);
		return full;
	}
	if (width == 0)
		return 0;
	while (left > 0) {
		unsigned len = text_utf8_char(p, left);
		size_t w = len > 0 ? char_width(display_decode(p, len)) : 1;

		len = len > 0 ? len : 1;
		if (taken + w > width - 1)
			break;
		buf_add(out, p, len);
		taken += w;
		p += len;
		left -= len;
	}
	buf_adds(out, "\xe2\x80\xa6");
	return taken + 1;
}

/* A word of `len` bytes, for its width. */
static size_t
word_width(const char *s, size_t len)
{
	struct buf word = BUF_INIT;
	size_t width;

	buf_add(&word, s, len);
	width = display_width(buf_str(&word));
	buf_release(&word);
	return width;
}

void
display_wrap(struct buf *out, const char *s, size_t indent, size_t columns)
{
	size_t column = indent;

	/* Too narrow to be nice: let the terminal do it. */
	if (columns < indent + 20) {
		buf_adds(out, s);
		return;
	}
	while (*s != '\0') {
		size_t blanks = strspn(s, " ");
		size_t len = strcspn(s + blanks, " \n");
		size_t width = word_width(s + blanks, len);

		if (column > indent && column + blanks + width > columns) {
			buf_addf(out, "\n%*s", (int)indent, "");
			column = indent;
		} else {
			buf_add(out, s, blanks);
			column += blanks;
		}
		buf_add(out, s + blanks, len);
		column += width;
		s += blanks + len;
		if (*s == '\n') {
			buf_addf(out, "\n%*s", (int)indent, "");
			column = indent;
			s++;
		}
	}
}

bool
display_is_terminal(void)
{
	return isatty(STDOUT_FILENO) == 1;
}

size_t
display_columns(void)
{
	const char *env = getenv("COLUMNS");
	struct winsize ws;

	if (env != NULL) {
		const char *fault;
		long long n = strtonum(env, 20, 10000, &fault);

		if (fault == NULL)
			return (size_t)n;
	}
	if (!display_is_terminal())
		return 0;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) == 0 && ws.ws_col >= 20)
		return ws.ws_col;
	return 80;
}

static bool
has_colours(void)
{
	static int known = -1;
	const char *term, *no;

	if (forced_colours != -1)
		return forced_colours;
	if (known == -1) {
		term = getenv("TERM");
		no = getenv("NO_COLOR");
		known = display_is_terminal() && (no == NULL || *no == '\0') &&
		    term != NULL && strcmp(term, "dumb") != 0;
	}
	return known;
}

void
display_force_colours(bool on)
{
	forced_colours = on;
}

const char *
display_tint(enum tint tint)
{
	static const char *const sequences[] = {
		[TINT_NONE] = "",
		[TINT_GOOD] = "\033[32m",
		[TINT_WARN] = "\033[33m",
		[TINT_BAD] = "\033[31m",
		[TINT_DIM] = "\033[2m",
		[TINT_BOLD] = "\033[1m",
	};

	return has_colours() ? sequences[tint] : "";
}

const char *
display_plain(void)
{
	return has_colours() ? "\033[0m" : "";
}
