/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Whose turn it is at a worker of the gate.
 *
 * Theory of operation. Each party has an account of the bytes that it had, and so has each
 * job. Next is, of the party that had least, the job that had least, the question that came
 * first. Who comes back after a while begins where the others are.
 */
#include "vessel/broker/gate/lane_priv.h"

/* Of a question without a byte. */
#define COST_MIN ((uint64_t)4096)

/* A person's questions have no job. */
struct gate_turn *gate_ask_turn(const struct gate_ask *a, struct gate_turn *none)
{
	*none = (struct gate_turn){0};
	return a->job ? gate_job_turn(a->job) : none;
}

void gate_ask_joins(struct gate_ask *a)
{
	struct gate_turn none, *t = gate_ask_turn(a, &none);
	struct party *p = &a->c->party[t->party];

	if (p->waiting++ == 0 && p->used < a->c->parties_at)
		p->used = a->c->parties_at;
	if (t->waiting++ == 0 && t->used < p->jobs_at)
		t->used = p->jobs_at;
}

void gate_ask_leaves(struct gate_ask *a)
{
	struct gate_turn none, *t = gate_ask_turn(a, &none);

	a->c->party[t->party].waiting--;
	t->waiting--;
}

static void charge(struct gate_ask *a)
{
	struct gate_turn none, *t = gate_ask_turn(a, &none);
	struct party *p = &a->c->party[t->party];

	a->c->parties_at = p->used;
	p->jobs_at = t->used;
	p->used += a->parts->bytes + COST_MIN;
	t->used += a->parts->bytes + COST_MIN;
}

static bool is_before(const struct gate_ask *a, const struct gate_ask *b)
{
	struct gate_turn none_a, none_b;
	const struct gate_turn *x = gate_ask_turn(a, &none_a),
			       *y = gate_ask_turn(b, &none_b);

	if (x->party != y->party)
		return a->c->party[x->party].used < a->c->party[y->party].used;
	return x->used < y->used;
}

/* Whose turn it is becomes the first. */
void gate_lane_bring_forward(struct gate_lane *c)
{
	struct gate_ask *best = c->first, *before_best = NULL;

	if (!best || best->is_second)
		return;
	for (struct gate_ask *a = c->first; a->next; a = a->next) {
		if (!is_before(a->next, best))
			continue;
		best = a->next;
		before_best = a;
	}
	if (before_best) {
		before_best->next = best->next;
		if (c->last == best)
			c->last = before_best;
		best->next = c->first;
		c->first = best;
	}
	charge(best);
}

struct gate_ask *gate_lane_pop(struct gate_lane *c)
{
	struct gate_ask *a = c->first;

	c->first = a->next;
	if (!c->first)
		c->last = NULL;
	c->n--;
	gate_ask_leaves(a);
	return a;
}
