/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the meter.
 * What was filled and hidden between two looks. It has no size that anybody
 * could see, but the machine's shared memory has grown by it. What came in that time, and neither
 * objects behind descriptors nor mapped pages explain, belongs to the place that is new.
 */
#include "sandbox/contract/shared_maps.h"
#include "sandbox/keeper/hidden_priv.h"

#include <string.h>

/* Others' memory grows too: less than that is nobody's. */
#define GROWTH_BYTES ((uint64_t)4 << 20)

/* It is hidden memory, and was not two rounds ago. */
static bool is_new(const struct hidden *h, const struct hidden_mapped *m)
{
	return !m->file && !m->held && !hidden_among(h->was[1], h->n_was[1], m->ino);
}

static void remember_places(struct hidden *h, unsigned parked)
{
	memcpy(h->was[1], h->was[0], sizeof(h->was[0]));
	h->n_was[1] = h->n_was[0];
	h->was_parked[1] = h->was_parked[0];
	h->n_was[0] = 0;
	h->was_parked[0] = parked;
	for (unsigned i = 0; i < h->n_mapped; i++)
		if (!h->mapped[i].held)
			h->was[0][h->n_was[0]++] = h->mapped[i].ino;
}

/* Of the shared memory that has come, what none of the known and the mapped explains. */
static uint64_t unexplained(const struct hidden *h, const struct hidden_missing *missing,
			    uint64_t known)
{
	uint64_t mapped = 0;

	for (unsigned i = 0; i < h->n_mapped; i++)
		if (!h->mapped[i].file && !h->mapped[i].held)
			mapped += h->mapped[i].bytes;
	return hidden_beyond(missing->shmem,
			     known + (mapped < missing->shown ? mapped : missing->shown));
}

/* Where there is no list of sockets, what is parked may hold more of them, and grow unseen. */
static bool may_have_grown(const struct hidden *h, unsigned parked)
{
	return parked > (h->diag_fd < 0 ? 0 : h->was_parked[1]);
}

static bool is_hidden(const struct hidden *h, uint64_t ino)
{
	for (unsigned i = 0; i < h->n_mapped; i++)
		if (h->mapped[i].ino == ino)
			return !h->mapped[i].held;
	return false;
}

/* Of one place. Where there are too many, whose the least of it is matters little. */
static struct hidden_grown *grown_of(struct hidden *h, uint64_t ino)
{
	struct hidden_grown *least = &h->grown[0];

	for (unsigned i = 0; i < h->n_grown; i++) {
		if (h->grown[i].ino == ino)
			return &h->grown[i];
		if (h->grown[i].bytes < least->bytes)
			least = &h->grown[i];
	}
	if (h->n_grown == HIDDEN_GROWN_MAX) {
		least->ino = ino;
		return least;
	}
	h->grown[h->n_grown] = (struct hidden_grown){.ino = ino};
	return &h->grown[h->n_grown++];
}

/* Returns what can be no part of that place: it holds no more than `most`. */
static uint64_t grow(struct hidden *h, uint64_t ino, uint64_t bytes, uint64_t most)
{
	struct hidden_grown *g = grown_of(h, ino);
	uint64_t room = hidden_beyond(most, g->bytes);
	uint64_t mine = bytes < room ? bytes : room;

	g->bytes += mine;
	return bytes - mine;
}

/* To the places that are new: first to one that can be of any size; what is made without a file
 * has at most the length that was asked for. Returns what none of them can hold. */
static uint64_t grow_new(struct hidden *h, const struct shared_most *asked,
			 uint64_t growth)
{
	const struct hidden_mapped *m;

	for (unsigned i = 0; i < h->n_mapped; i++) {
		m = &h->mapped[i];
		if (is_new(h, m) && (!asked || !m->zero))
			return grow(h, m->ino, growth, UINT64_MAX);
	}
	for (unsigned i = 0; i < h->n_mapped && growth; i++) {
		m = &h->mapped[i];
		if (is_new(h, m))
			growth = grow(h, m->ino, growth, asked->each);
	}
	return growth;
}

/* Of the places that there still are. */
static uint64_t grown(struct hidden *h)
{
	uint64_t sum = 0;
	unsigned kept = 0;

	for (unsigned i = 0; i < h->n_grown; i++) {
		if (!is_hidden(h, h->grown[i].ino))
			continue;
		sum += h->grown[i].bytes;
		h->grown[kept++] = h->grown[i];
	}
	h->n_grown = kept;
	return sum;
}

void hidden_sum_growth(struct hidden *h, const struct hidden_missing *missing,
		       unsigned parked, struct hidden_sum *sum)
{
	uint64_t left = unexplained(h, missing, sum->memory_bytes - h->socket_bytes);
	uint64_t growth = hidden_beyond(left, h->unexplained), mine;

	if (!parked)
		h->parked_bytes = 0;
	if (growth >= GROWTH_BYTES)
		growth = grow_new(h, missing->asked, growth);
	if (growth >= GROWTH_BYTES && may_have_grown(h, parked))
		h->parked_bytes += growth;
	mine = h->parked_bytes + grown(h);
	/* What was explained meanwhile is no guess any more. */
	mine = mine < left ? mine : left;
	sum->memory_bytes += mine;
	sum->guessed_bytes += mine;
	h->unexplained = left;
	remember_places(h, parked);
}
