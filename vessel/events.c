/* SPDX-License-Identifier: Apache-2.0 */
#include "vessel/events.h"
#include "common/mem.h"

#define POLL_USEC (500 * USEC_PER_MSEC)
/* A change is told only when no older transaction is open: after a hint, ask twice. */
#define SECOND_LOOK_USEC (30 * USEC_PER_MSEC)
/* Sequence numbers are drawn before their transactions commit; one job's may even go
 * down. The poll goes back this far and tells what differs. */
#define LOOK_BACK 256

struct events_sub {
	struct events *e;
	struct events_sub *prev, *next;
	job_id_t job;
	int64_t seen;
	const struct events_callbacks *cb;
	void *arg;
};

struct events {
	struct queue *queue;
	struct loop_timer *poll, *second_look;
	struct events_sub *subs;
	size_t n_subs;
	int64_t since; /* the highest change_seq told; -1: nobody listens */
	bool asking, again;
	bool looking_back; /* the question under way */
	bool second_look_armed;
};

static void ask(struct events *e, bool look_back);

static void on_poll(void *arg)
{
	struct events *e = arg;

	if (e->n_subs == 0)
		return;
	ask(e, true);
	loop_timer_arm(e->poll, POLL_USEC);
}

static void on_second_look(void *arg)
{
	struct events *e = arg;

	e->second_look_armed = false;
	ask(e, false);
}

struct events *events_new(struct loop *l)
{
	struct events *e = xnew(struct events);

	e->since = -1;
	e->poll = loop_timer_new(l, on_poll, e);
	e->second_look = loop_timer_new(l, on_second_look, e);
	return e;
}

void events_free(struct events *e)
{
	if (!e)
		return;
	while (e->subs)
		events_unsubscribe(e->subs);
	loop_timer_free(e->poll);
	loop_timer_free(e->second_look);
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
	if (--e->n_subs == 0) {
		e->since = -1;
		loop_timer_disarm(e->poll);
	}
}

void events_seen(struct events_sub *s, int64_t change_seq)
{
	if (change_seq > s->seen)
		s->seen = change_seq;
	if (s->e->since < 0)
		s->e->since = change_seq;
}

static void tell(struct events *e, const struct queue_job *j)
{
	struct events_sub *next;

	for (struct events_sub *s = e->subs; s; s = next) {
		next = s->next;
		if (s->job != j->id || s->seen == 0 || j->change_seq == s->seen ||
		    (j->change_seq < s->seen && !e->looking_back))
			continue;
		s->seen = j->change_seq;
		s->cb->changed(j, s->arg);
	}
}

static void on_changes(const struct queue_job *jobs, size_t n, const struct err *err,
		       void *arg)
{
	struct events *e = arg;

	e->asking = false;
	if (err)
		return; /* the timer asks again */
	for (size_t i = 0; i < n; i++) {
		if (e->since >= 0 && jobs[i].change_seq > e->since)
			e->since = jobs[i].change_seq;
		tell(e, &jobs[i]);
	}
	if (e->again || n >= 500)
		ask(e, false);
}

static void ask(struct events *e, bool look_back)
{
	if (e->n_subs == 0 || e->since < 0)
		return;
	if (e->asking) {
		e->again = true;
		return;
	}
	e->asking = true;
	e->again = false;
	e->looking_back = look_back;
	int64_t since = e->since;
	if (look_back)
		since = since > LOOK_BACK ? since - LOOK_BACK : 0;
	queue_changes(e->queue, since, on_changes, e);
}

void events_hint(struct events *e)
{
	if (e->n_subs == 0)
		return;
	ask(e, false);
	if (!e->second_look_armed) {
		e->second_look_armed = true;
		loop_timer_arm(e->second_look, SECOND_LOOK_USEC);
	}
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
