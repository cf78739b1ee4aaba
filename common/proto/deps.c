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

/* "[a,b]", each a name; 0 when it is none. */
static size_t names(const char *s, size_t (*name_at)(const char *s))
{
	size_t n = 1;

	for (;;) {
		size_t name = name_at(s + n);

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
		n = names(s, python_name);
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

/* crates.io's names: a letter first, letters, digits, '_' and '-', at most 64. */
static size_t crate_name(const char *s)
{
	size_t n = isalpha((unsigned char)*s) ? str_run(s, "_-") : 0;

	return n <= 64 ? n : 0;
}

static size_t feature(const char *s)
{
	return alnum(s[0]) || s[0] == '_' ? str_run(s, "_-+.") : 0;
}

/* "[derive,std]", or "[]"; 0 when it is none. */
static size_t features(const char *s)
{
	return s[1] == ']' ? 2 : names(s, feature);
}

/* One operator of cargo's, then a version or a part of one. */
static size_t crate_version(const char *s)
{
	static const char *const operators[] = {">=", "<=", "=", "^", "~", ">", "<"};
	size_t n = 0, version;

	for (size_t i = 0; !n && i < ARRAY_SIZE(operators); i++)
		if (str_starts(s, operators[i]))
			n = strlen(operators[i]);
	version = isdigit((unsigned char)s[n]) ? str_run(s + n, ".+-") : 0;
	return version ? n + version : 0;
}

/* "=1.2.3" or "1.2.3": one version and no other. */
static bool is_exact(const char *s, size_t len)
{
	unsigned dots = 0;
	size_t core;

	if (*s == '=') {
		s++;
		len--;
	}
	core = strcspn(s, "+-");
	for (size_t i = 0; i < len && i < core; i++) {
		if (s[i] != '.' && !isdigit((unsigned char)s[i]))
			return false;
		dots += s[i] == '.';
	}
	return dots == 2;
}

bool deps_read_crate(const char *s, struct deps_crate *ret)
{
	struct deps_crate c = {.name = s, .name_len = crate_name(s)};

	if (strlen(s) > DEPS_TEXT_MAX || !c.name_len)
		return false;
	s += c.name_len;
	if (*s == '[') {
		size_t n = features(s);

		if (!n)
			return false;
		c.features = s + 1;
		c.features_len = n - 2;
		s += n;
	}
	if (*s == '@') {
		c.version = ++s;
		c.version_len = crate_version(s);
		if (!c.version_len)
			return false;
		s += c.version_len;
	}
	if (*s) {
		if (hash(s) != strlen(s) || !c.version ||
		    !is_exact(c.version, c.version_len))
			return false;
		c.sha256 = s + strlen(HASH_OPTION);
	}
	*ret = c;
	return true;
}

bool deps_is_crate(const char *s)
{
	struct deps_crate c;

	return deps_read_crate(s, &c);
}

/* "example.org/Some/thing/v2": what a URL may have, the first part the name of a host. */
static size_t module_path(const char *s)
{
	size_t n = str_run(s, "-._~/"), first = strcspn(s, "/");

	if (!n || first >= n || !memchr(s, '.', first) || s[0] == '-' || s[0] == '.')
		return 0;
	for (size_t i = 0; i < n;) {
		size_t len = strcspn(s + i, "/");

		if (i + len > n)
			len = n - i;
		if (!len || s[i] == '.' || s[i + len - 1] == '.')
			return 0;
		i += len + 1;
		if (i == n) /* a slash at the end */
			return 0;
	}
	return n;
}

/* "v1.2.3", "v1.2.3-pre+incompatible": a version in full, not a branch or "latest". */
static size_t module_version(const char *s)
{
	size_t n = *s == 'v' ? 1 + str_run(s + 1, ".+-") : 0;

	return n && is_exact(s + 1, n - 1) && alnum(s[n - 1]) ? n : 0;
}

#define H1_LETTERS 43 /* and "=": the base64 of 32 bytes */

bool deps_read_module(const char *s, struct deps_module *ret)
{
	struct deps_module m = {.path = s, .path_len = module_path(s)};

	if (strlen(s) > DEPS_TEXT_MAX || !m.path_len)
		return false;
	s += m.path_len;
	if (*s++ != '@')
		return false;
	m.version = s;
	m.version_len = module_version(s);
	if (!m.version_len)
		return false;
	s += m.version_len;
	m.is_mod = str_starts(s, "/go.mod ");
	s += m.is_mod ? strlen("/go.mod") : 0;
	if (*s) {
		if (!str_starts(s, " h1:"))
			return false;
		m.h1 = s + 1;
		s += strlen(" h1:");
		if (str_run(s, "+/") != H1_LETTERS || !str_eq(s + H1_LETTERS, "="))
			return false;
	}
	*ret = m;
	return true;
}

bool deps_is_module(const char *s)
{
	struct deps_module m;

	return deps_read_module(s, &m);
}
