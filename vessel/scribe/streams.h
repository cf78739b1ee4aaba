/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the scribe.
 * The producers' streams: the last number of each, and what was written lately, by which an
 * event that is sent again is told from another one.
 */
#ifndef LYCH_VESSEL_SCRIBE_STREAMS_H
#define LYCH_VESSEL_SCRIBE_STREAMS_H

#include "vessel/scribe/line.h"

/* A repeated event is compared with what was written, this far back. A producer may have
 * fewer than this without an acknowledgement. */
#define SCRIBE_REMEMBERED 1024
/* Producers that a log may have, the scribe among them, and the streams of each whose numbers are
 * known: a new one takes the place of the one of the same producer that was silent for longest. So
 * many find room in the first record of a segment. */
#define SCRIBE_PRODUCERS_MAX 6
#define SCRIBE_STREAMS_EACH 16
#define SCRIBE_STREAMS_MAX (SCRIBE_PRODUCERS_MAX * SCRIBE_STREAMS_EACH)

struct stream_print {
	uint8_t b[8]; /* of SHA256(members): tells a repetition from another event */
};

struct stream {
	char prod[AUDIT_PROD_MAX];
	struct uuid id;
	uint64_t last;
	uint64_t since; /* the first number whose print is known */
	uint64_t used;	/* seq of its last line: the longest silent one makes room */
	struct stream_print prints[SCRIBE_REMEMBERED];
};

struct streams {
	struct stream *of[SCRIBE_STREAMS_MAX];
	size_t n;
};

void streams_done(struct streams *t);
struct stream *streams_at(const struct streams *t, size_t i); /* i below n */
struct stream *streams_find(const struct streams *t, const char *prod,
			    const struct uuid *id);
/* Found, or made; seq is that of its line. NULL and ERRID_AUDIT_EVENT: one producer too many. */
struct stream *streams_get(struct streams *t, const char *prod, const struct uuid *id,
			   uint64_t seq, struct err *err);
/* Event pseq of it is the line seq. */
void stream_remember(struct stream *s, uint64_t pseq, const char *members, size_t len,
		     uint64_t seq);
/* Is this the very event that was written as pseq? ERRID_AUDIT_ORDER: no, or nobody knows. */
MUST_CHECK int stream_judge_old(const struct stream *s, uint64_t pseq,
				const char *members, size_t len, struct err *err);

#endif
