/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * The head of a request on the broker's descriptor: the pure part, a fuzz target.
 */
#ifndef LYCH_TOMB_BROKER_PROXY_FLOOR_H
#define LYCH_TOMB_BROKER_PROXY_FLOOR_H

#include "common/proto/broker_proto.h"
#include "tomb/broker/proxy_priv.h"
#include "tomb/broker/proxy_routes.h"

#define FLOOR_HEADERS_MAX 32

struct floor_head {
	char id[BROKER_ID_MAX + 1];	 /* "": not even that could be read */
	const struct proxy_route *route; /* of a head that could be read */
	enum proxy_dialect dialect;
	char method[8];
	char url[INTENT_URL_MAX_BYTES + 1]; /* as in struct ask */
	char alt[32];
	struct intent_header headers[FLOOR_HEADERS_MAX];
	size_t n_headers;
	size_t body_bytes;
	char text[BROKER_HEAD_MAX]; /* of the headers */
};

/* ERRID_BROKER_FRAME, ERRID_HTTP_*, ERRID_SPEC_*. ret->id and ret->dialect are right
 * even then, as far as they could be read. */
MUST_CHECK int floor_head_parse(const char *json, size_t len, struct floor_head *ret,
				struct err *err);
/* name in lower case; NULL when absent. */
const char *floor_header(const struct floor_head *h, const char *name);

#endif
