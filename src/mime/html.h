/*
 * html.h - the text of an HTML part, and what it refers to.
 */
#ifndef MIME_HTML_H
#define MIME_HTML_H

#include "base/arena.h"
#include "base/buf.h"

#include <stdbool.h>

/*
 * Appends up to `max` bytes of text: without tags, scripts, styles and the
 * title, blocks on lines of their own, table cells apart.  `html` is clean
 * UTF-8, so is what is added.
 */
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
