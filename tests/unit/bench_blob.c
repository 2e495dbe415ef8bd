/*
 * bench_blob.c - what putting blobs costs, raw and compressed.
 *
 *	bench_blob DIR [MAIL-FILE...]
 *
 * 50,000 messages in batches of 100, one writer: the given files in turn, or
 * made-up text of 6.6 KB.
 */
#include "config.h"

#include "base/buf.h"
#include "base/clock.h"
#include "blob/blob.h"

#include <bsd/stdlib.h>
#include <err.h>
#include <sys/resource.h>

#define MESSAGES 50000
#define BATCH 100

static struct buf *samples;
static size_t n_samples;

static void
make_samples(void)
{
	static const char *const words[] = { "the ", "mail ", "of ", "order ",
		"please ", "Regards, ", "=20\r\n", "<td>", "</td>", "number " };
	size_t i;

	n_samples = 100;
	samples = calloc(n_samples, sizeof(*samples));
	for (i = 0; i < n_samples; i++)
		while (samples[i].len < 6600)
			if (arc4random_uniform(3) == 0)
				buf_addf(&samples[i], "%x ", arc4random());
			else
				buf_adds(&samples[i],
				    words[arc4random_uniform(10)]);
}

static void
read_sample(const char *path)
{
	FILE *f = fopen(path, "r");
	struct buf b = BUF_INIT;
	size_t n;

	if (f == NULL)
		err(1, "%s", path);
	while ((n = fread(buf_reserve(&b, 65536), 1, 65536, f)) > 0)
		b.len += n;
	fclose(f);
	samples = reallocarray(samples, n_samples + 1, sizeof(*samples));
	samples[n_samples++] = b;
}

static void
run(const char *dir, int level)
{
	int64_t begin = clock_mono_msecs(), msecs;
	uint64_t raw = 0, stored = 0;
	struct rusage before, after;
	struct blob_writer *w;
	struct err e = ERR_INIT;
	struct blob_ref ref;
	double cpu;
	int i;

	getrusage(RUSAGE_SELF, &before);
	if (blob_store_make(dir, &(struct uuid){ { 1 } }, &e) == -1 ||
	    blob_writer_new(&w, dir, &e) == -1)
		errx(1, "%s", e.text);
	blob_writer_compress(w, level);
	for (i = 0; i < MESSAGES; i++) {
		const struct buf *b = &samples[(size_t)i % n_samples];

		if (blob_put(w, b->data, b->len, &ref, &e) == -1 ||
		    (i % BATCH == BATCH - 1 && blob_flush(w, &e) == -1))
			errx(1, "%s", e.text);
		raw += ref.size;
		stored += ref.stored;
	}
	blob_writer_free(&w);
	getrusage(RUSAGE_SELF, &after);
	msecs = clock_mono_msecs() - begin;
	cpu = (double)(after.ru_utime.tv_sec + after.ru_stime.tv_sec -
		  before.ru_utime.tv_sec - before.ru_stime.tv_sec) * 1e6 +
	    (double)(after.ru_utime.tv_usec + after.ru_stime.tv_usec -
		before.ru_utime.tv_usec - before.ru_stime.tv_usec);
	printf("level %d: %.0f messages/s, %.1f us CPU each, ratio %.2f\n",
	    level, MESSAGES * 1000.0 / (double)msecs, cpu / MESSAGES,
	    (double)raw / (double)stored);
}

int
main(int argc, char **argv)
{
	int i;

	if (argc < 2)
		errx(64, "usage: bench_blob DIR [MAIL-FILE...]");
	for (i = 2; i < argc; i++)
		read_sample(argv[i]);
	if (n_samples == 0)
		make_samples();
	run(argv[1], 0);
	run(argv[1], 1);
	return 0;
}
