/* SPDX-License-Identifier: Apache-2.0 */
#include "words.h"
#include "table.h"

#include <pthread.h>
#include <stdlib.h>

#define THREADS_MAX 16

struct part {
	const unsigned char *text;
	size_t from, to;
	long words;
};

/* A word belongs to the part where it begins. */
static void *count_part(void *arg)
{
	struct part *p = arg;

	for (size_t i = p->from; i < p->to; i++)
		if (is_word[p->text[i]] && (i == 0 || !is_word[p->text[i - 1]]))
			p->words++;
	return NULL;
}

long words_count(const char *path, int threads)
{
	FILE *f = fopen(path, "r");
	struct part parts[THREADS_MAX] = {0};
	pthread_t ids[THREADS_MAX];
	unsigned char *text = malloc(1 << 20);
	long words = 0;
	size_t n;

	if (!f || !text || threads < 1 || threads > THREADS_MAX) {
		free(text);
		return -1;
	}
	n = fread(text, 1, 1 << 20, f);
	fclose(f);
	for (int i = 0; i < threads; i++) {
		parts[i] = (struct part){text, n * (size_t)i / (size_t)threads,
					 n * (size_t)(i + 1) / (size_t)threads, 0};
		if (pthread_create(&ids[i], NULL, count_part, &parts[i]) != 0)
			abort();
	}
	for (int i = 0; i < threads; i++) {
		pthread_join(ids[i], NULL);
		words += parts[i].words;
	}
	free(text);
	return words;
}
