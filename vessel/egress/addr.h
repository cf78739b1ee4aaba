/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel and the egress worker.
 * Which addresses may be connected to. Public unicast ones; and of the rest exactly those
 * that a rule of the user's names, one by one: never a range, never by a name. An address
 * of this host's own counts as not public, whatever its range.
 *
 * An IPv6 address that carries an IPv4 one (mapped, compatible, NAT64, 6to4, Teredo,
 * ISATAP) is refused: it would be another way to write the IPv4 address.
 */
#ifndef LYCH_VESSEL_EGRESS_ADDR_H
#define LYCH_VESSEL_EGRESS_ADDR_H

#include "common/addr_public.h"
#include "common/attr.h"
#include "common/err.h"
#include "vessel/egress/reason.h"
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define ADDR_TEXT_SIZE INET6_ADDRSTRLEN
#define ADDR_EXACT_MAX 32
#define ADDR_OWN_MAX 256

/* In the one canonical form only: no leading zeros, no hex, RFC 5952 for IPv6, no zone. */
MUST_CHECK int addr_parse(const char *text, struct addr *ret);
void addr_format(const struct addr *a, char out[ADDR_TEXT_SIZE]);
bool addr_eq(const struct addr *a, const struct addr *b);
/* -1: neither AF_INET nor AF_INET6. */
MUST_CHECK int addr_from_sockaddr(const struct sockaddr *sa, socklen_t len,
				  struct addr *ret, uint16_t *ret_port);
/* Returns the length. */
socklen_t addr_to_sockaddr(const struct addr *a, uint16_t port,
			   struct sockaddr_storage *ret);

struct addr_policy {
	struct addr exact[ADDR_EXACT_MAX]; /* named by rules */
	size_t n_exact;
	struct addr own[ADDR_OWN_MAX]; /* of this host's interfaces at start */
	size_t n_own;
};

/* Name one more exact address; -1 when it is not canonical or there are too many. */
MUST_CHECK int addr_policy_allow(struct addr_policy *p, const char *text,
				 struct err *err);
/*
 * Read the addresses of this host's interfaces (netlink: before the process confines
 * itself). Later ones are seen by addr_is_own_now().
 */
MUST_CHECK int addr_policy_read_own(struct addr_policy *p, struct err *err);

/* REASON_NONE: may be connected to. REASON_SELF, REASON_ADDR_PRIVATE. Asks the kernel
 * (addr_is_own_now) too. */
enum reason addr_policy_check(const struct addr_policy *p, const struct addr *a);
/* Is it one of this host's own, as the kernel sees it now? Only those can be bound to; nothing is
 * sent. In doubt it is. */
bool addr_is_own_now(const struct addr *a);

#endif
