/*
 * args.h - the words after a command: options anywhere, the rest positional.
 */
#ifndef CTL_ARGS_H
#define CTL_ARGS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct option_row {
	const char *name;  /* without the dashes */
	char letter;	   /* 0: long form only */
	const char *value; /* what it takes, for help; NULL: nothing */
	const char *help;
	bool required;
};

#define ARGS_OPTIONS_MAX 12

struct args {
	const struct option_row *options;
	size_t n_options;
	const char *values[ARGS_OPTIONS_MAX]; /* NULL: not given */
	char **words; /* positional; points into argv */
	size_t n_words;
};

/*
 * Sorts argv into options and words: --name value, --name=value, -x value,
 * -xvalue, -- ends the options; a lone "-" is a word.  Reorders argv.
 * ERR_PERMANENT names what is wrong.
 */
int args_parse(struct args *args, const struct option_row *options,
    size_t n_options, int argc, char **argv, struct err *err);

/* The first required option that was not given; NULL: all there. */
const struct option_row *args_missing(const struct args *args);

/* NULL when it was not given.  An unknown name is a bug and aborts. */
const char *args_value(const struct args *args, const char *name);
bool args_has(const struct args *args, const char *name);
/* A number option in [min, max]; `preset` when it was not given. */
int args_number(const struct args *args, const char *name, int64_t min,
    int64_t max, int64_t preset, int64_t *number_r, struct err *err);
/* "5368709120", "500M", "5G" in bytes. */
int args_bytes(const char *text, int64_t *bytes_r, struct err *err);

#endif
