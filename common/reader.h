/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of a file or a frame, taken from the front: never more than are left. */
#ifndef LYCH_COMMON_READER_H
#define LYCH_COMMON_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct reader {
	const char *at;
	size_t left;
};

/* false: fewer are left, and none is taken. */
static inline bool reader_take(struct reader *r, void *out, size_t n)
{
	if (r->left < n)
		return false;
	memcpy(out, r->at, n);
	r->at += n;
	r->left -= n;
	return true;
}

/* n bytes where they lie; NULL: fewer are left, and none is taken. */
static inline const char *reader_bytes(struct reader *r, size_t n)
{
	const char *at = r->at;

	if (r->left < n)
		return NULL;
	r->at += n;
	r->left -= n;
	return at;
}

#endif
