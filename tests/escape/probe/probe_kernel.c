/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Section D: the kernel's surface. That every number is answered as reviewed is
 * try_syscalls' matter; here are the calls with arguments that would do harm.
 */
#include "tests/escape/probe/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define LAYERS_MAX 17
#define HIGH 0xdead00000000UL
#define LAST_REVIEWED 469

static int end_child(long r)
{
	if (r == 0)
		_exit(0);
	return answer_of(r);
}

/* ---- 69, 70: namespaces ---- */

static int unshare_user(void)
{
	return answer_of(unshare(CLONE_NEWUSER));
}
static int unshare_each(void)
{
	static const int flags[] = {CLONE_NEWNS,    CLONE_NEWNET, CLONE_NEWPID,
				    CLONE_NEWIPC,   CLONE_NEWUTS, 0x80 /* time */,
				    CLONE_NEWCGROUP};
	int got = EPERM;

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]) && got == EPERM; i++)
		got = answer_of(unshare(flags[i]));
	return got;
}
static int clone_user(void)
{
	return end_child(syscall(SYS_clone, (unsigned long)(CLONE_NEWUSER | SIGCHLD),
				 NULL, NULL, NULL, 0UL));
}
static int clone3_user(void)
{
	uint64_t args[11] = {CLONE_NEWUSER, 0, 0, 0, SIGCHLD};

	return end_child(syscall(SYS_clone3, args, sizeof(args)));
}
static int do_setns(void)
{
	return answer_of(setns(0, 0));
}
static int setns_pidfd(void)
{
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	return fd < 0 ? errno : answer_of(setns(fd, CLONE_NEWUSER | CLONE_NEWNS));
}
static int unshare_program(void)
{
	static const char *const argv[] = {"/usr/bin/unshare", "-Urmn", "true", NULL};
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		(void)close(2);
		(void)execve(argv[0], (char *const *)(const void *)argv, NULL);
		_exit(99);
	}
	if (waitpid(pid, &status, 0) != pid)
		return NO_ANSWER;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? GOT_THROUGH : HELD;
}

/* ---- 71-73 ---- */

static int do_bpf(void)
{
	union bpf_attr a = {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4};

	a.max_entries = 1;
	return answer_of(syscall(SYS_bpf, BPF_MAP_CREATE, &a, sizeof(a)));
}
static int socket_filter(void)
{
	struct sock_filter ret = {.code = BPF_RET | BPF_K};
	struct sock_fprog prog = {.len = 1, .filter = &ret};
	int sv[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) < 0)
		return NO_ANSWER;
	return answer_of(
		setsockopt(sv[0], SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)));
}
static int do_perf(void)
{
	struct perf_event_attr a = {.size = sizeof(a), .exclude_kernel = 1};

	return answer_of(syscall(SYS_perf_event_open, &a, 0, -1, -1, 0));
}
static int uffd(void)
{
	return answer_of(syscall(SYS_userfaultfd, 0));
}
static int uffd_user_mode(void)
{
	return answer_of(syscall(SYS_userfaultfd, 1));
}

/* ---- 74: the machine ---- */

struct call {
	long nr;
	const char *name;
};
#define CALL(n) {SYS_##n, #n}

/* With arguments that no kernel takes: the same answer from each, or the first other. */
static int all_answer(const struct call *c, size_t n, int wanted)
{
	for (size_t i = 0; i < n; i++) {
		int got = answer_of(syscall(c[i].nr, -1L, -1L, -1L, -1L, -1L, -1L));

		if (got != wanted) {
			(void)fprintf(stderr, "%s: %d\n", c[i].name, got);
			return got;
		}
	}
	return wanted;
}
static int machine(void)
{
	static const struct call calls[] = {
		CALL(kexec_load),
		CALL(init_module),
		CALL(finit_module),
		CALL(delete_module),
		CALL(reboot),
		CALL(swapon),
		CALL(swapoff),
		CALL(acct),
		CALL(quotactl),
		CALL(syslog),
		CALL(settimeofday),
		CALL(adjtimex),
		CALL(clock_settime),
		CALL(clock_adjtime),
		CALL(sethostname),
		CALL(setdomainname),
		CALL(vhangup),
#ifdef SYS_kexec_file_load
		CALL(kexec_file_load),
#endif
#ifdef SYS_iopl
		CALL(iopl),
		CALL(ioperm),
#endif
#ifdef SYS_lookup_dcookie
		CALL(lookup_dcookie),
#endif
#ifdef SYS_nfsservctl
		CALL(nfsservctl),
#endif
	};

	return all_answer(calls, sizeof(calls) / sizeof(calls[0]), EPERM);
}

/* ---- 75, 76 ---- */

static int stack_landlock(void)
{
	struct landlock_ruleset_attr a = {.handled_access_fs =
						  LANDLOCK_ACCESS_FS_MAKE_BLOCK};
	int fd = (int)syscall(SYS_landlock_create_ruleset, &a, sizeof(a), 0);
	int layers = 0;

	if (fd < 0)
		return errno;
	while (layers < LAYERS_MAX && syscall(SYS_landlock_restrict_self, fd, 0) == 0)
		layers++;
	if (layers == LAYERS_MAX)
		return NO_ANSWER;
	return read_outside(target("victim")) == GOT_THROUGH ? GOT_THROUGH : errno;
}
static int stack_landlock_full(void)
{
	struct landlock_ruleset_attr a = {.handled_access_fs =
						  LANDLOCK_ACCESS_FS_MAKE_BLOCK};
	int fd = (int)syscall(SYS_landlock_create_ruleset, &a, sizeof(a), 0);

	for (int i = 0; fd >= 0 && i < LAYERS_MAX; i++)
		if (syscall(SYS_landlock_restrict_self, fd, 0) < 0)
			return errno;
	return NO_ANSWER;
}
static int leaked_ruleset(void)
{
	struct landlock_path_beneath_attr rule = {
		.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE, .parent_fd = 0};

	for (int fd = 0; fd < 1024; fd++)
		if (syscall(SYS_landlock_add_rule, fd, LANDLOCK_RULE_PATH_BENEATH, &rule,
			    0) == 0)
			return GOT_THROUGH;
	return HELD;
}
/* The page of a read-only file that a pipe shares, written through the pipe. */
static int splice_then_write(void)
{
	int p[2], fd = open(target("shown"), O_RDONLY | O_CLOEXEC);
	char fill[4096] = {0};
	loff_t at = 0;

	if (fd < 0)
		return errno;
	if (pipe2(p, O_CLOEXEC | O_NONBLOCK) < 0)
		return NO_ANSWER;
	/* A pipe whose buffers have been mergeable once. */
	while (write(p[1], fill, sizeof(fill)) > 0)
		;
	while (read(p[0], fill, sizeof(fill)) > 0)
		;
	if (splice(fd, &at, p[1], NULL, 1, 0) != 1)
		return errno;
	return write(p[1], "overwritten", 11) == 11 ? HELD : errno;
}
static int splice_into_shown(void)
{
	int p[2], fd = open(target("shown"), O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return errno;
	if (pipe2(p, O_CLOEXEC) < 0 || write(p[1], "x", 1) != 1)
		return NO_ANSWER;
	return answer_of(splice(p[0], NULL, fd, NULL, 1, 0));
}
static int do_vmsplice(void)
{
	struct iovec v = {0};
	int p[2];

	if (pipe2(p, O_CLOEXEC) < 0)
		return NO_ANSWER;
	return answer_of(vmsplice(p[1], &v, 1, 0));
}
static int do_mbind(void)
{
	unsigned long node = 1;
	void *p = mmap(NULL, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return answer_of(syscall(SYS_mbind, p, 4096, 2 /* MPOL_BIND */, &node,
				 sizeof(node) * 8, 0));
}
static int map_huge(void)
{
	void *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB,
		       -1, 0);

	return p == MAP_FAILED ? errno : GOT_THROUGH;
}
static int memfd_huge(void)
{
	return answer_of(memfd_create("x", MFD_HUGETLB));
}
static int map_shown(int prot, int flags)
{
	int fd = open(target("shown"), O_RDONLY | O_CLOEXEC);
	void *p = mmap(NULL, 4096, prot, flags, fd, 0);

	return p == MAP_FAILED ? errno : GOT_THROUGH;
}
static int map_shown_for_write(void)
{
	return map_shown(PROT_READ | PROT_WRITE, MAP_SHARED);
}
static int protect_shown_for_write(void)
{
	int fd = open(target("shown"), O_RDONLY | O_CLOEXEC);
	void *p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return errno;
	return answer_of(mprotect(p, 4096, PROT_READ | PROT_WRITE));
}

/* ---- 77: the newest calls ---- */

static int new_and_denied(void)
{
	static const struct call calls[] = {
		{450, "set_mempolicy_home_node"},
		{451, "cachestat"},
		{457, "statmount"},
		{458, "listmount"},
		{459, "lsm_get_self_attr"},
		{460, "lsm_set_self_attr"},
		{461, "lsm_list_modules"},
		{467, "open_tree_attr"},
		{469, "file_setattr"},
	};

	return all_answer(calls, sizeof(calls) / sizeof(calls[0]), EPERM);
}
static int shadow_stack(void)
{
	return allowed_or_errno(syscall(453, 0L, 4096L, 0L));
}
static int futex2(void)
{
	unsigned word = 0;

	/* FUTEX2_SIZE_U32: nobody waits, so nobody is woken */
	return allowed_or_errno(syscall(454, &word, 0xffffffffUL, 1, 2));
}
static int seal_memory(void)
{
	void *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return allowed_or_errno(syscall(462, p, 4096UL, 0UL));
}
static int unreviewed(void)
{
	for (long nr = LAST_REVIEWED + 1; nr < 1024; nr++) {
		int got = answer_of(syscall(nr, 0L, 0L, 0L, 0L, 0L, 0L));

		if (got != ENOSYS)
			return got;
	}
	return answer_of(syscall(0x3fffffff, 0L, 0L, 0L));
}

static int uretprobe(void)
{
#ifdef __x86_64__
	return answer_of(syscall(335));
#else
	return NOT_HERE;
#endif
}
static int uprobe(void)
{
#ifdef __x86_64__
	return answer_of(syscall(336));
#else
	return NOT_HERE;
#endif
}

/* What is allowed by its type: terminals, and in full interfaces (the keeper's matter),
 * namespaces, pidfds. What is allowed by its number has another size in it. */
static int unknown_ioctls(void)
{
	int fd = open(".", O_RDONLY | O_CLOEXEC);

	for (unsigned long type = 0; type < 256; type++)
		for (unsigned long nr = 3; nr < 256; nr += 9) {
			unsigned long request = 0x40000000UL | type << 8 | nr;
			int got;

			if (type == 0x54 ||
			    (!in_floor() &&
			     (type == 0x89 || type == 0xb7 || type == 0xff)))
				continue;
			got = answer_of(ioctl(fd, request, 0));
			if (got != EPERM) {
				(void)fprintf(stderr, "%#lx\n", request);
				return got;
			}
		}
	return EPERM;
}

/* ---- 78: what the kernel does not read of a register ---- */

static int clone_high(void)
{
	return end_child(syscall(SYS_clone, (CLONE_NEWUSER | SIGCHLD) | HIGH, NULL, NULL,
				 NULL, 0UL));
}
static int ioctl_high(void)
{
	return answer_of(syscall(SYS_ioctl, 0, 0x5412UL | HIGH, "x"));
}
static int family_high(void)
{
	return answer_of(syscall(SYS_socket, 40UL | HIGH, SOCK_STREAM, 0));
}
static int prlimit_high(void)
{
	struct rlimit l = {0, 0};

	return answer_of(syscall(SYS_prlimit64, (unsigned long)keeper_pid() | HIGH,
				 RLIMIT_CPU, &l, NULL));
}
static int mode_high(void)
{
	return answer_of(syscall(SYS_mknodat, AT_FDCWD, "node", 020600UL | HIGH, 0x103));
}
static int prctl_high(void)
{
	return answer_of(syscall(SYS_prctl, PR_SET_DUMPABLE | HIGH, HIGH, 0L, 0L, 0L));
}

/* ---- 79: filters of the job's own ---- */

static int own_listener(void)
{
	return answer_of(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
				 SECCOMP_FILTER_FLAG_NEW_LISTENER, NULL));
}
/* Its own filter that allows everything allows nothing more. */
static int own_filter(void)
{
	struct sock_filter ret = {.code = BPF_RET | BPF_K, .k = SECCOMP_RET_ALLOW};
	struct sock_fprog prog = {.len = 1, .filter = &ret};

	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0)
		return errno;
	return unshare(CLONE_NEWUSER) < 0 && errno == EPERM ? HELD : GOT_THROUGH;
}

/* clang-format off */
#define DENIED {EPERM}, {EPERM}
#define LIFECYCLE "tests/integration/daemons/lifecycle.sh"
#define UPROBE_CALL {ENXIO, KILLED_BY + SIGILL, ENOSYS, NOT_HERE}
#define UPROBE {KILLED_BY + SIGILL, ENXIO, ENOSYS, NOT_HERE}
#define UPROBE_NOTE "no filter is asked since Linux 6.14; who is no trampoline is killed"

static const struct probe probes[] = {
	{"69", "unshare a user namespace", unshare_user, DENIED},
	{"69b", "unshare each other namespace", unshare_each, DENIED},
	{"69c", "clone(CLONE_NEWUSER)", clone_user, DENIED},
	{"69d", "clone3(CLONE_NEWUSER)", clone3_user, {ENOSYS}, {ENOSYS},
	 "its flags are in memory: libc falls back to clone"},
	{"69e", "setns", do_setns, DENIED},
	{"69f", "setns by pidfd", setns_pidfd, {EPERM}, {ENOSYS}, "floor: no pidfd"},
	{"70", "unshare -Urmn true", unshare_program, {HELD}, {HELD}},
	{"71", "bpf", do_bpf, DENIED},
	{"71b", "a socket filter", socket_filter, DENIED},
	{"72", "perf_event_open on itself", do_perf, DENIED},
	{"73", "userfaultfd", uffd, DENIED},
	{"73b", "userfaultfd, user mode only", uffd_user_mode, DENIED},
	{"74", "kexec, modules, reboot, swap, acct, quota, syslog, clocks, names, ports",
	 machine, DENIED},
	{"75", "landlock_restrict_self 17 times", stack_landlock_full, {E2BIG}, {E2BIG}},
	{"75b", "the secret after it", stack_landlock, {ENOENT}, {EACCES}},
	{"75c", "landlock_add_rule on any descriptor", leaked_ruleset, {HELD}, {HELD}},
	{"76", "splice a read-only file, write into the pipe", splice_then_write, {HELD},
	 {HELD}},
	{"76b", "splice into a read-only descriptor", splice_into_shown, {EBADF},
	 {EBADF}},
	{"76c", "vmsplice", do_vmsplice, DENIED},
	{"76d", "map a read-only file shared for write", map_shown_for_write, {EACCES},
	 {EACCES}},
	{"76e", "mprotect it for write", protect_shown_for_write, {EACCES}, {EACCES}},
	{"76f", "mbind: policies that a file in memory keeps", do_mbind, DENIED},
	{"76g", "pages of the machine's pool by mmap", map_huge, DENIED},
	{"76h", "by memfd_create", memfd_huge, DENIED},
	{"77", "statmount, listmount, lsm_*, cachestat, open_tree_attr, file_setattr",
	 new_and_denied, DENIED},
	{"77b", "map_shadow_stack", shadow_stack, {ENOSYS, EOPNOTSUPP, EINVAL, ALLOWED},
	 {ENOSYS, EOPNOTSUPP, EINVAL, ALLOWED}, "the CPU's and kernel's answer"},
	{"77c", "futex_wake", futex2, {ALLOWED, ENOSYS}, {ALLOWED, ENOSYS},
	 "own memory only; ENOSYS before 6.7"},
	{"77d", "mseal", seal_memory, {ALLOWED, ENOSYS}, {ALLOWED, ENOSYS},
	 "own memory only; ENOSYS before 6.10"},
	{"77e", "every number above the last reviewed one", unreviewed, {ENOSYS},
	 {ENOSYS}},
	{"77f", "uretprobe", uretprobe, UPROBE, UPROBE, UPROBE_NOTE},
	{"77g", "uprobe", uprobe, UPROBE_CALL, UPROBE_CALL, UPROBE_NOTE},
	ELSEWHERE("77h", "every number, with zeros, ones and upper halves",
	 "as the filter's table says", "tests/escape/run.sh", "try_syscalls"),
	{"77i", "an ioctl that nobody reviewed, of each type", unknown_ioctls, DENIED},
	{"78", "clone, high bits set", clone_high, DENIED},
	{"78b", "TIOCSTI, high bits set", ioctl_high, DENIED},
	{"78c", "a vsock, high bits set", family_high, DENIED},
	{"78d", "prlimit of the keeper, high bits set", prlimit_high, DENIED},
	{"78e", "mknodat of a device, high bits set", mode_high, DENIED},
	{"78f", "prctl not dumpable, high bits set", prctl_high, DENIED},
	{"79", "a seccomp listener of one's own", own_listener, DENIED},
	{"79b", "a filter of one's own that allows everything", own_filter, {HELD},
	 {HELD}},
	ELSEWHERE("79c", "a flood of refused calls",
	 "the job's time, not the supervision's", "tests/escape/metadata.sh",
	 "out of time in a flood"),
	ELSEWHERE("79d", "a supervisor that is killed", "the job ends with it", LIFECYCLE,
	 "kill -9 of the $whom"),
};
/* clang-format on */

const struct section section_kernel = {'D', "Kernel surface", probes,
				       sizeof(probes) / sizeof(probes[0])};
