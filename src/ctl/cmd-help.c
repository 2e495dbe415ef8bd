/*
 * cmd-help.c - help: the table of commands, as text.
 *
 * Runs in: mailherdctl.  Needs nothing, works everywhere.
 */
#include "ctl/commands.h"

#include <sysexits.h>

static const char *const group_titles[GROUP_COUNT] = {
	[GROUP_SETUP] = "Setting up",
	[GROUP_ACCOUNTS] = "Users and accounts (A, USER: id or e-mail)",
	[GROUP_MAIL] = "Mail",
	[GROUP_WORK] = "Work",
	[GROUP_DAEMON] = "Daemons",
	[GROUP_BLOBS] = "Stored bytes",
	[GROUP_OTHER] = "Help",
};

/* The overview fits 80 columns; a test sees to the table. */
#define NAME_WIDTH 27

static void
print_heading(const char *title)
{
	printf("%s%s%s\n", display_tint(TINT_BOLD), title, display_plain());
}

/* "-a A"; where there are many, only that there are. */
static void
add_required(struct buf *out, const struct command *c)
{
	const struct option_row *first = NULL;
	size_t n = 0;

	for (size_t i = 0; i < c->n_options; i++)
		if (c->options[i].required && n++ == 0)
			first = &c->options[i];
	if (n == 1)
		buf_addf(out, " -%c %s", first->letter, first->value);
	else if (n > 1)
		buf_adds(out, " OPTIONS");
}

/* Name and arguments on the left, what it does on the right. */
static void
help_print_line(const struct command *c)
{
	struct buf name = BUF_INIT;

	buf_adds(&name, c->name);
	add_required(&name, c);
	if (*c->words != '\0')
		buf_addf(&name, " %s", c->words);
	printf("  %-*s  %s\n", NAME_WIDTH, name.data, c->help);
	buf_release(&name);
}

static void
print_overview(void)
{
	printf("mailherdctl - keeps an eye and a hand on mailherd\n\n"
	    "usage: mailherdctl [-c FILE] [-o name=value] [-s SOCKET] [-j] "
	    "COMMAND\n\n");
	for (size_t g = 0; g < GROUP_COUNT; g++) {
		print_heading(group_titles[g]);
		for (size_t i = 0; i < n_commands; i++)
			if (commands[i].group == g)
				help_print_line(&commands[i]);
		putchar('\n');
	}
	printf("-j prints JSON, one object a line.  More: mailherdctl help "
	    "COMMAND, or\nman mailherdctl.\n");
}

static void
print_option(const struct option_row *o)
{
	struct buf left = BUF_INIT;

	if (o->letter != '\0')
		buf_addf(&left, "-%c, ", o->letter);
	else
		buf_adds(&left, "    ");
	buf_addf(&left, "--%s%s%s", o->name, o->value != NULL ? " " : "",
	    o->value != NULL ? o->value : "");
	printf("  %-26s  %s\n", buf_str(&left), o->help);
	buf_release(&left);
}

/* Breaks before an option or argument; further lines are indented. */
static void
print_wrapped(const char *text, size_t indent)
{
	size_t column = 0;

	while (*text != '\0') {
		size_t len = strcspn(text, " ");

		/* "[--name NAME]" stays together. */
		if (*text == '[')
			len = strcspn(text, "]") + 1;
		if (column > 0 && column + 1 + len > 78) {
			printf("\n%*s", (int)indent, "");
			column = indent;
		} else if (column > 0) {
			putchar(' ');
			column++;
		}
		printf("%.*s", (int)len, text);
		column += len;
		text += len;
		text += strspn(text, " ");
	}
	putchar('\n');
}

void
print_command(const struct command *c)
{
	struct buf usage = BUF_INIT;

	printf("%s%s%s - %s\n\n", display_tint(TINT_BOLD), c->name,
	    display_plain(), c->help);
	buf_adds(&usage, "usage: mailherdctl ");
	command_usage(c, &usage);
	print_wrapped(buf_str(&usage), sizeof("usage: mailherdctl ") - 1 +
	    strlen(c->name) + 1);
	buf_release(&usage);
	if (c->n_options > 0)
		putchar('\n');
	for (size_t i = 0; i < c->n_options; i++)
		print_option(&c->options[i]);
	if (c->more != NULL)
		printf("\n%s\n", c->more);
}

/* One line a command: name, tab, its options. */
static void
help_print_list(void)
{
	for (size_t i = 0; i < n_commands; i++) {
		printf("%s\t", commands[i].name);
		for (size_t k = 0; k < commands[i].n_options; k++)
			printf("%s--%s", k > 0 ? " " : "",
			    commands[i].options[k].name);
		putchar('\n');
	}
}

/* All commands of a family, in full. */
static size_t
print_family(const char *family)
{
	size_t len = strlen(family), n = 0;

	for (size_t i = 0; i < n_commands; i++)
		if (strncmp(commands[i].name, family, len) == 0 &&
		    commands[i].name[len] == ' ') {
			if (n++ > 0)
				putchar('\n');
			print_command(&commands[i]);
		}
	return n;
}

int
cmd_help(struct ctl *ctl, const struct args *args, struct err *err)
{
	const struct command *c;
	int used;

	(void)ctl;
	if (args_has(args, "list")) {
		help_print_list();
		return 0;
	}
	if (args->n_words == 0) {
		print_overview();
		return 0;
	}
	if (args->n_words == 1 && print_family(args->words[0]) > 0)
		return 0;
	c = command_find((int)args->n_words, args->words, &used, err);
	if (c == NULL)
		return -1;
	print_command(c);
	return 0;
}
