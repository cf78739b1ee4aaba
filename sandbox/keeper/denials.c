/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper and the guard.
 * The keeper writes, the guard tells. A flood finds its kind and leaves
 * one number behind.
 */
#include "sandbox/keeper/denials.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define FNV_START 2166136261u
#define FNV_PRIME 16777619u

static uint32_t hash_text(uint32_t h, const char *text)
{
	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * FNV_PRIME;
	return h;
}

static uint32_t hash_of(const struct spawn_denied *d)
{
	uint32_t h = FNV_START;

	h = (h ^ d->wall) * FNV_PRIME;
	h = (h ^ d->act) * FNV_PRIME;
	h = (h ^ (uint32_t)d->sys) * FNV_PRIME;
	return hash_text(hash_text(h, d->call), d->object);
}

static bool is_same(const struct spawn_denied *a, const struct spawn_denied *b)
{
	return a->wall == b->wall && a->act == b->act && a->sys == b->sys &&
	       strcmp(a->call, b->call) == 0 && strcmp(a->object, b->object) == 0;
}

static void drop(struct denials *l, uint32_t hash)
{
	uint32_t bit = hash % DENIALS_DROPPED_BITS;
	uint8_t mask = (uint8_t)(1u << bit % 8);

	if (l->dropped_seen[bit / 8] & mask)
		return; /* most likely the same kind again */
	l->dropped_seen[bit / 8] |= mask;
	l->dropped++;
}

/* Counts it where it is already. */
static bool counted(struct denial *list, unsigned len, const struct spawn_denied *d,
		    uint32_t hash)
{
	for (unsigned i = 0; i < len; i++) {
		if (list[i].hash != hash || !is_same(&list[i].d, d))
			continue;
		if (list[i].d.count < UINT32_MAX)
			list[i].d.count++;
		return true;
	}
	return false;
}

void denials_note(struct denials *l, const struct spawn_denied *d)
{
	/* a name looked up is told to every parent, among those that all may expect */
	bool absent = d->wall == SPAWN_WALL_ABSENT && d->act != SPAWN_ACT_CONNECT;
	uint32_t max = absent ? DENIALS_ABSENT_MAX : SPAWN_DENIED_MAX;
	struct denial *list = absent ? l->absent : l->all;
	_Atomic uint32_t *n = absent ? &l->n_absent : &l->n;
	uint32_t hash = hash_of(d), len = *n;

	if (counted(list, len, d, hash))
		return;
	if (len == max) {
		if (!absent)
			drop(l, hash);
		return;
	}
	list[len] = (struct denial){.d = *d, .hash = hash};
	*n = len + 1;
}

static uint32_t at_most(uint32_t n, uint32_t max)
{
	return n < max ? n : max;
}

void denials_tell(struct denials *l,
		  void (*send)(const struct spawn_denied *d, void *arg), void *arg)
{
	uint32_t n = at_most(l->n, SPAWN_DENIED_MAX);
	uint32_t absent = at_most(l->n_absent, DENIALS_ABSENT_MAX);

	for (uint32_t i = 0; i < absent; i++)
		send(&l->absent[i].d, arg);
	for (uint32_t i = 0; i < n; i++) {
		struct spawn_denied d = l->all[i].d;

		d.dropped = i + 1 == n ? l->dropped : 0;
		send(&d, arg);
	}
}
