/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main() for a fuzz target where libFuzzer is not: every file below the arguments
 * goes through it once, and so do the empty input and each file cut short and with
 * single bits turned. A crash is the failure; the input's name is printed first.
 */
#include "common/attr.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include <errno.h>
#include <ftw.h>
#include <stdint.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_MAX_BYTES (4U << 20)
/* Enough to touch each field of a small input, little enough for make check. */
#define VARIANTS_PER_FILE 64

static unsigned long n_files, n_inputs;
/* For the reader of a core or an ASan report. */
static const char *volatile current_file;

/* A copy of exactly the size: reading past its end is seen by ASan. */
static void give(const uint8_t *data, size_t size)
{
	uint8_t *copy = xmalloc(size ? size : 1);

	memcpy(copy, data, size);
	(void)LLVMFuzzerTestOneInput(copy, size);
	free(copy);
	n_inputs++;
}

static void give_variants(uint8_t *data, size_t size)
{
	size_t step = size / VARIANTS_PER_FILE + 1;

	for (size_t at = 0; at < size; at += step) {
		give(data, at);
		data[at] ^= (uint8_t)(1U << (at % 8));
		give(data, size);
		data[at] ^= (uint8_t)(1U << (at % 8));
	}
}

static int replay_file(const char *path, const struct stat *st, int type,
		       struct FTW *where)
{
	cleanup_file FILE *f = NULL;
	cleanup_free uint8_t *data = NULL;
	size_t size;

	(void)where;
	if (type != FTW_F || (size_t)st->st_size > INPUT_MAX_BYTES)
		return 0;
	f = fopen(path, "re");
	if (!f) {
		(void)fprintf(stderr, "replay: %s: %s\n", path, strerror(errno));
		return -1;
	}
	data = xmalloc((size_t)st->st_size + 1);
	size = fread(data, 1, (size_t)st->st_size, f);
	current_file = path;
	printf("%s\n", path);
	(void)fflush(stdout);
	give(data, size);
	give_variants(data, size);
	n_files++;
	return 0;
}

int main(int argc, char **argv)
{
	give((const uint8_t *)"", 0);
	for (int i = 1; i < argc; i++) {
		if (nftw(argv[i], replay_file, 16, FTW_PHYS) != 0) {
			(void)fprintf(stderr, "replay: cannot read %s\n", argv[i]);
			return 1;
		}
	}
	if (n_files == 0) {
		(void)fprintf(stderr, "replay: no seed was found\n");
		return 1;
	}
	printf("%lu files, %lu inputs\n", n_files, n_inputs);
	return 0;
}
