/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * See handback.h.
 */
#include "tomb/handback.h"

#include "common/log.h"
#include "common/mem.h"

#include <stdlib.h>
#include <string.h>

/* Beside the calls of the jobs that are begun meanwhile. */
#define CALLS_MAX 8
#define AGAIN_USEC (500 * USEC_PER_MSEC)

/* One note, while the queue is told of it. */
struct call {
	struct handback *all;
	size_t number; /* 0: none */
	struct note note;
};

struct handback {
	struct loop_timer *again;
	const struct queue *queue;
	struct notes *notes;
	bool died;
	struct call call[CALLS_MAX];
	unsigned back; /* leases that the queue took */
};

static bool is_told(const struct handback *h, size_t number)
{
	for (size_t i = 0; i < CALLS_MAX; i++)
		if (h->call[i].number == number)
			return true;
	return false;
}

/* Answered, or to be asked once more. */
static void call_end(struct call *c, bool answered)
{
	struct handback *h = c->all;

	if (answered)
		notes_end(h->notes, c->number);
	explicit_bzero(c, sizeof(*c));
	loop_timer_arm(h->again, answered ? 0 : AGAIN_USEC);
}

static void released(enum queue_answer answer, const struct err *err, void *arg)
{
	struct call *c = arg;

	/* Any other answer: it was ended before, by the dead one or the reaper. */
	c->all->back += !err && answer == ANSWER_OK;
	call_end(c, !err);
}

static bool is_noted(const struct handback *h, const struct lease_key *key)
{
	const struct note *note;
	size_t number;

	for (size_t i = 0; (note = notes_left(h->notes, i, &number)); i++)
		if (note->kind == NOTE_LEASE && note->lease.job == key->job &&
		    note->lease.epoch == key->epoch)
			return true;
	return false;
}

/* What the claim brought is noted before the claim is forgotten. */
static void recalled(const struct queue_claimed *jobs, size_t n, const struct err *err,
		     void *arg)
{
	struct call *c = arg;
	struct handback *h = c->all;

	for (size_t i = 0; !err && i < n; i++)
		if (!is_noted(h, &jobs[i].key))
			notes_inherit(h->notes, &jobs[i].key);
	call_end(c, !err);
}

static void tell(struct handback *h, struct call *c, size_t number,
		 const struct note *note)
{
	const struct queue *q = h->queue;

	*c = (struct call){.all = h, .number = number, .note = *note};
	if (note->kind == NOTE_CLAIM)
		q->ops->recall(q->ctx, &c->note.boot, &c->note.claim, recalled, c);
	else
		q->ops->release(q->ctx, &c->note.lease, h->died, released, c);
}

static void on_again(void *arg)
{
	struct handback *h = arg;
	const struct note *note;
	size_t number;

	for (size_t slot = 0; slot < CALLS_MAX; slot++) {
		size_t i = 0;

		if (h->call[slot].number)
			continue;
		while ((note = notes_left(h->notes, i, &number)) && is_told(h, number))
			i++;
		if (!note)
			break;
		tell(h, &h->call[slot], number, note);
	}
	if (h->back && !notes_left(h->notes, 0, &number)) {
		log_info("handed back %u leases of a tomb that died", h->back);
		h->back = 0;
	}
}

struct handback *handback_new(struct loop *l, const struct queue *q, struct notes *n,
			      bool died)
{
	struct handback *h = xnew(struct handback);

	h->queue = q;
	h->notes = n;
	h->died = died;
	h->again = loop_timer_new(l, on_again, h);
	return h;
}

void handback_start(struct handback *h)
{
	loop_timer_arm(h->again, 0);
}

void handback_free(struct handback *h)
{
	if (!h)
		return;
	loop_timer_free(h->again);
	explicit_bzero(h, sizeof(*h));
	free(h);
}
