/*
 * cms.h - the content of S/MIME's signed-data (RFC 5652).
 */
#ifndef MIME_CMS_H
#define MIME_CMS_H

#include "base/banned.h"

#include <stdbool.h>
#include <stddef.h>

enum cms_type { CMS_NONE, CMS_SIGNED, CMS_ENCRYPTED, CMS_COMPRESSED };

/*
 * Of CMS_SIGNED the content is moved to the beginning of `data`; 0 bytes when
 * it has none.  No signature is verified.  A cut message gives what there is.
 */
enum cms_type cms_open(unsigned char *data, size_t len, size_t *content_r);

#endif
