/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * What a tomb of embedded mode sees (up_wall.c has the theory): clones of what it needs in a
 * tmpfs of its own.
 */
#include "cli/local/up_wall.h"

#include "cli/local/up.h"
#include "common/cleanup.h"
#include "common/crypto/tomb_secret.h"
#include "common/mem.h"
#include "common/str.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OWN_DB TOMB_SECRET_DB_OF TOMB_NAME
#define OWN_WORK TOMB_SECRET_WORK_OF TOMB_NAME
#define JOBS_DIR "/lych/tomb/jobs"
#define NEW_ROOT "/tmp" /* only a place to mount on; hidden again by the pivot */

enum tree_kind {
	TREE_RO,  /* system path: read-only, no devices, no setuid */
	TREE_RW,  /* a directory of the tomb's own */
	TREE_DEV, /* one device node */
	TREE_CGROUP,
};

struct tree {
	const char *from;
	const char *to; /* below the new root */
	enum tree_kind kind;
	bool optional;
	int fd;
	bool is_dir;
};

static int tree_take(struct tree *t, struct err *err)
{
	struct mount_attr attr = {0};
	struct stat st;

	t->fd = open_tree(AT_FDCWD, t->from,
			  OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE |
				  AT_SYMLINK_NOFOLLOW);
	if (t->fd < 0) {
		if (errno == ENOENT && t->optional)
			return 0;
		return err_sys_id(err, ERRID_SANDBOX_ROOT, "open_tree %s", t->from);
	}
	if (fstat(t->fd, &st) < 0)
		return err_sys_id(err, ERRID_SANDBOX_ROOT, "stat %s", t->from);
	if (S_ISLNK(st.st_mode))
		return err_set_id(err, ERRID_SANDBOX_ROOT, "%s is a symlink", t->from);
	t->is_dir = S_ISDIR(st.st_mode);
	switch (t->kind) {
	case TREE_RO:
		attr.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
		break;
	case TREE_RW:
	case TREE_CGROUP:
		attr.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
		break;
	case TREE_DEV:
		attr.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;
		break;
	default:
		return err_set(err, ERR_INTERNAL, "tree kind");
	}
	/* jobs run what they build: the work folders live below the tomb's data */
	if (t->kind == TREE_RW &&
	    (str_eq(t->to, "/lych/tomb") || str_eq(t->to, JOBS_DIR)))
		attr.attr_set &= ~(unsigned long long)MOUNT_ATTR_NOEXEC;
	attr.propagation = MS_PRIVATE;
	if (mount_setattr(t->fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) <
	    0)
		return err_sys_id(err, ERRID_SANDBOX_ROOT, "mount_setattr %s", t->from);
	return 0;
}

/* Make the place (parents exist already or are made), then move the clone there. */
static int tree_place(const struct tree *t, struct err *err)
{
	char path[PATH_MAX];

	if (t->fd < 0)
		return 0;
	if (str_fmt(path, sizeof(path), NEW_ROOT "%s", t->to) < 0)
		return err_set_id(err, ERRID_SANDBOX_ROOT, "%s: too long", t->to);
	if (t->is_dir) {
		if (mkdir(path, 0755) < 0 && errno != EEXIST)
			return err_sys_id(err, ERRID_SANDBOX_ROOT, "mkdir %s", t->to);
	} else {
		int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

		if (fd < 0)
			return err_sys_id(err, ERRID_SANDBOX_ROOT, "make %s", t->to);
		(void)close(fd);
	}
	if (move_mount(t->fd, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_sys_id(err, ERRID_SANDBOX_ROOT, "move_mount %s", t->to);
	return 0;
}

/* /bin, /lib … are links into /usr on a merged system, directories on others. */
static int system_links(char link[6][64], struct tree *extra, size_t *n_extra,
			struct err *err)
{
	static const char *const names[6] = {"/bin",   "/sbin",	 "/lib",
					     "/lib64", "/lib32", "/libx32"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct stat st;
		ssize_t n;

		link[i][0] = '\0';
		if (lstat(names[i], &st) < 0)
			continue;
		if (S_ISDIR(st.st_mode)) {
			extra[*n_extra] = (struct tree){.from = names[i],
							.to = names[i],
							.kind = TREE_RO,
							.fd = -1};
			if (tree_take(&extra[(*n_extra)++], err) < 0)
				return -1;
			continue;
		}
		n = readlink(names[i], link[i], 63);
		if (n < 0)
			return err_sys_id(err, ERRID_SANDBOX_ROOT, "readlink %s",
					  names[i]);
		link[i][n] = '\0';
	}
	return 0;
}

static int make_links(char link[6][64], struct err *err)
{
	static const char *const names[6] = {"bin",   "sbin",  "lib",
					     "lib64", "lib32", "libx32"};
	static const char *const dev[][2] = {{"/proc/self/fd", "dev/fd"},
					     {"/proc/self/fd/0", "dev/stdin"},
					     {"/proc/self/fd/1", "dev/stdout"},
					     {"/proc/self/fd/2", "dev/stderr"}};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (link[i][0] && symlink(link[i], names[i]) < 0)
			return err_sys_id(err, ERRID_SANDBOX_ROOT, "symlink /%s",
					  names[i]);
	for (size_t i = 0; i < ARRAY_SIZE(dev); i++)
		if (symlink(dev[i][0], dev[i][1]) < 0)
			return err_sys_id(err, ERRID_SANDBOX_ROOT, "symlink /%s",
					  dev[i][1]);
	return 0;
}

static int enter_root(struct err *err)
{
	struct mount_attr ro = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
					    MOUNT_ATTR_NODEV};

	if (mount("proc", NEW_ROOT "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		  NULL) < 0)
		return err_sys_id(err, ERRID_SANDBOX_ROOT,
				  "mount /proc (a masked /proc outside makes the kernel "
				  "refuse it)");
	if (mount("tmpfs", NEW_ROOT "/tmp", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		  "size=4m,mode=0700") < 0)
		return err_sys_id(err, ERRID_SANDBOX_ROOT, "mount /tmp");
	if (chdir(NEW_ROOT) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
		return err_sys_id(err, ERRID_SANDBOX_ROOT, "pivot_root");
	if (umount2(".", MNT_DETACH) < 0)
		return err_sys_id(err, ERRID_SANDBOX_ROOT, "detach the old root");
	if (chdir("/") < 0)
		return err_sys_id(err, ERRID_SANDBOX_ROOT, "chdir /");
	if (mount_setattr(AT_FDCWD, "/", 0, &ro, sizeof(ro)) < 0 ||
	    mount_setattr(AT_FDCWD, "/lych/secrets", 0, &ro, sizeof(ro)) < 0)
		return err_sys_id(err, ERRID_SANDBOX_ROOT, "make the root read-only");
	return 0;
}

/* Over the empty directory of that name, which lies below the tomb's data. */
static int mount_jobs(const char *bytes, struct err *err)
{
	char options[64];

	if (mkdir(NEW_ROOT JOBS_DIR, 0700) < 0 && errno != EEXIST)
		return err_sys_id(err, ERRID_SANDBOX_ROOT, "mkdir " JOBS_DIR);
	if (str_fmt(options, sizeof(options), "size=%s,mode=0700", bytes) < 0 ||
	    mount("tmpfs", NEW_ROOT JOBS_DIR, "tmpfs", MS_NOSUID | MS_NODEV, options) < 0)
		return err_sys_id(err, ERRID_SANDBOX_ROOT, "mount a tmpfs for jobs");
	return 0;
}

/* The new root, which has nothing yet but directories; we are in it then. */
static int make_root(struct err *err)
{
	static const char *const dirs[] = {"proc", "dev",      "tmp",
					   "lych", "lych/bin", "lych/secrets"};

	if (mount("tmpfs", NEW_ROOT, "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,mode=0755") <
	    0)
		return err_sys_id(err, ERRID_SANDBOX_ROOT, "mount the new root");
	if (chdir(NEW_ROOT) < 0)
		return err_sys_id(err, ERRID_SANDBOX_ROOT, "chdir");
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		if (mkdir(dirs[i], 0755) < 0)
			return err_sys_id(err, ERRID_SANDBOX_ROOT, "mkdir /%s", dirs[i]);
	if (mount("tmpfs", "lych/secrets", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		  "size=64k,mode=0700") < 0)
		return err_sys_id(err, ERRID_SANDBOX_ROOT, "mount /lych/secrets");
	return 0;
}

int wall_build_root(const struct wall *w, struct err *err)
{
	cleanup_free char *db = xasprintf("%s/" OWN_DB, w->secrets);
	cleanup_free char *work = xasprintf("%s/" OWN_WORK, w->secrets);
	struct tree trees[] = {
		{"/usr", "/usr", TREE_RO, false, -1, true},
		{"/etc", "/etc", TREE_RO, false, -1, true},
		{"/dev/null", "/dev/null", TREE_DEV, false, -1, false},
		{"/dev/zero", "/dev/zero", TREE_DEV, false, -1, false},
		{"/dev/full", "/dev/full", TREE_DEV, false, -1, false},
		{"/dev/random", "/dev/random", TREE_DEV, false, -1, false},
		{"/dev/urandom", "/dev/urandom", TREE_DEV, false, -1, false},
		{w->data, "/lych/tomb", TREE_RW, false, -1, true},
		{w->work, "/lych/work", TREE_RW, false, -1, true},
		{work, "/lych/secrets/" OWN_WORK, TREE_RO, false, -1, false},
		{w->tomb, "/lych/bin/lych-tomb", TREE_RO, false, -1, false},
		{w->sandbox, "/lych/bin/lych-sandbox", TREE_RO, false, -1, false},
		{w->tools, "/lych/bin/tools", TREE_RO, false, -1, true},
		{0}, /* what some tombs have and others have not */
		{0},
		{0},
		{0},
	};
	struct tree extra[6];
	char link[6][64];
	size_t n_extra = 0, n = ARRAY_SIZE(trees) - 4;

	if (w->pg) {
		trees[n++] = (struct tree){w->pg, "/lych/pg", TREE_RO, false, -1, true};
		trees[n++] = (struct tree){
			db, "/lych/secrets/" OWN_DB, TREE_RO, false, -1, false};
	}
	if (w->jobs_dir)
		trees[n++] =
			(struct tree){w->jobs_dir, JOBS_DIR, TREE_RW, false, -1, true};
	if (w->cgroup)
		trees[n++] = (struct tree){
			w->cgroup, "/lych/cgroup", TREE_CGROUP, true, -1, true};
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return err_sys_id(err, ERRID_SANDBOX_NS, "make mounts private");
	for (size_t i = 0; i < n; i++)
		if (tree_take(&trees[i], err) < 0)
			return -1;
	if (w->cgroup && trees[n - 1].fd < 0)
		return err_set_id(err, ERRID_SANDBOX_CGROUP, "%s is gone", w->cgroup);
	if (system_links(link, extra, &n_extra, err) < 0)
		return -1;
	if (make_root(err) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		if (tree_place(&trees[i], err) < 0)
			return -1;
	for (size_t i = 0; i < n_extra; i++)
		if (tree_place(&extra[i], err) < 0)
			return -1;
	if (w->jobs_tmpfs && mount_jobs(w->jobs_tmpfs, err) < 0)
		return -1;
	if (make_links(link, err) < 0)
		return -1;
	return enter_root(err);
}
