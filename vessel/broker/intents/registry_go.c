/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See registry_go.h.
 */
#include "vessel/broker/intents/registry_go.h"

#include "common/str.h"

#include <ctype.h>
#include <string.h>

#define VERSION_MAX 256
#define SUMDB "sumdb/"

bool registry_go_is_version(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)s[i]) && !strchr("-._~+!", s[i]))
			return false;
	return len > 0 && len <= VERSION_MAX && isalnum((unsigned char)s[0]);
}

void registry_go_spell(const char *path, struct buf *out)
{
	for (; *path; path++)
		if (path[0] == '!' && islower((unsigned char)path[1]))
			buf_addc(out, (char)toupper((unsigned char)*++path));
		else
			buf_addc(out, *path);
}

/* "example.org/!upper/v2": a capital is '!' and its small letter. */
static bool is_module(const char *s, size_t len)
{
	size_t first = strcspn(s, "/");
	bool has_dot = memchr(s, '.', first < len ? first : len) != NULL;

	for (size_t i = 0; i < len; i++) {
		if (s[i] == '!' ? i + 1 == len || !islower((unsigned char)s[i + 1])
				: !islower((unsigned char)s[i]) &&
					  !isdigit((unsigned char)s[i]) &&
					  !strchr("-._~/", s[i]))
			return false;
	}
	/* the name of a host; without a dot it is a package of Go itself */
	return has_dot && s[0] != '-' && s[len - 1] != '/';
}

static bool is_number(const char *s, size_t len)
{
	return len > 0 && strspn(s, "0123456789") >= len;
}

/* "8/0/x012/345", "8/data/0.p/17": numbers; those of a place may be cut in threes. */
static bool is_tile(const char *s)
{
	unsigned n = 0;

	for (; *s; n++) {
		size_t len = strcspn(s, "/");
		bool ok = is_number(s, len);

		if (n == 1 && len == 4)
			ok |= memcmp(s, "data", len) == 0;
		if (n >= 2 && !ok)
			ok = s[0] == 'x' ? is_number(s + 1, len - 1)
					 : len > 2 && is_number(s, len - 2) &&
						   memcmp(s + len - 2, ".p", 2) == 0;
		if (!ok)
			return false;
		s += len;
		if (*s == '/' && !*++s)
			return false;
	}
	return n >= 3 && n <= 8;
}

static enum go_path sumdb(const char *s)
{
	size_t len = strcspn(s, "/"), at;
	const char *what;

	/* the name of a host */
	if (!len || !s[len] || !memchr(s, '.', len) ||
	    strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789.-") != len)
		return GO_NOTHING;
	what = s + len + 1;
	if (str_eq(what, "supported") || str_eq(what, "latest"))
		return GO_NOTE;
	if (str_starts(what, "tile/"))
		return is_tile(what + strlen("tile/")) ? GO_FILE : GO_NOTHING;
	if (!str_starts(what, "lookup/"))
		return GO_NOTHING;
	what += strlen("lookup/");
	at = strcspn(what, "@");
	return what[at] && at > 0 && is_module(what, at) &&
			       registry_go_is_version(what + at + 1,
						      strlen(what + at + 1))
		       ? GO_NOTE
		       : GO_NOTHING;
}

enum go_path registry_go_path(const char *path)
{
	static const struct {
		const char *end;
		enum go_path what;
	} ends[] = {{".info", GO_INFO}, {".mod", GO_FILE}, {".zip", GO_FILE}};
	size_t at = strcspn(path, "@");
	const char *rest = path + at;

	if (str_starts(path, SUMDB))
		return sumdb(path + strlen(SUMDB));
	if (at < 2 || path[at - 1] != '/' || !is_module(path, at - 1))
		return GO_NOTHING;
	if (str_eq(rest, "@latest"))
		return GO_INFO;
	if (!str_starts(rest, "@v/"))
		return GO_NOTHING;
	rest += strlen("@v/");
	if (str_eq(rest, "list"))
		return GO_LIST;
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		if (str_ends(rest, ends[i].end) &&
		    registry_go_is_version(rest, strlen(rest) - strlen(ends[i].end)))
			return ends[i].what;
	return GO_NOTHING;
}
