/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel, the egress worker and the gate worker.
 * Whose is what is being parsed just now: a note in a page that
 * outlives whoever writes it, so that after a death it is known what was being read. The
 * vessel's page is a file, a worker's is shared with the vessel (pulse.h). Nothing is
 * synced: a process's death is to be survived, not the machine's.
 *
 * Around each piece of parsing and around nothing else: not around a wait, nor around what
 * the disk does. So whoever is killed from outside has a note only when it was reading, and a
 * request that is merely under way is in none. A note is a few stores; who reads one believes
 * nothing of it that does not fit together (a torn one, random bytes).
 */
#ifndef LYCH_COMMON_WORKER_READING_H
#define LYCH_COMMON_WORKER_READING_H

#include "common/attr.h"
#include "common/err.h"
#include "common/id.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum reading_what {
	READING_REQUEST, /* what a job asks for */
	READING_TEXTS,	 /* of it, what the gate reads */
	READING_REPLY,	 /* what came back for it */
	READING_MAX_
};
/* "request", "texts", "reply" */
const char *reading_word(enum reading_what what);
bool reading_from_word(const char *word, enum reading_what *ret);

struct reading_note {
	job_id_t job;
	int64_t epoch;
	enum reading_what what;
};
static inline bool reading_is_of(const struct reading_note *n, job_id_t job,
				 int64_t epoch)
{
	return n->job == job && n->epoch == epoch;
}

/* What is shared. */
struct reading_page {
	_Atomic uint64_t check; /* 0: nothing is read; written last, cleared first */
	int64_t job, epoch;
	uint64_t what;
};

struct reading {
	struct reading_page *page;
	uint64_t key;	  /* notes that were written under another one are none */
	size_t map_bytes; /* 0: the page is not ours to unmap */
};

/* Maps the file of that name, made when it is missing, 0600. What is no plain file of ours
 * alone is ERRID_START_READING, as is one that can't be made. */
MUST_CHECK int reading_open(int dirfd, const char *name, uint64_t key,
			    struct reading *ret, struct err *err);
void reading_close(struct reading *r);

/* r NULL, or no job: nothing. False: a note stands already, and stays until its own end. */
bool reading_begin(struct reading *r, job_id_t job, int64_t epoch,
		   enum reading_what what);
/* began: what reading_begin() said. */
void reading_end(struct reading *r, bool began);

/* The note of whoever died; false: there is none, or one that is none. */
MUST_CHECK bool reading_get(const struct reading *r, struct reading_note *ret);
void reading_clear(struct reading *r);

#endif
