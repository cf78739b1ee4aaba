/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-audit.
 * The whole log, from its first line and its first seal to the last ones, and what is to be
 * said of it. Each seal is compared with the log where it was made.
 */
#ifndef LYCH_VESSEL_SCRIBE_AUDIT_READ_H
#define LYCH_VESSEL_SCRIBE_AUDIT_READ_H

#include "vessel/scribe/anchor_read.h"
#include "vessel/scribe/line.h"
#include "vessel/scribe/seal_read.h"
#include "vessel/scribe/unsealed.h"

/* The exit codes of lych-audit. */
enum audit_verdict {
	AUDIT_OK = 0,
	AUDIT_TAMPERED = 1,
	AUDIT_TRUNCATED = 2,
	AUDIT_UNSEALED =
		3, /* no seal where one is due, or keys that nobody vouches for */
	AUDIT_UNKNOWN = 4,
};

struct audit_reading;
/* What else is done with each line, or with each seal (r->seals.last) where it was made. */
struct audit_visit {
	int (*line)(const struct audit_reading *r, const struct audit_head *head,
		    const char *members, size_t len, void *arg, struct err *err);
	int (*seal)(const struct audit_reading *r, void *arg, struct err *err);
	void *arg;
};

struct audit_stream {
	char prod[AUDIT_PROD_MAX];
	struct uuid id;
	uint64_t last;
};

struct audit_reading {
	const struct seal
		*kept; /* one that lay elsewhere and must be here; may be NULL */
	struct anchor_reader *anchor; /* that were opened; the caller's */
	size_t n_anchors;
	const uint8_t
		*pin; /* NULL: the key with which the log's keys begin is believed */
	const uint64_t *known; /* such marks of the scribe that are told no more */
	size_t n_known;
	const struct audit_visit *visit; /* may be NULL */
	enum audit_verdict verdict;
	struct audit_chain chain;
	uint64_t segments, torn_bytes;
	uint64_t bad_seq; /* of the first line that is not right, 0: none is known */
	struct audit_stream *streams;
	size_t n_streams;

	struct seal_reader seals;
	bool is_ahead;	    /* seals.last is of more lines than were read */
	uint64_t met;	    /* seals that were compared */
	uint64_t sealed;    /* lines that these seal */
	struct seal newest; /* of these */
	struct merkle_hash met_hash;
	bool has_flaw; /* the newest seal is not of the lines before it */
	struct err flaw;
	uint64_t flaw_seq;
	bool pin_was_seen, kept_was_seen;
	uint64_t lost_at; /* a line that names a seal which is not there, 0: none */
	struct unsealed unsealed;
	/* the first record of the scribe that lines before it, from mark_from on, had no seal when one was due; 0: none */
	uint64_t mark_at, mark_from;
	size_t known_seen;
	/* a line that is older than the one before it, in one boot: 0: none. Only a warning, for who set
	 * the clock was perhaps its owner */
	uint64_t clock_back;
	struct uuid last_boot;
	char last_ts[RFC3339_SIZE];
};

/* What comes before `verdict` is set, the rest is 0. -1: r->verdict and *err say what is wrong. */
MUST_CHECK int audit_read(struct audit_reading *r, const char *dir, struct err *err);
void audit_reading_done(struct audit_reading *r);

#endif
