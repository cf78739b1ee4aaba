/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See unit_template.h.
 */
#include "cli/pod/unit_template.h"

#include "cli/ui/render.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/utf8.h"
#include <assert.h>
#include <inttypes.h>
#include <limits.h>

#define LETTERS_DIGITS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
#define NAME_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
#define VALUE_MAX_BYTES 4096
#define ITEM_NAME "ITEM"

/* ---- values ----------------------------------------------------------------- */

static bool is_printable(const char *text)
{
	cleanup_buf struct buf b = {0};

	buf_init(&b, (size_t)16 * VALUE_MAX_BYTES);
	render_escape(&b, text, strlen(text), 0);
	return buf_ok(&b) && utf8_is_valid(text, strlen(text)) &&
	       str_eq(buf_str(&b), text);
}

/* The path as a message may show it: what is wrong with it is visible there. */
static int refuse(struct err *err, const char *text, const char *why)
{
	return err_set_id(err, ERRID_BIND_VALUE, "'%.300s': %s", text, why);
}

int unit_path_check(const char *path, struct err *err)
{
	if (path[0] != '/')
		return refuse(err, path, "not an absolute path");
	if (strlen(path) >= PATH_MAX)
		return refuse(err, path, "too long");
	if (!is_printable(path))
		return refuse(err, path, "an unprintable or invisible character");
	if (strchr(path, '%'))
		return refuse(err, path, "'%' is a specifier of systemd");
	if (strchr(path, '\\'))
		return refuse(err, path, "a backslash begins an escape of systemd");
	if (strpbrk(path, "\"'`$"))
		return refuse(err, path, "a quote or '$' is not taken as it stands");
	if (strpbrk(path, " \t:,;"))
		return refuse(err, path, "a blank, ':', ',' or ';' ends it early");
	if (path[1] == '\0')
		return 0;
	for (const char *at = path; *at;) {
		size_t n = strcspn(++at, "/");

		if (n == 0 || (n == 1 && at[0] == '.') ||
		    (n == 2 && !strncmp(at, "..", 2)))
			return refuse(err, path, "an empty, '.' or '..' component");
		at += n;
	}
	return 0;
}

static int check_chars(const char *text, const char *more, struct err *err)
{
	size_t n = strspn(text, LETTERS_DIGITS);

	if (n == 0)
		return refuse(err, text, "must begin with a letter or digit");
	while (text[n] && (strchr(LETTERS_DIGITS, text[n]) || strchr(more, text[n])))
		n++;
	if (text[n])
		return refuse(err, text, "a character that is not allowed here");
	if (n > 255)
		return refuse(err, text, "too long");
	return 0;
}

/* A name in a registry or in the user's storage. Quadlet takes one that ends so for a unit
 * (podman-systemd.unit(5), "Image="), and Podman one that begins so for a file, a directory or
 * another program's store (containers-transports(5)). */
static int check_image(const char *text, struct err *err)
{
	static const char *const units[] = {".build", ".image"};
	static const char *const transports[] = {"atomic:",
						 "containers-storage:",
						 "dir:",
						 "docker:",
						 "docker-archive:",
						 "docker-daemon:",
						 "oci:",
						 "oci-archive:",
						 "ostree:",
						 "sif:",
						 "tarball:"};

	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (str_ends(text, units[i]))
			return refuse(err, text, "the name of a unit, and no image's");
	for (size_t i = 0; i < ARRAY_SIZE(transports); i++)
		if (str_starts(text, transports[i]))
			return refuse(err, text, "a place, and no image's name");
	return check_chars(text, "._-/:@", err);
}

/* SOURCE:DESTINATION:options, for Volume=. */
static int check_bind(const char *text, struct err *err)
{
	const char *second = strchr(text, ':');
	const char *third = second ? strchr(second + 1, ':') : NULL;

	if (!third || strchr(third + 1, ':'))
		return refuse(err, text, "not SOURCE:DESTINATION:OPTIONS");
	cleanup_free char *from = xstrndup(text, (size_t)(second - text));
	cleanup_free char *to = xstrndup(second + 1, (size_t)(third - second - 1));

	if (unit_path_check(from, err) < 0 || unit_path_check(to, err) < 0)
		return -1;
	if (!third[1] || third[1 + strspn(third + 1, "rowzZ,")])
		return refuse(err, text, "mount options that are not known");
	return 0;
}

static int check_value(enum unit_value_kind kind, const char *text, struct err *err)
{
	switch (kind) {
	case UNIT_WORD:
		return check_chars(text, "._-", err);
	case UNIT_IMAGE:
		return check_image(text, err);
	case UNIT_PATH:
		return unit_path_check(text, err);
	case UNIT_BIND:
		return check_bind(text, err);
	}
	return refuse(err, text, "of no known kind");
}

static struct unit_value *find(const struct unit_values *v, const char *name, size_t len)
{
	for (size_t i = 0; i < v->n; i++)
		if (strlen(v->v[i].name) == len && !strncmp(v->v[i].name, name, len))
			return &v->v[i];
	return NULL;
}

static struct unit_value *value_new(struct unit_values *v, const char *name)
{
	struct unit_value *value;

	assert(!find(v, name, strlen(name)));
	v->v = xreallocarray(v->v, v->n + 1, sizeof(*v->v));
	value = &v->v[v->n++];
	*value = (struct unit_value){.shape = UNIT_IS_TEXT};
	if (str_copy(value->name, sizeof(value->name), name) < 0)
		abort(); /* a name in our own source */
	return value;
}

static void append(struct unit_value *value, const char *text)
{
	value->item = xreallocarray(value->item, value->n + 1, sizeof(*value->item));
	value->item[value->n++] = xstrdup(text);
}

int unit_values_text(struct unit_values *v, const char *name, enum unit_value_kind kind,
		     const char *text, struct err *err)
{
	struct unit_value *value = value_new(v, name);

	if (!text)
		return 0;
	if (check_value(kind, text, err) < 0)
		return err_wrap(err, "%s", name);
	append(value, text);
	return 0;
}

void unit_values_number(struct unit_values *v, const char *name, uint64_t number)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%" PRIu64, number);
	append(value_new(v, name), text);
}

void unit_values_flag(struct unit_values *v, const char *name, bool flag)
{
	struct unit_value *value = value_new(v, name);

	value->shape = UNIT_IS_FLAG;
	value->flag = flag;
}

void unit_values_list(struct unit_values *v, const char *name)
{
	value_new(v, name)->shape = UNIT_IS_LIST;
}

int unit_values_add(struct unit_values *v, const char *name, enum unit_value_kind kind,
		    const char *item, struct err *err)
{
	struct unit_value *value = find(v, name, strlen(name));

	assert(value && value->shape == UNIT_IS_LIST);
	if (check_value(kind, item, err) < 0)
		return err_wrap(err, "%s", name);
	append(value, item);
	return 0;
}

void unit_values_done(struct unit_values *v)
{
	for (size_t i = 0; i < v->n; i++) {
		for (size_t k = 0; k < v->v[i].n; k++)
			free(v->v[i].item[k]);
		free(v->v[i].item);
	}
	free(v->v);
	*v = (struct unit_values){0};
}

/* ---- templates -------------------------------------------------------------- */

struct render {
	const char *name;
	unsigned line;
	const struct unit_values *v;
	struct buf *out;
	struct err *err;
};

static int fail_name(const struct render *r, const char *name, size_t len,
		     const char *why)
{
	return err_set_id(r->err, ERRID_BIND_TEMPLATE, "%s:%u: @%.*s@: %s", r->name,
			  r->line, (int)(len > 64 ? 64 : len), name, why);
}

/* The length of the name when "@NAME@" stands at `at`, whose mark is 1 byte ("@") or 2
 * ("@?", "@*"); 0: it is no placeholder. */
static size_t placeholder(const char *at, const char *end, size_t mark)
{
	const char *name = at + mark;
	size_t n = 0;

	while (name + n < end && name[n] && strchr(NAME_CHARS, name[n]))
		n++;
	if (n == 0 || name + n >= end || name[n] != '@' ||
	    !(name[0] >= 'A' && name[0] <= 'Z'))
		return 0;
	return n;
}

static int put_value(const struct render *r, const char *name, size_t len,
		     const char *item)
{
	const struct unit_value *value = find(r->v, name, len);

	if (len == strlen(ITEM_NAME) && !strncmp(name, ITEM_NAME, len)) {
		if (!item)
			return fail_name(r, name, len, "only in a line of a list");
		buf_adds(r->out, item);
		return 0;
	}
	if (!value)
		return fail_name(r, name, len, "unknown");
	if (value->shape == UNIT_IS_FLAG)
		return fail_name(r, name, len, "true or false, no text");
	if (value->shape == UNIT_IS_LIST)
		return fail_name(r, name, len, "a list, no text");
	if (value->n == 0)
		return fail_name(r, name, len, "is not set");
	buf_adds(r->out, value->item[0]);
	return 0;
}

static int put_line(const struct render *r, const char *at, const char *end,
		    const char *item)
{
	while (at < end) {
		const char *next = memchr(at, '@', (size_t)(end - at));
		size_t len;

		if (!next) {
			buf_add(r->out, at, (size_t)(end - at));
			break;
		}
		buf_add(r->out, at, (size_t)(next - at));
		len = placeholder(next, end, 1);
		if (len == 0) {
			buf_addc(r->out, '@');
			at = next + 1;
			continue;
		}
		if (put_value(r, next + 1, len, item) < 0)
			return -1;
		at = next + len + 2;
	}
	buf_addc(r->out, '\n');
	return 0;
}

/* "@?NAME@ rest" and "@*NAME@ rest". */
static int take_marked(const struct render *r, const char *at, const char *end)
{
	size_t len = placeholder(at, end, 2);
	const char *rest = at + len + 3;
	const struct unit_value *value;
	bool is_list = at[1] == '*';

	if (len == 0 || rest >= end || *rest != ' ')
		return err_set_id(r->err, ERRID_BIND_TEMPLATE,
				  "%s:%u: not '@%cNAME@ line'", r->name, r->line, at[1]);
	rest++;
	value = find(r->v, at + 2, len);
	if (!value)
		return fail_name(r, at + 2, len, "unknown");
	if (is_list != (value->shape == UNIT_IS_LIST))
		return fail_name(r, at + 2, len,
				 is_list ? "no list" : "a list: use '@*'");
	if (!is_list)
		return value->flag || value->n ? put_line(r, rest, end, NULL) : 0;
	for (size_t i = 0; i < value->n; i++)
		if (put_line(r, rest, end, value->item[i]) < 0)
			return -1;
	return 0;
}

int unit_template_render(const char *name, const char *text, size_t len,
			 const struct unit_values *v, struct buf *out, struct err *err)
{
	struct render r = {.name = name, .v = v, .out = out, .err = err};
	const char *end = text + len;

	if (len == 0 || text[len - 1] != '\n' || !utf8_is_valid(text, len))
		return err_set_id(err, ERRID_BIND_TEMPLATE,
				  "%s: empty, not UTF-8, or without a last newline",
				  name);
	for (const char *at = text; at < end;) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		bool marked =
			stop - at >= 2 && at[0] == '@' && (at[1] == '?' || at[1] == '*');

		r.line++;
		if (str_has_control(at, (size_t)(stop - at)))
			return err_set_id(err, ERRID_BIND_TEMPLATE,
					  "%s:%u: a control byte", name, r.line);
		if ((marked ? take_marked(&r, at, stop) : put_line(&r, at, stop, NULL)) <
		    0)
			return -1;
		at = stop + 1;
	}
	if (!buf_ok(out))
		return err_set_id(err, ERRID_BIND_TEMPLATE, "%s: above %zu bytes", name,
				  out->max);
	return 0;
}
