/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Whose turn it is at a worker of the gate.
 *
 * Theory of operation. Parties stand in a line (turns.h), and the jobs of each in one of their
 * own. Next is, of the party whose turn it is, the job whose turn it is, the question that came
 * first. The look at what was anonymised is next without a turn, since it holds its job up, and
 * is paid for all the same. A job whose question the other worker has is passed over until
 * that is answered: its questions must see each other.
 */
#include "vessel/broker/gate/lane_priv.h"

#include <assert.h>
#include <string.h>

/* Of a question without a byte. */
#define COST_MIN ((uint64_t)4096)
#define GZIP_MAGIC "\x1f\x8b"
#define GZIP_MIN_BYTES 18 /* its head and its end */
#define GZIP_SIZE_BYTES 4 /* the last ones, the least first */

static bool is_push(const struct gate_parts *p)
{
	return p->n > 0 && p->part[p->n - 1].kind == GATE_PART_GIT_PUSH;
}

size_t gate_lane_unpacks_to(const struct gate_parts *p)
{
	const struct gate_part *body = p->n > 0 ? &p->part[p->n - 1] : NULL;
	size_t n = 0;

	if (is_push(p))
		return GATE_UNPACKED_MAX_BYTES;
	if (!body || body->kind != GATE_PART_GIT_FETCH || body->len < GZIP_MIN_BYTES ||
	    memcmp(body->data, GZIP_MAGIC, 2) != 0)
		return 0;
	for (unsigned i = 1; i <= GZIP_SIZE_BYTES; i++)
		n = n << 8 | (unsigned char)body->data[body->len - i];
	return n < GATE_UNPACKED_MAX_BYTES ? n : GATE_UNPACKED_MAX_BYTES;
}

/* A person's questions have no job. */
struct gate_turn *gate_ask_turn(const struct gate_ask *a, struct gate_turn *none)
{
	*none = (struct gate_turn){0};
	return a->job ? gate_job_turn(a->job) : none;
}

static void joins(struct gate_ask *a)
{
	struct party *p;

	if (a->job) {
		struct gate_turn *t = gate_job_turn(a->job);

		p = &a->c->party[t->party];
		turns_join(&p->jobs, &t->at[a->c->which]);
		t->bytes += a->parts->bytes;
	} else {
		p = &a->c->party[0];
	}
	turns_join(&a->c->parties, &p->account);
}

static void leaves(struct gate_ask *a)
{
	unsigned party = 0;

	if (a->job) {
		struct gate_turn *t = gate_job_turn(a->job);

		party = t->party;
		turns_leave(&t->at[a->c->which]);
		t->bytes -= a->parts->bytes;
	}
	turns_leave(&a->c->party[party].account);
}

void gate_ask_forget_job(struct gate_ask *a)
{
	leaves(a);
	a->job = NULL;
	joins(a);
}

/* How much a pack unpacks to is known when it is read: it pays for all that it may be, and gets back
 * what it was not. Who hangs up has paid. */
static uint64_t cost_of(const struct gate_ask *a)
{
	return a->parts->bytes + COST_MIN + gate_lane_unpacks_to(a->parts);
}

static void pays(struct gate_ask *a)
{
	uint64_t cost = cost_of(a);
	unsigned party = 0;

	if (a->job) {
		struct gate_turn *t = gate_job_turn(a->job);

		party = t->party;
		turns_serve(&a->c->party[party].jobs, &t->at[a->c->which], cost);
	}
	turns_serve(&a->c->parties, &a->c->party[party].account, cost);
}

void gate_ask_gets_back(struct gate_ask *a, size_t unpacked)
{
	uint64_t n = GATE_UNPACKED_MAX_BYTES - unpacked;
	unsigned party = 0;

	if (a->is_cancelled || !is_push(a->parts))
		return;
	if (a->job) {
		struct gate_turn *t = gate_job_turn(a->job);

		party = t->party;
		turns_give_back(&t->at[a->c->which], n);
	}
	turns_give_back(&a->c->party[party].account, n);
}

/* Of one party they have both a job, or both none: the person's is party 0 alone. */
static bool is_before(const struct gate_ask *a, const struct gate_ask *b)
{
	struct gate_turn none_a, none_b;
	const struct gate_turn *x = gate_ask_turn(a, &none_a),
			       *y = gate_ask_turn(b, &none_b);
	struct party *party = a->c->party;

	if (x->party != y->party)
		return turns_is_before(&a->c->parties, &party[x->party].account,
				       &party[y->party].account);
	return turns_is_before(&party[x->party].jobs, &x->at[a->c->which],
			       &y->at[a->c->which]);
}

static bool may_be_read(const struct gate_ask *a)
{
	return !a->job || !gate_job_turn(a->job)->is_read;
}

static struct gate_ask *next_of(const struct gate_lane *c)
{
	struct gate_ask *best = NULL;

	if (c->first && c->first->is_again)
		return c->first;
	for (struct gate_ask *a = c->first; a; a = a->next)
		if (may_be_read(a) && (!best || is_before(a, best)))
			best = a;
	return best;
}

static void unlink_ask(struct gate_ask *a)
{
	struct gate_lane *c = a->c;
	struct gate_ask **at = &c->first, *before = NULL;

	while (*at != a) {
		assert(*at);
		before = *at;
		at = &before->next;
	}
	*at = a->next;
	if (c->last == a)
		c->last = before;
}

static void link_first(struct gate_lane *c, struct gate_ask *a)
{
	a->next = c->first;
	c->first = a;
	if (!c->last)
		c->last = a;
}

bool gate_lane_bring_forward(struct gate_lane *c)
{
	struct gate_ask *best = next_of(c);

	if (!best)
		return false;
	if (best != c->first) {
		unlink_ask(best);
		link_first(c, best);
	}
	pays(best);
	return true;
}

void gate_lane_append(struct gate_lane *c, struct gate_ask *a)
{
	a->c = c;
	a->next = NULL;
	if (c->last)
		c->last->next = a;
	else
		c->first = a;
	c->last = a;
	c->n++;
	joins(a);
}

void gate_lane_put_back(struct gate_lane *c, struct gate_ask *a)
{
	link_first(c, a);
	c->n++;
	joins(a);
}

void gate_lane_take_out(struct gate_ask *a)
{
	unlink_ask(a);
	a->c->n--;
	leaves(a);
}

void gate_lane_move(struct gate_lane *from, struct gate_job *job)
{
	struct gate_ask *next;

	for (struct gate_ask *a = from->first; a; a = next) {
		next = a->next;
		if (a->job != job || a->is_again || (a == from->first && from->at_work))
			continue;
		gate_lane_take_out(a);
		gate_lane_append(from->other, a);
		loop_timer_arm(from->other->soon, 0);
	}
}
