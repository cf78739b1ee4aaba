/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * UTF-8 as RFC 3629 has it: no surrogates, nothing overlong, nothing above U+10FFFF.
 */
#ifndef LYCH_COMMON_UTF8_H
#define LYCH_COMMON_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NUL is allowed. */
bool utf8_is_valid(const void *data, size_t len);
/* The character that begins at data, of len > 0 bytes: its own length, or 0 when it is none. */
size_t utf8_get(const void *data, size_t len, uint32_t *ret);
/* The same; surrogates, and what is above U+10FFFF but fits into four bytes, as they are. */
size_t utf8_get_lax(const void *data, size_t len, uint32_t *ret);
/* The bytes of a code point up to U+1FFFFF, surrogates as they are; how many. */
size_t utf8_put(uint32_t c, char out[4]);

#endif
