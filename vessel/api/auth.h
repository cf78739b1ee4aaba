/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Who speaks. On the api socket: the peer's uid is the vessel's own. On the work
 * socket: a tomb by its name and its own bearer (registered.h), at our protocol version;
 * for what concerns a job also a lease, which must be that tomb's (lease_owner.h) and whose
 * truth the database decides (work.c, door.c).
 */
#ifndef LYCH_VESSEL_API_AUTH_H
#define LYCH_VESSEL_API_AUTH_H

#include "common/attr.h"
#include "common/err.h"
#include "common/net/httpd.h"
#include "vessel/db/queue.h"

/* httpd_route.who: which principal a route serves. Exactly one bit. */
enum auth_who {
	WHO_OWNER = 1,	     /* api socket */
	WHO_TOMB = 2,	     /* work socket: a tomb's name and bearer */
	WHO_LEASE = 4,	     /* the same, and the three lease headers */
	WHO_DOOR = 16,	     /* WHO_TOMB, and the tomb claims through us */
	WHO_DOOR_LEASE = 32, /* the same, and the three lease headers */
};

struct principal {
	enum auth_who who;
	struct queue_lease lease;  /* WHO_LEASE, WHO_DOOR_LEASE; not yet checked */
	char tomb[TOMB_NAME_SIZE]; /* "" for the owner */
};

/* httpd_auth functions; arg is struct vessel. */
MUST_CHECK int auth_api(struct httpd_req *req, void *arg, struct err *err);
MUST_CHECK int auth_work(struct httpd_req *req, void *arg, struct err *err);
/* The principal that auth_* attached. */
const struct principal *auth_principal(const struct httpd_req *req);

#endif
