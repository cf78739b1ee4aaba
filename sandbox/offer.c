/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-sandbox.
 * See offer.h. The paths are what a job named: nothing is opened but directories and regular
 * files, of which only the beginning is read, and no link is followed.
 */
#include "sandbox/offer.h"

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/proto/sensitive.h"
#include "common/str.h"
#include "sandbox/contract/paths.h"
#include "sandbox/home.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A tree with more is not looked through, and so not offered. */
#define ENTRIES_MAX 200000u
#define DEPTH_MAX 64u
#define BYTES_MAX ((uint64_t)256 << 20)

struct walk {
	char path[PATH_MAX];
	unsigned entries, depth;
	uint64_t bytes;	   /* read of files */
	const char *found; /* what is kept there */
	bool is_cut;
};

/* ---- is it there ------------------------------------------------------------- */

static bool removes(const struct spawn_denied *d)
{
	return str_starts(d->call, "unlink") || str_eq(d->call, "rmdir");
}

static bool makes(const struct spawn_denied *d)
{
	static const char *const calls[] = {"mk", "creat", "symlink", "link", "rename"};

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (str_starts(d->call, calls[i]))
			return true;
	return false;
}

/* What the job missed inside counts only when it is there outside, for us; of a name that
 * it wanted to make, the directory is. */
static bool is_there(const struct spawn_denied *d, const char *at)
{
	int mode = d->act == SPAWN_ACT_EXEC    ? X_OK
		   : d->act == SPAWN_ACT_WRITE ? W_OK
					       : R_OK;
	struct stat st;

	if (removes(d) && lstat(d->object, &st) < 0)
		return false;
	if (at)
		return access(at, mode) == 0;
	return access(d->object, F_OK) == 0 || makes(d);
}

/* ---- may it be offered ------------------------------------------------------- */

/* What the system has for all who use it is no secret of this person. */
static bool is_everybodys(const struct stat *st)
{
	return st->st_uid == 0 && (st->st_mode & S_IROTH);
}

/* By its bytes: what no name says. One that we may not read nobody reads by our option. */
static void look_into(struct walk *w, int dir, const char *name)
{
	static char head[SENSITIVE_HEAD_BYTES];
	cleanup_close int fd = -1;
	struct stat st;
	ssize_t n;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
	    is_everybodys(&st))
		return;
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	n = pread(fd, head, sizeof(head), 0);
	if (n <= 0)
		return;
	w->bytes += (uint64_t)n;
	w->is_cut = w->is_cut || w->bytes > BYTES_MAX;
	w->found = sensitive_content(w->path, head, (size_t)n);
	explicit_bzero(head, (size_t)n);
}

static void look_below(struct walk *w, int dir);

static void look_at(struct walk *w, int dir, const char *name)
{
	size_t at = strlen(w->path);
	const struct sensitive *row;
	cleanup_close int fd =
		openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (str_fmt(w->path + at, sizeof(w->path) - at, "%s%s%s",
		    at && w->path[at - 1] == '/' ? "" : "/", name,
		    fd >= 0 ? "/" : "") < 0 ||
	    ++w->entries > ENTRIES_MAX) {
		w->path[at] = '\0';
		w->is_cut = true;
		return;
	}
	row = sensitive_entry(w->path, strlen(w->path) - (fd >= 0));
	w->found = row ? row->what : NULL;
	if (!row && fd >= 0)
		look_below(w, fd);
	else if (!row)
		look_into(w, dir, name);
	w->path[at] = '\0';
}

/* dir stays the caller's. One that we may not read nobody reads by our option. */
static void look_below(struct walk *w, int dir)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_dir DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	if (!d) {
		fd_close(&fd);
		return;
	}
	if (++w->depth > DEPTH_MAX)
		w->is_cut = true;
	while (!w->found && !w->is_cut && (e = readdir(d)))
		if (!str_eq(e->d_name, ".") && !str_eq(e->d_name, ".."))
			look_at(w, dir, e->d_name);
	w->depth--;
}

static const char *system_below(const char *real)
{
	for (size_t i = 0; i < sensitive_table_len; i++)
		if (sensitive_table[i].kind == SENSITIVE_SYSTEM &&
		    paths_is_below(sensitive_table[i].name, real))
			return sensitive_table[i].what;
	return NULL;
}

static void why_not_tree(const char *real, char *out, size_t size)
{
	static struct walk w; /* large */
	cleanup_close int dir = open(real, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (home_is_below(real)) {
		(void)snprintf(out, size, "it is or holds your home directory");
		return;
	}
	w = (struct walk){.found = system_below(real)};
	(void)!str_copy(w.path, sizeof(w.path), real);
	if (!w.found && dir >= 0)
		look_below(&w, dir);
	if (w.found)
		(void)snprintf(out, size, "it holds what keeps secrets (%s)", w.found);
	else if (w.is_cut)
		(void)snprintf(out, size,
			       "it has too much in it to be looked through for secrets");
}

static void why_not_file(const char *real, char *out, size_t size)
{
	static struct walk w; /* large */

	w = (struct walk){0};
	(void)!str_copy(w.path, sizeof(w.path), real);
	look_into(&w, AT_FDCWD, real);
	if (w.found)
		(void)snprintf(out, size, "it holds %s", w.found);
}

/* "" when nothing speaks against it. */
static void why_not(const char *path, char *out, size_t size)
{
	cleanup_free char *real = realpath(path, NULL);
	const struct sensitive *row;
	struct stat st;
	size_t len;

	out[0] = '\0';
	if (!real || lstat(path, &st) < 0)
		return;
	cleanup_free char *name = xasprintf("%s%s", real, S_ISDIR(st.st_mode) ? "/" : "");

	row = sensitive_path(name, &len);
	if (row)
		(void)snprintf(out, size, "it keeps secrets (%s)", row->what);
	else if (!str_eq(real, path))
		(void)snprintf(out, size, "it is, or lies behind, a link");
	else if (S_ISSOCK(st.st_mode))
		(void)snprintf(out, size, "it is a socket");
	else if (S_ISDIR(st.st_mode))
		why_not_tree(real, out, size);
	else if (S_ISREG(st.st_mode))
		why_not_file(real, out, size);
	else
		(void)snprintf(out, size, "it is neither a file nor a directory");
}

bool offer_judge(struct spawn_denied *d)
{
	static char last[sizeof(d->grant)], last_why[sizeof(d->withheld)];
	const char *value = strchr(d->grant, ' ');
	bool is_path = value && str_starts(d->grant, "--r");

	/* names of the network: nothing to be looked for here */
	if (d->wall == SPAWN_WALL_ABSENT && d->act == SPAWN_ACT_CONNECT)
		return true;
	if (d->wall == SPAWN_WALL_ABSENT && !is_there(d, is_path ? value + 1 : NULL))
		return false;
	if (!is_path)
		return true;
	/* a job that tries many names of one directory has it looked through once */
	if (!str_eq(last, value + 1)) {
		(void)!str_copy(last, sizeof(last), value + 1);
		why_not(last, last_why, sizeof(last_why));
	}
	if (last_why[0]) {
		(void)!str_copy(d->withheld, sizeof(d->withheld), last_why);
		d->grant[0] = '\0';
	}
	return true;
}
