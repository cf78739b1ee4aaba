/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See host.h.
 */
#include "common/host.h"

#include <stdint.h>
#include <string.h>

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

/* RFC 3492, only to see that an A-label stands for something beyond ASCII. */
static bool punycode_is_sound(const char *s, size_t n)
{
	enum { BASE = 36, TMIN = 1, TMAX = 26, SKEW = 38, DAMP = 700 };
	uint32_t code = 0x80, i = 0, bias = 72, out = 0, in = 0;

	for (size_t k = n; k > 0; k--)
		if (s[k - 1] == '-') {
			out = (uint32_t)(k - 1);
			in = (uint32_t)k;
			break;
		}
	if (in == n || (in > 0 && out == 0))
		return false;
	while (in < n) {
		uint32_t before = i, weight = 1, delta;

		for (uint32_t k = BASE;; k += BASE) {
			uint32_t digit, t, part;

			if (in == n)
				return false;
			digit = is_digit(s[in]) ? (uint32_t)(s[in] - '0') + 26
						: (uint32_t)(s[in] - 'a');
			in++;
			if (__builtin_mul_overflow(digit, weight, &part) ||
			    __builtin_add_overflow(i, part, &i))
				return false;
			t = k <= bias ? TMIN : k >= bias + TMAX ? TMAX : k - bias;
			if (digit < t)
				break;
			if (__builtin_mul_overflow(weight, BASE - t, &weight))
				return false;
		}
		out++;
		delta = before == 0 ? i / DAMP : (i - before) / 2;
		delta += delta / out;
		bias = 0;
		for (; delta > ((BASE - TMIN) * TMAX) / 2; bias += BASE)
			delta /= BASE - TMIN;
		bias += (BASE - TMIN + 1) * delta / (delta + SKEW);
		if (__builtin_add_overflow(code, i / out, &code))
			return false;
		i %= out;
		/* 0x80..0x9f are control characters. */
		if (code < 0xa0 || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
			return false;
		i++;
	}
	return true;
}

static enum host_fault check_label(const char *s, size_t n)
{
	if (n == 0 || n > HOST_LABEL_BYTES_MAX || s[0] == '-' || s[n - 1] == '-')
		return HOST_LABEL;
	for (size_t i = 0; i < n; i++)
		if (!is_lower(s[i]) && !is_digit(s[i]) && s[i] != '-')
			return HOST_LABEL;
	if (n >= 4 && memcmp(s, "xn--", 4) == 0 && !punycode_is_sound(s + 4, n - 4))
		return HOST_A_LABEL;
	return HOST_OK;
}

enum host_fault host_name_check(const char *s, size_t len)
{
	const char *label = s;

	if (len > HOST_NAME_BYTES_MAX)
		return HOST_LONG;
	for (size_t i = 0; i <= len; i++) {
		enum host_fault fault;

		if (i < len && s[i] != '.')
			continue;
		fault = check_label(label, (size_t)(s + i - label));
		if (fault != HOST_OK)
			return fault;
		if (i < len)
			label = s + i + 1;
	}
	return is_lower(label[0]) ? HOST_OK : HOST_NUMBER;
}
