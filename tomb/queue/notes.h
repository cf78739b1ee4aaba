/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * What the next tomb needs when this one dies: the leases that it holds, and the claim whose
 * answer it has not read. They are in one file of the data directory, 0600, under the
 * directory's lock, written before anything is begun with a lease.
 *
 * What has to outlive us is a SIGKILL, not the machine: nothing is fsynced, a record is one
 * write within a page and bears a sum. A record that is missing or broken costs a wait: its
 * lease runs out.
 *
 * They are of use only to somebody who has a proof that the earlier tomb and all that it
 * started are dead (the file NOTES_GONE: ARCHITECTURE, "When a worker dies").
 */
#ifndef LYCH_TOMB_QUEUE_NOTES_H
#define LYCH_TOMB_QUEUE_NOTES_H

#include "common/attr.h"
#include "common/err.h"
#include "common/id.h"
#include "tomb/queue/queue.h"
#include <stdbool.h>
#include <stddef.h>

#define NOTES_FILE "leases"

struct notes;

enum note_kind { NOTE_NONE, NOTE_LEASE, NOTE_CLAIM };
struct note {
	enum note_kind kind;
	struct lease_key lease;	 /* NOTE_LEASE */
	struct uuid boot, claim; /* NOTE_CLAIM */
};

/* data_fd: the locked data directory, borrowed. proved: every tomb that ever ran here is dead,
 * and so is all that it started; else what earlier ones noted is dropped. */
MUST_CHECK int notes_open(int data_fd, const struct uuid *boot, bool proved,
			  struct notes **ret, struct err *err);
/* Closes the file, and leaves in it what is not ended. */
void notes_free(struct notes *n);

/* This claim is about to be sent; the one before it has been read. */
void notes_claim(struct notes *n, const struct uuid *claim);
/* The number of the note, for notes_end(); 0: it could not be written (and was logged). */
MUST_CHECK size_t notes_lease(struct notes *n, const struct lease_key *key);
void notes_end(struct notes *n, size_t number); /* 0 is fine */

/* One more lease of an earlier tomb, for notes_left(). */
void notes_inherit(struct notes *n, const struct lease_key *key);
/* What earlier tombs left and nobody has ended; the number is in *ret_number. NULL: i is
 * past the last. */
const struct note *notes_left(const struct notes *n, size_t i, size_t *ret_number);

#endif
