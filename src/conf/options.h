/*
 * options.h - the table of settings, for the files of this folder and the
 * checks of manual and sample file.
 */
#ifndef CONF_OPTIONS_H
#define CONF_OPTIONS_H

#include "conf/conf.h"

#include <stddef.h>

enum conf_type {
	CONF_INT,    /* int64_t, min..max */
	CONF_SECS,   /* the same, in seconds */
	CONF_NAME,   /* int64_t: index of one of `names` */
	CONF_CHOICE, /* char *: one of `names` */
	CONF_STRING, /* char *: one line */
	CONF_PATH,   /* char *: absolute path, or "" when that is the preset */
	CONF_SECRET, /* char *: as string, never printed */
};

enum conf_group { CONF_MAIN, CONF_ADVANCED, CONF_FILES };

enum conf_reload {
	CONF_RELOAD_LIVE, /* SIGHUP is enough; children take it at their start */
	CONF_RELOAD_RESTART,
};

struct option {
	const char *name;
	enum conf_type type;
	size_t offset; /* in struct conf */
	int64_t min, max;
	const char *preset;
	enum conf_group group;
	enum conf_reload reload;
	const char *help;
	const char *const *names; /* CONF_NAME, CONF_CHOICE; ends with NULL */
	const char *env;	  /* NULL: the name in capitals */
};

extern const struct option options[];
extern const size_t n_options;

/* SIZE_MAX: no such setting. */
size_t option_find(const char *name);

/* Sets the field; the text of an error gives value and allowed range. */
int option_set(const struct option *option, struct conf *conf,
    const char *value, struct err *err);

/* Variable that overrides the option. */
const char *option_env(const struct option *option, char *out, size_t size);

static inline int64_t *
option_number(const struct option *option, const struct conf *conf)
{
	return (int64_t *)(void *)((char *)(uintptr_t)conf + option->offset);
}

static inline char **
option_string(const struct option *option, const struct conf *conf)
{
	return (char **)(void *)((char *)(uintptr_t)conf + option->offset);
}

static inline bool
option_is_number(const struct option *option)
{
	return option->type == CONF_INT || option->type == CONF_SECS ||
	    option->type == CONF_NAME;
}

/* As conf_load, from memory; `file` is for messages.  For the fuzz target. */
int conf_load_text(struct conf **conf_r, const char *file, const char *text,
    size_t len, const char *const *overrides, size_t n_overrides,
    struct err *err);

#endif
