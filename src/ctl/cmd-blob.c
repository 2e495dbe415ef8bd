/*
 * cmd-blob.c - blob verify, blob gc.
 *
 * Runs in: mailherdctl.  Blocks, for as long as reading everything takes.
 *
 * verify walks the disk first and notes what lies where (48 bytes a blob),
 * then asks PostgreSQL for every row and looks it up.  A row that was not
 * seen - written, or moved by a collection, after the walk had passed - is
 * read by itself before anything is said about it, so verify may run beside
 * everything else.  Bytes without a row are no fault: crashes and deletions
 * leave them, the collection takes them.
 */
#include "ctl/commands.h"

#include "base/clock.h"
#include "base/xmem.h"
#include "proc/spawn.h"
#include "blob/blob.h"

#include <inttypes.h>
#include <unistd.h>

#define PROGRESS_MSECS 250
/* Finding a blob's messages reads the whole table; a store that has lost a
 * disk has too many faults for that. */
#define OWNERS_MAX 50

struct seen {
	uint8_t digest[DIGEST_SIZE];
	int64_t offset;
	int32_t segment;
	bool is_damaged;
	bool is_referenced;
};

struct verify {
	struct ctl *ctl;
	struct seen *seen; /* sorted by place after the walk */
	size_t n_seen, cap;
	uint64_t walked, walked_bytes, total_bytes;
	uint64_t rows, row_bytes, good, damaged, missing;
	uint64_t unreferenced, torn_bytes;
	int64_t started_msecs, drawn_msecs;
	bool has_drawn;
};

/* --- progress ----------------------------------------------------------- */

static void
clear_progress(struct verify *v)
{
	if (v->has_drawn)
		fputs("\r\033[K", stderr);
	v->has_drawn = false;
}

static void
draw_progress(struct verify *v)
{
	int64_t now = clock_mono_msecs(), spent = now - v->started_msecs;
	char count[32], bytes[32], rate[32];
	int percent = 0;

	if (now - v->drawn_msecs < PROGRESS_MSECS || spent < PROGRESS_MSECS ||
	    isatty(STDERR_FILENO) != 1)
		return;
	if (v->total_bytes > 0)
		percent = (int)(v->walked_bytes * 100 / v->total_bytes);
	fprintf(stderr, "\r\033[Kchecking: %s blobs  %s  %d %%  %s/s",
	    format_count(count, sizeof(count), v->walked),
	    format_size(bytes, sizeof(bytes), v->walked_bytes),
	    percent < 100 ? percent : 100, format_size(rate, sizeof(rate),
	    v->walked_bytes * 1000 / (uint64_t)spent));
	v->drawn_msecs = now;
	v->has_drawn = true;
}

/* --- the walk over the disk --------------------------------------------- */

static int
blob_on_found(void *arg, const struct blob_found *found)
{
	struct verify *v = arg;
	struct seen *seen;

	v->walked_bytes += found->bytes;
	if (found->state == BLOB_DEAD) {
		v->torn_bytes += found->bytes;
		return 0;
	}
	GROW(v->seen, v->n_seen, v->cap);
	seen = &v->seen[v->n_seen++];
	*seen = (struct seen){ .segment = found->ref.segment,
		.offset = found->ref.offset,
		.is_damaged = found->state == BLOB_DAMAGED };
	memcpy(seen->digest, found->ref.digest, DIGEST_SIZE);
	v->walked++;
	draw_progress(v);
	return 0;
}

/* By segment and offset; files of their own (segment 0) by digest. */
static int
by_place(const void *a, const void *b)
{
	const struct seen *left = a, *right = b;

	if (left->segment != right->segment)
		return left->segment < right->segment ? -1 : 1;
	if (left->segment == 0)
		return memcmp(left->digest, right->digest, DIGEST_SIZE);
	if (left->offset != right->offset)
		return left->offset < right->offset ? -1 : 1;
	return 0;
}

static struct seen *
find_seen(struct verify *v, const struct blob_ref *ref)
{
	struct seen key = { .segment = ref->segment, .offset = ref->offset };
	struct seen *found;

	if (v->n_seen == 0)
		return NULL;
	memcpy(key.digest, ref->digest, DIGEST_SIZE);
	found = bsearch(&key, v->seen, v->n_seen, sizeof(key), by_place);
	if (found != NULL &&
	    memcmp(found->digest, ref->digest, DIGEST_SIZE) != 0)
		return NULL;
	return found;
}

/* --- the rows ----------------------------------------------------------- */

static void
format_digest(char out[DIGEST_SIZE * 2 + 1], const uint8_t *digest)
{
	for (size_t i = 0; i < DIGEST_SIZE; i++)
		snprintf(out + i * 2, 3, "%02x", digest[i]);
}

/* The messages that have lost their bytes: what an operator wants to know. */
static const char *
owners_of(struct ctl *ctl, const char *digest)
{
	const char *params[] = { digest };
	struct err ignored = ERR_INIT;
	struct store_rows *rows;

	if (ctl_query(ctl, "SELECT string_agg(m.id || ' of ' || a.email, ', ')"
	    " FROM (SELECT id, account_id FROM message WHERE blob_id ="
	    "  (SELECT id FROM blob WHERE digest = decode($1, 'hex'))"
	    "  ORDER BY id LIMIT 5) m JOIN accounts a ON a.id = m.account_id",
	    params, 1, &rows, &ignored) == -1 || rows->n_rows == 0 ||
	    ROWS_CELL(rows, 0, 0) == NULL)
		return "";
	return ROWS_CELL(rows, 0, 0);
}

static void
tell_fault(struct verify *v, const struct blob_ref *ref, const char *state)
{
	char digest[DIGEST_SIZE * 2 + 1];
	const char *owners;

	clear_progress(v);
	format_digest(digest, ref->digest);
	owners = v->damaged + v->missing <= OWNERS_MAX
	    ? owners_of(v->ctl, digest) : "";
	if (v->ctl->is_json)
		ctl_print_json(json_pack("{s:s, s:s, s:i, s:I, s:I, s:s}",
		    "state", state, "digest", digest, "segment",
		    (int)ref->segment, "offset", (json_int_t)ref->offset,
		    "size", (json_int_t)ref->size, "messages", owners));
	else
		printf("%s%s%s  segment %" PRId32 " offset %" PRId64
		    "  message %s\n", display_tint(TINT_BAD), state,
		    display_plain(), ref->segment, ref->offset,
		    *owners != '\0' ? owners : "?");
}

static int
blob_ignore_bytes(void *arg, const void *bytes, size_t len)
{
	(void)arg;
	(void)bytes;
	(void)len;
	return 0;
}

/* Not where the walk could see it: read it now. */
static const char *
check_alone(struct verify *v, const struct blob_ref *ref)
{
	struct err err = ERR_INIT;

	if (blob_read(v->ctl->conf->blob_dir, ref, blob_ignore_bytes, NULL,
		&err) == 0)
		return "good";
	return err.kind == ERR_GONE ? "missing" : "damaged";
}

static int
on_row(void *arg, const struct blob_ref *ref)
{
	struct verify *v = arg;
	struct seen *seen = find_seen(v, ref);
	const char *state;

	v->rows++;
	v->row_bytes += ref->size;
	if (seen != NULL)
		seen->is_referenced = true;
	state = seen != NULL && !seen->is_damaged ? "good"
						  : check_alone(v, ref);
	if (strcmp(state, "good") == 0) {
		v->good++;
		return 0;
	}
	if (strcmp(state, "missing") == 0)
		v->missing++;
	else
		v->damaged++;
	tell_fault(v, ref, state);
	return 0;
}

/* --- verify ------------------------------------------------------------- */

static void
load_total(struct verify *v)
{
	struct err ignored = ERR_INIT;
	struct store_rows *rows;

	if (ctl_query(v->ctl, "SELECT coalesce(sum(stored), 0)::bigint"
	    " FROM blob", NULL, 0, &rows, &ignored) == 0)
		v->total_bytes = strtoull(ROWS_CELL(rows, 0, 0), NULL, 10);
}

static void
print_summary(const struct verify *v)
{
	char count[32], bytes[32];

	if (v->ctl->is_json) {
		ctl_print_json(json_pack(
		    "{s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
		    "blobs", (json_int_t)v->rows,
		    "bytes", (json_int_t)v->row_bytes,
		    "good", (json_int_t)v->good,
		    "damaged", (json_int_t)v->damaged,
		    "missing", (json_int_t)v->missing,
		    "unreferenced", (json_int_t)v->unreferenced,
		    "torn_bytes", (json_int_t)v->torn_bytes));
		return;
	}
	printf("%s blobs, %s of mail: ",
	    format_count(count, sizeof(count), v->rows),
	    format_size(bytes, sizeof(bytes), v->row_bytes));
	if (v->damaged + v->missing == 0)
		printf("%sall good%s\n", display_tint(TINT_GOOD),
		    display_plain());
	else
		printf("%s%" PRIu64 " damaged, %" PRIu64 " missing%s\n",
		    display_tint(TINT_BAD), v->damaged, v->missing,
		    display_plain());
	if (v->unreferenced > 0 || v->torn_bytes > 0)
		printf("%s records without a row, %s of torn writes "
		    "(harmless; blob gc takes them)\n",
		    format_count(count, sizeof(count), v->unreferenced),
		    format_size(bytes, sizeof(bytes), v->torn_bytes));
}

static int
blob_verify(struct verify *v, struct err *err)
{
	load_total(v);
	if (blob_walk(v->ctl->conf->blob_dir, blob_on_found, v, err) == -1)
		return -1;
	if (v->n_seen > 0)
		qsort(v->seen, v->n_seen, sizeof(*v->seen), by_place);
	if (store_blobs_each(v->ctl->store, on_row, v, err) == -1)
		return -1;
	for (size_t i = 0; i < v->n_seen; i++)
		v->unreferenced += !v->seen[i].is_referenced;
	return 0;
}

int
cmd_blob_verify(struct ctl *ctl, const struct args *args, struct err *err)
{
	struct verify v = { .ctl = ctl, .started_msecs = clock_mono_msecs() };
	int rc;

	(void)args;
	rc = blob_verify(&v, err);
	clear_progress(&v);
	if (rc == 0) {
		print_summary(&v);
		rc = v.damaged + v.missing > 0 ? 1 : 0;
	}
	free(v.seen);
	return rc;
}

/* --- gc ----------------------------------------------------------------- */

int
cmd_blob_gc(struct ctl *ctl, const struct args *args, struct err *err)
{
	struct blob_gc_result r = { 0 };
	char freed[32], moved[32];
	int64_t percent, age;

	if (args_number(args, "min-dead", 0, 100, 50, &percent, err) == -1 ||
	    args_number(args, "min-age", 0, 365 * 86400,
	    BLOB_GC_MIN_AGE_SECS, &age, err) == -1 ||
	    /* What the collection writes must belong to the daemon. */
	    proc_drop_privileges(ctl->conf->user, ctl->conf->group, err) ==
	    -1 ||
	    blob_gc(ctl->store, ctl->conf->blob_dir, (unsigned)percent, age,
	    &r, err) == -1)
		return -1;
	if (ctl->is_json)
		ctl_print_json(json_pack("{s:i, s:i, s:i, s:I, s:I, s:i}",
		    "segments_seen", (int)r.segments_seen,
		    "segments_removed", (int)r.segments_removed,
		    "files_removed", (int)r.files_removed,
		    "bytes_moved", (json_int_t)r.bytes_moved,
		    "bytes_freed", (json_int_t)r.bytes_freed,
		    "damaged", (int)r.damaged));
	else
		printf("%s given back: %u of %u segments rewritten (%s "
		    "moved), %u files removed\n",
		    format_size(freed, sizeof(freed), r.bytes_freed),
		    r.segments_removed, r.segments_seen,
		    format_size(moved, sizeof(moved), r.bytes_moved),
		    r.files_removed);
	if (r.damaged == 0)
		return 0;
	ctl_note("%u damaged records were left where they are (see: "
	    "mailherdctl blob verify)", r.damaged);
	return 1;
}
