/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What common/term/filter.h may write to a terminal, said a second time and by hand: the filter's own
 * table is not asked.
 */
#ifndef LYCH_TESTS_UNIT_COMMON_TERM_TERM_CLEAN_H
#define LYCH_TESTS_UNIT_COMMON_TERM_TERM_CLEAN_H

#include "common/utf8.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static inline bool term_clean_is_one_of(unsigned v, const unsigned *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (list[i] == v)
			return true;
	return false;
}

/* No rendition that conceals, blinks fast or changes the font, also for a reader that does not know
 * the colours of 38 and 48 by their numbers. */
static inline bool term_clean_sgr(const char *p, const char *end)
{
	unsigned to_skip = 0;
	bool is_kind = false;

	for (;;) {
		char *after;
		unsigned v = (unsigned)strtoul(p, &after, 10);

		if (*p < '0' || *p > '9')
			return false;
		if (is_kind) {
			if (v != 5 && v != 2)
				return false;
			to_skip = v == 5 ? 1 : 3;
			is_kind = false;
		} else if (to_skip) {
			to_skip--;
		} else if (v == 6 || v == 8 || (v >= 10 && v <= 20) || v == 26 ||
			   v == 58 || v > 107) {
			return false;
		} else {
			is_kind = v == 38 || v == 48;
		}
		if (*after == ':' && v == 4 && after[1] >= '0' && after[1] <= '5')
			after += 2;
		if (after == end)
			return !is_kind && !to_skip;
		if (*after != ';')
			return false;
		p = after + 1;
	}
}

static inline bool term_clean_modes(const char *p, const char *end)
{
	static const unsigned dec[] = {1,    5,	   7,	 12,   25,   47,   1000, 1002,
				       1003, 1004, 1006, 1047, 1048, 1049, 2004, 2026};
	static const unsigned ansi[] = {4};
	bool is_dec = *p == '?';

	for (p += is_dec;; p++) {
		char *after;
		unsigned v = (unsigned)strtoul(p, &after, 10);

		if (*p < '0' || *p > '9' ||
		    !term_clean_is_one_of(v, is_dec ? dec : ansi,
					  is_dec ? sizeof(dec) / sizeof(dec[0]) : 1))
			return false;
		if (after == end)
			return true;
		if (*after != ';')
			return false;
		p = after;
	}
}

/* p is behind "ESC ["; NULL: it is not one that may be there, else where its final is. */
static inline const char *term_clean_csi(const char *p, const char *end)
{
	const char *final = p, *at;

	while (final < end && *final >= 0x20 && *final <= 0x3f)
		final++;
	if (final == end)
		return NULL;
	if (*final == 'm')
		return final == p || term_clean_sgr(p, final) ? final : NULL;
	if (*final == 'h' || *final == 'l')
		return final > p && term_clean_modes(p, final) ? final : NULL;
	if (*final == 'q')
		return final - p <= 2 && final[-1] == ' ' ? final : NULL;
	if (*final == 'p')
		return final - p == 1 && *p == '!' ? final : NULL;
	for (at = p; at < final; at++)
		if ((*at < '0' || *at > '9') && *at != ';')
			return NULL;
	if (*final == 'n')
		return strtoul(p, NULL, 10) == 6 ? final : NULL;
	if (*final == 'J')
		return final == p || strtoul(p, NULL, 10) <= 2 ? final : NULL;
	if (*final == 's' || *final == 'u')
		return final == p ? final : NULL;
	return strchr("ABCDEFGHIKLMPSTXZ@`abdefr", *final) ? final : NULL;
}

static inline const char *term_clean_escape(const char *p, const char *end)
{
	if (p == end)
		return NULL;
	if (*p == '[')
		return term_clean_csi(p + 1, end);
	if (*p == '(' || *p == ')')
		return p + 1 < end && (p[1] == '0' || p[1] == 'B') ? p + 1 : NULL;
	return *p && strchr("78=>DEM", *p) ? p : NULL;
}

/* Where something is that may not be there; NULL: nowhere. */
static inline const char *term_clean(const char *s, size_t n)
{
	const char *end = s + n;

	for (const char *p = s; p < end; p++) {
		uint32_t c;
		size_t len;

		if ((unsigned char)*p >= 0x80) {
			len = utf8_get(p, (size_t)(end - p), &c);
			if (len == 0 || (c >= 0x80 && c <= 0x9f) ||
			    (c >= 0x202a && c <= 0x202e))
				return p;
			p += len - 1;
		} else if (*p == '\x1b') {
			const char *last = term_clean_escape(p + 1, end);

			if (!last)
				return p;
			p = last;
		} else if (*p == '\x7f' ||
			   (*p < ' ' &&
			    (*p == '\0' || !strchr("\a\b\t\n\v\f\r\x0e\x0f", *p)))) {
			return p;
		}
	}
	return NULL;
}

#endif
