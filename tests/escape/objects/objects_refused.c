/* SPDX-License-Identifier: Apache-2.0 */
/* Runs inside: what a job is not let make at all; each is tried once. */
#include "tests/escape/objects/objects.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <mqueue.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_userfaultfd
#define SYS_userfaultfd 323
#endif

static void count(long r)
{
	made += r >= 0;
}

static void make_keys(void)
{
	count(syscall(SYS_add_key, "user", "x", "y", 1, -3));
}

/* TCP_MD5SIG, TCP_MD5SIG_EXT and TCP_AO_ADD_KEY: keys that routers sign with, any number a socket. */
static void make_tcp_keys(void)
{
	struct {
		struct sockaddr_storage whose;
		uint8_t flags, prefix;
		uint16_t bytes;
		uint32_t interface;
		uint8_t key[80];
	} md5 = {.whose = {.ss_family = AF_INET}, .bytes = 8};
	static const int options[] = {14, 32, 38};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		count(setsockopt(fd, IPPROTO_TCP, options[i], &md5, sizeof(md5)));
}

static void make_aio(void)
{
	unsigned long context = 0;

	count(syscall(SYS_io_setup, 1024, &context));
}

static void make_rings(void)
{
	char params[256] = {0};

	count(syscall(SYS_io_uring_setup, 4096, params));
}

static void make_queues(void)
{
	struct mq_attr a = {.mq_maxmsg = 1, .mq_msgsize = 8};

	count(syscall(SYS_mq_open, "x", O_RDWR | O_CREAT, 0600, &a));
}

static void make_fanotify(void)
{
	count(syscall(SYS_fanotify_init, 0x200 /* reports names */, O_RDONLY));
}

static void make_faults(void)
{
	count(syscall(SYS_userfaultfd, 1 /* of its own mode only */));
}

static void make_programs(void)
{
	char attr[128] = {0};

	count(syscall(SYS_bpf, 0, attr, sizeof(attr)));
}

static void make_counters(void)
{
	char attr[128] = {0};

	count(syscall(SYS_perf_event_open, attr, 0, -1, -1, 0));
}

static void make_namespaces(void)
{
	count(syscall(SYS_unshare, CLONE_NEWUSER));
}

static void make_secrets(void)
{
	count(syscall(447 /* memfd_secret */, 0));
}

static void make_leases(void)
{
	int fd = open(own_name("leased", 0), O_RDONLY | O_CREAT, 0600);

	count(fcntl(fd, F_SETLEASE, F_RDLCK));
}

static void make_huge_pages(void)
{
	int fd = (int)memfd_create("x", MFD_HUGETLB);

	count(fd < 0 ? -1 : write(fd, "x", 1));
}

/* Of the routing table in its own network: a route, an interface, a neighbour. */
static void ask_to_add(unsigned short type, const void *what, size_t len)
{
	struct {
		struct nlmsghdr h;
		char rest[256];
	} q = {.h = {.nlmsg_type = type,
		     .nlmsg_len = (uint32_t)NLMSG_LENGTH(len),
		     .nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_ACK}};
	struct {
		struct nlmsghdr h;
		struct nlmsgerr e;
		char rest[256];
	} a;
	int s = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);

	memcpy(NLMSG_DATA(&q.h), what, len);
	if (s < 0 || send(s, &q, q.h.nlmsg_len, 0) < 0 || recv(s, &a, sizeof(a), 0) < 0)
		return;
	errno = -a.e.error;
	count(a.e.error);
}

static void make_routes(void)
{
	struct rtmsg m = {.rtm_family = AF_INET,
			  .rtm_table = RT_TABLE_MAIN,
			  .rtm_protocol = RTPROT_STATIC,
			  .rtm_scope = RT_SCOPE_LINK,
			  .rtm_type = RTN_UNICAST};

	ask_to_add(RTM_NEWROUTE, &m, sizeof(m));
}

static void make_links(void)
{
	struct ifinfomsg m = {.ifi_family = AF_UNSPEC};

	ask_to_add(RTM_NEWLINK, &m, sizeof(m));
}

static void make_neighbours(void)
{
	struct ndmsg m = {
		.ndm_family = AF_INET, .ndm_ifindex = 1, .ndm_state = NUD_PERMANENT};

	ask_to_add(RTM_NEWNEIGH, &m, sizeof(m));
}

static void make_addresses(void)
{
	struct ifaddrmsg m = {.ifa_family = AF_INET, .ifa_index = 1, .ifa_prefixlen = 8};

	ask_to_add(RTM_NEWADDR, &m, sizeof(m));
}

const struct object_kind objects_refused[] = {
	{"keys", make_keys, "both", "`add_key`, `keyctl`, `request_key`: EPERM", ""},
	{"tcp-keys", make_tcp_keys, "both", "`setsockopt`: EPERM", ""},
	{"aio", make_aio, "both", "`io_setup`: EPERM", ""},
	{"io-uring", make_rings, "both", "EPERM", ""},
	{"message-queues", make_queues, "both",
	 "RLIMIT_MSGQUEUE 0 (`full`), EPERM (`floor`)", ""},
	{"fanotify", make_fanotify, "both", "EPERM", ""},
	{"userfaults", make_faults, "both", "EPERM", ""},
	{"bpf", make_programs, "both", "EPERM", ""},
	{"perf", make_counters, "both", "EPERM", ""},
	{"namespaces", make_namespaces, "both", "EPERM", ""},
	{"secret-memory", make_secrets, "both", "`memfd_secret`: refused", ""},
	{"leases", make_leases, "both", "EPERM", ""},
	{"huge-pages", make_huge_pages, "both", "`MFD_HUGETLB`, `MAP_HUGETLB`: EPERM",
	 ""},
	{"routes", make_routes, "both",
	 "no capability in its network (`full`), no socket (`floor`)", ""},
	{"links", make_links, "both",
	 "no capability in its network (`full`), no socket (`floor`)", ""},
	{"neighbours", make_neighbours, "both",
	 "no capability in its network (`full`), no socket (`floor`)", ""},
	{"addresses", make_addresses, "both",
	 "no capability in its network (`full`), no socket (`floor`)", ""},
	{0},
};
