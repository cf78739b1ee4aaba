/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Section B, numbers 32 to 37, 46 and 49 to 51: the internet families. In full they exist,
 * in a network of one's own that has a loopback and nothing else: what is sent to the host's
 * ports finds nobody. In floor there are no sockets.
 */
#include "tests/escape/probe/probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#define TEST_NET "192.0.2.1"	/* RFC 5737: nobody is there */
#define TEST_NET6 "2001:db8::1" /* RFC 3849 */
#define MPTCP 262
#define UDPLITE 136
#define SCTP 132
#define SMC_FAMILY 43
#define LOOKUP_SEC_MAX 5 /* under a second on a quiet machine */
#define PROTOCOLS_MAX 300

struct inet_addr {
	struct sockaddr_storage ss;
	socklen_t len;
};

/* Where a packet is sent: v4 or v6 by the look of the host. */
static struct inet_addr addr_of(const char *host, long port)
{
	struct inet_addr a = {.len = sizeof(struct sockaddr_in)};
	struct sockaddr_in in = {.sin_family = AF_INET,
				 .sin_port = htons((in_port_t)port)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6,
				   .sin6_port = htons((in_port_t)port)};

	if (inet_pton(AF_INET, host, &in.sin_addr) == 1) {
		memcpy(&a.ss, &in, sizeof(in));
	} else {
		(void)inet_pton(AF_INET6, host, &in6.sin6_addr);
		memcpy(&a.ss, &in6, sizeof(in6));
		a.len = sizeof(in6);
	}
	return a;
}

static const struct sockaddr *sa(const struct inet_addr *a)
{
	return (const struct sockaddr *)&a->ss;
}

static int inet_socket(const struct inet_addr *a, int type, int proto)
{
	return socket(a->ss.ss_family, type | SOCK_CLOEXEC, proto);
}

/* Sent without an error, which says nothing of who got it: that is judged outside. */
static int held(long r)
{
	return r < 0 ? errno : HELD;
}

static int connect_to(const char *host, long port, int type, int proto)
{
	struct inet_addr a = addr_of(host, port);
	int fd = inet_socket(&a, type, proto);

	return fd < 0 ? errno : answer_of(connect(fd, sa(&a), a.len));
}

/* ---- 32, 33: streams ------------------------------------------------------------------ */

static int tcp4(void)
{
	return connect_to("127.0.0.1", target_number("tcp"), SOCK_STREAM, 0);
}
static int tcp6(void)
{
	return connect_to("::1", target_number("tcp6"), SOCK_STREAM, IPPROTO_TCP);
}
static int tcp_any(void)
{
	return connect_to("0.0.0.0", target_number("tcp"), SOCK_STREAM, 0);
}
static int tcp_mapped(void)
{
	return connect_to("::ffff:127.0.0.1", target_number("tcp"), SOCK_STREAM, 0);
}
static int tcp_other_loopback(void)
{
	return connect_to("127.1.2.3", target_number("tcp"), SOCK_STREAM, 0);
}
static int tcp_outside(void)
{
	return connect_to(TEST_NET, 80, SOCK_STREAM | SOCK_NONBLOCK, 0);
}
static int tcp_outside6(void)
{
	return connect_to(TEST_NET6, 80, SOCK_STREAM | SOCK_NONBLOCK, 0);
}
static int mptcp4(void)
{
	return connect_to("127.0.0.1", target_number("tcp"), SOCK_STREAM, MPTCP);
}
static int mptcp6(void)
{
	return connect_to("::1", target_number("tcp6"), SOCK_STREAM, MPTCP);
}
static int mptcp_high_bits(void)
{
	return answer_of(
		syscall(SYS_socket, AF_INET, SOCK_STREAM, 0x100000000UL | MPTCP));
}

/* ---- 34: data in the first packet ------------------------------------------------------- */

static int fast_open_sendto(void)
{
	struct inet_addr a = addr_of("127.0.0.1", target_number("fast"));
	int fd = inet_socket(&a, SOCK_STREAM, 0);

	if (fd < 0)
		return errno;
	return answer_of(sendto(fd, "x", 1, MSG_FASTOPEN, sa(&a), a.len));
}

static int fast_open_msg(int many)
{
	struct inet_addr a = addr_of("127.0.0.1", target_number("fast"));
	char byte = 'x';
	struct iovec iov = {&byte, 1};
	struct mmsghdr m = {.msg_hdr = {.msg_name = &a.ss,
					.msg_namelen = a.len,
					.msg_iov = &iov,
					.msg_iovlen = 1}};
	int fd = inet_socket(&a, SOCK_STREAM, 0);

	if (fd < 0)
		return errno;
	return answer_of(many ? sendmmsg(fd, &m, 1, MSG_FASTOPEN)
			      : sendmsg(fd, &m.msg_hdr, MSG_FASTOPEN));
}
static int fast_open_sendmsg(void)
{
	return fast_open_msg(0);
}
static int fast_open_sendmmsg(void)
{
	return fast_open_msg(1);
}

static int fast_open_connect(void)
{
	struct inet_addr a = addr_of("127.0.0.1", target_number("fast"));
	int fd = inet_socket(&a, SOCK_STREAM, 0), on = 1;

	if (fd < 0)
		return errno;
	if (setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &on, sizeof(on)) < 0)
		return errno;
	/* Without a cookie it is an ordinary connect; with one it returns at once. */
	if (connect(fd, sa(&a), a.len) < 0)
		return errno;
	return answer_of(write(fd, "x", 1));
}

/* ---- 35: datagrams ---------------------------------------------------------------------- */

static int datagram(const char *host, long port, int proto)
{
	struct inet_addr a = addr_of(host, port);
	int fd = inet_socket(&a, SOCK_DGRAM, proto);

	return fd < 0 ? errno : held(sendto(fd, "x", 1, 0, sa(&a), a.len));
}
static int udp_sendto(void)
{
	return datagram("127.0.0.1", target_number("udp"), 0);
}
static int udp6_sendto(void)
{
	return datagram("::1", target_number("udp6"), IPPROTO_UDP);
}
static int udplite_sendto(void)
{
	return datagram("127.0.0.1", target_number("udplite"), UDPLITE);
}
static int udp_outside(void)
{
	return datagram(TEST_NET, 53, 0);
}
static int udp_broadcast(void)
{
	struct inet_addr a = addr_of("255.255.255.255", target_number("udp"));
	int fd = inet_socket(&a, SOCK_DGRAM, 0), on = 1;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &on, sizeof(on)) < 0)
		return errno;
	return answer_of(sendto(fd, "x", 1, 0, sa(&a), a.len));
}
static int udp_multicast(void)
{
	return datagram("224.0.0.251", 5353, 0);
}

static int udp_connected(void)
{
	struct inet_addr a = addr_of("127.0.0.1", target_number("udp"));
	int fd = inet_socket(&a, SOCK_DGRAM, 0);

	if (fd < 0)
		return errno;
	if (connect(fd, sa(&a), a.len) < 0)
		return errno;
	/* On a loopback of one's own the first is answered by "nobody there". */
	(void)send(fd, "x", 1, 0);
	return answer_of(send(fd, "x", 1, 0));
}

static int udp_sendmmsg(void)
{
	struct inet_addr a = addr_of("127.0.0.1", target_number("udp"));
	char byte = 'x';
	struct iovec iov = {&byte, 1};
	struct mmsghdr m[2] = {{.msg_hdr = {.msg_name = &a.ss,
					    .msg_namelen = a.len,
					    .msg_iov = &iov,
					    .msg_iovlen = 1}}};
	int fd = inet_socket(&a, SOCK_DGRAM, 0);

	m[1] = m[0];
	return fd < 0 ? errno : held(sendmmsg(fd, m, 2, 0));
}

/* A question to whatever may resolve names. */
static int dns(void)
{
	static const char *const servers[] = {"127.0.0.1", "127.0.0.53", "::1"};
	static const unsigned char query[] = {0x12, 0x34, 1, 0,	  0, 1, 0, 0, 0, 0,
					      0,    0,	  1, 'x', 0, 0, 1, 0, 1};

	for (size_t i = 0; i < sizeof(servers) / sizeof(servers[0]); i++) {
		struct inet_addr a = addr_of(servers[i], 53);
		int fd = inet_socket(&a, SOCK_DGRAM, 0);
		struct pollfd p = {.fd = fd, .events = POLLIN};
		char got[64];

		if (fd < 0)
			return errno;
		if (connect(fd, sa(&a), a.len) < 0 ||
		    send(fd, query, sizeof(query), 0) < 0)
			continue;
		if (poll(&p, 1, 300) > 0 && recv(fd, got, sizeof(got), 0) > 0)
			return GOT_THROUGH;
	}
	return HELD;
}

/* ---- 36: to be reached --------------------------------------------------------------------- */

/* The host tries this port all the time (victim_network.c). */
static int listen_on_host_port(void)
{
	struct inet_addr a = addr_of("0.0.0.0", target_number("lure_port"));
	int fd = inet_socket(&a, SOCK_STREAM, 0);
	struct pollfd p = {.fd = fd, .events = POLLIN};

	if (fd < 0)
		return errno;
	if (bind(fd, sa(&a), a.len) < 0 || listen(fd, 8) < 0)
		return errno;
	return poll(&p, 1, 500) > 0 ? GOT_THROUGH : HELD;
}

static int listen_unbound(void)
{
	struct inet_addr a = addr_of("0.0.0.0", 0);
	int fd = inet_socket(&a, SOCK_STREAM, 0);

	return fd < 0 ? errno : held(listen(fd, 8));
}

static int listen_on_a_pair(void)
{
	int sv[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) < 0)
		return errno;
	return answer_of(listen(sv[0], 8));
}

/* ---- 37: other protocols of these families ---------------------------------------------------- */

static int is_given(int type, int proto)
{
	if (type == SOCK_STREAM)
		return proto == 0 || proto == IPPROTO_TCP;
	return type == SOCK_DGRAM &&
	       (proto == 0 || proto == IPPROTO_UDP || proto == UDPLITE);
}

/* Every type and every protocol but those that are given. */
static int other_protocols(void)
{
	static const int types[] = {SOCK_STREAM,    SOCK_DGRAM,	  SOCK_RAW, SOCK_RDM,
				    SOCK_SEQPACKET, 6 /* DCCP */, 10 /* PACKET */};
	static const int families[] = {AF_INET, AF_INET6};

	for (size_t f = 0; f < 2; f++)
		for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++)
			for (int proto = 0; proto < PROTOCOLS_MAX; proto++) {
				if (!in_floor() && is_given(types[t], proto))
					continue;
				if (socket(families[f], types[t], proto) >= 0)
					return GOT_THROUGH;
				if (errno != EPERM)
					return errno;
			}
	return EPERM;
}
static int sctp(void)
{
	return connect_to("127.0.0.1", target_number("tcp"), SOCK_SEQPACKET, SCTP);
}
static int sctp_stream(void)
{
	return connect_to("127.0.0.1", target_number("tcp"), SOCK_STREAM, SCTP);
}
static int dccp(void)
{
	return connect_to("127.0.0.1", target_number("tcp"), 6, 33);
}
static int smc(void)
{
	return answer_of(socket(SMC_FAMILY, SOCK_STREAM, 0));
}
static int ping4(void)
{
	return connect_to("127.0.0.1", 0, SOCK_DGRAM, IPPROTO_ICMP);
}
static int ping6(void)
{
	return connect_to("::1", 0, SOCK_DGRAM, IPPROTO_ICMPV6);
}
static int raw(void)
{
	return connect_to("127.0.0.1", 0, SOCK_RAW, IPPROTO_RAW);
}

/* ---- 46: addresses that say one thing and mean another ------------------------------------------ */

/* AF_UNSPEC undoes a connection; the next one is judged as any other. */
static int unspec_then_connect(void)
{
	struct inet_addr a = addr_of("127.0.0.1", target_number("udp"));
	struct sockaddr none = {.sa_family = AF_UNSPEC};
	int fd = inet_socket(&a, SOCK_DGRAM, 0);

	if (fd < 0)
		return errno;
	(void)connect(fd, sa(&a), a.len);
	if (connect(fd, &none, sizeof(none)) < 0)
		return errno;
	return held(sendto(fd, "x", 1, 0, sa(&a), a.len));
}

/* Linux takes AF_UNSPEC for AF_INET in some places. */
static int unspec_as_inet(void)
{
	struct inet_addr a = addr_of("127.0.0.1", target_number("udp"));
	int fd = inet_socket(&a, SOCK_DGRAM, 0);

	a.ss.ss_family = AF_UNSPEC;
	return fd < 0 ? errno : held(sendto(fd, "x", 1, 0, sa(&a), a.len));
}

static int unix_as_inet(void)
{
	struct inet_addr a = addr_of("127.0.0.1", target_number("tcp"));
	int sv[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) < 0)
		return errno;
	return answer_of(connect(sv[0], sa(&a), a.len));
}

static int pair_of_inet(void)
{
	int sv[2];

	return answer_of(socketpair(AF_INET, SOCK_STREAM, 0, sv));
}

static int huge_address(void)
{
	struct inet_addr a = addr_of("127.0.0.1", target_number("udp"));
	int fd = inet_socket(&a, SOCK_DGRAM, 0);

	if (fd < 0)
		return errno;
	return answer_of(syscall(SYS_connect, fd, &a.ss, 0xffffffffUL));
}

/* ---- 50: rights over the network --------------------------------------------------------------- */

static int option(int level, int name, const void *value, socklen_t len)
{
	struct inet_addr a = addr_of("127.0.0.1", 0);
	int fd = inet_socket(&a, SOCK_STREAM, 0);

	return fd < 0 ? errno : answer_of(setsockopt(fd, level, name, value, len));
}
static int transparent(void)
{
	int on = 1;

	return option(IPPROTO_IP, IP_TRANSPARENT, &on, sizeof(on));
}
static int mark(void)
{
	int on = 1;

	return option(SOL_SOCKET, SO_MARK, &on, sizeof(on));
}
static int bind_to_device(void)
{
	return option(SOL_SOCKET, SO_BINDTODEVICE, "eth0", 5);
}
static int upper_protocol(void)
{
	return option(IPPROTO_TCP, TCP_ULP, "tls", 4);
}
static int packet_filter(void)
{
	char entry[256] = {0};

	return option(IPPROTO_IP, 64 /* IPT_SO_SET_REPLACE */, entry, sizeof(entry));
}
static int userns_netns(void)
{
	return answer_of(unshare(CLONE_NEWUSER | CLONE_NEWNET));
}

/* ---- 51: names --------------------------------------------------------------------------------- */

static int look_up(const char *name, struct addrinfo **ret)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct timespec a, b;
	int r;

	(void)clock_gettime(CLOCK_MONOTONIC, &a);
	r = getaddrinfo(name, "80", &hints, ret);
	(void)clock_gettime(CLOCK_MONOTONIC, &b);
	return b.tv_sec - a.tv_sec > LOOKUP_SEC_MAX ? -1 : r;
}
static int unknown_name(void)
{
	struct addrinfo *list = NULL;
	int r = look_up("lychgate.invalid", &list);

	if (r == 0)
		return GOT_THROUGH;
	return r == EAI_NONAME || r == EAI_AGAIN || r == EAI_FAIL || r == EAI_SYSTEM
		       ? HELD
		       : ETIMEDOUT;
}
static int localhost(void)
{
	struct addrinfo *list = NULL;
	int r = look_up("localhost", &list);

	return r == 0 ? ALLOWED : r == -1 ? ETIMEDOUT : HELD;
}

/* 49: what run.sh left open is a connection to the host. */
static int inherited_connection(void)
{
	for (int fd = 3; fd < 512; fd++) {
		struct stat st;

		if (fstat(fd, &st) == 0)
			return GOT_THROUGH;
		if (write(fd, "x", 1) >= 0)
			return GOT_THROUGH;
	}
	return EBADF;
}

#define NO_NET {EPERM}

/* clang-format off */
static const struct probe probes[] = {
	{"32", "TCP to the host's 127.0.0.1", tcp4, {ECONNREFUSED}, NO_NET},
	{"32b", "to its ::1", tcp6, {ECONNREFUSED, EADDRNOTAVAIL}, NO_NET},
	{"32c", "to 0.0.0.0", tcp_any, {ECONNREFUSED}, NO_NET},
	{"32d", "to ::ffff:127.0.0.1", tcp_mapped, {ECONNREFUSED}, NO_NET},
	{"32e", "to another address of 127/8", tcp_other_loopback, {ECONNREFUSED}, NO_NET},
	{"32f", "to the outside", tcp_outside, {ENETUNREACH}, NO_NET},
	{"32g", "to the outside, IPv6", tcp_outside6, {ENETUNREACH, EADDRNOTAVAIL}, NO_NET},
	{"33", "MPTCP", mptcp4, NO_NET, NO_NET},
	{"33b", "MPTCP, IPv6", mptcp6, NO_NET, NO_NET},
	{"33c", "MPTCP, high bits set", mptcp_high_bits, NO_NET, NO_NET},
	{"34", "TCP fast open by sendto", fast_open_sendto,
	 {ECONNREFUSED, EOPNOTSUPP, EINPROGRESS}, NO_NET},
	{"34b", "by sendmsg", fast_open_sendmsg, {ECONNREFUSED, EOPNOTSUPP, EINPROGRESS}, NO_NET},
	{"34c", "by sendmmsg", fast_open_sendmmsg, {ECONNREFUSED, EOPNOTSUPP, EINPROGRESS},
	 NO_NET},
	{"34d", "by TCP_FASTOPEN_CONNECT", fast_open_connect,
	 {ECONNREFUSED, EOPNOTSUPP, EINPROGRESS}, NO_NET},
	{"35", "UDP by sendto", udp_sendto, {HELD}, NO_NET, "sent on its own loopback"},
	{"35b", "UDP, IPv6", udp6_sendto, {HELD, EADDRNOTAVAIL, ENETUNREACH}, NO_NET,
	 "sent on its own loopback"},
	{"35c", "UDP by connect and send", udp_connected, {ECONNREFUSED}, NO_NET},
	{"35d", "UDP by sendmmsg", udp_sendmmsg, {HELD, ECONNREFUSED}, NO_NET,
	 "sent on its own loopback"},
	{"35e", "UDP-Lite", udplite_sendto, {HELD, EPROTONOSUPPORT}, NO_NET,
	 "sent on its own loopback"},
	{"35f", "UDP to the outside", udp_outside, {ENETUNREACH}, NO_NET},
	{"35g", "UDP broadcast", udp_broadcast, {ENETUNREACH}, NO_NET},
	{"35h", "UDP multicast", udp_multicast, {ENETUNREACH}, NO_NET},
	{"35i", "a DNS question to 127.0.0.1, 127.0.0.53 and ::1", dns, {HELD}, NO_NET},
	{"36", "listen on a port that the host connects to", listen_on_host_port, {HELD}, NO_NET,
	 "listens on its own loopback"},
	{"36b", "listen without bind", listen_unbound, {HELD}, NO_NET,
	 "listens on its own loopback"},
	{"36c", "listen on a socketpair", listen_on_a_pair, {EINVAL}, NO_NET},
	{"37", "every type and protocol of IPv4 and IPv6 but TCP, UDP and UDP-Lite",
	 other_protocols, NO_NET, NO_NET},
	{"37b", "SCTP, one to many", sctp, NO_NET, NO_NET},
	{"37c", "SCTP, one to one", sctp_stream, NO_NET, NO_NET},
	{"37d", "DCCP", dccp, NO_NET, NO_NET},
	{"37e", "SMC", smc, NO_NET, NO_NET},
	{"37f", "ping", ping4, NO_NET, NO_NET},
	{"37g", "ping, IPv6", ping6, NO_NET, NO_NET},
	{"37h", "raw IP", raw, NO_NET, NO_NET},
	{"46", "connect to AF_UNSPEC, then send", unspec_then_connect, {HELD}, NO_NET,
	 "sent on its own loopback"},
	{"46b", "AF_UNSPEC for AF_INET in an address", unspec_as_inet, {HELD, EAFNOSUPPORT},
	 NO_NET, "sent on its own loopback"},
	{"46c", "a UNIX socket to an internet address", unix_as_inet, {EINVAL, EISCONN}, NO_NET},
	{"46d", "a socketpair of AF_INET", pair_of_inet, NO_NET, NO_NET},
	{"46e", "an address of 4 GiB", huge_address, {EINVAL}, NO_NET},
	{"49", "a connection of the starter, open as descriptors 3 to 511", inherited_connection,
	 {EBADF}, {EBADF}},
	ELSEWHERE("49b", "such a connection as stdin, stdout or stderr", "exit 78, EXEC-001",
	 "tests/escape/network.sh", "a connection as"),
	{"50", "IP_TRANSPARENT", transparent, NO_NET, NO_NET},
	{"50b", "SO_MARK", mark, NO_NET, NO_NET},
	{"50c", "SO_BINDTODEVICE", bind_to_device, {ENODEV, EPERM}, NO_NET},
	{"50d", "another protocol above TCP (TCP_ULP)", upper_protocol, NO_NET, NO_NET},
	{"50e", "replace the packet filter", packet_filter, NO_NET, NO_NET},
	{"50f", "a user and a network namespace", userns_netns, NO_NET, NO_NET},
	{"51", "getaddrinfo of a name that nobody has", unknown_name, {HELD}, {HELD},
	 "an EAI_ error at once"},
	{"51b", "getaddrinfo of localhost", localhost, {ALLOWED}, {ALLOWED, HELD}},
	ELSEWHERE("51c", "Python: getaddrinfo, urllib, http.client", "an error at once",
	 "tests/escape/network.sh", "python looks up"),
};
/* clang-format on */

const struct section section_inet = {'B', "Network", probes,
				     sizeof(probes) / sizeof(probes[0])};
