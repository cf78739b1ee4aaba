/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See events.h.
 */
#include "vessel/api/events.h"
#include "common/cleanup.h"
#include "common/mem.h"

/* The net below lost hints. */
#define POLL_USEC (500 * USEC_PER_MSEC)
/* Hints come with every transaction: the next question waits for so long after an answer,
 * longer the more is asked for. */
#define GAP_USEC USEC_PER_MSEC
#define GAP_EACH_USEC ((usec_t)20)

struct events_sub {
	struct events *e;
	struct events_sub *prev, *next;
	job_id_t job;
	int64_t version; /* that it has seen; 0: not known yet */
	uint64_t hints;	 /* of e, when it came */
	const struct events_callbacks *cb;
	void *arg;
};

struct events {
	struct queue *queue;
	struct loop_timer *poll, *gap;
	struct events_sub *subs;
	size_t n_subs;
	uint64_t hints;	    /* that ever came */
	bool asking, again; /* again: something may have changed since it was asked */
	bool in_gap;
};

static void ask(struct events *e);

static void on_poll(void *arg)
{
	struct events *e = arg;

	if (e->n_subs == 0)
		return;
	ask(e);
	loop_timer_arm(e->poll, POLL_USEC);
}

static void on_gap(void *arg)
{
	struct events *e = arg;

	e->in_gap = false;
	if (e->again)
		ask(e);
}

struct events *events_new(struct loop *l)
{
	struct events *e = xnew(struct events);

	e->poll = loop_timer_new(l, on_poll, e);
	e->gap = loop_timer_new(l, on_gap, e);
	return e;
}

void events_free(struct events *e)
{
	if (!e)
		return;
	while (e->subs)
		events_unsubscribe(e->subs);
	loop_timer_free(e->poll);
	loop_timer_free(e->gap);
	free(e);
}

void events_set_queue(struct events *e, struct queue *q)
{
	e->queue = q;
}

struct events_sub *events_subscribe(struct events *e, job_id_t job,
				    const struct events_callbacks *cb, void *arg)
{
	struct events_sub *s = xnew(struct events_sub);

	s->e = e;
	s->job = job;
	s->cb = cb;
	s->arg = arg;
	s->hints = e->hints;
	s->next = e->subs;
	if (s->next)
		s->next->prev = s;
	e->subs = s;
	if (e->n_subs++ == 0)
		loop_timer_arm(e->poll, POLL_USEC);
	return s;
}

void events_unsubscribe(struct events_sub *s)
{
	if (!s)
		return;
	struct events *e = s->e;

	if (s->prev)
		s->prev->next = s->next;
	else
		e->subs = s->next;
	if (s->next)
		s->next->prev = s->prev;
	free(s);
	if (--e->n_subs == 0)
		loop_timer_disarm(e->poll);
}

void events_seen(struct events_sub *s, int64_t version)
{
	if (version > s->version)
		s->version = version;
	/* What a hint told while its own question was under way was not looked for. */
	if (s->hints != s->e->hints)
		ask(s->e);
}

static void tell(struct events *e, const struct queue_job *j)
{
	struct events_sub *next;

	for (struct events_sub *s = e->subs; s; s = next) {
		next = s->next;
		if (s->job != j->id || s->version == 0 || j->version <= s->version)
			continue;
		s->version = j->version;
		s->cb->changed(j, s->arg);
	}
}

static void tell_gone(struct events *e, job_id_t job)
{
	struct events_sub *next;

	for (struct events_sub *s = e->subs; s; s = next) {
		next = s->next;
		if (s->job == job && s->version != 0)
			s->cb->gone(s->arg);
	}
}

static void looked(const struct queue_job *jobs, size_t n, const job_id_t *gone,
		   size_t n_gone, const struct err *err, void *arg)
{
	struct events *e = arg;

	e->asking = false;
	e->in_gap = true;
	loop_timer_arm(e->gap, GAP_USEC + e->n_subs * GAP_EACH_USEC);
	if (err)
		return; /* the timer asks again */
	for (size_t i = 0; i < n; i++)
		tell(e, &jobs[i]);
	for (size_t i = 0; i < n_gone; i++)
		tell_gone(e, gone[i]);
}

static void ask(struct events *e)
{
	cleanup_free struct queue_seen *seen = NULL;
	size_t n = 0;

	if (e->asking || e->in_gap) {
		e->again = true;
		return;
	}
	e->again = false;
	seen = xcalloc(e->n_subs + 1, sizeof(*seen));
	for (const struct events_sub *s = e->subs; s; s = s->next)
		if (s->version != 0)
			seen[n++] = (struct queue_seen){s->job, s->version};
	if (n == 0)
		return;
	e->asking = true;
	queue_look(e->queue, seen, n, looked, e);
}

void events_hint(struct events *e)
{
	e->hints++;
	if (e->n_subs > 0)
		ask(e);
}

void events_output(struct events *e, job_id_t job)
{
	struct events_sub *next;

	for (struct events_sub *s = e->subs; s; s = next) {
		next = s->next;
		if (s->job == job)
			s->cb->output(s->arg);
	}
}

size_t events_subscribers(const struct events *e)
{
	return e->n_subs;
}
