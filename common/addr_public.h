/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * Which addresses are public. The policy is vessel/egress/addr.h's; who writes a configuration
 * asks too.
 */
#ifndef LYCH_COMMON_ADDR_PUBLIC_H
#define LYCH_COMMON_ADDR_PUBLIC_H

#include <stdbool.h>
#include <stdint.h>

struct addr {
	bool v6;
	uint8_t b[16]; /* network order; IPv4 in the first four, the rest zero */
};

/* By its number alone: is it public unicast? */
bool addr_is_public(const struct addr *a);

#endif
