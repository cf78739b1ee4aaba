/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of the same uid: one outside, some in a directory that is shown read-only. The
 * time of the last change of an inode (ctime) can't be set back: as long as it stands,
 * nobody touched mode, owner, times, attributes or flags.
 */
#include "tests/escape/probe/probe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#define SECRET "the secret\n"
#define LONG_AGO 978307200 /* 2001-01-01 */

static struct file {
	const char *name;
	mode_t mode;
	struct stat before;
} files[] = {
	{"outside", 0700, {0}},	   {"outside/victim", 0600, {0}},
	{"shown/file", 0600, {0}}, {"shown/program", 0700, {0}},
	{"shown", 0700, {0}},
};
#define N_FILES (sizeof(files) / sizeof(files[0]))

static int make_file(const char *name, mode_t mode, const char *text)
{
	const struct timespec t[2] = {{.tv_sec = LONG_AGO}, {.tv_sec = LONG_AGO}};
	int fd = open(scratch_path(name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	size_t n = strlen(text);

	if (fd < 0 || write(fd, text, n) != (ssize_t)n || futimens(fd, t) < 0)
		return -1;
	/* Not every file system has attributes; where it has, one is at stake. */
	(void)fsetxattr(fd, "user.keep", "1", 1, 0);
	return close(fd);
}

/* What must not be read inside. */
static int tell_boot(void)
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	char id[64] = "";
	ssize_t n = fd < 0 ? -1 : read(fd, id, sizeof(id) - 1);

	if (n <= 0)
		return -1;
	id[strcspn(id, "\n")] = '\0';
	target_set("boot_id", "%s", id);
	return close(fd);
}

static int make_files(void)
{
	/* Apart: what leads to the shown one exists in the private root too. */
	if (mkdir(scratch_path("outside"), 0700) < 0 ||
	    mkdir(scratch_path("shown"), 0700) < 0 ||
	    mkdir(scratch_path("shown/dir"), 0700) < 0)
		return -1;
	for (size_t i = 0; i < N_FILES; i++) {
		const struct file *f = &files[i];

		if (strchr(f->name, '/') && make_file(f->name, f->mode, SECRET) < 0)
			return -1;
	}
	for (size_t i = 0; i < N_FILES; i++)
		if (lstat(scratch_path(files[i].name), &files[i].before) < 0)
			return -1;
	target_set("outside", "%s", scratch_path("outside"));
	target_set("victim", "%s", scratch_path("outside/victim"));
	target_set("shown", "%s", scratch_path("shown/file"));
	target_set("shown_dir", "%s", scratch_path("shown/dir"));
	target_set("shown_program", "%s", scratch_path("shown/program"));
	return tell_boot();
}

static int same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static int files_unharmed(void)
{
	int harmed = 0;

	for (size_t i = 0; i < N_FILES; i++) {
		const struct file *f = &files[i];
		char text[64] = "";
		struct stat st;
		int fd, same;

		same = lstat(scratch_path(f->name), &st) == 0 &&
		       st.st_mode == f->before.st_mode && st.st_ino == f->before.st_ino &&
		       st.st_uid == f->before.st_uid && st.st_gid == f->before.st_gid &&
		       st.st_nlink == f->before.st_nlink &&
		       same_time(&st.st_mtim, &f->before.st_mtim) &&
		       same_time(&st.st_ctim, &f->before.st_ctim);
		fd = open(scratch_path(f->name), O_RDONLY | O_CLOEXEC);
		if (S_ISREG(f->before.st_mode))
			same = same && read(fd, text, sizeof(text) - 1) > 0 &&
			       strcmp(text, SECRET) == 0;
		if (fd >= 0)
			(void)close(fd);
		if (!same)
			(void)printf("FAIL\toutside: %s was changed\n", f->name);
		harmed += !same;
	}
	return !harmed;
}

/* The names in a directory are those that were made here, and no other. */
static int only_in(const char *dir, const char *names)
{
	DIR *d = opendir(scratch_path(dir));
	const struct dirent *e;
	char word[300];
	int strange = 0;

	while (d && (e = readdir(d))) {
		(void)snprintf(word, sizeof(word), " %s ", e->d_name);
		if (strstr(names, word))
			continue;
		(void)printf("FAIL\toutside: a new file: %s/%s\n", dir, e->d_name);
		strange++;
	}
	if (d)
		(void)closedir(d);
	return d && !strange;
}

static int nothing_new(void)
{
	return only_in("outside", " . .. victim ") &&
	       only_in("shown", " . .. dir file program ") &&
	       only_in("shown/dir", " . .. ");
}

/* ---- set-id files in the workspace ---- */

static int no_set_uid(void)
{
	const char *top = scratch_path("work");
	char *const paths[] = {(char *)(uintptr_t)top, NULL};
	FTS *tree = fts_open(paths, FTS_PHYSICAL, NULL);
	const FTSENT *e;
	int found = 0;

	while (tree && (e = fts_read(tree)))
		if (e->fts_info == FTS_F && (e->fts_statp->st_mode & S_ISUID)) {
			(void)printf("FAIL\toutside: set-uid: %s\n", e->fts_name);
			found++;
		}
	return tree && fts_close(tree) == 0 && !found;
}

/* ---- shared places ---- */

static char dev_shm[64];

static int make_shared(void)
{
	int fd;

	target_set("unique", "lych-probe-%d", getpid());
	(void)snprintf(dev_shm, sizeof(dev_shm), "/dev/shm/lych-victim-%d", getpid());
	target_set("dev_shm", "%s", dev_shm);
	fd = open(dev_shm, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return fd < 0 ? -1 : close(fd);
}

static int shared_untouched(void)
{
	static const char *const places[] = {"/tmp", "/var/tmp", "/dev/shm", NULL};
	char path[64];
	int found = unlink(dev_shm) < 0;

	for (const char *const *p = places; *p; p++) {
		(void)snprintf(path, sizeof(path), "%s/%s", *p, target("unique"));
		found += access(path, F_OK) == 0;
	}
	(void)snprintf(path, sizeof(path), "/run/user/%u/%s", getuid(), target("unique"));
	return !found && access(path, F_OK) < 0;
}

/* ---- a shown file that is replaced when the job asks for it ---- */

static int make_later(void)
{
	target_set("later", "%s", scratch_path("later"));
	return make_file("later", 0600, "shown\n");
}

static void replace_later(void)
{
	if (access(scratch_path("work/replace"), F_OK) < 0 ||
	    access(scratch_path("work/replaced"), F_OK) == 0)
		return;
	if (make_file("later.new", 0600, "another secret\n") < 0 ||
	    rename(scratch_path("later.new"), scratch_path("later")) < 0 ||
	    make_file("work/replaced", 0600, "") < 0)
		(void)printf("FAIL\toutside: cannot replace a file\n");
}

static int was_replaced(void)
{
	return access(scratch_path("work/replace"), F_OK) < 0 ||
	       access(scratch_path("work/replaced"), F_OK) == 0;
}

static const struct victim all[] = {
	{"files are as they were, to the ctime", make_files, files_unharmed, NULL},
	{"nothing new beside them", NULL, nothing_new, NULL},
	{"no set-uid file in the workspace", NULL, no_set_uid, NULL},
	{"nothing in the shared places", make_shared, shared_untouched, NULL},
	{"a shown file was replaced when the job asked", make_later, was_replaced,
	 replace_later},
};
const struct victims victims_files = {all, sizeof(all) / sizeof(all[0])};
