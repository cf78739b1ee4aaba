/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/str.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[] = "/tmp/lych-fs-XXXXXX";
static int top = -1;

static void setup(void)
{
	cr_assert_not_null(mkdtemp(dir));
	top = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	cr_assert_geq(top, 0);
}

static void teardown(void)
{
	struct err err = ERR_INIT;
	int parent = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);

	cr_assert_eq(fs_remove_beneath(parent, dir + 5, &err), 0, "%s", err.msg);
	cr_assert_lt(access(dir, F_OK), 0);
	(void)close(parent);
}

TestSuite(fs, .init = setup, .fini = teardown, .timeout = 20);

static void put(const char *name, const char *text)
{
	struct err err = ERR_INIT;

	cr_assert_eq(fs_write_atomic(top, name, text, strlen(text), 0600, &err), 0, "%s",
		     err.msg);
}

Test(fs, open_beneath_never_leaves)
{
	struct err err = ERR_INIT;

	cr_assert_eq(symlinkat("/etc/passwd", top, "link"), 0);
	cr_assert_eq(symlinkat(".", top, "self"), 0);
	put("plain", "x");
	cr_assert_lt(fs_open_beneath(top, "link", O_RDONLY, 0, &err), 0);
	cr_assert_eq(err.sys, ELOOP);
	cr_assert_lt(fs_open_beneath(top, "self/plain", O_RDONLY, 0, &err), 0);
	cr_assert_lt(fs_open_beneath(top, "../etc/passwd", O_RDONLY, 0, &err), 0);
	cr_assert_lt(fs_open_beneath(top, "/etc/passwd", O_RDONLY, 0, &err), 0);
	{
		cleanup_close int fd = fs_open_beneath(top, "plain", O_RDONLY, 0, &err);

		cr_assert_geq(fd, 0);
		cr_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	}
}

Test(fs, mkdir_beneath_refuses_a_link_on_the_way)
{
	struct err err = ERR_INIT;

	cr_assert_eq(symlinkat("/tmp", top, "out"), 0);
	cr_assert_lt(fs_mkdir_beneath(top, "out/lych-must-not-exist", 0700, &err), 0);
	cr_assert_lt(access("/tmp/lych-must-not-exist", F_OK), 0);
	cr_assert_lt(fs_mkdir_beneath(top, "out", 0700, &err), 0);
	cr_assert_lt(fs_mkdir_beneath(top, "../x", 0700, &err), 0);
	cr_assert_eq(fs_mkdir_beneath(top, "a/b/c", 0700, &err), 0, "%s", err.msg);
	cr_assert_eq(fs_mkdir_beneath(top, "a/b/c", 0700, &err), 0);
}

/* Trees that jobs leave behind: unreadable, very deep, with links to the outside. */
Test(fs, remove_takes_hostile_trees_and_nothing_else)
{
	struct err err = ERR_INIT;
	int at;

	put("victim", "stays");
	cr_assert_eq(fs_mkdir_beneath(top, "job/locked/in", 0700, &err), 0);
	at = fs_open_beneath(top, "job", O_RDONLY | O_DIRECTORY, 0, &err);
	cr_assert_eq(symlinkat("../victim", at, "link"), 0);
	cr_assert_eq(symlinkat("..", at, "updir"), 0);
	cr_assert_eq(mkfifoat(at, "fifo", 0600), 0);
	cr_assert_eq(fchmodat(at, "locked", 0, 0), 0);
	for (int depth = 0; depth < 3000; depth++) {
		int next;

		cr_assert_eq(mkdirat(at, "d", 0700), 0);
		next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		cr_assert_geq(next, 0);
		(void)close(at);
		at = next;
	}
	(void)close(at);
	cr_assert_eq(fs_remove_beneath(top, "job", &err), 0, "%s", err.msg);
	cr_assert_lt(faccessat(top, "job", F_OK, 0), 0);
	cr_assert_eq(faccessat(top, "victim", F_OK, 0), 0);
	cr_assert_eq(fs_remove_beneath(top, "job", &err), 0, "missing is success");
}

Test(fs, secrets_must_be_private_files)
{
	struct err err = ERR_INIT;
	char out[16];

	cr_assert_lt(fs_read_secret(top, "none", out, sizeof(out), &err), 0);
	cr_assert_eq(err.id, ERRID_SECRET_MISSING);
	put("s", "hunter2\n");
	cr_assert_eq(fs_read_secret(top, "s", out, sizeof(out), &err), 0, "%s", err.msg);
	cr_assert_str_eq(out, "hunter2");
	cr_assert_eq(fchmodat(top, "s", 0640, 0), 0);
	cr_assert_lt(fs_read_secret(top, "s", out, sizeof(out), &err), 0);
	cr_assert_eq(err.id, ERRID_SECRET_FILE);
	cr_assert_eq(symlinkat("s", top, "ln"), 0);
	cr_assert_lt(fs_read_secret(top, "ln", out, sizeof(out), &err), 0);
	put("long", "0123456789abcdef");
	cr_assert_lt(fs_read_secret(top, "long", out, sizeof(out), &err), 0);
	put("empty", "\n");
	cr_assert_lt(fs_read_secret(top, "empty", out, sizeof(out), &err), 0);
	cr_assert_eq(mkfifoat(top, "fifo", 0600), 0);
	cr_assert_lt(fs_read_secret(top, "fifo", out, sizeof(out), &err), 0);
}

Test(fs, read_file_is_capped_and_never_waits_on_a_fifo)
{
	struct err err = ERR_INIT;
	cleanup_free char *data = NULL;
	size_t len;

	put("f", "12345");
	cr_assert_lt(fs_read_file(top, "f", 4, &data, &len, &err), 0);
	cr_assert_eq(err.id, ERRID_CORE_TOO_LARGE);
	cr_assert_lt(fs_read_file(top, "nowhere", 4, &data, &len, &err), 0);
	cr_assert_eq(err.id, ERRID_CORE_NO_FILE);
	cr_assert_eq(err.sys, ENOENT);
	cr_assert_lt(fs_read_file(top, ".", 4, &data, &len, &err), 0);
	cr_assert_eq(err.id, ERRID_CORE_FILE_KIND);
	cr_assert_eq(fs_read_file(top, "f", 5, &data, &len, &err), 0);
	cr_assert_eq(len, 5u);
	cr_assert_eq(mkfifoat(top, "p", 0600), 0);
	cr_assert_lt(fs_read_file(top, "p", 5, &data, &len, &err), 0);
}

Test(fs, a_lock_names_its_holder)
{
	struct err err = ERR_INIT;
	int fd = openat(top, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600), pipefd[2];
	pid_t child, holder = 0;
	char c;

	cr_assert_eq(pipe(pipefd), 0);
	child = fork();
	if (child == 0) {
		if (fs_lock(fd, NULL, &err) == 0)
			(void)!write(pipefd[1], "x", 1);
		(void)pause();
		_exit(0);
	}
	cr_assert_eq(read(pipefd[0], &c, 1), 1);
	cr_assert_lt(fs_lock(fd, &holder, &err), 0);
	cr_assert_eq(err.id, ERRID_START_LOCKED);
	cr_assert_eq(holder, child);
	(void)kill(child, SIGKILL);
	(void)waitpid(child, NULL, 0);
	cr_assert_eq(fs_lock(fd, NULL, &err), 0);
	(void)close(fd);
}

/* Each step is bounded, each makes progress, and what is left is removed by the next. */
/* A process that locked, forked and was killed: its child has the lock for `msec`. */
static pid_t left_locked(int msec)
{
	int fd = openat(top, "locked", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	pid_t pid;

	cr_assert(fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0);
	pid = fork();
	if (pid == 0) {
		(void)usleep((useconds_t)msec * 1000);
		_exit(0);
	}
	(void)close(fd);
	return pid;
}

Test(fs, a_shared_lock_is_waited_for_but_not_for_long)
{
	int fd = openat(top, "locked", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	pid_t pid = left_locked(5000);

	cr_expect_eq(fs_flock_soon(fd), -1);
	cr_expect_eq(errno, EWOULDBLOCK);
	(void)kill(pid, SIGKILL);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	pid = left_locked(100);
	cr_expect_eq(fs_flock_soon(fd), 0);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	(void)close(fd);
}

Test(fs, remove_in_steps)
{
	struct fs_removal *removal;
	struct err err = ERR_INIT;
	unsigned steps = 0;
	char name[64];
	int r;

	for (int d = 0; d < 3; d++) {
		cr_assert_eq(str_fmt(name, sizeof(name), "big/%d/a/b/c", d), 0);
		cr_assert_eq(fs_mkdir_beneath(top, name, 0700, &err), 0, "%s", err.msg);
		for (int i = 0; i < 40; i++) {
			cr_assert_eq(str_fmt(name, sizeof(name), "big/%d/a/b/%d", d, i),
				     0);
			put(name, "x");
		}
	}
	removal = fs_removal_new(top, "big");
	while ((r = fs_removal_step(removal, 2, &err)) > 0)
		cr_assert_lt(++steps, 1000u, "no progress");
	fs_removal_free(removal);
	cr_assert_eq(r, 0, "%s", err.msg);
	cr_assert_geq(steps, 40u);
	cr_assert_lt(faccessat(top, "big", F_OK, AT_SYMLINK_NOFOLLOW), 0);
	removal = fs_removal_new(top, "big");
	cr_assert_eq(fs_removal_step(removal, 2, &err), 0, "missing is success");
	fs_removal_free(removal);
}

/* A chain of `depth` directories "d", each beside `files` files. */
static void dig(const char *name, int depth, int files)
{
	int at = top;

	for (int d = 0; d <= depth; d++) {
		const char *next = d ? "d" : name;
		char file[16];
		int fd;

		cr_assert_eq(mkdirat(at, next, 0700), 0);
		fd = openat(at, next, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		cr_assert_geq(fd, 0);
		if (at != top)
			(void)close(at);
		at = fd;
		for (int i = 0; i < files; i++) {
			cr_assert_eq(str_fmt(file, sizeof(file), "f%d", i), 0);
			fd = openat(at, file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
			cr_assert_geq(fd, 0);
			(void)close(fd);
		}
	}
	(void)close(at);
}

/* Deeper than its descriptors, with something left at every level on the way back. */
Test(fs, remove_comes_back_up_from_any_depth)
{
	struct err err = ERR_INIT;

	dig("deep", 200, 3);
	cr_assert_eq(fs_remove_beneath(top, "deep", &err), 0, "%s", err.msg);
	cr_assert_lt(faccessat(top, "deep", F_OK, 0), 0);
}

/* Whoever moves a directory away while it is emptied gets nothing else emptied. */
Test(fs, remove_is_not_led_out_of_its_tree)
{
	struct fs_removal *r = fs_removal_new(top, "deep");
	struct err err = ERR_INIT;
	int left;

	put("other", "stays");
	dig("deep", 80, 0);
	/* Three entries a level ("." and ".." among them) at most. */
	for (int i = 0; i < 60; i++)
		cr_assert_eq(fs_removal_step(r, 3, &err), 1);
	cr_assert_eq(mkdirat(top, "elsewhere", 0700), 0);
	put("elsewhere/kept", "stays");
	cr_assert_eq(renameat(top, "deep/d/d/d", top, "elsewhere/d"), 0);
	while ((left = fs_removal_step(r, 3, &err)) > 0)
		;
	fs_removal_free(r);
	cr_assert_lt(left, 0);
	cr_assert_eq(err.code, ERR_CONFLICT, "%s", err.msg);
	cr_assert_eq(faccessat(top, "elsewhere/kept", F_OK, 0), 0);
	cr_assert_eq(faccessat(top, "other", F_OK, 0), 0);
}

Test(fs, move_file_replaces_what_is_there)
{
	cleanup_free char *data = NULL;
	struct err err = ERR_INIT;
	cleanup_close int to = -1;

	cr_assert_eq(mkdirat(top, "to", 0700), 0);
	to = openat(top, "to", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	put("from", "new");
	put("to/there", "old");
	cr_assert_eq(fs_move_file(top, "from", to, "fresh", &err), 0, "%s", err.msg);
	put("from", "new");
	cr_assert_eq(fs_move_file(top, "from", to, "there", &err), 0, "%s", err.msg);
	cr_assert_eq(fs_read_file(to, "there", 16, &data, NULL, &err), 0);
	cr_assert_str_eq(data, "new");
	cr_assert_lt(faccessat(top, "from", F_OK, 0), 0);
	/* One that was linked, and then its owner was killed. */
	cr_assert_eq(linkat(to, "there", top, "from", 0), 0);
	cr_assert_eq(fs_move_file(top, "from", to, "there", &err), 0, "%s", err.msg);
	cr_assert_eq(unlinkat(to, "there", 0) | unlinkat(to, "fresh", 0), 0);
	cr_assert_eq(unlinkat(top, "to", AT_REMOVEDIR), 0, "something else is left");
	cr_assert_lt(fs_move_file(top, "from", to, "there", &err), 0);
	cr_assert_eq(err.sys, ENOENT);
}
