/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Section I: what the kernel tells of the host, of its other processes and of the person:
 * below /proc, by ioctl, by clocks, by numbers of processes.
 */
#include "tests/escape/probe/probe.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>

#define TEXT_MAX 65536
#define INTERFACES_MAX 64
#define INDEX_MAX 64
#define IOPRIO_PROCESS 1
#define CPU_TIME 2u /* of a process; with 4: of a thread */
#define THREAD_TIME 6u

/* ---- 108, 109: /proc ---- */

static char text[TEXT_MAX];

/* Its length, or -1. */
static ssize_t read_text(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ssize_t n, len = 0;

	if (fd < 0)
		return -1;
	while (len < TEXT_MAX - 1 &&
	       (n = read(fd, text + len, (size_t)(TEXT_MAX - 1 - len))) > 0)
		len += n;
	text[len] = '\0';
	return close(fd) < 0 ? -1 : len;
}
/* A name that must say nothing: HELD when it is empty, or not there. */
static int says_nothing(const char *path)
{
	struct stat st;
	DIR *d;
	int n = 0;

	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
		d = opendir(path);
		if (!d)
			return errno;
		while (readdir(d))
			n++;
		(void)closedir(d);
		return n == 2 ? HELD : GOT_THROUGH;
	}
	if (read_text(path) < 0)
		return errno == ENOENT ? HELD : errno;
	return text[0] ? GOT_THROUGH : HELD;
}
static int all_say_nothing(const char *const *paths)
{
	int got = HELD;

	for (; *paths && (got == HELD || got == EACCES); paths++) {
		int now = says_nothing(*paths);

		if (now == GOT_THROUGH)
			(void)fprintf(stderr, "%s\n", *paths);
		if (now != HELD)
			got = now;
	}
	return got;
}
static int key_names(void)
{
	return says_nothing("/proc/keys");
}
static int key_users(void)
{
	return says_nothing("/proc/key-users");
}
static int host_files(void)
{
	static const char *const paths[] = {"/proc/cmdline",	"/proc/partitions",
					    "/proc/diskstats",	"/proc/swaps",
					    "/proc/locks",	"/proc/mdstat",
					    "/proc/interrupts", "/proc/bootconfig",
					    "/proc/fb",		NULL};

	return all_say_nothing(paths);
}
static int host_directories(void)
{
	static const char *const paths[] = {
		"/proc/asound",	    "/proc/bus",	 "/proc/driver",
		"/proc/fs",	    "/proc/scsi",	 "/proc/spl",
		"/proc/sys/sunrpc", "/proc/device-tree", NULL};

	return all_say_nothing(paths);
}
/* What was looked at and found to be of the kernel, of the machine's load, or of the job. */
static int is_reviewed(const char *name)
{
	static const char *const names[] = {".",
					    "..",
					    "self",
					    "thread-self",
					    "mounts",
					    "net",
					    "sys",
					    "sysvipc",
					    "tty",
					    "pressure",
					    "buddyinfo",
					    "cgroups",
					    "config.gz",
					    "consoles",
					    "cpuinfo",
					    "crypto",
					    "devices",
					    "dma",
					    "execdomains",
					    "filesystems",
					    "loadavg",
					    "meminfo",
					    "misc",
					    "schedstat",
					    "softirqs",
					    "stat",
					    "uptime",
					    "version",
					    "vmstat",
					    "zoneinfo",
					    "version_signature",
					    "acpi",
					    "iomem",
					    "ioports",
					    "irq",
					    "kallsyms",
					    "modules",
					    "mtrr",
					    NULL};

	for (const char *const *n = names; *n; n++)
		if (strcmp(*n, name) == 0)
			return 1;
	return name[strspn(name, "0123456789")] == '\0';
}
static int unknown_names(void)
{
	DIR *d = opendir("/proc");
	int got = HELD, now;

	if (!d)
		return errno;
	for (struct dirent *e; (e = readdir(d)) && got == HELD;) {
		char path[300];

		if (is_reviewed(e->d_name))
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%s", e->d_name);
		now = says_nothing(path);
		if (now == GOT_THROUGH) {
			(void)fprintf(stderr, "%s\n", path);
			got = now;
		}
	}
	(void)closedir(d);
	return got;
}
static int boot_id(void)
{
	if (read_text("/proc/sys/kernel/random/boot_id") < 0)
		return errno;
	text[strcspn(text, "\n")] = '\0';
	return strcmp(text, target("boot_id")) == 0 ? GOT_THROUGH : HELD;
}
/* Its own mounts; of a workspace that is not its file system's root the path there. */
static int mount_paths(void)
{
	if (read_text("/proc/self/mountinfo") < 0)
		return errno;
	return strstr(text, "/work /work ") ? ALLOWED : HELD;
}
static int domain_name(void)
{
	struct utsname u;

	if (uname(&u) < 0)
		return errno;
	return strcmp(u.domainname, "(none)") == 0 || !u.domainname[0] ? HELD
								       : GOT_THROUGH;
}

/* Which file system is it? Its label, its UUID, its device, its subvolumes. */
static int file_system_ids(void)
{
	static const unsigned long asks[] = {
		0x81009431, /* FS_IOC_GETFSLABEL */
		0x80111500, /* FS_IOC_GETFSUUID */
		0x80811501, /* FS_IOC_GETFSSYSFSPATH */
		0x8008662c, /* EXT4_IOC_GETFSUUID */
		0x8400941f, /* BTRFS_IOC_FS_INFO */
		0xd000941e, /* BTRFS_IOC_DEV_INFO */
		0x81f8943c, /* BTRFS_IOC_GET_SUBVOL_INFO */
		0x8100587e, /* XFS_IOC_FSGEOMETRY */
		0x80087213, /* FAT_IOCTL_GET_VOLUME_ID */
	};
	static char arg[8192];
	int fd = open(".", O_RDONLY | O_CLOEXEC), got = EPERM;

	for (size_t i = 0; i < sizeof(asks) / sizeof(asks[0]) && got == EPERM; i++)
		got = answer_of(ioctl(fd, asks[i], arg));
	return got;
}

/* ---- 110: interfaces ---- */

static int any_socket(void)
{
	int sv[2];

	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) < 0 ? -1 : sv[0];
}
static int list_on(int fd)
{
	struct ifreq all[INTERFACES_MAX];
	struct ifconf conf = {.ifc_len = sizeof(all), .ifc_req = all};

	if (fd < 0)
		return errno;
	if (ioctl(fd, SIOCGIFCONF, &conf) < 0)
		return errno;
	for (size_t i = 0; i < (size_t)conf.ifc_len / sizeof(all[0]); i++) {
		const struct sockaddr_in *in = (const void *)&all[i].ifr_addr;

		if (ntohl(in->sin_addr.s_addr) >> 24 != IN_LOOPBACKNET) {
			(void)fprintf(stderr, "%s\n", inet_ntoa(in->sin_addr));
			return GOT_THROUGH;
		}
	}
	return HELD;
}
static int list_addresses(void)
{
	return list_on(any_socket());
}
static int list_addresses_inet(void)
{
	return list_on(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
}
/* Each number that an interface could have: its name and its MAC. */
static int each_interface(void)
{
	int fd = any_socket(), worst = HELD;

	for (int i = 1; i < INDEX_MAX && fd >= 0; i++) {
		struct ifreq one = {.ifr_ifindex = i};

		if (ioctl(fd, SIOCGIFNAME, &one) < 0) {
			if (errno != ENODEV)
				worst = errno;
			continue;
		}
		if (strcmp(one.ifr_name, "lo") != 0 || ioctl(fd, SIOCGIFHWADDR, &one) < 0)
			return GOT_THROUGH;
		for (int k = 0; k < 6; k++)
			if (one.ifr_hwaddr.sa_data[k])
				return GOT_THROUGH;
	}
	return fd < 0 ? errno : worst;
}
static int network_of_socket(void)
{
	return answer_of(ioctl(any_socket(), 0x894C /* SIOCGSKNS */, 0));
}

/* ---- 111-113: other processes ---- */

static pid_t victim(void)
{
	return (pid_t)target_number("victim_pid");
}
static int pidfd_of_victim(void)
{
	return answer_of(syscall(SYS_pidfd_open, victim(), 0));
}
static int pidfd_of_init(void)
{
	/* the keeper in full, the host's own in floor */
	long fd = syscall(SYS_pidfd_open, 1, 0);

	return fd >= 0 && !in_floor() ? HELD : answer_of(fd);
}
static clockid_t cpu_clock(pid_t pid, unsigned kind)
{
	return (clockid_t)(~(unsigned)pid << 3 | kind);
}
static int clock_of(pid_t pid)
{
	struct timespec t;

	return answer_of(clock_gettime(cpu_clock(pid, CPU_TIME), &t));
}
static int clock_of_victim(void)
{
	return clock_of(victim());
}
static int clock_of_keeper(void)
{
	return clock_of(keeper_pid());
}
static int resolution_for_victim(void)
{
	struct timespec t;

	return answer_of(clock_getres(cpu_clock(victim(), CPU_TIME), &t));
}
static int sleep_by_victim(void)
{
	struct timespec t = {0};

	/* it returns the errno */
	int r = (int)syscall(SYS_clock_nanosleep, cpu_clock(victim(), CPU_TIME), 0, &t,
			     NULL);

	return answer_of(r);
}
static int timer_on(pid_t pid)
{
	struct sigevent e = {.sigev_notify = SIGEV_NONE};
	int timer;

	return answer_of(syscall(SYS_timer_create, cpu_clock(pid, CPU_TIME), &e, &timer));
}
static int timer_on_victim(void)
{
	return timer_on(victim());
}
static int timer_on_keeper(void)
{
	return timer_on(keeper_pid());
}
static int own_clocks(void)
{
	struct timespec t;
	clockid_t self;

	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) < 0 ||
	    clock_gettime(cpu_clock(gettid(), THREAD_TIME), &t) < 0 ||
	    clock_getcpuclockid(0, &self) != 0 || clock_gettime(self, &t) < 0)
		return errno;
	return ALLOWED;
}
/* A question about a process: what the kernel tells of any. */
static int tells_of_victim(long r)
{
	return allowed_or_errno(r);
}
static int session_of(void)
{
	return tells_of_victim(getsid(victim()) < 0 || getpgid(victim()) < 0 ? -1 : 0);
}
static int priority_of(void)
{
	errno = 0;
	(void)getpriority(PRIO_PROCESS, (id_t)victim());
	return errno ? errno
		     : tells_of_victim(syscall(SYS_ioprio_get, IOPRIO_PROCESS, victim()));
}
static int policy_of(void)
{
	unsigned char attr[56];
	struct sched_param p;
	struct timespec t;

	if (sched_getparam(victim(), &p) < 0 || sched_rr_get_interval(victim(), &t) < 0 ||
	    syscall(SYS_sched_getattr, victim(), attr, sizeof(attr), 0) < 0)
		return errno;
	return tells_of_victim(sched_getscheduler(victim()));
}
static int rights_of(void)
{
	unsigned head[2] = {0x20080522, (unsigned)victim()}, data[6];

	return tells_of_victim(syscall(SYS_capget, head, data));
}
/* Is there a process of this number? EPERM says yes, ESRCH no. */
static int exists(void)
{
	if (kill(victim(), 0) == 0)
		return GOT_THROUGH;
	return errno == EPERM ? ALLOWED : errno;
}
static int owner_of(void)
{
	char path[32];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/%d", victim());
	return tells_of_victim(stat(path, &st));
}

/* clang-format off */
#define DENIED {EPERM}, {EPERM}
#define MASKED {HELD}, {EACCES}
#define OF_ANY {ESRCH}, {ALLOWED}
#define SEEN "floor: that a process exists, whose it is and how it runs can be seen"
#define LEAKS "tests/escape/leaks.sh"

static const struct probe probes[] = {
	{"108", "the names of your keys (/proc/keys)", key_names, MASKED},
	{"108b", "/proc/key-users", key_users, MASKED},
	ELSEWHERE("108c", "a key of the session it was started from", "not possessed",
	 "tests/unit/sandbox/walls/test_keyring.c", "a_key_of_the_session_is_left_behind"),
	{"109", "boot options, disks, swap, locks, interrupts: /proc/cmdline, partitions, diskstats, ...",
	 host_files, MASKED},
	{"109b", "/proc/asound, bus, driver, fs, scsi, sys/sunrpc",
	 host_directories, MASKED},
	{"109c", "every name of /proc that nobody reviewed", unknown_names, MASKED},
	{"109d", "the id of this boot", boot_id, MASKED},
	{"109e", "host paths in mountinfo", mount_paths, {ALLOWED}, {EACCES},
	 "full: a known gap: where the workspace lies in its file system"},
	{"109f", "the host's NIS domain", domain_name, {HELD}, {HELD, GOT_THROUGH},
	 "floor: the host's names can be seen"},
	ELSEWHERE("109g", "the same where there is one", "full: none", LEAKS,
	 "the domain name"),
	{"109h", "label, UUID, device and subvolumes of the workspace's file system",
	 file_system_ids, DENIED},
	{"110", "addresses by SIOCGIFCONF, on a UNIX socket", list_addresses, {HELD},
	 {EPERM}, "full: its own loopback"},
	{"110b", "the same on an inet socket", list_addresses_inet, {HELD}, {EPERM},
	 "full: its own loopback"},
	{"110c", "names and MACs of interfaces by their numbers", each_interface, {HELD},
	 {EPERM}, "full: its own loopback"},
	{"110d", "the network namespace of a socket", network_of_socket, DENIED},
	ELSEWHERE("110e", "all of these on a socket given as stdin",
	 "full: its own loopback; floor: EPERM", LEAKS, "a socket of another network"),
	ELSEWHERE("110f", "an abstract name in the network of such a socket",
	 "EINVAL: it has a name; floor: EPERM", LEAKS, "a name of the host's network"),
	{"111", "pidfd_open of a process of the same uid outside", pidfd_of_victim,
	 {ESRCH}, {ENOSYS}},
	{"111b", "of process 1", pidfd_of_init, {HELD}, {ENOSYS}, "full: the keeper"},
	{"112", "CPU time of another process: clock_gettime", clock_of_victim, DENIED},
	{"112b", "of the keeper", clock_of_keeper, DENIED},
	{"112c", "clock_getres", resolution_for_victim, DENIED},
	{"112d", "clock_nanosleep", sleep_by_victim, DENIED},
	{"112e", "timer_create: timers on another's CPU time", timer_on_victim, DENIED},
	{"112f", "on the keeper's", timer_on_keeper, DENIED},
	{"112g", "its own, its threads'", own_clocks, {ALLOWED}, {ALLOWED}},
	{"113", "getsid and getpgid of another process", session_of, OF_ANY, SEEN},
	{"113b", "getpriority, ioprio_get", priority_of, OF_ANY, SEEN},
	{"113c", "sched_getparam, sched_getscheduler, sched_getattr, sched_rr_get_interval",
	 policy_of, OF_ANY, SEEN},
	{"113d", "capget", rights_of, OF_ANY, SEEN},
	{"113e", "kill with signal 0", exists, OF_ANY, SEEN},
	{"113f", "stat of /proc/PID", owner_of, {ENOENT}, {ALLOWED}, SEEN},
};
/* clang-format on */

const struct section section_leaks = {'I', "What the kernel tells", probes,
				      sizeof(probes) / sizeof(probes[0])};
