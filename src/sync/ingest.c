/*
 * ingest.c - from UIDs to rows: fetch, parse, blob, commit, overlapping.
 *
 * Runs in: whoever syncs.  Blocks.
 *
 * One batch is always on its way into PostgreSQL while the next arrives and is
 * parsed, so that the mail server, this process and PostgreSQL work at the
 * same time; see ingest_commit.c.  A message is held in memory up to
 * stream_parse_mb; a larger one goes to its blob file as it arrives and is
 * parsed from there (R-MEM-2).  Of one above max_message_mb only the header is
 * asked for: it has its row, its place and its flags, and no blob.
 *
 * The server is not believed to deliver what it lists: what did not come is
 * asked for singly, then put into quarantine, and the cursor passes it (L136,
 * R-SYNC-9).
 */
#include "sync/ingest_private.h"

#include "base/xmem.h"
#include "mime/mime.h"
#include "sync/compare.h"
#include "sync/risks.h"


#define CHUNK_MESSAGES 1000 /* of one imap_fetch */
#define COMMAND_MESSAGES 100
#define COMMAND_BYTES ((uint64_t)4 << 20)
#define MIB ((size_t)1024 * 1024)

int
ingest_start(struct ingest **in_r, struct session *s, struct folder *folder,
    struct err *err)
{
	struct ingest *in = xcalloc(1, sizeof(*in));

	in->s = s;
	in->folder = folder;
	in->stream_bytes = (size_t)s->conf->stream_parse_mb * MIB;
	in->max_bytes = (size_t)s->conf->max_message_mb * MIB;
	/* It connects while the messages come. */
	if (session_db_start(s, err) == -1 || session_blobs(s, err) == -1 ||
	    s->hooks->want(s->hooks->arg, RESOURCE_PARSE, "", 0,
		&in->parse_permit, err) == -1) {
		free(in);
		return -1;
	}
	in->content = arena_new("message");
	in->result = arena_new("commit result");
	in->filling = &in->loads[0];
	in->queued = &in->loads[1];
	in->filling->batch = batch_new();
	in->queued->batch = batch_new();
	*in_r = in;
	return 0;
}

static bool
is_risky(const struct ingest *in, uint32_t uid)
{
	return in->s->n_risks > 0 && risks_single(in->s, in->folder->id, uid);
}

/* --- one message --------------------------------------------------------- */

static void
drop_message(struct ingest *in)
{
	buf_reset(&in->raw);
	if (in->stream != NULL)
		blob_stream_abort(&in->stream);
}

/*
 * Keeps a callback's failure for the caller.  It ends the connection, but for
 * ERR_STALE: then the rest is only dropped, so that the work can be planned
 * again without another login.
 */
static int
ingest_fail(struct ingest *in, const struct err *err)
{
	in->failure = *err;
	drop_message(in);
	return err->kind == ERR_STALE ? 0 : -1;
}

static int
ingest_on_bytes(void *arg, const char *p, size_t len)
{
	struct ingest *in = arg;
	struct err err = ERR_INIT;

	if (in->failure.kind != ERR_NONE)
		return 0;
	if (in->stream == NULL && in->raw.len + len <= in->stream_bytes) {
		buf_add(&in->raw, p, len);
		return 0;
	}
	if (in->stream == NULL) {
		if (blob_stream_new(in->s->blobs, &in->stream, &err) == -1)
			return ingest_fail(in, &err);
		if (blob_stream_add(in->stream, in->raw.data, in->raw.len,
			&err) == -1)
			return ingest_fail(in, &err);
		buf_release(&in->raw);
	}
	if (blob_stream_add(in->stream, p, len, &err) == -1)
		return ingest_fail(in, &err);
	return 0;
}

static int
parse_and_keep(struct ingest *in, uint32_t uid, struct blob_ref *blob,
    struct content *content, struct err *err)
{
	struct session *s = in->s;
	const char *why = NULL;

	/* Nothing is known of almost all messages: keep that way short. */
	if (s->n_risks > 0)
		why = risks_unparsed(s, in->folder->id, uid);
	session_note(s, RISK_PARSE, in->folder->id, uid, uid);
	if (why != NULL)
		mime_unparsed(in->content, why, content);
	else if (in->stream != NULL)
		mime_parse_fd(in->content, blob_stream_fd(in->stream),
		    blob_stream_size(in->stream), &mime_default_limits,
		    content);
	else
		mime_parse(in->content, buf_str(&in->raw), in->raw.len,
		    &mime_default_limits, content);
	session_note(s, RISK_STORE, in->folder->id, uid, uid);
	if (in->is_too_large) {
		content->state = PARSE_PARTIAL;
		content->state_reason =
		    "larger than max_message_mb: only its header is stored";
		return 0;
	}
	if (in->stream != NULL)
		return blob_stream_finish(&in->stream, blob, err);
	return blob_put(s->blobs, buf_str(&in->raw), in->raw.len, blob, err);
}

/* It was of a message that nobody asked for. */
static void
on_drop(void *arg)
{
	drop_message(arg);
}

/* The position of `uid` among the wanted ones, or n. */
static size_t
find_uid(const struct ingest *in, uint32_t uid)
{
	size_t lo = 0, hi = in->n, mid;

	if (in->low < in->n && in->uids[in->low] == uid)
		return in->low; /* in order, as nearly always */
	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (in->uids[mid] < uid)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < in->n && in->uids[lo] == uid ? lo : in->n;
}

/* Its size was told wrong; it is asked for again, for its header alone. */
static void
on_too_large(void *arg, uint32_t uid)
{
	struct ingest *in = arg;
	size_t i = find_uid(in, uid);

	if (i < in->n)
		in->is_known_large[i] = true;
}

static void
ingest_note_arrival(struct ingest *in, size_t i)
{
	in->has_come[i] = true;
	while (in->low < in->n && in->has_come[in->low])
		in->low++;
}

/* Servers deliver in order: it is at the first that has not come. */
static void
note_next(struct ingest *in)
{
	uint32_t uid = in->low < in->n ? in->uids[in->low] : 0;

	if (uid != 0)
		session_note(in->s, RISK_FETCH, in->folder->id, uid, uid);
	else
		session_note(in->s, RISK_FOLDER, in->folder->id, 0, 0);
}

static void
add_to_batch(struct ingest *in, const struct place *place,
    const struct blob_ref *blob, const struct content *content)
{
	struct load *l = in->filling;

	batch_add(l->batch, place, in->is_too_large ? NULL : blob, content);
	if (l->uid_from == 0 || place->uid < l->uid_from)
		l->uid_from = place->uid;
	if (place->uid > l->uid_to)
		l->uid_to = place->uid;
	buf_reset(&in->raw);
	arena_reset(in->content);
}

static int
on_done(void *arg, const struct place *place, bool has_body)
{
	struct ingest *in = arg;
	struct err err = ERR_INIT;
	struct blob_ref blob;
	struct content content;
	size_t i = find_uid(in, place->uid);
	bool is_alone;

	/* A UID is done only when its bytes have come (L136). */
	if (!has_body || i == in->n || in->has_come[i] ||
	    in->failure.kind != ERR_NONE) {
		drop_message(in);
		return 0;
	}
	is_alone = is_risky(in, place->uid);
	if (is_alone && batch_count(in->filling->batch) > 0 &&
	    ingest_commit_now(in, &err) == -1)
		return ingest_fail(in, &err);
	if (parse_and_keep(in, place->uid, &blob, &content, &err) == -1)
		return ingest_fail(in, &err);
	add_to_batch(in, place, &blob, &content);
	ingest_note_arrival(in, i);
	if (ingest_push(in, &err) == -1 ||
	    (is_alone ? ingest_commit_now(in, &err) :
		ingest_commit_when_full(in, &err)) == -1)
		return ingest_fail(in, &err);
	in->s->sync->losses = 0;
	in->s->sync->has_probed_body = true;
	note_next(in);
	return 0;
}

/* --- runs ---------------------------------------------------------------- */

/*
 * The header is enough of a message above max_message_mb; what RFC822.SIZE says
 * is looked at first, for some say 4 GB of anything.
 */
static int
is_header_enough(struct ingest *in, uint32_t uid, bool *yes_r,
    struct err *err)
{
	size_t i = find_uid(in, uid);

	*yes_r = in->is_known_large[i];
	if (*yes_r || in->wanted[i].size <= in->max_bytes)
		return 0;
	return imap_is_too_large(in->s->imap, uid, yes_r, err);
}

static int
ingest_fetch(struct ingest *in, const uint32_t *uids, size_t n,
    size_t per_command, struct err *err)
{
	struct imap_sink sink = {
	    .bytes = ingest_on_bytes,
	    .done = on_done,
	    .drop = on_drop,
	    .too_large = on_too_large,
	    .arg = in,
	};
	int rv;

	if (n == 0)
		return 0;
	in->is_too_large = false;
	session_note(in->s, RISK_FETCH, in->folder->id, uids[0], uids[0]);
	if (n == 1 && is_header_enough(in, uids[0], &in->is_too_large,
		err) == -1)
		return -1;
	sink.is_header_only = in->is_too_large;
	rv = imap_fetch(in->s->imap, uids, n, per_command, &sink, err);
	if (rv == 0 || session_is_usable_after(in->s, err))
		session_note(in->s, RISK_NONE, 0, 0, 0);
	drop_message(in); /* cut off in its middle */
	if (in->failure.kind != ERR_NONE) {
		*err = in->failure;
		in->failure.kind = ERR_NONE;
		if (err->kind != ERR_STALE)
			session_disconnect(in->s);
		return -1;
	}
	return rv;
}

/* As many messages a command as make a few MB. */
static size_t
per_command(const struct place *wanted, size_t n)
{
	uint64_t bytes = 0;
	size_t i, fit;

	for (i = 0; i < n; i++)
		bytes += wanted[i].size;
	if (bytes == 0)
		return COMMAND_MESSAGES;
	fit = (size_t)(COMMAND_BYTES / (bytes / n + 1));
	if (fit < 1)
		fit = 1;
	return fit < COMMAND_MESSAGES ? fit : COMMAND_MESSAGES;
}

static bool
is_alone(const struct ingest *in, const struct place *p)
{
	return p->size > in->stream_bytes || is_risky(in, p->uid);
}

/* Runs of messages that may share commands; big and risky ones alone. */
static int
ingest_fetch_all(struct ingest *in, const struct place *wanted, struct err *err)
{
	size_t from = 0, to;

	while (from < in->n) {
		for (to = from; to < in->n && to - from < CHUNK_MESSAGES &&
		    !is_alone(in, &wanted[to]); to++)
			;
		if (to == from)
			to++;
		if (ingest_fetch(in, in->uids + from, to - from,
			per_command(wanted + from, to - from), err) == -1)
			return -1;
		from = to;
	}
	return 0;
}

/* --- what did not come --------------------------------------------------- */

struct listed {
	const struct ingest *in;
	bool *is_listed; /* of each wanted one */
};

static int
on_listed(void *arg, const struct place *place)
{
	struct listed *l = arg;
	size_t i = find_uid(l->in, place->uid);

	if (i < l->in->n)
		l->is_listed[i] = true;
	return 0;
}

/* Listed and not delivered: asked for alone; still nothing: counted. */
static int
settle_missing(struct ingest *in, size_t i, struct err *err)
{
	uint32_t uid = in->uids[i];
	struct err no = ERR_INIT;

	if ((ingest_fetch(in, &uid, 1, 1, &no) == -1 ||
		(in->is_known_large[i] && !in->has_come[i] &&
		    ingest_fetch(in, &uid, 1, 1, &no) == -1)) &&
	    no.kind != ERR_SERVER) {
		*err = no;
		return -1;
	}
	if (in->has_come[i])
		return 0;
	if (no.kind == ERR_NONE)
		err_set(&no, ERR_SERVER, "the server lists it but does not "
		    "deliver it");
	if (ingest_wait(in, err) == -1 || risks_not_delivered(in->s,
		in->folder->id, uid, no.text, err) == -1)
		return -1;
	ingest_note_arrival(in, i);
	return 0;
}

/* Those that the server does not list any more were expunged meanwhile. */
static int
settle_all_missing(struct ingest *in, struct arena *arena, struct err *err)
{
	struct listed l = { .in = in };
	size_t i, last = in->n;

	while (last > 0 && in->has_come[last - 1])
		last--;
	if (last == 0)
		return 0;
	l.is_listed = ARENA_ARRAY(arena, bool, in->n);
	session_note(in->s, RISK_FOLDER, in->folder->id, 0, 0);
	if (imap_scan_uids(in->s->imap, in->uids[in->low],
		in->uids[last - 1], ITEM_FLAGS, on_listed, &l, err) == -1)
		return -1;
	for (i = in->low; i < last; i++) {
		if (in->has_come[i])
			continue;
		if (!l.is_listed[i])
			ingest_note_arrival(in, i);
		else if (settle_missing(in, i, err) == -1)
			return -1;
	}
	return 0;
}

/* In quarantine, and not the one that is being tried. */
static bool
is_aside(const struct ingest *in, uint32_t uid)
{
	const struct session *s = in->s;

	if (s->n_risks == 0 || !risks_has_message(s, in->folder->id, uid))
		return false;
	return s->sync->trial.step == RISK_NONE ||
	       s->sync->trial.step == RISK_FOLDER ||
	       s->sync->trial.folder_id != in->folder->id ||
	       s->sync->trial.uid_from != uid;
}

/* The wanted UIDs without those in quarantine. */
static struct place *
ingest_choose(struct ingest *in, struct arena *arena,
    const struct place *wanted, size_t n)
{
	struct place *chosen = ARENA_ARRAY(arena, struct place, n + 1);
	uint32_t *uids = ARENA_ARRAY(arena, uint32_t, n + 1);
	size_t i, out = 0;

	for (i = 0; i < n; i++) {
		if (is_aside(in, wanted[i].uid))
			continue;
		chosen[out] = wanted[i];
		uids[out++] = wanted[i].uid;
	}
	in->wanted = chosen;
	in->uids = uids;
	in->n = out;
	in->low = in->n_old = 0;
	while (in->base != NULL && in->n_old < out &&
	    uids[in->n_old] < in->base->uidnext)
		in->n_old++;
	in->has_come = ARENA_ARRAY(arena, bool, out + 1);
	in->is_known_large = ARENA_ARRAY(arena, bool, out + 1);
	return chosen;
}

/* The connection has ended: what has come is stored, so that the next one
 * begins behind it.  What ended it is still noted. */
static void
ingest_save(struct ingest *in)
{
	const struct slot_note at = in->s->note;
	struct err err = ERR_INIT;

	if (in->s->imap == NULL || batch_count(in->filling->batch) == 0)
		return;
	if (ingest_commit_now(in, &err) == -1 || ingest_wait(in, &err) == -1)
		log_debug(&in->s->log, "not stored: %s", err.text);
	session_note(in->s, at.step, at.folder_id, at.uid_from, at.uid_to);
}

static int
ingest_run(struct ingest *in, struct arena *arena, const struct place *wanted,
    size_t n, const struct cursor *target, struct err *err)
{
	struct place *chosen = ingest_choose(in, arena, wanted, n);
	struct cursor cursor;
	struct err no = ERR_INIT;

	if (ingest_fetch_all(in, chosen, &no) == -1) {
		/* A NO to a whole set may be about one message. */
		if (no.kind != ERR_SERVER) {
			ingest_save(in);
			*err = no;
			return -1;
		}
		log_debug(&in->s->log, "fetch refused: %s", no.text);
	}
	if (settle_all_missing(in, arena, err) == -1)
		return -1;
	if (target == NULL)
		target = ingest_cursor_now(in, &cursor);
	if (batch_count(in->filling->batch) == 0 && target == NULL)
		return 0;
	return ingest_commit(in, target, err);
}

int
ingest_messages(struct ingest *in, const struct place *wanted, size_t n,
    const struct cursor *base, const struct cursor *target, struct err *err)
{
	struct arena *arena = arena_new("ingest run");
	int rv;

	in->base = base;
	rv = ingest_run(in, arena, wanted, n, target, err);
	if (rv == 0 && n > 0 && in->s->n_risks > 0)
		rv = ingest_wait(in, err) == -1 ? -1 :
		    risks_clear_ranges(in->s, in->folder->id, wanted[0].uid,
			wanted[n - 1].uid, err);
	in->wanted = NULL;
	in->uids = NULL;
	in->has_come = in->is_known_large = NULL;
	in->n = in->low = 0;
	in->base = NULL;
	arena_free(&arena);
	return rv;
}

int
ingest_finish(struct ingest **in_p, struct err *err)
{
	struct ingest *in = *in_p;
	struct err ignored = ERR_INIT;
	int rv;

	if (in == NULL)
		return 0;
	rv = ingest_wait(in, err != NULL ? err : &ignored);
	if (err != NULL)
		session_note(in->s, RISK_NONE, 0, 0, 0);
	drop_message(in);
	buf_release(&in->raw);
	batch_free(&in->loads[0].batch);
	batch_free(&in->loads[1].batch);
	arena_free(&in->result);
	arena_free(&in->content);
	in->s->hooks->give_back(in->s->hooks->arg, in->parse_permit);
	free(in);
	*in_p = NULL;
	return rv;
}
