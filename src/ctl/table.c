/*
 * table.c - aligned tables and JSON lines.
 *
 * Runs in: mailherdctl.
 *
 * Where a table is too wide for the terminal, flexible columns are cut, in
 * proportion to their floors; where that is not enough, droppable columns are
 * left out, the last first.  Without a terminal nothing is ever cut: what
 * goes to grep is complete.
 */
#include "ctl/table.h"

#include "base/clock.h"
#include "base/xmem.h"

#include <ctype.h>

#define GAP 2 /* blanks between columns */
#define LEAST 4 /* what a column shrinks to on a very narrow terminal */

struct table {
	const struct column *columns;
	size_t n_columns;
	bool is_json;
	char **cells; /* n_rows * n_columns, as given */
	size_t n_cells, cap;
	size_t n_rows;
};

/* How a table is laid out for one width. */
struct layout {
	size_t *width; /* per column; the widest cell, then what fits */
	bool *shown;
};

struct table *
table_new(const struct column *columns, size_t n, bool json)
{
	struct table *t = xcalloc(1, sizeof(*t));

	t->columns = columns;
	t->n_columns = n;
	t->is_json = json;
	return t;
}

void
table_free(struct table **t)
{
	if (*t == NULL)
		return;
	for (size_t i = 0; i < (*t)->n_cells; i++)
		free((*t)->cells[i]);
	free((*t)->cells);
	free(*t);
	*t = NULL;
}

size_t
table_rows(const struct table *t)
{
	return t->n_rows;
}

static void
table_print_json(const struct table *t, const char *const *cells)
{
	json_t *object = json_object();
	char *line;

	for (size_t i = 0; i < t->n_columns; i++) {
		if (t->columns[i].flags & COLUMN_HUMAN_ONLY)
			continue;
		json_object_set_new(object, t->columns[i].key,
		    cell_json(t->columns[i].type, cells[i]));
	}
	line = json_dumps(object, JSON_COMPACT);
	puts(line);
	free(line);
	json_decref(object);
}

void
table_add(struct table *t, const char *const *cells)
{
	t->n_rows++;
	if (t->is_json) {
		table_print_json(t, cells);
		return;
	}
	for (size_t i = 0; i < t->n_columns; i++) {
		GROW(t->cells, t->n_cells, t->cap);
		t->cells[t->n_cells++] =
		    cells[i] != NULL ? xstrdup(cells[i]) : NULL;
	}
}

/* The value as a cell; to be freed. */
static char *
cell_of_json(const json_t *value)
{
	if (value == NULL || json_is_null(value))
		return NULL;
	if (json_is_string(value))
		return xstrdup(json_string_value(value));
	return json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
}

void
table_add_object(struct table *t, json_t *object)
{
	char **cells = xcalloc(t->n_columns, sizeof(*cells));

	for (size_t i = 0; i < t->n_columns; i++)
		cells[i] = cell_of_json(
		    json_object_get(object, t->columns[i].key));
	table_add(t, (const char *const *)cells);
	for (size_t i = 0; i < t->n_columns; i++)
		free(cells[i]);
	free(cells);
}

/* --- layout ------------------------------------------------------------- */

static void
add_title(struct buf *out, const struct column *c)
{
	if (c->title != NULL) {
		buf_adds(out, c->title);
		return;
	}
	for (const char *p = c->key; *p != '\0'; p++)
		buf_addc(out, *p == '_' ? ' ' : (char)toupper(*p));
}

static bool
is_right(const struct column *c)
{
	return c->type == COLUMN_NUMBER || c->type == COLUMN_SIZE;
}

/* Cell (row, column) as people read it. */
static void
add_cell(struct buf *out, const struct table *t, size_t row, size_t column,
    int64_t now)
{
	cell_human(out, t->columns[column].type,
	    t->cells[row * t->n_columns + column], now);
}

static bool
table_is_set(const struct table *t, size_t row, size_t c)
{
	const char *cell = t->cells[row * t->n_columns + c];

	return cell != NULL && *cell != '\0';
}

static bool
is_in_table(const struct table *t, size_t c)
{
	unsigned flags = t->columns[c].flags;

	if (flags & (COLUMN_JSON_ONLY | COLUMN_BELOW))
		return false;
	if (!(flags & COLUMN_IF_SET))
		return true;
	for (size_t r = 0; r < t->n_rows; r++)
		if (table_is_set(t, r, c))
			return true;
	return false;
}

static void
table_measure(const struct table *t, struct layout *l, int64_t now)
{
	struct buf text = BUF_INIT;

	for (size_t c = 0; c < t->n_columns; c++) {
		l->shown[c] = is_in_table(t, c);
		buf_reset(&text);
		add_title(&text, &t->columns[c]);
		l->width[c] = display_width(buf_str(&text));
		for (size_t r = 0; r < t->n_rows; r++) {
			size_t width;

			buf_reset(&text);
			add_cell(&text, t, r, c, now);
			width = display_width(buf_str(&text));
			if (width > l->width[c])
				l->width[c] = width;
		}
	}
	buf_release(&text);
}

static size_t
total_width(const struct table *t, const struct layout *l)
{
	size_t total = 0, n = 0;

	for (size_t c = 0; c < t->n_columns; c++)
		if (l->shown[c]) {
			total += l->width[c];
			n++;
		}
	return n > 0 ? total + (n - 1) * GAP : 0;
}

/*
 * The column that is the most above its floor, relatively; n_columns when none
 * has anything left to give.  desperate: floors count no longer.
 */
static size_t
most_flexible(const struct table *t, const struct layout *l, bool desperate)
{
	size_t found = t->n_columns;

	for (size_t c = 0; c < t->n_columns; c++) {
		const struct column *col = &t->columns[c];

		if (!l->shown[c] || !(col->flags & COLUMN_FLEX) ||
		    l->width[c] <= (desperate ? LEAST : col->floor))
			continue;
		if (found == t->n_columns ||
		    l->width[c] * t->columns[found].floor >=
		    l->width[found] * col->floor)
			found = c;
	}
	return found;
}

/* n_columns when all that is left has to stay. */
static size_t
next_to_drop(const struct table *t, const struct layout *l)
{
	static const unsigned order[] = { COLUMN_DROP_FIRST, COLUMN_DROP };

	for (size_t i = 0; i < N_COLUMNS(order); i++)
		for (size_t c = t->n_columns; c-- > 0;)
			if (l->shown[c] && (t->columns[c].flags & order[i]))
				return c;
	return t->n_columns;
}

/* The least room the shown columns can do with. */
static size_t
least_width(const struct table *t, const struct layout *l)
{
	size_t total = total_width(t, l);

	for (size_t c = 0; c < t->n_columns; c++) {
		const struct column *col = &t->columns[c];

		if (l->shown[c] && (col->flags & COLUMN_FLEX) &&
		    l->width[c] > col->floor)
			total -= l->width[c] - col->floor;
	}
	return total;
}

static void
table_fit(const struct table *t, struct layout *l, size_t width)
{
	size_t c;

	if (width == 0)
		return;
	while (least_width(t, l) > width &&
	    (c = next_to_drop(t, l)) < t->n_columns)
		l->shown[c] = false;
	while (total_width(t, l) > width &&
	    (c = most_flexible(t, l, false)) < t->n_columns)
		l->width[c]--;
	while (total_width(t, l) > width &&
	    (c = most_flexible(t, l, true)) < t->n_columns)
		l->width[c]--;
}

/* --- printing ----------------------------------------------------------- */

static void
add_blanks(struct buf *out, size_t n)
{
	while (n-- > 0)
		buf_addc(out, ' ');
}

static void
add_padded(struct buf *out, const char *text, size_t width, bool right,
    bool last, enum tint tint)
{
	struct buf cut = BUF_INIT;
	size_t taken = display_cut(&cut, text, width);

	if (right)
		add_blanks(out, width - taken);
	if (tint != TINT_NONE)
		buf_adds(out, display_tint(tint));
	buf_adds(out, buf_str(&cut));
	if (tint != TINT_NONE)
		buf_adds(out, display_plain());
	if (!right && !last)
		add_blanks(out, width - taken);
	buf_release(&cut);
}

/* No blanks at the end of a line. */
static void
end_line(struct buf *out)
{
	while (out->len > 0 && out->data[out->len - 1] == ' ')
		out->len--;
	buf_addc(out, '\n');
}

static size_t
last_shown(const struct table *t, const struct layout *l)
{
	size_t last = 0;

	for (size_t c = 0; c < t->n_columns; c++)
		if (l->shown[c])
			last = c;
	return last;
}

static void
render_heading(const struct table *t, const struct layout *l, struct buf *out)
{
	struct buf text = BUF_INIT;
	size_t last = last_shown(t, l);

	for (size_t c = 0; c <= last; c++) {
		if (!l->shown[c])
			continue;
		buf_reset(&text);
		add_title(&text, &t->columns[c]);
		add_padded(out, buf_str(&text), l->width[c],
		    is_right(&t->columns[c]), c == last, TINT_BOLD);
		if (c != last)
			add_blanks(out, GAP);
	}
	buf_addc(out, '\n');
	buf_release(&text);
}

static enum tint
tint_of(const struct table *t, size_t row, size_t column)
{
	const struct column *c = &t->columns[column];
	const char *cell = t->cells[row * t->n_columns + column];

	if (cell == NULL)
		return TINT_DIM;
	return c->tint != NULL ? c->tint(cell) : TINT_NONE;
}

static void
render_row(const struct table *t, const struct layout *l, size_t row,
    struct buf *out, int64_t now)
{
	struct buf text = BUF_INIT;
	size_t last = last_shown(t, l);

	for (size_t c = 0; c <= last; c++) {
		if (!l->shown[c])
			continue;
		buf_reset(&text);
		add_cell(&text, t, row, c, now);
		add_padded(out, buf_str(&text), l->width[c],
		    is_right(&t->columns[c]), c == last, tint_of(t, row, c));
		if (c != last)
			add_blanks(out, GAP);
	}
	end_line(out);
	buf_release(&text);
}

/* What belongs below a row: indented, cut to one line, dim. */
static void
render_below(const struct table *t, size_t row, size_t width,
    struct buf *out, int64_t now)
{
	const size_t indent = 4;
	struct buf text = BUF_INIT;

	for (size_t c = 0; c < t->n_columns; c++) {
		if (!(t->columns[c].flags & COLUMN_BELOW) ||
		    !table_is_set(t, row, c))
			continue;
		buf_reset(&text);
		add_cell(&text, t, row, c, now);
		add_blanks(out, indent);
		add_padded(out, buf_str(&text),
		    width > indent ? width - indent : SIZE_MAX, false, true,
		    TINT_DIM);
		buf_addc(out, '\n');
	}
	buf_release(&text);
}

void
table_render(struct table *t, struct buf *out, size_t width)
{
	int64_t now = clock_wall_secs();
	struct layout l = {
		.width = xcalloc(t->n_columns, sizeof(*l.width)),
		.shown = xcalloc(t->n_columns, sizeof(*l.shown)),
	};

	table_measure(t, &l, now);
	table_fit(t, &l, width);
	render_heading(t, &l, out);
	for (size_t r = 0; r < t->n_rows; r++) {
		render_row(t, &l, r, out, now);
		render_below(t, r, width, out, now);
	}
	free(l.width);
	free(l.shown);
}

void
table_print(struct table *t, const char *empty)
{
	struct buf out = BUF_INIT;

	if (t->is_json)
		return;
	if (t->n_rows == 0) {
		if (empty != NULL)
			fprintf(stderr, "%s\n", empty);
		return;
	}
	table_render(t, &out, display_columns());
	fwrite(out.data, 1, out.len, stdout);
	buf_release(&out);
}

/* --- a record ----------------------------------------------------------- */

static bool
is_in_record(const struct table *t, size_t row, size_t c)
{
	unsigned flags = t->columns[c].flags;

	if (flags & COLUMN_JSON_ONLY)
		return false;
	return !(flags & COLUMN_IF_SET) || table_is_set(t, row, c);
}

static size_t
label_width(const struct table *t)
{
	struct buf text = BUF_INIT;
	size_t width = 0;

	for (size_t c = 0; c < t->n_columns; c++) {
		size_t w;

		if (t->n_rows > 0 && !is_in_record(t, 0, c))
			continue;
		buf_reset(&text);
		add_title(&text, &t->columns[c]);
		w = display_width(buf_str(&text));
		width = w > width ? w : width;
	}
	buf_release(&text);
	return width;
}

/* A moment also says how far away it is. */
static void
add_record_value(struct buf *out, const struct table *t, size_t row, size_t c,
    int64_t now)
{
	add_cell(out, t, row, c, now);
	if (t->columns[c].type == COLUMN_TIME &&
	    t->cells[row * t->n_columns + c] != NULL) {
		buf_adds(out, " (");
		cell_human(out, COLUMN_AGE, t->cells[row * t->n_columns + c],
		    now);
		buf_addc(out, ')');
	}
}

void
table_render_record(struct table *t, struct buf *out, size_t columns)
{
	int64_t now = clock_wall_secs();
	struct buf text = BUF_INIT;
	size_t width = label_width(t);

	for (size_t r = 0; r < t->n_rows; r++)
		for (size_t c = 0; c < t->n_columns; c++) {
			enum tint tint = tint_of(t, r, c);

			if (!is_in_record(t, r, c))
				continue;
			buf_reset(&text);
			add_title(&text, &t->columns[c]);
			add_padded(out, buf_str(&text), width, false, false,
			    TINT_BOLD);
			add_blanks(out, GAP);
			buf_reset(&text);
			add_record_value(&text, t, r, c, now);
			buf_adds(out, display_tint(tint));
			display_wrap(out, buf_str(&text), width + GAP,
			    columns);
			buf_adds(out, tint != TINT_NONE ? display_plain() : "");
			buf_addc(out, '\n');
		}
	buf_release(&text);
}

void
table_print_record(struct table *t)
{
	struct buf out = BUF_INIT;

	if (t->is_json)
		return;
	table_render_record(t, &out, display_columns());
	fwrite(out.data, 1, out.len, stdout);
	buf_release(&out);
}
