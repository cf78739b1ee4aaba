/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Section B, numbers 38 to 45, 47 and 48: the other families and UNIX sockets here,
 * io_uring and the second ways into the kernel in probe_ways.c.
 */
#include "tests/escape/probe/probe.h"
#include "tests/escape/probe/probe_ways.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#define FAMILIES_MAX 64
#define VSOCK_FAMILY 40

/* ---- 38: netlink ------------------------------------------------------------------------ */

/* Every protocol but routes, as stream of bytes and of packets. */
static int netlink_others(void)
{
	for (int proto = in_floor() ? 0 : 1; proto < 32; proto++)
		for (int type = SOCK_STREAM; type <= SOCK_SEQPACKET; type++) {
			if (socket(AF_NETLINK, type, proto) >= 0)
				return GOT_THROUGH;
			if (errno != EPERM)
				return errno;
		}
	return EPERM;
}

static int route_socket(void)
{
	return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
}

/* Sends one request; the answer's error, or the number of messages of that type. */
static int ask_route(void *request, size_t len, unsigned short want, int *ret_n)
{
	static char got[65536];
	struct nlmsghdr *h = request;
	int fd = route_socket();

	*ret_n = 0;
	if (fd < 0)
		return errno;
	h->nlmsg_len = (unsigned)len;
	if (send(fd, request, len, 0) < 0)
		return errno;
	for (;;) {
		ssize_t n = recv(fd, got, sizeof(got), 0);

		if (n <= 0)
			return errno;
		for (h = (struct nlmsghdr *)(void *)got; NLMSG_OK(h, (unsigned)n);
		     h = NLMSG_NEXT(h, n)) {
			if (h->nlmsg_type == NLMSG_DONE)
				return 0;
			if (h->nlmsg_type == NLMSG_ERROR) {
				const struct nlmsgerr *e = NLMSG_DATA(h);

				return -e->error;
			}
			*ret_n += h->nlmsg_type == want;
		}
	}
}

static int route_links(void)
{
	struct {
		struct nlmsghdr h;
		struct ifinfomsg i;
	} rq = {.h = {.nlmsg_type = RTM_GETLINK,
		      .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP}};
	int n, r = ask_route(&rq, sizeof(rq), RTM_NEWLINK, &n);

	if (r)
		return r;
	/* Its own loopback; some kernels add tunnels that lead nowhere. */
	return n >= 1 && n <= 16 ? HELD : GOT_THROUGH;
}

static int route_routes(void)
{
	struct {
		struct nlmsghdr h;
		struct rtmsg m;
	} rq = {.h = {.nlmsg_type = RTM_GETROUTE,
		      .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		.m = {.rtm_family = AF_INET, .rtm_table = RT_TABLE_MAIN}};
	int n, r = ask_route(&rq, sizeof(rq), RTM_NEWROUTE, &n);

	if (r)
		return r;
	return n <= 8 ? HELD : GOT_THROUGH; /* the local table of a loopback */
}

static int route_change(unsigned short type)
{
	struct {
		struct nlmsghdr h;
		union {
			struct ifinfomsg link;
			struct rtmsg route;
			struct ifaddrmsg addr;
		} u;
	} rq = {.h = {.nlmsg_type = type,
		      .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE}};
	int n, r;

	if (type == RTM_NEWROUTE)
		rq.u.route = (struct rtmsg){.rtm_family = AF_INET,
					    .rtm_table = RT_TABLE_MAIN,
					    .rtm_protocol = RTPROT_BOOT,
					    .rtm_scope = RT_SCOPE_UNIVERSE,
					    .rtm_type = RTN_UNICAST};
	else if (type == RTM_NEWADDR)
		rq.u.addr = (struct ifaddrmsg){.ifa_family = AF_INET, .ifa_index = 1};
	r = ask_route(&rq, sizeof(rq), 0, &n);
	return r ? r : GOT_THROUGH;
}
static int route_new_link(void)
{
	return route_change(RTM_NEWLINK);
}
static int route_new_addr(void)
{
	return route_change(RTM_NEWADDR);
}
static int route_new_route(void)
{
	return route_change(RTM_NEWROUTE);
}

/* ---- 39, 40: the other families ------------------------------------------------------------ */

/* Every number that is or may become a family, every type. */
static int families(void)
{
	for (int f = 0; f < FAMILIES_MAX; f++)
		for (int type = 0; type < 16; type++) {
			if (f == AF_UNIX || f == AF_INET || f == AF_INET6 ||
			    f == AF_NETLINK)
				continue;
			if (socket(f, type, 0) >= 0)
				return GOT_THROUGH;
			if (errno != EPERM)
				return errno;
		}
	return EPERM;
}
static int family(int f, int type, int proto)
{
	return answer_of(socket(f, type | SOCK_CLOEXEC, proto));
}
static int vsock(void)
{
	return family(VSOCK_FAMILY, SOCK_STREAM, 0);
}
static int vsock_dgram(void)
{
	return family(VSOCK_FAMILY, SOCK_DGRAM, 0);
}
static int vsock_high_bits(void)
{
	return answer_of(
		syscall(SYS_socket, 0x100000000UL | VSOCK_FAMILY, SOCK_STREAM, 0));
}
static int packet(void)
{
	return family(AF_PACKET, SOCK_DGRAM, 0);
}
static int packet_raw(void)
{
	return family(AF_PACKET, SOCK_RAW, 0x300 /* ETH_P_ALL, in network order */);
}
static int crypto(void)
{
	return family(38, SOCK_SEQPACKET, 0);
}
static int pairs_of_others(void)
{
	int sv[2];

	for (int f = 0; f < FAMILIES_MAX; f++) {
		if (f == AF_UNIX)
			continue;
		if (socketpair(f, SOCK_STREAM, 0, sv) >= 0)
			return GOT_THROUGH;
		if (errno != EPERM)
			return errno;
	}
	return EPERM;
}

/* ---- 41 to 45: UNIX sockets ------------------------------------------------------------------ */

struct unix_addr {
	struct sockaddr_un un;
	socklen_t len;
};

static struct unix_addr addr_of(const char *path, int abstract)
{
	struct unix_addr a = {.un = {.sun_family = AF_UNIX}};
	size_t n = strlen(path);

	memcpy(a.un.sun_path + abstract, path, n);
	a.len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n +
			    (size_t)abstract);
	return a;
}

static const struct sockaddr *sa(const struct unix_addr *a)
{
	return (const struct sockaddr *)&a->un;
}

static int unix_to(int type, const char *path, int abstract)
{
	struct unix_addr a = addr_of(path, abstract);
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	return fd < 0 ? errno : answer_of(connect(fd, sa(&a), a.len));
}
static int stream_by_path(void)
{
	return unix_to(SOCK_STREAM, target("stream"), 0);
}
static int seqpacket_by_path(void)
{
	return unix_to(SOCK_SEQPACKET, target("seqpacket"), 0);
}

/* Those that a workstation has: buses, container engines, agents, the display. */
static int well_known(void)
{
	static const char *const names[] = {
		"/run/dbus/system_bus_socket",
		"/var/run/dbus/system_bus_socket",
		"/run/systemd/private",
		"/run/systemd/notify",
		"/run/systemd/journal/stdout",
		"/run/systemd/io.system.ManagedOOM",
		"/run/docker.sock",
		"/run/podman/podman.sock",
		"/run/containerd/containerd.sock",
		"/run/user/1000/bus",
		"/run/user/1000/systemd/private",
		"/run/user/1000/gnupg/S.gpg-agent",
		"/run/user/1000/keyring/ssh",
		"/run/user/1000/wayland-0",
		"/run/user/1000/pulse/native",
		"/run/user/1000/podman/podman.sock",
		"/run/nscd/socket",
		"/var/run/nscd/socket",
		"/run/systemd/resolve/io.systemd.Resolve",
		"/run/cups/cups.sock",
		"/run/snapd.socket",
		"/tmp/.X11-unix/X0",
		"/run/lvm/lvmpolld.socket",
		"/dev/log",
	};
	int r = NO_ANSWER;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		for (int type = SOCK_STREAM; type <= SOCK_DGRAM; type++) {
			r = unix_to(type, names[i], 0);
			if (r == GOT_THROUGH || (r != ENOENT && r != EPERM))
				return r;
		}
	return r;
}

static int in_workspace(void)
{
	int r = unix_to(SOCK_STREAM, "host.sock", 0);

	return r == GOT_THROUGH ? ALLOWED : r;
}
static int of_its_own(void)
{
	struct unix_addr a = addr_of("own.sock", 0);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), r;

	if (fd < 0)
		return errno;
	(void)unlink("own.sock");
	if (bind(fd, sa(&a), a.len) < 0 || listen(fd, 1) < 0)
		return errno;
	r = unix_to(SOCK_STREAM, "own.sock", 0);
	return r == GOT_THROUGH ? ALLOWED : r;
}

/* fd < 0: a socket of this type; else that one. */
static int send_to(int fd, const struct unix_addr *a, int how)
{
	struct unix_addr copy = *a;
	char byte = 'x';
	struct iovec iov = {&byte, 1};
	struct mmsghdr m = {.msg_hdr = {.msg_name = &copy.un,
					.msg_namelen = copy.len,
					.msg_iov = &iov,
					.msg_iovlen = 1}};

	if (how == 0)
		return answer_of(sendto(fd, "x", 1, 0, sa(a), a->len));
	return answer_of(how == 1 ? sendmsg(fd, &m.msg_hdr, 0) : sendmmsg(fd, &m, 1, 0));
}

static int datagram(const char *name, int abstract, int how)
{
	struct unix_addr a = addr_of(name, abstract);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd < 0 ? errno : send_to(fd, &a, how);
}
static int dgram_sendto(void)
{
	return datagram(target("dgram"), 0, 0);
}
static int dgram_sendmsg(void)
{
	return datagram(target("dgram"), 0, 1);
}
static int dgram_sendmmsg(void)
{
	return datagram(target("dgram"), 0, 2);
}
static int dgram_connect(void)
{
	return unix_to(SOCK_DGRAM, target("dgram"), 0);
}
static int dev_log(void)
{
	return datagram("/dev/log", 0, 0);
}

/* Without socket(2): one half of a pair, with an address at each call that takes one. What
 * a pair that has its peer does with the address is judged outside: nothing came there. */
static int pair_then_send(int type, const char *name, int abstract)
{
	struct unix_addr a = addr_of(name, abstract);
	int sv[2], refused = 0;

	if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, sv) < 0)
		return errno;
	for (int how = 0; how < 3; how++) {
		int r = send_to(sv[0], &a, how);

		refused = r == GOT_THROUGH ? refused : r;
	}
	return refused ? refused : HELD;
}
static int pair_dgram(void)
{
	return pair_then_send(SOCK_DGRAM, target("dgram"), 0);
}
static int pair_stream(void)
{
	return pair_then_send(SOCK_STREAM, target("dgram"), 0);
}
static int pair_seqpacket(void)
{
	return pair_then_send(SOCK_SEQPACKET, target("dgram"), 0);
}
static int pair_dgram_abstract(void)
{
	return pair_then_send(SOCK_DGRAM, target("abstract_dgram"), 1);
}

/* sendmsg alone, where sendto with an address is refused by the filter. */
static int pair_sendmsg(int type)
{
	struct unix_addr a = addr_of(target("dgram"), 0);
	int sv[2], r;

	if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, sv) < 0)
		return errno;
	r = send_to(sv[0], &a, 1);
	if (r != GOT_THROUGH)
		return r;
	return HELD; /* to its own other half */
}
static int pair_sendmsg_stream(void)
{
	return pair_sendmsg(SOCK_STREAM);
}
static int pair_sendmsg_seqpacket(void)
{
	return pair_sendmsg(SOCK_SEQPACKET);
}
static int pair_reconnect(void)
{
	struct unix_addr a = addr_of(target("stream"), 0);
	struct sockaddr none = {.sa_family = AF_UNSPEC};
	int sv[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) < 0)
		return errno;
	(void)connect(sv[0], &none, sizeof(none));
	return answer_of(connect(sv[0], sa(&a), a.len));
}

static int abstract_stream(void)
{
	return unix_to(SOCK_STREAM, target("abstract"), 1);
}
static int abstract_seqpacket(void)
{
	return unix_to(SOCK_SEQPACKET, target("abstract_seqpacket"), 1);
}
static int abstract_dgram(void)
{
	return datagram(target("abstract_dgram"), 1, 0);
}
static int abstract_sendmsg(void)
{
	return datagram(target("abstract_dgram"), 1, 1);
}

/* 44: under a name that a process outside connects to all the time. */
static int lure(void)
{
	struct unix_addr a = addr_of(target("lure"), 1);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct pollfd p = {.fd = fd, .events = POLLIN};

	if (fd < 0)
		return errno;
	if (bind(fd, sa(&a), a.len) < 0 || listen(fd, 8) < 0)
		return errno;
	return poll(&p, 1, 500) > 0 ? GOT_THROUGH : HELD;
}

/* 45: descriptors pass between its own processes; nothing of it leads out. */
static int pass_descriptor(void)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	char byte = 'x';
	struct iovec iov = {&byte, 1};
	struct msghdr h = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&h);
	int sv[2], fd = 0;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) < 0)
		return errno;
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	return allowed_or_errno(sendmsg(sv[0], &h, 0));
}

/* Over each of the three it was given. */
static int pass_over_stdio(void)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	int fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = NO_ANSWER;

	for (int out = 0; out < 3; out++) {
		char byte = 'x';
		struct iovec iov = {&byte, 1};
		struct msghdr h = {.msg_iov = &iov,
				   .msg_iovlen = 1,
				   .msg_control = &control,
				   .msg_controllen = sizeof(control)};
		struct cmsghdr *c = CMSG_FIRSTHDR(&h);

		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
		r = answer_of(sendmsg(out, &h, 0));
		if (r == GOT_THROUGH)
			return r;
	}
	return r;
}

#define NO_NET {EPERM}

/* clang-format off */
static const struct probe probes[] = {
	{"38", "netlink: every protocol but routes", netlink_others, NO_NET, NO_NET},
	{"38b", "netlink: list the links", route_links, {HELD}, NO_NET, "its own loopback only"},
	{"38c", "netlink: list the routes", route_routes, {HELD}, NO_NET, "of its own loopback only"},
	{"38d", "netlink: change a link", route_new_link, NO_NET, NO_NET},
	{"38e", "netlink: add an address", route_new_addr, NO_NET, NO_NET},
	{"38f", "netlink: add a route", route_new_route, NO_NET, NO_NET},
	{"39", "vsock", vsock, NO_NET, NO_NET},
	{"39b", "vsock datagrams", vsock_dgram, NO_NET, NO_NET},
	{"39c", "vsock, high bits set", vsock_high_bits, NO_NET, NO_NET},
	{"40", "every other family, each type", families, NO_NET, NO_NET},
	{"40b", "packet sockets", packet, NO_NET, NO_NET},
	{"40c", "raw packet sockets", packet_raw, NO_NET, NO_NET},
	{"40d", "the kernel's crypto socket", crypto, NO_NET, NO_NET},
	{"40e", "a socketpair of every other family", pairs_of_others, NO_NET, NO_NET},
	{"41", "a UNIX stream socket of the host by path", stream_by_path, {ENOENT}, NO_NET},
	{"41b", "a UNIX seqpacket socket of the host by path", seqpacket_by_path, {ENOENT}, NO_NET},
	{"41c", "buses, container engines, agents, display: 24 well-known sockets", well_known,
	 {ENOENT}, NO_NET},
	{"41d", "one of the host that lies in the workspace", in_workspace, {ALLOWED, EACCES},
	 NO_NET, "a known gap below Landlock ABI 9: EACCES from there on"},
	{"41e", "one of its own in the workspace", of_its_own, {ALLOWED}, NO_NET},
	{"42", "a UNIX datagram socket of the host by path: sendto", dgram_sendto, {ENOENT}, NO_NET},
	{"42b", "sendmsg", dgram_sendmsg, {ENOENT}, NO_NET},
	{"42c", "sendmmsg", dgram_sendmmsg, {ENOENT}, NO_NET},
	{"42d", "connect", dgram_connect, {ENOENT}, NO_NET},
	{"42e", "/dev/log", dev_log, {ENOENT}, NO_NET},
	{"42f", "from a datagram socketpair", pair_dgram, {ENOENT}, NO_NET},
	{"42g", "from a stream socketpair", pair_stream, {EISCONN, EOPNOTSUPP},
	 {EISCONN, EOPNOTSUPP, EPERM}},
	{"42h", "from a seqpacket socketpair", pair_seqpacket, {HELD}, {EPERM, HELD},
	 "it goes to its own other half"},
	{"42i", "by sendmsg from a stream socketpair", pair_sendmsg_stream,
	 {EISCONN, EOPNOTSUPP}, {EISCONN, EOPNOTSUPP}},
	{"42j", "by sendmsg from a seqpacket socketpair", pair_sendmsg_seqpacket, {HELD}, {HELD},
	 "it goes to its own other half"},
	{"42k", "a socketpair, disconnected and connected anew", pair_reconnect,
	 {EISCONN, EINVAL, ENOENT}, NO_NET},
	{"43", "an abstract UNIX socket of the host: stream", abstract_stream,
	 {ECONNREFUSED, EPERM}, NO_NET},
	{"43b", "seqpacket", abstract_seqpacket, {ECONNREFUSED, EPERM}, NO_NET},
	{"43c", "datagram by sendto", abstract_dgram, {ECONNREFUSED, EPERM}, NO_NET},
	{"43d", "datagram by sendmsg", abstract_sendmsg, {ECONNREFUSED, EPERM}, NO_NET},
	{"43e", "from a datagram socketpair", pair_dgram_abstract, {ECONNREFUSED, EPERM}, NO_NET},
	{"44", "an abstract listener under a name that others connect to", lure, {HELD}, NO_NET,
	 "the name is in its own network"},
	{"45", "pass a descriptor to itself", pass_descriptor, {ALLOWED}, {ALLOWED}},
	{"45b", "pass a descriptor over stdin, stdout, stderr", pass_over_stdio, {ENOTSOCK},
	 {ENOTSOCK}},
	ELSEWHERE("45c", "push descriptors at the vessel", "closed, none is kept",
	 "tests/escape/parent_flood.py", "8000 descriptors pushed"),
	{"47", "io_uring_setup", uring_setup, {EPERM}, {EPERM}},
	{"47b", "io_uring_enter on a descriptor that is none", uring_enter, {EPERM}, {EPERM}},
	{"47c", "io_uring_enter on each descriptor", uring_inherited, {EPERM}, {EPERM}},
	{"47d", "io_uring_register", uring_register, {EPERM}, {EPERM}},
	{"47e", "io_setup", aio, {EPERM}, {EPERM}},
	{"48", "an x32 call", x32_getpid, KILLED, KILLED},
	{"48b", "socket by x32", x32_socket, KILLED, KILLED},
	/* SIGSEGV: a kernel without that door (ia32_emulation=off, some hypervisors). */
	{"48c", "an i386 call (int 0x80)", ia32_getpid,
	 KILLED_OR(KILLED_BY + SIGSEGV), KILLED_OR(KILLED_BY + SIGSEGV)},
	{"48d", "socket by int 0x80", ia32_socket,
	 KILLED_OR(KILLED_BY + SIGSEGV), KILLED_OR(KILLED_BY + SIGSEGV)},
	{"48e", "socketcall by int 0x80", ia32_socketcall,
	 KILLED_OR(KILLED_BY + SIGSEGV), KILLED_OR(KILLED_BY + SIGSEGV)},
	{"48f", "sysenter", sysenter, KILLED_OR(KILLED_BY + SIGSEGV, KILLED_BY + SIGILL),
	 KILLED_OR(KILLED_BY + SIGSEGV, KILLED_BY + SIGILL)},
	{"48g", "a program of 32 bits that makes a socket", elf32,
	 KILLED_OR(ENOEXEC), KILLED_OR(ENOEXEC)},
};
/* clang-format on */

const struct section section_unix = {'B', "Network", probes,
				     sizeof(probes) / sizeof(probes[0])};
