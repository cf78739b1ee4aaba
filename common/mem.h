/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * Allocators that abort when memory is exhausted. Safe only because every
 * buffer of outside bytes has a cap (buf.h).
 */
#ifndef LYCH_COMMON_MEM_H
#define LYCH_COMMON_MEM_H

#include "common/attr.h"
#include <stddef.h>

void *xmalloc(size_t size) MUST_CHECK;
void *xcalloc(size_t n, size_t size) MUST_CHECK; /* aborts on n*size overflow */
void *xreallocarray(void *p, size_t n, size_t size) MUST_CHECK; /* same */
char *xstrdup(const char *s) MUST_CHECK;
char *xstrndup(const char *s, size_t n) MUST_CHECK;
char *xasprintf(const char *fmt, ...) PRINTF_FMT(1, 2) MUST_CHECK;

#define xnew(type) ((type *)xcalloc(1, sizeof(type)))

#endif
