/*
 * words.h - text to words, the same way for the index and for queries.
 */
#ifndef MAIL_WORDS_H
#define MAIL_WORDS_H

#include "base/banned.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORD_MAX 64	  /* bytes of a word; longer ones are cut */
#define COMPOUND_MAX 128  /* bytes of an address or name indexed whole */
#define COMPOUND_PARTS 48 /* words in one run */

struct word {
	uint16_t offset; /* in run.bytes */
	uint16_t len;
};

/*
 * Words that stand together without blanks: "ann.lee@example.org" has four
 * and two wholes (the address and the host).  In scripts without blanks a run
 * holds pairs of neighbours, and at its end the last character alone.
 */
struct run {
	char bytes[2048];
	struct word parts[COMPOUND_PARTS];
	size_t n_parts;
	struct word whole, host; /* len 0: none */
	size_t host_part;	 /* the part at which the host begins */
	bool is_pairs;
	bool has_tail; /* the last part is one character, not a pair */
};

struct word_scan {
	const unsigned char *p, *end;
};

/* false at the end of the text. */
bool words_next(struct word_scan *scan, struct run *run);

#endif
