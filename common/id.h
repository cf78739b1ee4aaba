/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * Fixed-size identifiers and randomness.
 */
#ifndef LYCH_COMMON_ID_H
#define LYCH_COMMON_ID_H

#include "common/attr.h"
#include "common/err.h"
#include <stddef.h>
#include <stdint.h>

/* Fill from getrandom(2); aborts when the kernel cannot (never falls back). */
void random_bytes(void *out, size_t len);

/* Randomness as the cores see it; random_real is the production one. */
struct random_ops {
	void (*bytes)(void *ctx, void *out, size_t len);
	void *ctx;
};
extern const struct random_ops random_real;

struct uuid {
	char s[37]; /* lower-case RFC 9562 text, NUL-terminated */
};
void uuid_new(const struct random_ops *rng, struct uuid *ret); /* version 4 */
MUST_CHECK int uuid_parse(const char *s, struct uuid *ret, struct err *err);

/* Request ids for logs and errors: 16 hex digits. */
struct request_id {
	char s[17];
};
void request_id_new(const struct random_ops *rng, struct request_id *ret);

/* Job ids are positive 63-bit integers, decimal text outside. */
typedef int64_t job_id_t;
MUST_CHECK int job_id_parse(const char *s, job_id_t *ret, struct err *err);

#define SHA256_SIZE 32
#define SHA256_HEX_SIZE 65
MUST_CHECK int sha256_hex_parse(const char *s, uint8_t out[SHA256_SIZE], struct err *err);

#endif
