/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks through one room of the pod and tries things: linked without libraries, so that it
 * runs in an image that holds nothing. Each argument is KIND=THING; one line of answer each:
 * "KIND=THING<tab>yes" when it went through, else the errno's name. Nothing that it does
 * outlives it in a room whose walls stand; elsewhere some would: it refuses root.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

static int try_read(const char *path)
{
	char byte;
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	int r = fd;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		r = (int)read(fd, &byte, 1);
	if (fd >= 0)
		(void)close(fd);
	return r < 0 ? -1 : 0;
}

/* A new file in a directory, gone again at once. */
static int try_write(const char *dir)
{
	char path[4096];
	int fd;

	if (snprintf(path, sizeof(path), "%s/.probe-room", dir) >= (int)sizeof(path))
		return -1;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -1;
	(void)close(fd);
	(void)unlink(path);
	return 0;
}

static int connect_to(const char *path, int type)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int r, fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	if (strlen(path) >= sizeof(sa.sun_path)) {
		(void)close(fd);
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(sa.sun_path, path, strlen(path) + 1);
	r = connect(fd, (struct sockaddr *)&sa, sizeof(sa));
	(void)close(fd);
	return r;
}

static int try_connect(const char *path)
{
	return connect_to(path, SOCK_STREAM);
}

static int try_seqpacket(const char *path)
{
	return connect_to(path, SOCK_SEQPACKET);
}

/* A.B.C.D:PORT. A refusal by the other side would be a way there: only no route, or no answer
 * of anybody in two seconds, is none. */
static int try_tcp(const char *where)
{
	struct sockaddr_in sa = {.sin_family = AF_INET};
	int error = 0,
	    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	socklen_t len = sizeof(error);
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	char host[64];
	const char *colon = strchr(where, ':');

	if (fd < 0 || !colon || (size_t)(colon - where) >= sizeof(host))
		return -1;
	memcpy(host, where, (size_t)(colon - where));
	host[colon - where] = '\0';
	sa.sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
	if (inet_pton(AF_INET, host, &sa.sin_addr) != 1)
		return -1;
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 && errno == EINPROGRESS) {
		if (poll(&p, 1, 2000) == 0)
			errno = ETIMEDOUT;
		else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0)
			errno = error;
	} else if (errno == 0) {
		errno = 0;
	}
	error = errno;
	(void)close(fd);
	errno = error;
	return error == 0 || error == ECONNREFUSED ? 0 : -1;
}

/* The same where a listener waits outside: the own loopback's refusal is a refusal. */
static int try_listener(const char *where)
{
	return try_tcp(where) == 0 && errno == 0 ? 0 : -1;
}

/* Any interface but loopback. */
static int try_interface(const char *ignored)
{
	struct if_nameindex *all = if_nameindex();
	int found = -1;

	(void)ignored;
	for (struct if_nameindex *i = all; i && i->if_index; i++)
		if (strcmp(i->if_name, "lo") != 0)
			found = 0;
	if (all)
		if_freenameindex(all);
	if (found < 0)
		errno = ENODEV;
	return found;
}

/* A default route, from the kernel's table. */
static int try_route(const char *ignored)
{
	char line[256], iface[32];
	unsigned long to;
	FILE *f = fopen("/proc/net/route", "re");
	int found = -1;

	(void)ignored;
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%31s %lx", iface, &to) == 2 && to == 0)
			found = 0;
	(void)fclose(f);
	if (found < 0)
		errno = ENETUNREACH;
	return found;
}

static int try_exec(const char *path)
{
	return access(path, X_OK);
}

/* Into a new user namespace's powers over the old one: none of these may work. */
static int try_act(const char *what)
{
	if (strcmp(what, "setuid-root") == 0)
		return setuid(0);
	if (strcmp(what, "mount") == 0)
		return mount("tmpfs", "/tmp", "tmpfs", 0, NULL);
	if (strcmp(what, "hostname") == 0)
		return sethostname("probe", 5);
	if (strcmp(what, "raw-socket") == 0) {
		int fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, 255);

		if (fd >= 0)
			(void)close(fd);
		return fd < 0 ? -1 : 0;
	}
	if (strcmp(what, "device") == 0)
		return mknod("/tmp/.probe-kmsg", S_IFCHR | 0600, 1 << 8 | 11);
	if (strcmp(what, "bpf") == 0)
		return (int)syscall(SYS_bpf, 0, NULL, 0);
	errno = EINVAL;
	return -1;
}

/* Seize the daemon of this room: by its name in /proc. */
static int try_ptrace(const char *name)
{
	for (int pid = 1; pid < 200; pid++) {
		char path[64], comm[64] = "";
		FILE *f;

		(void)snprintf(path, sizeof(path), "/proc/%d/comm", pid);
		f = fopen(path, "re");
		if (!f)
			continue;
		if (fscanf(f, "%63s", comm) != 1)
			comm[0] = '\0';
		(void)fclose(f);
		if (strcmp(comm, name) != 0)
			continue;
		if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0) {
			(void)ptrace(PTRACE_DETACH, pid, NULL, NULL);
			return 0;
		}
		return -1;
	}
	errno = ESRCH;
	return -1;
}

static const struct {
	const char *kind;
	int (*try)(const char *thing);
} kinds[] = {
	{"read", try_read},
	{"write", try_write},
	{"connect", try_connect},
	{"seqpacket", try_seqpacket},
	{"tcp", try_tcp},
	{"listener", try_listener},
	{"interface", try_interface},
	{"route", try_route},
	{"exec", try_exec},
	{"act", try_act},
	{"ptrace", try_ptrace},
};

int main(int argc, char **argv)
{
	/* what it tries, root could do to the machine */
	if (getuid() == 0 || geteuid() == 0) {
		(void)fputs("probe_room: not as root\n", stderr);
		return 78;
	}
	for (int i = 1; i < argc; i++) {
		const char *equals = strchr(argv[i], '=');
		size_t k, n = sizeof(kinds) / sizeof(kinds[0]);
		int r;

		for (k = 0; equals && k < n; k++)
			if (strlen(kinds[k].kind) == (size_t)(equals - argv[i]) &&
			    strncmp(kinds[k].kind, argv[i], strlen(kinds[k].kind)) == 0)
				break;
		if (!equals || k == n) {
			(void)fprintf(stderr, "probe_room: %s?\n", argv[i]);
			return 2;
		}
		errno = 0;
		r = kinds[k].try(equals + 1);
		(void)printf("%s\t%s\n", argv[i],
			     r == 0  ? "yes"
			     : errno ? strerrorname_np(errno)
				     : "no");
		(void)fflush(stdout);
	}
	return 0;
}
