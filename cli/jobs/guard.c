/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See guard.h.
 */
#include "cli/jobs/guard.h"

#include "cli/base/paths.h"
#include "cli/jobs/git_list.h"
#include "cli/ui/progress.h"
#include "cli/ui/render.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/proto/sensitive.h"
#include "common/str.h"
#include "common/text/glob.h"
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pwd.h>
#include <sys/stat.h>

#define TOLD_MAX 200 /* lines; the others are counted */

struct place {
	char *real;
	dev_t dev;
	ino_t ino;
	bool own; /* Lychgate's; else a home directory */
};

struct tree {
	char *real, *dest;
	struct git_list *git; /* NULL: all of it */
	bool meant;	      /* the tree itself was included */
};

struct guard {
	struct guard_wish wish;
	struct place *place;
	size_t n_places;
	struct tree *tree;
	size_t n_trees;
	uint64_t told, may_include;
};

/* ---- patterns --------------------------------------------------------------- */

bool guard_pattern_means(const char *pattern, const char *path, bool is_dir)
{
	cleanup_free char *p = xstrdup(pattern[0] == '/' ? pattern + 1 : pattern);
	size_t n = strlen(p);
	bool dirs_only = n > 0 && p[n - 1] == '/', anchored;

	if (dirs_only)
		p[n - 1] = '\0';
	anchored = pattern[0] == '/' || strchr(p, '/');
	for (size_t begin = 0, end = 0; path[begin]; begin = end + 1) {
		end = begin + strcspn(path + begin, "/");
		cleanup_free char *part = anchored ? xstrndup(path, end)
						   : xstrndup(path + begin, end - begin);

		if ((path[end] || is_dir || !dirs_only) && glob_match(p, part))
			return true;
		if (!path[end])
			break;
	}
	return false;
}

static bool means(const char *const *patterns, size_t n, const char *path, bool is_dir)
{
	for (size_t i = 0; i < n; i++)
		if (guard_pattern_means(patterns[i], path, is_dir))
			return true;
	return false;
}

/* A file or tree that was named itself: the pattern may be just what was written. */
static bool is_meant(const struct guard *g, const char *path, bool is_dir)
{
	const char *s = path;

	for (size_t i = 0; i < g->wish.n_include; i++)
		if (str_eq(g->wish.include[i], path))
			return true;
	while (str_starts(s, "./") || str_starts(s, "/"))
		s += 1 + (s[0] == '.');
	return means(g->wish.include, g->wish.n_include, s, is_dir);
}

/* ---- places ----------------------------------------------------------------- */

/* One that is not there is nobody's. */
static void add_place(struct guard *g, const char *path, bool own)
{
	char *real = path ? realpath(path, NULL) : NULL;
	struct stat st;

	if (!real || stat(real, &st) < 0) {
		free(real);
		return;
	}
	g->place = xreallocarray(g->place, g->n_places + 1, sizeof(*g->place));
	g->place[g->n_places++] = (struct place){
		.real = real, .dev = st.st_dev, .ino = st.st_ino, .own = own};
}

/* What a restore moved aside or makes beside the data directory: its secrets may be good still. */
static void add_beside(struct guard *g, const char *data)
{
	const char *name = strrchr(data, '/') + 1;
	cleanup_free char *parent = xstrndup(data, (size_t)(name - data));
	cleanup_dir DIR *dir = opendir(parent);
	size_t n = strlen(name);
	const struct dirent *e;

	while (dir && (e = readdir(dir))) {
		if (strncmp(e->d_name, name, n) != 0 ||
		    !(str_starts(e->d_name + n, ".before-") ||
		      str_eq(e->d_name + n, ".restore")))
			continue;
		cleanup_free char *path = xasprintf("%s%s", parent, e->d_name);

		add_place(g, path, true);
	}
}

int guard_new(const struct guard_wish *wish, struct guard **ret, struct err *err)
{
	cleanup_paths struct paths paths = {0};
	const struct passwd *pw = getpwuid(getuid());

	if (paths_resolve(&paths, err) < 0)
		return -1;
	cleanup_free char *config = paths_config_dir(&paths);
	struct guard *g = xnew(struct guard);

	g->wish = *wish;
	add_place(g, paths.data, true);
	add_beside(g, paths.data);
	add_place(g, config, true);
	add_place(g, paths.runtime, true);
	add_place(g, paths.home, false);
	/* HOME may have been set to another one */
	add_place(g, pw ? pw->pw_dir : NULL, false);
	*ret = g;
	return 0;
}

void guard_free(struct guard *g)
{
	if (!g)
		return;
	for (size_t i = 0; i < g->n_places; i++)
		free(g->place[i].real);
	free(g->place);
	for (size_t i = 0; i < g->n_trees; i++) {
		free(g->tree[i].real);
		free(g->tree[i].dest);
		git_list_free(g->tree[i].git);
	}
	free(g->tree);
	free(g);
}

/* The place that is this very directory, by whatever name. */
static const struct place *place_of(const struct guard *g, const struct stat *st)
{
	for (size_t i = 0; i < g->n_places; i++)
		if (g->place[i].dev == st->st_dev && g->place[i].ino == st->st_ino)
			return &g->place[i];
	return NULL;
}

static int real_path(int fd, char **ret, struct err *err)
{
	char link[64];

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	*ret = realpath(link, NULL);
	return *ret ? 0 : err_sys(err, "%s", link);
}

/* ---- what was named itself -------------------------------------------------- */

static int refuse(struct err *err, const char *path, const char *why)
{
	return err_set_id(err, ERRID_SPEC_SECRET, "%.200s: %s", path, why);
}

static int refuse_row(struct err *err, const char *path, const char *in, size_t len,
		      const struct sensitive *row)
{
	return err_set_id(err, ERRID_SPEC_SECRET, "%.200s: '%.*s' keeps secrets: %s",
			  path, (int)(len < 200 ? len : 200), in, row->what);
}

/* By the name that was written, and by the one that it has. */
static int check_names(const char *path, const char *real, struct err *err)
{
	const char *const names[] = {path, real};
	struct stat st;
	bool is_dir = stat(real, &st) == 0 && S_ISDIR(st.st_mode);

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		cleanup_free char *name = xasprintf("%s%s", names[i], is_dir ? "/" : "");
		const struct sensitive *row;
		size_t len;

		row = sensitive_path(name, &len);
		if (row)
			return refuse_row(err, path, name, len, row);
	}
	return 0;
}

static int check_own(const struct guard *g, const char *path, const char *real,
		     struct err *err)
{
	for (size_t i = 0; i < g->n_places; i++)
		if (g->place[i].own && path_is_below(real, g->place[i].real))
			return err_set_id(err, ERRID_SPEC_SECRET,
					  "%.200s: it lies in %.200s, Lychgate's own, of "
					  "which no job gets anything",
					  path, g->place[i].real);
	return 0;
}

/* *ret: what the file holds, NULL: nothing that is known. */
static int look(int fd, const char *path, const char **ret, struct err *err)
{
	static char head[SENSITIVE_HEAD_BYTES];
	size_t len = 0;

	while (len < sizeof(head)) {
		ssize_t n = pread(fd, head + len, sizeof(head) - len, (off_t)len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, "read %s", path);
		if (n == 0)
			break;
		len += (size_t)n;
	}
	*ret = sensitive_content(path, head, len);
	return 0;
}

int guard_file(struct guard *g, const char *path, int fd, struct err *err)
{
	cleanup_free char *real = NULL;
	const char *what = NULL;

	if (real_path(fd, &real, err) < 0 || check_own(g, path, real, err) < 0)
		return -1;
	if (is_meant(g, path, false))
		return 0;
	if (check_names(path, real, err) < 0 || look(fd, real, &what, err) < 0)
		return -1;
	if (!what)
		return 0;
	return err_set_id(err, ERRID_SPEC_SECRET, "%.200s: it holds %s", path, what);
}

/* The home directory itself, or what holds it. */
static int check_home(const struct guard *g, const char *dir, const char *real,
		      const struct stat *st, struct err *err)
{
	const struct place *is = place_of(g, st);

	if (g->wish.home)
		return 0;
	if (is && !is->own)
		return refuse(err, dir,
			      "your whole home directory; name a directory in it, or "
			      "say --home");
	for (size_t i = 0; i < g->n_places; i++)
		if (!g->place[i].own && path_is_below(g->place[i].real, real))
			return refuse(err, dir,
				      "it holds your home directory; name a directory, "
				      "or say --home");
	return 0;
}

int guard_tree(struct guard *g, const char *dir, const char *dest, int fd,
	       struct err *err)
{
	cleanup_free char *real = NULL;
	struct git_list *git = NULL;
	const struct place *is;
	struct stat st;
	bool meant;

	if (fstat(fd, &st) < 0)
		return err_sys(err, "%s", dir);
	if (real_path(fd, &real, err) < 0 || check_own(g, dir, real, err) < 0)
		return -1;
	is = place_of(g, &st);
	if (is && is->own)
		return check_own(g, dir, is->real, err);
	meant = is_meant(g, dir, true);
	if (check_home(g, dir, real, &st, err) < 0 ||
	    (!meant && check_names(dir, real, err) < 0))
		return -1;
	if (g->wish.git && git_list_read(real, &git, err) < 0)
		return err_wrap(err, "--git: %s", dir);
	g->tree = xreallocarray(g->tree, g->n_trees + 1, sizeof(*g->tree));
	g->tree[g->n_trees++] =
		(struct tree){TAKE_PTR(real), dest ? xstrdup(dest) : NULL, git, meant};
	return 0;
}

/* ---- what lies in a tree ---------------------------------------------------- */

void guard_tell(const char *path, const char *why, void *arg)
{
	struct guard *g = arg;
	struct buf b;

	if (g->told++ >= TOLD_MAX)
		return;
	buf_init(&b, 65536);
	render_escape(&b, path, strlen(path), 0);
	progress_hide();
	(void)fprintf(stderr, "lych: left out: %s: %s\n", buf_str(&b), why);
	buf_done(&b);
}

void guard_tell_more(const struct guard *g)
{
	if (g->told > TOLD_MAX)
		(void)fprintf(stderr, "lych: left out: %" PRIu64 " more\n",
			      g->told - TOLD_MAX);
	if (g->may_include)
		(void)fprintf(stderr,
			      "lych: what keeps secrets goes in only when you name it: "
			      "--include PATTERN\n");
}

static void tell_secret(struct guard *g, const struct tar_entry *e, const char *why)
{
	g->may_include++;
	guard_tell(e->name, why, g);
}

/* Two trees may not have the same file. */
static int check_apart(const struct guard *g, const struct tar_entry *e, struct err *err)
{
	for (size_t i = 0; i < g->n_trees; i++) {
		const char *dest = g->tree[i].dest;

		if (i == e->tree || !dest)
			continue;
		if (str_eq(e->name, dest) ||
		    (path_is_below(dest, e->name) && !S_ISDIR(e->st->st_mode)))
			return err_set_id(err, ERRID_SPEC_TREE,
					  "'%.200s' is in one --dir, and another is to "
					  "be '%.200s'",
					  e->name, dest);
	}
	return 0;
}

/* What git would not track. true: *ret says what becomes of it. */
static bool git_leaves(struct guard *g, const struct tar_entry *e, enum tar_verdict *ret)
{
	const struct git_list *git = g->tree[e->tree].git;
	bool is_dir = S_ISDIR(e->st->st_mode);

	if (!git ||
	    (is_dir ? git_list_has_below(git, e->path) : git_list_has(git, e->path)))
		return false;
	*ret = TAR_LEAVE;
	if (is_dir && git_list_has(git, e->path))
		guard_tell(e->name, "a git repository of its own, which --git leaves out",
			   g);
	else if (is_dir && g->wish.n_include)
		*ret = TAR_BELOW;
	return true;
}

/* The first component below the top that is in the list. */
static const struct sensitive *row_of(const struct tree *t, const char *path, bool is_dir)
{
	const char *top = str_eq(t->real, "/") ? "" : t->real;
	cleanup_free char *full = xasprintf("%s/%s%s", top, path, is_dir ? "/" : "");
	size_t len = strlen(top) + 1;

	for (;;) {
		const struct sensitive *row;

		len += strcspn(full + len, "/");
		row = sensitive_entry(full, len);
		if (row || !full[len])
			return row;
		len++;
	}
}

/* What is in the list, by name or by what it holds. */
static int leave_secret(struct guard *g, const struct tar_entry *e, enum tar_verdict *ret,
			struct err *err)
{
	const struct sensitive *row =
		row_of(&g->tree[e->tree], e->path, S_ISDIR(e->st->st_mode));
	const char *what = NULL;

	if (row && S_ISDIR(e->st->st_mode) && g->wish.n_include) {
		*ret = TAR_BELOW; /* something in it may be meant */
		return 0;
	}
	if (!row && S_ISREG(e->st->st_mode) && look(e->fd, e->path, &what, err) < 0)
		return -1;
	if (!row && !what)
		return 0;
	cleanup_free char *why = row ? xasprintf("keeps secrets: %s", row->what)
				     : xasprintf("holds %s", what);

	*ret = TAR_LEAVE;
	tell_secret(g, e, why);
	return 0;
}

int guard_want(const struct tar_entry *e, enum tar_verdict *ret, void *arg,
	       struct err *err)
{
	struct guard *g = arg;
	bool is_dir = S_ISDIR(e->st->st_mode);
	const struct place *place = is_dir ? place_of(g, e->st) : NULL;

	*ret = TAR_LEAVE;
	if (means(g->wish.exclude, g->wish.n_exclude, e->path, is_dir))
		return 0;
	if (place && (place->own || !g->wish.home)) {
		guard_tell(e->name, place->own ? "Lychgate's own" : "your home directory",
			   g);
		return 0;
	}
	if (check_apart(g, e, err) < 0)
		return -1;
	*ret = TAR_TAKE;
	if (means(g->wish.include, g->wish.n_include, e->path, is_dir))
		return 0;
	if (git_leaves(g, e, ret) || g->tree[e->tree].meant)
		return 0;
	return leave_secret(g, e, ret, err);
}
