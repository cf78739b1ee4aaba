/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lie [--option]... -- command: runs a command on a kernel that lies, so that each wall
 * of the sandbox can be broken on purpose. An outer seccomp filter answers the chosen
 * system calls, or hands them to this program, which answers in the kernel's place. Exit:
 * the command's own.
 *
 * A task has one listener, and the sandbox wants it for its keeper: the lies that need one
 * (an ABI, a cgroup) end before that. What must lie later is said by the filter alone, or
 * by a tracer.
 *
 *	--landlock-abi N	landlock_create_ruleset(VERSION) is N
 *	--landlock-errno N	every landlock call fails with this errno
 *	--no-new-calls		clone3 and openat2 are EPERM, as in an old container
 *	--no-seccomp		seccomp(2) is EPERM
 *	--no-userns --no-netns	clone and unshare with that flag are EPERM
 *	--userns-restricted	user namespaces are made and give no right: neither setgroups
 *				nor a map of /proc is opened to write, mount is EACCES (as by
 *				Ubuntu's AppArmor)
 *	--open PATH		openat of PATH gives a descriptor (that of stdin)
 *	--listener		a listener, which never answers anything
 *	--kill-works		kill(pid, SIGCONT) is 0 and does nothing
 *	--landlock-pretends	landlock_restrict_self is 0 and does nothing
 *	--seccomp-pretends	seccomp is 0 and does nothing
 *	--netlink-works		socket() for events of netlink is 0
 *	--utimes-work		utimensat is 0 and does nothing
 *	--no-death-signal --no-parent	PR_SET_PDEATHSIG, getppid are EPERM: no job of floor, full is born
 *	--route-works		connect is 0 and does nothing
 *	--caps-stay		capset is 0 and does nothing
 *	--bounding-stays	prctl(PR_CAPBSET_DROP) is 0 and does nothing
 *	--no-pivot		pivot_root is EPERM
 *	--no-hostname --no-domain	sethostname, setdomainname are EPERM, as in a container of Podman's
 *	--binds-pretend		a bind mount by mount(2) is 0 and does nothing
 *	--no-keys --keys-used-up	keyctl is EPERM, as in many a container; EDQUOT
 *	--no-kcmp		kcmp is EPERM, as in a container of Podman's
 *	--no-getfd		pidfd_getfd is EPERM, as in many a container
 *	--no-listen		listen is EACCES
 *	--foreign-ipc		whose namespace a descriptor is: EPERM, as of the host's
 *	--broken-cgroup		a directory "group" is a cgroup v2 with controllers, whose
 *				cgroup.procs cannot be written (EIO)
 */
#include "common/attr.h"
#include "common/landlock.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/magic.h>
#include <linux/netlink.h>
#include <linux/nsfs.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#define FILTER_MAX 128
#define CALL(n) ((uint32_t)__NR_##n)
#define OPENAT2 437u
#define PIDFD_GETFD 438u
#define LANDLOCK_CREATE 444u
#define LANDLOCK_ADD 445u
#define LANDLOCK_RESTRICT 446u

static struct {
	int landlock_abi, landlock_errno; /* -1, 0: the truth */
	bool no_new_calls, no_seccomp, no_userns, no_netns, kill_works, landlock_pretends,
		seccomp_pretends, route_works, caps_stay, no_pivot, no_hostname,
		broken_cgroup, listener, netlink_works, utimes_work, no_getfd, no_kcmp,
		no_listen, no_death_signal, no_parent, no_domain, binds_pretend, no_keys,
		keys_used_up, bounding_stays, foreign_ipc, userns_restricted;
	const char *open_path;
} lies = {.landlock_abi = -1};

static struct sock_filter filter[FILTER_MAX];
static unsigned short n_filter;

NORETURN static void fatal(const char *what)
{
	perror(what);
	_exit(99);
}

static void add(uint16_t code, uint32_t k, uint8_t jt, uint8_t jf)
{
	if (n_filter >= FILTER_MAX)
		fatal("filter");
	filter[n_filter++] =
		(struct sock_filter){.code = code, .jt = jt, .jf = jf, .k = k};
}

static void on_call(uint32_t nr, uint32_t action)
{
	add(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1);
	add(BPF_RET | BPF_K, action, 0, 0);
}

/* EPERM when the first argument has the flag. */
static void refuse_flag(uint32_t nr, uint32_t flag)
{
	add(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 4);
	add(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args), 0, 0);
	add(BPF_JMP | BPF_JSET | BPF_K, flag, 0, 1);
	add(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM, 0, 0);
	add(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
}

/* This error, 0 for success, when the argument has this value. */
static void answer_value(uint32_t nr, unsigned arg, uint32_t value, uint32_t error)
{
	uint32_t off = (uint32_t)(offsetof(struct seccomp_data, args) + 8 * arg);

	add(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 4);
	add(BPF_LD | BPF_W | BPF_ABS, off, 0, 0);
	add(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
	add(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error, 0, 0);
	add(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
}

static bool needs_listener(void)
{
	return lies.landlock_abi >= 0 || lies.broken_cgroup || lies.listener;
}

/* What walls are made of. */
static void lie_of_walls(void)
{
	uint32_t flags = (lies.no_userns ? (uint32_t)CLONE_NEWUSER : 0) |
			 (lies.no_netns ? (uint32_t)CLONE_NEWNET : 0);

	if (flags) {
		refuse_flag(CALL(clone), flags);
		refuse_flag(CALL(unshare), flags);
		on_call(CALL(clone3), SECCOMP_RET_ERRNO | ENOSYS);
	}
	if (lies.userns_restricted)
		on_call(CALL(mount), SECCOMP_RET_ERRNO | EACCES);
	if (lies.no_new_calls) {
		on_call(CALL(clone3), SECCOMP_RET_ERRNO | EPERM);
		on_call(OPENAT2, SECCOMP_RET_ERRNO | EPERM);
	}
	if (lies.landlock_errno) {
		uint32_t e = SECCOMP_RET_ERRNO | (uint32_t)lies.landlock_errno;

		on_call(LANDLOCK_CREATE, e);
		on_call(LANDLOCK_ADD, e);
		on_call(LANDLOCK_RESTRICT, e);
	}
	if (lies.landlock_abi >= 0)
		on_call(LANDLOCK_CREATE, SECCOMP_RET_USER_NOTIF);
	if (lies.no_seccomp)
		on_call(CALL(seccomp), SECCOMP_RET_ERRNO | EPERM);
	if (lies.landlock_pretends)
		on_call(LANDLOCK_RESTRICT, SECCOMP_RET_ERRNO); /* errno 0: success */
	if (lies.seccomp_pretends)
		on_call(CALL(seccomp), SECCOMP_RET_ERRNO);
}

/* What the walls, once they stand, are tried with; and what the rest of a start needs. */
static void lie_of_trials(void)
{
	if (lies.route_works)
		on_call(CALL(connect), SECCOMP_RET_ERRNO);
	if (lies.caps_stay)
		on_call(CALL(capset), SECCOMP_RET_ERRNO);
	if (lies.bounding_stays)
		answer_value(CALL(prctl), 0, PR_CAPBSET_DROP, 0);
	if (lies.no_hostname)
		on_call(CALL(sethostname), SECCOMP_RET_ERRNO | EPERM);
	if (lies.no_domain)
		on_call(CALL(setdomainname), SECCOMP_RET_ERRNO | EPERM);
	if (lies.binds_pretend)
		answer_value(CALL(mount), 3, MS_BIND, 0);
	if (lies.no_keys)
		on_call(CALL(keyctl), SECCOMP_RET_ERRNO | EPERM);
	if (lies.keys_used_up)
		on_call(CALL(keyctl), SECCOMP_RET_ERRNO | EDQUOT);
	if (lies.no_kcmp)
		on_call(CALL(kcmp), SECCOMP_RET_ERRNO | EPERM);
	if (lies.no_getfd)
		on_call(PIDFD_GETFD, SECCOMP_RET_ERRNO | EPERM);
	if (lies.foreign_ipc)
		answer_value(CALL(ioctl), 1, NS_GET_USERNS, EPERM);
	if (lies.no_listen)
		on_call(CALL(listen), SECCOMP_RET_ERRNO | EACCES);
	if (lies.no_pivot)
		on_call(CALL(pivot_root), SECCOMP_RET_ERRNO | EPERM);
	if (lies.kill_works)
		answer_value(CALL(kill), 1, SIGCONT, 0);
	if (lies.netlink_works)
		answer_value(CALL(socket), 2, NETLINK_KOBJECT_UEVENT, 0);
	if (lies.no_parent)
		on_call(CALL(getppid), SECCOMP_RET_ERRNO | EPERM);
	if (lies.no_death_signal)
		answer_value(CALL(prctl), 0, PR_SET_PDEATHSIG, EPERM);
	if (lies.utimes_work)
		on_call(CALL(utimensat), SECCOMP_RET_ERRNO);
	if (lies.open_path)
		on_call(CALL(openat), SECCOMP_RET_TRACE);
}

static void build_filter(void)
{
	add(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
	lie_of_walls();
	lie_of_trials();
	if (lies.broken_cgroup) {
		on_call(CALL(openat), SECCOMP_RET_USER_NOTIF);
		on_call(CALL(fstatfs), SECCOMP_RET_USER_NOTIF);
		on_call(CALL(faccessat), SECCOMP_RET_USER_NOTIF);
		on_call(CALL(faccessat2), SECCOMP_RET_USER_NOTIF);
	}
	add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
}

static bool read_path(pid_t pid, uint64_t address, char *out, size_t size)
{
	struct iovec to = {out, size - 1};
	struct iovec from = {(void *)(uintptr_t)address, size - 1};
	ssize_t got = process_vm_readv(pid, &to, 1, &from, 1, 0);

	/* A path near the end of a mapping: byte by byte would be exact; a page is enough
	 * here. */
	if (got <= 0) {
		from.iov_len = to.iov_len = 64;
		got = process_vm_readv(pid, &to, 1, &from, 1, 0);
	}
	if (got <= 0)
		return false;
	out[got] = '\0';
	return true;
}

static bool is_control_file(const char *name)
{
	return strncmp(name, "memory.", 7) == 0 || strncmp(name, "pids.", 5) == 0 ||
	       strncmp(name, "cpu.", 4) == 0 || strncmp(name, "cgroup.", 7) == 0;
}

static void give_fd(int listener, const struct seccomp_notif *n, int fd)
{
	struct seccomp_notif_addfd give = {
		.id = n->id,
		.flags = SECCOMP_ADDFD_FLAG_SEND,
		.srcfd = (uint32_t)fd,
		.newfd_flags = O_CLOEXEC,
	};

	if (fd < 0 ||
	    (ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &give) < 0 && errno != ENOENT))
		fatal("lie: give a descriptor");
	(void)close(fd);
}

/* Returns true when the answer was sent already. */
static bool answer_open(int listener, const struct seccomp_notif *n)
{
	char path[4096];

	if (!read_path((pid_t)n->pid, n->data.args[1], path, sizeof(path)))
		return false;
	if (!is_control_file(path))
		return false;
	/* Address 0 of our memory is not mapped: writing there is EIO. */
	if (strcmp(path, "cgroup.procs") == 0)
		give_fd(listener, n, open("/proc/self/mem", O_RDWR | O_CLOEXEC));
	else
		give_fd(listener, n, memfd_create("lie", MFD_CLOEXEC));
	return true;
}

/* Of the workspace it is told the truth: there the same answer is a reason to refuse. */
static bool is_cgroup(const struct seccomp_notif *n)
{
	char link[64], path[4096];
	ssize_t len;

	(void)snprintf(link, sizeof(link), "/proc/%u/fd/%d", n->pid,
		       (int)n->data.args[0]);
	len = readlink(link, path, sizeof(path));
	return len > 6 && memcmp(path + len - 6, "/group", 6) == 0;
}

static bool answer(int listener, const struct seccomp_notif *n,
		   struct seccomp_notif_resp *resp)
{
	uint32_t nr = (uint32_t)n->data.nr;
	char path[64];

	*resp = (struct seccomp_notif_resp){.id = n->id,
					    .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
	if (nr == CALL(openat))
		return answer_open(listener, n);
	if (nr == LANDLOCK_CREATE && n->data.args[0] == 0 && n->data.args[2] == 1) {
		resp->flags = 0;
		resp->val = lies.landlock_abi;
	} else if (nr == CALL(fstatfs) && is_cgroup(n)) {
		struct statfs fs = {.f_type = CGROUP2_SUPER_MAGIC};
		struct iovec from = {&fs, sizeof(fs)};
		struct iovec to = {(void *)(uintptr_t)n->data.args[1], sizeof(fs)};

		if (process_vm_writev((pid_t)n->pid, &from, 1, &to, 1, 0) != sizeof(fs))
			fatal("lie: fstatfs");
		resp->flags = 0;
	} else if ((nr == CALL(faccessat) || nr == CALL(faccessat2)) &&
		   read_path((pid_t)n->pid, n->data.args[1], path, sizeof(path)) &&
		   is_control_file(path)) {
		resp->flags = 0;
	}
	return false;
}

static void supervise(int listener)
{
	struct seccomp_notif n;
	struct seccomp_notif_resp resp;

	for (;;) {
		memset(&n, 0, sizeof(n));
		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &n) < 0) {
			if (errno == EINTR || errno == ENOENT)
				continue;
			_exit(0);
		}
		if (answer(listener, &n, &resp))
			continue;
		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &resp) < 0 &&
		    errno != ENOENT)
			fatal("lie: answer");
	}
}

static void send_fd(int sock, int fd)
{
	char byte = 0;
	struct iovec iov = {&byte, 1};
	union {
		struct cmsghdr h;
		char space[CMSG_SPACE(sizeof(int))];
	} c = {0};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &c,
			   .msg_controllen = sizeof(c)};

	c.h.cmsg_level = SOL_SOCKET;
	c.h.cmsg_type = SCM_RIGHTS;
	c.h.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&c.h), &fd, sizeof(fd));
	if (sendmsg(sock, &m, 0) != 1)
		fatal("lie: sendmsg");
}

static int recv_fd(int sock)
{
	char byte;
	struct iovec iov = {&byte, 1};
	union {
		struct cmsghdr h;
		char space[CMSG_SPACE(sizeof(int))];
	} c = {0};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &c,
			   .msg_controllen = sizeof(c)};
	int fd = -1;

	if (recvmsg(sock, &m, MSG_CMSG_CLOEXEC) == 1)
		memcpy(&fd, CMSG_DATA(&c.h), sizeof(fd));
	return fd;
}

static bool *flag_of(const char *option)
{
	static const struct {
		const char *name;
		bool *flag;
	} flags[] = {
		{"--no-new-calls", &lies.no_new_calls},
		{"--no-seccomp", &lies.no_seccomp},
		{"--no-userns", &lies.no_userns},
		{"--no-netns", &lies.no_netns},
		{"--userns-restricted", &lies.userns_restricted},
		{"--kill-works", &lies.kill_works},
		{"--landlock-pretends", &lies.landlock_pretends},
		{"--seccomp-pretends", &lies.seccomp_pretends},
		{"--route-works", &lies.route_works},
		{"--caps-stay", &lies.caps_stay},
		{"--bounding-stays", &lies.bounding_stays},
		{"--no-hostname", &lies.no_hostname},
		{"--no-kcmp", &lies.no_kcmp},
		{"--no-getfd", &lies.no_getfd},
		{"--foreign-ipc", &lies.foreign_ipc},
		{"--no-listen", &lies.no_listen},
		{"--no-pivot", &lies.no_pivot},
		{"--broken-cgroup", &lies.broken_cgroup},
		{"--listener", &lies.listener},
		{"--netlink-works", &lies.netlink_works},
		{"--utimes-work", &lies.utimes_work},
		{"--no-domain", &lies.no_domain},
		{"--binds-pretend", &lies.binds_pretend},
		{"--no-keys", &lies.no_keys},
		{"--keys-used-up", &lies.keys_used_up},
		{"--no-parent", &lies.no_parent},
		{"--no-death-signal", &lies.no_death_signal},
	};

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
		if (strcmp(option, flags[i].name) == 0)
			return flags[i].flag;
	return NULL;
}

static char **parse(char **a)
{
	for (; *a && strcmp(*a, "--") != 0; a++) {
		bool *flag = flag_of(*a);

		if (flag)
			*flag = true;
		else if (strcmp(*a, "--landlock-abi") == 0 && a[1])
			lies.landlock_abi = (int)strtol(*++a, NULL, 10);
		else if (strcmp(*a, "--landlock-errno") == 0 && a[1])
			lies.landlock_errno = (int)strtol(*++a, NULL, 10);
		else if (strcmp(*a, "--open") == 0 && a[1])
			lies.open_path = *++a;
		else
			return NULL;
	}
	return *a && a[1] ? a + 1 : NULL;
}

/* ---- the tracer: only for --open ------------------------------------------------- */

/* The stopped openat becomes dup(0), when it is of that path. */
static void lie_about_open(pid_t pid)
{
	struct user_regs_struct r;
	struct iovec iov = {&r, sizeof(r)};
	char path[4096];

	if (ptrace(PTRACE_GETREGSET, pid, (void *)NT_PRSTATUS, &iov) < 0)
		return;
#if defined(__x86_64__)
	if (!read_path(pid, r.rsi, path, sizeof(path)) ||
	    strcmp(path, lies.open_path) != 0)
		return;
	r.orig_rax = CALL(dup);
	r.rdi = 0;
#elif defined(__aarch64__)
	int nr = CALL(dup);
	struct iovec call = {&nr, sizeof(nr)};

	if (!read_path(pid, r.regs[1], path, sizeof(path)) ||
	    strcmp(path, lies.open_path) != 0)
		return;
	r.regs[0] = 0;
	if (ptrace(PTRACE_SETREGSET, pid, (void *)NT_ARM_SYSTEM_CALL, &call) < 0)
		fatal("lie: change the call");
#endif
	if (ptrace(PTRACE_SETREGSET, pid, (void *)NT_PRSTATUS, &iov) < 0)
		fatal("lie: change the call");
}

/* The end of main_pid, as a wait status. */
static int trace(pid_t main_pid)
{
	const long options = PTRACE_O_EXITKILL | PTRACE_O_TRACESECCOMP |
			     PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
			     PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC;
	int status, end = 0;
	pid_t pid;

	if (waitpid(main_pid, &status, 0) != main_pid || !WIFSTOPPED(status) ||
	    ptrace(PTRACE_SETOPTIONS, main_pid, NULL, (void *)options) < 0 ||
	    ptrace(PTRACE_CONT, main_pid, NULL, NULL) < 0)
		fatal("lie: trace");
	while ((pid = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR) {
		long signo = 0;

		if (pid < 0)
			continue;
		if (pid == main_pid && !WIFSTOPPED(status))
			end = status;
		if (!WIFSTOPPED(status))
			continue;
		if (status >> 16 == PTRACE_EVENT_SECCOMP)
			lie_about_open(pid);
		else if (status >> 16 == 0 && WSTOPSIG(status) != SIGSTOP)
			signo = WSTOPSIG(status);
		(void)ptrace(PTRACE_CONT, pid, NULL, (void *)signo);
	}
	return end;
}

/* ---- the whole --------------------------------------------------------------------- */

/* Landlock says no to a write below /proc, and to nothing else. */
static void restrict_userns(void)
{
	struct landlock_set set = {.fd = -1};
	struct err err = ERR_INIT;
	DIR *root = opendir("/");
	const struct dirent *e;
	char path[300] = "/";

	if (!root || landlock_begin(&set, false, false, false, false, &err) < 0)
		fatal("lie: landlock");
	while ((e = readdir(root))) {
		(void)snprintf(path + 1, sizeof(path) - 1, "%s", e->d_name);
		if (e->d_name[0] != '.' && access(path, F_OK) == 0 &&
		    landlock_allow_path(
			    &set, path,
			    strcmp(path, "/proc") == 0 ? LL_FS_ROX : LL_FS_ALL, &err) < 0)
			fatal(path);
	}
	if (closedir(root) < 0 || landlock_enforce(&set, &err) < 0)
		fatal("lie: landlock");
}

NORETURN static void become(char **command, const struct sock_fprog *prog, int sock)
{
	unsigned flags = needs_listener() ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0;
	int fd;

	if (lies.open_path &&
	    (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 || raise(SIGSTOP) != 0))
		fatal("lie: traceme");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		fatal("no_new_privs");
	if (lies.userns_restricted)
		restrict_userns();
	fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, prog);
	if (fd < 0)
		fatal("lie: seccomp");
	if (flags) {
		send_fd(sock, fd);
		(void)close(fd);
	}
	if (strchr(command[0], '/'))
		execv(command[0], command);
	fatal(command[0]);
}

int main(int argc, char **argv)
{
	struct sock_fprog prog = {.filter = filter};
	char **command = argc > 1 ? parse(argv + 1) : NULL;
	int sv[2], status = 0;
	pid_t child, supervisor = 0;

	if (!command) {
		(void)fputs("usage: lie [--option]... -- command\n", stderr);
		return 99;
	}
	build_filter();
	prog.len = n_filter;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) < 0)
		fatal("socketpair");
	/* The one that answers is the ancestor, or a sibling: it may read the memory of
	 * those who ask. */
	child = fork();
	if (child == 0)
		become(command, &prog, sv[1]);
	(void)close(sv[1]);
	if (needs_listener())
		supervisor = fork();
	if (needs_listener() && supervisor == 0) {
		int listener = recv_fd(sv[0]);

		(void)close(sv[0]);
		if (listener < 0)
			fatal("lie: no listener");
		supervise(listener);
	}
	(void)close(sv[0]);
	if (lies.open_path)
		status = trace(child);
	while (!lies.open_path && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (supervisor > 0) {
		(void)kill(supervisor, SIGKILL);
		(void)waitpid(supervisor, NULL, 0);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
