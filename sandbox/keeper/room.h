/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper.
 * What the disk limit of a job still covers, between two looks at its files. Others write on the
 * same file system, and what was added to that since the last look may be theirs or the job's: so
 * there are two answers.
 */
#ifndef LYCH_SANDBOX_KEEPER_ROOM_H
#define LYCH_SANDBOX_KEEPER_ROOM_H

#include <stdint.h>

struct room_seen {
	uint64_t limit;
	uint64_t total,
		total_unlinked;	    /* by the last whole round; what had no name then */
	uint64_t partial, unlinked; /* the same of the round that is going on */
	uint64_t given; /* by fallocate(2), since the last whole round ended */
	uint64_t
		maybe; /* more than total and partial: added by whoever, or given and perhaps
			   in them already */
};

struct room {
	uint64_t most;	/* if all that is not known to be the job's is others' */
	uint64_t least; /* if all of it is the job's; never above most */
};

struct room room_of(const struct room_seen *s);

#endif
