/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lie [--option]... -- command: runs a command on a kernel that lies, so that each wall
 * of the sandbox can be broken on purpose. An outer seccomp filter hands the chosen system
 * calls to this program, which answers in the kernel's place. Exit: the command's own.
 *
 *	--landlock-abi N	landlock_create_ruleset(VERSION) is N
 *	--landlock-errno N	every landlock call fails with this errno
 *	--no-seccomp		seccomp(2) is EPERM
 *	--no-userns --no-netns	clone and unshare with that flag are EPERM
 *	--open PATH		openat of PATH gives a descriptor of /dev/null
 *	--kill-works		kill(pid, SIGCONT) is 0 and does nothing
 *	--landlock-pretends	landlock_restrict_self is 0 and does nothing
 *	--seccomp-pretends	seccomp is 0 and does nothing
 *	--route-works		connect is 0 and does nothing
 *	--caps-stay		capset is 0 and does nothing
 *	--no-pivot		pivot_root is EPERM
 *	--broken-cgroup		any directory is a cgroup v2 with controllers, whose
 *				cgroup.procs cannot be written (EIO)
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/magic.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#define FILTER_MAX 128
#define CALL(n) ((uint32_t)__NR_##n)
#define LANDLOCK_CREATE 444u
#define LANDLOCK_ADD 445u
#define LANDLOCK_RESTRICT 446u

static struct {
	int landlock_abi, landlock_errno; /* -1, 0: the truth */
	bool no_seccomp, no_userns, no_netns, kill_works, landlock_pretends,
		seccomp_pretends, route_works, caps_stay, no_pivot, broken_cgroup;
	const char *open_path;
} lies = {.landlock_abi = -1};

static struct sock_filter filter[FILTER_MAX];
static unsigned short n_filter;

static void fatal(const char *what)
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

static void build_filter(void)
{
	uint32_t flags = (lies.no_userns ? (uint32_t)CLONE_NEWUSER : 0) |
			 (lies.no_netns ? (uint32_t)CLONE_NEWNET : 0);

	add(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
	if (flags) {
		refuse_flag(CALL(clone), flags);
		refuse_flag(CALL(unshare), flags);
		on_call(CALL(clone3), SECCOMP_RET_ERRNO | ENOSYS);
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
	if (lies.route_works)
		on_call(CALL(connect), SECCOMP_RET_ERRNO);
	if (lies.caps_stay)
		on_call(CALL(capset), SECCOMP_RET_ERRNO);
	if (lies.no_pivot)
		on_call(CALL(pivot_root), SECCOMP_RET_ERRNO | EPERM);
	if (lies.kill_works)
		on_call(CALL(kill), SECCOMP_RET_USER_NOTIF);
	if (lies.open_path || lies.broken_cgroup)
		on_call(CALL(openat), SECCOMP_RET_USER_NOTIF);
	if (lies.broken_cgroup) {
		on_call(CALL(fstatfs), SECCOMP_RET_USER_NOTIF);
		on_call(CALL(faccessat), SECCOMP_RET_USER_NOTIF);
		on_call(CALL(faccessat2), SECCOMP_RET_USER_NOTIF);
	}
	add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
}

static bool read_path(const struct seccomp_notif *n, char *out, size_t size)
{
	struct iovec to = {out, size - 1};
	struct iovec from = {(void *)(uintptr_t)n->data.args[1], size - 1};
	ssize_t got = process_vm_readv((pid_t)n->pid, &to, 1, &from, 1, 0);

	/* A path near the end of a mapping: byte by byte would be exact; a page is enough
	 * here. */
	if (got <= 0) {
		from.iov_len = to.iov_len = 64;
		got = process_vm_readv((pid_t)n->pid, &to, 1, &from, 1, 0);
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

	if (!read_path(n, path, sizeof(path)))
		return false;
	if (lies.open_path && strcmp(path, lies.open_path) == 0) {
		give_fd(listener, n, open("/dev/null", O_RDONLY | O_CLOEXEC));
		return true;
	}
	if (!lies.broken_cgroup || !is_control_file(path))
		return false;
	/* Address 0 of our memory is not mapped: writing there is EIO. */
	if (strcmp(path, "cgroup.procs") == 0)
		give_fd(listener, n, open("/proc/self/mem", O_RDWR | O_CLOEXEC));
	else
		give_fd(listener, n, memfd_create("lie", MFD_CLOEXEC));
	return true;
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
	} else if (nr == CALL(kill) && n->data.args[1] == SIGCONT) {
		resp->flags = 0;
	} else if (nr == CALL(fstatfs)) {
		struct statfs fs = {.f_type = CGROUP2_SUPER_MAGIC};
		struct iovec from = {&fs, sizeof(fs)};
		struct iovec to = {(void *)(uintptr_t)n->data.args[1], sizeof(fs)};

		if (process_vm_writev((pid_t)n->pid, &from, 1, &to, 1, 0) != sizeof(fs))
			fatal("lie: fstatfs");
		resp->flags = 0;
	} else if ((nr == CALL(faccessat) || nr == CALL(faccessat2)) &&
		   read_path(n, path, sizeof(path)) && is_control_file(path)) {
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

static char **parse(char **a)
{
	for (; *a && strcmp(*a, "--") != 0; a++) {
		if (strcmp(*a, "--landlock-abi") == 0 && a[1])
			lies.landlock_abi = (int)strtol(*++a, NULL, 10);
		else if (strcmp(*a, "--landlock-errno") == 0 && a[1])
			lies.landlock_errno = (int)strtol(*++a, NULL, 10);
		else if (strcmp(*a, "--open") == 0 && a[1])
			lies.open_path = *++a;
		else if (strcmp(*a, "--no-seccomp") == 0)
			lies.no_seccomp = true;
		else if (strcmp(*a, "--no-userns") == 0)
			lies.no_userns = true;
		else if (strcmp(*a, "--no-netns") == 0)
			lies.no_netns = true;
		else if (strcmp(*a, "--kill-works") == 0)
			lies.kill_works = true;
		else if (strcmp(*a, "--landlock-pretends") == 0)
			lies.landlock_pretends = true;
		else if (strcmp(*a, "--seccomp-pretends") == 0)
			lies.seccomp_pretends = true;
		else if (strcmp(*a, "--route-works") == 0)
			lies.route_works = true;
		else if (strcmp(*a, "--caps-stay") == 0)
			lies.caps_stay = true;
		else if (strcmp(*a, "--no-pivot") == 0)
			lies.no_pivot = true;
		else if (strcmp(*a, "--broken-cgroup") == 0)
			lies.broken_cgroup = true;
		else
			return NULL;
	}
	return *a && a[1] ? a + 1 : NULL;
}

int main(int argc, char **argv)
{
	struct sock_fprog prog = {.filter = filter};
	char **command = argc > 1 ? parse(argv + 1) : NULL;
	int sv[2], status = 0;
	pid_t child, supervisor;

	if (!command) {
		(void)fputs("usage: lie [--option]... -- command\n", stderr);
		return 99;
	}
	build_filter();
	prog.len = n_filter;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) < 0)
		fatal("socketpair");
	/* The one that answers is the ancestor: it may read the memory of those who ask.
	 */
	child = fork();
	if (child == 0) {
		int fd;

		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
			fatal("no_new_privs");
		fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
				  SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog);
		if (fd < 0)
			fatal("lie: seccomp");
		send_fd(sv[1], fd);
		(void)close(fd);
		if (strchr(command[0], '/'))
			execv(command[0], command);
		fatal(command[0]);
	}
	(void)close(sv[1]);
	supervisor = fork();
	if (supervisor == 0) {
		int listener = recv_fd(sv[0]);

		(void)close(sv[0]);
		if (listener < 0)
			fatal("lie: no listener");
		supervise(listener);
	}
	(void)close(sv[0]);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	(void)kill(supervisor, SIGKILL);
	(void)waitpid(supervisor, NULL, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
