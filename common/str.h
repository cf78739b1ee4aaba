/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * Strings and numbers from outside.
 */
#ifndef LYCH_COMMON_STR_H
#define LYCH_COMMON_STR_H

#include "common/attr.h"
#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool str_eq(const char *a, const char *b); /* NULL equals only NULL */
bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);
/* argv[0] is what somebody called us; argp prints it. name lives as long as argv. */
void args_name(int argc, char **argv, const char *name);
/* Bytes at s that are letters or digits of ASCII, or of `more`. */
size_t str_run(const char *s, const char *more);

/* Copy with the NUL; fails (and stores "") when it does not fit. */
MUST_CHECK int str_copy(char *dst, size_t size, const char *src);
/* snprintf that fails on truncation. */
MUST_CHECK int str_fmt(char *dst, size_t size, const char *fmt, ...) PRINTF_FMT(3, 4);

/* Decimal digits only, no sign, no blanks, no leading zero but "0" itself. */
MUST_CHECK int parse_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret,
			 struct err *err);
/* "64", "64B", "512m", "2g", "64KiB" -> bytes; k, m, g and t, or K, M, G, T, are KiB, MiB, GiB, TiB.
 * What others read in another way (MB, mb, Mib) is refused. */
MUST_CHECK int parse_size(const char *s, uint64_t min, uint64_t max, uint64_t *ret,
			  struct err *err);
/* "30", "90s", "1h30m", "7d", "250ms" -> microseconds: d, h, m, s, ms, each once, the larger before
 * the smaller; a number alone is seconds. */
MUST_CHECK int parse_duration_usec(const char *s, uint64_t min_usec, uint64_t max_usec,
				   uint64_t *ret, struct err *err);
/* "12", "0.40", "2.5" -> millionths; at most six digits behind the point. */
MUST_CHECK int parse_micro(const char *s, uint64_t min, uint64_t max, uint64_t *ret,
			   struct err *err);

/* No byte below 0x20 and no 0x7f. */
bool str_has_control(const char *s, size_t len);

/* Of a hexadecimal digit in either case; -1: it is none. */
int hex_digit_value(char c);
/* Lower-case hex. out must hold 2*len+1. */
void hex_encode(const void *data, size_t len, char *out);
/* Exactly 2*len lower-case digits. */
MUST_CHECK int hex_decode(const char *hex, void *out, size_t len);

#define PATH_BYTES_MAX 4095
/*
 * A relative path that a job or a client named: 1..PATH_BYTES_MAX bytes of UTF-8, no
 * leading '/', no empty, "." or ".." component, no component over 255 bytes,
 * no control byte, no NUL, depth at most 64.
 */
MUST_CHECK int path_check_relative(const char *path, size_t len, struct err *err);

/* Constant-time comparison of equal-length secrets. */
bool mem_eq_ct(const void *a, const void *b, size_t len);

#endif
