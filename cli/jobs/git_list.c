/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See git_list.h.
 */
#include "cli/jobs/git_list.h"

#include "cli/base/litter.h"
#include "cli/base/podman.h"
#include "cli/base/proc.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define GIT_USEC (120 * USEC_PER_SEC)
#define EXCLUDE_MAX_BYTES ((size_t)4 << 20)
#define NAMES_MAX_BYTES ((size_t)512 << 20)

struct git_list {
	char *text; /* names, each ended by a NUL */
	char **name;
	size_t n;
};

/* ---- where the repository is ------------------------------------------------ */

struct repo {
	char *top;    /* of its files */
	char *git;    /* its own directory: a worktree has one of its own */
	char *common; /* the one that it shares */
};

static void repo_done(struct repo *r)
{
	free(r->top);
	free(r->git);
	free(r->common);
}

/* The path in a file of one line, behind a word; from: what a relative one begins at. */
static int read_pointer(const char *file, const char *word, const char *from, char **ret,
			struct err *err)
{
	cleanup_free char *text = NULL;
	size_t len;

	if (fs_read_file(AT_FDCWD, file, PATH_MAX, &text, &len, err) < 0)
		return -1;
	while (len && (text[len - 1] == '\n' || text[len - 1] == '\r'))
		text[--len] = '\0';
	if (!str_starts(text, word) || strlen(text) != len || !text[strlen(word)])
		return err_set_id(err, ERRID_SPEC_TREE, "%s: it leads nowhere", file);
	text[len] = '\0';
	*ret = text[strlen(word)] == '/' ? xstrdup(text + strlen(word))
					 : xasprintf("%s/%s", from, text + strlen(word));
	return 0;
}

/* dir or the nearest directory above it that has a .git. */
static int find_top(const char *dir, struct repo *r, struct stat *ret_st, struct err *err)
{
	cleanup_free char *at = xstrdup(dir);

	for (;;) {
		cleanup_free char *git = xasprintf("%s/.git", str_eq(at, "/") ? "" : at);
		char *slash;

		if (lstat(git, ret_st) == 0) {
			r->git = TAKE_PTR(git);
			r->top = TAKE_PTR(at);
			return 0;
		}
		if (errno != ENOENT && errno != ENOTDIR)
			return err_sys_id(err, ERRID_SPEC_TREE, "%s", git);
		slash = strrchr(at, '/');
		if (str_eq(at, "/") || !slash)
			return err_set_id(err, ERRID_SPEC_TREE,
					  "it is in no git repository");
		slash[slash == at] = '\0';
	}
}

static int find_repo(const char *dir, struct repo *r, struct err *err)
{
	cleanup_free char *head = NULL, *pointer = NULL;
	struct stat st;

	if (find_top(dir, r, &st, err) < 0)
		return -1;
	/* above a directory that all may write to, another's */
	if (st.st_uid != getuid())
		return err_set_id(err, ERRID_SPEC_TREE, "%s belongs to another user",
				  r->git);
	if (S_ISREG(st.st_mode)) {
		cleanup_free char *file = TAKE_PTR(r->git);

		if (read_pointer(file, "gitdir: ", r->top, &r->git, err) < 0)
			return -1;
	}
	head = xasprintf("%s/HEAD", r->git);
	if (lstat(head, &st) < 0)
		return err_sys_id(err, ERRID_SPEC_TREE, "%s", head);
	pointer = xasprintf("%s/commondir", r->git);
	if (lstat(pointer, &st) == 0)
		return read_pointer(pointer, "", r->git, &r->common, err);
	r->common = xstrdup(r->git);
	return 0;
}

/* ---- the empty one ---------------------------------------------------------- */

static int put(int dir, const char *name, const void *text, size_t len, struct err *err)
{
	cleanup_close int fd =
		openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	return fd < 0 ? err_sys(err, "%s", name) : fs_write_all(fd, text, len, err);
}

/* The parts of a split index lie beside it, by a name that git looks for in its directory. */
static int link_parts(int to, const char *from, struct err *err)
{
	cleanup_dir DIR *dir = opendir(from);
	const struct dirent *e;

	if (!dir)
		return err_sys_id(err, ERRID_SPEC_TREE, "%s", from);
	while ((errno = 0, e = readdir(dir))) {
		cleanup_free char *target = xasprintf("%s/%s", from, e->d_name);
		struct stat st;

		if (!str_starts(e->d_name, "sharedindex."))
			continue;
		if (stat(target, &st) == 0 && !S_ISREG(st.st_mode))
			return err_set_id(err, ERRID_SPEC_TREE, "%s is no file", target);
		if (symlinkat(target, to, e->d_name) < 0)
			return err_sys(err, "%s", e->d_name);
	}
	return errno ? err_sys(err, "%s", from) : 0;
}

static int fill(int dir, const struct repo *r, struct err *err)
{
	static const char head[] = "ref: refs/heads/none\n";
	static const char config[] =
		"[core]\n\trepositoryformatversion = 0\n\tbare = false\n";
	cleanup_free char *exclude = xasprintf("%s/info/exclude", r->common);
	cleanup_free char *text = NULL;
	struct stat st;
	size_t len;

	if (put(dir, "HEAD", head, strlen(head), err) < 0 ||
	    put(dir, "config", config, strlen(config), err) < 0)
		return -1;
	if (mkdirat(dir, "objects", 0700) < 0 || mkdirat(dir, "refs", 0700) < 0 ||
	    mkdirat(dir, "info", 0700) < 0)
		return err_sys(err, "mkdir");
	if (link_parts(dir, r->git, err) < 0)
		return -1;
	if (stat(exclude, &st) < 0)
		return errno == ENOENT || errno == ENOTDIR
			       ? 0
			       : err_sys_id(err, ERRID_SPEC_TREE, "%s", exclude);
	if (fs_read_file(AT_FDCWD, exclude, EXCLUDE_MAX_BYTES, &text, &len, err) < 0)
		return err_wrap(err, "%s", exclude);
	return put(dir, "info/exclude", text, len, err);
}

/* ---- what git would wait for ------------------------------------------------- */

#define DEPTH_MAX 256u
#define OBJECTS_DEPTH 2u
#define ALTERNATES_DEPTH 5u
#define ALTERNATES_MAX 64u
#define ALTERNATES_MAX_BYTES ((size_t)1 << 20)

/* git opens it as it is: a pipe in its place would be waited for. A link it does not follow. */
static int check_rules(int dir, const char *path, struct err *err)
{
	struct stat st;

	if (fstatat(dir, ".gitignore", &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    S_ISREG(st.st_mode) || S_ISLNK(st.st_mode) || S_ISDIR(st.st_mode))
		return 0;
	return err_set_id(err, ERRID_SPEC_TREE, "%s/.gitignore is no file", path);
}

/* In every directory below this one too. What cannot be opened git will name. */
static int check_rules_below(int dir, const char *path, unsigned depth, struct err *err)
{
	cleanup_close int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_dir DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	if (check_rules(dir, path, err) < 0)
		return -1;
	if (!d)
		return 0;
	fd = -1; /* the DIR's now */
	if (depth == DEPTH_MAX)
		return err_set_id(err, ERRID_SPEC_TREE, "%s: too deep", path);
	while ((e = readdir(d))) {
		cleanup_close int below = -1;
		cleanup_free char *name = NULL;

		if ((e->d_type != DT_DIR && e->d_type != DT_UNKNOWN) ||
		    str_eq(e->d_name, ".") || str_eq(e->d_name, "..") ||
		    str_eq(e->d_name, ".git"))
			continue;
		below = openat(dir, e->d_name,
			       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (below < 0)
			continue;
		name = xasprintf("%s/%s", path, e->d_name);
		if (check_rules_below(below, name, depth + 1, err) < 0)
			return -1;
	}
	return 0;
}

/* What git may open below a directory of objects: files and directories, and links to them. */
static int check_plain(const char *path, unsigned depth, struct err *err)
{
	cleanup_dir DIR *d = opendir(path);
	const struct dirent *e;

	while (d && (e = readdir(d))) {
		cleanup_free char *full = NULL;
		struct stat st;

		if (e->d_type == DT_REG || str_eq(e->d_name, ".") ||
		    str_eq(e->d_name, ".."))
			continue;
		full = xasprintf("%s/%s", path, e->d_name);
		if (stat(full, &st) < 0)
			continue;
		if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
			return err_set_id(err, ERRID_SPEC_TREE, "%s is no file", full);
		if (S_ISDIR(st.st_mode) && depth < OBJECTS_DEPTH &&
		    check_plain(full, depth + 1, err) < 0)
			return -1;
	}
	return 0;
}

/* Objects, and those that lie elsewhere: as deep as git looks for them. */
static int check_objects(const char *objects, unsigned depth, unsigned *left,
			 struct err *err)
{
	cleanup_free char *list = xasprintf("%s/info/alternates", objects);
	cleanup_free char *text = NULL;
	size_t len = 0;

	if (depth > ALTERNATES_DEPTH)
		return 0;
	if ((*left)-- == 0)
		return err_set_id(err, ERRID_SPEC_TREE, "%s: too many", list);
	if (check_plain(objects, 0, err) < 0)
		return -1;
	if (access(list, F_OK) < 0)
		return 0;
	if (fs_read_file(AT_FDCWD, list, ALTERNATES_MAX_BYTES, &text, &len, err) < 0)
		return err_wrap(err, "%s", list);
	for (char *line = text, *end; *line; line = end) {
		cleanup_free char *there = NULL;

		end = line + strcspn(line, "\n");
		if (*end)
			*end++ = '\0';
		if (!*line || *line == '#')
			continue;
		if (*line == '"')
			return err_set_id(err, ERRID_SPEC_TREE, "%s: a name in quotes",
					  list);
		there = *line == '/' ? xstrdup(line) : xasprintf("%s/%s", objects, line);
		if (check_objects(there, depth + 1, left, err) < 0)
			return -1;
	}
	return 0;
}

static int check_waits(const struct repo *r, const char *dir, struct err *err)
{
	cleanup_free char *objects = xasprintf("%s/objects", r->common);
	unsigned left = ALTERNATES_MAX;
	cleanup_free char *index = xasprintf("%s/index", r->git);
	cleanup_free char *at = xstrdup(dir);
	cleanup_close int below = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (stat(index, &st) == 0 && !S_ISREG(st.st_mode))
		return err_set_id(err, ERRID_SPEC_TREE, "%s is no file", index);
	if (check_objects(objects, 0, &left, err) < 0)
		return -1;
	while (strlen(at) > strlen(r->top) && strrchr(at, '/') != at) {
		cleanup_close int fd = -1;

		*strrchr(at, '/') = '\0';
		fd = open(at, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0 && check_rules(fd, at, err) < 0)
			return -1;
	}
	return below < 0 ? 0 : check_rules_below(below, dir, 0, err);
}

/* ---- asking ----------------------------------------------------------------- */

/* The programs' environment and five of git's own; the caller frees with proc_env_free(). */
static char **git_env(const struct repo *r)
{
	char **env = proc_env();
	size_t n = 0;

	while (env[n])
		n++;
	env = xreallocarray(env, n + 6, sizeof(*env));
	env[n++] = xasprintf("GIT_INDEX_FILE=%s/index", r->git);
	/* for the directories of a sparse index */
	env[n++] = xasprintf("GIT_ALTERNATE_OBJECT_DIRECTORIES=%s/objects", r->common);
	env[n++] = xstrdup("GIT_OPTIONAL_LOCKS=0");
	env[n++] = xstrdup("GIT_TERMINAL_PROMPT=0");
	env[n++] = xstrdup("GIT_ALLOW_PROTOCOL=none");
	env[n] = NULL;
	return env;
}

static int ask(const char *git, const char *scratch, const struct repo *r,
	       const char *dir, int out, struct err *err)
{
	cleanup_free char *git_dir = xasprintf("--git-dir=%s", scratch);
	cleanup_free char *work_tree = xasprintf("--work-tree=%s", r->top);
	cleanup_env char **env = git_env(r);
	cleanup_free char *said = NULL;
	const char *const argv[] = {
		git, "-C", dir, git_dir, work_tree, "-c", "core.fsmonitor=false", "-c",
		"core.hooksPath=/dev/null",
		/* advice is no complaint (git 2.46 and later) */
		"-c", "advice.sparseIndexExpanded=false", "ls-files", "-z", "--cached",
		"--others", "--exclude-standard", NULL};
	int status;

	if (proc_pipe(argv, (const char *const *)env, -1, out, GIT_USEC, &said, &status,
		      err) < 0)
		return -1;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return err_set_id(err, ERRID_SPEC_TREE, "git ls-files ended with %d: %s",
				  WIFEXITED(status) ? WEXITSTATUS(status)
						    : 128 + WTERMSIG(status),
				  proc_why(said));
	/* It goes on without what it could not read. */
	if (said[0])
		return err_set_id(err, ERRID_SPEC_TREE, "git ls-files: %s",
				  proc_why(said));
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int take_names(int fd, struct git_list *l, struct err *err)
{
	size_t have = 0, size;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(err, "the list of git");
	if ((size_t)st.st_size > NAMES_MAX_BYTES)
		return err_set_id(err, ERRID_SPEC_SIZE, "git lists more than %zu bytes",
				  NAMES_MAX_BYTES);
	size = (size_t)st.st_size;
	l->text = xmalloc(size + 1);
	while (have < size) {
		ssize_t n = pread(fd, l->text + have, size - have, (off_t)have);

		if (n <= 0)
			return err_sys(err, "read the list of git");
		have += (size_t)n;
	}
	l->text[size] = '\0';
	for (size_t at = 0, len; at < size; at += len + 1) {
		char *name = l->text + at;

		len = strlen(name);
		if (len && name[len - 1] == '/')
			name[len - 1] = '\0';
		if (l->n % 1024 == 0)
			l->name = xreallocarray(l->name, l->n + 1024, sizeof(*l->name));
		l->name[l->n++] = name;
	}
	if (l->n)
		qsort(l->name, l->n, sizeof(*l->name), by_name);
	return 0;
}

static int list_with_scratch(const char *git, const struct repo *r, const char *dir,
			     struct git_list *l, struct err *err)
{
	static const struct litter l_old = {"lych-git-", 6, "", true, false};
	char scratch[] = "/tmp/lych-git-XXXXXX";
	cleanup_close int out = memfd_create("git-list", MFD_CLOEXEC), at = -1, tmp = -1;
	struct err ignored = ERR_INIT;
	int got;

	litter_sweep("/tmp", &l_old);
	if (out < 0 || !mkdtemp(scratch))
		return err_sys(err, "%s", scratch);
	at = open(scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	got = at < 0 || tmp < 0 ? err_sys(err, "%s", scratch) : fill(at, r, err);
	if (got == 0)
		got = ask(git, scratch, r, dir, out, err);
	/* What went wrong first is what is told. */
	if (tmp >= 0 && fs_remove_beneath(tmp, scratch + strlen("/tmp/"),
					  got < 0 ? &ignored : err) < 0)
		got = -1;
	return got < 0 ? -1 : take_names(out, l, err);
}

/* What would end us waits until the empty repository is removed. At a terminal an interrupt
 * ends git as well, so nobody waits for it. */
static int list(const char *git, const struct repo *r, const char *dir,
		struct git_list *l, struct err *err)
{
	sigset_t ends, before;
	int got;

	(void)sigemptyset(&ends);
	(void)sigaddset(&ends, SIGHUP);
	(void)sigaddset(&ends, SIGINT);
	(void)sigaddset(&ends, SIGQUIT);
	(void)sigaddset(&ends, SIGTERM);
	if (sigprocmask(SIG_BLOCK, &ends, &before) < 0)
		return err_sys(err, "sigprocmask");
	got = list_with_scratch(git, r, dir, l, err);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	return got;
}

int git_list_read(const char *dir, struct git_list **ret, struct err *err)
{
	cleanup_free char *git = podman_find_program("git");
	__attribute__((cleanup(repo_done))) struct repo r = {0};
	struct git_list *l;

	if (!git)
		return err_set_id(err, ERRID_START_TOOL, "git is not in PATH");
	if (find_repo(dir, &r, err) < 0 || check_waits(&r, dir, err) < 0)
		return -1;
	l = xnew(struct git_list);
	if (list(git, &r, dir, l, err) < 0) {
		git_list_free(l);
		return -1;
	}
	*ret = l;
	return 0;
}

void git_list_free(struct git_list *l)
{
	if (!l)
		return;
	free(l->name);
	free(l->text);
	free(l);
}

/* ---- the answer ------------------------------------------------------------- */

bool git_list_has(const struct git_list *l, const char *path)
{
	return l->n && bsearch(&path, l->name, l->n, sizeof(*l->name), by_name) != NULL;
}

bool git_list_has_below(const struct git_list *l, const char *path)
{
	cleanup_free char *below = xasprintf("%s/", path);
	size_t low = 0, high = l->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (strcmp(l->name[mid], below) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low < l->n && str_starts(l->name[low], below);
}
