/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See id.h.
 */
#include "common/id.h"
#include "common/str.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

void random_bytes(void *out, size_t len)
{
	unsigned char *p = out;

	while (len) {
		ssize_t n = getrandom(p, len, 0);

		if (n < 0) {
			if (errno == EINTR)
				continue;
			abort();
		}
		p += n;
		len -= (size_t)n;
	}
}

static void real_bytes(void *ctx, void *out, size_t len)
{
	(void)ctx;
	random_bytes(out, len);
}

const struct random_ops random_real = {.bytes = real_bytes};

void uuid_new(const struct random_ops *rng, struct uuid *ret)
{
	static const size_t group[] = {4, 2, 2, 2, 6};
	unsigned char b[16];
	size_t at = 0, in = 0;

	rng->bytes(rng->ctx, b, sizeof(b));
	b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
	b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
	for (size_t g = 0; g < ARRAY_SIZE(group); g++) {
		if (g)
			ret->s[at++] = '-';
		hex_encode(b + in, group[g], ret->s + at);
		at += 2 * group[g];
		in += group[g];
	}
}

int uuid_parse(const char *s, struct uuid *ret, struct err *err)
{
	struct uuid u;

	if (strlen(s) != 36)
		goto bad;
	for (size_t i = 0; i < 36; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? s[i] != '-' : !strchr("0123456789abcdef", s[i]))
			goto bad;
	}
	memcpy(u.s, s, sizeof(u.s));
	*ret = u;
	return 0;
bad:
	return err_set(err, ERR_INVALID, "not a UUID");
}

void request_id_new(const struct random_ops *rng, struct request_id *ret)
{
	unsigned char b[8];

	rng->bytes(rng->ctx, b, sizeof(b));
	hex_encode(b, sizeof(b), ret->s);
}

int job_id_parse(const char *s, job_id_t *ret, struct err *err)
{
	uint64_t v;
	struct err e = ERR_INIT;

	if (parse_u64(s, 1, INT64_MAX, &v, &e) < 0)
		return err_set_id(err, ERRID_RUN_NOT_FOUND, "'%.40s' is not a job id", s);
	*ret = (job_id_t)v;
	return 0;
}

int sha256_hex_parse(const char *s, uint8_t out[SHA256_SIZE], struct err *err)
{
	if (hex_decode(s, out, SHA256_SIZE) < 0)
		return err_set(err, ERR_INVALID,
			       "not a sha256 (64 lower-case hex digits)");
	return 0;
}
