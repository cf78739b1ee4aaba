/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * The dispatcher as a whole: where calls begin, and what is done for all of them: leases
 * that end under way, the books of vessels before this one, the end.
 *
 * Which step a call takes next says its machine (machine.h), which call.c
 * drives. What is done in each is in lease.c, _ward.c, _budget.c, _gate.c, _audit.c,
 * _act.c and _end.c.
 */
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/broker/dispatch/priv.h"
#include "vessel/broker/intents/labels.h"

static void begin(struct dispatch *d, struct httpd_req *req, const struct queue_lease *l,
		  const struct dispatch_kind *kind)
{
	bool is_known = dispatch_job_find(d, l) != NULL;

	dispatch_on(dispatch_call_new(d, req, l, kind),
		    is_known ? ON_BEGIN_KNOWN : ON_BEGIN, NULL);
}

void dispatch_ask(struct dispatch *d, struct httpd_req *req, const struct queue_lease *l)
{
	begin(d, req, l, &dispatch_kind_ask);
}

void dispatch_fetch(struct dispatch *d, struct httpd_req *req,
		    const struct queue_lease *l)
{
	begin(d, req, l, &dispatch_kind_fetch);
}

void dispatch_package(struct dispatch *d, struct httpd_req *req,
		      const struct queue_lease *l)
{
	begin(d, req, l, &dispatch_kind_package);
}

/* ---- leases that end under way; the books of others ---- */

static void on_ended(const size_t *places, size_t n, const struct err *err, void *arg)
{
	struct dispatch *d = arg;
	struct err why = ERR_INIT;

	d->is_looking = false;
	(void)err_set_id(&why, ERRID_RUN_STALE,
			 "the job was cancelled or contained, or has ended");
	for (size_t i = 0; !err && i < n; i++) {
		const struct queue_lease *l = &d->looked[places[i]];

		for (struct dispatch_call *c = d->calls, *next; c; c = next) {
			next = c->next;
			if (c->lease.job == l->job && c->lease.epoch == l->epoch &&
			    str_eq(c->lease.token.s, l->token.s)) {
				d->fig.revoked++;
				dispatch_on(c, ON_CUT, &why);
			}
		}
	}
	if (d->look_again)
		dispatch_hint(d);
}

void dispatch_hint(struct dispatch *d)
{
	size_t n = 0;

	if (!d)
		return;
	d->look_again = d->is_looking;
	if (d->is_looking)
		return;
	for (const struct dispatch_job *j = d->jobs; j && n < DISPATCH_JOBS_MAX;
	     j = j->next)
		if (dispatch_job_asks(j))
			d->looked[n++] = j->lease;
	if (n == 0)
		return;
	d->is_looking = true;
	d->ops->ended(d->env, d->looked, n, on_ended, d);
}

unsigned dispatch_cut(struct dispatch *d, job_id_t job)
{
	struct err why = ERR_INIT;
	unsigned left = 0;

	(void)err_set_id(&why, ERRID_RUN_STALE, "the job was contained");
	for (struct dispatch_call *c = d->calls, *next; c; c = next) {
		next = c->next;
		if (c->lease.job != job)
			continue;
		d->fig.revoked++;
		dispatch_on(c, ON_CUT, &why);
	}
	for (const struct dispatch_call *c = d->calls; c; c = c->next)
		left += c->lease.job == job;
	return left;
}

static void on_recovered(unsigned n, const struct err *err UNUSED, void *arg)
{
	struct dispatch *d = arg;

	d->is_recovering = false;
	d->fig.recovered += n;
	if (n > 0)
		log_info("%u requests of an earlier vessel were booked at their estimate",
			 n);
}

/* Every second: a reservation that waited for a lock while its vessel was killed comes after
 * the first look. */
static void recover(struct dispatch *d)
{
	if (d->is_recovering)
		return;
	d->is_recovering = true;
	d->ops->recover(d->env, on_recovered, d);
}

static void on_swept(unsigned n UNUSED, const struct err *err UNUSED, void *arg UNUSED)
{
}

static void on_sweep(void *arg)
{
	struct dispatch *d = arg;
	usec_t now = dispatch_now(d);

	loop_timer_arm(d->sweep, DISPATCH_SWEEP_USEC);
	if (!d->is_owned)
		return;
	recover(d);
	dispatch_hint(d);
	dispatch_jobs_sweep(d);
	if (now - d->forgot >= 60 * USEC_PER_SEC) {
		d->forgot = now;
		d->ops->sweep(d->env, on_swept, d);
	}
}

void dispatch_owned(struct dispatch *d)
{
	d->is_owned = true;
	recover(d);
}

void dispatch_redacted(struct dispatch *d, const char *portal, bool in_header,
		       unsigned count)
{
	d->fig.redactions += count;
	dispatch_log_redacted(d, portal, in_header, count);
}

void dispatch_signal(struct dispatch *d)
{
	d->fig.signals++;
}

void dispatch_stop(struct dispatch *d)
{
	struct err why = ERR_INIT;

	if (!d)
		return;
	d->is_stopping = true;
	(void)err_set_id(&why, ERRID_BROKER_STOPPING, "it was cut");
	for (struct dispatch_call *c = d->calls, *next; c; c = next) {
		next = c->next;
		/* what is answered does not wait for its turn */
		dispatch_on(c, c->machine.way == WAY_SERVED ? ON_TURN : ON_CUT, &why);
	}
	dispatch_log_number(d, NULL, true);
	for (struct dispatch_job *j = d->jobs; j; j = j->next)
		dispatch_log_number(d, j, true);
}

struct dispatch *dispatch_new(const struct dispatch_config *cfg)
{
	struct dispatch *d = xnew(struct dispatch);

	d->cfg = *cfg;
	d->ops = cfg->ops;
	d->env = cfg->ops->env;
	d->forgot = dispatch_now(d);
	for (int k = 0; k < REGISTRY_KIND_MAX_; k++)
		if (cfg->broker->registry[k].url.text)
			registry_init(&d->registry[k], (enum registry_kind)k,
				      &cfg->broker->registry[k], cfg->links_key);
	explicit_bzero(d->cfg.links_key, sizeof(d->cfg.links_key));
	d->labels = labels_new();
	d->seen = registry_seen_new();
	d->sweep = loop_timer_new(cfg->loop, on_sweep, d);
	loop_timer_arm(d->sweep, DISPATCH_SWEEP_USEC);
	return d;
}

/* The listeners are gone by now, and with them every request and stream. */
void dispatch_free(struct dispatch *d)
{
	if (!d)
		return;
	loop_timer_free(d->sweep);
	while (d->calls)
		dispatch_on(d->calls, ON_DROP, NULL);
	dispatch_settlements_free(d);
	dispatch_jobs_free(d);
	for (int k = 0; k < REGISTRY_KIND_MAX_; k++)
		registry_done(&d->registry[k]);
	labels_free(d->labels);
	registry_seen_free(d->seen);
	free(d);
}
