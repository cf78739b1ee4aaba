/* SPDX-License-Identifier: Apache-2.0 */
/* Section A, files: contents, names, links. */
#include "tests/escape/probe/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define ROUNDS 3000
#define RENAME_BOTH 2 /* RENAME_EXCHANGE; <stdio.h> and <linux/fs.h> disagree on more */
#define RENAME_HIDE 4 /* RENAME_WHITEOUT */

/* ---- 1-4: contents ---- */

static int secret_read(void)
{
	return read_outside(target("victim"));
}
static int secret_openat2(void)
{
	struct open_how how = {.flags = O_RDONLY | O_CLOEXEC};

	return answer_of(
		syscall(SYS_openat2, AT_FDCWD, target("victim"), &how, sizeof(how)));
}
static int etc_shadow(void)
{
	return read_outside("/etc/shadow");
}
static int list(const char *dir)
{
	return answer_of(open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}
static int list_home(void)
{
	return list("/home");
}
static int list_run(void)
{
	return list("/run");
}
static int canary(void)
{
	return read_outside(in_floor() ? "/" : "/.lychgate-canary");
}
static int secret_write(void)
{
	return write_outside(target("victim"));
}
/* For ioctls, says open(2); Landlock has no right for it. */
static int neither(const char *path)
{
	return answer_of(open(path, O_ACCMODE | O_CLOEXEC));
}
static int secret_neither(void)
{
	return neither(target("victim"));
}
static int create_outside(void)
{
	return answer_of(open(path_beside(target("victim"), "new"),
			      O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}
static int unlink_outside(void)
{
	return answer_of(unlink(target("victim")));
}
static int mkdir_outside(void)
{
	return answer_of(mkdir(path_beside(target("victim"), "dir"), 0700));
}
static int nameless_outside(void)
{
	return answer_of(open(target("outside"), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600));
}
static int symlink_outside(void)
{
	return answer_of(symlink("/", path_beside(target("victim"), "link")));
}
static int fifo_outside(void)
{
	return answer_of(mkfifo(path_beside(target("victim"), "fifo"), 0600));
}
static int write_usr(void)
{
	return answer_of(open("/usr/probe", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}
static int write_etc(void)
{
	return write_outside("/etc/passwd");
}
static int write_shown(void)
{
	return write_outside(target("shown"));
}
static int shown_neither(void)
{
	return neither(target("shown"));
}
static int truncate_outside(void)
{
	return answer_of(truncate(target("victim"), 0));
}
static int truncate_shown(void)
{
	return answer_of(truncate(target("shown"), 0));
}
static int shown_fd(int flags)
{
	return open(target("shown"), flags | O_CLOEXEC);
}
static int ftruncate_read_only(void)
{
	return answer_of(ftruncate(shown_fd(O_RDONLY), 0));
}
static int ftruncate_path(void)
{
	return answer_of(ftruncate(shown_fd(O_PATH), 0));
}
static int ioctl_path(void)
{
	int n;

	return answer_of(ioctl(shown_fd(O_PATH), FIONREAD, &n));
}

/* ---- 10-18: other ways to name a file ---- */

static int fanotify(void)
{
	return answer_of(syscall(SYS_fanotify_init, 0, 0));
}
static int fanotify_mark_it(void)
{
	return answer_of(syscall(SYS_fanotify_mark, 0, 1, 2, AT_FDCWD, target("victim")));
}
static int through_symlink(void)
{
	(void)unlink("sym");
	if (symlink(target("victim"), "sym") < 0)
		return errno;
	return read_outside("sym");
}
static int create_through_symlink(void)
{
	(void)unlink("dangling");
	if (symlink(path_beside(target("victim"), "made"), "dangling") < 0)
		return errno;
	return answer_of(open("dangling", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}
static int hard_link(void)
{
	return answer_of(link(target("victim"), "linked"));
}
static int hard_link_shown(void)
{
	return answer_of(link(target("shown"), "linked"));
}
static int hard_link_empty_path(void)
{
	int fd = open(target("victim"), O_PATH | O_CLOEXEC);

	return fd < 0 ? errno
		      : answer_of(linkat(fd, "", AT_FDCWD, "linked", AT_EMPTY_PATH));
}
static int hard_link_proc_fd(void)
{
	int fd = open(target("victim"), O_PATH | O_CLOEXEC);
	char path[64];

	if (fd < 0)
		return errno;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return answer_of(linkat(AT_FDCWD, path, AT_FDCWD, "linked", AT_SYMLINK_FOLLOW));
}
static int own_file(const char *name)
{
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, "own\n", 4) != 4)
		return -1;
	return fd;
}
static int rename_out(void)
{
	(void)own_file("mine");
	return answer_of(rename("mine", path_beside(target("victim"), "mine")));
}
static int rename_in(void)
{
	return answer_of(rename(target("victim"), "stolen"));
}
static int rename_shown(void)
{
	return answer_of(rename(target("shown"), "stolen"));
}
/* From one directory of the workspace to another, by link and by name. */
static int rename_within(void)
{
	if (mkdir("here", 0700) < 0 || mkdir("there", 0700) < 0 ||
	    close(open("here/file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600)) < 0 ||
	    link("here/file", "there/link") < 0)
		return errno;
	return allowed_or_errno(rename("here/file", "there/file"));
}
static int rename_flags(unsigned flags)
{
	(void)own_file("mine");
	return answer_of(syscall(SYS_renameat2, AT_FDCWD, target("victim"), AT_FDCWD,
				 "mine", flags));
}
static int rename_exchange(void)
{
	return rename_flags(RENAME_BOTH);
}
static int rename_whiteout(void)
{
	return rename_flags(RENAME_HIDE);
}

/* One process moves, the other opens. The union of two grants would be a file of the
 * read-only one, open for writing. */
static int race(void (*move)(void), int (*open_it)(void))
{
	pid_t mover = fork();
	int won = 0;

	if (mover == 0)
		for (;;)
			move();
	for (int i = 0; i < ROUNDS && !won; i++)
		won = open_it() >= 0;
	(void)kill(mover, SIGKILL);
	(void)waitpid(mover, NULL, 0);
	return won ? GOT_THROUGH : HELD;
}
static void move_between_grants(void)
{
	const char *dir = target("shown_dir");

	(void)rename(dir, "moved");
	(void)rename("moved", dir);
}
static int close_after(int fd)
{
	if (fd >= 0)
		(void)close(fd);
	return fd;
}
static int open_both_ways(void)
{
	int fd = close_after(open(target("shown"), O_WRONLY | O_CLOEXEC));

	return fd >= 0 ? fd : close_after(open("moved/file", O_WRONLY | O_CLOEXEC));
}
static int race_grants(void)
{
	return race(move_between_grants, open_both_ways);
}
static void swap_for_symlink(void)
{
	(void)mkdir("swap", 0700);
	(void)rmdir("swap");
	if (symlink(target("outside"), "swap") == 0)
		(void)unlink("swap");
}
static int open_through_swap(void)
{
	return close_after(open("swap/victim", O_RDONLY | O_CLOEXEC));
}
static int race_symlink(void)
{
	return race(swap_for_symlink, open_through_swap);
}
/* 7 and 9 are a directory and a file that the caller of the sandbox left open. */
static int inherited_dir(void)
{
	return answer_of(openat(7, "victim", O_RDONLY | O_CLOEXEC));
}
static int inherited_dir_openat2(void)
{
	struct open_how how = {.flags = O_RDONLY | O_CLOEXEC};

	return answer_of(syscall(SYS_openat2, 7, "victim", &how, sizeof(how)));
}
static int cwd_relative(void)
{
	return read_outside("../outside/victim");
}
static int proc_cwd(void)
{
	return read_outside("/proc/self/cwd/../outside/victim");
}
static int proc_root(void)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "/proc/self/root%s", target("victim"));
	return read_outside(path);
}
static int reopen(int fd)
{
	char path[64];

	if (fd < 0)
		return errno;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return answer_of(open(path, O_RDWR | O_CLOEXEC));
}
static int reopen_shown(void)
{
	return reopen(shown_fd(O_RDONLY));
}
static int reopen_path(void)
{
	return reopen(open(target("victim"), O_PATH | O_CLOEXEC));
}
static int handle_of(void)
{
	struct {
		struct file_handle h;
		char space[128];
	} f = {.h.handle_bytes = 128};
	int id;

	return answer_of(name_to_handle_at(AT_FDCWD, ".", &f.h, &id, 0));
}
static int open_handle(void)
{
	struct {
		struct file_handle h;
		char space[128];
	} f = {.h = {.handle_bytes = 8, .handle_type = 1}};

	f.space[0] = 2; /* the root's inode on ext4 */
	return answer_of(open_by_handle_at(AT_FDCWD, &f.h, O_RDONLY));
}

/* clang-format off */
#define OUT {ENOENT}, {EACCES}

static const struct probe probes[] = {
	{"1", "read a file of the same uid outside", secret_read, OUT},
	{"1b", "the same by openat2", secret_openat2, {ENOSYS}, {ENOSYS},
	 "its flags and mode are in memory: programs fall back to openat"},
	{"1c", "/etc/shadow", etc_shadow, OUT},
	{"1d", "list /home", list_home, OUT},
	{"1e", "list /run", list_run, OUT},
	{"1f", "open what nothing grants, in the private root or `/`", canary, {EACCES},
	 {EACCES}},
	{"2", "open for write outside", secret_write, OUT},
	{"2b", "create a file outside", create_outside, OUT},
	{"2c", "unlink outside", unlink_outside, OUT},
	{"2d", "mkdir outside", mkdir_outside, OUT},
	{"2e", "O_TMPFILE outside", nameless_outside, {ENOENT}, {EACCES}},
	{"2f", "symlink outside", symlink_outside, OUT},
	{"2g", "mkfifo outside", fifo_outside, OUT},
	{"2h", "write to /usr", write_usr, {EROFS}, {EACCES}},
	{"2i", "write to /etc/passwd", write_etc, {EROFS}, {EACCES}},
	{"2j", "write to a file shown read-only", write_shown, {EROFS}, {EACCES}},
	{"2k", "open outside for neither reading nor writing (access mode 3)",
	 secret_neither, {EPERM}, {EPERM}},
	{"2l", "the same of a file shown read-only", shown_neither, {EPERM}, {EPERM}},
	{"3", "truncate outside", truncate_outside, OUT},
	{"3b", "truncate a file shown read-only", truncate_shown, {EROFS}, {EACCES}},
	{"4", "ftruncate of an O_RDONLY descriptor", ftruncate_read_only, {EINVAL},
	 {EINVAL}},
	{"4b", "ftruncate of an O_PATH descriptor", ftruncate_path, {EBADF}, {EBADF}},
	{"4c", "ioctl on an O_PATH descriptor", ioctl_path, {EBADF}, {EBADF}},
	{"10", "fanotify_init", fanotify, {EPERM}, {EPERM}},
	{"10b", "fanotify_mark", fanotify_mark_it, {EPERM}, {EPERM}},
	{"11", "open through a symlink of the workspace", through_symlink, OUT},
	{"11b", "create through a dangling symlink", create_through_symlink, OUT},
	{"12", "hard link a file of outside into the workspace", hard_link, {ENOENT},
	 {EXDEV}},
	{"12b", "linkat AT_EMPTY_PATH", hard_link_empty_path, {ENOENT}, {EXDEV}},
	{"12c", "linkat through /proc/self/fd", hard_link_proc_fd, {ENOENT}, {EXDEV}},
	{"12d", "hard link a file shown read-only into the workspace", hard_link_shown,
	 {EXDEV}, {EXDEV}},
	{"13", "rename out of the workspace", rename_out, OUT},
	{"13b", "rename into the workspace", rename_in, OUT},
	{"13c", "RENAME_EXCHANGE", rename_exchange, OUT},
	{"13d", "RENAME_WHITEOUT", rename_whiteout, OUT},
	{"13e", "rename what is shown read-only", rename_shown, {EXDEV}, {EACCES}},
	{"13f", "link and rename between directories of the workspace", rename_within,
	 {ALLOWED}, {ALLOWED}, "they are its own"},
	{"14", "race: rename between two grants against open", race_grants, {HELD},
	 {HELD}},
	{"14b", "race: a directory swapped for a symlink against open", race_symlink,
	 {HELD}, {HELD}},
	{"15", "openat from a directory the caller left open", inherited_dir, {EBADF},
	 {EBADF}},
	{"15b", "openat2 from it", inherited_dir_openat2, {ENOSYS}, {ENOSYS}},
	{"16", "`../outside/victim` from the working directory", cwd_relative, OUT},
	{"16b", "by /proc/self/cwd/..", proc_cwd, OUT},
	{"16c", "by /proc/self/root", proc_root, OUT},
	{"17", "reopen a read-only descriptor for write by /proc/self/fd", reopen_shown,
	 {EROFS}, {EACCES}},
	{"17b", "reopen an O_PATH descriptor", reopen_path, OUT},
	{"18", "name_to_handle_at", handle_of, {EPERM}, {EPERM}},
	{"18b", "open_by_handle_at", open_handle, {EPERM}, {EPERM}},
};
/* clang-format on */

const struct section section_files = {'A', "Files", probes,
				      sizeof(probes) / sizeof(probes[0])};
