/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * What is remembered of the jobs that ask: their leases, how much is under way, what the
 * gate knows of them, and how often they were refused.
 */
#include "common/crypto/broker_key.h"
#include "common/crypto/planted.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/broker/dispatch/priv.h"
#include "vessel/broker/intents/labels.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

/* A job that has not asked for so long begins anew. */
#define JOB_IDLE_USEC (24 * 3600 * USEC_PER_SEC)
_Static_assert(QUEUE_TOMBS_MAX < DISPATCH_PARTIES, "a turn for each tomb");

static bool is_same(const struct queue_lease *a, const struct queue_lease *b)
{
	return a->job == b->job && a->epoch == b->epoch && str_eq(a->token.s, b->token.s);
}

struct dispatch_job *dispatch_job_find(struct dispatch *d, const struct queue_lease *l)
{
	for (struct dispatch_job *j = d->jobs; j; j = j->next)
		if (is_same(&j->lease, l))
			return j;
	return NULL;
}

static void job_free(struct dispatch_job *j)
{
	gate_job_free(j->gate);
	opinion_job_free(j->opinion);
	seen_by_done(&j->seen);
	free(j);
}

/* The one that asked longest ago and has nothing under way. */
static bool evict(struct dispatch *d)
{
	struct dispatch_job **oldest = NULL;

	for (struct dispatch_job **p = &d->jobs; *p; p = &(*p)->next)
		if (!dispatch_job_asks(*p) && (!oldest || (*p)->used < (*oldest)->used))
			oldest = p;
	if (!oldest)
		return false;
	struct dispatch_job *j = *oldest;

	*oldest = j->next;
	dispatch_log_number(d, j, true);
	job_free(j);
	d->n_jobs--;
	return true;
}

/* Whoever reads the environment of the job and sends it away sends that, too. */
static void plant_canary(struct dispatch_job *j)
{
	struct broker_key key;
	int r;

	broker_key_of(j->lease.job, j->lease.epoch, &j->lease.token, &key);
	r = gate_job_add_canary(j->gate, key.s, strlen(key.s), NULL);
	assert(r == 0);
	explicit_bzero(&key, sizeof(key));
}

/* One more word that its requests are searched for, whatever comes of it: an agent that tells its environment to its
 * model is not to be stopped for a word that we put there. */
static void plant(struct dispatch_job *j)
{
	struct planted planted;
	int r;

	planted_of(j->lease.job, j->lease.epoch, &j->lease.token, &planted);
	r = gate_job_add_planted(j->gate, planted.s, strlen(planted.s), NULL);
	assert(r == 0);
	explicit_bzero(&planted, sizeof(planted));
}

struct dispatch_job *dispatch_job_get(struct dispatch *d, const struct queue_lease *l)
{
	struct dispatch_job *j = dispatch_job_find(d, l);

	if (j)
		return j;
	if (d->n_jobs >= DISPATCH_JOBS_MAX && !evict(d))
		return NULL;
	j = xnew(struct dispatch_job);
	j->lease = *l;
	j->gate = gate_job_new(d->cfg.clock);
	*gate_job_turn(j->gate) =
		(struct gate_turn){.party = l->party, .job = l->job, .epoch = l->epoch};
	plant_canary(j);
	plant(j);
	j->next = d->jobs;
	d->jobs = j;
	d->n_jobs++;
	return j;
}

void dispatch_jobs_free(struct dispatch *d)
{
	while (d->jobs) {
		struct dispatch_job *j = d->jobs;

		d->jobs = j->next;
		job_free(j);
	}
	d->n_jobs = 0;
}

void dispatch_jobs_sweep(struct dispatch *d)
{
	usec_t now = dispatch_now(d);

	dispatch_log_number(d, NULL, false);
	for (struct dispatch_job **p = &d->jobs; *p;) {
		struct dispatch_job *j = *p;

		if (dispatch_job_asks(j) || now - j->used < JOB_IDLE_USEC) {
			dispatch_log_number(d, j, false);
			p = &j->next;
			continue;
		}
		*p = j->next;
		/* not when it is evicted: a window that still runs must not begin anew */
		labels_forget(d->labels, j->lease.job);
		dispatch_log_number(d, j, true);
		job_free(j);
		d->n_jobs--;
	}
}

/* By policy: a budget, a rate or a service that is away is no attempt. Names that carry
 * data are one, although their cap is a rate. */
bool dispatch_is_denial(const struct err *err)
{
	return err->code == ERR_DENIED || err->id == ERRID_BROKER_REPLAY ||
	       err->id == ERRID_FETCH_LABELS;
}

static void counted(const struct err *err UNUSED, void *arg UNUSED)
{
}

/* So many within such a time: told once in that time. */
static void pull_denials(struct dispatch *d, struct dispatch_job *j, usec_t now)
{
	const struct conf_containment *c = &d->cfg.broker->containment;
	char why[64];

	if (dispatch_act(d, TRIGGER_DENIALS) == TRIGGER_OFF ||
	    (j->signalled && now - j->signalled < c->denials_within_usec))
		return;
	j->signalled = now;
	d->fig.signals++;
	dispatch_log_denials(d, j);
	(void)snprintf(why, sizeof(why), "%u refusals within %u s", c->denials,
		       (unsigned)(c->denials_within_usec / USEC_PER_SEC));
	d->ops->trigger(d->env, TRIGGER_DENIALS, &j->lease, why);
}

void dispatch_denied(struct dispatch *d, struct dispatch_job *j)
{
	const struct conf_containment *c = &d->cfg.broker->containment;
	usec_t now = dispatch_now(d);
	usec_t *oldest = &j->denials[j->n_denials % c->denials];
	bool full = j->n_denials >= c->denials - 1;
	/* with this one there are as many as that since the slot after this one */
	usec_t first = j->denials[(j->n_denials + 1) % c->denials];

	*oldest = now;
	j->n_denials++;
	d->fig.denials++;
	d->ops->denied(d->env, j->lease.job, counted, NULL);
	if (full && now - first <= c->denials_within_usec)
		pull_denials(d, j, now);
}
