/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attempts to get out, made from inside (tests/escape/run.sh), and the one outside who
 * sees whether any got through.
 *
 *	try_probe --outside DIR
 *		listeners of every kind and a victim process; writes DIR/info; on SIGTERM
 *		says what reached it and exits 1 if anything did
 *	try_probe full|floor FILE PID TCP UDP STREAM DGRAM ABSTRACT
 *		one line a probe; exit 1 if one was not refused with an answer of its list
 *
 * A probe returns the errno of the refusal, 0 when it got through. Each runs in a child
 * of its own. -SIGSYS stands for "killed by the filter".
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/capability.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#define SKIPPED (-1000) /* makes no sense in this grade */
#define TEST_NET "192.0.2.1"

static struct {
	int floor;
	const char *file, *stream, *dgram, *abstract;
	pid_t victim, keeper;
	in_port_t tcp, udp;
} at;

static int done(long r)
{
	return r < 0 ? errno : 0;
}

static int open_rd(const char *path)
{
	return done(open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC));
}

static int open_wr(const char *path)
{
	return done(open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC));
}

static const char *beside(const char *name)
{
	static char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s.%s", at.file, name);
	return path;
}

/* ---- files ------------------------------------------------------------------ */

static int secret_read(void)
{
	return open_rd(at.file);
}
static int secret_write(void)
{
	return open_wr(at.file);
}
static int create_outside(void)
{
	return done(open(beside("new"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}
static int unlink_outside(void)
{
	return done(unlink(at.file));
}
static int mkdir_outside(void)
{
	return done(mkdir(beside("dir"), 0700));
}
static int truncate_outside(void)
{
	return done(truncate(at.file, 0));
}
static int rename_outside(void)
{
	return done(rename(at.file, beside("moved")));
}
static int rename_in(void)
{
	return done(rename(at.file, "stolen"));
}
static int hard_link_in(void)
{
	return done(link(at.file, "linked"));
}
static int symlink_and_open(void)
{
	(void)unlink("sym");
	if (symlink(at.file, "sym") < 0)
		return EACCES;
	return open_rd("sym");
}
static int through_proc_cwd(void)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "/proc/self/root%s", at.file);
	return open_rd(path);
}
static int chmod_open_to_all(void)
{
	return done(chmod(at.file, 0666));
}
static int fchmodat2_open_to_all(void)
{
	return done(syscall(452, AT_FDCWD, at.file, 0666, 0));
}
static int chown_outside(void)
{
	return done(chown(at.file, getuid(), getgid()));
}
static int setxattr_outside(void)
{
	return done(setxattr(at.file, "user.probe", "1", 1, 0));
}
static int setxattrat_outside(void)
{
	struct {
		uint64_t value;
		uint32_t size, flags;
	} args = {(uint64_t)(uintptr_t)"1", 1, 0};

	return done(
		syscall(463, AT_FDCWD, at.file, 0, "user.probe", &args, sizeof(args)));
}
static int read_etc_shadow(void)
{
	return open_rd("/etc/shadow");
}
static int list_home(void)
{
	return done(open("/home", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}
static int list_run(void)
{
	return done(open("/run", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}
static int write_usr(void)
{
	return done(open("/usr/probe", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}
static int write_etc(void)
{
	return open_wr("/etc/passwd");
}
static int canary(void)
{
	return open_rd(at.floor ? "/" : "/.lychgate-canary");
}
static int make_device(void)
{
	return done(mknod("null", S_IFCHR | 0600, 0x103));
}
static int dev_tty(void)
{
	return open_rd("/dev/tty");
}
static int dev_kvm(void)
{
	return open_rd("/dev/kvm");
}
static int dev_fuse(void)
{
	return open_rd("/dev/fuse");
}
static int dev_ptmx(void)
{
	return open_rd("/dev/ptmx");
}
static int core_pattern(void)
{
	return open_wr("/proc/sys/kernel/core_pattern");
}
static int sysrq(void)
{
	return open_wr("/proc/sysrq-trigger");
}
static int oom_score(void)
{
	return open_wr("/proc/self/oom_score_adj");
}
static int sys_tree(void)
{
	return open_rd("/sys/kernel");
}
static int keeper_environ(void)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/environ", at.keeper);
	return open_rd(path);
}
static int keeper_root(void)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/root/etc/shadow", at.keeper);
	return open_rd(path);
}
static int victim_cmdline(void)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/cmdline", at.victim);
	return open_rd(path);
}
static int file_handle(void)
{
	struct {
		struct file_handle h;
		char space[128];
	} f = {.h.handle_bytes = 128};
	int id;

	return done(name_to_handle_at(AT_FDCWD, ".", &f.h, &id, 0));
}
static int fanotify(void)
{
	return done(syscall(SYS_fanotify_init, 0, 0));
}

/* ---- mounts and namespaces ---------------------------------------------------- */

static int do_mount(void)
{
	return done(mount("tmpfs", "/tmp", "tmpfs", 0, NULL));
}
static int do_umount(void)
{
	return done(umount2("/proc", MNT_DETACH));
}
static int do_pivot(void)
{
	return done(syscall(SYS_pivot_root, ".", "."));
}
static int do_chroot(void)
{
	return done(chroot("."));
}
static int do_fsopen(void)
{
	return done(syscall(SYS_fsopen, "tmpfs", 0));
}
static int do_open_tree(void)
{
	return done(syscall(SYS_open_tree, AT_FDCWD, "/", OPEN_TREE_CLONE));
}
static int do_open_tree_attr(void)
{
	return done(syscall(467, AT_FDCWD, "/", OPEN_TREE_CLONE, NULL, 0));
}
static int do_move_mount(void)
{
	return done(syscall(SYS_move_mount, AT_FDCWD, "/proc", AT_FDCWD, "/tmp", 0));
}
static int do_mount_setattr(void)
{
	return done(syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, NULL, 0));
}
static int new_userns(void)
{
	return done(unshare(CLONE_NEWUSER));
}
static int new_netns(void)
{
	return done(unshare(CLONE_NEWNET));
}
static int clone_userns(void)
{
	long r = syscall(SYS_clone, (unsigned long)(CLONE_NEWUSER | SIGCHLD), NULL, NULL,
			 NULL, 0);

	if (r == 0)
		_exit(0);
	return done(r);
}
static int clone3_userns(void)
{
	uint64_t args[11] = {CLONE_NEWUSER, 0, 0, 0, SIGCHLD};
	long r = syscall(SYS_clone3, args, sizeof(args));

	if (r == 0)
		_exit(0);
	return done(r);
}
static int clone_high_bits(void)
{
	unsigned long flags = (unsigned long)(CLONE_NEWUSER | SIGCHLD) | 0xdead00000000UL;
	long r = syscall(SYS_clone, flags, NULL, NULL, NULL, 0);

	if (r == 0)
		_exit(0);
	return done(r);
}
static int do_setns(void)
{
	return done(setns(0, 0));
}

/* ---- network ------------------------------------------------------------------- */

static int inet(int type, int proto, const char *host, in_port_t port)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, proto);

	if (fd < 0)
		return errno;
	if (inet_pton(AF_INET, host, &to.sin_addr) != 1)
		return EINVAL;
	return done(connect(fd, (const struct sockaddr *)&to, sizeof(to)));
}
static int tcp_host(void)
{
	return inet(SOCK_STREAM, 0, "127.0.0.1", at.tcp);
}
static int tcp_outside(void)
{
	return inet(SOCK_STREAM | SOCK_NONBLOCK, 0, TEST_NET, 80);
}
static int udp_outside(void)
{
	return inet(SOCK_DGRAM, 0, TEST_NET, 53);
}
static int mptcp(void)
{
	return inet(SOCK_STREAM, 262, "127.0.0.1", at.tcp);
}
static int fast_open(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(at.tcp)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return errno;
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return done(sendto(fd, "x", 1, MSG_FASTOPEN, (const struct sockaddr *)&to,
			   sizeof(to)));
}
static int udp_host(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(at.udp)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return errno;
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0)
		return errno;
	/* On a loopback of our own the first is answered by "nobody there". */
	(void)send(fd, "x", 1, 0);
	return done(send(fd, "x", 1, 0));
}
static int family(int f, int type, int proto)
{
	return done(socket(f, type | SOCK_CLOEXEC, proto));
}
static int raw(void)
{
	return family(AF_INET, SOCK_RAW, IPPROTO_ICMP);
}
static int ping(void)
{
	return family(AF_INET, SOCK_DGRAM, IPPROTO_ICMP);
}
static int packet(void)
{
	return family(AF_PACKET, SOCK_DGRAM, 0);
}
static int vsock(void)
{
	return family(40, SOCK_STREAM, 0);
}
static int alg(void)
{
	return family(38, SOCK_SEQPACKET, 0);
}
static int nl_audit(void)
{
	return family(AF_NETLINK, SOCK_RAW, 9);
}
static int nl_diag(void)
{
	return family(AF_NETLINK, SOCK_RAW, 4);
}
static int nl_netfilter(void)
{
	return family(AF_NETLINK, SOCK_RAW, 12);
}
static int family_high_bits(void)
{
	return done(syscall(SYS_socket, 0x100000000UL | 40UL, SOCK_STREAM, 0));
}
static int unix_to(int type, const char *path, int abstract)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	size_t n = strlen(path);

	if (fd < 0)
		return errno;
	memcpy(to.sun_path + abstract, path, n);
	return done(connect(fd, (const struct sockaddr *)&to,
			    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n +
					(size_t)abstract)));
}
static int unix_stream(void)
{
	return unix_to(SOCK_STREAM, at.stream, 0);
}
static int unix_dgram(void)
{
	return unix_to(SOCK_DGRAM, at.dgram, 0);
}
static int unix_abstract(void)
{
	return unix_to(SOCK_STREAM, at.abstract, 1);
}
static int pair_then_sendto(void)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int sv[2];

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, sv) < 0)
		return errno;
	memcpy(to.sun_path, at.dgram, strlen(at.dgram));
	return done(sendto(sv[0], "x", 1, 0, (const struct sockaddr *)&to, sizeof(to)));
}

/* ---- processes ----------------------------------------------------------------- */

static int kill_victim(void)
{
	return done(kill(at.victim, SIGKILL));
}
static int kill_keeper(void)
{
	return done(kill(at.keeper, SIGCONT));
}
static int tgkill_victim(void)
{
	return done(syscall(SYS_tgkill, at.victim, at.victim, SIGKILL));
}
static int queue_victim(void)
{
	siginfo_t si = {.si_code = SI_QUEUE};

	return done(syscall(SYS_rt_sigqueueinfo, at.victim, SIGKILL, &si));
}
static int pidfd_victim(void)
{
	int fd = (int)syscall(SYS_pidfd_open, at.victim, 0);

	return fd < 0 ? errno
		      : done(syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0));
}
static int trace_keeper(void)
{
	return done(ptrace(PTRACE_ATTACH, at.keeper, NULL, NULL));
}
static int trace_me(void)
{
	return done(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
}
static int read_memory(void)
{
	char c;
	struct iovec l = {&c, 1}, r = {&c, 1};

	return done(process_vm_readv(at.keeper, &l, 1, &r, 1, 0));
}
static int limit_keeper(void)
{
	struct rlimit l = {0, 0};

	return done(prlimit(at.keeper, RLIMIT_CPU, &l, NULL));
}
static int nice_keeper(void)
{
	return done(setpriority(PRIO_PROCESS, (id_t)at.keeper, 19));
}
static int nice_user(void)
{
	return done(setpriority(PRIO_USER, 0, 19));
}
static int io_nice_keeper(void)
{
	return done(syscall(SYS_ioprio_set, 1, at.keeper, 0x6000));
}
static int schedule_keeper(void)
{
	struct sched_param p = {0};

	return done(sched_setscheduler(at.keeper, SCHED_IDLE, &p));
}
static int widen_affinity(void)
{
	cpu_set_t was, now;

	memset(&now, 0xff, sizeof(now));
	(void)sched_getaffinity(0, sizeof(was), &was); /* what counts is what one has */
	(void)sched_setaffinity(0, sizeof(now), &now);
	(void)sched_getaffinity(0, sizeof(now), &now);
	return CPU_EQUAL(&was, &now) ? EPERM : 0;
}
static int realtime(void)
{
	struct sched_param p = {.sched_priority = 1};

	return done(sched_setscheduler(0, SCHED_FIFO, &p));
}
static int raise_limit(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) < 0)
		return EPERM;
	l.rlim_max++;
	return done(setrlimit(RLIMIT_NOFILE, &l));
}
static int hide(void)
{
	return done(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0));
}
static int shm(void)
{
	return done(shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600));
}
static int sem(void)
{
	return done(semget(IPC_PRIVATE, 1, IPC_CREAT | 0600));
}
static int keyring(void)
{
	return done(syscall(SYS_keyctl, 0, -3, 0));
}
static int add_a_key(void)
{
	return done(syscall(SYS_add_key, "user", "probe", "x", 1, -2));
}
static int steal_fd(void)
{
	return done(syscall(SYS_pidfd_getfd, 0, 0, 0));
}

/* ---- the kernel ------------------------------------------------------------------ */

static int do_bpf(void)
{
	union bpf_attr a = {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4};

	a.max_entries = 1;
	return done(syscall(SYS_bpf, BPF_MAP_CREATE, &a, sizeof(a)));
}
static int do_perf(void)
{
	struct perf_event_attr a = {.size = sizeof(a), .exclude_kernel = 1};

	return done(syscall(SYS_perf_event_open, &a, 0, -1, -1, 0));
}
static int do_uffd(void)
{
	return done(syscall(SYS_userfaultfd, 1));
}
static int do_uring(void)
{
	char params[256] = {0};

	return done(syscall(SYS_io_uring_setup, 1, params));
}
static int do_uring_enter(void)
{
	return done(syscall(SYS_io_uring_enter, 0, 0, 0, 0, NULL, 0));
}
static int do_module(void)
{
	return done(syscall(SYS_finit_module, 0, "", 0));
}
static int do_kexec(void)
{
	return done(syscall(SYS_kexec_load, 0, 0, NULL, 0));
}
static int do_syslog(void)
{
	return done(syscall(SYS_syslog, 3, NULL, 0));
}
static int do_hostname(void)
{
	return done(sethostname("x", 1));
}
static int do_time(void)
{
	struct timex t = {0};

	return done(adjtimex(&t));
}
static int type_at_terminal(void)
{
	return done(ioctl(0, 0x5412UL, "x"));
}
static int type_high_bits(void)
{
	return done(syscall(SYS_ioctl, 0, 0x100005412UL, "x"));
}
static int linux_terminal(void)
{
	return done(ioctl(0, 0x541CUL, "x"));
}
static int unknown_call(void)
{
	return done(syscall(500));
}
static int x32_call(void)
{
#ifdef __x86_64__
	return done(syscall(0x40000000 + 39));
#else
	return SKIPPED;
#endif
}
static int ia32_call(void)
{
#ifdef __x86_64__
	int r;

	__asm__ volatile("int $0x80"
			 : "=a"(r)
			 : "a"(20)
			 : "memory", "r8", "r9", "r10", "r11");
	return r > 0 ? 0 : -r;
#else
	return SKIPPED;
#endif
}
static int listener(void)
{
	return done(syscall(SYS_seccomp, 1, 8, NULL));
}

/* ---- what it was born with: 0 is "has it", EPERM is "does not" -----------------------
 */

static int inherited_secret(void)
{
	return getenv("LYCH_TEST_SECRET") ? 0 : EPERM;
}
static int inherited_fd(void)
{
	/* 0-2, and the pipe of this very probe */
	for (int fd = 3; fd < 512; fd++)
		if (fcntl(fd, F_GETFD) == 0)
			return 0;
	return EPERM;
}
static int capabilities(void)
{
	cap_user_header_t h =
		&(struct __user_cap_header_struct){_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct d[2];

	if (syscall(SYS_capget, h, d) < 0)
		return 0;
	return d[0].effective | d[0].permitted | d[0].inheritable | d[1].effective |
			       d[1].permitted | d[1].inheritable
		       ? 0
		       : EPERM;
}
static int new_privileges(void)
{
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? EPERM : 0;
}
static int core_dumps(void)
{
	struct rlimit l;

	return getrlimit(RLIMIT_CORE, &l) == 0 && l.rlim_max == 0 ? EPERM : 0;
}

#define ANSWERS_MAX 5
#define NO {EPERM, EACCES}
#define GONE {ENOENT, EACCES, EPERM, EROFS, EXDEV}
#define NOBODY {ESRCH, EPERM}
#define NO_NET {EPERM}

static const struct probe {
	const char *name;
	int (*run)(void);
	int full[ANSWERS_MAX], floor[ANSWERS_MAX];
} probes[] = {
	{"inherited environment", inherited_secret, NO, NO},
	{"inherited descriptors", inherited_fd, NO, NO},
	{"capabilities", capabilities, NO, NO},
	{"new privileges by exec", new_privileges, NO, NO},
	{"core dumps", core_dumps, NO, NO},

	{"read a secret", secret_read, GONE, {EACCES}},
	{"write a file outside", secret_write, GONE, {EACCES}},
	{"create a file outside", create_outside, GONE, {EACCES}},
	{"unlink outside", unlink_outside, GONE, {EACCES}},
	{"mkdir outside", mkdir_outside, GONE, {EACCES}},
	{"truncate outside", truncate_outside, GONE, {EACCES}},
	{"rename outside", rename_outside, GONE, {EACCES, EXDEV}},
	{"rename into the workspace", rename_in, GONE, {EACCES, EXDEV}},
	{"hard link into the workspace", hard_link_in, GONE, {EACCES, EXDEV}},
	{"symlink to outside", symlink_and_open, GONE, {EACCES}},
	{"through /proc/self/root", through_proc_cwd, GONE, {EACCES}},
	{"chmod 0666 outside", chmod_open_to_all, GONE, {EPERM}},
	{"fchmodat2 0666 outside", fchmodat2_open_to_all, GONE, {EPERM}},
	{"chown outside", chown_outside, GONE, {EPERM}},
	{"setxattr outside", setxattr_outside, GONE, {EPERM}},
	{"setxattrat outside", setxattrat_outside, GONE, {EPERM}},
	{"/etc/shadow", read_etc_shadow, GONE, {EACCES}},
	{"list /home", list_home, GONE, {EACCES}},
	{"list /run", list_run, GONE, {EACCES}},
	{"write to /usr", write_usr, GONE, {EACCES}},
	{"write to /etc/passwd", write_etc, GONE, {EACCES}},
	{"what nothing grants", canary, {EACCES}, {EACCES}},
	{"a device node", make_device, NO, NO},
	{"/dev/tty", dev_tty, {ENOENT}, {EACCES, ENXIO}},
	{"/dev/kvm", dev_kvm, {ENOENT}, {EACCES, ENOENT}},
	{"/dev/fuse", dev_fuse, {ENOENT}, {EACCES, ENOENT}},
	{"/dev/ptmx", dev_ptmx, {ENOENT}, {EACCES, ENOENT}},
	{"core_pattern", core_pattern, GONE, {EACCES}},
	{"sysrq-trigger", sysrq, GONE, {EACCES, ENOENT}},
	{"oom_score_adj", oom_score, GONE, {EACCES}},
	{"/sys", sys_tree, GONE, {EACCES}},
	{"the keeper's environment", keeper_environ, GONE, {EACCES}},
	{"the keeper's root", keeper_root, GONE, {EACCES}},
	{"a neighbour's command line", victim_cmdline, GONE, {EACCES}},
	{"file handles", file_handle, {EPERM}, {EPERM}},
	{"fanotify", fanotify, {EPERM}, {EPERM}},

	{"mount", do_mount, {EPERM}, {EPERM}},
	{"umount", do_umount, {EPERM}, {EPERM}},
	{"pivot_root", do_pivot, {EPERM}, {EPERM}},
	{"chroot", do_chroot, {EPERM}, {EPERM}},
	{"fsopen", do_fsopen, {EPERM}, {EPERM}},
	{"open_tree", do_open_tree, {EPERM}, {EPERM}},
	{"open_tree_attr", do_open_tree_attr, {EPERM}, {EPERM}},
	{"move_mount", do_move_mount, {EPERM}, {EPERM}},
	{"mount_setattr", do_mount_setattr, {EPERM}, {EPERM}},
	{"unshare a user namespace", new_userns, {EPERM}, {EPERM}},
	{"unshare a network", new_netns, {EPERM}, {EPERM}},
	{"clone a user namespace", clone_userns, {EPERM}, {EPERM}},
	{"clone3 a user namespace", clone3_userns, {ENOSYS}, {ENOSYS}},
	{"clone, high bits set", clone_high_bits, {EPERM}, {EPERM}},
	{"setns", do_setns, {EPERM}, {EPERM}},

	{"TCP to the host's loopback", tcp_host, {ECONNREFUSED}, NO_NET},
	{"TCP to the outside", tcp_outside, {ENETUNREACH}, NO_NET},
	{"UDP to the outside", udp_outside, {ENETUNREACH}, NO_NET},
	{"UDP to the host's loopback", udp_host, {ECONNREFUSED}, NO_NET},
	{"MPTCP", mptcp, NO_NET, NO_NET},
	{"TCP fast open", fast_open, {ECONNREFUSED, EOPNOTSUPP, EINPROGRESS}, NO_NET},
	{"raw socket", raw, NO_NET, NO_NET},
	{"ping socket", ping, NO_NET, NO_NET},
	{"packet socket", packet, NO_NET, NO_NET},
	{"vsock", vsock, NO_NET, NO_NET},
	{"vsock, high bits set", family_high_bits, NO_NET, NO_NET},
	{"kernel crypto socket", alg, NO_NET, NO_NET},
	{"netlink audit", nl_audit, NO_NET, NO_NET},
	{"netlink sock_diag", nl_diag, NO_NET, NO_NET},
	{"netlink netfilter", nl_netfilter, NO_NET, NO_NET},
	{"unix stream of the host", unix_stream, GONE, NO_NET},
	{"unix datagram of the host", unix_dgram, GONE, NO_NET},
	{"abstract unix of the host", unix_abstract, {ECONNREFUSED, EPERM}, NO_NET},
	{"datagram from a socketpair", pair_then_sendto, GONE, NO_NET},

	{"kill a neighbour", kill_victim, NOBODY, {EPERM}},
	{"signal the keeper", kill_keeper, {EPERM}, {EPERM}},
	{"tgkill a neighbour", tgkill_victim, NOBODY, {EPERM}},
	{"queue a signal to a neighbour", queue_victim, NOBODY, {EPERM}},
	{"signal a neighbour by pidfd", pidfd_victim, {ESRCH, EPERM, EINVAL}, {EPERM}},
	{"trace the keeper", trace_keeper, {EPERM}, {EPERM}},
	{"be traced", trace_me, {EPERM}, {EPERM}},
	{"read the keeper's memory", read_memory, {EPERM}, {EPERM}},
	{"limit the keeper", limit_keeper, {EPERM}, {EPERM}},
	{"renice the keeper", nice_keeper, {EPERM}, {EPERM}},
	{"renice the whole user", nice_user, {EPERM}, {EPERM}},
	{"io priority of the keeper", io_nice_keeper, {EPERM}, {EPERM}},
	{"schedule the keeper", schedule_keeper, {EPERM}, {EPERM}},
	{"more CPUs", widen_affinity, {EPERM}, {EPERM}},
	{"real time", realtime, {EPERM}, {EPERM}},
	{"raise a hard limit", raise_limit, {EPERM}, {EPERM}},
	{"hide from supervision", hide, {EPERM}, {EPERM}},
	{"System V shared memory", shm, {EPERM}, {EPERM}},
	{"System V semaphores", sem, {EPERM}, {EPERM}},
	{"keyring", keyring, {EPERM}, {EPERM}},
	{"add a key", add_a_key, {EPERM}, {EPERM}},
	{"take a descriptor by pidfd", steal_fd, {EPERM}, {EPERM}},

	{"bpf", do_bpf, {EPERM}, {EPERM}},
	{"perf", do_perf, {EPERM}, {EPERM}},
	{"userfaultfd", do_uffd, {EPERM}, {EPERM}},
	{"io_uring_setup", do_uring, {EPERM}, {EPERM}},
	{"io_uring_enter", do_uring_enter, {EPERM}, {EPERM}},
	{"load a module", do_module, {EPERM}, {EPERM}},
	{"kexec", do_kexec, {EPERM}, {EPERM}},
	{"kernel log", do_syslog, {EPERM}, {EPERM}},
	{"set the host name", do_hostname, {EPERM}, {EPERM}},
	{"adjust the clock", do_time, {EPERM}, {EPERM}},
	{"type at the terminal", type_at_terminal, {EPERM}, {EPERM}},
	{"type, high bits set", type_high_bits, {EPERM}, {EPERM}},
	{"TIOCLINUX", linux_terminal, {EPERM}, {EPERM}},
	{"an unknown system call", unknown_call, {ENOSYS}, {ENOSYS}},
	{"an x32 call", x32_call, {-SIGSYS}, {-SIGSYS}},
	{"an i386 call", ia32_call, {-SIGSYS}, {-SIGSYS}},
	{"a seccomp listener", listener, {EPERM}, {EPERM}},
};

static int run_probe(const struct probe *p)
{
	int pipe_fd[2], answer = -1, status = 0;
	pid_t pid;

	if (pipe2(pipe_fd, O_CLOEXEC) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		/* High, so that inherited_fd finds only what was there before. */
		int out = fcntl(pipe_fd[1], F_DUPFD_CLOEXEC, 600);

		(void)close(pipe_fd[0]);
		(void)close(pipe_fd[1]);
		answer = p->run();
		_exit(write(out, &answer, sizeof(answer)) == sizeof(answer) ? 0 : 1);
	}
	(void)close(pipe_fd[1]);
	if (read(pipe_fd[0], &answer, sizeof(answer)) != sizeof(answer))
		answer = -1;
	(void)close(pipe_fd[0]);
	if (waitpid(pid, &status, 0) == pid && WIFSIGNALED(status))
		return -WTERMSIG(status);
	return answer;
}

static int is_wanted(const int *answers, int got)
{
	for (int i = 0; i < ANSWERS_MAX && answers[i]; i++)
		if (answers[i] == got)
			return 1;
	return 0;
}

static int run_inside(char **argv)
{
	size_t n = sizeof(probes) / sizeof(probes[0]);
	int failed = 0;

	at.floor = strcmp(argv[1], "floor") == 0;
	at.file = argv[2];
	at.victim = (pid_t)strtol(argv[3], NULL, 10);
	at.tcp = (in_port_t)strtol(argv[4], NULL, 10);
	at.udp = (in_port_t)strtol(argv[5], NULL, 10);
	at.stream = argv[6];
	at.dgram = argv[7];
	at.abstract = argv[8];
	at.keeper = getppid();
	for (size_t i = 0; i < n; i++) {
		int got = run_probe(&probes[i]);
		int ok = is_wanted(at.floor ? probes[i].floor : probes[i].full, got);

		failed += !ok;
		(void)printf("%-4s %-32s %s\n", ok ? "ok" : "FAIL", probes[i].name,
			     got == 0	? "WAS ALLOWED"
			     : got > 0	? strerror(got)
			     : got < -1 ? strsignal(-got)
					: "no answer");
	}
	(void)printf("%zu probes, %d failed\n", n, failed);
	return failed != 0;
}

/* ---- outside ----------------------------------------------------------------------- */

static int listen_inet(int type, in_port_t *ret_port)
{
	struct sockaddr_in a = {.sin_family = AF_INET};
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0 ||
	    (type == SOCK_STREAM && listen(fd, 8) < 0) ||
	    getsockname(fd, (struct sockaddr *)&a, &len) < 0)
		return -1;
	*ret_port = ntohs(a.sin_port);
	return fd;
}

static int listen_unix(int type, const char *path, int abstract)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	size_t n = strlen(path);

	if (n >= sizeof(a.sun_path) - 1)
		return -1;
	memcpy(a.sun_path + abstract, path, n);
	if (fd < 0 ||
	    bind(fd, (const struct sockaddr *)&a,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n +
			     (size_t)abstract)) < 0 ||
	    (type == SOCK_STREAM && listen(fd, 8) < 0))
		return -1;
	return fd;
}

static volatile sig_atomic_t stop;
static void on_term(int s)
{
	stop = s;
}

static int run_outside(const char *dir)
{
	char stream[PATH_MAX], dgram[PATH_MAX], abstract[64], info[PATH_MAX],
		tmp[PATH_MAX + 8];
	struct pollfd p[5];
	in_port_t tcp = 0, udp = 0;
	int reached = 0;
	FILE *f;

	(void)snprintf(stream, sizeof(stream), "%s/s", dir);
	(void)snprintf(dgram, sizeof(dgram), "%s/d", dir);
	(void)snprintf(abstract, sizeof(abstract), "lych-probe-%d", getpid());
	(void)snprintf(info, sizeof(info), "%s/info", dir);
	(void)snprintf(tmp, sizeof(tmp), "%s.tmp", info);
	p[0].fd = listen_inet(SOCK_STREAM, &tcp);
	p[1].fd = listen_inet(SOCK_DGRAM, &udp);
	p[2].fd = listen_unix(SOCK_STREAM, stream, 0);
	p[3].fd = listen_unix(SOCK_DGRAM, dgram, 0);
	p[4].fd = listen_unix(SOCK_STREAM, abstract, 1);
	for (int i = 0; i < 5; i++) {
		if (p[i].fd < 0)
			return 2;
		p[i].events = POLLIN;
	}
	(void)signal(SIGTERM, on_term);
	f = fopen(tmp, "we");
	if (!f ||
	    fprintf(f, "%d %u %u %s %s %s\n", getpid(), tcp, udp, stream, dgram,
		    abstract) < 0 ||
	    fclose(f) != 0 || rename(tmp, info) < 0)
		return 2;
	while (!stop && poll(p, 5, 200) >= 0)
		;
	if (poll(p, 5, 0) > 0)
		for (int i = 0; i < 5; i++)
			reached += p[i].revents != 0;
	(void)printf("outside: %d listeners were reached\n", reached);
	return reached != 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "--outside") == 0)
		return run_outside(argv[2]);
	if (argc == 9)
		return run_inside(argv);
	(void)fputs("usage: try_probe --outside DIR | full|floor FILE PID TCP UDP STREAM "
		    "DGRAM "
		    "ABSTRACT\n",
		    stderr);
	return 2;
}
