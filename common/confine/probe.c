/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See probe.h.
 */
#include "common/confine/probe.h"

#ifdef LYCH_TEST_BUILD

#include "common/cleanup.h"
#include "common/fs.h"
#include "common/str.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#define PROBE_FILE_MAX_BYTES 65536

int confine_probe_load(const char *path, struct confine_probe *ret, struct err *err)
{
	size_t len;

	if (fs_read_file(AT_FDCWD, path, PROBE_FILE_MAX_BYTES, &ret->text, &len, err) < 0)
		return err_wrap(err, "--probe-walls");
	return 0;
}

static int probe_open(const char *path, int flags)
{
	cleanup_close int fd =
		open(path, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);

	return fd < 0 ? -1 : 0;
}

static int probe_stat(const char *path)
{
	struct stat st;

	return stat(path, &st);
}

static int probe_exec(const char *path)
{
	char name[] = "probe";
	char *const argv[] = {name, NULL}, *const env[] = {NULL};

	return execve(path, argv, env);
}

/* A path, or an abstract name written with '@'. */
static int probe_address(const char *arg, struct sockaddr_un *ret)
{
	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (str_starts(arg, "unix:") &&
	    str_copy(ret->sun_path, sizeof(ret->sun_path), arg + strlen("unix:")) == 0) {
		if (ret->sun_path[0] == '@')
			ret->sun_path[0] = '\0';
		return 0;
	}
	errno = EINVAL;
	return -1;
}

/* One of its own, or an end of a pair, which may have a name as well. */
static int probe_bind(const char *arg, bool listens)
{
	struct sockaddr_un sa;
	int pair[2] = {-1, -1}, r;

	if (probe_address(arg, &sa) < 0)
		return -1;
	pair[0] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (pair[0] < 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	r = bind(pair[0], (const struct sockaddr *)&sa, sizeof(sa));
	if (listens)
		r = listen(pair[0], 1);
	fd_close(&pair[0]);
	fd_close(&pair[1]);
	return r;
}

/* From what there is: a datagram socket, a pair of them, a pair of streams. */
static int probe_send(const char *arg, bool as_message)
{
	static const int types[] = {SOCK_DGRAM, SOCK_RAW, SOCK_STREAM, SOCK_SEQPACKET};
	struct sockaddr_un sa;
	struct msghdr h = {.msg_name = &sa, .msg_namelen = sizeof(sa)};
	int pair[2] = {-1, -1}, r;

	if (probe_address(arg, &sa) < 0)
		return -1;
	pair[0] = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	for (size_t i = 0; i < ARRAY_SIZE(types) && pair[0] < 0; i++)
		(void)!socketpair(AF_UNIX, types[i] | SOCK_CLOEXEC, 0, pair);
	r = (int)(as_message ? sendmsg(pair[0], &h, MSG_DONTWAIT | MSG_NOSIGNAL)
			     : sendto(pair[0], "", 0, MSG_DONTWAIT | MSG_NOSIGNAL,
				      (const struct sockaddr *)&sa, sizeof(sa)));
	fd_close(&pair[0]);
	fd_close(&pair[1]);
	return r;
}

static int probe_reconnect(const char *arg)
{
	struct sockaddr_un sa;
	int pair[2], r;

	if (probe_address(arg, &sa) < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	r = connect(pair[0], (const struct sockaddr *)&sa, sizeof(sa));
	fd_close(&pair[0]);
	fd_close(&pair[1]);
	return r;
}

/* By a descriptor for neither reading nor writing, for which no rule is asked. */
static int probe_fchmod(const char *path)
{
	cleanup_close int fd = open(path, O_ACCMODE | O_CLOEXEC);

	return fd < 0 ? -1 : fchmod(fd, 04777);
}

static int probe_pair(void)
{
	int pair[2];
	int r = socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair);

	if (r == 0) {
		fd_close(&pair[0]);
		fd_close(&pair[1]);
	}
	return r;
}

static int probe_connect(const char *arg)
{
	struct sockaddr_un sa;
	cleanup_close int fd = -1;

	if (probe_address(arg, &sa) < 0)
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	return connect(fd, (const struct sockaddr *)&sa, sizeof(sa));
}

static int probe_socket(const char *family)
{
	static const struct {
		const char *name;
		int family, type;
	} table[] = {
		{"inet", AF_INET, SOCK_STREAM},	     {"inet6", AF_INET6, SOCK_STREAM},
		{"netlink", AF_NETLINK, SOCK_RAW},   {"packet", AF_PACKET, SOCK_RAW},
		{"unix", AF_UNIX, SOCK_STREAM},	     {"datagrams", AF_UNIX, SOCK_DGRAM},
		{"packets", AF_UNIX, SOCK_SEQPACKET}};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		if (str_eq(family, table[i].name)) {
			cleanup_close int fd =
				socket(table[i].family, table[i].type | SOCK_CLOEXEC, 0);
			return fd < 0 ? -1 : 0;
		}
	}
	errno = EINVAL;
	return -1;
}

static bool probe_pid(const char *arg, pid_t *ret)
{
	uint64_t pid;

	if (parse_u64(arg, 1, INT32_MAX, &pid, NULL) < 0) {
		errno = EINVAL;
		return false;
	}
	*ret = (pid_t)pid;
	return true;
}

/* The one signal that some of them may send, as far as Landlock's scope reaches. */
static int probe_kill(const char *arg)
{
	pid_t pid;

	return probe_pid(arg, &pid) ? kill(pid, SIGKILL) : -1;
}

static int probe_ptrace(const char *arg)
{
	pid_t pid;

	return probe_pid(arg, &pid) ? (int)ptrace(PTRACE_SEIZE, pid, NULL, NULL) : -1;
}

static int probe_fork(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	return pid < 0 ? -1 : 0;
}

static int probe_mmap_exec(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? -1 : 0;
}

/* -2: no such verb */
static int probe(const char *verb, const char *arg)
{
	if (str_eq(verb, "read"))
		return probe_open(arg, O_RDONLY);
	if (str_eq(verb, "write"))
		return probe_open(arg, O_WRONLY | O_CREAT);
	if (str_eq(verb, "list"))
		return probe_open(arg, O_RDONLY | O_DIRECTORY);
	if (str_eq(verb, "stat"))
		return probe_stat(arg);
	if (str_eq(verb, "exec"))
		return probe_exec(arg);
	if (str_eq(verb, "connect"))
		return probe_connect(arg);
	if (str_starts(verb, "send"))
		return probe_send(arg, str_eq(verb, "sendmsg"));
	if (str_eq(verb, "reconnect"))
		return probe_reconnect(arg);
	if (str_eq(verb, "bind") || str_eq(verb, "listen"))
		return probe_bind(arg, str_eq(verb, "listen"));
	if (str_eq(verb, "pair"))
		return probe_pair();
	if (str_eq(verb, "chmod"))
		return chmod(arg, 0777);
	if (str_eq(verb, "fchmod"))
		return probe_fchmod(arg);
	if (str_eq(verb, "socket"))
		return probe_socket(arg);
	if (str_eq(verb, "kill"))
		return probe_kill(arg);
	if (str_eq(verb, "ptrace"))
		return probe_ptrace(arg);
	if (str_eq(verb, "fork"))
		return probe_fork();
	if (str_eq(verb, "unshare"))
		return unshare(CLONE_NEWUSER);
	if (str_eq(verb, "mmap-exec"))
		return probe_mmap_exec();
	return -2;
}

static void probe_line(char *line)
{
	char *space = strchr(line, ' ');
	const char *arg = "", *answer = "ok";
	int r;

	if (space) {
		*space = '\0';
		arg = space + 1;
	}
	errno = 0;
	r = probe(line, arg);
	if (r == -2)
		answer = "unknown";
	else if (r < 0)
		answer = strerrorname_np(errno);
	(void)printf("%s%s%s: %s\n", line, space ? " " : "", arg, answer ? answer : "?");
	/* an exec that works would lose what stdio still holds */
	(void)fflush(stdout);
}

void confine_probe_run(struct confine_probe *p)
{
	char *save = NULL;

	for (char *line = strtok_r(p->text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		probe_line(line);
	exit(0);
}

#endif
