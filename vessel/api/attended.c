/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See attended.h.
 */
#include "vessel/api/attended.h"

#include "common/cleanup.h"
#include "common/log.h"
#include "common/mem.h"

#include <stdlib.h>

/* The database does not answer. */
#define AGAIN_USEC USEC_PER_SEC
#define OTHERS_MAX 100

/* A job that is attended now, or was until just now. */
struct waiter {
	struct attended *all;
	struct waiter *prev, *next;
	job_id_t job;
	unsigned streams;
	struct loop_timer *gone; /* armed while there are none */
	bool asking;		 /* the database, to abandon it */
};

struct attended {
	struct attended_world w;
	struct waiter *waiters;
	struct loop_timer *back;
};

static struct waiter *find(const struct attended *a, job_id_t job)
{
	struct waiter *w = a->waiters;

	while (w && w->job != job)
		w = w->next;
	return w;
}

static void waiter_free(struct waiter *w)
{
	if (w->prev)
		w->prev->next = w->next;
	else
		w->all->waiters = w->next;
	if (w->next)
		w->next->prev = w->prev;
	loop_timer_free(w->gone);
	free(w);
}

static void tell(struct attended *a, const job_id_t *jobs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		a->w.on_abandoned(jobs[i], a->w.arg);
}

/* A client that came back meanwhile was too late. */
static void abandoned(const job_id_t *jobs, size_t n, const struct err *err, void *arg)
{
	struct waiter *w = arg;

	w->asking = false;
	tell(w->all, jobs, n);
	if (w->streams > 0)
		return;
	if (err)
		loop_timer_arm(w->gone, AGAIN_USEC);
	else
		waiter_free(w);
}

static void on_gone(void *arg)
{
	struct waiter *w = arg;

	if (w->asking)
		return;
	/* What waited for the database could meet a client that is back. */
	if (!queue_is_up(w->all->w.queue)) {
		loop_timer_arm(w->gone, AGAIN_USEC);
		return;
	}
	w->asking = true;
	queue_abandon(w->all->w.queue, &w->job, 1, false, 1, abandoned, w);
}

static struct waiter *waiter_of(struct attended *a, job_id_t job)
{
	struct waiter *w = find(a, job);

	if (w)
		return w;
	w = xnew(struct waiter);
	w->all = a;
	w->job = job;
	w->gone = loop_timer_new(a->w.loop, on_gone, w);
	w->next = a->waiters;
	if (w->next)
		w->next->prev = w;
	a->waiters = w;
	return w;
}

void attended_seen(struct attended *a, job_id_t job)
{
	struct waiter *w = waiter_of(a, job);

	if (w->streams == 0)
		loop_timer_arm(w->gone, ATTENDED_GONE_USEC);
}

void attended_enter(struct attended *a, job_id_t job)
{
	struct waiter *w = waiter_of(a, job);

	w->streams++;
	loop_timer_disarm(w->gone);
}

void attended_leave(struct attended *a, job_id_t job)
{
	struct waiter *w = find(a, job);

	if (w && w->streams > 0 && --w->streams == 0)
		loop_timer_arm(w->gone, ATTENDED_GONE_USEC);
}

void attended_over(struct attended *a, job_id_t job)
{
	struct waiter *w = find(a, job);

	if (w && !w->asking)
		waiter_free(w);
}

/* ---- after a start -------------------------------------------------------------- */

static void others_abandoned(const job_id_t *jobs, size_t n, const struct err *err,
			     void *arg)
{
	struct attended *a = arg;

	tell(a, jobs, n);
	if (err)
		loop_timer_arm(a->back, AGAIN_USEC);
	else if (n >= OTHERS_MAX)
		loop_timer_arm(a->back, 0);
}

static void on_back(void *arg)
{
	struct attended *a = arg;
	cleanup_free job_id_t *jobs = NULL;
	size_t n = 0;

	if (!queue_is_up(a->w.queue)) {
		loop_timer_arm(a->back, AGAIN_USEC);
		return;
	}
	for (const struct waiter *w = a->waiters; w; w = w->next)
		n++;
	jobs = xcalloc(n + 1, sizeof(*jobs));
	n = 0;
	for (const struct waiter *w = a->waiters; w; w = w->next)
		jobs[n++] = w->job;
	queue_abandon(a->w.queue, jobs, n, true, OTHERS_MAX, others_abandoned, a);
}

struct attended *attended_new(const struct attended_world *w)
{
	struct attended *a = xnew(struct attended);

	a->w = *w;
	a->back = loop_timer_new(w->loop, on_back, a);
	return a;
}

void attended_begin(struct attended *a)
{
	loop_timer_arm(a->back, ATTENDED_BACK_USEC);
}

void attended_free(struct attended *a)
{
	if (!a)
		return;
	while (a->waiters)
		waiter_free(a->waiters);
	loop_timer_free(a->back);
	free(a);
}
