/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * What a lych that was killed left behind, removed by the next one that makes such a thing.
 */
#ifndef LYCH_CLI_BASE_LITTER_H
#define LYCH_CLI_BASE_LITTER_H

#include <stdbool.h>
#include <stddef.h>

/* A name of ours: this, so many letters or digits, that. */
struct litter {
	const char *before;
	size_t letters;
	const char *after;
	bool is_dir;   /* else a regular file */
	bool is_worse; /* than what it may disturb: however new */
};

/* Removes from dir what has such a name, is the caller's own, and was not touched for an hour
 * (which no command of ours takes for it) or is_worse. No link is followed, and none is removed. What can't be
 * removed stays, without a word: it is in nobody's way. */
void litter_sweep(const char *dir, const struct litter *l);

#endif
