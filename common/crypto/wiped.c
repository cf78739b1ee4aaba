/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See wiped.h.
 */
#include "common/crypto/wiped.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

void *wiped_malloc(size_t size)
{
	return malloc(size);
}

void *wiped_calloc(size_t n, size_t size)
{
	return calloc(n, size);
}

void wiped_free(void *p)
{
	if (p)
		explicit_bzero(p, malloc_usable_size(p));
	free(p);
}

/* libc's would leave the old bytes where they were. */
void *wiped_realloc(void *p, size_t size)
{
	size_t old = p ? malloc_usable_size(p) : 0;
	void *fresh;

	if (p && size == 0) {
		wiped_free(p);
		return NULL;
	}
	if (size <= old && size >= old / 2)
		return p;
	fresh = malloc(size);
	if (!fresh)
		return NULL;
	if (p)
		memcpy(fresh, p, old < size ? old : size);
	wiped_free(p);
	return fresh;
}

char *wiped_strdup(const char *s)
{
	size_t n = strlen(s) + 1;
	char *copy = malloc(n);

	if (copy)
		memcpy(copy, s, n);
	return copy;
}
