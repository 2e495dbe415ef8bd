/*
 * quirks.h - what to do otherwise for which mail server.
 *
 * Read from a file (quirks_file, etc/quirks.conf) so that an operator can add
 * a server without a build; loaded before fork.  A server matches by host
 * suffix, by a word in its greeting or by a capability; all matching entries
 * add up.
 */
#ifndef CONF_QUIRKS_H
#define CONF_QUIRKS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct quirks {
	char *name; /* of the first entry that matched, "" : none; the table's */
	bool no_qresync;	/* iCloud: wrong VANISHED */
	bool no_condstore;
	bool no_idle;		/* 163: none */
	bool no_namespace;	/* Exchange 2003 hangs up */
	bool no_list_extended;	/* strato.de: empty answer */
	bool no_mailboxid;	/* Cyrus 3.6: STATUS tells stray bytes */
	bool id_before_select;	/* NetEase: ID or "Unsafe Login" */
	bool files_sent_copy;	/* SMTP side files the Sent copy itself */
	bool view_is_limited;	/* Yahoo: only the newest 10,000 (L138) */
	int64_t idle_secs;	/* longest IDLE; 0: no limit */
	int64_t conn_cap;	/* connections per account; 0: default */
};

struct quirks_table;

/*
 * file "" gives an empty table.  ERR_GONE: no such file, which a caller may
 * take for one; ERR_CONFIG names file and line.
 */
int quirks_load(struct quirks_table **table_r, const char *file,
    struct err *err);
/* From memory; `file` is for messages. */
int quirks_load_text(struct quirks_table **table_r, const char *file,
    const char *text, size_t len, struct err *err);
void quirks_free(struct quirks_table **table);
/* capabilities: the words of CAPABILITY separated by blanks; NULLs allowed,
 * the table included. */
void quirks_match(const struct quirks_table *table, const char *host,
    const char *greeting, const char *capabilities, struct quirks *quirks_r);
/* Both together: switches of either, the smaller limits. */
void quirks_add(struct quirks *sum, const struct quirks *more);

#endif
