/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * National numbers of telephones, by the groups that they are written in.
 *
 * Of the plans of the larger countries those with a 0 before the area are much alike: nine to twelve
 * digits with it, an area of two to five, and a number in one to four groups. Dates, times, ranges
 * and tables have other groups.
 */
#include "vessel/gate/valid/valid.h"

#define DIGITS_MIN 9
#define DIGITS_MAX 12
#define GROUPS_MAX 5
#define PAIRS 5	    /* France: five pairs */
#define WHOLE_MIN 5 /* the number in one group */

struct groups {
	size_t n, digits, longest;
	size_t len[GROUPS_MAX];
	bool has_brackets;
	bool has_zero; /* a later group begins with one */
	bool is_mixed; /* different signs behind the first two groups */
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* False: too many. */
static bool read_groups(const char *s, size_t len, struct groups *g)
{
	char between = 0;

	*g = (struct groups){0};
	for (size_t i = 0; i < len;) {
		size_t n = 0;

		while (i + n < len && is_digit(s[i + n]))
			n++;
		if (n == 0) {
			g->has_brackets |= s[i] == '(';
			if (g->n > 1 && between && s[i] != between)
				g->is_mixed = true;
			if (g->n > 1)
				between = s[i];
			i++;
			continue;
		}
		if (g->n == GROUPS_MAX)
			return false;
		g->has_zero |= g->n > 0 && s[i] == '0';
		g->len[g->n++] = n;
		g->digits += n;
		g->longest = n > g->longest ? n : g->longest;
		i += n;
	}
	return true;
}

bool valid_rising(const char *s, size_t len)
{
	char last = 0;

	for (size_t i = 0; i < len; i++) {
		if (!is_digit(s[i]))
			continue;
		if (last && s[i] != last + 1 && !(last == '9' && s[i] == '0'))
			return false;
		last = s[i];
	}
	return true;
}

/* "01 02 03 04 05" */
static bool are_counted(const char *s)
{
	for (size_t i = 1; i < PAIRS; i++)
		if ((s[3 * i] - s[3 * i - 3]) * 10 + s[3 * i + 1] - s[3 * i - 2] != 1)
			return false;
	return true;
}

bool valid_phone_groups(const char *s, size_t len)
{
	struct groups g;

	if (!read_groups(s, len, &g) || g.digits < DIGITS_MIN || g.digits > DIGITS_MAX ||
	    g.n < 2 || g.is_mixed || valid_rising(s, len))
		return false;
	/* "01234-5678" is a code of an American town */
	if (g.n == 2)
		return g.len[1] >= WHOLE_MIN || (g.has_brackets && g.len[1] >= 4);
	if (g.longest == 2)
		return g.n == PAIRS && !are_counted(s);
	/* code points: "0643 0645 0645" */
	if (g.len[0] == 4 && g.len[1] == 4 && g.has_zero)
		return false;
	/* "02-03-2021", "01 02 03 2021" */
	return g.n > 3 || g.len[0] > 2 || g.len[1] > 2 || g.has_brackets;
}
