/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper.
 * A refused call becomes a record (denials.h).
 */
#include "sandbox/keeper/notify.h"

#include "common/mem.h"
#include "common/proto/sensitive.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

/* The self-test walks into walls before the command is executed; only the very act of
 * executing it may be refused then. Executing closes the other end of the status socket,
 * of which there is one; nothing is sent on it from the self-test on but a failure. */
bool notify_is_the_jobs(const struct notify *n, const struct seccomp_notif *req)
{
	struct pollfd p = {.fd = n->status_fd, .events = POLLIN};

	return n->started || req->data.nr == __NR_execve ||
	       (n->status_fd >= 0 && poll(&p, 1, 0) == 1);
}

/* What keeps secrets is no option's business: why, in place of it. */
static void put_grant(struct spawn_denied *d, const char *grant)
{
	const char *value = strchr(grant, ' ');
	size_t len;
	const struct sensitive *row = value ? sensitive_path(value + 1, &len) : NULL;

	if (row)
		(void)snprintf(d->withheld, sizeof(d->withheld), "it keeps secrets (%s)",
			       row->what);
	else
		(void)snprintf(d->grant, sizeof(d->grant), "%s", grant);
}

void notify_record(struct notify *n, const struct seccomp_notif *req, unsigned wall,
		   unsigned act, int sys, const char *object, const char *grant)
{
	struct spawn_denied d = {
		.type = SPAWN_DENIED, .wall = wall, .act = act, .count = 1, .sys = sys};

	if (!notify_is_the_jobs(n, req))
		return;
	sc_name(req->data.nr, d.call, sizeof(d.call));
	(void)snprintf(d.object, sizeof(d.object), "%s", object);
	put_grant(&d, grant);
	denials_note(n->log, &d);
}

/* ---- naming -------------------------------------------------------------------------- */

static const char *family_name(unsigned family)
{
	static const struct {
		unsigned family;
		const char *name;
	} names[] = {
		{AF_UNIX, "unix"},	 {AF_INET, "inet"},	{AF_INET6, "inet6"},
		{AF_NETLINK, "netlink"}, {AF_PACKET, "packet"}, {38, "alg"},
		{40, "vsock"},		 {44, "xdp"},		{16, "netlink"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].family == family)
			return names[i].name;
	return NULL;
}

void notify_address(const struct seccomp_notif *req, uint64_t addr, uint64_t len,
		    char *out, size_t size)
{
	union {
		sa_family_t family;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
		struct sockaddr_un un;
		char bytes[sizeof(struct sockaddr_storage) + 1];
	} a = {0};
	char host[INET6_ADDRSTRLEN] = "?";

	len = (uint32_t)len;
	if (len < sizeof(a.family) || len >= sizeof(a.bytes) ||
	    notify_read(req, addr, &a, len) < 0)
		return;
	if (a.family == AF_INET) {
		(void)inet_ntop(AF_INET, &a.in.sin_addr, host, sizeof(host));
		(void)snprintf(out, size, "%s:%u", host, ntohs(a.in.sin_port));
	} else if (a.family == AF_INET6) {
		(void)inet_ntop(AF_INET6, &a.in6.sin6_addr, host, sizeof(host));
		(void)snprintf(out, size, "[%s]:%u", host, ntohs(a.in6.sin6_port));
	} else if (a.family == AF_UNIX && len > sizeof(a.family)) {
		bool abstract = !a.un.sun_path[0];

		(void)snprintf(out, size, "%s%s", abstract ? "@" : "",
			       a.un.sun_path + abstract);
	} else {
		(void)snprintf(out, size, "socket family %u", a.family);
	}
}

/* Of a refused call, is there something in the job's memory that tells more? */
static bool has_address(int nr)
{
	return nr == __NR_connect || nr == __NR_bind || nr == __NR_sendto;
}

/* What a refused call says; "" when its name says it all. */
static unsigned describe(const struct seccomp_notif *req, char *out, size_t size)
{
	const uint64_t *a = (const uint64_t *)req->data.args;
	const char *family = family_name((unsigned)a[0]);

	switch (req->data.nr) {
	case __NR_socket:
	case __NR_socketpair:
		(void)snprintf(out, size, "socket family %u%s%s%s", (unsigned)a[0],
			       family ? " (" : "", family ? family : "",
			       family ? ")" : "");
		return SPAWN_ACT_CONNECT;
	case __NR_connect:
	case __NR_bind:
		notify_address(req, a[1], a[2], out, size);
		return SPAWN_ACT_CONNECT;
	case __NR_sendto:
		notify_address(req, a[4], a[5], out, size);
		return SPAWN_ACT_CONNECT;
	case __NR_listen:
	case __NR_accept:
	case __NR_accept4:
		return SPAWN_ACT_CONNECT;
	case __NR_ioctl:
		(void)snprintf(out, size, "request 0x%x", (unsigned)a[1]);
		break;
	case __NR_prctl:
		(void)snprintf(out, size, "option %u", (unsigned)a[0]);
		break;
	case __NR_clone:
	case __NR_unshare:
		(void)snprintf(out, size, "flags 0x%x", (unsigned)a[0]);
		break;
	case __NR_prlimit64:
	case __NR_sched_setparam:
	case __NR_sched_setscheduler:
	case __NR_sched_setattr:
		(void)snprintf(out, size, "process %d", (int)(int32_t)a[0]);
		break;
	case __NR_setpriority:
	case __NR_ioprio_set:
	case __NR_ptrace:
		(void)snprintf(out, size, "process %d", (int)(int32_t)a[1]);
		break;
	default:
		break;
	}
	return SPAWN_ACT_CALL;
}

/* What needs an ipc namespace or a devpts of the job's own. */
static bool is_of_full(const struct notify *n, const struct seccomp_notif *req)
{
	struct seccomp_data d = req->data;

	return n->where == SC_FLOOR &&
	       (d.nr == __NR_shmget || d.nr == __NR_semget || d.nr == __NR_msgget ||
		(d.nr == __NR_ioctl && (uint32_t)d.args[1] == TIOCSCTTY));
}

/* The option under which the call is allowed. */
static const char *call_option(const struct notify *n, const struct seccomp_notif *req)
{
	unsigned family = (unsigned)req->data.args[0], type = (unsigned)req->data.args[1];
	bool inet = family == AF_INET || family == AF_INET6;
	bool plain = (type & 0xf) == SOCK_STREAM || (type & 0xf) == SOCK_DGRAM;

	if (is_of_full(n, req))
		return "--grade full";
	if (req->data.nr != __NR_socket || !plain)
		return "";
	if (n->where == SC_FLOOR && (inet || family == AF_UNIX))
		return "--grade full";
	return n->where == SC_FULL_NONE && inet ? "--network loopback" : "";
}

void notify_record_call(struct notify *n, const struct seccomp_notif *req)
{
	char object[sizeof(((struct spawn_denied *)0)->object)] = "";
	unsigned act = describe(req, object, sizeof(object));

	if (!has_address(req->data.nr) || notify_still_waits(n, req))
		notify_record(n, req, SPAWN_WALL_SECCOMP, act, EPERM, object,
			      call_option(n, req));
}
