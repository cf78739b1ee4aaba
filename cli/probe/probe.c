/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in a sandbox of lych doctor.
 * lych-probe: attempts what a job must not be able to do, one line an act:
 *
 *	ACT <tab> refused|SUCCEEDED|inert <tab> ANSWER
 *
 * It is run by `lych doctor` inside a sandbox, against victims that live outside;
 * whoever started it judges from there and doesn't trust these lines alone. What it
 * attempts does no harm where it succeeds. Arguments (all optional): secret=PATH
 * home=DIR unix=PATH abstract=NAME tcp=PORT udp=PORT pid=N api=PATH survivor=PATH
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/netlink.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>

static int succeeded;

static void report(const char *act, long r)
{
	int e = errno;
	const char *name = r < 0 ? strerrorname_np(e) : NULL;

	if (r >= 0)
		succeeded = 1;
	(void)printf("%s\t%s\t%s\n", act, r < 0 ? "refused" : "SUCCEEDED",
		     r < 0 ? (name ? name : "?") : "-");
	(void)fflush(stdout);
}

static const char *arg_of(int argc, char **argv, const char *key)
{
	size_t n = strlen(key);

	for (int i = 1; i < argc; i++)
		if (strncmp(argv[i], key, n) == 0 && argv[i][n] == '=')
			return argv[i] + n + 1;
	return NULL;
}

/* ---- files ------------------------------------------------------------------ */

static void try_files(const char *secret, const char *home)
{
	const struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
	char beside[4096];
	int fd;

	if (secret) {
		report("read a key", fd = open(secret, O_RDONLY | O_CLOEXEC));
		if (fd >= 0)
			(void)close(fd);
		report("write a key", fd = open(secret, O_WRONLY | O_CLOEXEC));
		if (fd >= 0)
			(void)close(fd);
		report("truncate a key", truncate(secret, 0));
		report("chmod a key", chmod(secret, 0777));
		report("touch a key", utimensat(AT_FDCWD, secret, old, 0));
		report("mark a key",
		       syscall(SYS_setxattr, secret, "user.lych", "x", 1, 0));
		report("link a key", link(secret, "stolen"));
		report("rename a key", rename(secret, "stolen"));
		report("remove a key", unlink(secret));
		(void)snprintf(beside, sizeof(beside), "%s.planted", secret);
		report("plant a file",
		       fd = open(beside, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
		(void)unlink("through");
		if (symlink(secret, "through") == 0)
			report("read through a link",
			       fd = open("through", O_RDONLY | O_CLOEXEC));
	}
	if (home)
		report("list the home",
		       fd = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	report("read /etc/shadow", open("/etc/shadow", O_RDONLY | O_CLOEXEC));
	report("write to /usr",
	       open("/usr/lych-probe", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	report("write core_pattern",
	       open("/proc/sys/kernel/core_pattern", O_WRONLY | O_CLOEXEC));
}

/* ---- network ---------------------------------------------------------------- */

static long connect_unix(const char *path, int abstract, int type)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	size_t n = strlen(path);
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	if (n + 1 >= sizeof(sa.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(sa.sun_path + (abstract ? 1 : 0), path, n);
	return connect(fd, (const struct sockaddr *)&sa,
		       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1));
}

static long send_inet(int type, int proto, unsigned port, int flags)
{
	struct sockaddr_in sa = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, proto);

	if (fd < 0)
		return -1;
	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (type == SOCK_DGRAM || flags)
		return sendto(fd, "x", 1, flags | MSG_NOSIGNAL,
			      (const struct sockaddr *)&sa, sizeof(sa));
	return connect(fd, (const struct sockaddr *)&sa, sizeof(sa));
}

static long to_outside(void)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(53)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	sa.sin_addr.s_addr = htonl(0xc0000201); /* 192.0.2.1, TEST-NET-1 */
	return connect(fd, (const struct sockaddr *)&sa, sizeof(sa));
}

static void try_network(const char *path, const char *abstract, const char *api,
			unsigned tcp, unsigned udp)
{
	static const struct {
		const char *name;
		int family, type, proto;
	} families[] = {
		{"netlink audit socket", AF_NETLINK, SOCK_RAW, NETLINK_AUDIT},
		{"packet socket", AF_PACKET, SOCK_RAW, 0},
		{"raw socket", AF_INET, SOCK_RAW, IPPROTO_ICMP},
		{"vsock socket", AF_VSOCK, SOCK_STREAM, 0},
		{"crypto socket", AF_ALG, SOCK_SEQPACKET, 0},
		{"bluetooth socket", AF_BLUETOOTH, SOCK_RAW, 0},
		{"can socket", AF_CAN, SOCK_RAW, 1},
	};

	if (path)
		report("unix socket by path", connect_unix(path, 0, SOCK_STREAM));
	if (abstract)
		report("abstract unix socket", connect_unix(abstract, 1, SOCK_STREAM));
	if (api)
		report("the owner's api socket", connect_unix(api, 0, SOCK_STREAM));
	if (tcp) {
		report("tcp to the host", send_inet(SOCK_STREAM, 0, tcp, 0));
		report("tcp fast open", send_inet(SOCK_STREAM, 0, tcp, MSG_FASTOPEN));
		report("mptcp to the host", send_inet(SOCK_STREAM, 262, tcp, 0));
	}
	/* a datagram to nobody "succeeds" in a loopback of one's own: only the outside
	 * can judge */
	if (udp) {
		long r = send_inet(SOCK_DGRAM, 0, udp, 0);

		(void)printf("udp to the host\t%s\t%s\n", r < 0 ? "refused" : "inert",
			     r < 0 ? strerrorname_np(errno) : "sent; see from outside");
	}
	report("a route to the world", to_outside());
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		report(families[i].name,
		       socket(families[i].family, families[i].type | SOCK_CLOEXEC,
			      families[i].proto));
}

/* ---- processes -------------------------------------------------------------- */

static void try_processes(pid_t pid)
{
	const struct rlimit low = {.rlim_cur = 7, .rlim_max = 7};
	char byte, path[64];
	const struct iovec local = {.iov_base = &byte, .iov_len = 1};
	const struct iovec remote = {.iov_base = (void *)(uintptr_t)0x10000,
				     .iov_len = 1};
	cpu_set_t one;
	long r;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	report("signal a process", kill(pid, SIGUSR1));
	r = syscall(SYS_pidfd_open, pid, 0);
	if (r >= 0)
		r = syscall(SYS_pidfd_send_signal, (int)r, SIGUSR1, NULL, 0);
	report("signal it by pidfd", r);
	report("trace a process", ptrace(PTRACE_SEIZE, pid, NULL, NULL));
	/* an unmapped address: EFAULT would mean that access was granted */
	r = process_vm_readv(pid, &local, 1, &remote, 1, 0);
	report("read its memory", r < 0 && errno == EFAULT ? 0 : r);
	report("limit a process", prlimit(pid, RLIMIT_NOFILE, &low, NULL));
	report("renice a process", setpriority(PRIO_PROCESS, (id_t)pid, 19));
	report("pin a process", sched_setaffinity(pid, sizeof(one), &one));
	(void)snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	report("read its environment", open(path, O_RDONLY | O_CLOEXEC));
	(void)snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	report("open its memory", open(path, O_RDONLY | O_CLOEXEC));
}

/* ---- the kernel ------------------------------------------------------------- */

static void try_kernel(void)
{
	static const struct {
		const char *name;
		long nr, a, b, c;
	} calls[] = {
		{"a new user namespace", SYS_unshare, CLONE_NEWUSER, 0, 0},
		{"a new mount namespace", SYS_unshare, CLONE_NEWNS, 0, 0},
		{"io_uring", SYS_io_uring_setup, 1, 0, 0},
		{"bpf", SYS_bpf, 0, 0, 0},
		{"the kernel's keyrings", SYS_keyctl, 0, -3, 0},
		{"perf events", SYS_perf_event_open, 0, 0, -1},
		{"userfaultfd", SYS_userfaultfd, 1, 0, 0},
		{"kernel modules", SYS_init_module, 0, 0, 0},
		{"kexec", SYS_kexec_load, 0, 0, 0},
		{"the clock", SYS_clock_settime, 0, 0, 0},
		{"swap", SYS_swapon, 0, 0, 0},
		{"file handles", SYS_open_by_handle_at, -1, 0, 0},
	};

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		long r = syscall(calls[i].nr, calls[i].a, calls[i].b, calls[i].c, -1, 0);

		/* the kernel looked at the arguments: nothing stood in front of it */
		if (r < 0 && (errno == EFAULT || errno == EINVAL || errno == EBADF))
			r = 0;
		report(calls[i].name, r);
	}
	report("uid 0", setuid(0));
	report("mount", mount("none", "/tmp", "tmpfs", 0, NULL));
	report("chroot", chroot("/tmp"));
	report("a host name", sethostname("lych", 4));
}

/* Two forks and a session of its own: the classic way to outlive one's keeper. */
static void leave_survivor(const char *path)
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)setsid();
		(void)signal(SIGTERM, SIG_IGN);
		(void)signal(SIGHUP, SIG_IGN);
		if (fork() != 0)
			_exit(0);
		for (int fd = 0; fd < 64; fd++)
			(void)close(fd);
		(void)usleep(700 * 1000);
		(void)open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		_exit(0);
	}
	if (pid > 0)
		(void)waitpid(pid, NULL, 0);
	(void)printf("outlive the job\tinert\t%s\n", pid < 0 ? "no fork" : "left behind");
}

static const char usage[] =
	"lych-probe tries what a job must not be able to do. 'lych doctor' runs it "
	"inside a\n"
	"sandbox, with victims of its own; for anybody else, and outside of one, it does "
	"nothing.\n";

static const char *const keys[] = {"secret=", "home=", "unix=", "abstract=", "tcp=",
				   "udp=",    "pid=",  "api=",	"survivor="};
#define N_KEYS (sizeof(keys) / sizeof(keys[0]))

/* All of doctor's words, each once, and the file to be lost is one that doctor made for that. */
static bool is_doctors(int argc, char **argv)
{
	const char *secret = arg_of(argc, argv, "secret");
	unsigned seen = 0;

	for (int i = 1; i < argc; i++)
		for (size_t k = 0; k < N_KEYS; k++)
			if (strncmp(argv[i], keys[k], strlen(keys[k])) == 0)
				seen |= 1U << k;
	return argc == (int)N_KEYS + 1 && seen == (1U << N_KEYS) - 1 &&
	       strstr(secret, "/.lych-doctor-");
}

/* By whom it was not meant for: without doctor's words, by root, or outside of a sandbox, each of which
 * has given up new privileges; nobody's shell has. -1: go on. */
static int turned_away(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		(void)fputs(usage, stdout);
		return 0;
	}
	if (is_doctors(argc, argv) && getuid() != 0 && geteuid() != 0 &&
	    prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
		return -1;
	(void)fputs(usage, stderr);
	return 2;
}

int main(int argc, char **argv)
{
	int away = turned_away(argc, argv);
	const char *tcp = arg_of(argc, argv, "tcp"), *udp = arg_of(argc, argv, "udp");
	const char *pid = arg_of(argc, argv, "pid"),
		   *survivor = arg_of(argc, argv, "survivor");

	if (away >= 0)
		return away;
	(void)signal(SIGPIPE, SIG_IGN);
	try_files(arg_of(argc, argv, "secret"), arg_of(argc, argv, "home"));
	try_network(arg_of(argc, argv, "unix"), arg_of(argc, argv, "abstract"),
		    arg_of(argc, argv, "api"), tcp ? (unsigned)strtoul(tcp, NULL, 10) : 0,
		    udp ? (unsigned)strtoul(udp, NULL, 10) : 0);
	if (pid)
		try_processes((pid_t)strtol(pid, NULL, 10));
	try_kernel();
	if (survivor)
		leave_survivor(survivor);
	return succeeded;
}
