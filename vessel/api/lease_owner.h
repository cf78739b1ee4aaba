/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Whose lease it is. A token is random and nobody's but its tomb's; who learned another
 * one's still can't speak for it here, as it can't at the database, where the functions
 * compare the role. An attempt's owner never changes, so it is asked for once.
 */
#ifndef LYCH_VESSEL_API_LEASE_OWNER_H
#define LYCH_VESSEL_API_LEASE_OWNER_H

#include "common/net/httpd.h"
#include "vessel/db/queue.h"

struct vessel;
struct lease_owners;

struct lease_owners *lease_owners_new(void);
void lease_owners_free(struct lease_owners *o);

typedef void lease_fn(struct vessel *v, struct httpd_req *req,
		      const struct queue_lease *l);
/* fn, with the lease of the request's principal, once it is known to be that tomb's: at
 * once, or from the loop. Else the request is refused: ERRID_RUN_DENIED. */
void lease_owned(struct vessel *v, struct httpd_req *req, lease_fn *fn);
/* The same, and it is of the attempt that runs now; ERRID_RUN_STALE, _REVOKED. */
void lease_live(struct vessel *v, struct httpd_req *req, lease_fn *fn);

#endif
