/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper.
 * See room.h.
 */
#include "sandbox/keeper/room.h"

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t left_of(uint64_t limit, uint64_t is)
{
	return is < limit ? limit - is : 0;
}

struct room room_of(const struct room_seen *s)
{
	/* The two rounds are not mixed: a file may have lost its name between them. */
	uint64_t sure =
		larger(s->total + s->total_unlinked + s->given, s->partial + s->unlinked);
	uint64_t may =
		larger(s->total, s->partial) + s->unlinked + larger(s->maybe, s->given);

	return (struct room){.most = left_of(s->limit, sure),
			     .least = left_of(s->limit, larger(sure, may))};
}
