/*
 * test_blob.c - what is put can be read, whatever happens to the writer.
 */
#include "config.h"

#include "base/buf.h"
#include "base/clock.h"
#include "blob/blob_private.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct err err;
static char dir[64];
static struct uuid id; /* of the directory */
static struct blob_writer *w;

static void
set_up(void)
{
	snprintf(dir, sizeof(dir), "/tmp/test_blob.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	uuid_generate(&id);
	ck_assert_int_eq(blob_store_make(dir, &id, &err), 0);
	ck_assert_int_eq(blob_writer_new(&w, dir, &err), 0);
	ck_assert(uuid_is_equal(blob_writer_id(w), &id));
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
collect(void *arg, const void *bytes, size_t len)
{
	buf_add(arg, bytes, len);
	return 0;
}

static void
reads_as(const struct blob_ref *ref, const void *bytes, size_t len)
{
	struct buf b = BUF_INIT;

	ck_assert_msg(blob_read(dir, ref, collect, &b, &err) == 0, "%s",
	    err.text);
	ck_assert_uint_eq(b.len, len);
	ck_assert(len == 0 || memcmp(b.data, bytes, len) == 0);
	buf_release(&b);
}

static void
read_fails(const struct blob_ref *ref, enum err_kind kind)
{
	struct buf b = BUF_INIT;

	ck_assert_int_eq(blob_read(dir, ref, collect, &b, &err), -1);
	ck_assert_int_eq(err.kind, kind);
	buf_release(&b);
}

/* A message of `len` bytes that differs for each seed. */
static char *
make_message(unsigned seed, size_t len)
{
	char *text = malloc(len + 1);
	size_t i;

	for (i = 0; i < len; i++) {
		seed = seed * 1103515245 + 12345;
		text[i] = (char)(' ' + (seed >> 16) % 64);
	}
	text[len] = '\0';
	return text;
}

static void
put(const char *text, struct blob_ref *ref)
{
	ck_assert_msg(blob_put(w, text, strlen(text), ref, &err) == 0, "%s",
	    err.text);
}

struct tally {
	unsigned good, damaged, dead;
	uint64_t good_bytes;
};

static int
count(void *arg, const struct blob_found *found)
{
	struct tally *t = arg;

	t->good += found->state == BLOB_GOOD;
	t->damaged += found->state == BLOB_DAMAGED;
	t->dead += found->state == BLOB_DEAD;
	if (found->state == BLOB_GOOD)
		t->good_bytes += found->ref.size;
	return 0;
}

static struct tally
walk(void)
{
	struct tally t = { 0 };

	ck_assert_msg(blob_walk(dir, count, &t, &err) == 0, "%s", err.text);
	return t;
}

static char *
segment_path(int32_t segment)
{
	static char path[200];
	char name[BLOB_NAME_SIZE];

	snprintf(path, sizeof(path), "%s/%s", dir,
	    blob_segment_name(name, segment));
	return path;
}

START_TEST(what_is_put_is_read)
{
	struct blob_ref a, b, empty;

	put("first", &a);
	put("second message", &b);
	put("", &empty);
	ck_assert_int_eq(blob_flush(w, &err), 0);
	ck_assert_int_eq(a.segment, b.segment);
	ck_assert_int_eq(a.offset, 0);
	ck_assert_int_eq(b.offset, RECORD_HEAD + 5);
	reads_as(&a, "first", 5);
	reads_as(&b, "second message", 14);
	reads_as(&empty, "", 0);
	ck_assert_uint_eq(walk().good, 3);
}
END_TEST

START_TEST(compression_pays_or_is_not_done)
{
	char *noise = make_message(7, 20000), *dull = calloc(1, 20001);
	struct blob_ref a, b;
	size_t i;

	for (i = 0; i < 20000; i++) { /* noise zstd cannot pack */
		noise[i] = (char)(random() >> 8);
		dull[i] = "the same again "[i % 15];
	}
	blob_writer_compress(w, 1);
	ck_assert_int_eq(blob_put(w, noise, 20000, &a, &err), 0);
	ck_assert_int_eq(blob_put(w, dull, 20000, &b, &err), 0);
	ck_assert_int_eq(blob_flush(w, &err), 0);
	ck_assert_uint_eq(a.codec, BLOB_RAW);
	ck_assert_uint_eq(b.codec, BLOB_ZSTD);
	ck_assert_uint_lt(b.stored, 2000);
	ck_assert_uint_eq(b.size, 20000);
	reads_as(&a, noise, 20000);
	reads_as(&b, dull, 20000);
	ck_assert_uint_eq(walk().good, 2);
	free(noise);
	free(dull);
}
END_TEST

START_TEST(damage_is_reported)
{
	struct blob_ref a, b, wrong;
	int fd;

	put("first", &a);
	put("second message", &b);
	ck_assert_int_eq(blob_flush(w, &err), 0);
	wrong = a;
	wrong.digest[0] ^= 1;
	read_fails(&wrong, ERR_STORAGE);
	wrong = b;
	wrong.offset++;
	read_fails(&wrong, ERR_STORAGE);
	wrong.offset = 1 << 20;
	read_fails(&wrong, ERR_GONE);
	wrong.segment = 77;
	read_fails(&wrong, ERR_GONE);
	fd = open(segment_path(a.segment), O_WRONLY);
	ck_assert_int_eq(pwrite(fd, "F", 1, a.offset + RECORD_HEAD), 1);
	close(fd);
	read_fails(&a, ERR_STORAGE);
	ck_assert_ptr_nonnull(strstr(err.text, "does not match its digest"));
	reads_as(&b, "second message", 14);
	ck_assert_uint_eq(walk().damaged, 1);
	ck_assert_uint_eq(walk().good, 1);
}
END_TEST

START_TEST(a_torn_tail_is_dead_bytes)
{
	struct blob_ref a, b;
	struct tally t;
	int fd;

	put("first MHb1 message", &a);
	ck_assert_int_eq(blob_flush(w, &err), 0);
	/* the beginning of a record, as a killed writer leaves it */
	fd = open(segment_path(a.segment), O_WRONLY | O_APPEND);
	ck_assert_int_eq(write(fd, "MHb1\0\0\0\0torn MHb1 ", 19), 19);
	close(fd);
	put("after", &b);
	ck_assert_int_eq(blob_flush(w, &err), 0);
	reads_as(&a, "first MHb1 message", 18);
	reads_as(&b, "after", 5);
	t = walk();
	ck_assert_uint_eq(t.good, 2);
	ck_assert_uint_eq(t.dead, 1);
}
END_TEST

/* Killed in its write: the header is there, the content is not, and what
 * others write is where it would have been. */
START_TEST(a_torn_record_swallows_nobody)
{
	struct blob_ref torn, a, b;
	char *text = make_message(1, 3000);
	struct tally t;

	put(text, &torn);
	ck_assert_int_eq(blob_flush(w, &err), 0);
	ck_assert_int_eq(truncate(segment_path(torn.segment),
	    torn.offset + 1000), 0);
	blob_rest(w);
	put(text, &a);
	put("after", &b);
	ck_assert_int_eq(blob_flush(w, &err), 0);
	ck_assert_int_eq(a.segment, torn.segment);
	reads_as(&a, text, strlen(text));
	reads_as(&b, "after", 5);
	t = walk();
	ck_assert_uint_eq(t.good, 2);
	ck_assert_uint_eq(t.dead, 1);
	ck_assert_uint_eq(t.damaged, 0);
	free(text);
}
END_TEST

/* Puts and flushes for ever, telling each reference once it is durable. */
static _Noreturn void
write_for_ever(int report)
{
	struct blob_ref refs[10];
	char *text;
	unsigned i, n = 0;

	for (;;) {
		for (i = 0; i < 10; i++, n++) {
			text = make_message(n, 2000 + n % 5000);
			if (blob_put(w, text, strlen(text), &refs[i],
				&err) == -1)
				_exit(1);
			free(text);
		}
		if (blob_flush(w, &err) == -1 ||
		    write(report, refs, sizeof(refs)) != sizeof(refs))
			_exit(1);
	}
}

START_TEST(kill_9_loses_nothing_that_was_durable)
{
	struct blob_ref refs[10], after;
	unsigned i, round, n;
	int report[2];
	char *text;
	pid_t pid;

	for (round = 0; round < 5; round++) {
		ck_assert_int_eq(pipe(report), 0);
		blob_writer_free(&w);
		ck_assert_int_eq(blob_writer_new(&w, dir, &err), 0);
		pid = fork();
		if (pid == 0)
			write_for_ever(report[1]);
		close(report[1]);
		for (n = 0; read(report[0], refs, sizeof(refs)) ==
		     sizeof(refs); n += 10) {
			if (n >= 100)
				kill(pid, SIGKILL);
			for (i = 0; i < 10; i++) {
				text = make_message(n + i,
				    2000 + (n + i) % 5000);
				reads_as(&refs[i], text, strlen(text));
				free(text);
			}
		}
		close(report[0]);
		waitpid(pid, NULL, 0);
		put("after", &after);
		ck_assert_int_eq(blob_flush(w, &err), 0);
		reads_as(&after, "after", 5);
	}
	ck_assert_uint_eq(walk().damaged, 0);
}
END_TEST

START_TEST(a_full_disk_leaves_the_batch_before_whole)
{
	struct rlimit before, limit;
	struct blob_ref a, b, c;
	char *big = make_message(1, 100000);
	struct tally t;

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &before);
	limit = before;
	limit.rlim_cur = 50000;
	setrlimit(RLIMIT_FSIZE, &limit);
	put("fits", &a);
	ck_assert_int_eq(blob_put(w, big, 100000, &b, &err), -1);
	ck_assert_int_eq(err.kind, ERR_STORAGE);
	ck_assert_ptr_nonnull(strstr(err.text, dir));
	put("fits, too", &b);
	ck_assert_int_eq(blob_flush(w, &err), 0);
	setrlimit(RLIMIT_FSIZE, &before);
	put("room again", &c);
	ck_assert_int_eq(blob_flush(w, &err), 0);
	reads_as(&a, "fits", 4);
	reads_as(&b, "fits, too", 9);
	reads_as(&c, "room again", 10);
	t = walk();
	ck_assert_uint_eq(t.good, 3);
	ck_assert_uint_eq(t.dead, 0); /* nothing torn was left */
	free(big);
}
END_TEST

START_TEST(a_full_segment_is_followed_by_another)
{
	char *text = make_message(3, 5000000);
	struct blob_ref refs[20];
	unsigned i;

	for (i = 0; i < 20; i++) { /* one batch of 100 MB */
		text[0] = (char)('a' + i);
		put(text, &refs[i]);
	}
	ck_assert_int_eq(blob_flush(w, &err), 0);
	ck_assert_int_ne(refs[0].segment, refs[19].segment);
	for (i = 0; i < 20; i++) {
		text[0] = (char)('a' + i);
		reads_as(&refs[i], text, 5000000);
	}
	ck_assert_uint_eq(walk().good, 20);
	free(text);
}
END_TEST

static _Noreturn void
be_writer(unsigned number, int start)
{
	struct blob_ref refs[60];
	unsigned i;
	char *text;

	if (read(start, &i, 1) == -1) /* until all are there */
		_exit(1);
	blob_writer_free(&w);
	if (blob_writer_new(&w, dir, &err) == -1)
		_exit(1);
	for (i = 0; i < 60; i++) {
		text = make_message(number * 1000 + i, 500 + i * 50);
		if (blob_put(w, text, strlen(text), &refs[i], &err) == -1 ||
		    (i % 20 == 19 && blob_flush(w, &err) == -1))
			_exit(1);
		free(text);
	}
	for (i = 0; i < 60; i++) {
		text = make_message(number * 1000 + i, 500 + i * 50);
		reads_as(&refs[i], text, strlen(text));
		free(text);
	}
	_exit(0);
}

START_TEST(a_hundred_writers_at_once)
{
	unsigned i, n_writers = getenv("LD_PRELOAD") == NULL ? 100 : 10;
	int start[2], status, failed = 0;
	int32_t *numbers;
	struct blob_dir d;
	struct tally t;
	size_t n;

	ck_assert_int_eq(pipe(start), 0);
	for (i = 0; i < n_writers; i++)
		if (fork() == 0) {
			close(start[1]);
			be_writer(i, start[0]);
		}
	close(start[0]);
	close(start[1]); /* go */
	for (i = 0; i < n_writers; i++)
		if (wait(&status) == -1 || status != 0)
			failed++;
	ck_assert_int_eq(failed, 0);
	t = walk();
	ck_assert_uint_eq(t.good, n_writers * 60);
	ck_assert_uint_eq(t.dead + t.damaged, 0);
	ck_assert_int_eq(blob_dir_open(&d, dir, &err), 0);
	ck_assert_int_eq(blob_segments_list(&d, &numbers, &n, &err), 0);
	free(numbers);
	/* 16, and more only where the machine is so slow that writers lose
	 * patience */
	ck_assert_uint_lt(n, n_writers);
	blob_dir_close(&d);
}
END_TEST

START_TEST(a_stopped_writer_holds_nobody_up_for_ever)
{
	struct blob_writer *others[17];
	struct blob_ref ref;
	int64_t begin;
	int i;

	for (i = 0; i < 16; i++) {
		ck_assert_int_eq(blob_writer_new(&others[i], dir, &err), 0);
		ck_assert_int_eq(blob_put(others[i], "x", 1, &ref, &err), 0);
	}
	begin = clock_mono_msecs();
	put("patient", &ref);
	ck_assert_int_ge(clock_mono_msecs() - begin, 1000);
	ck_assert_int_eq(ref.segment, 17);
	ck_assert_int_eq(blob_flush(w, &err), 0);
	for (i = 0; i < 16; i++)
		blob_writer_free(&others[i]);
	reads_as(&ref, "patient", 7);
}
END_TEST

/* --- streams ----------------------------------------------------------------------- */

static _Noreturn void
stream_40_mb(void)
{
	struct rusage before, after;
	static char piece[16384];
	struct blob_stream *s;
	struct blob_ref ref;
	int i;

	memset(piece, 'm', sizeof(piece));
	getrusage(RUSAGE_SELF, &before);
	if (blob_stream_new(w, &s, &err) == -1)
		_exit(1);
	for (i = 0; i < 2560; i++)
		if (blob_stream_add(s, piece, sizeof(piece), &err) == -1)
			_exit(2);
	if (blob_stream_finish(&s, &ref, &err) == -1 ||
	    ref.size != (uint64_t)2560 * sizeof(piece) || ref.segment != 0)
		_exit(3);
	getrusage(RUSAGE_SELF, &after);
	_exit(after.ru_maxrss - before.ru_maxrss < 2048 ? 0 : 4);
}

START_TEST(a_stream_of_40_mb_takes_no_memory)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		stream_40_mb();
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
#ifndef MAILHERD_SANITIZED
	ck_assert_int_eq(status, 0);
#endif
	ck_assert_uint_eq(walk().good, 1);
	ck_assert_uint_eq(walk().good_bytes, 40 << 20);
}
END_TEST

static unsigned
files_in(const char *sub)
{
	char path[200];
	unsigned n = 0;
	struct dirent **list;
	int i, found;

	snprintf(path, sizeof(path), "%s/%s", dir, sub);
	found = scandir(path, &list, NULL, NULL);
	for (i = 0; i < found; i++) {
		n += list[i]->d_name[0] != '.';
		free(list[i]);
	}
	free(list);
	return n;
}

/* F-B16: the directory of its directory is synced by who finds it there, too:
 * who made it may have died before. */
static char synced[16][300];
static unsigned n_synced;

int
fsync(int fd)
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, synced[n_synced % 16], sizeof(synced[0]) - 1);
	if (n > 0)
		synced[n_synced++ % 16][n] = '\0';
	return (int)syscall(SYS_fsync, fd);
}

START_TEST(a_directory_that_is_there_is_synced_all_the_same)
{
	struct blob_stream *s;
	struct blob_ref ref;
	unsigned round, i, found;

	for (round = 0; round < 2; round++) {
		n_synced = found = 0;
		ck_assert_int_eq(blob_stream_new(w, &s, &err), 0);
		ck_assert_int_eq(blob_stream_add(s, "hello", 5, &err), 0);
		ck_assert_int_eq(blob_stream_finish(&s, &ref, &err), 0);
		for (i = 0; i < n_synced && i < 16; i++) {
			size_t len = strlen(synced[i]);

			found += len > 4 &&
			    strcmp(synced[i] + len - 4, "/big") == 0;
		}
		ck_assert_uint_eq(found, 1);
	}
}
END_TEST

START_TEST(a_stream_can_be_read_while_it_grows_and_leaves_nothing_behind)
{
	struct blob_stream *s;
	struct blob_ref a, b;
	char piece[10];

	ck_assert_int_eq(blob_stream_new(w, &s, &err), 0);
	ck_assert_int_eq(blob_stream_add(s, "hello ", 6, &err), 0);
	/* the parser moves the position */
	lseek(blob_stream_fd(s), 0, SEEK_SET);
	ck_assert_int_eq(read(blob_stream_fd(s), piece, 3), 3);
	ck_assert_int_eq(blob_stream_add(s, "world", 5, &err), 0);
	ck_assert_uint_eq(blob_stream_size(s), 11);
	ck_assert_int_eq(blob_stream_finish(&s, &a, &err), 0);
	ck_assert_ptr_null(s);
	reads_as(&a, "hello world", 11);
	/* the same again is the same file */
	ck_assert_int_eq(blob_stream_new(w, &s, &err), 0);
	ck_assert_int_eq(blob_stream_add(s, "hello world", 11, &err), 0);
	ck_assert_int_eq(blob_stream_finish(&s, &b, &err), 0);
	ck_assert_mem_eq(a.digest, b.digest, DIGEST_SIZE);
	reads_as(&b, "hello world", 11);
	ck_assert_int_eq(blob_stream_new(w, &s, &err), 0);
	ck_assert_int_eq(blob_stream_add(s, "never mind", 10, &err), 0);
	blob_stream_abort(&s);
	ck_assert_uint_eq(files_in("tmp"), 0);
	ck_assert_uint_eq(walk().good, 1);
}
END_TEST

START_TEST(a_missing_directory_is_an_error_that_names_it)
{
	struct blob_writer *other;

	ck_assert_int_eq(blob_writer_new(&other, "/nowhere/at/all", &err), -1);
	ck_assert_int_eq(err.kind, ERR_STORAGE);
	ck_assert_ptr_nonnull(strstr(err.text, "/nowhere/at/all"));
}
END_TEST

static void
refuses(const char *path, const char *words)
{
	struct blob_writer *other;

	ck_assert_int_eq(blob_writer_new(&other, path, &err), -1);
	ck_assert_int_eq(err.kind, ERR_STORAGE);
	ck_assert_msg(strstr(err.text, words) != NULL, "%s", err.text);
}

/* B6: where the file system is not mounted, nothing is begun anew. */
START_TEST(a_directory_without_an_id_is_not_written_to)
{
	char empty[100], file[120];
	struct uuid other;

	snprintf(empty, sizeof(empty), "%s/empty", dir);
	ck_assert_int_eq(mkdir(empty, 0700), 0);
	refuses(empty, "mounted?");
	ck_assert_int_eq(rmdir(empty), 0); /* and nothing was made in it */
	uuid_generate(&other);
	ck_assert_int_eq(blob_store_make(dir, &other, &err), -1);
	ck_assert_int_eq(err.kind, ERR_CONFIG);
	ck_assert_ptr_nonnull(strstr(err.text, "another database"));
	ck_assert_int_eq(blob_store_make(dir, &id, &err), 0);
	snprintf(file, sizeof(file), "%s/store-id", dir);
	ck_assert_int_eq(truncate(file, 0), 0);
	refuses(dir, "no id in it");
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("blob");
	TCase *tc = tcase_create("all");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tc, 120);
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, what_is_put_is_read);
	tcase_add_test(tc, compression_pays_or_is_not_done);
	tcase_add_test(tc, damage_is_reported);
	tcase_add_test(tc, a_torn_tail_is_dead_bytes);
	tcase_add_test(tc, a_torn_record_swallows_nobody);
	tcase_add_test(tc, kill_9_loses_nothing_that_was_durable);
	tcase_add_test(tc, a_full_disk_leaves_the_batch_before_whole);
	tcase_add_test(tc, a_full_segment_is_followed_by_another);
	tcase_add_test(tc, a_hundred_writers_at_once);
	tcase_add_test(tc, a_stopped_writer_holds_nobody_up_for_ever);
	tcase_add_test(tc, a_stream_of_40_mb_takes_no_memory);
	tcase_add_test(tc, a_directory_that_is_there_is_synced_all_the_same);
	tcase_add_test(tc,
	    a_stream_can_be_read_while_it_grows_and_leaves_nothing_behind);
	tcase_add_test(tc, a_missing_directory_is_an_error_that_names_it);
	tcase_add_test(tc, a_directory_without_an_id_is_not_written_to);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
