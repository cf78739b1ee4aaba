/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Whose turn it is in a line, whatever they wait for. Pure: no time, no memory of its own.
 *
 * Who waits has an account of what it was given (bytes, say). Next is who was given least; who
 * comes, or comes back after a while, begins where the others are, so that being away earns
 * nothing. Those who come new begin so too, and there may be ever more of them: who was passed
 * over TURNS_PASSED_MAX times is next whatever it was given.
 *
 *	turns_join(line, a); turns_join(line, b);
 *	next = turns_is_before(line, b, a) ? b : a;
 *	turns_serve(line, next, bytes); turns_leave(next);
 */
#ifndef LYCH_VESSEL_BROKER_GATE_TURNS_H
#define LYCH_VESSEL_BROKER_GATE_TURNS_H

#include <stdbool.h>
#include <stdint.h>

/* Others that are served while one waits: so the ones that are passed over have at least one
 * turn in so many, together. */
#define TURNS_PASSED_MAX 64u

/* Zeroed: nobody was served. */
struct turns_line {
	uint64_t at;	 /* what those have that are served now */
	uint64_t served; /* turns, of all together */
};

/* One who takes part, in one line at a time. Zeroed: it was given nothing. */
struct turns_account {
	uint64_t used;
	uint64_t since;	  /* line->served when it began to wait, or was served last */
	unsigned waiting; /* what of it waits, or is being served */
};

void turns_join(const struct turns_line *l, struct turns_account *a);
void turns_leave(struct turns_account *a);
/* x before y; false for both ways: they are equal, the one that came first is. */
bool turns_is_before(const struct turns_line *l, const struct turns_account *x,
		     const struct turns_account *y);
/* It is a's turn, and costs so much. */
void turns_serve(struct turns_line *l, struct turns_account *a, uint64_t cost);
/* What it was served last cost so much less; nobody was served since. */
void turns_give_back(struct turns_account *a, uint64_t n);

#endif
