/* SPDX-License-Identifier: Apache-2.0 */
/* Runs inside: sockets, what waits in them, what they belong to. */
#include "tests/escape/objects/objects.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <linux/in6.h> /* behind netinet/in.h, of which it knows */

#define MOST (INT32_MAX / 2)

static int set_buffer(int fd, int most)
{
	return setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &most, sizeof(most));
}

static socklen_t abstract(struct sockaddr_un *a, int n)
{
	*a = (struct sockaddr_un){.sun_family = AF_UNIX};
	(void)snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, "o.%d.%d", who, n);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   strlen(a->sun_path + 1));
}

static void make_unix_backlog(void)
{
	for (int i = 0; i < MANY; i++) {
		struct sockaddr_un a;
		socklen_t len = abstract(&a, i);
		int l = socket(AF_UNIX, SOCK_STREAM, 0);

		if (l < 0 || bind(l, (struct sockaddr *)&a, len) < 0 ||
		    listen(l, 4096) < 0)
			return;
		for (int k = 0; k < 4096; k++) {
			int c = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

			(void)set_buffer(c, INT32_MAX / 2);
			if (c < 0 || connect(c, (struct sockaddr *)&a, len) < 0) {
				(void)close(c);
				break;
			}
			stuff(c);
			(void)close(c);
		}
	}
}

static void make_unix_datagrams(void)
{
	for (int i = 0; i < MANY; i++) {
		struct sockaddr_un a;
		socklen_t len = abstract(&a, i);
		int r = socket(AF_UNIX, SOCK_DGRAM, 0);

		if (r < 0 || bind(r, (struct sockaddr *)&a, len) < 0)
			return;
		for (int k = 0; k < 12; k++) {
			int s = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);

			(void)set_buffer(s, INT32_MAX / 2);
			(void)!sendto(s, block, 200000, 0, (struct sockaddr *)&a, len);
			(void)close(s);
		}
	}
}

static void make_unix_pairs(void)
{
	int sv[2];

	while (socketpair(AF_UNIX, SOCK_STREAM, 0, sv) == 0) {
		(void)set_buffer(sv[0], INT32_MAX / 2);
		stuff(sv[0]);
		(void)close(sv[0]);
	}
}

static void make_tcp(bool orphans)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	int l = socket(AF_INET, SOCK_STREAM, 0);

	if (l < 0 || bind(l, (struct sockaddr *)&a, sizeof(a)) < 0 ||
	    listen(l, 4096) < 0 || getsockname(l, (struct sockaddr *)&a, &len) < 0)
		return;
	for (int i = 0; i < MANY; i++) {
		int c = socket(AF_INET, SOCK_STREAM, 0), s = -1;

		if (c < 0)
			return;
		(void)set_buffer(c, INT32_MAX / 2);
		if (connect(c, (struct sockaddr *)&a, sizeof(a)) < 0)
			return;
		if (orphans)
			s = accept(l, NULL, NULL);
		stuff(c);
		(void)close(c);
		if (orphans && s < 0)
			return;
	}
}

static void make_tcp_backlog(void)
{
	make_tcp(false);
}

static void make_tcp_orphans(void)
{
	make_tcp(true);
}

static void make_udp(void)
{
	for (int i = 0; i < MANY; i++) {
		struct sockaddr_in a = {.sin_family = AF_INET,
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
		socklen_t len = sizeof(a);
		int most = INT32_MAX / 2, s = socket(AF_INET, SOCK_DGRAM, 0);

		if (s < 0 || bind(s, (struct sockaddr *)&a, sizeof(a)) < 0 ||
		    getsockname(s, (struct sockaddr *)&a, &len) < 0)
			return;
		(void)setsockopt(s, SOL_SOCKET, SO_RCVBUF, &most, sizeof(most));
		for (int k = 0; k < 2000; k++)
			(void)!sendto(s, block, 60000, MSG_DONTWAIT,
				      (struct sockaddr *)&a, sizeof(a));
	}
}

static void make_sockets(void)
{
	int sv[2];

	while (socket(AF_INET, SOCK_STREAM, 0) >= 0 ||
	       socketpair(AF_UNIX, SOCK_STREAM, 0, sv) == 0)
		;
}

static void make_netlink(void)
{
	while (socket(AF_NETLINK, SOCK_RAW, 0) >= 0)
		;
}

/* ---- what belongs to a socket ----------------------------------------------------------- */

/* Groups that are listened to: each also an entry of the interface's own. */
static void make_memberships(void)
{
	int s;

	while ((s = socket(AF_INET, SOCK_DGRAM, 0)) >= 0) {
		for (int i = 0; i < 64; i++, made++) {
			struct ip_mreqn m = {.imr_multiaddr.s_addr = htonl(
						     0xe8000000u + (unsigned)made * 128 +
						     (unsigned)who),
					     .imr_ifindex = 1};

			if (setsockopt(s, IPPROTO_IP, IP_ADD_MEMBERSHIP, &m, sizeof(m)) <
			    0)
				break;
		}
	}
}

static void make_memberships6(void)
{
	int s;

	while ((s = socket(AF_INET6, SOCK_DGRAM, 0)) >= 0) {
		for (int i = 0; i < MANY; i++, made++) {
			struct ipv6_mreq m = {.ipv6mr_interface = 1};
			uint32_t n = (uint32_t)made;

			m.ipv6mr_multiaddr.s6_addr[0] = 0xff;
			m.ipv6mr_multiaddr.s6_addr[1] = 0x05;
			memcpy(&m.ipv6mr_multiaddr.s6_addr[8], &n, sizeof(n));
			m.ipv6mr_multiaddr.s6_addr[15] = (uint8_t)who;
			if (setsockopt(s, IPPROTO_IPV6, IPV6_ADD_MEMBERSHIP, &m,
				       sizeof(m)) < 0)
				break;
		}
	}
}

/* Of one group the sources that are wanted. */
static void make_sources6(void)
{
	int s;

	while ((s = socket(AF_INET6, SOCK_DGRAM, 0)) >= 0) {
		for (int g = 0; g < MANY; g++) {
			struct group_source_req q = {.gsr_interface = 1};
			struct sockaddr_in6 a = {.sin6_family = AF_INET6};
			int i = 0;

			a.sin6_addr.s6_addr[0] = 0xff;
			a.sin6_addr.s6_addr[1] = 0x05;
			memcpy(&a.sin6_addr.s6_addr[8], &made, 4);
			a.sin6_addr.s6_addr[15] = (uint8_t)who;
			memcpy(&q.gsr_group, &a, sizeof(a));
			for (; i < 64; i++, made++) {
				a.sin6_addr.s6_addr[0] = 0x20;
				a.sin6_addr.s6_addr[14] = (uint8_t)i;
				memcpy(&q.gsr_source, &a, sizeof(a));
				if (setsockopt(s, IPPROTO_IPV6, MCAST_JOIN_SOURCE_GROUP,
					       &q, sizeof(q)) < 0)
					break;
			}
			if (i == 0)
				break;
		}
	}
}

static void make_flow_labels(void)
{
	int s;

	while ((s = socket(AF_INET6, SOCK_DGRAM, 0)) >= 0) {
		for (;; made++) {
			struct in6_flowlabel_req r = {.flr_action = IPV6_FL_A_GET,
						      .flr_share = IPV6_FL_S_EXCL,
						      .flr_flags = IPV6_FL_F_CREATE,
						      .flr_dst.s6_addr[15] = 1,
						      .flr_expires = 65535,
						      .flr_linger = 65535};

			if (setsockopt(s, IPPROTO_IPV6, IPV6_FLOWLABEL_MGR, &r,
				       sizeof(r)) < 0)
				break;
		}
	}
}

/* Headers that go along with each datagram. */
static void make_options6(void)
{
	static char header[2048];
	int s;

	header[1] = (char)(sizeof(header) / 8 - 1); /* the rest is Pad1 */
	while ((s = socket(AF_INET6, SOCK_DGRAM, 0)) >= 0)
		if (setsockopt(s, IPPROTO_IPV6, IPV6_DSTOPTS, header, sizeof(header)) ==
		    0)
			made++;
}

/* Answers of the routing table that nobody reads. */
static void ask_for_links(int s)
{
	struct {
		struct nlmsghdr h;
		struct ifinfomsg i;
	} one = {{.nlmsg_len = sizeof(one),
		  .nlmsg_type = RTM_GETLINK,
		  .nlmsg_flags = NLM_F_REQUEST},
		 {.ifi_index = 1}};

	while (send(s, &one, sizeof(one), MSG_DONTWAIT) > 0)
		;
}

static void make_netlink_replies(void)
{
	int most = MOST, s;

	while ((s = socket(AF_NETLINK, SOCK_RAW, 0)) >= 0) {
		(void)setsockopt(s, SOL_SOCKET, SO_RCVBUF, &most, sizeof(most));
		ask_for_links(s);
		made++;
	}
}

/* ---- parked in the queue of another ------------------------------------------------------ */

static int park(int in, const int *fds, int n)
{
	char control[CMSG_SPACE(sizeof(int) * 200)] = {0}, byte = 0;
	struct iovec v = {&byte, 1};
	struct msghdr m = {.msg_iov = &v,
			   .msg_iovlen = 1,
			   .msg_control = control,
			   .msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)n)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)n);
	memcpy(CMSG_DATA(c), fds, sizeof(int) * (size_t)n);
	return sendmsg(in, &m, MSG_DONTWAIT) < 0 ? -1 : 0;
}

static void park_each(int (*one)(void))
{
	int sv[2];

	while (socketpair(AF_UNIX, SOCK_STREAM, 0, sv) == 0) {
		for (int fd; (fd = one()) >= 0; made++) {
			int r = park(sv[0], &fd, 1);

			(void)close(fd);
			if (r < 0)
				break;
		}
	}
}

static int full_udp(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	int most = MOST, s = socket(AF_INET, SOCK_DGRAM, 0);

	if (s < 0 || bind(s, (struct sockaddr *)&a, sizeof(a)) < 0 ||
	    getsockname(s, (struct sockaddr *)&a, &len) < 0)
		return -1;
	(void)setsockopt(s, SOL_SOCKET, SO_RCVBUF, &most, sizeof(most));
	for (int k = 0; k < 200; k++)
		(void)!sendto(s, block, 60000, MSG_DONTWAIT, (struct sockaddr *)&a,
			      sizeof(a));
	return s;
}

static void make_parked_udp(void)
{
	park_each(full_udp);
}

static int full_netlink(void)
{
	int most = MOST, s = socket(AF_NETLINK, SOCK_RAW, 0);

	if (s < 0)
		return -1;
	(void)setsockopt(s, SOL_SOCKET, SO_RCVBUF, &most, sizeof(most));
	ask_for_links(s);
	return s;
}

static void make_parked_netlink(void)
{
	park_each(full_netlink);
}

static int locked_file(void)
{
	int fd = open(own_name("parked", (int)made), O_RDWR | O_CREAT, 0600);

	for (off_t at = 60000; fd >= 0 && at > 0; at--) {
		struct flock l = {.l_type = F_RDLCK,
				  .l_whence = SEEK_SET,
				  .l_start = at * 2,
				  .l_len = 1};

		if (fcntl(fd, F_OFD_SETLK, &l) < 0)
			break;
	}
	return fd;
}

static void make_parked_locks(void)
{
	park_each(locked_file);
}

static int full_memfd(void)
{
	int fd = (int)memfd_create("x", 0);

	for (int i = 0; fd >= 0 && i < 16; i++)
		(void)!write(fd, block, BLOCK_BYTES);
	return fd;
}

static void make_parked_memfds(void)
{
	park_each(full_memfd);
}

/* A socket in whose queue there are memory and another such socket; only the last is held. */
static void make_parked_sockets(void)
{
	int inner = -1;

	for (;; made++) {
		int sv[2], fds[2] = {full_memfd(), inner};
		int n = inner < 0 ? 1 : 2;

		if (fds[0] < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, sv) < 0 ||
		    park(sv[0], fds, n) < 0)
			return;
		(void)close(fds[0]);
		(void)close(sv[0]);
		if (inner >= 0)
			(void)close(inner);
		inner = sv[1];
	}
}

const struct object_kind objects_of_sockets[] = {
	{"unix-backlog", make_unix_backlog, "full",
	 "by the network's list (UNIX_DIAG), held by a process or not: each connection 2 "
	 "KiB and what waits in it",
	 "230 MiB"},
	{"unix-datagrams", make_unix_datagrams, "full",
	 "by the network's list: what waits, at least a queue of 11 for a socket with "
	 "anything in it",
	 ""},
	{"unix-pairs", make_unix_pairs, "both",
	 "through a copy of the descriptor, in `full` by the network's list: what the "
	 "kernel charges to it, and a whole queue where its sender may be gone",
	 "191 MiB"},
	{"tcp-backlog", make_tcp_backlog, "full",
	 "by the network's list (INET_DIAG), held or not: what the kernel charges to it "
	 "and 4 KiB",
	 "230 MiB"},
	{"tcp-orphans", make_tcp_orphans, "full", "the same; 512 bytes in TIME_WAIT", ""},
	{"udp", make_udp, "full", "by the network's list: what the kernel charges to it",
	 ""},
	{"sockets", make_sockets, "full", "descriptors (768 a process), 4 KiB each",
	 "148 MiB"},
	{"netlink", make_netlink, "full",
	 "descriptors, 4 KiB each and what the kernel charges to it", ""},
	{"netlink-replies", make_netlink_replies, "full",
	 "through a copy of the descriptor: its receive buffer", ""},
	{"memberships", make_memberships, "full", "4,096 for the job, then EPERM", ""},
	{"memberships6", make_memberships6, "full", "4,096 for the job, then EPERM", ""},
	{"sources6", make_sources6, "full", "4,096 joins for the job, then EPERM", ""},
	{"flow-labels", make_flow_labels, "full",
	 "the kernel's own bound for users without privileges (32 a socket, 4,096 a "
	 "network)",
	 ""},
	{"options6", make_options6, "full",
	 "the kernel's bound a socket (`optmem_max`), counted six times by the socket's "
	 "SO_MEMINFO",
	 ""},
	{"parked-udp", make_parked_udp, "full",
	 "by the network's list, though nobody holds it", ""},
	{"parked-netlink", make_parked_netlink, "full",
	 "parked descriptors: eight are free, each further one 32 MiB as far as the "
	 "machine's memory grew",
	 ""},
	{"parked-locks", make_parked_locks, "both",
	 "100,000 byte-range locks for the job; a parked descriptor each", ""},
	{"parked-memfds", make_parked_memfds, "both",
	 "what was seen of them before, then parked descriptors as above; what came "
	 "while they did",
	 ""},
	{"parked-sockets", make_parked_sockets, "both",
	 "`full`: the network's list says which sockets nobody holds, 24 parked "
	 "descriptors each; `floor`: what came while anything is parked",
	 ""},
	{0},
};
