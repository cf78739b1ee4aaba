/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the meter.
 * See pace.h.
 */
#include "sandbox/keeper/pace.h"

#define WATCH_USEC (10 * USEC_PER_MSEC)
#define MAX_USEC (100 * USEC_PER_MSEC)
#define SLOW_USEC (250 * USEC_PER_MSEC)
#define FILL_BYTES_PER_MSEC ((uint64_t)4 << 20)
#define COST_FACTOR 10

static usec_t least_of(usec_t a, usec_t b)
{
	return a < b ? a : b;
}

usec_t pace_room_usec(uint64_t is, uint64_t limit)
{
	return is >= limit ? 0 : (limit - is) * USEC_PER_MSEC / FILL_BYTES_PER_MSEC;
}

/* Half the time in which it passes its limit when it goes on as it did since the last whole look. */
static usec_t soon_usec(const struct pace *p, uint64_t is, uint64_t limit, usec_t now)
{
	uint64_t rate = is > p->was ? (is - p->was) / (now - p->at + 1) + 1 : 0;

	if (is >= limit)
		return 0;
	return rate ? (limit - is) / 2 / rate : SLOW_USEC;
}

/* A round that is not whole goes on, and so does finding out what is shared. Looks that cost much,
 * since a hundred processes have ten thousand pipes, come seldom; but a job that has filled half of its
 * memory since the last one would be far beyond it by then. */
usec_t pace_rest_usec(struct pace *p, const struct use_sum *use, uint64_t limit,
		      usec_t start, usec_t now)
{
	uint64_t is = use->memory_bytes;
	usec_t rest = least_of(pace_room_usec(is, limit), MAX_USEC), seldom;

	p->cost += now - start;
	if (use->hurry)
		return 0;
	if (use->going || !use->settled)
		return PACE_MIN_USEC;
	if (use->watch)
		rest = least_of(rest, WATCH_USEC);
	seldom = least_of(p->cost < SLOW_USEC ? p->cost * COST_FACTOR : SLOW_USEC,
			  SLOW_USEC);
	seldom = least_of(seldom, soon_usec(p, is, limit, start));
	if (seldom > rest)
		rest = seldom;
	*p = (struct pace){.was = is, .at = start};
	return rest > PACE_MIN_USEC ? rest : PACE_MIN_USEC;
}
