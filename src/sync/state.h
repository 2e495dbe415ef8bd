/*
 * state.h - what the parts of sync share beside the session of the account.
 *
 * Private to sync.
 */
#ifndef SYNC_STATE_H
#define SYNC_STATE_H

#include "account/session.h"
#include "sync/sync.h"

struct progress {
	bool is_on;
	int64_t done, total;
};

struct sync_state {
	/* What folders said along with LIST; each is used once. */
	struct ahead {
		const char *wire; /* NULL: used */
		int64_t folder_id;
		struct imap_status status;
	} * ahead; /* in the pass arena */
	size_t n_ahead;

	/* See quarantine.c. */
	struct risk trial; /* the row that is tried; RISK_NONE: none */
	bool has_proof; /* the server delivers another one than the trial's */
	enum {
		SHOWS_NONE,
		OPENS_ONE,
		SHOWS_ONE
	} probed;                /* folder, on this
				  * connection: nothing known, opened, a message of it shown */
	bool has_probed_body;    /* the same, delivered */
	unsigned refused_probes; /* in a row, on this connection */
	unsigned losses;         /* connections in a row with nothing done */
	bool has_lost_trial;     /* one without proof, in this pass */
	bool is_scan_refused;    /* the last one: its numbers may be old */
	bool is_listing;         /* LIST is what was asked */
	bool is_naming;          /* STATUS of folders that have no row yet */
	bool has_listed;         /* in this pass */
	struct err no_list;      /* why that was without an answer; ERR_NONE */
	bool skips_names;        /* folders of new names are not asked for it */
	struct sync_totals totals;
	struct progress progress;
};

/* session_connect; what was known of the connection before is forgotten. */
int sync_connect(struct session *s, struct err *err);

/* A refused scan by sequence numbers: messages may have gone (ERR_STALE), or
 * it is meant. */
int sync_scan_refused(struct session *s, struct err *err);

#endif
