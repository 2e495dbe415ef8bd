/*
 * identity.c - is it still the same message under the same UID?
 *
 * Runs in: whoever syncs.  Blocks.
 *
 * A UID stands for one message as long as UIDVALIDITY stays.  Servers that were
 * restored from a backup, or whose index was lost, do not keep to it.  Size and
 * internal date are cheap and nearly always differ; but some servers tell
 * sizes that are not so, or other dates after a move of their own.  So a
 * difference is a suspicion, and the Message-ID decides.  The slice of each day
 * is asked for its Message-IDs at once: mail of one program and one second may
 * differ in nothing else.
 */
#include "sync/identity.h"

#include "sync/compare.h"

struct suspects {
	struct arena *arena;
	uint32_t *uids;
	struct place *places;
	size_t n_uids, n;
};

static int
on_suspect(void *arg, const struct place *p)
{
	struct suspects *suspects = arg;
	struct place *to;

	if (suspects->n == suspects->n_uids)
		return 0;
	to = &suspects->places[suspects->n++];
	*to = *p;
	to->flags.keywords = p->flags.keywords[0] == '\0' ? "" :
	    arena_strdup(suspects->arena, p->flags.keywords);
	to->message_id = p->message_id == NULL ? NULL :
	    arena_strdup(suspects->arena, p->message_id);
	return 0;
}

static int
find_suspects(struct session *s, struct folder *folder,
    const struct place *shown, size_t n, struct suspects *suspects,
    struct err *err)
{
	bool *unlike = ARENA_ARRAY(suspects->arena, bool, n + 1);
	size_t i;

	if (session_db(s, err) == -1 || store_unlike(s->db.store, folder->id,
					    shown, n, false, unlike, err) == -1)
		return -1;
	suspects->uids = ARENA_ARRAY(suspects->arena, uint32_t, n + 1);
	for (i = 0; i < n; i++)
		if (unlike[i])
			suspects->uids[suspects->n_uids++] = shown[i].uid;
	return 0;
}

/* Their Message-IDs, then the verdict. */
static int
try_suspects(struct session *s, struct folder *folder,
    struct suspects *suspects, struct findings *f, struct err *err)
{
	bool *unlike = ARENA_ARRAY(suspects->arena, bool,
	    suspects->n_uids + 1);
	size_t i, before = f->n_replaced;

	suspects->places = ARENA_ARRAY(suspects->arena, struct place,
	    suspects->n_uids + 1);
	session_db_rest(s);
	if (imap_scan_set(s->imap, suspects->uids, suspects->n_uids,
		ITEMS_IDENTITY | ITEM_MESSAGE_ID, on_suspect, suspects,
		NULL, err) == -1)
		return -1;
	suspects->n = places_sort(suspects->places, suspects->n);
	if (session_db(s, err) == -1 ||
	    store_unlike(s->db.store, folder->id, suspects->places, suspects->n,
		true, unlike, err) == -1)
		return -1;
	for (i = 0; i < suspects->n; i++)
		if (unlike[i])
			findings_add_replaced(s, f, &suspects->places[i]);
	if (f->n_replaced > before)
		log_warn(&s->log, "folder_id=%lld: %zu UIDs are of other "
		    "messages than before", (long long)folder->id,
		    f->n_replaced - before);
	return 0;
}

int
identity_check(struct session *s, struct folder *folder,
    const struct place *shown, size_t n, struct findings *f, struct err *err)
{
	struct suspects suspects = { .arena = arena_new("identity") };
	int rv = 0;

	if (n > 0)
		rv = find_suspects(s, folder, shown, n, &suspects, err);
	if (rv == 0 && suspects.n_uids > 0)
		rv = try_suspects(s, folder, &suspects, f, err);
	arena_free(&suspects.arena);
	return rv;
}
