/* SPDX-License-Identifier: Apache-2.0 */
/* Listeners of the host: nobody must have reached one. */
#include "tests/escape/probe.h"

#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

enum { TCP, UDP, STREAM, DGRAM, ABSTRACT, LISTENERS_MAX_ };

static int listeners[LISTENERS_MAX_];

static int listen_inet(int type, in_port_t *ret_port)
{
	struct sockaddr_in a = {.sin_family = AF_INET};
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0 ||
	    (type == SOCK_STREAM && listen(fd, 8) < 0) ||
	    getsockname(fd, (struct sockaddr *)&a, &len) < 0)
		return -1;
	*ret_port = ntohs(a.sin_port);
	return fd;
}

static int listen_unix(int type, const char *path, int abstract)
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
	    (type == SOCK_STREAM && listen(fd, 8) < 0))
		return -1;
	return fd;
}

static int listen_on_all(void)
{
	char abstract[64];
	in_port_t tcp = 0, udp = 0;

	if (mkdir(scratch_path("sockets"), 0700) < 0)
		return -1;
	(void)snprintf(abstract, sizeof(abstract), "lych-probe-%d", getpid());
	listeners[TCP] = listen_inet(SOCK_STREAM, &tcp);
	listeners[UDP] = listen_inet(SOCK_DGRAM, &udp);
	listeners[STREAM] = listen_unix(SOCK_STREAM, scratch_path("sockets/s"), 0);
	listeners[DGRAM] = listen_unix(SOCK_DGRAM, scratch_path("sockets/d"), 0);
	listeners[ABSTRACT] = listen_unix(SOCK_STREAM, abstract, 1);
	/* In a shown directory it can be reached below Landlock ABI 9: no judgement. */
	if (listen_unix(SOCK_STREAM, scratch_path("work/host.sock"), 0) < 0)
		return -1;
	target_set("tcp", "%u", tcp);
	target_set("udp", "%u", udp);
	target_set("stream", "%s", scratch_path("sockets/s"));
	target_set("dgram", "%s", scratch_path("sockets/d"));
	target_set("abstract", "%s", abstract);
	for (int i = 0; i < LISTENERS_MAX_; i++)
		if (listeners[i] < 0)
			return -1;
	return 0;
}

static int unreached(void)
{
	int reached = 0;

	for (int i = 0; i < LISTENERS_MAX_; i++) {
		struct pollfd p = {.fd = listeners[i], .events = POLLIN};

		reached += poll(&p, 1, 0) != 0;
	}
	return !reached;
}

static const struct victim all[] = {
	{"nothing reached a listener", listen_on_all, unreached, NULL},
};
const struct victims victims_network = {all, sizeof(all) / sizeof(all[0])};
