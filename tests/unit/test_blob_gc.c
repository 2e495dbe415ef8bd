/*
 * test_blob_gc.c - garbage collection frees what is dead and nothing else.
 *
 * The rows are played by a table here: the functions of store.h that blob_gc
 * calls are ours, so that no PostgreSQL is needed.
 */
#include "config.h"

#include "base/clock.h"
#include "base/xmem.h"
#include "blob/blob_private.h"
#include "store/store.h"

#include <check.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static struct err err;
static char dir[64];
static struct blob_writer *w;
static struct blob_gc_result result;

/* --- the rows --------------------------------------------------------------------- */

static struct blob_ref rows[1000];
static size_t n_rows;
static uint8_t dead_files[10][DIGEST_SIZE];
static size_t n_dead_files;
static void (*on_second_look)(void);
static unsigned looks;

/* What was counted of segments. */
static struct segment_use uses[100];
static size_t n_uses;
static unsigned counts;

int
store_segments(struct store *s, struct arena *arena,
    struct segment_use **segments_r, size_t *n_r, struct err *e)
{
	(void)s;
	(void)e;
	*segments_r = ARENA_ARRAY(arena, struct segment_use, n_uses);
	memcpy(*segments_r, uses, n_uses * sizeof(uses[0]));
	*n_r = n_uses;
	return 0;
}

static struct segment_use *
use_of(int32_t segment)
{
	size_t i = 0, k;

	while (i < n_uses && uses[i].id < segment)
		i++;
	if (i == n_uses || uses[i].id != segment) {
		for (k = n_uses++; k > i; k--)
			uses[k] = uses[k - 1];
		uses[i] = (struct segment_use){ .id = segment };
	}
	return &uses[i];
}

int
store_segment_count(struct store *s, int32_t segment, uint64_t file_size,
    uint64_t head_size, uint64_t *dead_r, struct err *e)
{
	struct segment_use *use = use_of(segment);
	size_t i;

	(void)s;
	(void)e;
	counts++;
	use->counted_size = use->dead_bytes = file_size;
	for (i = 0; i < n_rows; i++)
		if (rows[i].segment == segment)
			use->dead_bytes -= rows[i].stored + head_size;
	*dead_r = use->dead_bytes;
	return 0;
}

int
store_segment_each(struct store *s, int32_t segment,
    int (*on_blob)(void *arg, const struct blob_ref *ref), void *arg,
    struct err *e)
{
	size_t i;

	(void)s;
	(void)e;
	if (++looks == 2 && on_second_look != NULL)
		on_second_look();
	for (i = 0; i < n_rows; i++)
		if (rows[i].segment == segment &&
		    on_blob(arg, &rows[i]) == -1)
			return -1;
	return 0;
}

int
store_blob_move(struct store *s, const struct blob_ref *from,
    const struct blob_ref *to, bool *moved_r, struct err *e)
{
	size_t i;

	(void)s;
	(void)e;
	*moved_r = false;
	for (i = 0; i < n_rows; i++)
		if (memcmp(&rows[i], from, sizeof(*from)) == 0) {
			rows[i] = *to;
			*moved_r = true;
		}
	return 0;
}

int
store_segment_forget(struct store *s, int32_t segment, struct err *e)
{
	(void)s;
	(void)segment;
	(void)e;
	return 0;
}

int
store_blob_files_dead(struct store *s, int64_t min_age_secs, size_t limit,
    struct arena *arena, uint8_t (**digests_r)[DIGEST_SIZE], size_t *n_r,
    struct err *e)
{
	(void)s;
	(void)min_age_secs;
	(void)limit;
	(void)arena;
	(void)e;
	*digests_r = dead_files;
	*n_r = n_dead_files;
	return 0;
}

int
store_blob_file_forget(struct store *s, const uint8_t digest[DIGEST_SIZE],
    struct err *e)
{
	(void)s;
	(void)digest;
	(void)e;
	return 0;
}

int
store_blobs_unknown(struct store *s, const uint8_t (*digests)[DIGEST_SIZE],
    size_t n, bool *unknown_r, struct err *e)
{
	size_t i, k;

	(void)s;
	(void)e;
	for (i = 0; i < n; i++) {
		unknown_r[i] = true;
		for (k = 0; k < n_rows; k++)
			if (memcmp(rows[k].digest, digests[i],
				DIGEST_SIZE) == 0)
				unknown_r[i] = false;
	}
	return 0;
}

/* blob_id.c */
static struct uuid database_id;

const struct uuid *
store_blob_id(const struct store *s)
{
	(void)s;
	return &database_id;
}

int
store_blob_newest(struct store *s, struct blob_ref *ref_r, bool *is_any_r,
    struct err *e)
{
	(void)s;
	(void)ref_r;
	(void)e;
	*is_any_r = false;
	return 0;
}

/* --- helpers ------------------------------------------------------------------------ */

static void
set_up(void)
{
	snprintf(dir, sizeof(dir), "/tmp/test_blob_gc.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	uuid_generate(&database_id);
	ck_assert_int_eq(blob_store_make(dir, &database_id, &err), 0);
	ck_assert_int_eq(blob_writer_new(&w, dir, &err), 0);
	n_rows = n_dead_files = looks = n_uses = counts = 0;
	on_second_look = NULL;
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void
tear_down(void)
{
	blob_writer_free(&w);
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int
is_as_named(void *arg, const void *bytes, size_t len)
{
	(void)arg;
	(void)bytes;
	(void)len;
	return 0;
}

static void
all_rows_read(void)
{
	size_t i;

	for (i = 0; i < n_rows; i++)
		ck_assert_msg(blob_read(dir, &rows[i], is_as_named, NULL,
		    &err) == 0, "%s", err.text);
}

/* A segment of `n` messages, of which each `nth` has a row; then a newer one,
 * since the newest is never touched. */
static int32_t
fill(unsigned n, unsigned nth)
{
	struct blob_writer *other;
	struct blob_ref ref, newer;
	char text[1000];
	unsigned i;

	for (i = 0; i < n; i++) {
		memset(text, 'a' + (int)(i % 26), sizeof(text));
		snprintf(text, sizeof(text), "message %u", i);
		if (i % 2 == 0)
			blob_writer_compress(w, 1);
		ck_assert_int_eq(blob_put(w, text, sizeof(text), &ref, &err),
		    0);
		blob_writer_compress(w, 0);
		if (i % nth == 0)
			rows[n_rows++] = ref;
	}
	/* while ours is held another writer creates the next */
	ck_assert_int_eq(blob_writer_new(&other, dir, &err), 0);
	ck_assert_int_eq(blob_put(other, "newer", 5, &newer, &err), 0);
	ck_assert_int_eq(blob_flush(other, &err), 0);
	ck_assert_int_ne(newer.segment, ref.segment);
	blob_writer_free(&other);
	ck_assert_int_eq(blob_flush(w, &err), 0);
	blob_rest(w);
	return ref.segment;
}

static bool
has_segment(int32_t segment)
{
	char path[200], name[BLOB_NAME_SIZE];

	snprintf(path, sizeof(path), "%s/%s", dir,
	    blob_segment_name(name, segment));
	return access(path, F_OK) == 0;
}

static void
collect(unsigned percent, int64_t min_age_secs)
{
	ck_assert_msg(blob_gc(NULL, dir, percent, min_age_secs, &result,
	    &err) == 0, "%s", err.text);
}

/* --- tests --------------------------------------------------------------------------- */

/* F-E5: what a collection costs does not grow with the blobs there are. */
START_TEST(a_segment_is_counted_once_and_again_when_it_has_grown)
{
	int32_t segment = fill(60, 1);

	collect(50, 0);
	collect(50, 0);
	ck_assert_uint_eq(counts, 1);
	ck_assert_uint_eq(looks, 0);
	/* What is deleted is in the segment's row at once. */
	use_of(segment)->dead_bytes = use_of(segment)->counted_size - 500;
	n_rows = 1;
	collect(50, 0);
	ck_assert_uint_eq(counts, 1);
	ck_assert(!has_segment(segment));
	all_rows_read();
	/* One that grew since. */
	use_of(fill(60, 1))->counted_size = 77;
	collect(50, 0);
	ck_assert_uint_gt(counts, 1);
}
END_TEST

START_TEST(a_mostly_dead_segment_is_emptied_and_removed)
{
	int32_t segment = fill(300, 10);

	collect(50, 0);
	ck_assert(!has_segment(segment));
	ck_assert_uint_eq(result.segments_removed, 1);
	ck_assert_uint_gt(result.bytes_freed, 0);
	ck_assert_uint_eq(n_rows, 30);
	all_rows_read();
	/* again: nothing to do */
	collect(50, 0);
	ck_assert_uint_eq(result.segments_removed, 0);
	all_rows_read();
}
END_TEST

static void
make_old(int32_t segment)
{
	struct timespec old[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
	char path[200], name[BLOB_NAME_SIZE];

	snprintf(path, sizeof(path), "%s/%s", dir,
	    blob_segment_name(name, segment));
	ck_assert_int_eq(utimensat(AT_FDCWD, path, old, 0), 0);
}

/* F-B12: the standby did not get the commits that moved its rows. */
START_TEST(a_segment_outlives_a_failover_that_brings_its_rows_back)
{
	int32_t segment = fill(300, 10);
	struct blob_ref before[30];

	ck_assert_uint_eq(n_rows, 30);
	memcpy(before, rows, sizeof(before));
	make_old(segment);
	collect(50, 3600);
	ck_assert_uint_gt(result.bytes_moved, 0);
	ck_assert_int_ne(rows[0].segment, segment);
	all_rows_read();
	memcpy(rows, before, sizeof(before));
	all_rows_read();
	/* Not in the next hour, and then it goes. */
	make_old(segment);
	collect(50, 3600);
	collect(50, 3600);
	ck_assert(has_segment(segment));
	make_old(segment);
	collect(50, 3600);
	ck_assert(!has_segment(segment));
	all_rows_read();
}
END_TEST

START_TEST(live_segments_stay)
{
	int32_t segment = fill(100, 1);

	collect(50, 0);
	ck_assert(has_segment(segment));
	ck_assert_uint_eq(result.bytes_moved, 0);
	all_rows_read();
}
END_TEST

START_TEST(young_bytes_are_not_touched)
{
	int32_t segment = fill(100, 1);

	n_rows = 0; /* put, but not committed yet */
	collect(1, 3600);
	ck_assert(has_segment(segment));
	ck_assert_uint_eq(result.segments_removed, 0);
}
END_TEST

START_TEST(a_segment_in_use_is_left_alone)
{
	int32_t segment = fill(100, 50);
	struct blob_ref ref;

	/* the fast path of a writer leads back to a segment with room */
	do
		ck_assert_int_eq(blob_put(w, "more", 4, &ref, &err), 0);
	while (ref.segment != segment && (blob_flush(w, &err),
	    blob_rest(w), true));
	collect(1, 0);
	ck_assert(has_segment(segment));
	ck_assert_int_eq(blob_flush(w, &err), 0);
	all_rows_read();
}
END_TEST

static struct blob_ref late;

static void
commit_late(void)
{
	rows[n_rows++] = late;
}

START_TEST(a_row_that_appears_meanwhile_keeps_the_segment)
{
	int32_t segment = fill(100, 10);

	late = rows[5]; /* as if another row still pointed there */
	rows[5] = rows[--n_rows];
	on_second_look = commit_late;
	collect(1, 0);
	ck_assert(has_segment(segment));
	all_rows_read();
}
END_TEST

START_TEST(a_damaged_record_keeps_its_segment)
{
	int32_t segment = fill(100, 10);
	char path[200], name[BLOB_NAME_SIZE];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir,
	    blob_segment_name(name, segment));
	fd = open(path, O_WRONLY);
	ck_assert_int_eq(pwrite(fd, "XXXX", 4,
	    rows[3].offset + RECORD_HEAD + 2), 4);
	close(fd);
	collect(1, 0);
	ck_assert_uint_eq(result.damaged, 1);
	ck_assert(has_segment(segment));
	ck_assert_int_eq(rows[3].segment, segment);
	ck_assert_int_ne(rows[4].segment, segment);
}
END_TEST

static void
put_file(const char *text, struct blob_ref *ref)
{
	struct blob_stream *s;

	ck_assert_int_eq(blob_stream_new(w, &s, &err), 0);
	ck_assert_int_eq(blob_stream_add(s, text, strlen(text), &err), 0);
	ck_assert_int_eq(blob_stream_finish(&s, ref, &err), 0);
}

START_TEST(dead_files_go_unless_they_were_put_again)
{
	struct blob_ref a;

	put_file("large", &a);
	memcpy(dead_files[n_dead_files++], a.digest, DIGEST_SIZE);
	collect(50, 3600);
	ck_assert_uint_eq(result.files_removed, 0);
	ck_assert_int_eq(blob_read(dir, &a, is_as_named, NULL, &err), 0);
	collect(50, 0);
	ck_assert_uint_eq(result.files_removed, 1);
	ck_assert_int_eq(blob_read(dir, &a, is_as_named, NULL, &err), -1);
	ck_assert_int_eq(err.kind, ERR_GONE);
}
END_TEST

/* F-B16: its writer was killed before its row was there. */
START_TEST(files_that_never_had_a_row_go_and_others_stay)
{
	struct blob_ref orphan, named;

	put_file("orphan", &orphan);
	put_file("named", &named);
	rows[n_rows++] = named;
	collect(50, 3600);
	ck_assert_uint_eq(result.files_removed, 0);
	collect(50, 0);
	ck_assert_uint_eq(result.files_removed, 1);
	ck_assert_int_eq(blob_read(dir, &orphan, is_as_named, NULL, &err),
	    -1);
	ck_assert_int_eq(blob_read(dir, &named, is_as_named, NULL, &err), 0);
}
END_TEST

START_TEST(abandoned_streams_go_and_living_ones_stay)
{
	struct blob_stream *s;
	char path[200];
	int fd;

	ck_assert_int_eq(blob_stream_new(w, &s, &err), 0);
	snprintf(path, sizeof(path), "%s/tmp/abandoned", dir);
	fd = open(path, O_WRONLY | O_CREAT, 0640);
	close(fd);
	collect(50, 0);
	ck_assert_uint_eq(result.files_removed, 1);
	ck_assert_int_eq(access(path, F_OK), -1);
	ck_assert_int_eq(blob_stream_finish(&s, &late, &err), 0);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("blob gc");
	TCase *tc = tcase_create("all");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, a_segment_is_counted_once_and_again_when_it_has_grown);
	tcase_add_test(tc, a_mostly_dead_segment_is_emptied_and_removed);
	tcase_add_test(tc,
	    a_segment_outlives_a_failover_that_brings_its_rows_back);
	tcase_add_test(tc, live_segments_stay);
	tcase_add_test(tc, young_bytes_are_not_touched);
	tcase_add_test(tc, a_segment_in_use_is_left_alone);
	tcase_add_test(tc, a_row_that_appears_meanwhile_keeps_the_segment);
	tcase_add_test(tc, a_damaged_record_keeps_its_segment);
	tcase_add_test(tc, dead_files_go_unless_they_were_put_again);
	tcase_add_test(tc, files_that_never_had_a_row_go_and_others_stay);
	tcase_add_test(tc, abandoned_streams_go_and_living_ones_stay);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
