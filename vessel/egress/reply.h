/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the egress worker.
 * The head of a hostile reply, line by line as curl hands it out: what of it may go back,
 * and what makes the whole reply unacceptable. Pure; curl is not needed to test it.
 */
#ifndef LYCH_VESSEL_EGRESS_REPLY_H
#define LYCH_VESSEL_EGRESS_REPLY_H

#include "vessel/egress/egress.h"
#include "vessel/egress/headers.h"

#define EGRESS_REPLY_MAX_BYTES (64u << 10)
#define EGRESS_REPLY_MAX_LINES 256
#define EGRESS_REPLY_MAX_1XX 8
#define EGRESS_RETRY_AFTER_MAX 86400u

struct egress_reply {
	enum headers_for what;
	unsigned status; /* of the final reply; 0: not there yet */
	bool complete;	 /* the blank line after its head came; what follows is dropped */
	struct header *kept;
	size_t n_kept;
	char *location;	      /* the first Location field, unparsed; NULL: none */
	unsigned retry_after; /* seconds, when has_retry_after */
	bool has_retry_after;
	bool has_length, is_chunked;
	uint64_t length;	/* when has_length */
	unsigned informational; /* 1xx replies so far */
	unsigned lines;
	size_t bytes;
};

void egress_reply_begin(struct egress_reply *r, enum headers_for what);
void egress_reply_done(struct egress_reply *r);

/*
 * One line with its line break. 1: the final head is complete now; 0: go on.
 * ERRID_EGRESS_REPLY: more than 8 replies of 1xx, an upgrade, a content encoding, a
 * transfer encoding other than chunked, an ambiguous length, a folded or nameless field, too
 * much of it.
 */
MUST_CHECK int egress_reply_line(struct egress_reply *r, const char *line, size_t len,
				 struct err *err);

#endif
