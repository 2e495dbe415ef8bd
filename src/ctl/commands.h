/*
 * commands.h - the table of commands: parser, help and completion read it.
 *
 * To add a command: a row in commands.c, its function in the cmd-*.c of its
 * family, its paragraph in man/mailherdctl.8.
 */
#ifndef CTL_COMMANDS_H
#define CTL_COMMANDS_H

#include "ctl/ctl.h"

enum command_group {
	GROUP_SETUP,
	GROUP_ACCOUNTS,
	GROUP_MAIL,
	GROUP_WORK,
	GROUP_DAEMON,
	GROUP_BLOBS,
	GROUP_OTHER,
	GROUP_COUNT
};

enum command_need {
	NEEDS_STORE = 1,  /* PostgreSQL, with the right schema */
	NEEDS_SERVER = 2, /* PostgreSQL, whatever is in it */
	NEEDS_REDIS = 4,
	NEEDS_NOTHING = 8, /* not even a configuration */
};

struct command {
	const char *name;  /* one or two words */
	const char *words; /* positional arguments, for people */
	size_t min, max;   /* how many of them */
	unsigned needs;    /* bits of enum command_need */
	enum command_group group;
	command_run *run;
	const char *help; /* one line */
	const struct option_row *options;
	size_t n_options;
	const char *more; /* further lines of help; may be NULL */
};

extern const struct command commands[];
extern const size_t n_commands;

/*
 * The command argv begins with, and how many words its name has.  NULL:
 * err says what is missing or what was probably meant.
 */
const struct command *command_find(int argc, char **argv, int *used_r,
    struct err *err);
/* "user add EMAIL [--name NAME]" */
void command_usage(const struct command *command, struct buf *out);

/* All about one command, for `help` and --help. */
void print_command(const struct command *command);

/* The families. */
command_run cmd_init, cmd_migrate;
command_run cmd_user_add, cmd_user_list, cmd_user_active, cmd_user_delete;
command_run cmd_account_add, cmd_account_list, cmd_account_show,
    cmd_account_set, cmd_account_enable, cmd_account_disable,
    cmd_account_delete, cmd_account_refresh;
command_run cmd_mailbox_list;
command_run cmd_message_list, cmd_message_show, cmd_message_raw,
    cmd_message_search;
command_run cmd_thread_list, cmd_thread_show;
command_run cmd_job_list, cmd_job_show, cmd_job_retry, cmd_job_drop;
command_run cmd_quarantine_list, cmd_quarantine_retry, cmd_quarantine_skip;
command_run cmd_events, cmd_workers;
command_run cmd_status, cmd_ps, cmd_explain, cmd_poll, cmd_tier, cmd_release,
    cmd_drain, cmd_undrain, cmd_reload, cmd_stop, cmd_log, cmd_metrics;
command_run cmd_blob_verify, cmd_blob_gc;
command_run cmd_help;

#endif
