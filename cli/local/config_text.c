/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * Finds a key in the subset of YAML that common/conf/lint.c admits (block and flow mappings, one-line
 * quotes, no escapes), and writes in one place. What it does not understand it leaves to a person;
 * that it understood is proved afterwards: the parser reads both texts, and all other values are equal.
 */
#include "cli/local/config_text.h"

#include "common/cleanup.h"
#include "common/conf/conf.h"
#include "common/mem.h"
#include "common/str.h"
#include <stdbool.h>
#include <string.h>

/* Where a value stands, or where the key would be written (from == to). */
struct place {
	size_t from, to;
	const char *missing; /* what of the key is not there yet; NULL: all is */
	bool in_flow;
	bool is_first;	/* of its flow mapping */
	size_t columns; /* of a line in a block */
};

/* ---- words ------------------------------------------------------------------- */

static size_t line_end(const char *t, size_t at)
{
	return at + strcspn(t + at, "\n");
}

static size_t skip_blanks(const char *t, size_t at)
{
	return at + strspn(t + at, " ");
}

/* Behind the value that begins at `at`; a flow mapping that does not end on its line: `at`. */
static size_t value_end(const char *t, size_t at, bool in_flow)
{
	size_t end = line_end(t, at), depth = 0;
	char quote = '\0';

	for (size_t i = at; i < end; i++) {
		if (quote) {
			quote = t[i] == quote ? '\0' : quote;
			if (!quote && depth == 0)
				return i + 1;
		} else if (t[i] == '"' || t[i] == '\'') {
			quote = t[i];
		} else if (t[i] == '{') {
			depth++;
		} else if (t[i] == '}' && depth > 0) {
			if (--depth == 0)
				return i + 1;
		} else if (depth == 0 && ((in_flow && (t[i] == ',' || t[i] == '}')) ||
					  (t[i] == '#' && i > at && t[i - 1] == ' '))) {
			end = i;
		}
	}
	if (depth)
		return at;
	while (end > at && t[end - 1] == ' ')
		end--;
	return end;
}

/* Does the first component of name stand here as a key? Where its value begins, else 0. */
static size_t key_here(const char *t, size_t at, const char *name)
{
	size_t n = strcspn(name, ".");
	char quote = t[at] == '"' || t[at] == '\'' ? t[at] : '\0';

	at += quote != '\0';
	if (strncmp(t + at, name, n) != 0)
		return 0;
	at += n;
	if (quote && t[at++] != quote)
		return 0;
	at = skip_blanks(t, at);
	return t[at] == ':' && strchr(" \n", t[at + 1]) ? skip_blanks(t, at + 1) : 0;
}

/* Is there something on the line, other than a comment? */
static bool has_content(const char *t, size_t at)
{
	at = skip_blanks(t, at);
	return t[at] && t[at] != '\n' && t[at] != '#';
}

static size_t next_line(const char *t, size_t at)
{
	at = line_end(t, at);
	return at + (t[at] == '\n');
}

/* ---- where ------------------------------------------------------------------- */

static bool find_flow(const char *t, size_t at, const char *key, struct place *ret);

/* What of the key is behind its first component; NULL: nothing. */
static const char *rest_of(const char *key)
{
	const char *dot = strchr(key, '.');

	return dot ? dot + 1 : NULL;
}

/* The key's last component is the one that has this value. */
static bool take_value(const char *t, size_t at, bool in_flow, struct place *ret)
{
	size_t end = value_end(t, at, in_flow);

	*ret = (struct place){.from = at, .to = end, .in_flow = in_flow};
	return end > at && t[at] != '{';
}

/* In the flow mapping whose '{' is at `at`. */
static bool find_flow(const char *t, size_t at, const char *key, struct place *ret)
{
	size_t close = value_end(t, at, true);
	bool is_first = true;

	if (close == at)
		return false;
	close--;
	for (at = skip_blanks(t, at + 1); at < close; at = skip_blanks(t, at)) {
		size_t value = key_here(t, at, key);
		const char *rest = rest_of(key);

		if (value && !rest)
			return take_value(t, value, true, ret);
		if (value)
			return t[value] == '{' && find_flow(t, value, rest, ret);
		is_first = false;
		/* to the ':' behind the key, then over the value */
		while (at < close && t[at] != ':')
			at = t[at] == '"' || t[at] == '\'' ? value_end(t, at, true)
							   : at + 1;
		at = value_end(t, skip_blanks(t, at + 1), true);
		at = skip_blanks(t, at);
		at += t[at] == ',';
	}
	while (close > 0 && t[close - 1] == ' ')
		close--;
	*ret = (struct place){.from = close,
			      .to = close,
			      .missing = key,
			      .in_flow = true,
			      .is_first = is_first};
	return true;
}

/* Behind the last line of a block, and what is said in it further down in its own columns. */
static size_t block_end(const char *t, size_t at, size_t columns)
{
	while (columns > 0 && skip_blanks(t, at) == at + columns &&
	       t[at + columns] == '#')
		at = next_line(t, at);
	return at;
}

/* In the block mapping that begins on the line at `at`, deeper than `above` columns. */
static bool find_block(const char *t, size_t at, size_t above, const char *key,
		       struct place *ret)
{
	size_t columns = 0, end = at, value;
	const char *rest = rest_of(key);
	bool is_inside = false;

	for (; t[at]; at = next_line(t, at)) {
		size_t indent = skip_blanks(t, at) - at;

		if (!has_content(t, at))
			continue;
		if (!is_inside && indent < above)
			break;
		if (!is_inside)
			columns = indent;
		is_inside = true;
		if (indent < columns)
			break;
		end = next_line(t, at);
		if (indent > columns || t[at + indent] == '-')
			continue;
		value = key_here(t, at + indent, key);
		if (value && !rest)
			return take_value(t, value, false, ret);
		if (value && t[value] == '{')
			return find_flow(t, value, rest, ret);
		if (value)
			return !has_content(t, value) &&
			       find_block(t, next_line(t, value), columns + 1, rest, ret);
	}
	end = columns ? block_end(t, end, columns) : strlen(t);
	*ret = (struct place){.from = end, .to = end, .missing = key, .columns = columns};
	return is_inside;
}

/* ---- writing ----------------------------------------------------------------- */

static int add_value(struct buf *out, const char *value, char quote, struct err *err)
{
	if (quote != '\0' && strchr(value, quote))
		quote = '\0';
	if (quote == '\0' && (!*value || value[str_run(value, "_./-")]))
		quote = strchr(value, '"') ? '\'' : '"';
	if (quote != '\0' && strchr(value, quote))
		return err_set_id(err, ERRID_START_CONFIG,
				  "a value with both kinds of quotes");
	if (quote)
		buf_addc(out, quote);
	buf_adds(out, value);
	if (quote)
		buf_addc(out, quote);
	return 0;
}

static int add_in_flow(struct buf *out, const struct place *p, const char *value,
		       struct err *err)
{
	size_t open = 0;

	buf_adds(out, p->is_first ? "" : ", ");
	for (const char *at = p->missing; at; at = rest_of(at)) {
		buf_addf(out, "%.*s: ", (int)strcspn(at, "."), at);
		if (rest_of(at)) {
			buf_addc(out, '{');
			open++;
		}
	}
	if (add_value(out, value, '\0', err) < 0)
		return -1;
	while (open-- > 0)
		buf_addc(out, '}');
	return 0;
}

static int add_in_block(struct buf *out, const struct place *p, const char *value,
			struct err *err)
{
	int columns = (int)p->columns;

	if (out->len && out->data[out->len - 1] != '\n')
		buf_addc(out, '\n');
	/* apart from what is above; where an unset section was, that is there already */
	if (columns == 0 && rest_of(p->missing) &&
	    !(out->len > 1 && out->data[out->len - 2] == '\n'))
		buf_addc(out, '\n');
	for (const char *at = p->missing; at; at = rest_of(at), columns += 2) {
		buf_addf(out, "%*s%.*s:", columns, "", (int)strcspn(at, "."), at);
		buf_addc(out, rest_of(at) ? '\n' : ' ');
	}
	if (add_value(out, value, '\0', err) < 0)
		return -1;
	buf_addc(out, '\n');
	return 0;
}

/* ---- taking away ------------------------------------------------------------- */

static size_t line_start(const char *t, size_t at)
{
	while (at > 0 && t[at - 1] != '\n')
		at--;
	return at;
}

static void drop(char *t, size_t from, size_t to)
{
	memmove(t + from, t + to, strlen(t + to) + 1);
}

/* A value of a flow mapping with its key and one comma; the braces stay. */
static void drop_in_flow(char *t, const struct place *p)
{
	size_t from = p->from, to = skip_blanks(t, p->to);

	/* nothing but the key is before a value */
	while (t[from - 1] != '{' && t[from - 1] != ',')
		from--;
	if (t[from - 1] == ',')
		drop(t, from - 1, p->to);
	else
		drop(t, from, t[to] == ',' ? skip_blanks(t, to + 1) : p->to);
}

/* The line at `at`, and the name of its section where nothing else is in that. */
static void drop_in_block(char *t, size_t at)
{
	for (;;) {
		size_t columns = skip_blanks(t, at) - at, above = at, below = at, indent;

		drop(t, at, next_line(t, at));
		do {
			if (above == 0)
				return;
			above = line_start(t, above - 1);
		} while (!has_content(t, above));
		while (t[below] && !has_content(t, below))
			below = next_line(t, below);
		indent = skip_blanks(t, above) - above;
		if (indent >= columns ||
		    (t[below] && skip_blanks(t, below) - below > indent))
			return;
		at = above;
	}
}

/* ---- proof ------------------------------------------------------------------- */

/* The values of a text without those of the key. */
static int others(const char *text, const char *key, char **ret_value, struct buf *out,
		  struct err *err)
{
	cleanup_buf struct buf flat = {.max = CONF_FLAT_MAX_BYTES};
	size_t n = strlen(key);

	if (conf_flatten(text, strlen(text), &flat, err) < 0)
		return -1;
	for (const char *line = buf_str(&flat); *line;) {
		size_t len = strcspn(line, "\n");

		if (strncmp(line, key, n) == 0 && line[n] == '=')
			*ret_value = xstrndup(line + n + 1, len - n - 1);
		else
			buf_add(out, line, len + 1);
		line += len + 1;
	}
	return 0;
}

static int not_ours(const char *key, struct err *err)
{
	return err_set_id(err, ERRID_START_LAYOUT, "%s", key);
}

static int prove(const char *before, const char *after, const char *key,
		 const char *value, char **ret_old, struct err *err)
{
	cleanup_buf struct buf a = {.max = (size_t)1 << 20}, b = {.max = (size_t)1 << 20};
	cleanup_free char *new = NULL;

	if (others(before, key, ret_old, &a, err) < 0 ||
	    others(after, key, &new, &b, err) < 0)
		return -1;
	return str_eq(new, value) && str_eq(buf_str(&a), buf_str(&b))
		       ? 0
		       : not_ours(key, err);
}

int config_text_set(const char *text, const char *key, const char *value, struct buf *out,
		    char **ret_old, struct err *err)
{
	struct place p;
	char first;
	int r;

	if (!find_block(text, 0, 0, key, &p))
		return not_ours(key, err);
	first = text[p.from];
	buf_add(out, text, p.from);
	if (!p.missing)
		r = add_value(out, value, first == '"' || first == '\'' ? first : '\0',
			      err);
	else if (p.in_flow)
		r = add_in_flow(out, &p, value, err);
	else
		r = add_in_block(out, &p, value, err);
	if (r < 0)
		return -1;
	buf_adds(out, text + p.to);
	if (!buf_ok(out))
		return err_set_id(err, ERRID_START_CONFIG,
				  "the file would be longer than %d bytes",
				  CONF_FILE_MAX_BYTES);
	return prove(text, buf_str(out), key, value, ret_old, err);
}

int config_text_unset(const char *text, const char *key, struct buf *out, char **ret_old,
		      struct err *err)
{
	cleanup_free char *copy = xstrdup(text);
	struct place p;

	if (!find_block(text, 0, 0, key, &p))
		return not_ours(key, err);
	if (!p.missing && p.in_flow)
		drop_in_flow(copy, &p);
	else if (!p.missing)
		drop_in_block(copy, line_start(text, p.from));
	buf_adds(out, copy);
	return prove(text, copy, key, NULL, ret_old, err);
}
