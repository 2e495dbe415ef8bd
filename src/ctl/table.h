/*
 * table.h - rows for people and for programs out of one description.
 *
 * A command describes its columns once and adds rows of plain strings, as
 * PostgreSQL or a JSON reply gave them.  For people they become an aligned
 * table, or one labelled record; with -j each row becomes one JSON object on
 * a line of its own, keys and types from the same description.
 */
#ifndef CTL_TABLE_H
#define CTL_TABLE_H

#include "ctl/display.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the string of a cell is; NULL is null for every type. */
enum column_type {
	COLUMN_TEXT,   /* as it is */
	COLUMN_NUMBER, /* decimal; right-aligned */
	COLUMN_SIZE,   /* bytes; people read "6.4 KB" */
	COLUMN_BOOL,   /* t f true false; people read "yes", "no" */
	COLUMN_TIME,   /* seconds since 1970; JSON: "2026-03-03T09:00:00Z" */
	COLUMN_AGE,    /* the same; people read "3 min" (ago, or to come) */
	COLUMN_SPAN,   /* a number of seconds; people read "3 min" */
	COLUMN_JSON,   /* a JSON value, passed through */
	COLUMN_WORDS,  /* words separated by blanks; JSON: an array */
};

enum column_flag {
	COLUMN_FLEX = 1,       /* may be cut down to `floor` columns */
	COLUMN_DROP = 2,       /* left out where room is short */
	COLUMN_JSON_ONLY = 4,  /* not shown to people */
	COLUMN_HUMAN_ONLY = 8, /* not in JSON */
	COLUMN_IF_SET = 16,    /* not shown when it is null or "" everywhere */
	COLUMN_BELOW = 32,     /* on a line of its own below the row */
	COLUMN_DROP_FIRST = 64, /* left out before those of COLUMN_DROP */
};

struct column {
	const char *key;   /* JSON key, as in mailherdctl(8) */
	const char *title; /* heading; NULL: the key in capitals */
	enum column_type type;
	unsigned flags;
	unsigned floor; /* COLUMN_FLEX: never narrower */
	enum tint (*tint)(const char *cell); /* may be NULL */
};

#define N_COLUMNS(columns) (sizeof(columns) / sizeof((columns)[0]))

struct table;

/* `columns` must outlive the table.  json: rows are printed as they come. */
struct table *table_new(const struct column *columns, size_t n, bool json);
void table_free(struct table **t);

/* Copies the cells. */
void table_add(struct table *t, const char *const *cells);
/* A row out of the members of a JSON object that bear the columns' keys;
 * what is missing is null. */
void table_add_object(struct table *t, json_t *object);
size_t table_rows(const struct table *t);

/*
 * Prints what was collected; nothing with -j, where all is out already.
 * `empty`: what to tell people, on standard error, when there is no row.
 */
void table_print(struct table *t, const char *empty);
/* One row as a list of "Title  value" lines. */
void table_print_record(struct table *t);

/* For tests: into a buffer, for a terminal of `width` columns (0: any). */
void table_render(struct table *t, struct buf *out, size_t width);
void table_render_record(struct table *t, struct buf *out, size_t width);

/* --- one cell ----------------------------------------------------------- */

/* As people read it, cleaned.  `now` decides what is long ago. */
void cell_human(struct buf *out, enum column_type type, const char *cell,
    int64_t now);
/* A new reference. */
json_t *cell_json(enum column_type type, const char *cell);

/* "6.4 KB" */
const char *format_size(char *out, size_t size, uint64_t bytes);
/* Local time: "Nov 29 21:03", or "Nov 29  2024" when more than half a year
 * away, as ls does. */
const char *format_time(char *out, size_t size, int64_t secs, int64_t now);
/* "12,345,678" */
const char *format_count(char *out, size_t size, uint64_t n);

#endif
