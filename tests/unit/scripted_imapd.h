/*
 * scripted_imapd.h - a server that follows a list: say this, hear that.
 *
 * For one connection, in a child process; a line it did not expect ends it
 * with a message on standard error and a failure that scripted_finish sees.
 */
#ifndef TESTS_SCRIPTED_IMAPD_H
#define TESTS_SCRIPTED_IMAPD_H

#include <stdint.h>

struct step {
	enum {
		STEP_END, /* waits until the client has closed */
		STEP_SAY, /* %1, %2 ...: tag of the last, last but one line */
		STEP_HEAR, /* a line that matches the fnmatch(3) pattern */
		STEP_CLOSE,
		STEP_PAUSE, /* so that what follows is a segment of its own */
		STEP_REPEAT, /* says it until the client has closed */
		STEP_DRIP,   /* the same, a byte each few milliseconds */
	} kind;
	const char *text;
};

#define SAY(t) { STEP_SAY, t }
#define HEAR(p) { STEP_HEAR, p }
#define CLOSE { STEP_CLOSE, NULL }
#define PAUSE { STEP_PAUSE, NULL }
#define REPEAT(t) { STEP_REPEAT, t }
#define DRIP(t) { STEP_DRIP, t }
#define END { STEP_END, NULL }

/* Returns the port on 127.0.0.1. */
uint16_t scripted_start(const struct step *steps);
/* 0 when everything went as written; waits for the server to end. */
int scripted_finish(void);

#endif
