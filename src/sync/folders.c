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

/* Names in order, so that finding one among a hundred thousand is cheap. */
struct named {
	const char *wire;
	size_t index;
};

static int
compare_named(const void *a, const void *b)
{
	const struct named *x = a, *y = b;
	int order = strcmp(x->wire, y->wire);

	return order != 0 ? order : x->index < y->index ? -1 :
	    x->index > y->index;
}

/* The first of that name, or n. */
static size_t
named_find(const struct named *names, size_t n, const char *wire)
{
	size_t from = 0, to = n, at;

	while (from < to) {
		at = from + (to - from) / 2;
		if (strcmp(names[at].wire, wire) < 0)
			from = at + 1;
		else
			to = at;
	}
	return from < n && strcmp(names[from].wire, wire) == 0 ?
	    names[from].index : n;
}

static struct named *
named_listed(struct arena *arena, const struct remote_folder *listed,
    size_t n)
{
	struct named *names = ARENA_ARRAY(arena, struct named, n + 1);
	size_t i;

	for (i = 0; i < n; i++)
		names[i] = (struct named){ listed[i].wire, i };
	qsort(names, n, sizeof(*names), compare_named);
	return names;
}

static struct named *
named_local(struct arena *arena, const struct folder *local, size_t n)
{
	struct named *names = ARENA_ARRAY(arena, struct named, n + 1);
	size_t i;

	for (i = 0; i < n; i++)
		names[i] = (struct named){ local[i].wire, i };
	qsort(names, n, sizeof(*names), compare_named);
	return names;
}

/* The first of each name stays, where it was. */
static size_t
folders_without_doubles(struct arena *arena, struct remote_folder *folders,
    size_t n)
{
	struct named *names = named_listed(arena, folders, n);
	size_t i, kept = 0;

	for (i = 1; i < n; i++)
		if (strcmp(names[i].wire, names[i - 1].wire) == 0)
			folders[names[i].index].wire = "";
	for (i = 0; i < n; i++)
		if (folders[i].wire[0] != '\0')
			folders[kept++] = folders[i];
	return kept;
}

void
folders_normalise(struct arena *arena, const struct remote_folder *listed,
    size_t n_listed, struct remote_folder **whole_r, size_t *n_r,
    bool *is_whole_r)
{
	struct remote_folder *out;
	size_t i, n = 0;
	bool has_inbox = false;

	out = ARENA_ARRAY(arena, struct remote_folder, n_listed + 1);
	for (i = 0; i < n_listed; i++) {
		if (!is_inbox_name(listed[i].wire)) {
			if (listed[i].wire[0] != '\0')
				out[n++] = listed[i];
			continue;
		}
		if (has_inbox)
			continue;
		has_inbox = true;
		out[n] = listed[i];
		out[n].wire = out[n].path = "INBOX";
		out[n].is_selectable = true;
		n++;
	}
	n = folders_without_doubles(arena, out, n);
	*is_whole_r = has_inbox;
	if (!has_inbox) {
		out[n].wire = out[n].path = "INBOX";
		out[n].is_selectable = true;
		n++;
	}
	*whole_r = out;
	*n_r = n;
}

/*
 * The two sides of a comparison.  `by_validity` are folders of ours and
 * unknown ones of the list by UIDVALIDITY: a rename is where there is one of
 * each.
 */
struct sides {
	const struct folder *local;
	size_t n_local;
	const struct named *local_names;
	const struct remote_folder *listed;
	size_t n_listed;
	const struct named *listed_names;
	const struct remote_status *status;
	struct validity {
		uint32_t uidvalidity;
		bool is_local;
		size_t index;
	} *by_validity;
	size_t n_validities;
};

static const struct folder *
find_local(const struct sides *s, const char *wire)
{
	size_t i = named_find(s->local_names, s->n_local, wire);

	return i < s->n_local ? &s->local[i] : NULL;
}

static int
compare_validities(const void *a, const void *b)
{
	const struct validity *x = a, *y = b;

	return x->uidvalidity < y->uidvalidity ? -1 :
	    x->uidvalidity > y->uidvalidity;
}

static void
sides_init(struct sides *s, struct arena *arena)
{
	struct validity *v;
	size_t i;

	s->local_names = named_local(arena, s->local, s->n_local);
	s->listed_names = named_listed(arena, s->listed, s->n_listed);
	s->by_validity = v = ARENA_ARRAY(arena, struct validity,
	    s->n_local + s->n_listed + 1);
	for (i = 0; i < s->n_local; i++)
		v[s->n_validities++] = (struct validity){
			s->local[i].cursor.uidvalidity, true, i };
	for (i = 0; i < s->n_listed; i++)
		if (s->listed[i].is_selectable && s->status[i].is_known &&
		    find_local(s, s->listed[i].wire) == NULL)
			v[s->n_validities++] = (struct validity){
				s->status[i].uidvalidity, false, i };
	qsort(v, s->n_validities, sizeof(*v), compare_validities);
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
is_there(const struct sides *s, const struct folder *f)
{
	size_t i = named_find(s->listed_names, s->n_listed, f->wire);

	return i < s->n_listed && !has_become_a_name(f, &s->listed[i]);
}

void
folders_unknown(struct arena *arena, const struct folder *local,
    size_t n_local, const struct remote_folder *listed, size_t n_listed,
    bool *unknown_r)
{
	const struct named *names = named_local(arena, local, n_local);
	size_t i;

	for (i = 0; i < n_listed; i++)
		unknown_r[i] = named_find(names, n_local, listed[i].wire) ==
		    n_local;
}

/* The one unknown folder that `gone` may have become, or n_listed. */
static size_t
find_rename(const struct sides *s, const struct folder *gone)
{
	const struct validity key = { .uidvalidity =
		gone->cursor.uidvalidity }, *v = s->by_validity, *found;
	size_t i, n_local = 0, n_found = 0, to = s->n_listed;

	if (gone->cursor.uidvalidity == 0 || gone->role == ROLE_INBOX)
		return s->n_listed;
	found = bsearch(&key, v, s->n_validities, sizeof(*v),
	    compare_validities);
	if (found == NULL)
		return s->n_listed;
	for (i = (size_t)(found - v); i > 0 &&
	    v[i - 1].uidvalidity == key.uidvalidity; i--)
		;
	/* Three with one number are as bad as many. */
	for (; i < s->n_validities && v[i].uidvalidity == key.uidvalidity &&
	    n_local < 2 && n_found < 2; i++) {
		if (v[i].is_local) {
			n_local++;
			continue;
		}
		n_found++;
		if (s->status[v[i].index].uidnext >= gone->cursor.uidnext)
			to = v[i].index;
	}
	return n_local == 1 && n_found == 1 ? to : s->n_listed;
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

struct folder_ops {
	struct folder_op *ops;
	size_t n;
	bool *taken; /* of the list: a renamed one of ours */
};

/* Folders of ours that the list does not show. */
static void
diff_absent(const struct sides *s, const enum folder_role *role,
    bool is_whole, struct folder_ops *out)
{
	size_t i, to;

	for (i = 0; i < s->n_local; i++) {
		const struct folder *f = &s->local[i];

		if (is_there(s, f))
			continue;
		to = find_rename(s, f);
		if (to < s->n_listed) {
			out->taken[to] = true;
			add_op(out->ops, &out->n, FOLDER_RENAME, f->id,
			    &s->listed[to], role[to]);
			/* A rename keeps the role it had; say the new one. */
			if (is_different(f, &s->listed[to], role[to]))
				add_op(out->ops, &out->n, FOLDER_UPDATE,
				    f->id, &s->listed[to], role[to]);
		} else if (is_whole && f->missing_since_secs == 0)
			add_op(out->ops, &out->n, FOLDER_MISSING, f->id, NULL,
			    f->role);
		else if (is_whole)
			add_op(out->ops, &out->n, FOLDER_VANISH, f->id, NULL,
			    f->role);
	}
}

/* Folders of the list that we have not, or have otherwise. */
static void
diff_listed(const struct sides *s, const enum folder_role *role,
    struct folder_ops *out)
{
	const struct folder *f;
	size_t i;

	for (i = 0; i < s->n_listed; i++) {
		f = find_local(s, s->listed[i].wire);
		if (f == NULL && !out->taken[i])
			add_op(out->ops, &out->n, FOLDER_CREATE, 0,
			    &s->listed[i], role[i]);
		else if (f != NULL && !has_become_a_name(f, &s->listed[i]) &&
		    is_different(f, &s->listed[i], role[i]))
			add_op(out->ops, &out->n, FOLDER_UPDATE, f->id,
			    &s->listed[i], role[i]);
	}
}

void
folders_diff(struct arena *arena, const struct conf *conf,
    const struct folder *local, size_t n_local,
    const struct remote_folder *listed, const struct remote_status *status,
    size_t n_listed, bool is_whole, struct folder_op **ops_r, size_t *n_r)
{
	struct sides s = { .local = local, .n_local = n_local,
		.listed = listed, .n_listed = n_listed, .status = status };
	struct folder_ops out = { .n = 0 };
	enum folder_role *role;

	sides_init(&s, arena);
	role = ARENA_ARRAY(arena, enum folder_role, n_listed);
	out.taken = ARENA_ARRAY(arena, bool, n_listed);
	out.ops = ARENA_ARRAY(arena, struct folder_op,
	    n_local * 2 + n_listed);
	roles_assign(conf, listed, n_listed, local, n_local, role);
	diff_absent(&s, role, is_whole, &out);
	diff_listed(&s, role, &out);
	*ops_r = out.ops;
	*n_r = out.n;
}
