/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * A daemon without a private root and the sockets of other programs. Theory of operation:
 *
 * Their paths are in sight, and Landlock (below ABI 9) has no say over them. A socket gets
 * to one in three ways, and filter.c closes each. connect(): refused; a daemon that speaks
 * to the network has no unix socket that is not connected already, which the kernel refuses
 * to connect anew. An address in sendto() or sendmsg(), which only datagram sockets take:
 * none is made, by socket() or socketpair(), and none was left open, at which this file
 * looks before. A descriptor that somebody passes: who could pass one can make none either.
 * Afterwards each way is tried here, with a real path and as an attacker would.
 */
#include "common/cleanup.h"
#include "common/confine/priv.h"
#include "common/str.h"

#include <dirent.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#ifdef LYCH_TEST_BUILD
bool confine_leaves_out(const struct confine_policy *policy, const char *wall)
{
	const char *what = getenv("LYCH_TEST_LEAVE_OUT");
	size_t n = strlen(policy->name);

	return policy->unrooted && what && str_starts(what, policy->name) &&
	       what[n] == ':' && str_eq(what + n + 1, wall);
}
#else
bool confine_leaves_out(const struct confine_policy *policy UNUSED,
			const char *wall UNUSED)
{
	return false;
}
#endif

int confine_connect_errno(const struct confine_policy *policy)
{
	return policy->may_dial ? EINPROGRESS : EPERM;
}

int confine_refuse_connect(const char *who, struct err *err)
{
	const struct confine_policy policy = {.name = who, .unrooted = true};
	static struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH_NATIVE, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
#ifdef X32_BIT
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
#endif
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_connect, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {.len = ARRAY_SIZE(code), .filter = code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    (!confine_leaves_out(&policy, "connect") &&
	     syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0))
		return err_sys_id(err, ERRID_START_UNROOTED, "%s: its filter", who);
	/* no descriptor: without the filter it is EBADF */
	if (syscall(SYS_connect, -1, NULL, 0) == 0 || errno != EPERM)
		return err_sys_id(err, ERRID_START_UNROOTED,
				  "%s: the wall 'connect' does not hold", who);
	return 0;
}

/* ---- before ---------------------------------------------------------------- */

/* No socket; or of the network; or of AF_UNIX with its one peer, or as a listener. */
static int check_descriptor(const char *who, int fd, struct err *err)
{
	struct sockaddr_storage peer;
	int domain = 0, type = 0, listens = 0;
	socklen_t len = sizeof(domain);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) < 0)
		return errno == ENOTSOCK || errno == EBADF
			       ? 0
			       : err_sys_id(err, ERRID_START_UNROOTED,
					    "%s: descriptor %d", who, fd);
	if (domain != AF_UNIX)
		return 0;
	len = sizeof(type);
	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0)
		return err_sys_id(err, ERRID_START_UNROOTED, "%s: descriptor %d", who,
				  fd);
	len = sizeof(listens);
	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) < 0)
		return err_sys_id(err, ERRID_START_UNROOTED, "%s: descriptor %d", who,
				  fd);
	len = sizeof(peer);
	if (type != SOCK_DGRAM &&
	    (listens || getpeername(fd, (struct sockaddr *)&peer, &len) == 0))
		return 0;
	return err_set_id(err, ERRID_START_UNROOTED,
			  "%s: descriptor %d is a socket that could reach others", who,
			  fd);
}

int confine_check_sockets(const struct confine_policy *policy, struct err *err)
{
	cleanup_dir DIR *d = opendir("/proc/self/fd");
	const struct dirent *e;

	if (!d)
		return err_sys_id(err, ERRID_START_UNROOTED, "list /proc/self/fd");
	while ((e = readdir(d))) {
		uint64_t fd = 0;

		if (e->d_name[0] == '.')
			continue;
		if (parse_u64(e->d_name, 0, INT32_MAX, &fd, err) < 0 ||
		    check_descriptor(policy->name, (int)fd, err) < 0)
			return -1;
	}
	return 0;
}

/* ---- after ----------------------------------------------------------------- */

/* A path, or an abstract name written with '@'. */
static socklen_t address(const char *path, struct sockaddr_un *ret)
{
	size_t n = strlen(path);

	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (str_copy(ret->sun_path, sizeof(ret->sun_path), path) < 0)
		return 0;
	if (path[0] == '@')
		ret->sun_path[0] = '\0';
	else
		n++; /* with its NUL */
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
}

/* r: what an attempt returned, with errno behind it. */
static const char *is_refused(long r, int wanted)
{
	const char *name;

	if (r >= 0)
		return "succeeded";
	if (errno == wanted)
		return NULL;
	name = strerrorname_np(errno);
	return name ? name : "unknown errno";
}

static int send_to(int fd, const struct sockaddr_un *to, socklen_t len)
{
	return (int)sendto(fd, "", 0, MSG_DONTWAIT | MSG_NOSIGNAL,
			   (const struct sockaddr *)to, len);
}

static int send_msg(int fd, struct sockaddr_un *to, socklen_t len)
{
	struct msghdr h = {.msg_name = to, .msg_namelen = len};

	return (int)sendmsg(fd, &h, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* A socket of that type that was not to be had, and what it reaches. */
static const char *with_socket(int fd, struct sockaddr_un *to, socklen_t len)
{
	if (fd < 0)
		return is_refused(fd, EPERM);
	if (connect(fd, (struct sockaddr *)to, len) == 0 || send_to(fd, to, len) == 0 ||
	    send_msg(fd, to, len) == 0)
		return "succeeded";
	return "a socket was made";
}

/* A connected stream, as each of them has and may make: it is not led anywhere else. */
static const char *with_pair(const struct confine_policy *policy, struct sockaddr_un *to,
			     socklen_t len)
{
	const char *wrong;
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return is_refused(-1, 0);
	r = connect(pair[0], (struct sockaddr *)to, len);
	/* Who speaks to the network may call it; the kernel looks for the peer first, and then
	 * says that this one has one. */
	wrong = is_refused(
		r, policy->may_make_inet_sockets ? errno : confine_connect_errno(policy));
	if (!wrong)
		wrong = is_refused(send_to(pair[0], to, len), EISCONN);
	if (!wrong)
		wrong = is_refused(send_msg(pair[0], to, len), EISCONN);
	fd_close(&pair[0]);
	fd_close(&pair[1]);
	return wrong;
}

/* libpq's: a stream, whose connect() never reaches the kernel. */
static const char *with_stream(const struct confine_policy *policy,
			       struct sockaddr_un *to, socklen_t len)
{
	cleanup_close int fd =
		socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const char *wrong;

	if (!policy->may_make_unix_sockets)
		return with_socket(fd, to, len);
	if (fd < 0)
		return is_refused(fd, 0);
	wrong = is_refused(connect(fd, (struct sockaddr *)to, len),
			   confine_connect_errno(policy));
	if (!wrong)
		wrong = is_refused(send_to(fd, to, len), EOPNOTSUPP);
	return wrong ? wrong : is_refused(send_msg(fd, to, len), EOPNOTSUPP);
}

const char *confine_try_sockets(const struct confine_policy *policy, const char *path,
				char *what, size_t size)
{
	static const struct {
		const char *name;
		int type;
	} none[] = {{"packets", SOCK_SEQPACKET},
		    {"datagrams", SOCK_DGRAM},
		    {"a raw socket", SOCK_RAW}};
	struct sockaddr_un to;
	socklen_t len = address(path, &to);
	const char *wrong = len ? NULL : "its path is too long to be tried";

	(void)snprintf(what, size, "connect");
	if (!wrong)
		wrong = with_stream(policy, &to, len);
	if (wrong)
		return wrong;
	for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
		cleanup_close int fd = -1;

		(void)snprintf(what, size, "%s", none[i].name);
		fd = socket(AF_UNIX, none[i].type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		wrong = with_socket(fd, &to, len);
		if (wrong)
			return wrong;
	}
	for (size_t i = 1; i < ARRAY_SIZE(none); i++) {
		int pair[2] = {-1, -1};

		(void)snprintf(what, size, "a pair of %s", none[i].name);
		(void)!socketpair(AF_UNIX, none[i].type | SOCK_CLOEXEC, 0, pair);
		wrong = with_socket(pair[0], &to, len);
		fd_close(&pair[0]);
		fd_close(&pair[1]);
		if (wrong)
			return wrong;
	}
	(void)snprintf(what, size, "a connected pair");
	return with_pair(policy, &to, len);
}
