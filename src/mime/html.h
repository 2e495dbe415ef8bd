/*
 * html.h - the text of an HTML part, and what it refers to.
 */
#ifndef MIME_HTML_H
#define MIME_HTML_H

#include "base/arena.h"
#include "base/buf.h"

#include <stdbool.h>

/*
 * Appends up to `max` bytes of text to `out`: without tags, scripts, styles and
 * the title, blocks on lines of their own, table cells apart.  HTML is clean
 * UTF-8 and comes in pieces of any length; so is what is added.
 */
struct html {
	struct buf *out;
	size_t start, max;   /* of out: ours begins there, and ends at most */
	int gap;	     /* due before the next character (enum gap) */
	bool is_pre;	     /* inside of <pre> */
	const char *skip;    /* all up to this is left out; NULL: nothing */
	struct buf rest;     /* what the next piece may complete */
	bool is_cut;	     /* there was more text */
};

void html_init(struct html *h, struct buf *out, size_t max);
void html_feed(struct html *h, const char *html, size_t len, bool is_last);
void html_release(struct html *h);

/* All in one piece. */
void html_to_text(struct buf *out, const char *html, size_t len, size_t max);

/* The content ids of cid: references, decoded. */
struct cid_list {
	const char **ids;
	size_t n, cap;
};

void html_find_cids(struct arena *arena, const char *html, size_t len,
    struct cid_list *list);
bool cid_list_has(const struct cid_list *list, const char *id);

#endif
