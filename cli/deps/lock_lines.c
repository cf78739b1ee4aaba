/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See lock_lines.h. Of TOML this reads what cargo writes, line by line, and nothing else.
 */
#include "cli/deps/lock_lines.h"

#include "common/proto/deps.h"
#include "common/str.h"

#include <string.h>

#define VALUE_SIZE 512

enum section { NO_VERSION, AT_TOP, IN_PACKAGE, IN_LIST, IN_UNUSED };

struct cargo {
	enum section at;
	unsigned long line;
	char name[VALUE_SIZE], version[VALUE_SIZE], source[VALUE_SIZE], sum[VALUE_SIZE];
	lock_put *put;
	void *arg;
};

/* The next line without its end, in out; false: there is none, or it does not fit. */
static bool next_line(const char **at, const char *end, char *out, size_t size)
{
	const char *stop = memchr(*at, '\n', (size_t)(end - *at));
	size_t len = (size_t)((stop ? stop : end) - *at);

	if (*at == end || len >= size || memchr(*at, '\0', len))
		return false;
	memcpy(out, *at, len);
	if (len && out[len - 1] == '\r')
		len--;
	out[len] = '\0';
	*at = stop ? stop + 1 : end;
	return true;
}

static int refuse(const struct cargo *c, const char *why, struct err *err)
{
	return err_set_id(err, ERRID_SPEC_DEPS, "line %lu: %s", c->line, why);
}

/* The package that ends here. */
static int put_crate(struct cargo *c, struct err *err)
{
	char text[VALUE_SIZE * 4];

	if (c->at != IN_PACKAGE || !c->source[0])
		return 0; /* the project's own has no source */
	if (!str_eq(c->source, DEPS_CRATES_IO) &&
	    !str_eq(c->source, "sparse+https://index.crates.io/"))
		return err_set_id(err, ERRID_SPEC_DEPS,
				  "%.64s is of another place than crates.io: %.200s; "
				  "vendor it, and hand it in by --dir",
				  c->name, c->source);
	if (!c->sum[0])
		return err_set_id(err, ERRID_SPEC_DEPS, "%.64s has no checksum", c->name);
	if (str_fmt(text, sizeof(text), "%s[]@=%s --hash=sha256:%s", c->name, c->version,
		    c->sum) < 0)
		return refuse(c, "too long", err);
	return c->put(c->arg, text, err);
}

static int begin_section(struct cargo *c, const char *line, struct err *err)
{
	if (put_crate(c, err) < 0)
		return -1;
	c->name[0] = c->version[0] = c->source[0] = c->sum[0] = '\0';
	if (str_eq(line, "[[package]]"))
		c->at = IN_PACKAGE;
	else if (str_eq(line, "[[patch.unused]]"))
		c->at = IN_UNUSED;
	else
		return refuse(
			c,
			"a section that version 3 and 4 of Cargo.lock have not; "
			"'cargo update --workspace' with a newer cargo writes it anew",
			err);
	return 0;
}

/* "KEY = VALUE", of which the value is a string without escapes. */
static int read_value(struct cargo *c, const char *value, char out[VALUE_SIZE],
		      struct err *err)
{
	size_t len = strlen(value);

	if (len < 2 || value[0] != '"' || value[len - 1] != '"' || strchr(value, '\\') ||
	    memchr(value + 1, '"', len - 2) || out[0])
		return refuse(c, "not a string as cargo writes it", err);
	return str_fmt(out, VALUE_SIZE, "%.*s", (int)len - 2, value + 1) < 0
		       ? refuse(c, "too long", err)
		       : 0;
}

static int read_key(struct cargo *c, const char *line, struct err *err)
{
	const struct {
		const char *key;
		char *value;
	} keys[] = {{"name = ", c->name},
		    {"version = ", c->version},
		    {"source = ", c->source},
		    {"checksum = ", c->sum}};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (str_starts(line, keys[i].key))
			return read_value(c, line + strlen(keys[i].key), keys[i].value,
					  err);
	if (!str_starts(line, "dependencies = ["))
		return refuse(c, "a key that Cargo.lock has not", err);
	if (!str_ends(line, "]"))
		c->at = IN_LIST;
	return 0;
}

static int read_line(struct cargo *c, const char *line, struct err *err)
{
	if (!*line || *line == '#')
		return 0;
	if (c->at == IN_LIST) { /* of names, each of which has a package of its own */
		if (str_eq(line, "]"))
			c->at = IN_PACKAGE;
		return 0;
	}
	if (c->at == NO_VERSION) {
		c->at = AT_TOP;
		return str_eq(line, "version = 3") || str_eq(line, "version = 4")
			       ? 0
			       : refuse(c,
					"not version 3 or 4 of Cargo.lock, which a newer "
					"cargo writes by 'cargo update --workspace'",
					err);
	}
	if (*line == '[')
		return begin_section(c, line, err);
	if (c->at == AT_TOP)
		return refuse(c, "a key that Cargo.lock has not", err);
	return c->at == IN_PACKAGE ? read_key(c, line, err) : 0;
}

int lock_lines_cargo(const char *text, size_t len, lock_put *put, void *arg,
		     struct err *err)
{
	struct cargo c = {.at = NO_VERSION, .put = put, .arg = arg};
	const char *at = text, *end = text + len;
	char line[VALUE_SIZE * 2];

	while (at < end) {
		c.line++;
		if (!next_line(&at, end, line, sizeof(line)))
			return refuse(&c, "too long, or not text", err);
		if (read_line(&c, line, err) < 0)
			return -1;
	}
	if (c.at == IN_LIST)
		return refuse(&c, "it ends within a list", err);
	return put_crate(&c, err);
}

/* "MODULE VERSION HASH", as it was written in go.sum. */
int lock_lines_go(const char *text, size_t len, lock_put *put, void *arg, struct err *err)
{
	const char *at = text, *end = text + len;
	char line[DEPS_TEXT_MAX + 1];

	for (unsigned long n = 1; at < end; n++) {
		char *blank;

		if (!next_line(&at, end, line, sizeof(line)))
			return err_set_id(err, ERRID_SPEC_DEPS,
					  "line %lu: too long, or not text", n);
		blank = strchr(line, ' ');
		if (!line[0])
			continue;
		if (!blank || !strchr(blank + 1, ' '))
			return err_set_id(err, ERRID_SPEC_DEPS,
					  "line %lu: not a module, a version and a hash",
					  n);
		*blank = '@';
		if (put(arg, line, err) < 0)
			return err_wrap(err, "line %lu", n);
	}
	return 0;
}
