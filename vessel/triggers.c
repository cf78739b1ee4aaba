/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See broker/triggers.h.
 */
#include "vessel/broker/triggers.h"

#include "common/cleanup.h"
#include "common/log.h"
#include "common/mem.h"
#include "vessel/api/vessel.h"
#include "vessel/audit/audit.h"
#include "vessel/audit/event.h"
#include "vessel/broker/containments.h"

#include <inttypes.h>
#include <stdio.h>

#define AGAIN_USEC (500 * USEC_PER_MSEC)
#define REASON_SIZE 200
/* More than a vessel has jobs that run; who finds no room is tried with its next signal. */
#define OPEN_MAX 4096u

/* A job that the database does not know yet to be contained. */
struct open {
	struct triggers *t;
	struct open *next;
	job_id_t job;
	bool is_asked;
	char reason[REASON_SIZE];
};

struct triggers {
	struct vessel *v;
	struct loop_timer *again;
	struct open *open;
	unsigned n_open;
	bool failed; /* logged once, until it works again */
	uint64_t pulled[CONF_TRIGGER_MAX_], contained[CONF_TRIGGER_MAX_];
};

static void take_out(struct open *o)
{
	struct open **at = &o->t->open;

	while (*at != o)
		at = &(*at)->next;
	*at = o->next;
	o->t->n_open--;
	free(o);
}

static void contained(bool is_new UNUSED, const struct err *err, void *arg)
{
	struct open *o = arg;
	struct triggers *t = o->t;
	bool is_over = !err || err->id == ERRID_RUN_NOT_FOUND;

	if (!is_over && !t->failed)
		log_err(LOG_WARN_, "contain a job by its trigger", err);
	t->failed = !is_over;
	if (!is_over) {
		o->is_asked = false;
		loop_timer_arm(t->again, AGAIN_USEC);
		return;
	}
	take_out(o);
	containments_hint(t->v->containments);
	events_hint(t->v->events);
}

static void ask(struct open *o)
{
	o->is_asked = true;
	queue_contain_as(o->t->v->queue, o->job, o->reason, contained, o);
}

static void on_again(void *arg)
{
	const struct triggers *t = arg;

	for (struct open *o = t->open, *next; o; o = next) {
		next = o->next;
		if (!o->is_asked)
			ask(o);
	}
}

/* The actor is the trigger itself. */
static void tell(const struct triggers *t, enum conf_trigger which,
		 const struct queue_lease *l, const char *reason)
{
	cleanup_buf struct buf data = {.max = AUDIT_DATA_MAX};
	cleanup_free char *actor = xasprintf("trigger:%s", conf_trigger_name(which));
	const struct clock_ops *clock = t->v->clock;
	struct audit_event e = {
		.name = "containment.triggered",
		.time_ms = clock->wall_usec(clock->ctx) / USEC_PER_MSEC,
		.actor = actor,
		.job = l->job,
		.epoch = l->epoch,
	};
	struct jsonw w;

	jsonw_init(&w, &data);
	jsonw_obj(&w);
	jsonw_kstr(&w, "trigger", conf_trigger_name(which));
	jsonw_kstr(&w, "reason", reason);
	jsonw_obj_end(&w);
	e.data = buf_str(&data);
	e.data_len = data.len;
	audit_note(t->v->audit, &e);
}

static bool is_open(const struct triggers *t, job_id_t job)
{
	for (const struct open *o = t->open; o; o = o->next)
		if (o->job == job)
			return true;
	return false;
}

void triggers_pull(struct triggers *t, enum conf_trigger which,
		   const struct queue_lease *l, const char *why)
{
	enum trigger_act act = t->v->conf.broker.containment.act[which];
	struct open *o;

	if (act == TRIGGER_OFF)
		return;
	t->pulled[which]++;
	if (act != TRIGGER_CONTAIN || is_open(t, l->job))
		return;
	if (t->n_open >= OPEN_MAX) {
		log_kv(LOG_ERROR_, "too many jobs wait to be contained", "trigger",
		       conf_trigger_name(which), NULL);
		return;
	}
	t->contained[which]++;
	o = xnew(struct open);
	*o = (struct open){.t = t, .next = t->open, .job = l->job};
	(void)snprintf(o->reason, sizeof(o->reason), TRIGGER_REASON "%s: %s",
		       conf_trigger_name(which), why);
	t->open = o;
	t->n_open++;
	tell(t, which, l, o->reason);
	ask(o);
}

void triggers_write(const struct triggers *t, struct jsonw *w)
{
	const struct conf_containment *c = &t->v->conf.broker.containment;

	jsonw_arr(w);
	for (unsigned i = 0; i < CONF_TRIGGER_MAX_; i++) {
		jsonw_obj(w);
		jsonw_kstr(w, "trigger", conf_trigger_name((enum conf_trigger)i));
		jsonw_kstr(w, "act", trigger_act_name(c->act[i]));
		jsonw_ku64(w, "pulled", t->pulled[i]);
		jsonw_ku64(w, "contained", t->contained[i]);
		jsonw_obj_end(w);
	}
	jsonw_arr_end(w);
}

struct triggers *triggers_new(struct vessel *v)
{
	struct triggers *t = xnew(struct triggers);

	t->v = v;
	t->again = loop_timer_new(v->loop, on_again, t);
	return t;
}

void triggers_free(struct triggers *t)
{
	if (!t)
		return;
	loop_timer_free(t->again);
	while (t->open)
		take_out(t->open);
	free(t);
}
