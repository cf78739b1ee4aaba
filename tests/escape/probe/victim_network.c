/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listeners of the host, of every kind that it has: nobody must have reached one. And one
 * who connects to names that a job may take: nobody must have answered.
 */
#include "tests/escape/probe/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/vm_sockets.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define LISTENERS_MAX 20
#define UDPLITE 136
#define SCTP 132

static struct {
	const char *what;
	int fd;
} listeners[LISTENERS_MAX];
static int n_listeners;
static int inherit = -1; /* run.sh connects to it, and leaves that open for the job */
static in_port_t lure_port;
static char lure_name[64];
static int lured;

static int listener(const char *what, int fd)
{
	if (fd >= 0 && n_listeners < LISTENERS_MAX) {
		listeners[n_listeners].what = what;
		listeners[n_listeners++].fd = fd;
	}
	return fd;
}

static int bind_inet(int family, int type, int proto, in_port_t *ret_port)
{
	struct sockaddr_in a4 = {.sin_family = AF_INET};
	struct sockaddr_in6 a6 = {.sin6_family = AF_INET6,
				  .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	struct sockaddr *a =
		family == AF_INET ? (struct sockaddr *)&a4 : (struct sockaddr *)&a6;
	socklen_t len = family == AF_INET ? sizeof(a4) : sizeof(a6);
	int fd = socket(family, type | SOCK_CLOEXEC, proto);

	a4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, a, len) < 0 || getsockname(fd, a, &len) < 0)
		return -1;
	*ret_port = ntohs(family == AF_INET ? a4.sin_port : a6.sin6_port);
	return fd;
}

/* must: this host has it; else it is one listener less, and another's port for the job. */
static int listen_inet(const char *key, int family, int type, int proto, int must)
{
	in_port_t port = 9;
	int fd = bind_inet(family, type, proto, &port);

	if (fd >= 0 && type != SOCK_DGRAM && listen(fd, 8) < 0)
		fd = -1;
	target_set(key, "%u", port);
	return listener(key, fd) < 0 && must ? -1 : 0;
}

static int listen_unix(const char *key, int type, const char *path, int abstract)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	size_t n = strlen(path);

	if (n >= sizeof(a.sun_path) - 1)
		return -1;
	memcpy(a.sun_path + abstract, path, n);
	if (fd < 0 ||
	    bind(fd, (const struct sockaddr *)&a,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n +
			     (size_t)abstract)) < 0 ||
	    (type != SOCK_DGRAM && listen(fd, 8) < 0))
		return -1;
	target_set(key, "%s", path);
	return fd;
}

static void listen_vsock(void)
{
	struct sockaddr_vm a = {.svm_family = AF_VSOCK,
				.svm_port = VMADDR_PORT_ANY,
				.svm_cid = VMADDR_CID_ANY};
	int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && bind(fd, (const struct sockaddr *)&a, sizeof(a)) == 0 &&
	    listen(fd, 8) == 0)
		(void)listener("vsock", fd);
}

static int listen_on_names(void)
{
	static const struct {
		const char *key, *name;
		int type, abstract;
	} names[] = {
		{"stream", "sockets/s", SOCK_STREAM, 0},
		{"dgram", "sockets/d", SOCK_DGRAM, 0},
		{"seqpacket", "sockets/q", SOCK_SEQPACKET, 0},
		{"abstract", "lych-s", SOCK_STREAM, 1},
		{"abstract_dgram", "lych-d", SOCK_DGRAM, 1},
		{"abstract_seqpacket", "lych-q", SOCK_SEQPACKET, 1},
	};

	if (mkdir(scratch_path("sockets"), 0700) < 0)
		return -1;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char abstract[64];

		(void)snprintf(abstract, sizeof(abstract), "%s-%d", names[i].name,
			       getpid());
		if (listener(names[i].key,
			     listen_unix(names[i].key, names[i].type,
					 names[i].abstract ? abstract
							   : scratch_path(names[i].name),
					 names[i].abstract)) < 0)
			return -1;
	}
	/* In a shown directory it can be reached below Landlock ABI 9: no judgement. */
	return listen_unix("host_sock", SOCK_STREAM, scratch_path("work/host.sock"), 0);
}

static int listen_on_all(void)
{
	if (listen_inet("tcp", AF_INET, SOCK_STREAM, 0, 1) < 0 ||
	    listen_inet("fast", AF_INET, SOCK_STREAM, 0, 1) < 0 ||
	    listen_inet("udp", AF_INET, SOCK_DGRAM, 0, 1) < 0 ||
	    listen_inet("tcp6", AF_INET6, SOCK_STREAM, 0, 0) < 0 ||
	    listen_inet("udp6", AF_INET6, SOCK_DGRAM, 0, 0) < 0 ||
	    listen_inet("udplite", AF_INET, SOCK_DGRAM, UDPLITE, 0) < 0 ||
	    listen_inet("sctp", AF_INET, SOCK_SEQPACKET, SCTP, 0) < 0)
		return -1;
	listen_vsock();
	return listen_on_names() < 0 ? -1 : 0;
}

static int unreached(void)
{
	int reached = 0;

	for (int i = 0; i < n_listeners; i++) {
		struct pollfd p = {.fd = listeners[i].fd, .events = POLLIN};

		if (poll(&p, 1, 0) != 0) {
			(void)printf("     reached: %s\n", listeners[i].what);
			reached++;
		}
	}
	return !reached;
}

static int inherit_set_up(void)
{
	in_port_t port;

	inherit = bind_inet(AF_INET, SOCK_STREAM, 0, &port);
	if (inherit < 0 || listen(inherit, 8) < 0 ||
	    fcntl(inherit, F_SETFL, O_NONBLOCK) < 0)
		return -1;
	target_set("inherit", "%u", port);
	return 0;
}

static int inherit_unharmed(void)
{
	int fd = accept4(inherit, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	char byte;

	/* There was one, and it brought nothing. */
	return fd >= 0 && recv(fd, &byte, 1, 0) <= 0;
}

/* A name that is taken, and never listened on: in this network it can only be refused. */
static int lure_set_up(void)
{
	if (bind_inet(AF_INET, SOCK_STREAM, 0, &lure_port) < 0)
		return -1;
	target_set("lure_port", "%u", lure_port);
	(void)snprintf(lure_name, sizeof(lure_name), "lych-lure-%d", getpid());
	target_set("lure", "%s", lure_name);
	return 0;
}

static void lure_look(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(lure_port)};
	struct sockaddr_un u = {.sun_family = AF_UNIX};
	size_t n = strlen(lure_name);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int un = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	memcpy(u.sun_path + 1, lure_name, n);
	lured += connect(fd, (const struct sockaddr *)&a, sizeof(a)) == 0;
	lured +=
		connect(un, (const struct sockaddr *)&u,
			(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)) == 0;
	(void)close(fd);
	(void)close(un);
}

static int lure_unharmed(void)
{
	return lured == 0;
}

static const struct victim all[] = {
	{"nothing reached a listener", listen_on_all, unreached, NULL},
	{"a connection that the starter left open carried nothing", inherit_set_up,
	 inherit_unharmed, NULL},
	{"nobody answered under a name that was connected to", lure_set_up, lure_unharmed,
	 lure_look},
};
const struct victims victims_network = {all, sizeof(all) / sizeof(all[0])};
