/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych and the vessel.
 * The subset of YAML that a codex.yaml may use: block and one-line flow mappings,
 * plain words of letters, digits and "_./:-", one-line quoted strings without
 * escapes, lists of these with a "- " each, comments. No tab, no document marker or
 * directive, no anchor, alias, tag, merge, flow sequence, block scalar or complex key, no control byte, no
 * invisible line break. So what a person reads is what the parser reads.
 */
#include "common/conf/priv.h"

#include "common/str.h"
#include "common/utf8.h"

#include <string.h>

static int refuse(struct err *err, unsigned line, const char *why)
{
	return err_set_id(err, ERRID_START_CONFIG, "line %u: %s", line, why);
}

static bool is_plain(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
	       (c >= 'A' && c <= 'Z') || (c != '\0' && strchr(" _./:,-{}", c));
}

/* Characters that YAML 1.1 takes for line breaks, and the BOM: invisible to a person. */
static bool has_hidden_break(const char *s, size_t len)
{
	static const char *const hidden[] = {"\xc2\x85", "\xe2\x80\xa8", "\xe2\x80\xa9",
					     "\xef\xbb\xbf"};

	for (size_t i = 0; i < ARRAY_SIZE(hidden); i++)
		if (memmem(s, len, hidden[i], strlen(hidden[i])))
			return true;
	return false;
}

/* ... and of the C1 set, which a terminal obeys too. */
static bool has_c1(const char *s, size_t len)
{
	for (size_t i = 0; i + 1 < len; i++)
		if (s[i] == '\xc2' && (unsigned char)s[i + 1] < 0xa0)
			return true;
	return false;
}

/* What no line may have, in quotes and comments neither. */
static int lint_bytes(const char *s, size_t len, unsigned line, struct err *err)
{
	if (!utf8_is_valid(s, len))
		return refuse(err, line, "not UTF-8: save the file as UTF-8");
	if (has_hidden_break(s, len))
		return refuse(err, line,
			      "a hidden line break or byte order mark: write the line "
			      "anew, or save the file as UTF-8 without one");
	if (memchr(s, '\t', len))
		return refuse(err, line, "tab: use blanks");
	if (memchr(s, '\0', len))
		return refuse(err, line, "NUL byte: save the file as UTF-8");
	if (len > 0 && s[len - 1] == '\r')
		return refuse(err, line,
			      "a carriage return at its end: save the file with the "
			      "line ends of Unix");
	if (str_has_control(s, len) || has_c1(s, len))
		return refuse(err, line, "control byte: leave it out");
	return 0;
}

static int lint_line(const char *s, size_t len, unsigned line, struct err *err)
{
	char quote = '\0';

	if (lint_bytes(s, len, line, err) < 0)
		return -1;
	if (len >= 3 && (memcmp(s, "---", 3) == 0 || memcmp(s, "...", 3) == 0))
		return refuse(err, line, "a document marker: one document only");
	for (size_t i = 0; i < len; i++) {
		if (s[i] == '\\' && quote)
			return refuse(err, line, "a backslash in quotes");
		if (quote) {
			if (s[i] == quote)
				quote = '\0';
		} else if (s[i] == '#') {
			if (i > 0 && s[i - 1] != ' ')
				return refuse(err, line,
					      "'#' inside of a word: quote it");
			return 0;
		} else if (s[i] == '"' || s[i] == '\'') {
			/* Within a plain word a quote has no meaning: no room for doubt.
			 */
			if (i > 0 && !strchr(" {,", s[i - 1]))
				return refuse(err, line, "a quote inside of a word");
			quote = s[i];
		} else if (s[i] == '[') {
			return refuse(err, line,
				      "[a, b]: give each on a line of its own below the "
				      "key, as '- a' and '- b'");
		} else if (!is_plain(s[i])) {
			return refuse(err, line,
				      "YAML beyond keys and plain values: quote it "
				      "or leave it out");
		}
	}
	if (quote)
		return refuse(err, line, "a quote is not closed on its line");
	return 0;
}

int conf_lint(const char *text, size_t len, struct err *err)
{
	const char *at = text, *end = text + len;
	unsigned line = 1;

	while (at < end) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));
		size_t n = (size_t)((nl ? nl : end) - at);

		if (lint_line(at, n, line, err) < 0)
			return -1;
		at += n + 1;
		line++;
	}
	return 0;
}

/* Does the key `name` (n bytes) stand at `at`, which is inside a line from `start`? */
static bool key_at(const char *start, const char *at, const char *name, size_t n)
{
	const char *after = at + n;

	if (strncmp(at, name, n) != 0 || (at > start && !strchr(" {,\"'", at[-1])))
		return false;
	if (*after == '"' || *after == '\'')
		after++;
	after += strspn(after, " ");
	return *after == ':';
}

unsigned conf_line_of_name(const char *text, const char *name, unsigned from,
			   unsigned nth)
{
	const char *line_start = text;
	size_t n = strlen(name);
	unsigned line = 1;

	for (const char *at = text; *at; at++) {
		if (*at == '\n') {
			line_start = at + 1;
			line++;
		} else if (*at == '#' && (at == line_start || at[-1] == ' ')) {
			at += strcspn(at, "\n") - 1;
		} else if (line >= from && key_at(line_start, at, name, n) &&
			   --nth == 0) {
			return line;
		}
	}
	return from;
}

unsigned conf_line_of(const char *text, const char *dotted_key)
{
	const char *line_start = text;
	const char *name = dotted_key;
	size_t n = strcspn(name, ".");
	unsigned line = 1;

	/* Each component stands behind the one that it belongs to. */
	for (const char *at = text; *at; at++) {
		if (*at == '\n') {
			line_start = at + 1;
			line++;
		} else if (*at == '#' && (at == line_start || at[-1] == ' ')) {
			at += strcspn(at, "\n") - 1;
		} else if (key_at(line_start, at, name, n)) {
			if (!name[n])
				return line;
			at += n;
			name += n + 1;
			n = strcspn(name, ".");
		}
	}
	return 1;
}

unsigned conf_line_of_item(const char *text, const char *list, unsigned at)
{
	const char *line = text;
	size_t n = strlen(list), indent = 0;
	unsigned number = 1;
	bool inside = false;

	for (; line; number++) {
		size_t blanks = strspn(line, " ");
		bool is_dash = line[blanks] == '-' && line[blanks + 1] == ' ';

		if (inside && is_dash && (indent == 0 || blanks + 1 == indent)) {
			indent = blanks + 1;
			if (at-- == 0)
				return number;
		}
		if (key_at(line, line + strspn(line, "\"'"), list, n))
			inside = true;
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	return 1;
}
