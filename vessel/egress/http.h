/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the egress worker.
 * The work of a worker that speaks to the network: requests in by the link, replies out.
 */
#ifndef LYCH_VESSEL_EGRESS_HTTP_H
#define LYCH_VESSEL_EGRESS_HTTP_H

#include "vessel/egress/addr.h"
#include "vessel/egress/egress.h"
#include "vessel/egress/redact.h"
#include "vessel/egress/resolve.h"
#include "vessel/egress/roots.h"
#include "vessel/egress/sources.h"

struct egress_http_config {
	int fd;				    /* to the vessel; becomes the callee's */
	const struct egress_portal *portal; /* NULL: the worker without a key */
	const char *credential;	     /* the header field that carries it; NULL: none */
	const struct redact *redact; /* of that credential */
	/* What the next two were made of, and when: looked at before each request. */
	const struct sources *sources;
	unsigned generation;
	struct egress_roots *roots;
	const struct resolve_config *resolve;
	/* own addresses; a portal's exact ones are in it already */
	const struct addr_policy *addresses;
	struct egress_pulse *pulse;
};

/* Until the vessel's end closes: the exit code. The process has confined itself. */
int egress_http_serve(const struct egress_http_config *cfg);

#endif
