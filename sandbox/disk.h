/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much disk a job uses: an incremental walk over the trees that it may
 * write, a bounded number of entries a step. Nothing is followed, no device
 * boundary is crossed, hard links count once.
 */
#ifndef LYCH_SANDBOX_DISK_H
#define LYCH_SANDBOX_DISK_H

#include "common/attr.h"
#include "common/err.h"
#include "sandbox/tree.h"
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

#define DISK_ROOTS_MAX 16
#define DISK_DEPTH_MAX 200
#define DISK_LARGE_BYTES ((uint64_t)16 << 20)
/* What a file costs beyond its blocks: a million empty files are not free. */
#define DISK_ENTRY_BYTES 256

struct disk_root {
	int fd; /* owned */
	uint64_t dev;
	bool growth; /* a tree of the user's: only what is added counts */
	bool has_base;
	uint64_t base;
};

struct disk_walk {
	struct disk_root root[DISK_ROOTS_MAX];
	unsigned n_roots, at; /* at: the root being walked */
	DIR *stack[DISK_DEPTH_MAX];
	int lent[DISK_DEPTH_MAX]; /* the mode to give back, -1: not touched */
	unsigned depth;
	uint64_t root_bytes;	/* of the root being walked */
	uint64_t partial;	/* of this round, roots before `at` */
	uint64_t total;		/* of the last whole round */
	bool too_deep;		/* deeper than can be supervised */
	bool closed;		/* in this round: a directory that could not be opened */
	unsigned closed_rounds; /* in a row, up to the last whole one */
	struct inode_set links;
	struct tree *tell; /* of large files: their size when they lose their name */
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
/* Before the first entry of a round. */
bool disk_at_start(const struct disk_walk *w);
/* Seen so far in the round that is going on. */
uint64_t disk_bytes(const struct disk_walk *w);

#endif
