/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * The broker of one job, as the tomb serves it: HTTP on the job's own loopback (grade
 * full) or frames on its descriptor 3 (floor), see common/proto/broker_proto.h. What the job
 * asks is parsed, judged for form and size, rebuilt as an intent, and sent over the work
 * socket with the job's lease; what the vessel answers is streamed back at the pace of
 * the job's reader. The tomb decides nothing and holds no key: it only keeps what one
 * hostile job can cost others small.
 *
 * One instance a job, from STARTED to the end of its tree. Its caps are the job's own:
 * connections and requests wait or are refused, and what a job sends in bulk is parsed
 * at a bounded rate, since all jobs of a tomb share one loop.
 */
#ifndef LYCH_TOMB_BROKER_PROXY_H
#define LYCH_TOMB_BROKER_PROXY_H

#include "common/attr.h"
#include "common/err.h"
#include "common/net/httpc.h"
#include "common/net/loop.h"
#include "common/proto.h"
#include "tomb/queue/queue.h"
#include "tomb/queue/vessel_peer.h"
#include <stdbool.h>

/* Requests of one job under way at once: with many slots each job has fewer, so that
 * none takes what another needs. */
static inline unsigned proxy_inflight(unsigned slots)
{
	unsigned n = slots > 0 ? BROKER_INFLIGHT_ALL / slots : BROKER_INFLIGHT_JOB;

	return n > BROKER_INFLIGHT_JOB ? BROKER_INFLIGHT_JOB : n;
}

struct proxy;
struct tls_job;

/* What was refused without asking the vessel, in whose log it is not: how often, by error. */
struct proxy_refused {
	uint32_t count[ERRID_MAX_];
};

struct proxy_config {
	struct loop *loop;
	struct httpc *vessel; /* the work socket; outlives the proxy */
	const struct vessel_peer *peer;
	struct lease_key key;
	const char *phantom; /* the job's key; copied */
	bool packages;	     /* egress registry */
	struct tls_job
		*tls; /* of its tunnels; NULL: there are none. Outlives the proxy */
	unsigned inflight_max;
	struct proxy_refused *refused; /* counted into; outlives the proxy */
};

/* Both take the descriptor in any case: a listening TCP socket, one end of a SEQPACKET
 * pair. */
MUST_CHECK int proxy_new_http(const struct proxy_config *cfg, int listen_fd,
			      struct proxy **ret, struct err *err);
MUST_CHECK int proxy_new_floor(const struct proxy_config *cfg, int fd, struct proxy **ret,
			       struct err *err);
/* The job has ended: what is under way is cancelled, at the vessel too. NULL is fine. */
void proxy_free(struct proxy *p);

#endif
