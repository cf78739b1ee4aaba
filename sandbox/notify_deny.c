/* SPDX-License-Identifier: Apache-2.0 */
/* What was refused: kinds, counted. A flood finds its kind and leaves one number behind. */
#include "sandbox/notify.h"

#include "common/mem.h"
#include "sandbox/tree.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#define FNV_START 2166136261u
#define FNV_PRIME 16777619u

static uint32_t hash_bytes(uint32_t h, const void *data, size_t len)
{
	const unsigned char *p = data;

	for (size_t i = 0; i < len; i++)
		h = (h ^ p[i]) * FNV_PRIME;
	return h;
}

static uint32_t hash_of(const struct spawn_denied *d)
{
	const uint32_t kind[] = {d->wall, d->act, (uint32_t)d->sys};
	uint32_t h = hash_bytes(FNV_START, kind, sizeof(kind));

	h = hash_bytes(h, d->call, strlen(d->call));
	return hash_bytes(h, d->object, strlen(d->object));
}

static bool is_same(const struct spawn_denied *a, const struct spawn_denied *b)
{
	return a->wall == b->wall && a->act == b->act && a->sys == b->sys &&
	       strcmp(a->call, b->call) == 0 && strcmp(a->object, b->object) == 0;
}

static void drop(struct notify *n, uint32_t hash)
{
	uint32_t bit = hash % NOTIFY_DROPPED_BITS;
	uint8_t mask = (uint8_t)(1u << bit % 8);

	if (n->dropped_seen[bit / 8] & mask)
		return; /* most likely the same kind again */
	n->dropped_seen[bit / 8] |= mask;
	n->dropped++;
}

void notify_record(struct notify *n, const struct seccomp_notif *req, unsigned wall,
		   unsigned act, int sys, const char *object, const char *grant)
{
	struct spawn_denied d = {
		.type = SPAWN_DENIED, .wall = wall, .act = act, .count = 1, .sys = sys};
	uint32_t hash;

	if (!n->started && !tree_has_executed(n->procs, (pid_t)req->pid))
		return;
	sc_name(req->data.nr, d.call, sizeof(d.call));
	(void)snprintf(d.object, sizeof(d.object), "%s", object);
	(void)snprintf(d.grant, sizeof(d.grant), "%s", grant);
	hash = hash_of(&d);
	for (unsigned i = 0; i < n->n_denied; i++) {
		struct notify_denial *have = &n->denied[i];

		if (have->hash != hash || !is_same(&have->d, &d))
			continue;
		if (have->d.count < UINT32_MAX)
			have->d.count++;
		return;
	}
	if (n->n_denied == SPAWN_DENIED_MAX) {
		drop(n, hash);
		return;
	}
	if (!n->denied)
		n->denied = xcalloc(SPAWN_DENIED_MAX, sizeof(*n->denied));
	n->denied[n->n_denied++] = (struct notify_denial){.d = d, .hash = hash};
}

void notify_flush(struct notify *n, void (*send)(const struct spawn_denied *d, void *arg),
		  void *arg)
{
	for (unsigned i = 0; i < n->n_denied; i++) {
		struct spawn_denied *d = &n->denied[i].d;

		if (i + 1 == n->n_denied)
			d->dropped = n->dropped;
		send(d, arg);
	}
	n->n_denied = 0;
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

/* What the registers of a refused call say; "" when its name says it all. */
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

void notify_record_call(struct notify *n, const struct seccomp_notif *req)
{
	char object[sizeof(((struct spawn_denied *)0)->object)] = "";
	unsigned act = describe(req, object, sizeof(object));

	if (notify_still_waits(n, req))
		notify_record(n, req, SPAWN_WALL_SECCOMP, act, EPERM, object, "");
}
