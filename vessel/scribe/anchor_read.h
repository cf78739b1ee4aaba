/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-audit.
 * A file of an anchor, beside the reading of the log that it anchors. Each seal that it has must be
 * in the log, and of the records that the log has; what is not is judged at the end, when the
 * keys of all epochs are known: was it signed by one of them, and what does the log have instead?
 */
#ifndef LYCH_VESSEL_SCRIBE_ANCHOR_READ_H
#define LYCH_VESSEL_SCRIBE_ANCHOR_READ_H

#include "vessel/scribe/anchor_line.h"
#include <sys/types.h>

/* What is wrong with one; of several the first of these is told. */
enum anchor_flaw {
	ANCHOR_HOLDS,
	ANCHOR_CUT_OFF,	  /* the log is shorter */
	ANCHOR_REWRITTEN, /* the log has other records */
	ANCHOR_OTHER_LOG, /* it has checkpoints of another log */
	ANCHOR_FORGED,	  /* a line that nobody's key signed, or that is none */
	ANCHOR_UNSEALED,  /* the log has the records, and not the seal */
	ANCHOR_SHORTENED, /* the log says that it had a newer one */
	ANCHOR_EMPTY,	  /* it has none, and the log says of none */
	ANCHOR_UNREAD,	  /* it can't be read, so that it tells nothing */
};

struct anchored; /* a line of it */
struct anchor_key;

struct anchor_reader {
	const char *file;	    /* borrowed */
	char name[ANCHOR_NAME_MAX]; /* "": the log can't name it */
	int fd;
	struct anchored *line; /* by size */
	size_t n, at;	       /* at: the first that the reading has not reached */
	off_t end;	       /* behind the last whole line that was read */
	uint64_t n_lines;
	struct buf odd; /* whole lines that are none, one after the other */
	uint64_t n_odd, odd_line;
	uint64_t newest;	/* records of its newest seal that the log has too */
	uint64_t promised;	/* that the log says it has */
	struct anchor_key *key; /* of the epochs of the log */
	size_t n_keys;
	struct err why; /* that it can't be read */
	/* by anchor_judge() */
	bool was_judged;
	enum anchor_flaw flaw;
	uint64_t flaw_line, flaw_size;
};

/* Read all of it; one that can't be read is judged as that. */
void anchor_reader_open(struct anchor_reader *a, const char *file);
void anchor_reader_done(struct anchor_reader *a);
/* So many records were read; called once for each size, 0 included. */
void anchor_on_tree(struct anchor_reader *a, const struct merkle *tree);
/* A seal that is right, after anchor_on_tree() for its size; hash as seal_hash() makes it. */
void anchor_on_seal(struct anchor_reader *a, const struct seal *s,
		    const struct merkle_hash *hash);
/* The members of a record of the scribe's own: what it says of anchors. */
void anchor_on_record(struct anchor_reader *a, const char *members, size_t len);
/* All was read: the log ends with so many records. Fills flaw; -1 with why when there is one.
 * ERRID_AUDIT_ANCHOR. */
MUST_CHECK int anchor_judge(struct anchor_reader *a, const struct uuid *log,
			    uint64_t records, struct err *err);
/* -1 with why once more, as anchor_judge() said it. */
MUST_CHECK int anchor_say(const struct anchor_reader *a, uint64_t records,
			  struct err *err);
const char *anchor_flaw_name(enum anchor_flaw flaw);

#endif
