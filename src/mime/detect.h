/*
 * detect.h - which charset unlabelled bytes are written in.
 */
#ifndef MIME_DETECT_H
#define MIME_DETECT_H

#include "mime/codec.h"

/*
 * For bytes that are no UTF-8.  ISO-2022-* where escapes choose sets, else
 * the charset in which they look most like a language; windows-1252 when
 * nothing does.
 */
enum charset detect_charset(const char *bytes, size_t len);

/* Once, before fork: what each byte costs where. */
void detect_init(void);

/* CHARSET_GUESSED when there is no such escape. */
enum charset detect_escapes(const char *bytes, size_t len);

#endif
