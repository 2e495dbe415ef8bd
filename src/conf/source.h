/*
 * source.h - one libconfuse file: read it, parse it, keep the first error.
 */
#ifndef CONF_SOURCE_H
#define CONF_SOURCE_H

#include "base/buf.h"
#include "base/err.h"

#include <confuse.h>

/* Last option of every schema: see source_parse. */
#define SOURCE_END \
	CFG_BOOL("end_of_file", cfg_false, CFGF_NONE), CFG_END()

/* ERR_GONE: there is no such file; else ERR_CONFIG. */
int source_read(const char *file, struct buf *text, struct err *err);

/*
 * Parses into `cfg`, which it frees, after calling `on_parsed` (may be NULL)
 * when all was well.  Validators report with cfg_error(), which adds file and
 * line; the first error is the one to tell.
 */
int source_parse(cfg_t *cfg, const char *file, const char *text, size_t len,
    void (*on_parsed)(void *arg, cfg_t *cfg), void *arg, struct err *err);

/* "FILE:LINE" of what is being parsed. */
const char *source_where(const cfg_t *cfg, char *out, size_t size);

#endif
