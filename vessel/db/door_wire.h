/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * What a tomb says on the work socket about itself and about its leases: the requests of
 * the queue's second door and of `hello`, from JSON. Pure, strict, and a fuzz target.
 */
#ifndef LYCH_VESSEL_DB_DOOR_WIRE_H
#define LYCH_VESSEL_DB_DOOR_WIRE_H

#include "common/attr.h"
#include "common/err.h"
#include "common/id.h"
#include "common/proto.h"
#include "vessel/db/queue.h"
#include <stdbool.h>
#include <stddef.h>

struct door_hello {
	enum queue_door door;
	char release[32]; /* printable ASCII */
	struct uuid boot;
	unsigned slots; /* 1..64 */
};
MUST_CHECK int door_hello_parse(const void *body, size_t len, struct door_hello *ret,
				struct err *err);

struct door_claim {
	char queue[33];
	unsigned n; /* 0..DOOR_CLAIM_MAX; 0: what this claim gave before, nothing new */
	unsigned ttl_sec;
	struct uuid boot, claim;
};
MUST_CHECK int door_claim_parse(const void *body, size_t len, struct door_claim *ret,
				struct err *err);

struct door_extend {
	struct uuid boot;
	unsigned ttl_sec;
	size_t n; /* 1..DOOR_EXTEND_MAX */
	struct queue_lease lease[DOOR_EXTEND_MAX];
};
MUST_CHECK int door_extend_parse(const void *body, size_t len, struct door_extend *ret,
				 struct err *err);

#endif
