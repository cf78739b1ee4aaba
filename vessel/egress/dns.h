/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the egress worker.
 * Messages of RFC 1035 as a stub resolver needs them: one question out, one answer in. Pure
 * functions over bytes; the answer is hostile. What was not asked is not believed: records
 * count only when they hang on the name that was asked, by aliases in the same answer.
 */
#ifndef LYCH_VESSEL_EGRESS_DNS_H
#define LYCH_VESSEL_EGRESS_DNS_H

#include "common/attr.h"
#include "vessel/egress/addr.h"
#include <stddef.h>
#include <stdint.h>

#define DNS_QUERY_MAX 512   /* bytes that dns_query() writes at most */
#define DNS_ANSWER_MAX 8192 /* bytes of an answer that are looked at */
#define DNS_ADDRS_MAX 16    /* of one type; more is refused */
#define DNS_ALIASES_MAX 8   /* CNAMEs in a row */

enum dns_type { DNS_TYPE_A = 1, DNS_TYPE_AAAA = 28 };

/* The question for a name of url.h's grammar. Returns its length, 0 when it does not fit. */
size_t dns_query(uint16_t id, const char *name, enum dns_type type,
		 uint8_t out[DNS_QUERY_MAX]);

enum dns_verdict {
	DNS_OK,	       /* n addresses, 0 when the name has none of this type */
	DNS_FOREIGN,   /* the answer to something else: go on waiting */
	DNS_TRUNCATED, /* ask again by TCP */
	DNS_NO_NAME,
	DNS_REFUSED, /* any other code of failure: ask another server */
	DNS_LOOP,    /* aliases that loop, or too many */
	DNS_BAD,     /* malformed, or too many addresses */
};

struct dns_answer {
	struct addr addr[DNS_ADDRS_MAX];
	size_t n;
	uint32_t ttl; /* seconds, the least of what led to the addresses */
	unsigned aliases;
};

/* *ret is filled with DNS_OK only. */
enum dns_verdict dns_parse(const uint8_t *msg, size_t len, uint16_t id, const char *name,
			   enum dns_type type, struct dns_answer *ret);

#endif
