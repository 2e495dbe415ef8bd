/*
 * keywords.h - inside imap: keywords that are no atoms, on their way through
 * the parser.
 *
 * Servers have keywords of any UTF-8, and with "]", "%" or "*"; libetpan takes
 * atoms only.  Mend spells such a word "mh=Caf=C3=A9", what reads the parser's
 * lists spells it back.
 */
#ifndef IMAP_KEYWORDS_H
#define IMAP_KEYWORDS_H

#include "base/buf.h"

#include <stdbool.h>

/* Appends; false: not UTF-8, or it holds a blank or a control character. */
bool keyword_encode(struct buf *out, const char *word, size_t len);
/* Does an atom that the server sent look like one of ours? */
bool keyword_is_encoded(const char *word, size_t len);
/* Appends the word an atom stands for. */
void keyword_decode(struct buf *out, const char *atom);

#endif
