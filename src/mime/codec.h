/*
 * codec.h - bytes of a charset to code points, one by one.
 */
#ifndef MIME_CODEC_H
#define MIME_CODEC_H

#include "base/banned.h"
#include "mime/charset_names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum charset {
	CHARSET_GUESSED, /* says nothing, or is unknown */
	CHARSET_UTF8,
	CHARSET_UTF7,
	CHARSET_UTF16, /* of the byte order that makes sense */
	CHARSET_UTF16LE,
	CHARSET_UTF16BE,
	CHARSET_UTF32,
	CHARSET_UTF32BE,
	CHARSET_ISO2022JP,
	CHARSET_ISO2022KR,
	CHARSET_ISO2022CN,
	CHARSET_HZ,
	/* From here on bytes below 0x80 that begin a character are ASCII. */
	CHARSET_GB18030,
	CHARSET_BIG5,
	CHARSET_EUCKR,
	CHARSET_SHIFTJIS,
	CHARSET_EUCJP,
	CHARSET_EUCTW,
#define X(name) CHARSET_##name,
	SINGLE_BYTE_CHARSETS(X)
#undef X
	CHARSET_COUNT
};

#define CODEC_BAD 0xFFFDu /* bytes that mean nothing */

/* Sets of 94 rows of 94 characters, as ISO 2022 chooses among them. */
enum codec_set {
	SET_ASCII,
	SET_JIS_ROMAN,
	SET_KATAKANA,
	SET_LATIN1, /* the upper half */
	SET_GREEK,
	SET_JIS0208,
	SET_JIS0212,
	SET_GB2312,
	SET_KSC5601,
	SET_CNS1,
	SET_CNS2,
};

struct codec {
	const unsigned char *p, *end;
	enum charset charset;
	uint32_t second; /* code point that is due; 0: none */
	size_t n_bad;
	/* ISO 2022 and HZ */
	enum codec_set g0, g1, g2;
	bool is_shifted;
	/* UTF-7 */
	uint32_t bits;
	unsigned n_bits;
	uint32_t high; /* first half of a pair */
};

/* CHARSET_UTF8, _UTF16 and _GUESSED are none: who calls has decided. */
void codec_init(struct codec *c, enum charset charset, const void *bytes,
    size_t len);

static inline bool
codec_has_more(const struct codec *c)
{
	return c->p < c->end || c->second != 0;
}

/* The next code point; 0: none in what was read now (or a NUL). */
uint32_t codec_next(struct codec *c);

/* libc's own charsets are never loaded for a library (iconv.c). */
void codec_refuse_iconv(void);

/* row and cell from 0 */
uint32_t codec_cell(enum codec_set set, unsigned row, unsigned cell);
/* A byte of a charset of one byte a character. */
uint32_t codec_byte(enum charset charset, unsigned byte);

/* Those with escapes and shifts (iso2022.c, utf7.c). */
uint32_t codec_next_iso2022(struct codec *c);
uint32_t codec_next_hz(struct codec *c);
uint32_t codec_next_utf7(struct codec *c);

#endif
