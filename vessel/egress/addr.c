/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel and the egress worker.
 * See addr.h.
 */
#include "vessel/egress/addr.h"
#include "common/cleanup.h"
#include "common/str.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <string.h>

int addr_parse(const char *text, struct addr *ret)
{
	struct addr a = {.v6 = strchr(text, ':') != NULL};
	char back[ADDR_TEXT_SIZE];

	if (inet_pton(a.v6 ? AF_INET6 : AF_INET, text, a.b) != 1)
		return -1;
	addr_format(&a, back);
	if (!str_eq(back, text))
		return -1;
	*ret = a;
	return 0;
}

void addr_format(const struct addr *a, char out[ADDR_TEXT_SIZE])
{
	if (!inet_ntop(a->v6 ? AF_INET6 : AF_INET, a->b, out, ADDR_TEXT_SIZE))
		out[0] = '\0';
}

bool addr_eq(const struct addr *a, const struct addr *b)
{
	return a->v6 == b->v6 && memcmp(a->b, b->b, a->v6 ? 16 : 4) == 0;
}

int addr_from_sockaddr(const struct sockaddr *sa, socklen_t len, struct addr *ret,
		       uint16_t *ret_port)
{
	struct addr a = {.v6 = false};

	if (sa->sa_family == AF_INET && len >= sizeof(struct sockaddr_in)) {
		struct sockaddr_in in;

		memcpy(&in, sa, sizeof(in));
		memcpy(a.b, &in.sin_addr, 4);
		if (ret_port)
			*ret_port = ntohs(in.sin_port);
	} else if (sa->sa_family == AF_INET6 && len >= sizeof(struct sockaddr_in6)) {
		struct sockaddr_in6 in;

		memcpy(&in, sa, sizeof(in));
		a.v6 = true;
		memcpy(a.b, &in.sin6_addr, 16);
		if (ret_port)
			*ret_port = ntohs(in.sin6_port);
	} else {
		return -1;
	}
	*ret = a;
	return 0;
}

socklen_t addr_to_sockaddr(const struct addr *a, uint16_t port,
			   struct sockaddr_storage *ret)
{
	struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};

	memset(ret, 0, sizeof(*ret));
	if (a->v6) {
		memcpy(&six.sin6_addr, a->b, 16);
		memcpy(ret, &six, sizeof(six));
		return sizeof(six);
	}
	memcpy(&four.sin_addr, a->b, 4);
	memcpy(ret, &four, sizeof(four));
	return sizeof(four);
}

int addr_policy_allow(struct addr_policy *p, const char *text, struct err *err)
{
	struct addr a;

	if (addr_parse(text, &a) < 0)
		return err_set(err, ERR_INVALID,
			       "'%.60s' is no IP address in its canonical form", text);
	if (p->n_exact == ADDR_EXACT_MAX)
		return err_set(err, ERR_LIMIT, "over %d addresses are named",
			       ADDR_EXACT_MAX);
	p->exact[p->n_exact++] = a;
	return 0;
}

int addr_policy_read_own(struct addr_policy *p, struct err *err)
{
	struct ifaddrs *list = NULL;
	int r = 0;

	if (getifaddrs(&list) < 0)
		return err_sys(err, "the addresses of this host");
	for (struct ifaddrs *i = list; i; i = i->ifa_next) {
		socklen_t len;
		struct addr a;

		if (!i->ifa_addr)
			continue;
		len = i->ifa_addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
							 : sizeof(struct sockaddr_in);
		if (addr_from_sockaddr(i->ifa_addr, len, &a, NULL) < 0)
			continue;
		if (p->n_own == ADDR_OWN_MAX) {
			r = err_set(err, ERR_LIMIT, "this host has over %d addresses",
				    ADDR_OWN_MAX);
			break;
		}
		p->own[p->n_own++] = a;
	}
	freeifaddrs(list);
	return r;
}

bool addr_is_own_now(const struct addr *a)
{
	struct sockaddr_storage sa;
	socklen_t len = addr_to_sockaddr(a, 0, &sa);
	cleanup_close int fd =
		socket(a->v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return errno != EAFNOSUPPORT;
	return bind(fd, (const struct sockaddr *)&sa, len) == 0 || errno != EADDRNOTAVAIL;
}

enum reason addr_policy_check(const struct addr_policy *p, const struct addr *a)
{
	for (size_t i = 0; i < p->n_exact; i++)
		if (addr_eq(a, &p->exact[i]))
			return REASON_NONE;
	if (!addr_is_public(a))
		return REASON_ADDR_PRIVATE;
	for (size_t i = 0; i < p->n_own; i++)
		if (addr_eq(a, &p->own[i]))
			return REASON_SELF;
	return addr_is_own_now(a) ? REASON_SELF : REASON_NONE;
}
