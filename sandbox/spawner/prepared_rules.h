/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the spawner.
 * The Landlock rules of the next cold job in grade floor, but for what is its own: made by the
 * spawner while it has nothing else to do, given to one keeper, used once. It is to floor what
 * the template root is to full. Two hundred system calls that nobody then waits for.
 *
 * A rule holds on to a file, not to its name. So when the rules are taken, the directories
 * that the names are in must not have changed, nor what a link among them leads to outside of
 * /usr, which is granted as a whole; where a file of /etc was replaced since, the keeper makes
 * its own.
 */
#ifndef LYCH_SANDBOX_SPAWNER_PREPARED_RULES_H
#define LYCH_SANDBOX_SPAWNER_PREPARED_RULES_H

#include "common/clock.h"
#include "common/landlock.h"

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define PREPARED_RULES_PLACES_MAX 64

/* Ended by NULL: where everything is that is granted and could be replaced (paths.h). */
extern const char *const prepared_rules_directories[];

struct prepared_rules {
	struct landlock_set rules; /* fd -1: none are ready */
	struct prepared_rules_place {
		const char *path;
		dev_t dev;
		ino_t ino; /* 0: there was none */
		struct timespec mtime;
	} place[PREPARED_RULES_PLACES_MAX]; /* directories, and what links lead to */
	unsigned n_places;
	usec_t make_at; /* USEC_INFINITY: not wanted, or there */
};

/* wanted: this spawner serves grade floor. */
void prepared_rules_init(struct prepared_rules *a, bool wanted);
/* A job starts cold. The caller owns what it gets; fd -1: none, or no longer true. */
struct landlock_set prepared_rules_take(struct prepared_rules *a);
/* Makes them when it is time. Returns when to come again, USEC_INFINITY: after a job. */
usec_t prepared_rules_turn(struct prepared_rules *a);
void prepared_rules_done(struct prepared_rules *a);

#endif
