/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See mounts.h.
 */
#include "cli/pod/mounts.h"

#include "cli/base/paths.h"
#include "cli/base/trusted.h"
#include "cli/pod/unit_template.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/json/json.h"
#include "common/mem.h"
#include "common/proto/sensitive.h"
#include "common/str.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <strings.h>
#include <sys/stat.h>

#define FILE_MAX_BYTES ((size_t)64 << 10)
#define ROOTS_MAX 64
#define BLOCKED_MAX 64
/* A tree with more is no directory to share; it also bounds the time of the walk. */
#define ENTRIES_MAX 1000000u
#define DEPTH_MAX 64u

/* ---- the allow-list --------------------------------------------------------- */

static int bad_list(struct err *err)
{
	err->id = ERRID_BIND_ALLOWLIST;
	err->code = err_info(ERRID_BIND_ALLOWLIST)->code;
	return -1;
}

/* "~" and "~/..."; NULL for what is not absolute. Caller frees. */
static char *expand(const char *path, const char *home)
{
	if (path[0] == '~' && (path[1] == '/' || !path[1]))
		return xasprintf("%s%s", home, path + 1);
	return path[0] == '/' ? xstrdup(path) : NULL;
}

static int parse_root(const struct json *v, const char *home, struct mount_allowlist *l,
		      struct err *err)
{
	static const char *const keys[] = {"path", "allowReadWrite", "description"};
	const char *path = NULL, *description = NULL;
	struct mount_root root = {0};

	if (json_as_obj(v, err) < 0 ||
	    json_check_keys(v, keys, ARRAY_SIZE(keys), err) < 0 ||
	    json_get_str(v, "path", true, PATH_MAX - 1, &path, err) < 0 ||
	    json_get_str(v, "description", false, 4096, &description, err) < 0 ||
	    json_get_bool(v, "allowReadWrite", false, &root.read_write, err) < 0)
		return -1;
	root.path = expand(path, home);
	if (!root.path)
		return err_set(err, ERR_INVALID, "path '%s' is not absolute", path);
	l->root = xreallocarray(l->root, l->n_roots + 1, sizeof(*l->root));
	l->root[l->n_roots++] = root;
	return 0;
}

static int parse_blocked(const struct json *v, struct mount_allowlist *l, struct err *err)
{
	const char *text = NULL;

	if (json_as_str(v, NAME_MAX, &text, err) < 0)
		return -1;
	/* An empty one is part of every name, one with '/' of none. */
	if (!text[0] || strchr(text, '/'))
		return err_set(err, ERR_INVALID,
			       "a pattern is part of a name: not empty, without '/'");
	l->blocked = xreallocarray(l->blocked, l->n_blocked + 1, sizeof(*l->blocked));
	l->blocked[l->n_blocked++] = xstrdup(text);
	return 0;
}

static int parse_body(const struct json *j, const char *home, struct mount_allowlist *l,
		      struct err *err)
{
	static const char *const keys[] = {"allowedRoots", "blockedPatterns",
					   "nonMainReadOnly"};
	const struct json *roots = NULL, *blocked = NULL;

	if (json_check_keys(j, keys, ARRAY_SIZE(keys), err) < 0 ||
	    json_get_arr(j, "allowedRoots", true, ROOTS_MAX, &roots, err) < 0 ||
	    json_get_arr(j, "blockedPatterns", false, BLOCKED_MAX, &blocked, err) < 0 ||
	    json_get_bool(j, "nonMainReadOnly", false, &l->read_only, err) < 0)
		return -1;
	for (size_t i = 0; i < json_arr_len(roots); i++)
		if (parse_root(json_arr_at(roots, i), home, l, err) < 0)
			return err_wrap(err, "allowedRoots[%zu]", i);
	for (size_t i = 0; blocked && i < json_arr_len(blocked); i++)
		if (parse_blocked(json_arr_at(blocked, i), l, err) < 0)
			return err_wrap(err, "blockedPatterns[%zu]", i);
	return 0;
}

int mount_allowlist_parse(const char *text, size_t len, const char *home,
			  struct mount_allowlist *ret, struct err *err)
{
	cleanup_json struct json *j = NULL;
	struct mount_allowlist l = {0};

	if (json_parse(text, len, 8, &j, err) < 0)
		return bad_list(err);
	if (parse_body(j, home, &l, err) < 0) {
		mount_allowlist_done(&l);
		return bad_list(err);
	}
	*ret = l;
	return 0;
}

int mount_allowlist_load(const char *path, const char *home, struct mount_allowlist *ret,
			 struct err *err)
{
	cleanup_free char *text = NULL;
	cleanup_free char *real = realpath(path, NULL);
	size_t len;

	if (!real && errno == ENOENT)
		return err_set_id(err, ERRID_BIND_ALLOWLIST,
				  "%s does not exist: without it nothing is mounted",
				  path);
	if (!real)
		return err_sys_id(err, ERRID_BIND_ALLOWLIST, "%s", path);
	/* A link in the place of the file could be anybody's choice; one above it, the
	 * user's own dotfiles say, is judged by where it leads. */
	if (trusted_above(real, ERRID_BIND_ALLOWLIST, err) < 0 ||
	    trusted_read(path, FILE_MAX_BYTES, ERRID_BIND_ALLOWLIST, &text, &len, err) <
		    0)
		return -1;
	if (mount_allowlist_parse(text, len, home, ret, err) < 0)
		return err_wrap(err, "%s", path);
	return 0;
}

void mount_allowlist_done(struct mount_allowlist *l)
{
	for (size_t i = 0; i < l->n_roots; i++)
		free(l->root[i].path);
	for (size_t i = 0; i < l->n_blocked; i++)
		free(l->blocked[i]);
	free(l->root);
	free(l->blocked);
	*l = (struct mount_allowlist){0};
}

/* ---- names ------------------------------------------------------------------ */

static const char *const system_places[] = {
	"/bin",	 "/boot", "/dev", "/etc",  "/lib", "/lib32", "/lib64",
	"/proc", "/root", "/run", "/sbin", "/sys", "/usr",   "/var",
};

static bool contains_nocase(const char *name, size_t len, const char *part)
{
	size_t n = strlen(part);

	for (size_t i = 0; i + n <= len; i++)
		if (strncasecmp(name + i, part, n) == 0)
			return true;
	return false;
}

/* Why the entry whose absolute path is the first len bytes may not be shared; it has its
 * name at `name`. NULL: it may. */
static const char *entry_refusal(const struct mount_allowlist *l, const char *path,
				 size_t len, const char *name, const char **ret_what)
{
	const struct sensitive *row = sensitive_entry(path, len);

	*ret_what = row ? row->what : NULL;
	if (row)
		return "keeps secrets: ";
	*ret_what = "";
	for (size_t i = 0; i < l->n_blocked; i++)
		if (contains_nocase(name, len - (size_t)(name - path), l->blocked[i]))
			return "is blocked by blockedPatterns";
	return NULL;
}

static int refuse(struct err *err, const char *path, const char *why)
{
	return err_set_id(err, ERRID_BIND_MOUNT, "'%.200s': %s", path, why);
}

static int refuse_touch(struct err *err, const char *path, const char *what)
{
	return err_set_id(err, ERRID_BIND_MOUNT,
			  "'%.200s': it is, holds or lies in %.200s", path, what);
}

/* The path is, holds, or lies in that place. */
static bool touches(const char *path, const char *place)
{
	return path_is_below(path, place) || path_is_below(place, path);
}

static int check_place(const struct mount_world *w, const char *real, struct err *err)
{
	if (str_eq(real, "/"))
		return refuse(err, real, "the whole system");
	if (path_is_below(w->home, real))
		return refuse(err, real,
			      str_eq(real, w->home) ? "your whole home directory"
						    : "it holds your home directory");
	for (size_t i = 0; i < ARRAY_SIZE(system_places); i++)
		if (path_is_below(real, system_places[i]) &&
		    !path_is_below(real, w->home))
			return refuse_touch(err, real, system_places[i]);
	for (size_t i = 0; i < sensitive_table_len; i++) {
		cleanup_free char *place =
			xasprintf("%s/%s", w->home, sensitive_table[i].name);

		if (sensitive_table[i].kind == SENSITIVE_PLACE && touches(real, place))
			return refuse_touch(err, real, place);
	}
	for (size_t i = 0; w->own[i]; i++) {
		cleanup_free char *place = realpath(w->own[i], NULL);

		if (touches(real, w->own[i]) || (place && touches(real, place)))
			return refuse_touch(err, real, w->own[i]);
	}
	if (str_eq(real, "/tmp") || str_eq(real, "/home") || str_eq(real, "/mnt") ||
	    str_eq(real, "/media") || str_eq(real, "/srv") || str_eq(real, "/opt"))
		return refuse(err, real, "shared by everybody; name a directory in it");
	return 0;
}

static int check_components(const struct mount_allowlist *l, const char *real,
			    struct err *err)
{
	for (const char *at = real; *at;) {
		size_t n = strcspn(++at, "/");
		const char *what;
		const char *why =
			entry_refusal(l, real, (size_t)(at - real) + n, at, &what);

		if (why)
			return err_set_id(err, ERRID_BIND_MOUNT, "'%.200s': '%.*s' %s%s",
					  real, (int)n, at, why, what);
		at += n;
	}
	return 0;
}

/* ---- what lies in it -------------------------------------------------------- */

struct walk {
	const struct mount_allowlist *l;
	const char *top;
	unsigned entries;
	struct err *err;
};

static int check_content(const struct walk *w, int dirfd, const char *name,
			 const char *path)
{
	cleanup_close int fd = openat(
		dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	static char head[SENSITIVE_HEAD_BYTES];
	const char *what;
	ssize_t n;

	if (fd < 0 && errno == EACCES)
		return 0; /* nor will a job be able to: it has the same uid */
	n = fd < 0 ? -1 : read(fd, head, sizeof(head));
	if (n < 0)
		return err_sys_id(w->err, ERRID_BIND_MOUNT, "'%.200s' holds '%.200s'",
				  w->top, path);
	what = sensitive_content(path, head, (size_t)n);
	explicit_bzero(head, (size_t)n);
	if (what)
		return err_set_id(w->err, ERRID_BIND_MOUNT, "'%.200s' holds '%.200s': %s",
				  w->top, path, what);
	return 0;
}

static int walk_dir(struct walk *w, int fd, const char *path, unsigned depth);

static int walk_entry(struct walk *w, int dirfd, const char *name, const char *parent,
		      unsigned depth)
{
	cleanup_free char *path = xasprintf("%s%s%s", parent, parent[0] ? "/" : "", name);
	struct stat st;
	bool is_there = fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
	int why_not = errno;
	cleanup_free char *full = xasprintf("%s/%s%s", w->top, path,
					    is_there && S_ISDIR(st.st_mode) ? "/" : "");
	size_t len = strlen(w->top) + 1 + strlen(path);
	const char *what;
	const char *why =
		entry_refusal(w->l, full, len, full + len - strlen(name), &what);

	if (why)
		return err_set_id(w->err, ERRID_BIND_MOUNT,
				  "'%.200s' holds '%.200s', which %s%s", w->top, path,
				  why, what);
	if (++w->entries > ENTRIES_MAX || depth > DEPTH_MAX)
		return err_set_id(w->err, ERRID_BIND_MOUNT,
				  "'%.200s' is too large or deep to be looked through",
				  w->top);
	errno = why_not;
	if (!is_there)
		return errno == ENOENT
			       ? 0
			       : err_sys_id(w->err, ERRID_BIND_MOUNT,
					    "'%.200s' holds '%.200s'", w->top, path);
	if (S_ISREG(st.st_mode))
		return check_content(w, dirfd, name, path);
	/* A socket or device is a way out of the container, whoever listens there. */
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode) && !S_ISLNK(st.st_mode))
		return err_set_id(w->err, ERRID_BIND_MOUNT,
				  "'%.200s' holds '%.200s': a socket, pipe or device",
				  w->top, path);
	if (!S_ISDIR(st.st_mode))
		return 0;
	int sub = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (sub < 0)
		return err_sys_id(
			w->err, ERRID_BIND_MOUNT,
			"'%.200s' holds '%.200s', which cannot be looked through", w->top,
			path);
	return walk_dir(w, sub, path, depth + 1);
}

/* Takes fd. */
static int walk_dir(struct walk *w, int fd, const char *path, unsigned depth)
{
	cleanup_dir DIR *dir = fdopendir(fd);
	const struct dirent *e;

	if (!dir) {
		(void)close(fd);
		return err_sys(w->err, "fdopendir");
	}
	for (errno = 0; (e = readdir(dir)); errno = 0) {
		if (str_eq(e->d_name, ".") || str_eq(e->d_name, ".."))
			continue;
		if (walk_entry(w, fd, e->d_name, path, depth) < 0)
			return -1;
	}
	if (errno)
		return err_sys_id(w->err, ERRID_BIND_MOUNT, "read '%.200s'", w->top);
	return 0;
}

static int check_tree(const struct mount_allowlist *l, const char *real, struct err *err)
{
	struct walk w = {.l = l, .top = real, .err = err};
	int fd = open(real, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return err_sys_id(err, ERRID_BIND_MOUNT, "'%.200s'", real);
	return walk_dir(&w, fd, "", 0);
}

/* ---- one wish --------------------------------------------------------------- */

/* Does a root of the list allow it, as it is wanted? */
static int check_allowed(const struct mount_world *w, const struct mount_allowlist *l,
			 const char *real, bool read_write, struct err *err)
{
	bool read_only_root = false;

	for (size_t i = 0; i < l->n_roots; i++) {
		cleanup_free char *root = realpath(l->root[i].path, NULL);

		if (!root || !path_is_below(real, root))
			continue;
		/* A list that allows everything is no list. */
		if (check_place(w, root, err) < 0)
			return err_wrap(err, "allowedRoots[%zu]", i);
		if (!read_write || (l->root[i].read_write && !l->read_only))
			return 0;
		read_only_root = true;
	}
	if (read_only_root)
		return refuse(err, real,
			      l->read_only ? "nonMainReadOnly allows reading only"
					   : "its root allows reading only");
	return refuse(err, real, "no root of the allow-list holds it");
}

int mount_check(const struct mount_world *w, const struct mount_allowlist *l,
		const struct mount_wish *wish, char **ret_real, struct err *err)
{
	cleanup_free char *path = expand(wish->path, w->home);
	cleanup_free char *real = NULL;

	if (!path)
		return refuse(err, wish->path, "not absolute, and not below '~/'");
	if (unit_path_check(path, err) < 0)
		return -1;
	real = realpath(path, NULL);
	if (!real)
		return err_sys_id(err, ERRID_BIND_MOUNT, "'%.200s'", path);
	if (unit_path_check(real, err) < 0 || check_place(w, real, err) < 0 ||
	    check_components(l, real, err) < 0 ||
	    check_allowed(w, l, real, wish->read_write, err) < 0 ||
	    check_tree(l, real, err) < 0)
		return str_eq(real, path) ? -1 : err_wrap(err, "'%.200s'", path);
	*ret_real = TAKE_PTR(real);
	return 0;
}

int mounts_check_overlap(char *const *real, size_t n, struct err *err)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n; k++)
			if (i != k && path_is_below(real[i], real[k]))
				return err_set_id(err, ERRID_BIND_MOUNT,
						  "'%.200s' and '%.200s' overlap",
						  real[k], real[i]);
	return 0;
}
