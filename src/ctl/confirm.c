/*
 * confirm.c - a question before something is removed.
 *
 * Runs in: mailherdctl.  Blocks on the terminal.
 */
#include "ctl/confirm.h"

#include <unistd.h>

int
confirm(bool yes, const char *question, struct err *err)
{
	char answer[16];

	if (yes || isatty(STDIN_FILENO) != 1)
		return 0;
	fprintf(stderr, "%s [y/N] ", question);
	if (fgets(answer, sizeof(answer), stdin) != NULL &&
	    (answer[0] == 'y' || answer[0] == 'Y'))
		return 0;
	return err_set(err, ERR_STOPPED, "nothing was changed");
}
