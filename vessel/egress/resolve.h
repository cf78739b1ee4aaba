/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the egress worker.
 * Names to addresses, for a process that has confined itself: the name servers and the hosts
 * file are texts that others read (sources.h), and it needs UDP and TCP sockets and nothing else.
 *
 * A name is asked for as it is: no search list, no single label unless the hosts file has it. Both
 * A and AAAA are asked for and both must answer; every address of both must be one that may be
 * connected to (addr.h), else the whole name is refused: never "pick a good one".
 *
 * To whoever asked there is one failure, REASON_DNS, for no such name, no address, a server that
 * refuses, a time-out, a chain of more than RESOLVE_CNAMES_MAX aliases or one that loops, and
 * an answer that makes no sense.
 */
#ifndef LYCH_VESSEL_EGRESS_RESOLVE_H
#define LYCH_VESSEL_EGRESS_RESOLVE_H

#include "common/attr.h"
#include "common/clock.h"
#include "common/err.h"
#include "common/id.h"
#include "common/net/loop.h"
#include "vessel/egress/addr.h"
#include "vessel/egress/reason.h"

#define RESOLVE_CNAMES_MAX 8
#define RESOLVE_ADDRS_MAX 16
#define RESOLVE_SERVERS_MAX 3
#define RESOLVE_CACHE_MAX 128
#define RESOLVE_QUERIES_MAX 64
#define RESOLVE_TTL_MIN_USEC (5 * USEC_PER_SEC)
#define RESOLVE_TTL_MAX_USEC (300 * USEC_PER_SEC)

/* Where to ask. Plain data: it can be read in one process and used in its child. */
struct resolve_host {
	char name[254];
	struct addr addr;
};
struct resolve_config {
	struct addr server[RESOLVE_SERVERS_MAX];
	size_t n_servers;
	uint16_t port;		    /* 53 */
	struct resolve_host *hosts; /* owned */
	size_t n_hosts;
	usec_t try_usec; /* one try with one server */
	unsigned tries;	 /* rounds over all servers */
};
/* The texts of the two files, which are changed. NULL: it is refused, and no name has an answer.
 * A line that makes no sense is passed over, as everybody does. */
void resolve_config_read(struct resolve_config *c, char *resolv_conf, char *hosts);
void resolve_config_done(struct resolve_config *c);

struct resolver;
struct resolve_query;

/* config is copied. */
struct resolver *resolver_new(struct loop *l, const struct resolve_config *config);
/* From now on, also for what is asked for already; what was answered is forgotten. */
void resolver_set(struct resolver *r, const struct resolve_config *config);
void resolver_free(struct resolver *r); /* unanswered queries end without a callback */

/*
 * Exactly once, never from within resolve_start(): reason is REASON_NONE and addrs holds n > 0
 * addresses that all passed the policy; or it says why not, and n is 0. `why` is for the log
 * only.
 */
typedef void resolve_done(enum reason reason, const struct addr *addrs, size_t n,
			  const char *why, void *arg);

/*
 * name: of url.h's grammar. policy must live until the callback. NULL: too many at once
 * (RESOLVE_QUERIES_MAX). The query is gone after its callback.
 */
struct resolve_query *resolve_start(struct resolver *r, const char *name,
				    const struct addr_policy *policy, resolve_done *done,
				    void *arg) MUST_CHECK;
/* Whose it is: what comes for it is read under its note (reading.h). */
struct reading;
void resolve_whose(struct resolve_query *q, struct reading *note, job_id_t job,
		   int64_t epoch);
void resolve_cancel(struct resolve_query *q); /* no callback any more; NULL is fine */

#endif
