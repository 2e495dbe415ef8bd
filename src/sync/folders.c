/*
 * folders.c - our folders and a LIST: what to create, rename, forget.
 *
 * Runs in: whoever syncs.  Pure.
 *
 * Nothing is lost lightly: only a list that shows INBOX proves absence, and
 * only the second such list in a row (L063).  A rename is believed when
 * exactly one folder went and exactly one came with the same UIDVALIDITY, and
 * no third has that number too (some servers give it to all folders).
 */
#include "sync/folders.h"

#include "sync/roles.h"
#include "sync/wires.h"

void
folders_normalise(struct arena *arena, const struct imap_folder *listed,
    size_t n_listed, struct imap_folder **whole_r, size_t *n_r,
    bool *is_whole_r)
{
	struct wires wires = WIRES_OF(arena, listed, n_listed);
	struct imap_folder *out;
	size_t i, n = 0;
	bool has_inbox = false;

	out = ARENA_ARRAY(arena, struct imap_folder, n_listed + 1);
	for (i = 0; i < n_listed; i++) {
		if (is_inbox_name(listed[i].wire)) {
			if (has_inbox)
				continue;
			has_inbox = true;
			out[n] = listed[i];
			out[n].wire = out[n].path = "INBOX";
			out[n].is_selectable = true;
			n++;
		} else if (listed[i].wire[0] != '\0' &&
		    wires_find(&wires, listed[i].wire) == i)
			out[n++] = listed[i];
	}
	*is_whole_r = has_inbox;
	if (!has_inbox) {
		out[n].wire = out[n].path = "INBOX";
		out[n].is_selectable = true;
		n++;
	}
	*whole_r = out;
	*n_r = n;
}

void
folders_unknown(struct arena *arena, const struct folder *local,
    size_t n_local, const struct imap_folder *listed, size_t n_listed,
    bool *unknown_r)
{
	struct wires wires = WIRES_OF(arena, local, n_local);
	size_t i;

	for (i = 0; i < n_listed; i++)
		unknown_r[i] = wires_find(&wires, listed[i].wire) ==
		    WIRES_NONE;
}

/* A folder that was deleted while it has subfolders stays in the list as a
 * name that cannot be selected: the folder itself is gone. */
static bool
has_become_a_name(const struct folder *f, const struct imap_folder *rf)
{
	return f->is_selectable && f->cursor.uidvalidity != 0 &&
	    !rf->is_selectable;
}

/* --- both sides, ready to be looked up ----------------------------------- */

/* UIDVALIDITYs in order, and whose they are. */
struct validity {
	uint32_t uidvalidity;
	size_t at;
};

struct census {
	const struct folder *local;
	size_t n_local;
	const struct imap_folder *listed;
	size_t n_listed;
	const struct imap_status *status;
	struct wires local_wires, listed_wires;
	/* of ours, and of those listed folders that we do not have */
	struct validity *ours, *strangers;
	size_t n_strangers;
};

static int
by_validity(const void *a, const void *b)
{
	const struct validity *x = a, *y = b;

	if (x->uidvalidity != y->uidvalidity)
		return x->uidvalidity < y->uidvalidity ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

/* The first of those that have this UIDVALIDITY; *n_r: how many, or 2 for
 * more. */
static const struct validity *
find_validity(const struct validity *list, size_t n, uint32_t uidvalidity,
    size_t *n_r)
{
	size_t from = 0, to = n, at;

	while (from < to) {
		at = from + (to - from) / 2;
		if (list[at].uidvalidity < uidvalidity)
			from = at + 1;
		else
			to = at;
	}
	for (to = from; to < n && to < from + 2 &&
	     list[to].uidvalidity == uidvalidity; to++)
		;
	*n_r = to - from;
	return list + from;
}

static void
take_census(struct arena *arena, struct census *c)
{
	size_t i;

	c->local_wires = WIRES_OF(arena, c->local, c->n_local);
	c->listed_wires = WIRES_OF(arena, c->listed, c->n_listed);
	c->ours = ARENA_ARRAY(arena, struct validity, c->n_local + 1);
	c->strangers = ARENA_ARRAY(arena, struct validity, c->n_listed + 1);
	for (i = 0; i < c->n_local; i++)
		c->ours[i] = (struct validity){
			.uidvalidity = c->local[i].cursor.uidvalidity,
			.at = i };
	for (i = 0; i < c->n_listed; i++)
		if (c->listed[i].is_selectable && c->status[i].is_known &&
		    wires_find(&c->local_wires, c->listed[i].wire) ==
			WIRES_NONE)
			c->strangers[c->n_strangers++] = (struct validity){
				.uidvalidity = c->status[i].uidvalidity,
				.at = i };
	qsort(c->ours, c->n_local, sizeof(c->ours[0]), by_validity);
	qsort(c->strangers, c->n_strangers, sizeof(c->strangers[0]),
	    by_validity);
}

static bool
is_there(const struct census *c, const struct folder *f)
{
	size_t at = wires_find(&c->listed_wires, f->wire);

	return at != WIRES_NONE && !has_become_a_name(f, &c->listed[at]);
}

/* The one unknown folder that `gone` may have become, or n_listed. */
static size_t
find_rename(const struct census *c, const struct folder *gone)
{
	const struct validity *stranger;
	size_t n;

	if (gone->cursor.uidvalidity == 0 || gone->role == ROLE_INBOX)
		return c->n_listed;
	find_validity(c->ours, c->n_local, gone->cursor.uidvalidity, &n);
	if (n > 1)
		return c->n_listed;
	stranger = find_validity(c->strangers, c->n_strangers,
	    gone->cursor.uidvalidity, &n);
	return n == 1 &&
	    c->status[stranger->at].uidnext >= gone->cursor.uidnext ?
	    stranger->at : c->n_listed;
}

static struct folder_op *
add_op(struct folder_op *ops, size_t *n, enum folder_op_kind kind, int64_t id,
    const struct imap_folder *rf, enum folder_role role)
{
	struct folder_op *op = &ops[(*n)++];

	memset(op, 0, sizeof(*op));
	op->kind = kind;
	op->id = id;
	if (rf != NULL) {
		op->wire = rf->wire;
		op->path = rf->path;
		op->delimiter = rf->delimiter;
		op->is_selectable = rf->is_selectable;
	}
	op->role = role;
	return op;
}

static bool
is_different(const struct folder *f, const struct imap_folder *rf,
    enum folder_role role)
{
	return f->role != role || f->delimiter != rf->delimiter ||
	    f->is_selectable != rf->is_selectable ||
	    f->missing_since_secs != 0;
}

/* Folders of ours that the list does not show. */
static void
diff_absent(const struct census *c, const enum folder_role *role,
    bool is_whole, bool *taken, struct folder_op *ops, size_t *n)
{
	size_t i, to;

	for (i = 0; i < c->n_local; i++) {
		const struct folder *f = &c->local[i];

		if (is_there(c, f))
			continue;
		to = find_rename(c, f);
		if (to < c->n_listed) {
			taken[to] = true;
			add_op(ops, n, FOLDER_RENAME, f->id, &c->listed[to],
			    role[to]);
			/* A rename keeps the role it had; say the new one. */
			if (is_different(f, &c->listed[to], role[to]))
				add_op(ops, n, FOLDER_UPDATE, f->id,
				    &c->listed[to], role[to]);
		} else if (is_whole && f->missing_since_secs == 0)
			add_op(ops, n, FOLDER_MISSING, f->id, NULL, f->role);
		else if (is_whole)
			add_op(ops, n, FOLDER_VANISH, f->id, NULL, f->role);
	}
}

void
folders_diff(struct arena *arena, const struct conf *conf,
    const struct folder *local, size_t n_local,
    const struct imap_folder *listed, const struct imap_status *status,
    size_t n_listed, bool is_whole, struct folder_op **ops_r, size_t *n_r)
{
	struct census c = { .local = local, .n_local = n_local,
		.listed = listed, .n_listed = n_listed, .status = status };
	enum folder_role *role;
	struct folder_op *ops;
	const struct folder *f;
	bool *taken;
	size_t i, at, n = 0;

	role = ARENA_ARRAY(arena, enum folder_role, n_listed);
	taken = ARENA_ARRAY(arena, bool, n_listed);
	ops = ARENA_ARRAY(arena, struct folder_op, n_local * 2 + n_listed);
	take_census(arena, &c);
	roles_assign(arena, conf, listed, n_listed, local, n_local, role);
	diff_absent(&c, role, is_whole, taken, ops, &n);
	for (i = 0; i < n_listed; i++) {
		at = wires_find(&c.local_wires, listed[i].wire);
		f = at != WIRES_NONE ? &local[at] : NULL;
		if (f == NULL && !taken[i])
			add_op(ops, &n, FOLDER_CREATE, 0, &listed[i],
			    role[i]);
		else if (f != NULL && !has_become_a_name(f, &listed[i]) &&
		    is_different(f, &listed[i], role[i]))
			add_op(ops, &n, FOLDER_UPDATE, f->id, &listed[i],
			    role[i]);
	}
	*ops_r = ops;
	*n_r = n;
}
