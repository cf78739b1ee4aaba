/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * Runs of base64 and of hex that are too short for gate_decode(): any word may be one. Only
 * somebody who knows what to look for in what comes of them makes use of it, as of a
 * registered term of a few letters.
 */
#include "vessel/gate/decode/decode_priv.h"
#include "vessel/gate/decode/kind.h"
#include <string.h>

#define BYTES_MIN 4
#define LETTERS_MAX (2 * GATE_SHORT_MAX)

/* The bytes of n letters, `bits` each; how many. */
static size_t bytes_of(const uint8_t in[256], unsigned bits, const char *s, size_t n,
		       char out[LETTERS_MAX])
{
	unsigned value = 0, have = 0;
	size_t k = 0;

	for (size_t i = 0; i < n; i++) {
		value = (value << bits | (in[(unsigned char)s[i]] - 1U)) & 0xffff;
		have += bits;
		if (have >= 8) {
			have -= 8;
			out[k++] = (char)(value >> have);
		}
	}
	return k;
}

/* UTF-16 of either order to one byte a letter; else they stay. */
static size_t narrowed(char *s, size_t n)
{
	size_t low = n && s[0] == 0 ? 1 : 0, k = 0;

	for (size_t i = 0; i + 1 < n; i += 2)
		if (s[i + low] == 0 || s[i + 1 - low] != 0)
			return n;
	if (n % 2)
		return n;
	for (size_t i = low; i < n; i += 2)
		s[k++] = s[i];
	return k;
}

static void take(struct gate_decoded *d, const uint8_t in[256], unsigned bits,
		 const char *s, size_t at, size_t n)
{
	char bytes[LETTERS_MAX] = {0};
	size_t k = bytes_of(in, bits, s + at, n, bytes), out;

	k = narrowed(bytes, k);
	if (k < BYTES_MIN || gate_readable(bytes, k) < k)
		return;
	out = decoded_begin(d);
	if (!decoded_reserve(d, k))
		return;
	memcpy(d->data + out, bytes, k);
	d->len += k;
	decoded_end(d, out, at, n);
}

/* Each word of that many letters of in[], but for those of skip[], which end one too. */
static void words(struct gate_decoded *d, const uint8_t in[256], const uint8_t skip[256],
		  unsigned bits, const char *s, size_t len)
{
	size_t min = (BYTES_MIN * 8 + bits - 1) / bits;
	size_t max = (GATE_SHORT_MAX * 8 + bits - 1) / bits, from = 0;

	for (size_t i = 0; i <= len && !d->too_large; i++) {
		unsigned char c = i < len ? (unsigned char)s[i] : 0;

		if (i < len && in[c] && !(skip && skip[c]))
			continue;
		if (i - from >= min && i - from <= max)
			take(d, in, bits, s, from, i - from);
		from = i + 1;
	}
}

void gate_decode_short(const char *s, size_t len, size_t max, struct gate_decoded *ret)
{
	/* In a path, a name or a sum these are between two words. */
	static const uint8_t signs[256] = {['+'] = 1, ['/'] = 1, ['-'] = 1, ['_'] = 1};

	*ret = (struct gate_decoded){.max = max};
	words(ret, gate_values64, NULL, 6, s, len);
	words(ret, gate_values64, signs, 6, s, len);
	words(ret, gate_values16, NULL, 4, s, len);
}
