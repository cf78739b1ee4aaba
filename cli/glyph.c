/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/glyph.h"

unsigned glyph_len(unsigned char c)
{
	if (c < 0x80)
		return 1;
	if (c >= 0xc2 && c <= 0xdf)
		return 2;
	if (c >= 0xe0 && c <= 0xef)
		return 3;
	if (c >= 0xf0 && c <= 0xf4)
		return 4;
	return 0;
}

uint32_t glyph_decode(const unsigned char *s, unsigned n)
{
	uint32_t cp = n == 1   ? s[0]
		      : n == 2 ? s[0] & 0x1fu
		      : n == 3 ? s[0] & 0x0fu
			       : s[0] & 0x07u;

	for (unsigned i = 1; i < n; i++)
		cp = cp << 6 | (s[i] & 0x3fu);
	return cp;
}

bool glyph_is_dangerous(uint32_t cp)
{
	return cp < 0x20 || (cp >= 0x7f && cp <= 0x9f) || cp == 0x61c || cp == 0xfeff ||
	       (cp >= 0x200b && cp <= 0x200f) || (cp >= 0x2028 && cp <= 0x202e) ||
	       (cp >= 0x2060 && cp <= 0x206f) || (cp >= 0xfff9 && cp <= 0xfffb) ||
	       (cp >= 0xe0000 && cp <= 0xe007f);
}
