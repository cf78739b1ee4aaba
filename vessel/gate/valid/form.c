/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker and the build.
 * See form.h.
 */
#include "vessel/gate/valid/form.h"
#include <ctype.h>
#include <string.h>

#define NAME_DIGITS_MAX 3
#define SPOKEN_MIN 5	     /* letters: of shorter words chance makes too many */
#define SPOKEN_OF_NAME_MIN 3 /* within what is a name for the rest of it */
#define SPOKEN_IN_A_ROW 3    /* consonants, or vowels */
#define SPOKEN_VOWEL_SHARE 4 /* at least one of so many letters */

static size_t run_of(int (*is)(int), const char *s, size_t len)
{
	size_t n = 0;

	while (n < len && is((unsigned char)s[n]))
		n++;
	return n;
}

/* ---- names ------------------------------------------------------------------------- */

/* What a name is made of, counted. */
struct humps {
	size_t n, singles, digits,
		inner; /* inner: digits with a small letter behind them */
};

/* A word of a name at s, "pass", "Pass", "PASS", "x", or a number; 0: neither. */
static size_t hump_at(const char *s, size_t len, struct humps *h)
{
	size_t upper = run_of(isupper, s, len), lower, n;

	n = run_of(isdigit, s, len);
	if (n) {
		h->digits += n;
		h->inner += n < len && islower((unsigned char)s[n]);
		return n;
	}
	lower = upper <= 1 ? run_of(islower, s + upper, len - upper) : 0;
	/* "HTTPServer": the last capital belongs to what follows */
	if (upper > 1 && upper < len && islower((unsigned char)s[upper]))
		upper--;
	h->singles += upper + lower == 1;
	return upper + lower;
}

size_t gate_name_word(const char *s, size_t len)
{
	struct humps h = {0};

	return hump_at(s, len, &h);
}

bool gate_is_name(const char *s, size_t len)
{
	struct humps h = {0};

	for (size_t i = 0; i < len;) {
		size_t n = hump_at(s + i, len - i, &h);

		if (n == 0 && (!strchr("_-.: ", s[i]) || !s[i]))
			return false;
		h.n += n > 0;
		i += n ? n : 1;
	}
	/* "s3_bucket2" is one, "tr0ngPassw0rd" is none */
	return h.n > 0 && h.singles <= 1 && h.digits <= NAME_DIGITS_MAX && h.inner <= 1;
}

bool gate_is_word_chain(const char *s, size_t len)
{
	size_t changes = gate_class_changes(s, len);
	bool has_digit = false;

	if (!gate_is_name(s, len))
		return false;
	while (len > 0 && isdigit((unsigned char)s[len - 1]))
		len--;
	for (size_t i = 0; i < len && !has_digit; i++)
		has_digit = isdigit((unsigned char)s[i]);
	return changes * (has_digit ? 3 : 2) < len;
}

/* ---- words ------------------------------------------------------------------------- */

static bool is_vowel(char c)
{
	return strchr("aeiouy", tolower((unsigned char)c)) && c;
}

/* A word of a name that has vowels as words have them. */
static bool is_spoken(const char *s, size_t len, size_t least)
{
	size_t vowels = 0, row = 0;

	if (len < least || !isalpha((unsigned char)s[0]))
		return false;
	for (size_t i = 0; i < len; i++) {
		vowels += is_vowel(s[i]);
		row = i > 0 && is_vowel(s[i]) == is_vowel(s[i - 1]) ? row + 1 : 1;
		if (row > SPOKEN_IN_A_ROW)
			return false;
	}
	return vowels * SPOKEN_VOWEL_SHARE >= len && vowels < len;
}

bool gate_is_readable(const char *s, size_t len)
{
	size_t letters = 0, spoken = 0;
	size_t least = gate_is_name(s, len) ? SPOKEN_OF_NAME_MIN : SPOKEN_MIN;

	for (size_t i = 0; i < len;) {
		size_t n = gate_name_word(s + i, len - i);

		if (n > 0 && isalpha((unsigned char)s[i]))
			letters += n;
		if (is_spoken(s + i, n, least))
			spoken += n;
		i += n ? n : 1;
	}
	return letters > 0 && 2 * spoken >= letters;
}

bool gate_is_path(const char *s, size_t len, size_t drawn_min)
{
	size_t named = 0;

	if (!memchr(s, '/', len))
		return false;
	for (size_t i = 0, n; i < len; i += n + 1) {
		const char *slash = memchr(s + i, '/', len - i);

		n = slash ? (size_t)(slash - s) - i : len - i;
		if (gate_is_name(s + i, n) || gate_is_readable(s + i, n))
			named += n + 1;
		else if (n >= drawn_min)
			return false;
	}
	return 2 * named > len;
}

bool gate_counts_on(const char *s, size_t len)
{
	size_t n = 0;

	for (size_t i = 1; i < len; i++)
		n += s[i] == s[i - 1] || s[i] == s[i - 1] + 1;
	return 2 * n > len;
}

/* ---- classes ----------------------------------------------------------------------- */

static unsigned class_of(char c)
{
	return islower((unsigned char)c)   ? 0
	       : isupper((unsigned char)c) ? 1
	       : isdigit((unsigned char)c) ? 2
					   : 3;
}

size_t gate_class_changes(const char *s, size_t len)
{
	size_t n = 0;

	for (size_t i = 1; i < len; i++)
		n += class_of(s[i]) != class_of(s[i - 1]);
	return n;
}
