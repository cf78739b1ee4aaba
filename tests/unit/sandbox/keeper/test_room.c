/* SPDX-License-Identifier: Apache-2.0 */
/* What a disk limit still covers: what may be others' refuses nothing, and gives nothing. */
#include "sandbox/keeper/room.h"

#include <criterion/criterion.h>

static void expect(struct room_seen s, uint64_t most, uint64_t least)
{
	struct room r;

	s.limit = 128;
	r = room_of(&s);
	cr_expect_eq(r.most, most, "most: %lu, not %lu", r.most, most);
	cr_expect_eq(r.least, least, "least: %lu, not %lu", r.least, least);
}

Test(room, what_the_job_has_leaves_none)
{
	expect((struct room_seen){.total = 129}, 0, 0);
	expect((struct room_seen){.total = 128}, 0, 0);
	expect((struct room_seen){.partial = 128}, 0, 0);
	expect((struct room_seen){.total = 100, .total_unlinked = 28, .unlinked = 28}, 0,
	       0);
	expect((struct room_seen){.total = 60, .given = 68, .maybe = 68}, 0, 0);
}

Test(room, what_may_be_others_is_neither_room_nor_taken)
{
	expect((struct room_seen){.maybe = 1000}, 128, 0);
	expect((struct room_seen){.total = 60, .maybe = 1000}, 68, 0);
	expect((struct room_seen){.total = 60, .maybe = 30}, 68, 38);
}

/* It was given, though the file system seems to have no more: another freed as much. */
Test(room, what_was_given_counts_where_others_free)
{
	expect((struct room_seen){.given = 60}, 68, 68);
	expect((struct room_seen){.total = 60, .given = 60, .maybe = 10}, 8, 8);
}

/* Found by the round that is going on, and by the one before: once. */
Test(room, nothing_counts_twice)
{
	expect((struct room_seen){.total = 60, .partial = 60}, 68, 68);
	expect((struct room_seen){.partial = 60, .given = 60, .maybe = 60}, 68, 8);
	/* It was open without a name only when the second round began. */
	expect((struct room_seen){.total = 60, .unlinked = 60}, 68, 8);
}

Test(room, an_empty_tree_leaves_all)
{
	expect((struct room_seen){0}, 128, 128);
}
