/*
 * ingest_commit.c - the batches of a download on their way into PostgreSQL.
 *
 * Runs in: whoever syncs.  Blocks.
 *
 * Three loads at most: one fills, one is closed and waits, one is in flight.
 * The closed one is sent as soon as PostgreSQL has answered the last, which is
 * looked at after each message, so that neither waits for the other while both
 * have work.  It is never sent early: a transaction that is open while its
 * rest waits in this process would hold the fence for as long as the mail
 * server likes.  Order: blobs durable, rows and cursor in one transaction,
 * then events.
 */
#include "sync/ingest_private.h"

#include "base/clock.h"
#include "sync/events.h"
#include "sync/risks.h"

#define BATCH_BYTES ((size_t)8 << 20)

void
ingest_count_attempt(struct ingest *in, struct risk *risk, const char *how)
{
	struct err err = ERR_INIT;

	if (risks_count(in->s, risk, how, risk->uid_from == risk->uid_to,
		&err) == -1)
		log_warn(&in->s->log, "attempt not counted: %s", err.text);
}

/* For who looks at the account meanwhile; a pass that goes well clears it. */
static void
ingest_tell_row(struct ingest *in, const struct err *failure)
{
	struct session *s = in->s;
	struct err err = ERR_INIT;
	bool is_condemned;

	if (session_db(s, &err) == -1 ||
	    store_account_failed(s->db.store, &s->fence, failure, 0,
		(unsigned)s->conf->auth_refusals, &is_condemned, &err) == -1)
		log_warn(&s->log, "failure not recorded: %s", err.text);
}

/*
 * PostgreSQL will not have these rows, or not within statement_timeout.  The attempt is counted and the work
 * planned again: then each message of the batch goes alone, and in the end the
 * one that is refused is stored without what was read from it.
 */
static int
note_refused(struct ingest *in, struct err *err)
{
	struct risk risk = {
		.folder_id = in->folder->id,
		.step = RISK_STORE,
		.uid_from = in->flight_from,
		.uid_to = in->flight_to,
	};

	log_warn(&in->s->log, "folder_id=%lld: UIDs %u to %u are refused: %s",
	    (long long)in->folder->id, risk.uid_from, risk.uid_to, err->text);
	ingest_count_attempt(in, &risk, err->text);
	ingest_tell_row(in, err);
	err->kind = ERR_STALE;
	return -1;
}

/* The answer to the load in flight. */
static int
ingest_commit_land(struct ingest *in, struct err *err)
{
	struct session *s = in->s;
	struct commit_result result;

	if (!in->is_in_flight)
		return 0;
	in->is_in_flight = false;
	arena_reset(in->result);
	if (store_commit_wait(s->db.store, in->result, &result, err) == -1)
		return in->flight_to != 0 &&
			       (err->kind == ERR_PERMANENT ||
				   store_took_too_long(s->db.store))
			   ? note_refused(in, err)
			   : -1;
	events_commit(s, in->folder->id, &result);
	if (s->sync->progress.is_on &&
	    result.created.n + result.updated.n > 0) {
		s->sync->progress.done +=
		    (int64_t)(result.created.n + result.updated.n);
		events_progress(s, in->folder);
	}
	return 0;
}

static void
ingest_commit_empty(struct load *l)
{
	batch_reset(l->batch);
	l->uid_from = l->uid_to = 0;
	l->has_cursor = false;
}

/* Rows must not point into a directory that is not this database's. */
static int
check_store(const struct session *s, struct err *err)
{
	if (s->blobs == NULL ||
	    uuid_is_equal(blob_writer_id(s->blobs), store_blob_id(s->db.store)))
		return 0;
	return err_set(err, ERR_STORAGE, "%s is the blob directory of another "
	    "database (see: mailherd -t)", s->conf->blob_dir);
}

static int
ingest_commit_launch(struct ingest *in, struct load *l, struct err *err)
{
	struct session *s = in->s;

	if (session_db(s, err) == -1 || check_store(s, err) == -1 ||
	    store_commit_start(s->db.store, &s->fence, in->folder, l->batch,
		l->has_cursor ? &l->cursor : NULL, err) == -1)
		return -1;
	in->is_in_flight = true;
	in->flight_from = l->uid_from;
	in->flight_to = l->uid_to;
	ingest_commit_empty(l);
	return 0;
}

/* Waits for the one in flight, then sends the queued one. */
static int
ingest_commit_advance(struct ingest *in, struct err *err)
{
	int rv = ingest_commit_land(in, err);

	if (!in->has_queued)
		return rv;
	in->has_queued = false;
	if (rv == 0)
		rv = ingest_commit_launch(in, in->queued, err);
	/* It built upon what was not stored: both are planned again. */
	if (rv == -1)
		ingest_commit_empty(in->queued);
	return rv;
}

int
ingest_push(struct ingest *in, struct err *err)
{
	if (!in->has_queued || !store_commit_is_done(in->s->db.store))
		return 0;
	return session_may_go_on(in->s, err) == -1
		   ? -1
		   : ingest_commit_advance(in, err);
}

int
ingest_wait(struct ingest *in, struct err *err)
{
	return ingest_commit_advance(in, err) == -1
		   ? -1
		   : ingest_commit_land(in, err);
}

/* Where the cursor is when everything added so far is stored. */
const struct cursor *
ingest_cursor_now(const struct ingest *in, struct cursor *cursor)
{
	if (in->base == NULL)
		return NULL;
	*cursor = *in->base;
	if (in->low > 0) {
		if (in->low > in->n_old)
			cursor->messages += (uint32_t)(in->low - in->n_old);
		if (in->uids[in->low - 1] >= cursor->uidnext &&
		    in->uids[in->low - 1] < UINT32_MAX)
			cursor->uidnext = in->uids[in->low - 1] + 1;
	}
	return cursor;
}

int
ingest_commit(struct ingest *in, const struct cursor *cursor, struct err *err)
{
	struct session *s = in->s;
	struct load *l = in->filling;

	if (session_may_go_on(s, err) == -1)
		return -1;
	if (batch_count(l->batch) > 0) {
		session_note(s, RISK_NONE, 0, 0, 0);
		if (blob_flush(s->blobs, err) == -1)
			return -1;
	}
	if (in->has_queued && ingest_commit_advance(in, err) == -1)
		return -1;
	l->has_cursor = cursor != NULL;
	if (cursor != NULL)
		l->cursor = *cursor;
	in->filling = in->queued;
	in->queued = l;
	in->has_queued = true;
	return in->is_in_flight ? ingest_push(in, err)
				: ingest_commit_advance(in, err);
}

int
ingest_commit_now(struct ingest *in, struct err *err)
{
	struct cursor cursor;

	return ingest_commit(in, ingest_cursor_now(in, &cursor), err);
}

int
ingest_commit_when_full(struct ingest *in, struct err *err)
{
	const struct conf *conf = in->s->conf;
	int64_t now = clock_mono_msecs();

	if (batch_count(in->filling->batch) == 1)
		in->first_added_mono_msecs = now;
	if (batch_count(in->filling->batch) < (size_t)conf->batch_messages &&
	    batch_bytes(in->filling->batch) < BATCH_BYTES &&
	    now - in->first_added_mono_msecs < conf->batch_msecs)
		return 0;
	return ingest_commit_now(in, err);
}
