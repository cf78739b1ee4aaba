/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See deps.h.
 */
#include "common/proto/deps.h"

#include "common/str.h"
#include <ctype.h>
#include <stddef.h>
#include <string.h>

#define HASH_OPTION " --hash=sha256:"
#define HASH_DIGITS 64

static bool alnum(char c)
{
	return isalnum((unsigned char)c) != 0;
}

/* Letters, digits, '.', '_', '-'; it begins and ends with one of the first two. */
static size_t python_name(const char *s)
{
	size_t n = str_run(s, "._-");

	return n && alnum(s[0]) && alnum(s[n - 1]) ? n : 0;
}

/* "[a,b]"; 0 when it is none. */
static size_t extras(const char *s)
{
	size_t n = 1;

	for (;;) {
		size_t name = python_name(s + n);

		if (!name)
			return 0;
		n += name;
		if (s[n] == ']')
			return n + 1;
		if (s[n++] != ',')
			return 0;
	}
}

static size_t clause(const char *s)
{
	static const char *const operators[] = {
		"===", "==", ">=", "<=", "~=", "!=", "<", ">"};
	size_t n = 0, version;

	for (size_t i = 0; !n && i < ARRAY_SIZE(operators); i++)
		if (strncmp(s, operators[i], strlen(operators[i])) == 0)
			n = strlen(operators[i]);
	if (!n)
		return 0;
	version = str_run(s + n, ".*+!_-");
	return version && alnum(s[n]) ? n + version : 0;
}

static size_t hash(const char *s)
{
	size_t n = strlen(HASH_OPTION);

	if (strncmp(s, HASH_OPTION, n) != 0)
		return 0;
	for (size_t i = 0; i < HASH_DIGITS; i++)
		if (!strchr("0123456789abcdef", s[n + i]) || !s[n + i])
			return 0;
	return n + HASH_DIGITS;
}

bool deps_is_requirement(const char *s)
{
	size_t n;

	if (strlen(s) > DEPS_TEXT_MAX)
		return false;
	n = python_name(s);
	if (!n)
		return false;
	s += n;
	if (*s == '[') {
		n = extras(s);
		if (!n)
			return false;
		s += n;
	}
	for (bool more = *s && *s != ' '; more;) {
		n = clause(s);
		if (!n)
			return false;
		s += n;
		more = *s == ',';
		s += more;
	}
	while (*s) {
		n = hash(s);
		if (!n)
			return false;
		s += n;
	}
	return true;
}

/* npm's names: lower case, not a dot or an underscore first. */
static size_t npm_name(const char *s)
{
	size_t n = 0;

	while ((s[n] >= 'a' && s[n] <= 'z') || (s[n] >= '0' && s[n] <= '9') ||
	       (s[n] && strchr("._~-", s[n])))
		n++;
	return n && n <= 214 && s[0] != '.' && s[0] != '_' && s[0] != '-' && s[0] != '~'
		       ? n
		       : 0;
}

bool deps_is_npm(const char *s)
{
	size_t n;

	if (strlen(s) > DEPS_TEXT_MAX)
		return false;
	if (*s == '@') {
		n = npm_name(++s);
		if (!n || s[n] != '/')
			return false;
		s += n + 1;
	}
	n = npm_name(s);
	if (!n)
		return false;
	s += n;
	if (!*s)
		return true;
	if (*s++ != '@')
		return false;
	/* one operator, then a version or a tag */
	s += strspn(s, "^~");
	if (strncmp(s, ">=", 2) == 0 || strncmp(s, "<=", 2) == 0)
		s += 2;
	n = str_run(s, ".+-*");
	return n && alnum(s[0]) && s[n] == '\0';
}
