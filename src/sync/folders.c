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

void
folders_normalise(struct arena *arena, const struct remote_folder *listed,
    size_t n_listed, struct remote_folder **whole_r, size_t *n_r,
    bool *is_whole_r)
{
	struct remote_folder *out;
	size_t i, j, n = 0;
	bool has_inbox = false, is_double;

	out = ARENA_ARRAY(arena, struct remote_folder, n_listed + 1);
	for (i = 0; i < n_listed; i++) {
		if (is_inbox_name(listed[i].wire)) {
			if (has_inbox)
				continue;
			has_inbox = true;
			out[n] = listed[i];
			out[n].wire = out[n].path = "INBOX";
			out[n].is_selectable = true;
			n++;
			continue;
		}
		is_double = false;
		for (j = 0; j < n && !is_double; j++)
			is_double = strcmp(out[j].wire, listed[i].wire) == 0;
		if (!is_double && listed[i].wire[0] != '\0')
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

static const struct folder *
find_local(const struct folder *local, size_t n_local, const char *wire)
{
	size_t i;

	for (i = 0; i < n_local; i++)
		if (strcmp(local[i].wire, wire) == 0)
			return &local[i];
	return NULL;
}

/* A folder that was deleted while it has subfolders stays in the list as a
 * name that cannot be selected: the folder itself is gone. */
static bool
has_become_a_name(const struct folder *f, const struct remote_folder *rf)
{
	return f->is_selectable && f->cursor.uidvalidity != 0 &&
	    !rf->is_selectable;
}

static bool
is_there(const struct folder *f, const struct remote_folder *listed,
    size_t n_listed)
{
	size_t i;

	for (i = 0; i < n_listed; i++)
		if (strcmp(listed[i].wire, f->wire) == 0)
			return !has_become_a_name(f, &listed[i]);
	return false;
}

void
folders_unknown(const struct folder *local, size_t n_local,
    const struct remote_folder *listed, size_t n_listed, bool *unknown_r)
{
	size_t i;

	for (i = 0; i < n_listed; i++)
		unknown_r[i] = find_local(local, n_local, listed[i].wire) ==
		    NULL;
}

/* The one unknown folder that `gone` may have become, or n_listed. */
static size_t
find_rename(const struct folder *gone, const struct folder *local,
    size_t n_local, const struct remote_folder *listed,
    const struct remote_status *status, size_t n_listed)
{
	size_t i, found = n_listed, n_found = 0;

	if (gone->cursor.uidvalidity == 0 || gone->role == ROLE_INBOX)
		return n_listed;
	for (i = 0; i < n_local; i++)
		if (&local[i] != gone && local[i].cursor.uidvalidity ==
		    gone->cursor.uidvalidity)
			return n_listed;
	for (i = 0; i < n_listed; i++) {
		if (find_local(local, n_local, listed[i].wire) != NULL ||
		    !listed[i].is_selectable || !status[i].is_known ||
		    status[i].uidvalidity != gone->cursor.uidvalidity)
			continue;
		n_found++;
		if (status[i].uidnext >= gone->cursor.uidnext)
			found = i;
	}
	return n_found == 1 ? found : n_listed;
}

static struct folder_op *
add_op(struct folder_op *ops, size_t *n, enum folder_op_kind kind, int64_t id,
    const struct remote_folder *rf, enum folder_role role)
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
is_different(const struct folder *f, const struct remote_folder *rf,
    enum folder_role role)
{
	return f->role != role || f->delimiter != rf->delimiter ||
	    f->is_selectable != rf->is_selectable ||
	    f->missing_since_secs != 0;
}

/* Folders of ours that the list does not show. */
static void
diff_absent(const struct folder *local, size_t n_local,
    const struct remote_folder *listed, const struct remote_status *status,
    size_t n_listed, const enum folder_role *role, bool is_whole,
    bool *taken, struct folder_op *ops, size_t *n)
{
	size_t i, to;

	for (i = 0; i < n_local; i++) {
		const struct folder *f = &local[i];

		if (is_there(f, listed, n_listed))
			continue;
		to = find_rename(f, local, n_local, listed, status, n_listed);
		if (to < n_listed) {
			taken[to] = true;
			add_op(ops, n, FOLDER_RENAME, f->id, &listed[to],
			    role[to]);
			/* A rename keeps the role it had; say the new one. */
			if (is_different(f, &listed[to], role[to]))
				add_op(ops, n, FOLDER_UPDATE, f->id,
				    &listed[to], role[to]);
		} else if (is_whole && f->missing_since_secs == 0)
			add_op(ops, n, FOLDER_MISSING, f->id, NULL, f->role);
		else if (is_whole)
			add_op(ops, n, FOLDER_VANISH, f->id, NULL, f->role);
	}
}

void
folders_diff(struct arena *arena, const struct conf *conf,
    const struct folder *local, size_t n_local,
    const struct remote_folder *listed, const struct remote_status *status,
    size_t n_listed, bool is_whole, struct folder_op **ops_r, size_t *n_r)
{
	enum folder_role *role;
	struct folder_op *ops;
	const struct folder *f;
	bool *taken;
	size_t i, n = 0;

	role = ARENA_ARRAY(arena, enum folder_role, n_listed);
	taken = ARENA_ARRAY(arena, bool, n_listed);
	ops = ARENA_ARRAY(arena, struct folder_op, n_local * 2 + n_listed);
	roles_assign(conf, listed, n_listed, local, n_local, role);
	diff_absent(local, n_local, listed, status, n_listed, role, is_whole,
	    taken, ops, &n);
	for (i = 0; i < n_listed; i++) {
		f = find_local(local, n_local, listed[i].wire);
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
