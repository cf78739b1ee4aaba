/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * What a worker read when it died, and whose that was.
 *
 * Theory of operation. A worker notes in its pulse's page whose bytes it parses
 * (common/worker/reading.h). Its end with a note there is told (on_died), if the note names
 * a job that has a call of it open or had one lately: the page is the worker's own to
 * write, so that nothing else in it is believed.
 */
#include "vessel/egress/egress_priv.h"

static bool is_recent(const struct worker *w, job_id_t job, int64_t epoch)
{
	for (unsigned i = 0; i < EGRESS_RECENT; i++)
		if (reading_is_of(&w->recent[i], job, epoch))
			return true;
	return false;
}

void egress_last_read_asked(struct worker *w, job_id_t job, int64_t epoch)
{
	if (is_recent(w, job, epoch))
		return;
	w->recent[w->next_recent++ % EGRESS_RECENT] =
		(struct reading_note){.job = job, .epoch = epoch};
}

/* A worker that is taken over writes what it likes there, but names nobody who asks nothing
 * of it, nor did lately. */
static bool reads_of_a_call(const struct worker *w, struct reading_note *ret)
{
	if (!reading_get(egress_pulse_reading(w->pulse), ret))
		return false;
	if (is_recent(w, ret->job, ret->epoch))
		return true;
	for (const struct egress_call *c = w->calls; c; c = c->next)
		if (reading_is_of(ret, c->job, c->epoch))
			return true;
	return false;
}

static void tell_died(struct worker *w, const struct reading_note *note)
{
	struct egress *e = w->egress;

	if (e->events.on_died)
		e->events.on_died(w->name, note, e->events.arg);
}

/* An end of file is its death, or a clean end, which leaves no note. One that we gave up may
 * still live. */
void egress_last_read_closed(struct worker *w, bool is_dead)
{
	struct reading_note note;

	w->suspect = (struct reading_note){0};
	if (!reads_of_a_call(w, &note))
		return;
	if (!is_dead) {
		w->suspect = note;
		return;
	}
	reading_clear(egress_pulse_reading(w->pulse));
	tell_died(w, &note);
}

/* Another one has come, so it is dead. */
void egress_last_read_next(struct worker *w)
{
	struct reading *r = egress_pulse_reading(w->pulse);
	struct reading_note note;

	if (w->suspect.job && reading_get(r, &note) &&
	    reading_is_of(&note, w->suspect.job, w->suspect.epoch))
		tell_died(w, &note);
	w->suspect = (struct reading_note){0};
	reading_clear(r);
}
