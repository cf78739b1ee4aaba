/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See profile.h.
 */
#include "cli/jobs/profile.h"

#include "cli/base/paths.h"
#include "cli/base/trusted.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/proto/sandbox_options.h"
#include "common/str.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX_BYTES ((size_t)64 << 10)
#define FILES_READ_MAX 32
#define ITEMS_MAX 512

static const struct option_info options[] = {
#define OPTION(symbol, name, kind, repeats) {name, OPTION_##kind, repeats},
#define LIMIT(symbol, name) {name, OPTION_WORD, false},
#include "common/proto/sandbox_options.def"
};

const struct option_info *option_find(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		if (strlen(options[i].name) == len &&
		    strncmp(options[i].name, name, len) == 0)
			return &options[i];
	return NULL;
}

/* ---- the list --------------------------------------------------------------- */

/* What an option sets: two that set the same replace each other. "--limit memory=1" and
 * "--memory 1" do; so do two workspaces and two values of one variable. Caller frees. */
static char *meaning(const struct option_given *g)
{
	size_t name = g->value ? strcspn(g->value, "=") : 0;

	if (str_eq(g->info->name, "limit"))
		return xasprintf("%.*s", (int)name, g->value);
	if (str_eq(g->info->name, "env"))
		return xasprintf("env %.*s", (int)name, g->value);
	if (g->info->repeats)
		return xasprintf("%s %s", g->info->name, g->value);
	if (str_starts(g->info->name, "workspace"))
		return xstrdup("workspace");
	return xstrdup(g->info->name);
}

bool option_list_add(struct option_list *l, const struct option_info *info,
		     const char *value)
{
	struct option_given g = {info, value ? xstrdup(value) : NULL};
	cleanup_free char *mine = meaning(&g);

	for (size_t i = 0; i < l->n; i++) {
		cleanup_free char *theirs = meaning(&l->item[i]);

		if (str_eq(mine, theirs)) {
			free(l->item[i].value);
			l->item[i] = g;
			return true;
		}
	}
	l->item = xreallocarray(l->item, l->n + 1, sizeof(*l->item));
	l->item[l->n++] = g;
	return false;
}

void option_list_done(struct option_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->item[i].value);
	free(l->item);
	*l = (struct option_list){.n = 0};
}

/* ---- a file that may be believed -------------------------------------------- */

static void remember(struct profile_world *w, const char *path)
{
	w->file = xreallocarray(w->file, w->n_files + 1, sizeof(*w->file));
	w->file[w->n_files++] = xstrdup(path);
}

/* The file may be a symlink: who can replace that chooses the profile. */
static int check_place(struct profile_world *w, const char *path, struct err *err)
{
	const char *slash = strrchr(path, '/');
	cleanup_free char *dir =
		slash == path ? xstrdup("/") : xstrndup(path, (size_t)(slash - path));
	cleanup_free char *real = realpath(dir, NULL), *place = NULL;

	if (!real)
		return err_sys_id(err, ERRID_SPEC_PROFILE, "%s", dir);
	place = xasprintf("%s/%s", str_eq(real, "/") ? "" : real, slash + 1);
	remember(w, place);
	return trusted_above(place, ERRID_SPEC_PROFILE, err);
}

/* The real name of the file that `which` means; caller frees. Never looked for in the
 * working directory. */
static int find_file(struct profile_world *w, const char *which, char **ret,
		     struct err *err)
{
	const char *const dirs[] = {w->user_dir, w->system_dir};

	if (strchr(which, '/')) {
		*ret = realpath(which, NULL);
		if (!*ret)
			return err_sys_id(err, ERRID_SPEC_PROFILE, "%s", which);
		return check_place(w, which, err);
	}
	if (!isalnum((unsigned char)which[0]) || strlen(which) > NAME_MAX ||
	    which[strspn(which, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				"0123456789._-")])
		return err_set_id(err, ERRID_SPEC_PROFILE,
				  "a profile is a name of letters, digits, '.', '_' and "
				  "'-', or a file with a '/'");
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		cleanup_free char *path = xasprintf("%s/%s", dirs[i], which);

		*ret = realpath(path, NULL);
		if (*ret)
			return check_place(w, path, err);
		/* One that is there and cannot be reached is not passed over. */
		if (errno != ENOENT)
			return err_sys_id(err, ERRID_SPEC_PROFILE, "%s", path);
	}
	return err_set_id(err, ERRID_SPEC_PROFILE, "there is no profile %s in %s or %s",
			  which, dirs[0], dirs[1]);
}

/* ---- its lines -------------------------------------------------------------- */

/* The value of an option that names a path; caller frees. */
static char *expand_path(const struct profile_world *w, const char *value,
			 struct err *err)
{
	if (value[0] == '/')
		return xstrdup(value);
	if (str_eq(value, "~") || str_starts(value, "~/"))
		return xasprintf("%s%s", w->home, value + 1);
	if (!str_eq(value, ".")) {
		(void)err_set_id(err, ERRID_SPEC_PROFILE,
				 "'%.60s': a path begins with '/' or '~/', or is '.'; "
				 "there are no variables",
				 value);
		return NULL;
	}
	if (path_is_below(w->home, w->cwd)) {
		(void)err_set_id(err, ERRID_SPEC_PROFILE,
				 "'.' is %s here and would show your home directory; go "
				 "to the directory that you mean",
				 w->cwd);
		return NULL;
	}
	return xstrdup(w->cwd);
}

static int read_file(struct profile_world *w, const char *which, bool included,
		     struct option_list *l, struct err *err);

static int take_line(struct profile_world *w, char *line, bool included,
		     struct option_list *l, struct err *err)
{
	cleanup_free char *path = NULL;
	const struct option_info *info;
	char *value;
	size_t len;

	if (!str_starts(line, "--") || strcspn(line + 2, "= \t") == 0)
		return err_set_id(err, ERRID_SPEC_PROFILE,
				  "'%.40s' is not an option: --NAME VALUE", line);
	len = strcspn(line + 2, "= \t");
	value = line + 2 + len;
	if (*value == '=')
		value++;
	else
		value += strspn(value, " \t");
	if (len == 7 && str_starts(line + 2, "include")) {
		if (included)
			return err_set_id(err, ERRID_SPEC_PROFILE,
					  "an included profile includes no other");
		if (strchr(value, '/'))
			return err_set_id(err, ERRID_SPEC_PROFILE,
					  "--include takes a name, no file");
		return read_file(w, value, true, l, err);
	}
	info = option_find(line + 2, len);
	if (!info)
		return sandbox_option_unknown(ERRID_SPEC_KEY, line + 2, len, err);
	if ((info->kind == OPTION_FLAG) != (line[2 + len] == '\0'))
		return err_set_id(err, ERRID_SPEC_PROFILE, "--%s %s", info->name,
				  info->kind == OPTION_FLAG ? "has no value"
							    : "wants a value");
	if (info->kind != OPTION_FLAG && !*value)
		return err_set_id(err, ERRID_SPEC_PROFILE, "--%s wants a value",
				  info->name);
	if (l->n >= ITEMS_MAX)
		return err_set_id(err, ERRID_SPEC_PROFILE, "more than %d options",
				  ITEMS_MAX);
	if (info->kind == OPTION_PATH) {
		path = expand_path(w, value, err);
		if (!path)
			return -1;
	}
	(void)option_list_add(l, info,
			      info->kind == OPTION_FLAG ? NULL
			      : path			? path
							: value);
	return 0;
}

static int take_text(struct profile_world *w, const char *real, char *text, size_t len,
		     bool included, struct option_list *l, struct err *err)
{
	unsigned number = 0;

	for (char *line = text, *end = text + len; line < end;) {
		char *stop = memchr(line, '\n', (size_t)(end - line));
		size_t n = (size_t)((stop ? stop : end) - line);

		number++;
		line[n] = '\0'; /* there is room for one behind the last */
		for (size_t i = 0; i < n; i++)
			if (((unsigned char)line[i] < 0x20 && line[i] != '\t') ||
			    line[i] == 0x7f)
				return err_set_id(err, ERRID_SPEC_PROFILE,
						  "%s:%u: a control byte (0x%02x)", real,
						  number, (unsigned char)line[i]);
		while (n && (line[n - 1] == ' ' || line[n - 1] == '\t'))
			line[--n] = '\0';
		line += strspn(line, " \t");
		if (*line && *line != '#' && take_line(w, line, included, l, err) < 0)
			return err_wrap(err, "%s:%u", real, number);
		if (!stop)
			break;
		line = stop + 1;
	}
	return 0;
}

int profile_text(struct profile_world *w, const char *which, char **ret_real,
		 char **ret_text, size_t *ret_len, struct err *err)
{
	cleanup_free char *real = NULL;

	if (w->n_files >= FILES_READ_MAX)
		return err_set_id(err, ERRID_SPEC_PROFILE, "more than %d files",
				  FILES_READ_MAX);
	if (find_file(w, which, &real, err) < 0 ||
	    trusted_above(real, ERRID_SPEC_PROFILE, err) < 0 ||
	    trusted_read(real, FILE_MAX_BYTES, ERRID_SPEC_PROFILE, ret_text, ret_len,
			 err) < 0)
		return -1;
	remember(w, real);
	*ret_real = TAKE_PTR(real);
	return 0;
}

static int read_file(struct profile_world *w, const char *which, bool included,
		     struct option_list *l, struct err *err)
{
	cleanup_free char *real = NULL, *text = NULL;
	size_t len = 0;

	if (profile_text(w, which, &real, &text, &len, err) < 0)
		return -1;
	return take_text(w, real, text, len, included, l, err);
}

int profile_read(struct profile_world *w, const char *which, struct option_list *l,
		 struct err *err)
{
	return read_file(w, which, false, l, err);
}

/* ---- what the job could write ----------------------------------------------- */

int profile_check_grants(const struct profile_world *w, const struct option_list *l,
			 struct err *err)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct option_given *g = &l->item[i];
		cleanup_free char *real = NULL;

		if (!str_eq(g->info->name, "rw") && !str_eq(g->info->name, "workspace"))
			continue;
		real = realpath(g->value, NULL);
		for (size_t k = 0; real && k < w->n_files; k++)
			if (path_is_below(w->file[k], real))
				return err_set_id(
					err, ERRID_SPEC_PROFILE,
					"%s lies in %s, which --%s lets the job write: "
					"it could grant itself more for the next run",
					w->file[k], real, g->info->name);
	}
	return 0;
}

void profile_world_done(struct profile_world *w)
{
	for (size_t i = 0; i < w->n_files; i++)
		free(w->file[i]);
	free(w->file);
	w->file = NULL;
	w->n_files = 0;
}
