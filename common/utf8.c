/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See utf8.h.
 */
#include "common/utf8.h"

size_t utf8_get_lax(const void *data, size_t len, uint32_t *ret)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *p = data;
	size_t n = p[0] < 0x80	 ? 1
		   : p[0] < 0xc2 ? 0
		   : p[0] < 0xe0 ? 2
		   : p[0] < 0xf0 ? 3
		   : p[0] < 0xf5 ? 4
				 : 0;
	uint32_t c = n == 1 ? p[0] : p[0] & (0x7fU >> n);

	if (n == 0 || n > len)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3fU);
	}
	if (c < least[n])
		return 0;
	*ret = c;
	return n;
}

size_t utf8_get(const void *data, size_t len, uint32_t *ret)
{
	uint32_t c;
	size_t n = utf8_get_lax(data, len, &c);

	if (n == 0 || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	*ret = c;
	return n;
}

bool utf8_is_valid(const void *data, size_t len)
{
	const unsigned char *p = data;
	uint32_t c;

	for (size_t n; len; p += n, len -= n) {
		n = *p < 0x80 ? 1 : utf8_get(p, len, &c);
		if (n == 0)
			return false;
	}
	return true;
}

size_t utf8_put(uint32_t c, char out[4])
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 0x3f));
		out[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | (c >> 18 & 7));
	out[1] = (char)(0x80 | (c >> 12 & 0x3f));
	out[2] = (char)(0x80 | (c >> 6 & 0x3f));
	out[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}
