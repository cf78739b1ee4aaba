/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/b64.h"

#include <stdint.h>

static const char digits[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void b64_encode(struct buf *out, const void *data, size_t len)
{
	const unsigned char *s = data;
	char four[4];

	for (size_t i = 0; i < len; i += 3) {
		size_t n = len - i < 3 ? len - i : 3;
		uint32_t v = (uint32_t)s[i] << 16;

		if (n > 1)
			v |= (uint32_t)s[i + 1] << 8;
		if (n > 2)
			v |= s[i + 2];
		four[0] = digits[v >> 18 & 63];
		four[1] = digits[v >> 12 & 63];
		four[2] = n > 1 ? digits[v >> 6 & 63] : '=';
		four[3] = n > 2 ? digits[v & 63] : '=';
		buf_add(out, four, sizeof(four));
	}
}

static int value_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

int b64_decode(struct buf *out, const char *text, size_t len)
{
	if (len % 4)
		return -1;
	for (size_t i = 0; i < len; i += 4) {
		bool last = i + 4 == len;
		int pad = last && text[i + 3] == '=' ? (text[i + 2] == '=' ? 2 : 1) : 0;
		uint32_t v = 0;

		for (int k = 0; k < 4; k++) {
			int d = k >= 4 - pad ? 0 : value_of(text[i + (size_t)k]);

			if (d < 0)
				return -1;
			v = v << 6 | (uint32_t)d;
		}
		if ((pad == 1 && (v & 0xff)) || (pad == 2 && (v & 0xffff)))
			return -1;
		const char three[3] = {(char)(v >> 16 & 0xff), (char)(v >> 8 & 0xff),
				       (char)(v & 0xff)};

		buf_add(out, three, (size_t)(3 - pad));
	}
	return buf_ok(out) ? 0 : -1;
}
