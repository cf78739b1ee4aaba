/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the job.
 * The last stage before exec, in the job itself: walk into each wall once. A wall that
 * was raised and does not hold (an outer filter that answers for the kernel, an LSM that
 * is a stub, a namespace shared by mistake) is found here, and the job does not run.
 *
 * Each probe names the one answer that proves the wall. Another refusal is no proof: "no
 * such file" says nothing about Landlock. No probe has an effect when it gets through,
 * and no packet is sent: connect() on a datagram socket only looks for a route.
 */
#include "common/cleanup.h"
#include "sandbox/contract/paths.h"
#include "sandbox/contract/sandbox.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TEST_NET "192.0.2.1" /* RFC 5737: nobody is there */
#define DISCARD_PORT 9

/* r: what the forbidden act returned, with errno behind it. */
static int expect(const char *act, long r, int wanted, struct err *err)
{
	int got = errno;

	if (r >= 0)
		return err_set_id(err, ERRID_SANDBOX_SELFTEST, "%s was allowed", act);
	if (got != wanted) {
		errno = got;
		return err_sys_id(err, ERRID_SANDBOX_SELFTEST,
				  "%s: expected errno %d, got", act, wanted);
	}
	return 0;
}

/* Full: a file of the private root that everybody may read and no rule grants. Floor: the
 * host's root directory, which everybody may list and no rule grants. */
static int forbidden_open(const struct sbx_spec *spec, struct err *err)
{
	bool full = spec->grade == GRADE_FULL;
	const char *path = full ? PATH_CANARY : "/";
	cleanup_close int fd =
		open(path, O_RDONLY | O_CLOEXEC | (full ? 0 : O_DIRECTORY));

	return expect("landlock: open of a path that nothing grants", fd, EACCES, err);
}

/* One that an outer filter leaves to ours: Podman's own answers vsock and clone3. What ours
 * refuses waits for the keeper's answer, so that nothing is executed before it has taken its
 * position. */
static int forbidden_socket(struct err *err)
{
	cleanup_close int fd =
		socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT);

	return expect("seccomp: a netlink socket for events", fd, EPERM, err);
}

/* Without the loopback network, and in floor, no inet socket is to be had at all: the
 * filter's rule for socket() is the one that forbidden_socket() met. */
static int forbidden_route(const struct sbx_spec *spec, struct err *err)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(DISCARD_PORT)};
	cleanup_close int fd = -1;

	if (spec->grade == GRADE_FLOOR || spec->net == NET_NONE)
		return 0;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_sys_id(err, ERRID_SANDBOX_SELFTEST,
				  "socket for the route test");
	if (inet_pton(AF_INET, TEST_NET, &to.sin_addr) != 1)
		return err_set_id(err, ERRID_SANDBOX_SELFTEST, "the test address");
	return expect("network namespace: a route to the outside",
		      connect(fd, (const struct sockaddr *)&to, sizeof(to)), ENETUNREACH,
		      err);
}

/* SIGCONT does nothing to a running process. */
static int foreign_signal(struct err *err)
{
	return expect("landlock: a signal to the keeper", kill(getppid(), SIGCONT), EPERM,
		      err);
}

/* Floor: the times of a socket that is our own, which the kernel would let us set; EPERM is
 * the keeper's answer, that it is not in a tree of the job. */
static int foreign_metadata(int own_socket, struct err *err)
{
	return expect("keeper: metadata outside of the job's trees",
		      futimens(own_socket, NULL), EPERM, err);
}

/* clone3 would hide its flags from the filter; the kernel itself says EINVAL to this. */
static int forbidden_clone(struct err *err)
{
	return expect("seccomp: clone3", syscall(SYS_clone3, NULL, 0), ENOSYS, err);
}

int selftest_run(const struct sbx_spec *spec, int own_socket, struct err *err)
{
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return err_set_id(err, ERRID_SANDBOX_SELFTEST, "no_new_privs is off");
	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != SECCOMP_MODE_FILTER)
		return err_set_id(err, ERRID_SANDBOX_SELFTEST, "no seccomp filter");
	if (forbidden_open(spec, err) < 0 || forbidden_socket(err) < 0 ||
	    forbidden_route(spec, err) < 0 || foreign_signal(err) < 0)
		return -1;
	if (spec->grade == GRADE_FLOOR && foreign_metadata(own_socket, err) < 0)
		return -1;
	return forbidden_clone(err);
}
