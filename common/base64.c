/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See base64.h.
 */
#include "common/base64.h"
#include "common/mem.h"

#include <stdint.h>

static const char alphabet[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_add(struct buf *out, const void *data, size_t len)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < len; i += 3) {
		size_t n = len - i < 3 ? len - i : 3;
		uint32_t v = (uint32_t)p[i] << 16;
		char quad[4];

		if (n > 1)
			v |= (uint32_t)p[i + 1] << 8;
		if (n > 2)
			v |= p[i + 2];
		for (size_t k = 0; k < 4; k++)
			quad[k] = k <= n ? alphabet[v >> (18 - 6 * k) & 63] : '=';
		buf_add(out, quad, sizeof(quad));
	}
}

static int digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '+')
		return 62;
	return c == '/' ? 63 : -1;
}

/* One group of four; *n bytes come out (1 or 2 only in the last group). */
static bool quad_decode(const char *s, bool last, uint8_t out[3], size_t *n)
{
	size_t pad = 0;
	uint32_t v = 0;

	if (last && s[3] == '=')
		pad = s[2] == '=' ? 2 : 1;
	for (size_t k = 0; k < 4; k++) {
		int d = k >= 4 - pad ? 0 : digit(s[k]);

		if (d < 0)
			return false;
		v = v << 6 | (uint32_t)d;
	}
	*n = 3 - pad;
	if (v & ((1u << (8 * pad)) - 1))
		return false;
	for (size_t k = 0; k < *n; k++)
		out[k] = (uint8_t)(v >> (16 - 8 * k));
	return true;
}

bool base64_is_valid(const char *s, size_t len)
{
	uint8_t b[3];
	size_t n;

	if (len % 4)
		return false;
	for (size_t i = 0; i < len; i += 4)
		if (!quad_decode(s + i, i + 4 == len, b, &n))
			return false;
	return true;
}

int base64_decode(const char *s, size_t len, char **ret, size_t *ret_len, struct err *err)
{
	size_t out = 0;
	char *data;

	if (!base64_is_valid(s, len))
		return err_set_id(err, ERRID_SPEC_TYPE, "not base64 (RFC 4648, padded)");
	data = xmalloc(len / 4 * 3 + 1);
	for (size_t i = 0; i < len; i += 4) {
		uint8_t b[3];
		size_t n;

		(void)quad_decode(s + i, i + 4 == len, b, &n);
		for (size_t k = 0; k < n; k++)
			data[out++] = (char)b[k];
	}
	data[out] = '\0';
	*ret = data;
	*ret_len = out;
	return 0;
}
