/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * SHA-1, for the names that git gives to objects: never for anything that has to be safe.
 */
#ifndef LYCH_COMMON_CRYPTO_SHA1_H
#define LYCH_COMMON_CRYPTO_SHA1_H

#include <stddef.h>
#include <stdint.h>

#define SHA1_SIZE 20

/* Of head, and data behind it. */
void sha1_of(const void *head, size_t head_len, const void *data, size_t len,
	     uint8_t out[SHA1_SIZE]);

#endif
