/*
 * replay.c - main() of a fuzz target that only repeats what is known.
 *
 * Without arguments: every file of $srcdir/tests/fuzz/seeds/NAME, where the
 * program is called fuzz_NAME.  With arguments: those files and directories.
 */
#include "base/banned.h"

#include "fuzz.h"

#include <dirent.h>
#include <err.h>
#include <stdbool.h>
#include <sys/stat.h>

static unsigned n_files;

static void
replay_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data = NULL;
	size_t len = 0, n;

	if (f == NULL)
		err(1, "%s", path);
	do {
		if ((data = realloc(data, len + 65536)) == NULL)
			err(1, NULL);
		n = fread(data + len, 1, 65536, f);
		len += n;
	} while (n > 0);
	fclose(f);
	/* Exactly as long as the input, so that a sanitizer sees the end. */
	data = realloc(data, len > 0 ? len : 1);
	LLVMFuzzerTestOneInput(data, len);
	free(data);
	n_files++;
}

static void
replay(const char *path)
{
	char name[4096];
	struct dirent *entry;
	struct stat st;
	DIR *dir;

	if (stat(path, &st) == -1)
		err(1, "%s", path);
	if (!S_ISDIR(st.st_mode)) {
		replay_file(path);
		return;
	}
	if ((dir = opendir(path)) == NULL)
		err(1, "%s", path);
	while ((entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
		replay(name);
	}
	closedir(dir);
}

int
main(int argc, char **argv)
{
	const char *srcdir = getenv("srcdir"), *name = strrchr(argv[0], '/');
	char path[4096];
	int i;

	for (i = 1; i < argc; i++)
		replay(argv[i]);
	if (argc == 1) {
		name = name == NULL ? argv[0] : name + 1;
		name += strncmp(name, "fuzz_", 5) == 0 ? 5 : 0;
		srcdir = srcdir == NULL ? "." : srcdir;
		snprintf(path, sizeof(path), "%s/tests/fuzz/seeds/%s", srcdir,
		    name);
		replay(path);
		if (fuzz_more_seeds != NULL) {
			snprintf(path, sizeof(path), "%s/%s", srcdir,
			    fuzz_more_seeds);
			replay(path);
		}
	}
	printf("%u inputs\n", n_files);
	return n_files == 0;
}
