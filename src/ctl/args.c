/*
 * args.c - command line of one command, read by its table of options.
 *
 * Runs in: mailherdctl.
 *
 * Not getopt_long(): each command brings its own table, the same one that
 * help and completion print.
 */
#include "ctl/args.h"

#include "base/log.h"

#include <bsd/stdlib.h>
#include <ctype.h>

static size_t
find_long(const struct args *args, const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < args->n_options; i++)
		if (strlen(args->options[i].name) == len &&
		    memcmp(args->options[i].name, name, len) == 0)
			break;
	return i;
}

static size_t
find_letter(const struct args *args, char letter)
{
	size_t i;

	for (i = 0; i < args->n_options; i++)
		if (args->options[i].letter == letter && letter != '\0')
			break;
	return i;
}

/* The option's index, its value inside the word if there is one. */
static size_t
find_option(const struct args *args, const char *word, const char **inline_r)
{
	size_t i, len;

	*inline_r = NULL;
	if (word[1] != '-') {
		i = find_letter(args, word[1]);
		if (word[2] != '\0')
			*inline_r = word + 2;
		return i;
	}
	len = strcspn(word + 2, "=");
	i = find_long(args, word + 2, len);
	if (word[2 + len] == '=')
		*inline_r = word + 2 + len + 1;
	return i;
}

/* Returns how many words of argv were used, or -1. */
static int
take_option(struct args *args, int left, char **argv, struct err *err)
{
	const char *value;
	size_t i = find_option(args, argv[0], &value);

	if (i == args->n_options)
		return err_set(err, ERR_PERMANENT, "unknown option %s",
		    argv[0]);
	if (args->options[i].value == NULL) {
		if (value != NULL)
			return err_set(err, ERR_PERMANENT,
			    "option --%s takes no value",
			    args->options[i].name);
		args->values[i] = "";
		return 1;
	}
	if (value != NULL) {
		args->values[i] = value;
		return 1;
	}
	if (left < 2)
		return err_set(err, ERR_PERMANENT, "option --%s needs %s",
		    args->options[i].name, args->options[i].value);
	args->values[i] = argv[1];
	return 2;
}

int
args_parse(struct args *args, const struct option_row *options,
    size_t n_options, int argc, char **argv, struct err *err)
{
	bool options_ended = false;
	int used;

	if (n_options > ARGS_OPTIONS_MAX)
		die_bug("args_parse: %zu options", n_options);
	*args = (struct args){ .options = options, .n_options = n_options,
		.words = argv };
	for (int i = 0; i < argc; i += used) {
		char *word = argv[i];

		used = 1;
		if (options_ended || word[0] != '-' || word[1] == '\0') {
			/* Never ahead of i: what it overwrites was read. */
			args->words[args->n_words++] = word;
		} else if (strcmp(word, "--") == 0) {
			options_ended = true;
		} else {
			used = take_option(args, argc - i, argv + i, err);
			if (used == -1)
				return -1;
		}
	}
	return 0;
}

const struct option_row *
args_missing(const struct args *args)
{
	for (size_t i = 0; i < args->n_options; i++)
		if (args->options[i].required && args->values[i] == NULL)
			return &args->options[i];
	return NULL;
}

const char *
args_value(const struct args *args, const char *name)
{
	size_t i = find_long(args, name, strlen(name));

	if (i == args->n_options)
		die_bug("args_value: no option \"%s\"", name);
	return args->values[i];
}

bool
args_has(const struct args *args, const char *name)
{
	return args_value(args, name) != NULL;
}

int
args_number(const struct args *args, const char *name, int64_t min,
    int64_t max, int64_t preset, int64_t *number_r, struct err *err)
{
	const char *text = args_value(args, name), *fault;
	int64_t n;

	if (text == NULL) {
		*number_r = preset;
		return 0;
	}
	n = strtonum(text, min, max, &fault);
	if (fault != NULL)
		return err_set(err, ERR_PERMANENT,
		    "--%s %s: not a number from %lld to %lld", name, text,
		    (long long)min, (long long)max);
	*number_r = n;
	return 0;
}

int
args_bytes(const char *text, int64_t *bytes_r, struct err *err)
{
	static const char units[] = "KMGT";
	size_t len = strlen(text);
	const char *fault, *unit;
	int64_t factor = 1, n;
	char digits[24];

	if (len > 0 && (unit = strchr(units, toupper(text[len - 1]))) != NULL) {
		factor = (int64_t)1 << (10 * (unit - units + 1));
		len--;
	}
	if (len == 0 || len >= sizeof(digits) ||
	    strspn(text, "0123456789") < len)
		return err_set(err, ERR_PERMANENT,
		    "\"%s\" is no size (examples: 500M, 5G, 5368709120)", text);
	memcpy(digits, text, len);
	digits[len] = '\0';
	n = strtonum(digits, 0, INT64_MAX / factor, &fault);
	if (fault != NULL)
		return err_set(err, ERR_PERMANENT,
		    "\"%s\" is no size (examples: 500M, 5G, 5368709120)", text);
	*bytes_r = n * factor;
	return 0;
}
