/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper.
 * How much disk a job uses: an incremental walk over the trees that it may
 * write, a bounded number of entries a step. Nothing is followed, no device
 * boundary is crossed, hard links count once.
 *
 * A walk costs the job time (some microseconds for ten files), so it is not made again at
 * once while nothing was added to the file system, or too little to reach the limit: what a
 * job writes is taken from the free space of its file system before it is in any file,
 * whatever it does with names. That is so where the kernel's statfs() knows of delayed
 * allocation; elsewhere, and with several trees (a file can be moved from one that counts
 * growth only), each round is walked.
 */
#ifndef LYCH_SANDBOX_KEEPER_DISK_H
#define LYCH_SANDBOX_KEEPER_DISK_H

#include "common/attr.h"
#include "common/err.h"
#include "sandbox/keeper/inode_set.h"
#include <stdbool.h>
#include <stdint.h>

#define DISK_ROOTS_MAX 16
#define DISK_DEPTH_MAX 200
#define DISK_TOO_DEEP "directories too deep to be supervised"
#define DISK_LARGE_BYTES ((uint64_t)16 << 20)
/* Of entries read at once. Not opendir(), whose 32 KiB for each directory cost a short job
 * more than all that its keeper asks the kernel at the end. */
#define DISK_BATCH_BYTES 4096
/* What a file costs beyond its blocks: a million empty files are not free. */
#define DISK_ENTRY_BYTES 256
/* Added to the file system, by whoever: below it nothing was. */
#define DISK_STILL_BYTES ((uint64_t)1 << 20)

struct disk_root {
	int fd; /* owned */
	uint64_t dev;
	bool growth; /* a tree of the user's: only what is added counts */
	bool has_base;
	uint64_t base;
};

struct disk_level {
	int fd;
	int lent; /* the mode to give back, -1: not touched */
	size_t at, len;
	_Alignas(uint64_t) char batch[DISK_BATCH_BYTES];
};

struct disk_walk {
	struct disk_root root[DISK_ROOTS_MAX];
	unsigned n_roots, at;			  /* at: the root being walked */
	struct disk_level *level[DISK_DEPTH_MAX]; /* made when first used, and kept */
	unsigned depth;
	uint64_t root_bytes;	/* of the root being walked */
	uint64_t partial;	/* of this round, roots before `at` */
	uint64_t total;		/* of the last whole round */
	bool foreign;		/* a directory on another device: nobody counts it */
	bool too_deep;		/* deeper than can be supervised */
	uint64_t used;		/* of the file system, when it was last asked */
	uint64_t grown;		/* by whoever, since the tree was added */
	uint64_t grown_round;	/* when the round that is going on began */
	uint64_t grown_whole;	/* when the last whole round began */
	bool sees_growth;	/* used and grown say something */
	bool whole;		/* there was a whole round */
	bool closed;		/* in this round: a directory that could not be opened */
	unsigned closed_rounds; /* in a row, up to the last whole one */
	struct inode_set links;
	/* Told of large files, which may lose their name: what it is, and how. */
	void (*tell)(void *arg, uint64_t dev, uint64_t ino, uint64_t bytes);
	void *tell_arg;
};

void disk_init(struct disk_walk *w);
void disk_done(struct disk_walk *w);
/* Takes fd (O_PATH is fine). */
MUST_CHECK int disk_add(struct disk_walk *w, int fd, bool growth, struct err *err);
/* Up to max_entries; true when a round was completed. */
bool disk_step(struct disk_walk *w, unsigned max_entries);
/* Leaves the round that is going on, unless what it finds is what a tree's growth counts
 * from. */
void disk_start_over(struct disk_walk *w);
/* Asks the file system how full it is. */
void disk_see_growth(struct disk_walk *w);
/* Added by whoever since the last whole round began, as of disk_see_growth(). */
uint64_t disk_added(const struct disk_walk *w);
/* `total` still holds, but for what stayed below DISK_STILL_BYTES. */
bool disk_is_still(const struct disk_walk *w);
/* There cannot be more in it: not with all that was added since the tree was (not since the
 * last round only, from which renames may have hidden something). */
bool disk_is_within(const struct disk_walk *w, uint64_t bytes);
/* Before the first entry of a round. */
bool disk_at_start(const struct disk_walk *w);
/* Seen so far in the round that is going on. */
uint64_t disk_bytes(const struct disk_walk *w);

#endif
