/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper and the meter.
 * See inode_set.h.
 */
#include "sandbox/keeper/inode_set.h"

#include "common/mem.h"

#include <stdlib.h>
#include <string.h>

void inode_set_reset(struct inode_set *s)
{
	s->n = 0;
	if (s->slot)
		memset(s->slot, 0, s->cap * sizeof(*s->slot));
}

void inode_set_done(struct inode_set *s)
{
	free(s->slot);
	*s = (struct inode_set){0};
}

static size_t inode_slot(const struct inode_set *s, uint64_t dev, uint64_t ino)
{
	uint64_t h = (ino ^ (dev << 32)) * 0x9e3779b97f4a7c15ULL;
	size_t i = (size_t)(h >> 20) & (s->cap - 1);

	while (s->slot[i].ino && (s->slot[i].ino != ino || s->slot[i].dev != dev))
		i = (i + 1) & (s->cap - 1);
	return i;
}

bool inode_set_has(const struct inode_set *s, uint64_t dev, uint64_t ino)
{
	return s->cap && s->slot[inode_slot(s, dev, ino)].ino;
}

bool inode_set_add(struct inode_set *s, uint64_t dev, uint64_t ino)
{
	size_t i;

	if (!ino)
		return true;
	if (inode_set_has(s, dev, ino))
		return false;
	if (s->n * 2 >= s->cap) {
		struct inode_set bigger = {.cap = s->cap ? s->cap * 2 : 64};

		if (s->n >= INODE_SET_MAX)
			return true;
		bigger.slot = xcalloc(bigger.cap, sizeof(*bigger.slot));
		for (size_t k = 0; k < s->cap; k++) {
			if (!s->slot[k].ino)
				continue;
			bigger.slot[inode_slot(&bigger, s->slot[k].dev, s->slot[k].ino)] =
				s->slot[k];
			bigger.n++;
		}
		free(s->slot);
		*s = bigger;
	}
	i = inode_slot(s, dev, ino);
	s->slot[i] = (struct inode_key){.dev = dev, .ino = ino};
	s->n++;
	return true;
}
