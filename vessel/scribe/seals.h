/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the scribe.
 * The seals of the log as their one writer has them: the files "seals" and ".keys".
 *
 * Theory of operation. A private key exists for its epoch only. The seal that ends an epoch
 * names the next public key and is signed by the old private one, which is then written over,
 * in the file and in memory: who takes the machine today cannot sign yesterday's seals.
 *
 * ".keys" has two places of 512 bytes. An epoch ends in four steps, each of them on disk before
 * the next: the new key goes to the free place; the seal that names it is appended; the old
 * key's place is zeroed; its copy in memory is wiped. Whichever step a process dies at, one of
 * the two places has the key that the last whole seal asks for, and the next start goes on with
 * that one and zeroes the other. A seal of which only a part was written is cut: it binds nobody.
 *
 * A place is written over where it lies. What a file system that copies on write, or an SSD,
 * keeps of the old bytes is out of reach here.
 */
#ifndef LYCH_VESSEL_SCRIBE_SEALS_H
#define LYCH_VESSEL_SCRIBE_SEALS_H

#include "vessel/scribe/seal.h"

struct seals;

struct seals_config {
	int dirfd; /* borrowed; who has it holds the log's lock */
	const struct clock_ops *clock;
	const struct random_ops *rng;
};

/*
 * Make the files where they are not, cut an unfinished last seal, find the key that goes on.
 * ERRID_AUDIT_SEAL: no key does, or what is there is no seal; _DIR, _WRITE, ERRID_START_LIMIT.
 */
MUST_CHECK int seals_open(const struct seals_config *cfg, struct seals **ret,
			  struct err *err);
void seals_free(struct seals *s);

/* The newest, NULL before the first; with its hash (which may be NULL). */
const struct seal *seals_last(const struct seals *s, struct merkle_hash *ret_hash);
/* Keys have to begin: there is no seal yet, or a restore brought the seals without a key. */
bool seals_must_begin(const struct seals *s);
/* The first seal of new keys. */
MUST_CHECK int seals_begin(struct seals *s, const struct uuid *log,
			   const struct merkle *tree, struct err *err);
/* A seal of what the tree has; ends the epoch too if that is asked for or due. A write that
 * fails is final, as in the log. ERRID_AUDIT_WRITE. */
MUST_CHECK int seals_add(struct seals *s, const struct merkle *tree, bool ends_epoch,
			 struct err *err);
/* Of these keys. */
const uint8_t *seals_genesis(const struct seals *s);

#endif
