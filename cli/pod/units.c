/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See units.h.
 */
#include "cli/pod/units.h"

#include "cli/base/paths.h"
#include "cli/base/trusted.h"
#include "common/cleanup.h"
#include "common/crypto/sha256.h"
#include "common/mem.h"
#include "common/proto.h"
#include "common/str.h"
#include <ctype.h>
#include <errno.h>

#define TEMPLATE_SUFFIX ".in"

/* ---- names ------------------------------------------------------------------ */

/* suffix of the unit, what Quadlet puts before ".service" */
static const struct {
	const char *suffix, *service;
} kinds[] = {
	{".container", ""},	{".pod", "-pod"},     {".network", "-network"},
	{".volume", "-volume"}, {".build", "-build"}, {".image", "-image"},
	{".path", NULL},	{".service", NULL},
};

static int kind_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (str_ends(name, kinds[i].suffix))
			return (int)i;
	return -1;
}

bool unit_is_of_host(const char *name)
{
	int kind = kind_of(name);

	return kind >= 0 && !kinds[kind].service;
}

bool unit_name_is_ours(const char *name)
{
	int kind = kind_of(name);
	size_t n, stem;

	if (kind < 0 || !str_starts(name, "lychgate") || strlen(name) >= UNIT_NAME_MAX)
		return false;
	stem = strlen(name) - strlen(kinds[kind].suffix);
	n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");
	return n == stem &&
	       (stem == strlen("lychgate") || name[strlen("lychgate")] == '-');
}

int unit_service(const char *name, char *out, size_t size, struct err *err)
{
	int kind = kind_of(name), r = -1;

	if (kind >= 0 && !kinds[kind].service)
		r = str_copy(out, size, name);
	else if (kind >= 0)
		r = str_fmt(out, size, "%.*s%s.service",
			    (int)(strlen(name) - strlen(kinds[kind].suffix)), name,
			    kinds[kind].service);
	if (r < 0)
		return err_set_id(err, ERRID_BIND_TEMPLATE, "%s: no unit of ours", name);
	return 0;
}

const struct unit *units_find(const struct unit_set *s, const char *name)
{
	for (size_t i = 0; i < s->n; i++)
		if (str_eq(s->unit[i].name, name))
			return &s->unit[i];
	return NULL;
}

char *unit_image(const char *room, const struct conf_unit *u, const char *label)
{
	return u->image ? xstrdup(u->image)
			: xasprintf("localhost/lychgate-%s:%s", room,
				    label ? label : LYCH_VERSION);
}

void units_done(struct unit_set *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->unit[i].text);
	s->n = 0;
}

/* ---- templates -------------------------------------------------------------- */

int units_find_templates(const char *profile, char **ret, struct err *err)
{
	cleanup_free char *name = xasprintf("quadlet/%s", profile);
	cleanup_free char *installed = NULL;
	cleanup_free char *self = NULL;
	cleanup_free char *tree = NULL;
	char *slash;

	if (paths_installed(name, &installed, err) < 0 || paths_self(&self, err) < 0)
		return -1;
	*strrchr(self, '/') = '\0'; /* TREE/build/VARIANT */
	slash = strrchr(self, '/');
	if (slash)
		*slash = '\0';
	if (str_ends(self, "/build"))
		tree = xasprintf("%.*s/%s", (int)(strlen(self) - strlen("/build")), self,
				 name);
	*ret = realpath(installed, NULL);
	if (!*ret && tree)
		*ret = realpath(tree, NULL);
	if (!*ret)
		return err_sys_id(err, ERRID_BIND_TEMPLATE, "%s",
				  tree ? tree : installed);
	return 0;
}

static int render_one(const char *dir, const char *file, bool host,
		      const struct unit_values *v, struct unit_set *s, struct err *err)
{
	cleanup_free char *path = xasprintf("%s/%s", dir, file);
	cleanup_free char *text = NULL;
	cleanup_sha256 struct sha256 *h = sha256_new();
	cleanup_buf struct buf out = {0};
	struct unit *u;
	size_t len;

	if (s->n == UNITS_MAX)
		return err_set_id(err, ERRID_BIND_TEMPLATE, "%s: more than %d templates",
				  dir, UNITS_MAX);
	u = &s->unit[s->n];
	*u = (struct unit){0};
	if (str_fmt(u->name, sizeof(u->name), "%.*s",
		    (int)(strlen(file) - strlen(TEMPLATE_SUFFIX)), file) < 0 ||
	    !unit_name_is_ours(u->name) || unit_is_of_host(u->name) != host)
		return err_set_id(err, ERRID_BIND_TEMPLATE,
				  "%s: not lychgate*.container.in "
				  "or another unit of Quadlet",
				  path);
	if (trusted_read(path, UNIT_TEMPLATE_MAX_BYTES, ERRID_BIND_TEMPLATE, &text, &len,
			 err) < 0)
		return -1;
	buf_init(&out, UNIT_MAX_BYTES);
	if (unit_template_render(file, text, len, v, &out, err) < 0)
		return -1;
	sha256_add(h, out.data, out.len);
	sha256_hex(h, u->sha256);
	u->text = buf_take(&out, &u->len);
	s->n++;
	return 0;
}

static int is_template(const struct dirent *e)
{
	return str_ends(e->d_name, TEMPLATE_SUFFIX);
}

int units_render(const char *dir, bool host, const struct unit_values *v,
		 struct unit_set *ret, struct err *err)
{
	cleanup_free char *inside = xasprintf("%s/x", dir);
	struct dirent **names = NULL;
	int n, r = 0;

	if (trusted_above(inside, ERRID_BIND_TEMPLATE, err) < 0)
		return -1;
	n = scandir(dir, &names, is_template, alphasort);
	if (n < 0)
		return err_sys_id(err, ERRID_BIND_TEMPLATE, "%s", dir);
	for (int i = 0; i < n; i++) {
		if (r == 0)
			r = render_one(dir, names[i]->d_name, host, v, ret, err);
		free(names[i]);
	}
	free(names);
	if (r == 0 && ret->n == 0)
		return err_set_id(err, ERRID_BIND_TEMPLATE, "%s holds no template", dir);
	return r;
}

/* ---- lines ------------------------------------------------------------------ */

static void copy_part(char *out, size_t size, const char *text, size_t len)
{
	while (len && isblank((unsigned char)*text)) {
		text++;
		len--;
	}
	while (len && isblank((unsigned char)text[len - 1]))
		len--;
	if (len >= size)
		len = size - 1;
	memcpy(out, text, len);
	out[len] = '\0';
}

bool unit_next_line(struct unit_line *l)
{
	while (*l->at) {
		const char *line = l->at;
		size_t len = strcspn(line, "\n");
		const char *eq = memchr(line, '=', len);

		l->at += len + (line[len] == '\n');
		l->number++;
		while (len && isblank((unsigned char)*line)) {
			line++;
			len--;
		}
		if (len == 0 || *line == '#' || *line == ';')
			continue;
		if (*line == '[') {
			copy_part(l->section, sizeof(l->section), line, len);
			continue;
		}
		copy_part(l->key, sizeof(l->key), line, eq ? (size_t)(eq - line) : len);
		copy_part(l->value, sizeof(l->value), eq ? eq + 1 : "",
			  eq ? (size_t)(line + len - eq - 1) : 0);
		return true;
	}
	return false;
}

void units_secrets(const struct unit_set *s, char ***ret, size_t *ret_n)
{
	char **names = NULL;
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++) {
		struct unit_line l = {.at = s->unit[i].text};

		while (unit_next_line(&l)) {
			size_t k = 0;

			if (!str_eq(l.key, "Secret"))
				continue;
			l.value[strcspn(l.value, ",")] = '\0';
			while (k < n && !str_eq(names[k], l.value))
				k++;
			if (k < n)
				continue;
			names = xreallocarray(names, n + 1, sizeof(*names));
			names[n++] = xstrdup(l.value);
		}
	}
	*ret = names;
	*ret_n = n;
}
