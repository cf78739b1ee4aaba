/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel and the egress parent.
 * What the vessel says to the egress parent while it runs: which workers for keys of hosts there
 * shall be, in numbered places. A packet each on the socket between them (parent.h); one that is
 * not exactly of this form is none. Fuzzed (fuzz_egress_wire).
 */
#ifndef LYCH_VESSEL_EGRESS_HOSTS_WORD_H
#define LYCH_VESSEL_EGRESS_HOSTS_WORD_H

#include "common/attr.h"
#include "common/buf.h"
#include "common/err.h"
#include "vessel/egress/hosts/portal.h"
#include <stdint.h>

#define HOST_WORD_MAX_BYTES 8192u
#define HOST_NO_PLACE 255u

struct host_word {
	unsigned place; /* which worker */
	uint32_t turn;	/* what is told of it is told with this number */
	/* A worker for host begins there; but when the one at `same` is for the very same, and its
	 * secret's file is as it was read, none is needed. */
	unsigned same; /* HOST_NO_PLACE: none to look at */
	struct egress_portal host;
	/* Instead of that: what is there ends, at once, and is not started again. */
	bool is_end;
	/* what host points at, of one that was parsed */
	const char *addresses[EGRESS_ADDRESSES_MAX];
	char *memory;
};

/* ERRID_EGRESS_REQUEST: it does not fit. */
MUST_CHECK int host_word_add(struct buf *out, const struct host_word *word,
			     struct err *err);
/* NULL: it is none of these. Names of hosts' secrets only. */
struct host_word *host_word_parse(const void *data, size_t len);
void host_word_free(struct host_word *word); /* NULL is fine */

#endif
