/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * A growing byte buffer with a ceiling given at birth. An append that would
 * pass the ceiling changes nothing and sets a sticky failure: check buf_ok()
 * once at the end. data is always NUL-terminated (the NUL is not in len).
 */
#ifndef LYCH_COMMON_BUF_H
#define LYCH_COMMON_BUF_H

#include "common/attr.h"
#include <stdbool.h>
#include <stddef.h>

struct buf {
	char *data; /* NULL until the first append */
	size_t len;
	size_t cap;
	size_t max;
	bool failed;
};

void buf_init(struct buf *b, size_t max_bytes);
void buf_done(struct buf *b);  /* frees; b is usable again with the same ceiling */
void buf_reset(struct buf *b); /* len = 0, failure cleared, memory kept */
void buf_add(struct buf *b, const void *data, size_t len);
void buf_adds(struct buf *b, const char *s);
void buf_addc(struct buf *b, char c);
void buf_addf(struct buf *b, const char *fmt, ...) PRINTF_FMT(2, 3);
/* Drop n bytes from the front (n <= len). */
void buf_consume(struct buf *b, size_t n);
const char *buf_str(const struct buf *b); /* never NULL */
/* Move the bytes out (caller frees); NULL when it failed. */
char *buf_take(struct buf *b, size_t *ret_len);

static inline bool buf_ok(const struct buf *b)
{
	return !b->failed;
}

#define cleanup_buf __attribute__((cleanup(buf_done)))

#endif
