/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs inside: makes one kind of the kernel's objects as fast as it goes, in as many processes
 * as it is told, and keeps them. tests/escape/objects.py looks at the machine's memory meanwhile.
 *
 *	try_objects KIND PROCESSES MARK
 *
 * Each process makes them until it is refused (or until it is ended), then it waits.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define HOLD_SEC 4
#define MANY 100000000

static int who; /* which process: for names of its own */
static char block[1 << 20];

static int small_buffer(int fd, int most)
{
	return setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &most, sizeof(most));
}

/* Writes until it would wait. */
static void stuff(int fd)
{
	(void)fcntl(fd, F_SETFL, O_NONBLOCK);
	while (write(fd, block, sizeof(block)) > 0)
		;
	while (write(fd, block, 4096) > 0)
		;
}

/* ---- sockets ------------------------------------------------------------------------- */

static socklen_t abstract(struct sockaddr_un *a, int n)
{
	*a = (struct sockaddr_un){.sun_family = AF_UNIX};
	(void)snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, "o.%d.%d", who, n);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   strlen(a->sun_path + 1));
}

static void make_unix_backlog(void)
{
	for (int i = 0; i < MANY; i++) {
		struct sockaddr_un a;
		socklen_t len = abstract(&a, i);
		int l = socket(AF_UNIX, SOCK_STREAM, 0);

		if (l < 0 || bind(l, (struct sockaddr *)&a, len) < 0 ||
		    listen(l, 4096) < 0)
			return;
		for (int k = 0; k < 4096; k++) {
			int c = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

			(void)small_buffer(c, INT32_MAX / 2);
			if (c < 0 || connect(c, (struct sockaddr *)&a, len) < 0) {
				(void)close(c);
				break;
			}
			stuff(c);
			(void)close(c);
		}
	}
}

static void make_unix_datagrams(void)
{
	for (int i = 0; i < MANY; i++) {
		struct sockaddr_un a;
		socklen_t len = abstract(&a, i);
		int r = socket(AF_UNIX, SOCK_DGRAM, 0);

		if (r < 0 || bind(r, (struct sockaddr *)&a, len) < 0)
			return;
		for (int k = 0; k < 12; k++) {
			int s = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);

			(void)small_buffer(s, INT32_MAX / 2);
			(void)!sendto(s, block, 200000, 0, (struct sockaddr *)&a, len);
			(void)close(s);
		}
	}
}

static void make_unix_pairs(void)
{
	int sv[2];

	while (socketpair(AF_UNIX, SOCK_STREAM, 0, sv) == 0) {
		(void)small_buffer(sv[0], INT32_MAX / 2);
		stuff(sv[0]);
		(void)close(sv[0]);
	}
}

static void make_tcp(bool orphans)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	int l = socket(AF_INET, SOCK_STREAM, 0);

	if (l < 0 || bind(l, (struct sockaddr *)&a, sizeof(a)) < 0 ||
	    listen(l, 4096) < 0 || getsockname(l, (struct sockaddr *)&a, &len) < 0)
		return;
	for (int i = 0; i < MANY; i++) {
		int c = socket(AF_INET, SOCK_STREAM, 0), s = -1;

		if (c < 0)
			return;
		(void)small_buffer(c, INT32_MAX / 2);
		if (connect(c, (struct sockaddr *)&a, sizeof(a)) < 0)
			return;
		if (orphans)
			s = accept(l, NULL, NULL);
		stuff(c);
		(void)close(c);
		if (orphans && s < 0)
			return;
	}
}

static void make_tcp_backlog(void)
{
	make_tcp(false);
}

static void make_tcp_orphans(void)
{
	make_tcp(true);
}

static void make_udp(void)
{
	for (int i = 0; i < MANY; i++) {
		struct sockaddr_in a = {.sin_family = AF_INET,
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
		socklen_t len = sizeof(a);
		int most = INT32_MAX / 2, s = socket(AF_INET, SOCK_DGRAM, 0);

		if (s < 0 || bind(s, (struct sockaddr *)&a, sizeof(a)) < 0 ||
		    getsockname(s, (struct sockaddr *)&a, &len) < 0)
			return;
		(void)setsockopt(s, SOL_SOCKET, SO_RCVBUF, &most, sizeof(most));
		for (int k = 0; k < 2000; k++)
			(void)!sendto(s, block, 60000, MSG_DONTWAIT,
				      (struct sockaddr *)&a, sizeof(a));
	}
}

static void make_sockets(void)
{
	int sv[2];

	while (socket(AF_INET, SOCK_STREAM, 0) >= 0 ||
	       socketpair(AF_UNIX, SOCK_STREAM, 0, sv) == 0)
		;
}

static void make_netlink(void)
{
	while (socket(AF_NETLINK, SOCK_RAW, 0) >= 0)
		;
}

/* ---- files ----------------------------------------------------------------------------- */

static void lock_ranges(int command)
{
	char name[32];

	for (int f = 0; f < 64; f++) {
		int fd;

		(void)snprintf(name, sizeof(name), "locked.%d.%d", who, f);
		fd = open(name, O_RDWR | O_CREAT, 0600);
		/* From above: each goes to the head of the list. */
		for (off_t at = 200000; fd >= 0 && at > 0; at--) {
			struct flock l = {.l_type = F_RDLCK,
					  .l_whence = SEEK_SET,
					  .l_start = at * 2,
					  .l_len = 1};

			if (fcntl(fd, command, &l) < 0)
				return;
		}
	}
}

static void make_locks(void)
{
	lock_ranges(F_SETLK);
}

static void make_ofd_locks(void)
{
	lock_ranges(F_OFD_SETLK);
}

static void make_tmpfs_inodes(void)
{
	char name[64];

	for (int i = 0; i < MANY; i++) {
		(void)snprintf(name, sizeof(name), "/tmp/%d.%d", who, i);
		if (symlink("x", name) < 0)
			return;
	}
}

static void make_tmpfs_xattrs(void)
{
	char name[64], attr[64];

	for (int i = 0; i < MANY; i++) {
		int fd;

		(void)snprintf(name, sizeof(name), "/dev/shm/%d.%d", who, i);
		fd = open(name, O_RDWR | O_CREAT, 0600);
		if (fd < 0)
			return;
		for (int k = 0; k < MANY; k++) {
			(void)snprintf(attr, sizeof(attr), "user.a%d", k);
			if (fsetxattr(fd, attr, block, 32768, 0) < 0)
				break;
		}
		(void)close(fd);
	}
}

static void make_memfds(void)
{
	for (int i = 0; i < MANY; i++) {
		int fd = memfd_create("x", 0);

		if (fd < 0)
			return;
		for (off_t at = 0; fallocate(fd, 0, at, 1 << 30) == 0; at += 1 << 30)
			;
	}
}

static void make_negative(void)
{
	struct stat st;
	char name[64];

	for (int i = 0; i < 20000000; i++) {
		(void)snprintf(name, sizeof(name), "no.such.file.%d.%d", who, i);
		(void)stat(name, &st);
	}
}

/* ---- descriptors ---------------------------------------------------------------------- */

static void make_eventfds(void)
{
	while (eventfd(0, 0) >= 0 || timerfd_create(CLOCK_MONOTONIC, 0) >= 0)
		;
}

static void make_pidfds(void)
{
	while (syscall(SYS_pidfd_open, getpid(), 0) >= 0)
		;
}

/* A set of items is (file, number): the same files under other numbers are others. */
static void make_epoll_items(void)
{
	int base = eventfd(0, 0), ep[256], n = 0;

	while (n < 256 && (ep[n] = epoll_create1(0)) >= 0)
		n++;
	for (int fd = base; fd >= 0; fd = dup(base)) {
		struct epoll_event e = {.events = EPOLLIN};

		for (int i = 0; i < n; i++)
			if (epoll_ctl(ep[i], EPOLL_CTL_ADD, fd, &e) < 0)
				return;
	}
}

static void make_inotify(void)
{
	char name[64];
	int in = inotify_init();

	for (int i = 0; i < MANY && in >= 0; i++) {
		(void)snprintf(name, sizeof(name), "watched.%d.%d", who, i);
		if (mknod(name, S_IFREG | 0600, 0) < 0 ||
		    inotify_add_watch(in, name, IN_ALL_EVENTS) < 0)
			return;
	}
}

static void make_pipes(void)
{
	int p[2];

	while (pipe(p) == 0) {
		(void)fcntl(p[1], F_SETPIPE_SZ, 1 << 20);
		stuff(p[1]);
	}
}

static void make_pipe_rings(void)
{
	int p[2];

	while (pipe(p) == 0)
		(void)fcntl(p[1], F_SETPIPE_SZ, 1 << 20);
}

/* ---- memory ----------------------------------------------------------------------------- */

static void make_mappings(void)
{
	for (;;) {
		char *p = mmap(NULL, (size_t)4096 * 4096, PROT_NONE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (p == MAP_FAILED)
			return;
		for (size_t i = 0; i < 4096; i += 2)
			if (mprotect(p + i * 4096, 4096, PROT_READ) < 0)
				return;
	}
}

static void make_page_tables(void)
{
	const size_t gib = (size_t)1 << 30;

	for (int i = 0; i < 4096; i++) {
		char *p = mmap(NULL, gib, PROT_READ,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (p == MAP_FAILED)
			return;
		(void)madvise(p, gib, MADV_NOHUGEPAGE);
		for (size_t at = 0; at < gib; at += (size_t)2 << 20)
			(void)*(volatile char *)(p + at);
	}
}

static void *sleeper(void *arg)
{
	(void)pause();
	return arg;
}

static void make_threads(void)
{
	pthread_attr_t a;
	pthread_t t;

	(void)pthread_attr_init(&a);
	(void)pthread_attr_setstacksize(&a, 65536);
	while (pthread_create(&t, &a, sleeper, NULL) == 0)
		;
}

static void make_timers(void)
{
	struct sigevent e = {.sigev_notify = SIGEV_NONE};
	timer_t t;

	while (timer_create(CLOCK_MONOTONIC, &e, &t) == 0)
		;
}

static void make_signals(void)
{
	sigset_t all;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, NULL);
	while (sigqueue(getpid(), SIGRTMIN, (union sigval){0}) == 0)
		;
}

/* ---- filters and rules --------------------------------------------------------------------- */

static void make_filters(void)
{
	static struct sock_filter code[4096];
	struct sock_fprog prog = {.len = 4096, .filter = code};

	for (size_t i = 0; i < 4095; i++)
		code[i] = (struct sock_filter){BPF_LD | BPF_W | BPF_ABS, 0, 0, 0};
	code[4095] = (struct sock_filter){BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
	while (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) == 0)
		;
}

static int ruleset(void)
{
	const uint64_t attr[] = {4 /* read files */};

	return (int)syscall(444, attr, sizeof(attr), 0);
}

static void add_rules(int set, int n)
{
	char name[64];

	for (int i = 0; i < n; i++) {
		struct {
			uint64_t access;
			int32_t fd;
		} __attribute__((packed)) rule = {.access = 4};
		long r;

		(void)snprintf(name, sizeof(name), "ruled.%d.%d", who, i);
		rule.fd = open(name, O_RDWR | O_CREAT, 0600);
		r = syscall(445, set, 1, &rule, 0);
		(void)close(rule.fd);
		if (r < 0)
			return;
	}
}

static void make_rules(void)
{
	add_rules(ruleset(), MANY);
}

/* Each process a domain of its own, with all the rules. */
static void make_domains(void)
{
	int set = ruleset();

	add_rules(set, 20000);
	for (;;) {
		pid_t pid = fork();

		if (pid < 0)
			return;
		if (pid == 0) {
			for (int i = 0; i < 16; i++)
				(void)syscall(446, set, 0);
			(void)pause();
		}
	}
}

static void make_futex_hash(void)
{
	for (unsigned long n = 1ul << 31; n; n >>= 1)
		(void)prctl(78 /* PR_FUTEX_HASH */, 1, n, 0);
}

static const struct {
	const char *name;
	void (*make)(void);
} kinds[] = {
	{"unix-backlog", make_unix_backlog},
	{"unix-datagrams", make_unix_datagrams},
	{"unix-pairs", make_unix_pairs},
	{"tcp-backlog", make_tcp_backlog},
	{"tcp-orphans", make_tcp_orphans},
	{"udp", make_udp},
	{"sockets", make_sockets},
	{"netlink", make_netlink},
	{"locks", make_locks},
	{"ofd-locks", make_ofd_locks},
	{"tmpfs-inodes", make_tmpfs_inodes},
	{"tmpfs-xattrs", make_tmpfs_xattrs},
	{"memfds", make_memfds},
	{"negative-dentries", make_negative},
	{"eventfds", make_eventfds},
	{"pidfds", make_pidfds},
	{"epoll-items", make_epoll_items},
	{"inotify", make_inotify},
	{"pipes", make_pipes},
	{"pipe-rings", make_pipe_rings},
	{"mappings", make_mappings},
	{"page-tables", make_page_tables},
	{"threads", make_threads},
	{"timers", make_timers},
	{"signals", make_signals},
	{"filters", make_filters},
	{"landlock-rules", make_rules},
	{"landlock-domains", make_domains},
	{"futex-hash", make_futex_hash},
};

int main(int argc, char **argv)
{
	unsigned long n = argc == 4 ? strtoul(argv[2], NULL, 10) : 0;

	if (argc == 2 && strcmp(argv[1], "--list") == 0) {
		for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
			(void)puts(kinds[i].name);
		return 0;
	}
	for (size_t i = 0; n && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(kinds[i].name, argv[1]) != 0)
			continue;
		for (who = 0; who < (int)n - 1 && fork() != 0; who++)
			;
		kinds[i].make();
		(void)sleep(HOLD_SEC);
		return 0;
	}
	return 2;
}
