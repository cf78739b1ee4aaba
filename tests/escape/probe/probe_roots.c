/* SPDX-License-Identifier: Apache-2.0 */
/* Section A, files: devices, the kernel's files, roots, mounts, programs, sizes. */
#include "tests/escape/probe/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/capability.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define SYS_OPEN_TREE_ATTR 467

/* ---- 19-23: devices, the kernel's files, roots and mounts ---- */

static int device_node(mode_t type)
{
	return answer_of(mknod("node", type | 0600, 0x103));
}
static int char_device(void)
{
	return device_node(S_IFCHR);
}
static int block_device(void)
{
	return device_node(S_IFBLK);
}
/* EACCES when one of them is there and refused, else that none is there. */
static int any_of(const char *const *paths, int (*try_it)(const char *))
{
	int worst = ENOENT;

	for (; *paths; paths++) {
		int got = try_it(*paths);

		if (got == GOT_THROUGH) {
			(void)fprintf(stderr, "%s\n", *paths);
			return got;
		}
		if (got != ENOENT)
			worst = got;
	}
	return worst;
}
static int devices(void)
{
	static const char *const paths[] = {"/dev/kvm",
					    "/dev/fuse",
					    "/dev/mem",
					    "/dev/kmsg",
					    "/dev/vsock",
					    "/dev/vhost-vsock",
					    "/dev/net/tun",
					    "/dev/uinput",
					    "/dev/loop-control",
					    "/dev/snapshot",
					    "/dev/vda",
					    "/dev/sda",
					    "/dev/hpet",
					    "/dev/dri/renderD128",
					    NULL};

	return any_of(paths, read_outside);
}
static int kcore(void)
{
	return read_outside("/proc/kcore");
}
static int kernel_files(void)
{
	static const char *const paths[] = {
		"/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger",
		"/proc/sys/vm/drop_caches",	 "/proc/sys/kernel/ns_last_pid",
		"/proc/sys/kernel/hostname",	 NULL};

	return any_of(paths, write_outside);
}
static int own_proc_files(void)
{
	static const char *const paths[] = {"/proc/self/oom_score_adj",
					    "/proc/self/attr/current",
					    "/proc/self/attr/exec",
					    "/proc/self/loginuid",
					    "/proc/self/uid_map",
					    "/proc/self/setgroups",
					    "/proc/self/clear_refs",
					    "/proc/self/timerslack_ns",
					    NULL};

	return any_of(paths, write_outside);
}
static int sys_tree(void)
{
	return read_outside("/sys/kernel");
}
static int cgroup_files(void)
{
	static const char *const paths[] = {"/sys/fs/cgroup/cgroup.procs",
					    "/sys/fs/cgroup/cgroup.subtree_control",
					    "/sys/fs/cgroup/memory.max", NULL};

	return any_of(paths, write_outside);
}
static int do_chroot(void)
{
	return answer_of(chroot("."));
}
static int do_mount(void)
{
	return answer_of(mount("tmpfs", "/tmp", "tmpfs", 0, NULL));
}
static int bind_mount(void)
{
	return answer_of(mount("/", ".", NULL, MS_BIND | MS_REC, NULL));
}
static int remount_rw(void)
{
	return answer_of(mount("none", "/usr", NULL, MS_REMOUNT | MS_BIND, NULL));
}
static int do_umount(void)
{
	return answer_of(umount2("/proc", MNT_DETACH));
}
static int do_pivot(void)
{
	return answer_of(syscall(SYS_pivot_root, ".", "."));
}
static int do_fsopen(void)
{
	return answer_of(syscall(SYS_fsopen, "tmpfs", 0));
}
static int do_fsmount(void)
{
	return answer_of(syscall(SYS_fsmount, 0, 0, 0));
}
static int do_fspick(void)
{
	return answer_of(syscall(SYS_fspick, AT_FDCWD, "/", 0));
}
static int do_open_tree(void)
{
	return answer_of(syscall(SYS_open_tree, AT_FDCWD, "/", OPEN_TREE_CLONE));
}
static int do_open_tree_attr(void)
{
	return answer_of(
		syscall(SYS_OPEN_TREE_ATTR, AT_FDCWD, "/", OPEN_TREE_CLONE, NULL, 0));
}
static int do_move_mount(void)
{
	return answer_of(syscall(SYS_move_mount, AT_FDCWD, "/proc", AT_FDCWD, "/tmp", 0));
}
static int do_mount_setattr(void)
{
	return answer_of(syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, NULL, 0));
}

/* ---- 24-26: what may be executed, and as whom ---- */

static int copy_to(int to, const char *path)
{
	int from = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	off_t left;

	if (from < 0 || fstat(from, &st) < 0)
		return -1;
	for (left = st.st_size; left > 0;) {
		ssize_t n = sendfile(to, from, NULL, (size_t)left);

		if (n <= 0)
			return -1;
		left -= n;
	}
	return close(from);
}
/* "cat VICTIM", by a program that came from here: it runs behind the same walls. */
static int runs_and_gains_nothing(int fd, const char *const *argv)
{
	int status = 0, report[2], worked = 1;
	pid_t pid;

	if (pipe2(report, O_CLOEXEC) < 0)
		return NO_ANSWER;
	pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

		(void)dup2(null, 1);
		(void)dup2(null, 2);
		(void)syscall(SYS_execveat, fd >= 0 ? fd : AT_FDCWD,
			      fd >= 0 ? "" : argv[0], argv, NULL,
			      fd >= 0 ? AT_EMPTY_PATH : 0);
		_exit(write(report[1], &errno, sizeof(errno)) < 0);
	}
	(void)close(report[1]);
	if (read(report[0], &worked, sizeof(worked)) == sizeof(worked))
		return worked; /* the exec itself was refused */
	if (waitpid(pid, &status, 0) != pid)
		return NO_ANSWER;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? GOT_THROUGH : HELD;
}
static int make_cat(const char *name, mode_t mode)
{
	int fd;

	(void)unlink(name);
	fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, mode);
	if (fd < 0 || copy_to(fd, "/bin/cat") < 0 || close(fd) < 0)
		return -1;
	return 0;
}
static int exec_written(void)
{
	const char *argv[] = {"./cat", target("victim"), NULL};

	return make_cat("cat", 0700) < 0 ? NO_ANSWER : runs_and_gains_nothing(-1, argv);
}
static int exec_shown(void)
{
	const char *argv[] = {target("shown_program"), NULL};

	(void)execve(argv[0], (char *const *)(const void *)argv, NULL);
	return errno;
}
static int exec_memfd(void)
{
	const char *argv[] = {"cat", target("victim"), NULL};
	int fd = memfd_create("cat", MFD_CLOEXEC | 0x10u /* MFD_EXEC */);

	if (fd < 0 || copy_to(fd, "/bin/cat") < 0)
		return errno;
	return runs_and_gains_nothing(fd, argv);
}
static int exec_by_loader(void)
{
#ifdef __x86_64__
	const char *argv[] = {"/lib64/ld-linux-x86-64.so.2", "./cat.noexec",
			      target("victim"), NULL};
#else
	const char *argv[] = {"/lib/ld-linux-aarch64.so.1", "./cat.noexec",
			      target("victim"), NULL};
#endif

	return make_cat("cat.noexec", 0600) < 0 ? NO_ANSWER
						: runs_and_gains_nothing(-1, argv);
}
static int new_privileges(void)
{
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? HELD : GOT_THROUGH;
}
static int capabilities(void)
{
	cap_user_header_t h =
		&(struct __user_cap_header_struct){_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct d[2];

	if (syscall(SYS_capget, h, d) < 0)
		return GOT_THROUGH;
	for (int i = 0; i < 2; i++)
		if (d[i].effective | d[i].permitted | d[i].inheritable)
			return GOT_THROUGH;
	return HELD;
}
static int set_id_program(void)
{
	const char *argv[] = {"/usr/bin/su", "-c", "true", NULL};

	return access(argv[0], X_OK) < 0 ? HELD : runs_and_gains_nothing(-1, argv);
}

/* A set-id bit on a file that the job's owner owns outlives the job. */
static int create_set_uid(void)
{
	return answer_of(open("setuid", O_WRONLY | O_CREAT | O_CLOEXEC, 04755));
}
static int create_set_gid(void)
{
	return answer_of(open("setgid", O_WRONLY | O_CREAT | O_CLOEXEC, 02755));
}
static int nameless_set_uid(void)
{
	return answer_of(open(".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 04755));
}
static int openat2_set_uid(void)
{
	struct open_how how = {.flags = O_WRONLY | O_CREAT, .mode = 04755};

	return answer_of(syscall(SYS_openat2, AT_FDCWD, "setuid2", &how, sizeof(how)));
}
static int mknod_set_uid(void)
{
	return answer_of(mknod("setuid3", S_IFREG | 04755, 0));
}
static int chmod_own(mode_t mode)
{
	int fd = open("own", O_WRONLY | O_CREAT | O_CLOEXEC, 0700);

	return fd < 0 ? NO_ANSWER : answer_of(fchmod(fd, mode));
}
static int chmod_set_uid(void)
{
	return chmod_own(04755);
}
static int chmod_set_gid(void)
{
	int r = chmod_own(02755);

	return r == GOT_THROUGH ? ALLOWED : r;
}

/* ---- 27, 28: shared places, and a file that is replaced meanwhile ---- */

static int create_in(const char *dir)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, target("unique"));
	return allowed_or_errno(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}
static int in_tmp(void)
{
	return create_in("/tmp");
}
static int in_var_tmp(void)
{
	return create_in("/var/tmp");
}
static int in_dev_shm(void)
{
	return create_in("/dev/shm");
}
static int in_runtime_dir(void)
{
	char dir[64];
	int r;

	(void)snprintf(dir, sizeof(dir), "/run/user/%u", getuid());
	r = create_in(dir);
	return r == ALLOWED ? GOT_THROUGH : r;
}
static int read_dev_shm(void)
{
	return read_outside(target("dev_shm"));
}
static int replaced_meanwhile(void)
{
	char text[64] = "";
	int fd = open("replace", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		return NO_ANSWER;
	while (access("replaced", F_OK) < 0) /* a look of outside; our time is limited */
		(void)usleep(5000);
	fd = open(target("later"), O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno;
	if (read(fd, text, sizeof(text) - 1) < 0)
		return errno;
	return strstr(text, "another") ? GOT_THROUGH : HELD;
}

/* ---- 29-31: names and sizes ---- */

static int odd_names(void)
{
	static const char *const names[] = {"new\nline",
					    "back\\slash",
					    "\xff\xfe\xc3",
					    "\x1b]0;title\a",
					    "-rf",
					    "\"quoted\"",
					    " ",
					    "\342\200\256cod.exe"};
	char longest[NAME_MAX + 1];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (open(names[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0600) < 0)
			return errno;
	memset(longest, 'n', sizeof(longest) - 1);
	longest[NAME_MAX] = '\0';
	return allowed_or_errno(open(longest, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}
static int deeper_than_a_path(void)
{
	char name[201];

	memset(name, 'd', sizeof(name) - 1);
	name[200] = '\0';
	for (int depth = 0; depth < PATH_MAX / 200 + 10; depth++)
		if (mkdir(name, 0700) < 0 || chdir(name) < 0)
			return errno;
	return allowed_or_errno(open("bottom", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}
static int huge_file(void)
{
	(void)signal(SIGXFSZ, SIG_IGN);
	return open("huge", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}
static int sparse(void)
{
	return answer_of(ftruncate(huge_file(), 1LL << 40));
}
static int allocate(void)
{
	return answer_of(fallocate(huge_file(), 0, 0, 1LL << 40));
}
static int allocate_by_ioctl(void)
{
	struct {
		int16_t type, whence;
		int64_t start, len;
		int32_t sysid;
		uint32_t pid;
		int32_t pad[4];
	} space = {.len = 1 << 20};

	return answer_of(ioctl(huge_file(), 0x40305828UL /* FS_IOC_RESVSP */, &space));
}
/* A subvolume is a device of its own, which a walk over the workspace's does not enter. */
static int subvolume(void)
{
	static const unsigned long makes[] = {
		0x5000940e, /* BTRFS_IOC_SUBVOL_CREATE */
		0x50009418, /* BTRFS_IOC_SUBVOL_CREATE_V2 */
		0x50009401, /* BTRFS_IOC_SNAP_CREATE */
		0x50009417, /* BTRFS_IOC_SNAP_CREATE_V2 */
		0xc0c89425, /* BTRFS_IOC_SET_RECEIVED_SUBVOL */
		0x4020bc10, /* BCH_IOCTL_SUBVOLUME_CREATE */
	};
	static char arg[4096];
	int fd = open(".", O_RDONLY | O_CLOEXEC), got = EPERM;

	(void)snprintf(arg + 8, 16, "subvolume");
	for (size_t i = 0; i < sizeof(makes) / sizeof(makes[0]) && got == EPERM; i++)
		got = answer_of(ioctl(fd, makes[i], arg));
	return got;
}
static int write_far(void)
{
	return answer_of(pwrite(huge_file(), "x", 1, 1LL << 40));
}

/* clang-format off */
#define OUT {ENOENT}, {EACCES}
#define DENIED {EPERM}, {EPERM}
#define LIFECYCLE "tests/integration/daemons/lifecycle.sh"
#define PRIVATE "full: the job has its own"

static const struct probe probes[] = {
	{"19", "mknod of a character device", char_device, {EPERM}, {EPERM}},
	{"19b", "mknod of a block device", block_device, {EPERM}, {EPERM}},
	{"20", "kvm, fuse, mem, kmsg, vsock, tun, disks", devices, {ENOENT},
	 {EACCES, ENOENT}, "EACCES where the host has one of them"},
	{"20b", "/proc/kcore", kcore, {ENOENT, EACCES}, {ENOENT, EACCES}},
	{"21", "core_pattern, sysrq-trigger and others for write", kernel_files, {EACCES},
	 {EACCES}},
	{"21b", "own oom_score_adj, attr, loginuid, uid_map", own_proc_files, {EACCES},
	 {EACCES}},
	{"21c", "/sys", sys_tree, OUT},
	{"21d", "cgroup.procs and limits of a cgroup", cgroup_files, {ENOENT},
	 {ENOENT, EACCES}},
	{"22", "chroot", do_chroot, {EPERM}, {EPERM}},
	{"23", "mount", do_mount, {EPERM}, {EPERM}},
	{"23b", "bind mount", bind_mount, {EPERM}, {EPERM}},
	{"23c", "remount for write", remount_rw, {EPERM}, {EPERM}},
	{"23d", "umount2", do_umount, {EPERM}, {EPERM}},
	{"23e", "pivot_root", do_pivot, {EPERM}, {EPERM}},
	{"23f", "fsopen", do_fsopen, {EPERM}, {EPERM}},
	{"23g", "fsmount", do_fsmount, {EPERM}, {EPERM}},
	{"23h", "fspick", do_fspick, {EPERM}, {EPERM}},
	{"23i", "open_tree", do_open_tree, {EPERM}, {EPERM}},
	{"23j", "open_tree_attr", do_open_tree_attr, {EPERM}, {EPERM}},
	{"23k", "move_mount", do_move_mount, {EPERM}, {EPERM}},
	{"23l", "mount_setattr", do_mount_setattr, {EPERM}, {EPERM}},
	{"24", "execute a file written in the workspace", exec_written, {HELD}, {HELD},
	 "it runs, behind the same walls: the workspace is executable by policy"},
	{"24b", "execute a file that is shown read-only", exec_shown, {EACCES}, {EACCES}},
	{"25", "memfd and execveat(AT_EMPTY_PATH)", exec_memfd, {HELD}, {HELD},
	 "it runs, behind the same walls"},
	{"25b", "a file without x by the loader", exec_by_loader, {HELD}, {HELD},
	 "it runs, behind the same walls"},
	{"26", "new privileges by exec", new_privileges, {HELD}, {HELD}},
	{"26b", "capabilities", capabilities, {HELD}, {HELD}},
	{"26c", "su", set_id_program, {HELD}, {HELD}},
	{"26d", "create a set-uid file", create_set_uid, DENIED},
	{"26e", "create a set-gid file", create_set_gid, DENIED},
	{"26f", "O_TMPFILE with set-uid", nameless_set_uid, DENIED},
	{"26g", "openat2 with set-uid", openat2_set_uid, {ENOSYS}, {ENOSYS},
	 "its mode is in memory: programs fall back to openat"},
	{"26h", "mknod of a set-uid file", mknod_set_uid, DENIED},
	{"26i", "chmod u+s", chmod_set_uid, DENIED},
	{"26j", "chmod g+s", chmod_set_gid, {ALLOWED}, {EPERM},
	 "full: directories carry it, and a filter can't tell them from files"},
	{"27", "create in /tmp", in_tmp, {ALLOWED}, {EACCES}, PRIVATE},
	{"27b", "create in /dev/shm", in_dev_shm, {ALLOWED}, {EACCES}, PRIVATE},
	{"27c", "create in /var/tmp", in_var_tmp, {ENOENT}, {EACCES}},
	{"27d", "create in /run/user/UID", in_runtime_dir, {ENOENT}, {EACCES, ENOENT}},
	{"27e", "read a file of /dev/shm", read_dev_shm, {ENOENT}, {EACCES}},
	{"28", "a shown file that is replaced after the start", replaced_meanwhile,
	 {HELD}, {EACCES}, "full: the old one stays shown; floor: the grant is lost"},
	{"29", "names with newlines, controls, bad UTF-8, 255 bytes", odd_names,
	 {ALLOWED}, {ALLOWED},
	 "the workspace is the job's; what leaves it is checked at the harvest"},
	{"29b", "a tree deeper than PATH_MAX", deeper_than_a_path, {ALLOWED}, {ALLOWED},
	 "counted all the same: 31e"},
	ELSEWHERE("30", "fill the disk", "ended: disk", LIFECYCLE, "disk files"),
	{"30b", "a sparse file of 1 TiB", sparse, {EFBIG}, {EFBIG}},
	{"30c", "fallocate 1 TiB", allocate, {EFBIG}, {EFBIG}},
	{"30d", "write at 1 TiB", write_far, {EFBIG}, {EFBIG}},
	{"30e", "reserve space by FS_IOC_RESVSP", allocate_by_ioctl, DENIED},
	ELSEWHERE("31", "quota: unlinked and open", "ended: disk", LIFECYCLE,
	 "disk unlinked"),
	ELSEWHERE("31b", "quota: memfd", "ended: oom", LIFECYCLE, "oom memfd"),
	ELSEWHERE("31c", "quota: very many small files", "ended: disk", LIFECYCLE,
	 "disk tiny"),
	ELSEWHERE("31d", "quota: hard links", "counted once", LIFECYCLE, "exited links"),
	ELSEWHERE("31e", "quota: at the bottom of a deep tree", "ended: disk", LIFECYCLE,
	 "disk deep"),
	ELSEWHERE("31f", "quota: in a directory closed to reading", "ended: disk",
	 LIFECYCLE, "disk closed"),
	{"31g", "quota: in a subvolume of btrfs or bcachefs", subvolume, DENIED},
};
/* clang-format on */

const struct section section_roots = {'A', "Files", probes,
				      sizeof(probes) / sizeof(probes[0])};
