/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the meter: what was filled and hidden between two looks. It has no size that anybody
 * could see, but the machine's shared memory has grown by it. What came in that time, and neither
 * objects behind descriptors nor mapped pages explain, belongs to the place that is new.
 */
#include "sandbox/hidden_priv.h"

#include <string.h>

/* Others' memory grows too: less than that is nobody's. */
#define GROWTH_BYTES ((uint64_t)4 << 20)

/* One that is hidden memory, and was not two rounds ago. */
static struct hidden_mapped *new_place(struct hidden *h)
{
	for (unsigned i = 0; i < h->n_mapped; i++) {
		struct hidden_mapped *m = &h->mapped[i];

		if (!m->file && !m->held && !hidden_among(h->was[1], h->n_was[1], m->ino))
			return m;
	}
	return NULL;
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

static void grow(struct hidden *h, uint64_t ino, uint64_t bytes)
{
	unsigned i = 0;

	while (i < h->n_grown && h->grown[i].ino != ino)
		i++;
	if (i == HIDDEN_GROWN_MAX)
		i--; /* whose it is matters little by then */
	if (i == h->n_grown)
		h->grown[h->n_grown++] = (struct hidden_grown){.ino = ino};
	h->grown[i].bytes += bytes;
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
	const struct hidden_mapped *m = new_place(h);

	if (!parked)
		h->parked_bytes = 0;
	if (growth >= GROWTH_BYTES && m)
		grow(h, m->ino, growth);
	else if (growth >= GROWTH_BYTES && may_have_grown(h, parked))
		h->parked_bytes += growth;
	mine = h->parked_bytes + grown(h);
	/* What was explained meanwhile is no guess any more. */
	mine = mine < left ? mine : left;
	sum->memory_bytes += mine;
	sum->guessed_bytes += mine;
	h->unexplained = left;
	remember_places(h, parked);
}
