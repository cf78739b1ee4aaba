/* SPDX-License-Identifier: Apache-2.0 */
/* Section B: the network. */
#include "tests/escape/probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#define TEST_NET "192.0.2.1" /* RFC 5737: nobody is there */

static int inet(int type, int proto, const char *host, in_port_t port)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, proto);

	if (fd < 0)
		return errno;
	if (inet_pton(AF_INET, host, &to.sin_addr) != 1)
		return EINVAL;
	return answer_of(connect(fd, (const struct sockaddr *)&to, sizeof(to)));
}
static int tcp_host(void)
{
	return inet(SOCK_STREAM, 0, "127.0.0.1", (in_port_t)target_number("tcp"));
}
static int tcp_outside(void)
{
	return inet(SOCK_STREAM | SOCK_NONBLOCK, 0, TEST_NET, 80);
}
static int udp_outside(void)
{
	return inet(SOCK_DGRAM, 0, TEST_NET, 53);
}
static int mptcp(void)
{
	return inet(SOCK_STREAM, 262, "127.0.0.1", (in_port_t)target_number("tcp"));
}
static int fast_open(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons((in_port_t)target_number("tcp"))};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return errno;
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return answer_of(sendto(fd, "x", 1, MSG_FASTOPEN, (const struct sockaddr *)&to,
				sizeof(to)));
}
static int udp_host(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons((in_port_t)target_number("udp"))};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return errno;
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0)
		return errno;
	/* On a loopback of our own the first is answered by "nobody there". */
	(void)send(fd, "x", 1, 0);
	return answer_of(send(fd, "x", 1, 0));
}
static int family(int f, int type, int proto)
{
	return answer_of(socket(f, type | SOCK_CLOEXEC, proto));
}
static int raw(void)
{
	return family(AF_INET, SOCK_RAW, IPPROTO_ICMP);
}
static int ping(void)
{
	return family(AF_INET, SOCK_DGRAM, IPPROTO_ICMP);
}
static int packet(void)
{
	return family(AF_PACKET, SOCK_DGRAM, 0);
}
static int vsock(void)
{
	return family(40, SOCK_STREAM, 0);
}
static int alg(void)
{
	return family(38, SOCK_SEQPACKET, 0);
}
static int nl_audit(void)
{
	return family(AF_NETLINK, SOCK_RAW, 9);
}
static int nl_diag(void)
{
	return family(AF_NETLINK, SOCK_RAW, 4);
}
static int nl_netfilter(void)
{
	return family(AF_NETLINK, SOCK_RAW, 12);
}
static int family_high_bits(void)
{
	return answer_of(syscall(SYS_socket, 0x100000000UL | 40UL, SOCK_STREAM, 0));
}
static int unix_to(int type, const char *path, int abstract)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	size_t n = strlen(path);

	if (fd < 0)
		return errno;
	memcpy(to.sun_path + abstract, path, n);
	return answer_of(connect(fd, (const struct sockaddr *)&to,
				 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n +
					     (size_t)abstract)));
}
static int unix_stream(void)
{
	return unix_to(SOCK_STREAM, target("stream"), 0);
}
static int unix_dgram(void)
{
	return unix_to(SOCK_DGRAM, target("dgram"), 0);
}
static int unix_abstract(void)
{
	return unix_to(SOCK_STREAM, target("abstract"), 1);
}
static int unix_in_workspace(void)
{
	int r = unix_to(SOCK_STREAM, "host.sock", 0);

	return r == GOT_THROUGH ? ALLOWED : r;
}
static int unix_of_its_own(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = "own.sock"};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), r;

	if (fd < 0)
		return errno;
	if (bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 1) < 0)
		return errno;
	r = unix_to(SOCK_STREAM, a.sun_path, 0);
	return r == GOT_THROUGH ? ALLOWED : r;
}
static int pair_then_sendto(void)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int sv[2];

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, sv) < 0)
		return errno;
	memcpy(to.sun_path, target("dgram"), strlen(target("dgram")));
	return answer_of(
		sendto(sv[0], "x", 1, 0, (const struct sockaddr *)&to, sizeof(to)));
}

static int do_uring(void)
{
	char params[256] = {0};

	return answer_of(syscall(SYS_io_uring_setup, 1, params));
}
static int do_uring_enter(void)
{
	return answer_of(syscall(SYS_io_uring_enter, 0, 0, 0, 0, NULL, 0));
}
static int x32_call(void)
{
#ifdef __x86_64__
	return answer_of(syscall(0x40000000 + 39));
#else
	return NOT_HERE;
#endif
}
static int ia32_call(void)
{
#ifdef __x86_64__
	int r;

	__asm__ volatile("int $0x80"
			 : "=a"(r)
			 : "a"(20)
			 : "memory", "r8", "r9", "r10", "r11");
	return r > 0 ? GOT_THROUGH : -r;
#else
	return NOT_HERE;
#endif
}

/* clang-format off */
#define NO_NET {EPERM}
#ifdef __x86_64__
#define KILLED {KILLED_BY + SIGSYS}
#else
#define KILLED {NOT_HERE}
#endif

static const struct probe probes[] = {
	{"32", "TCP to the host's loopback", tcp_host, {ECONNREFUSED}, NO_NET},
	{"32b", "TCP to the outside", tcp_outside, {ENETUNREACH}, NO_NET},
	{"33", "MPTCP", mptcp, NO_NET, NO_NET},
	{"34", "MSG_FASTOPEN", fast_open, {ECONNREFUSED, EOPNOTSUPP, EINPROGRESS},
	 NO_NET},
	{"35", "UDP to the host's loopback", udp_host, {ECONNREFUSED}, NO_NET},
	{"35b", "UDP to the outside", udp_outside, {ENETUNREACH}, NO_NET},
	{"37", "a raw socket", raw, NO_NET, NO_NET},
	{"37b", "a ping socket", ping, NO_NET, NO_NET},
	{"38", "netlink: audit", nl_audit, NO_NET, NO_NET},
	{"38b", "netlink: sock_diag", nl_diag, NO_NET, NO_NET},
	{"38c", "netlink: netfilter", nl_netfilter, NO_NET, NO_NET},
	{"39", "vsock", vsock, NO_NET, NO_NET},
	{"39b", "vsock, high bits set", family_high_bits, NO_NET, NO_NET},
	{"40", "a packet socket", packet, NO_NET, NO_NET},
	{"40b", "the kernel's crypto socket", alg, NO_NET, NO_NET},
	{"41", "a UNIX stream socket of the host by path", unix_stream, {ENOENT}, NO_NET},
	{"41b", "one of the host that lies in the workspace", unix_in_workspace,
	 {ALLOWED, EACCES}, NO_NET,
	 "a known gap below Landlock ABI 9: EACCES from there on"},
	{"41c", "one of its own in the workspace", unix_of_its_own, {ALLOWED}, NO_NET},
	{"42", "a UNIX datagram socket of the host by path", unix_dgram, {ENOENT},
	 NO_NET},
	{"42b", "sendto it from a socketpair", pair_then_sendto, {ENOENT}, NO_NET},
	{"43", "an abstract UNIX socket of the host", unix_abstract,
	 {ECONNREFUSED, EPERM}, NO_NET},
	{"47", "io_uring_setup", do_uring, {EPERM}, {EPERM}},
	{"47b", "io_uring_enter on a descriptor that is none", do_uring_enter, {EPERM},
	 {EPERM}},
	{"48", "an x32 call", x32_call, KILLED, KILLED},
	{"48b", "an i386 call (int 0x80)", ia32_call, KILLED, KILLED},
};
/* clang-format on */

const struct section section_network = {'B', "Network", probes,
					sizeof(probes) / sizeof(probes[0])};
