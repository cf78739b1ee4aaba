/* SPDX-License-Identifier: Apache-2.0 */
#include "vessel/base64.h"
#include <stdint.h>

static const char alphabet[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_add(struct buf *out, const void *data, size_t len)
{
	const uint8_t *p = data;
	char quad[4];

	for (; len >= 3; p += 3, len -= 3) {
		quad[0] = alphabet[p[0] >> 2];
		quad[1] = alphabet[(p[0] & 3) << 4 | p[1] >> 4];
		quad[2] = alphabet[(p[1] & 15) << 2 | p[2] >> 6];
		quad[3] = alphabet[p[2] & 63];
		buf_add(out, quad, 4);
	}
	if (len == 0)
		return;
	uint8_t second = len == 2 ? p[1] : 0;
	quad[0] = alphabet[p[0] >> 2];
	quad[1] = alphabet[(p[0] & 3) << 4 | second >> 4];
	quad[2] = len == 2 ? alphabet[(second & 15) << 2] : '=';
	quad[3] = '=';
	buf_add(out, quad, 4);
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

bool base64_is_valid(const char *s, size_t len)
{
	size_t pad = 0;

	if (len % 4 != 0)
		return false;
	while (pad < 2 && pad < len && s[len - 1 - pad] == '=')
		pad++;
	for (size_t i = 0; i < len - pad; i++) {
		if (value_of(s[i]) < 0)
			return false;
	}
	if (pad == 0)
		return true;
	return (value_of(s[len - pad - 1]) & (pad == 2 ? 15 : 3)) == 0;
}
