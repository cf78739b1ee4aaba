/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * A fetch that a rule with protocol: git permits: what of its fields goes out, and which reply may
 * come back. Pure. The body is read by the gate worker (vessel/gate/git/git.h), never here.
 */
#ifndef LYCH_VESSEL_BROKER_INTENTS_FETCH_GIT_H
#define LYCH_VESSEL_BROKER_INTENTS_FETCH_GIT_H

#include "common/attr.h"
#include "common/err.h"
#include "common/proto/git_http.h"
#include "vessel/broker/intents/fetch.h"
#include "vessel/egress/reason.h"

/* Of a request that the ward has permitted as r. The type of its body must be r's own; Git-Protocol
 * (version 0, 1 or 2) goes out, and Content-Encoding when the body is in gzip. Errors of FETCH. */
MUST_CHECK int fetch_git_request(struct fetch *f, enum git_request r,
				 enum reason *ret_reason, struct err *err);

/*
 * Is this head one that git's server answers r with? Its repository has not moved, and what comes
 * with a 200 is of r's own type: any bytes then. Other statuses have a text, as those of any
 * server. offers: the reply's fields. Errors of FETCH.
 */
MUST_CHECK int fetch_git_reply(enum git_request r, unsigned status,
			       const struct header_offer *offers, size_t n,
			       bool *ret_any_bytes, enum reason *ret_reason,
			       struct err *err);

#endif
