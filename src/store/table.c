/*
 * table.c - any SQL as rows of text, for the tables of mailherdctl.
 *
 * Runs in: mailherdctl, tests.  Blocks.
 */
#include "store/session.h"

int
store_query(struct store *s, struct arena *arena, const char *sql,
    const char *const *params, size_t n_params, struct store_rows **rows_r,
    struct err *err)
{
	struct store_rows *rows;
	struct params p;
	PGresult *res;
	size_t i, row, column;

	params_init(&p);
	for (i = 0; i < n_params; i++)
		param_untyped(&p, params[i]);
	if (session_run(s, sql, &p, &res, err) == -1)
		return -1;
	rows = ARENA_NEW(arena, struct store_rows);
	rows->n_columns = (size_t)PQnfields(res);
	rows->n_rows = (size_t)PQntuples(res);
	rows->columns = ARENA_ARRAY(arena, const char *, rows->n_columns);
	rows->cells = ARENA_ARRAY(arena, const char *,
	    rows->n_columns * rows->n_rows);
	for (column = 0; column < rows->n_columns; column++)
		rows->columns[column] = arena_strdup(arena,
		    PQfname(res, (int)column));
	for (row = 0; row < rows->n_rows; row++)
		for (column = 0; column < rows->n_columns; column++)
			if (!PQgetisnull(res, (int)row, (int)column))
				rows->cells[row * rows->n_columns + column] =
				    result_text(arena, res, (int)row,
					(int)column);
	PQclear(res);
	*rows_r = rows;
	return 0;
}
