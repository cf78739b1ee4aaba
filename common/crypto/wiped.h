/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * malloc and its kin with memory that is wiped when it is given back: for a library that
 * copies a credential about in buffers of its own (libcurl: its list of headers, the request
 * that it sends). NULL when there is none, as libc's.
 */
#ifndef LYCH_COMMON_CRYPTO_WIPED_H
#define LYCH_COMMON_CRYPTO_WIPED_H

#include <stddef.h>

void *wiped_malloc(size_t size);
void *wiped_calloc(size_t n, size_t size);
void *wiped_realloc(void *p, size_t size);
char *wiped_strdup(const char *s);
void wiped_free(void *p);

#endif
