/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper and the meter.
 * See diag.h.
 */
#include "sandbox/keeper/diag.h"

#include "common/cleanup.h"

#include <errno.h>
#include <limits.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_MAX 32768
#define TCP_LISTENING 10 /* of the kernel's enum, which is that of unix sockets, too */
/* One that nobody holds: the structures themselves. */
#define TCP_SOCKET_BYTES 4096
/* One that is not yet or no longer whole (SYN_RECV, TIME_WAIT), with its port's entries. */
#define TCP_SMALL_BYTES 512
#define UNIX_SOCKET_BYTES 2048
/* net.unix.max_dgram_qlen of a new namespace, and the one that passes it. */
#define DATAGRAMS_MAX 11

struct request {
	struct nlmsghdr head;
	union {
		struct unix_diag_req un;
		struct inet_diag_req_v2 in;
	};
};

/* A list of attributes, each with its length before it (rtnetlink(7)). */
struct attributes {
	const char *at;
	size_t left;
};

/* The next one, whole; NULL: the list has ended, or what is left is none. */
static const struct rtattr *next(struct attributes *l)
{
	const struct rtattr *a = (const void *)l->at;
	size_t step;

	if (l->left < sizeof(*a) || a->rta_len < sizeof(*a) || a->rta_len > l->left)
		return NULL;
	step = RTA_ALIGN((size_t)a->rta_len);
	l->at += step < l->left ? step : l->left;
	l->left -= step < l->left ? step : l->left;
	return a;
}

/* RTA_DATA and its kin cast const away. */
static const void *payload(const struct rtattr *a)
{
	return (const char *)a + RTA_LENGTH(0);
}

/* The payload of one, at least size bytes; NULL. */
static const void *attribute(struct attributes l, unsigned short type, size_t size)
{
	const struct rtattr *a;

	while ((a = next(&l)))
		if (a->rta_type == type && RTA_PAYLOAD(a) >= size)
			return payload(a);
	return NULL;
}

static uint64_t held_by(const uint32_t *m)
{
	uint64_t out = m[SK_MEMINFO_WMEM_ALLOC] > m[SK_MEMINFO_WMEM_QUEUED]
			       ? m[SK_MEMINFO_WMEM_ALLOC]
			       : m[SK_MEMINFO_WMEM_QUEUED];

	return out + m[SK_MEMINFO_RMEM_ALLOC] +
	       (uint64_t)m[SK_MEMINFO_OPTMEM] * DIAG_OPTIONS_TIMES +
	       m[SK_MEMINFO_BACKLOG];
}

/* Of the connections that wait to be accepted, those whose sender is gone. */
static unsigned orphans(struct attributes l)
{
	const struct rtattr *a;
	unsigned n = 0;

	while ((a = next(&l))) {
		const uint32_t *ino = payload(a);

		for (size_t i = 0;
		     a->rta_type == UNIX_DIAG_ICONS && i < RTA_PAYLOAD(a) / sizeof(*ino);
		     i++)
			n += !ino[i];
	}
	return n;
}

/* What waits in a unix socket is charged to who sent it. */
static bool parse_unix(const struct unix_diag_msg *m, struct attributes a, uint64_t queue,
		       struct diag_one *ret)
{
	const uint32_t *mem =
		attribute(a, UNIX_DIAG_MEMINFO, sizeof(*mem) * (SK_MEMINFO_BACKLOG + 1));
	const struct unix_diag_rqlen *waits =
		attribute(a, UNIX_DIAG_RQLEN, sizeof(*waits));
	const uint32_t *peer = attribute(a, UNIX_DIAG_PEER, sizeof(*peer));
	bool has_name = attribute(a, UNIX_DIAG_NAME, 0);

	if (!mem || !waits)
		return false;
	ret->ino = m->udiag_ino;
	ret->bytes = held_by(mem);
	if (m->udiag_state == TCP_LISTENING)
		ret->bytes += orphans(a) * queue +
			      (uint64_t)waits->udiag_rqueue * UNIX_SOCKET_BYTES;
	else if (waits->udiag_rqueue && m->udiag_type == SOCK_DGRAM &&
		 (has_name || !peer))
		ret->bytes += DATAGRAMS_MAX * queue;
	else if (waits->udiag_rqueue && !peer)
		ret->bytes += queue;
	return true;
}

static bool parse_inet(const struct inet_diag_msg *m, struct attributes a,
		       struct diag_one *ret)
{
	const uint32_t *mem = attribute(a, INET_DIAG_SKMEMINFO,
					sizeof(*mem) * (SK_MEMINFO_BACKLOG + 1));

	ret->ino = m->idiag_inode;
	ret->bytes =
		mem ? held_by(mem) + (ret->ino ? 0 : TCP_SOCKET_BYTES) : TCP_SMALL_BYTES;
	return true;
}

bool diag_parse(int family, const void *msg, size_t len, uint64_t queue,
		struct diag_one *ret)
{
	size_t head = family == AF_UNIX ? sizeof(struct unix_diag_msg)
					: sizeof(struct inet_diag_msg);
	struct attributes a;

	if (len < NLMSG_ALIGN(head))
		return false;
	a = (struct attributes){(const char *)msg + NLMSG_ALIGN(head),
				len - NLMSG_ALIGN(head)};
	return family == AF_UNIX ? parse_unix(msg, a, queue, ret)
				 : parse_inet(msg, a, ret);
}

struct look {
	uint64_t queue;
	diag_each *each;
	void *arg;
	struct diag_sum *sum;
};

/* A kernel without udp_diag: what such a socket holds shows through its descriptor only. */
static bool without_udp;

/* 1: the dump is whole; 0: more comes; -1. tell: each one of it. */
static int take_answer(int family, bool tell, const char *answer, size_t len,
		       const struct look *l)
{
	while (len >= sizeof(struct nlmsghdr)) {
		const struct nlmsghdr *h = (const void *)answer;
		struct diag_one one;
		size_t step = NLMSG_ALIGN((size_t)h->nlmsg_len);

		if (h->nlmsg_len < NLMSG_HDRLEN || h->nlmsg_len > len ||
		    h->nlmsg_type == NLMSG_ERROR)
			return -1;
		if (h->nlmsg_type == NLMSG_DONE)
			return 1;
		if (!diag_parse(family, answer + NLMSG_HDRLEN,
				h->nlmsg_len - NLMSG_HDRLEN, l->queue, &one))
			return -1;
		l->sum->bytes += one.bytes;
		l->sum->sockets++;
		if (tell && one.ino && l->each)
			l->each(l->arg, family, one.ino);
		answer += step < len ? step : len;
		len -= step < len ? step : len;
	}
	return 0;
}

#define ALL_STATES UINT32_MAX

static int dump(int fd, int family, int protocol, uint32_t states, const struct look *l)
{
	static _Alignas(struct nlmsghdr) char answer[ANSWER_MAX];
	struct request q = {.head = {.nlmsg_type = SOCK_DIAG_BY_FAMILY,
				     .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP}};
	int r = 0;

	if (family == AF_UNIX) {
		q.head.nlmsg_len = NLMSG_LENGTH(sizeof(q.un));
		q.un.sdiag_family = AF_UNIX;
		q.un.udiag_states = states;
		q.un.udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_PEER | UDIAG_SHOW_ICONS |
				  UDIAG_SHOW_RQLEN | UDIAG_SHOW_MEMINFO;
	} else {
		q.head.nlmsg_len = NLMSG_LENGTH(sizeof(q.in));
		q.in.sdiag_family = (uint8_t)family;
		q.in.sdiag_protocol = (uint8_t)protocol;
		q.in.idiag_states = states;
		q.in.idiag_ext = 1u << (INET_DIAG_SKMEMINFO - 1);
	}
	if (send(fd, &q, q.head.nlmsg_len, 0) < 0)
		return -1;
	while (r == 0) {
		ssize_t n = recv(fd, answer, sizeof(answer), 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		r = take_answer(family, protocol != IPPROTO_TCP, answer, (size_t)n, l);
	}
	return r < 0 ? -1 : 0;
}

/* Those that have a port. */
static int dump_udp(int fd, const struct look *l)
{
	static const int protocols[] = {IPPROTO_UDP, IPPROTO_UDPLITE};

	for (size_t i = 0; i < 2 && !without_udp; i++)
		if (dump(fd, AF_INET, protocols[i], ALL_STATES, l) < 0 ||
		    dump(fd, AF_INET6, protocols[i], ALL_STATES, l) < 0)
			return -1;
	return 0;
}

int diag_look(int fd, uint64_t queue, diag_each *each, void *arg, struct diag_sum *ret)
{
	const struct look l = {queue, each, arg, ret};

	*ret = (struct diag_sum){0};
	return dump(fd, AF_UNIX, 0, ALL_STATES, &l) < 0 ||
			       dump(fd, AF_INET, IPPROTO_TCP, ALL_STATES, &l) < 0 ||
			       dump(fd, AF_INET6, IPPROTO_TCP, ALL_STATES, &l) < 0 ||
			       dump_udp(fd, &l) < 0
		       ? -1
		       : 0;
}

/* Each is asked for sockets in no state: where they can be listed the answer is empty, and the kernel
 * does not go through the tables of the whole machine for it. */
int diag_open(struct err *err)
{
	cleanup_close int fd =
		socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	struct diag_sum sum = {0};
	const struct look l = {.sum = &sum};

	without_udp = fd >= 0 && (dump(fd, AF_INET, IPPROTO_UDP, 0, &l) < 0 ||
				  dump(fd, AF_INET, IPPROTO_UDPLITE, 0, &l) < 0);
	if (fd < 0 || dump(fd, AF_UNIX, 0, 0, &l) < 0 ||
	    dump(fd, AF_INET, IPPROTO_TCP, 0, &l) < 0 ||
	    dump(fd, AF_INET6, IPPROTO_TCP, 0, &l) < 0)
		return err_sys_id(err, ERRID_SANDBOX_LIMIT,
				  "sockets can't be listed (unix_diag, tcp_diag)");
	return TAKE_FD(fd);
}

uint64_t diag_queue_bytes(void)
{
	cleanup_close int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int most = INT_MAX / 2, is = 0;
	socklen_t len = sizeof(is);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &most, sizeof(most)) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &is, &len) < 0 || is <= 0)
		return (uint64_t)16 << 20;
	return (uint64_t)is;
}
