/* SPDX-License-Identifier: Apache-2.0 */
/* Remnants of shared mappings: what is charged to them, and what others' memory never is. */
#include "sandbox/contract/meminfo.h"
#include "sandbox/contract/shared_maps.h"
#include "sandbox/keeper/hidden.h"
#include "sandbox/keeper/inode_set.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)
#define KERNELS_OWN 1 /* the device of shared memory */
#define LONG_ENOUGH_USEC 220000

/* One round in which a page of each of n objects is mapped; grown: what the machine's shared memory did
 * since the job began. */
static struct hidden_sum look(struct hidden *h, unsigned zeros, unsigned memfds,
			      uint64_t grown, const struct shared_most *asked)
{
	const struct hidden_missing missing = {
		.memory = grown, .shmem = grown, .asked = asked};
	struct inode_set held = {0};
	struct hidden_sum sum;
	char line[96];

	hidden_begin(h);
	for (unsigned i = 0; i < zeros + memfds; i++) {
		(void)snprintf(line, sizeof(line),
			       "10000-11000 rw-s 00000000 00:01 %u      %s (deleted)",
			       100 + i, i < zeros ? "/dev/zero" : "/memfd:/dev/zero");
		hidden_map(h, line, true);
		hidden_maps_end(h);
	}
	hidden_end(h, &held, &missing, &sum);
	return sum;
}

static struct hidden *fresh(void)
{
	struct err err = ERR_INIT;
	struct hidden *h = hidden_new(KERNELS_OWN, -1, -1, -1, &err);

	cr_assert_not_null(h);
	return h;
}

/* From when there are many of them, for as long as it takes. */
static struct hidden_sum settled(unsigned zeros, unsigned memfds, uint64_t before,
				 uint64_t after, const struct shared_most *asked)
{
	struct hidden *h = fresh();
	struct hidden_sum sum;

	(void)look(h, 0, 0, before, asked);
	(void)look(h, zeros, memfds, before, asked);
	(void)look(h, zeros, memfds, before, asked);
	(void)usleep(LONG_ENOUGH_USEC);
	sum = look(h, zeros, memfds, after, asked);
	hidden_free(h);
	return sum;
}

Test(remnants, hold_no_more_than_was_asked_for)
{
	const struct shared_most pages = {4096, 24 * 4096, 0},
				 some = {3 * MIB, 500 * MIB, 0},
				 once = {500 * MIB, 501 * MIB, 0};

	cr_expect_eq(settled(24, 0, 0, 900 * MIB, &pages).guessed_bytes, 16u * 4096);
	cr_expect_eq(settled(24, 0, 0, 900 * MIB, &some).guessed_bytes, 16 * 3 * MIB);
	cr_expect_eq(settled(24, 0, 0, 900 * MIB, &once).guessed_bytes, 501 * MIB);
	cr_expect_eq(settled(24, 0, 0, 900 * MIB, NULL).guessed_bytes, 16 * 32 * MIB,
		     "nobody counted what was asked for");
	cr_expect_eq(settled(24, 0, 0, 7 * MIB, &once).guessed_bytes, 7 * MIB);
}

/* Of those that nobody was told of each may have so much; also of those that there is no room to list. */
Test(remnants, are_none_of_a_system_v_segment)
{
	static const char
		attached[] =
			"10000-11000 rw-s 00000000 00:01 100   /SYSV00000000 (deleted)",
		named_so[] =
			"10000-11000 rw-s 00000000 00:01 100   /memfd:/SYSV0 (deleted)";
	struct inode_set held = {0};
	const struct hidden_missing missing = {0};
	struct hidden *h = fresh();
	struct hidden_sum sum;

	cr_expect(hidden_map_is_sysv(attached));
	cr_expect(hidden_map_is_sysv(
		"10000-11000 rw-s 00000000 00:01 32769 /SYSV4c590001 (deleted)\n"));
	cr_expect(!hidden_map_is_sysv(named_so),
		  "a memfd has any name, but for its beginning");
	cr_expect(!hidden_map_is_sysv("10000-11000 rw-p 00000000 00:00 0"));
	/* It has the number of the memfd, which is seen with its size, and no part in it. */
	hidden_begin(h);
	hidden_note(h, KERNELS_OWN, 100, 64 * MIB, HIDDEN_MEMORY);
	hidden_map(h, attached, true);
	hidden_maps_end(h);
	hidden_end(h, &held, &missing, &sum);
	cr_expect_eq(sum.memory_bytes, 0u);
	hidden_begin(h);
	hidden_map(h, named_so, true);
	hidden_maps_end(h);
	hidden_end(h, &held, &missing, &sum);
	cr_expect_eq(sum.memory_bytes, 64 * MIB - 4096);
	hidden_free(h);
}

Test(remnants, are_counted_however_many_small_ones_there_are)
{
	const struct shared_most small = {MIB / 8, 0, MIB / 8};

	cr_expect_eq(settled(24, 0, 0, 900 * MIB, &small).guessed_bytes, 2 * MIB);
	cr_expect_eq(settled(4008, 0, 0, 900 * MIB, &small).guessed_bytes, 500 * MIB);
	cr_expect_eq(settled(4000, 16, 0, 900 * MIB, &small).guessed_bytes,
		     8 * 32 * MIB + 500 * MIB, "they leave room for memfds");
}

/* They can be written without being mapped. */
Test(remnants, of_a_memfd_may_hold_more_than_was_mapped)
{
	const struct shared_most pages = {4096, 40 * 4096, 0};

	cr_expect_eq(settled(0, 24, 0, 900 * MIB, &pages).guessed_bytes, 16 * 32 * MIB);
	cr_expect_eq(settled(20, 10, 0, 900 * MIB, &pages).guessed_bytes,
		     2 * 32 * MIB + 20 * 4096u);
	cr_expect_eq(settled(20, 4, 0, 900 * MIB, &pages).guessed_bytes, 16 * 4096u,
		     "the first are free, whichever they are");
}

Test(remnants, that_are_new_are_charged_what_came_as_far_as_they_can_hold_it)
{
	const struct shared_most pages = {4096, 2 * 4096, 0},
				 large = {64 * MIB, 99 * MIB, 0};
	struct hidden *h = fresh();

	(void)look(h, 0, 0, 0, &pages);
	cr_expect_eq(look(h, 2, 0, 150 * MIB, &pages).memory_bytes, 2u * 4096);
	cr_expect_eq(look(h, 2, 0, 300 * MIB, &pages).memory_bytes, 2u * 4096,
		     "not again what they have");
	hidden_free(h);
	h = fresh();
	(void)look(h, 0, 0, 0, &large);
	cr_expect_eq(look(h, 1, 0, 150 * MIB, &large).memory_bytes, 64 * MIB);
	cr_expect_eq(look(h, 2, 0, 300 * MIB, &large).memory_bytes, 128 * MIB);
	hidden_free(h);
	h = fresh();
	(void)look(h, 0, 0, 0, &pages);
	cr_expect_eq(look(h, 2, 1, 150 * MIB, &pages).memory_bytes, 150 * MIB,
		     "it is the memfd's");
	hidden_free(h);
}

/* Whoever makes many small ones does not make room for a large one. */
Test(remnants, many_small_ones_hide_no_large_one)
{
	const struct shared_most pages = {4096, 400 * 4096, 0};
	struct hidden *h = fresh();
	uint64_t before;

	(void)look(h, 0, 0, 0, &pages);
	(void)look(h, 300, 0, 5 * MIB, &pages);
	(void)look(h, 300, 0, 5 * MIB, &pages);
	before = look(h, 300, 0, 5 * MIB, &pages).memory_bytes;
	cr_expect_geq(look(h, 300, 1, 205 * MIB, &pages).memory_bytes,
		      before + 199 * MIB);
	hidden_free(h);
}

Test(shared_maps, are_summed_and_the_longest_is_known)
{
	struct shared_maps s = {0};
	struct shared_most most;
	struct err err = ERR_INIT;
	int fd = meminfo_open(&err);

	cr_assert_geq(fd, 0);
	(void)close(fd);
	shared_maps_add(&s, 1);
	shared_maps_add(&s, 3 * MIB);
	shared_maps_add(&s, 4096);
	most = shared_maps_most(&s);
	if (!meminfo_has_huge_shmem()) {
		cr_expect_eq(most.each, 3 * MIB);
		cr_expect_eq(most.all, 3 * MIB + 2 * 4096);
		cr_expect_eq(most.small, SHARED_MAPS_SMALL);
	}
	atomic_store(&s.huge, true);
	most = shared_maps_most(&s);
	cr_expect_eq(most.each, 5 * MIB);
	cr_expect_eq(most.all, 9 * MIB + 2 * 4096);
	shared_maps_add(&s, UINT64_MAX - 5);
	shared_maps_add(&s, UINT64_MAX / 2);
	most = shared_maps_most(&s);
	cr_expect_eq(most.all, UINT64_MAX, "%zx", (size_t)most.all);
	cr_expect_eq(most.each, UINT64_MAX, "%zx", (size_t)most.each);
}

Test(shared_maps, huge_pages_are_told_by_the_kernels_word)
{
	cr_expect_not(meminfo_parse_huge("always within_size advise [never] deny force"));
	cr_expect_not(meminfo_parse_huge("always [inherit] within_size advise never"));
	cr_expect_not(meminfo_parse_huge("always within_size advise never [deny] force"));
	cr_expect(meminfo_parse_huge("always within_size [advise] never deny force"));
	cr_expect(meminfo_parse_huge("[always] inherit within_size advise never"));
	cr_expect(meminfo_parse_huge(""));
}

Test(remnants, of_a_mapping_without_a_file_are_told_by_their_whole_name)
{
	cr_expect(hidden_map_is_zero("7f00-7f10 rw-s 00000000 00:01 205       /dev/zero "
				     "(deleted)"));
	cr_expect_not(hidden_map_is_zero(
		"7f00-7f10 rw-s 00000000 00:01 205 /memfd:/dev/zero (deleted)"));
	cr_expect_not(hidden_map_is_zero(
		"7f00-7f10 rw-s 00000000 00:01 205 /memfd: /dev/zero (deleted)"));
	cr_expect_not(hidden_map_is_zero("7f00-7f10 rw-s 00000000 00:01 205 "));
	cr_expect_not(hidden_map_is_zero(""));
}
