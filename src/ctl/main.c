/*
 * main.c - mailherdctl: everything a person does.
 *
 * Runs in: a terminal, a script.  Blocks.
 *
 * Reads the options before the command, opens what the command's row says it
 * needs, runs it, and turns its outcome into one line on standard error and
 * an exit code of sysexits.h.
 */
#include "config.h"

#include "ctl/commands.h"

#include <bsd/stdlib.h>
#include <signal.h>
#include <sysexits.h>
#include <unistd.h>

#define OVERRIDES_MAX 64

struct invocation {
	const char *file;
	const char *overrides[OVERRIDES_MAX];
	size_t n_overrides;
};

/* Options of the program that may also follow the command. */
static const struct option_row common_options[] = {
	{ "json", 'j', NULL, "print JSON, one object a line" },
	{ "help", 'h', NULL, "tell about the command" },
};

static int
main_exit_code(enum err_kind kind)
{
	switch (kind) {
	case ERR_CONFIG:
		return EX_CONFIG;
	case ERR_DATABASE:
	case ERR_NETWORK:
	case ERR_STOPPED:
		return EX_UNAVAILABLE;
	case ERR_TEMPORARY:
	case ERR_THROTTLED:
	case ERR_DEADLINE:
		return EX_TEMPFAIL;
	case ERR_STORAGE:
		return EX_IOERR;
	case ERR_GONE:
		return EX_NOINPUT;
	default:
		return EX_DATAERR;
	}
}

static void
main_tell(const char *what, const char *why)
{
	fflush(stdout);
	if (*what != '\0')
		fprintf(stderr, "mailherdctl: %s: %s\n", what, why);
	else
		fprintf(stderr, "mailherdctl: %s\n", why);
}

static int
refuse_usage(const struct command *command, const char *why)
{
	struct buf text = BUF_INIT, usage = BUF_INIT;

	command_usage(command, &usage);
	if (usage.len <= 50)
		buf_addf(&text, "%s (usage: mailherdctl %s)", why,
		    usage.data);
	else
		buf_addf(&text, "%s (see: mailherdctl help %s)", why,
		    command->name);
	main_tell(command->name, text.data);
	buf_release(&text);
	buf_release(&usage);
	return EX_USAGE;
}

/* The command's own options and the common ones. */
static size_t
options_of(const struct command *command, struct option_row *rows)
{
	size_t n = command->n_options;

	if (n > 0)
		memcpy(rows, command->options, n * sizeof(*rows));
	memcpy(rows + n, common_options, sizeof(common_options));
	return n + N_COLUMNS(common_options);
}

static int
open_needed(struct ctl *ctl, const struct command *command, struct err *err)
{
	if (command->needs & (NEEDS_STORE | NEEDS_SERVER) &&
	    ctl_store(ctl, command->needs & NEEDS_STORE, err) == -1)
		return -1;
	if (command->needs & NEEDS_REDIS && ctl_redis(ctl, err) == -1)
		return ctl_hint(err, "setting \"redis\"");
	return 0;
}

static int
main_run(struct ctl *ctl, const struct invocation *call,
    const struct command *command, const struct args *args, struct err *err)
{
	int rc;

	if (command->needs != NEEDS_NOTHING &&
	    conf_load(&ctl->conf, call->file, call->overrides,
	    call->n_overrides, err) == -1)
		return -1;
	if (command->needs != NEEDS_NOTHING && ctl_find_daemon(ctl, err) == -1)
		return -1;
	if (open_needed(ctl, command, err) == -1)
		return -1;
	rc = command->run(ctl, args, err);
	if (rc == 0 && (fflush(stdout) == EOF || ferror(stdout)))
		return err_set(err, ERR_STORAGE, "standard output: write "
		    "failed");
	return rc;
}

static int
main_run_command(
    struct ctl *ctl, const struct invocation *call, int argc, char **argv)
{
	struct option_row rows[ARGS_OPTIONS_MAX];
	const struct command *command;
	const struct option_row *missing;
	struct err err = ERR_INIT;
	struct args args;
	size_t n;
	int used, rc;

	command = command_find(argc, argv, &used, &err);
	if (command == NULL) {
		main_tell("", err.text);
		return EX_USAGE;
	}
	n = options_of(command, rows);
	if (args_parse(&args, rows, n, argc - used, argv + used, &err) == -1)
		return refuse_usage(command, err.text);
	if (args_has(&args, "help")) {
		print_command(command);
		return 0;
	}
	missing = args_missing(&args);
	if (missing != NULL) {
		err_set(&err, ERR_PERMANENT, "--%s is missing", missing->name);
		return refuse_usage(command, err.text);
	}
	if (args.n_words < command->min)
		return refuse_usage(command, "argument missing");
	if (args.n_words > command->max)
		return refuse_usage(command, "too many arguments");
	ctl->is_json = ctl->is_json || args_has(&args, "json");

	rc = main_run(ctl, call, command, &args, &err);
	if (rc == -1) {
		main_tell(command->name, err.text);
		return main_exit_code(err.kind);
	}
	return rc;
}

static _Noreturn void
ctl_main_usage(void)
{
	fputs("usage: mailherdctl [-c FILE] [-o name=value] [-s SOCKET] [-j] "
	    "COMMAND (see: mailherdctl help)\n", stderr);
	exit(EX_USAGE);
}

/* Options before the command; returns how many words they were. */
static int
ctl_main_read_options(
    struct ctl *ctl, struct invocation *call, int argc, char **argv)
{
	int c;

	opterr = 0;
	/* "+": stop at the command, whose options are its own. */
	while ((c = getopt(argc, argv, "+c:o:s:jhV")) != -1) {
		switch (c) {
		case 'c':
			call->file = optarg;
			break;
		case 'o':
			if (call->n_overrides == OVERRIDES_MAX)
				ctl_main_usage();
			call->overrides[call->n_overrides++] = optarg;
			break;
		case 's':
			ctl->socket = optarg;
			break;
		case 'j':
			ctl->is_json = true;
			break;
		case 'V':
			puts("mailherdctl " PACKAGE_VERSION);
			exit(0);
		case 'h':
			return argc;
		default:
			ctl_main_usage();
		}
	}
	return optind;
}

int
main(int argc, char **argv)
{
	static char help_word[] = "help", version[] = "-V";
	static char *help[] = { help_word, NULL };
	struct ctl ctl = { .socket = NULL };
	struct invocation call = { .file = NULL };
	int used, rc;

	/* The pager was closed: end quietly with the usual status. */
	signal(SIGPIPE, SIG_DFL);
	log_open("mailherdctl", LOG_TARGET_STDERR);
	display_init();
	ctl.arena = arena_new("command");
	if (argc == 2 && strcmp(argv[1], "--version") == 0)
		argv[1] = version;
	if (argc == 2 && strcmp(argv[1], "--help") == 0)
		argc = 1;
	used = ctl_main_read_options(&ctl, &call, argc, argv);
	if (used >= argc)
		rc = main_run_command(&ctl, &call, 1, help);
	else
		rc = main_run_command(&ctl, &call, argc - used, argv + used);
	store_close(&ctl.store);
	lease_client_close(&ctl.redis);
	if (ctl.conf != NULL)
		conf_free(&ctl.conf);
	arena_free(&ctl.arena);
	return rc;
}
