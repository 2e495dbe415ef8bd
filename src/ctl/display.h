/*
 * display.h - text as a terminal shows it: how wide it is, where to cut it,
 * what of it must not reach the terminal, and which colours there are.
 */
#ifndef CTL_DISPLAY_H
#define CTL_DISPLAY_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

/* Once, at the start: wide characters are measured as UTF-8 whatever the
 * locale says. */
void display_init(void);

/*
 * Adds `s` as one harmless line: control characters (the C1 set too), bidi
 * overrides and bad UTF-8 are replaced, so that a subject cannot move the
 * cursor, change a colour or reorder what stands next to it.
 */
void display_clean(struct buf *out, const char *s);
/* The same, keeping line ends: the text of a message. */
void display_clean_text(struct buf *out, const char *s);

/* Columns of the terminal that cleaned text takes. */
size_t display_width(const char *s);
/* Adds as much of `s` as fits `width` columns; what was cut ends in an
 * ellipsis.  Returns the columns taken. */
size_t display_cut(struct buf *out, const char *s, size_t width);

/*
 * Adds cleaned text that begins in column `indent`, broken at blanks for
 * `columns` (0: not at all); further lines begin at the indent too.
 */
void display_wrap(struct buf *out, const char *s, size_t indent,
    size_t columns);

/* Width of the terminal behind standard output; $COLUMNS comes first; 0 = no
 * terminal, no limit. */
size_t display_columns(void);
bool display_is_terminal(void);

enum tint { TINT_NONE, TINT_GOOD, TINT_WARN, TINT_BAD, TINT_DIM, TINT_BOLD };
/* Escape sequences; "" unless standard output is a terminal that can and
 * NO_COLOR is not set. */
const char *display_tint(enum tint tint);
const char *display_plain(void);
/* For tests: colours on or off whatever the terminal. */
void display_force_colours(bool on);

#endif
