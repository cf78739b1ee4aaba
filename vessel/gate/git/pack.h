/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * A pack of git's (gitformat-pack, version 2) with all that it needs: each object is unpacked, deltas
 * are applied, and the digest at its end must be right. A delta needs its base before it in the same
 * pack; one whose base is elsewhere (a thin pack) is refused, since nobody knows what it says.
 */
#ifndef LYCH_VESSEL_GATE_GIT_PACK_H
#define LYCH_VESSEL_GATE_GIT_PACK_H

#include "common/attr.h"
#include "common/crypto/sha1.h"
#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACK_OBJECTS_MAX 16384u
#define PACK_OBJECT_MAX_BYTES ((size_t)4 << 20)
/* Of all that is unpacked: objects, and what deltas say. */
#define PACK_TOTAL_MAX_BYTES ((size_t)16 << 20)
#define PACK_DEPTH_MAX 64u /* deltas upon deltas; git makes 50 */

enum pack_type { PACK_COMMIT = 1, PACK_TREE, PACK_BLOB, PACK_TAG };
const char *pack_type_name(enum pack_type t); /* "commit" */

struct pack_object {
	enum pack_type type;
	const char *data;
	size_t len;
	uint8_t id[SHA1_SIZE];
};

/* Once for each, in the order of the pack. False: no more are wanted. */
typedef bool pack_on_object(const struct pack_object *o, void *arg);

/* 0: it was read to its end, or on() had enough. ERRID_GIT_REQUEST; on() may have been called before. */
MUST_CHECK int pack_read(const void *data, size_t len, pack_on_object *on, void *arg,
			 struct err *err);

/*
 * What a delta makes of its base. *ret is allocated, at most max bytes. ERRID_GIT_REQUEST.
 */
MUST_CHECK int pack_apply(const void *base, size_t base_len, const void *delta,
			  size_t delta_len, size_t max, char **ret, size_t *ret_len,
			  struct err *err);

#endif
