/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Whose key goes where: the workers that codex.yaml's portals and credentials have, and which of
 * them a fetch goes to.
 */
#ifndef LYCH_VESSEL_BROKER_INTENTS_FETCH_KEYS_H
#define LYCH_VESSEL_BROKER_INTENTS_FETCH_KEYS_H

#include "common/conf/egress.h"
#include "vessel/broker/intents/fetch.h"
#include "vessel/broker/ward.h"
#include "vessel/egress/egress.h"

/* A worker each; how many. What they are borrows from b. */
size_t fetch_keys_portals(const struct conf_broker *b,
			  struct egress_portal ret[EGRESS_PORTALS_MAX]);
size_t fetch_keys_hosts(const struct conf_broker *b,
			struct egress_portal ret[EGRESS_HOSTS_MAX]);

/*
 * The worker (egress_request.portal) whose key goes along: the deciding rule names it, no
 * redirect left the first origin, and the URL is at the key's place or below, in whatever
 * way a server reads its path. NULL: no key. *ret_target is then what that worker takes,
 * within f.
 */
const char *fetch_key(const struct fetch *f, const struct conf_broker *b,
		      const struct ward_verdict *v, const char **ret_target);
/* The same of a URL of which the caller knows that no redirect left its origin; within u. */
const char *fetch_key_at(const struct url *u, const struct conf_broker *b,
			 const struct ward_verdict *v, const char **ret_target);

#endif
