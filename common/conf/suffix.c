/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych and the vessel.
 * Domains below which strangers have names: of a registry ("co.uk") or of a house that gives
 * them away ("github.io"). A wildcard there would allow whoever takes a name.
 */
#include "common/conf/priv.h"

#include "common/str.h"
#include <string.h>

static const struct group {
	const char *last;
	const char *rules; /* with blanks between */
} groups[] = {
#define X(last, rules) {last, rules},
#include "common/conf/suffix.def"
#undef X
};

/* A rule, without what marks it, or the labels of a domain before its last one. */
struct labels {
	const char *p;
	size_t n;
};

static bool is_same(struct labels a, struct labels b)
{
	return a.n == b.n && memcmp(a.p, b.p, a.n) == 0;
}

/* Is `a` b itself, or below it? */
static bool is_within(struct labels a, struct labels b)
{
	return is_same(a, b) || (a.n > b.n && a.p[a.n - b.n - 1] == '.' &&
				 memcmp(a.p + a.n - b.n, b.p, b.n) == 0);
}

/* Is `a` one label and b? */
static bool is_child(struct labels a, struct labels b)
{
	return a.n > b.n && is_within(a, b) &&
	       !memchr(a.p, '.', a.n - b.n - (b.n ? 1 : 0));
}

/* Does that rule say that names at or below `domain` are given to anybody? */
static bool is_shared_by(struct labels rule, struct labels domain)
{
	char mark = rule.p[0];
	struct labels rest = rule;

	if (mark == '*' || mark == '+') {
		size_t skip = rule.n > 1 ? 2 : 1; /* "*.name", or "*" alone */

		rest = (struct labels){rule.p + skip, rule.n - skip};
	}
	if (mark == '+')
		return is_within(domain, rest) || is_within(rest, domain);
	if (mark == '*' && rest.n == 0)
		return !memchr(domain.p, '.', domain.n);
	if (mark == '*')
		return is_within(rest, domain) || is_child(domain, rest);
	return is_within(rule, domain);
}

static const char *rules_of(const char *last)
{
	for (size_t i = 0; i < ARRAY_SIZE(groups); i++)
		if (str_eq(groups[i].last, last))
			return groups[i].rules;
	return "";
}

bool conf_suffix_is_shared(const char *domain)
{
	const char *dot = strrchr(domain, '.');
	struct labels own = {domain, dot ? (size_t)(dot - domain) : 0};
	bool shared = false;

	if (!dot)
		return true; /* "com" */
	for (const char *p = rules_of(dot + 1); *p; p += strspn(p, " ")) {
		struct labels rule = {p, strcspn(p, " ")};

		if (*p == '!' && is_same((struct labels){p + 1, rule.n - 1}, own))
			return false;
		shared = shared || (*p != '!' && is_shared_by(rule, own));
		p += rule.n;
	}
	return shared;
}
