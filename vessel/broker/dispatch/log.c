/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * What the dispatcher tells the audit log: the decision before the act, the end after it,
 * refusals, and the signals for containment. No text of a request is in any of it.
 */
#include "common/cleanup.h"
#include "common/str.h"
#include "vessel/broker/dispatch/priv.h"
#include <stdio.h>

struct entry {
	struct buf data;
	struct jsonw w;
	char name[48];
	struct audit_event e;
};

static void begin(struct entry *t, struct dispatch *d, const struct queue_lease *l,
		  const char *first, const char *second)
{
	(void)snprintf(t->name, sizeof(t->name), "%s.%s", first, second);
	t->e = (struct audit_event){
		.name = t->name,
		.time_ms = d->cfg.clock->wall_usec(d->cfg.clock->ctx) / USEC_PER_MSEC,
		.actor = "lych-vessel",
		.job = l ? l->job : 0,
		.epoch = l ? l->epoch : 0,
	};
	buf_init(&t->data, AUDIT_DATA_MAX);
	jsonw_init(&t->w, &t->data);
	jsonw_obj(&t->w);
}

static void end(struct entry *t)
{
	jsonw_obj_end(&t->w);
	t->e.data = buf_str(&t->data);
	t->e.data_len = t->data.len;
}

static void put_call(struct entry *t, const struct dispatch_call *c)
{
	char score[16];

	if (c->books.seq)
		jsonw_ku64(&t->w, "request", c->books.seq);
	jsonw_kstr(&t->w, "target", c->target);
	if (c->job)
		jsonw_kstr(&t->w, "identity", c->job->identity);
	if (c->verdict.number)
		jsonw_ku64(&t->w, "rule", c->verdict.number);
	if (c->verdict.number && c->verdict.rule)
		jsonw_ku64(&t->w, "line", c->verdict.rule->line);
	if (c->proposal)
		jsonw_ku64(&t->w, "proposal", c->proposal);
	c->kind->describe(c, &t->w);
	if (dispatch_is(c, IS_SCANNED)) {
		(void)snprintf(score, sizeof(score), "%.3f", c->score);
		jsonw_kstr(&t->w, "score", score);
		jsonw_kbool(&t->w, "anonymised", c->is_anonymised);
	}
}

static void put_amounts(struct entry *t, const struct budget_amounts *a)
{
	for (unsigned i = 0; i < BUDGET_THINGS_; i++)
		if (i != BUDGET_DENIALS)
			jsonw_ki64(&t->w, budget_thing_name((enum budget_thing)i),
				   a->n[i]);
}

static void put_estimate(struct entry *t, const struct dispatch_call *c)
{
	jsonw_key(&t->w, "estimate");
	jsonw_obj(&t->w);
	put_amounts(t, &c->estimate);
	jsonw_obj_end(&t->w);
}

/* What the job was told of it; and of a budget that was short, what was wanted of it. */
static void put_refusal(struct entry *t, const struct dispatch_call *c,
			const struct err *why)
{
	jsonw_kstr(&t->w, "error_code", err_text(why));
	if (err_code_info(why->code)->public_text)
		jsonw_kstr(&t->w, "detail", why->msg);
	if (err_is_set(&c->cause))
		jsonw_kstr(&t->w, "cause", c->cause.msg);
	if (why->id >= ERRID_BUDGET_REQUESTS && why->id <= ERRID_BUDGET_PACKAGES &&
	    why->id != ERRID_BUDGET_DENIALS)
		put_estimate(t, c);
}

struct audit_wait *dispatch_log_before(struct dispatch_call *c, queue_done *done,
				       struct err *err)
{
	struct audit_wait *w;
	struct entry t = {.data = {.max = 0}};

	begin(&t, c->d, &c->lease, c->kind->name, "allowed");
	put_call(&t, c);
	put_estimate(&t, c);
	jsonw_ku64(&t.w, "body_bytes", c->body.len);
	end(&t);
	w = c->d->ops->before(c->d->env, &t.e, done, c, err);
	buf_done(&t.data);
	/* the log has copied the event: what waits does not point at it */
	/* cppcheck-suppress returnDanglingLifetime */
	return w;
}

static void put_opinion(struct entry *t, const struct dispatch_call *c)
{
	jsonw_ku64(&t->w, "request", c->books.seq);
	jsonw_kstr(&t->w, "target", c->target);
	jsonw_kstr(&t->w, "classifier", opinion_portal(c->d->cfg.opinion));
}

/* What leaves for the classifier leaves the house, too, as far as the log is concerned. */
struct audit_wait *dispatch_log_opinion_before(struct dispatch_call *c, queue_done *done,
					       struct err *err)
{
	struct audit_wait *w;
	struct entry t = {.data = {.max = 0}};

	begin(&t, c->d, &c->lease, "opinion", "asked");
	put_opinion(&t, c);
	jsonw_ku64(&t.w, "bytes", opinion_ask_bytes(c->opinion));
	end(&t);
	w = c->d->ops->before(c->d->env, &t.e, done, c, err);
	buf_done(&t.data);
	/* as in dispatch_log_before() */
	/* cppcheck-suppress returnDanglingLifetime */
	return w;
}

void dispatch_log_opinion(const struct dispatch_call *c, const struct opinion_answer *a)
{
	struct entry t = {.data = {.max = 0}};
	char score[16];

	begin(&t, c->d, &c->lease, "opinion", a->err ? "failed" : "given");
	put_opinion(&t, c);
	if (a->err) {
		jsonw_kstr(&t.w, "error_code", err_text(a->err));
		jsonw_kstr(&t.w, "detail", a->err->msg);
	} else {
		(void)snprintf(score, sizeof(score), "%.3f", a->score);
		jsonw_kstr(&t.w, "opinion", score);
	}
	jsonw_ku64(&t.w, "slices", a->slices);
	jsonw_ku64(&t.w, "ms", a->took_usec / USEC_PER_MSEC);
	end(&t);
	c->d->ops->note(c->d->env, &t.e);
	buf_done(&t.data);
}

void dispatch_log_end(const struct dispatch_call *c, const struct budget_amounts *actual,
		      const struct err *why)
{
	bool is_denied = why && !dispatch_is(c, IS_RESERVED);
	struct entry t = {.data = {.max = 0}};

	begin(&t, c->d, &c->lease, c->kind->name,
	      is_denied ? "denied"
	      : why	? "failed"
			: "done");
	if (is_denied) {
		put_call(&t, c);
	} else {
		if (c->books.seq)
			jsonw_ku64(&t.w, "request", c->books.seq);
		jsonw_kstr(&t.w, "target", c->target);
	}
	if (why)
		put_refusal(&t, c, why);
	if (why && !is_denied && c->reason != REASON_NONE)
		jsonw_kstr(&t.w, "reason", reason_word(c->reason));
	if (c->status)
		jsonw_ku64(&t.w, "status", c->status);
	jsonw_kbool(&t.w, "sent", c->sent || c->hops > 0);
	jsonw_key(&t.w, "spent");
	jsonw_obj(&t.w);
	put_amounts(&t, actual);
	jsonw_obj_end(&t.w);
	jsonw_ku64(&t.w, "ms", (dispatch_now(c->d) - c->began) / USEC_PER_MSEC);
	end(&t);
	c->d->ops->note(c->d->env, &t.e);
	buf_done(&t.data);
}

/* Family and place of what was too private, never the text. */
static void put_places(struct entry *t, const struct dispatch_call *c)
{
	static const char *const kinds[GATE_PART_KIND_MAX_] = {
		[GATE_PART_TEXT] = "text",     [GATE_PART_NAME] = "name",
		[GATE_PART_NUMBER] = "number", [GATE_PART_URL] = "url",
		[GATE_PART_HEADER] = "header", [GATE_PART_ECHO] = "echo",
		[GATE_PART_GIT_FETCH] = "git", [GATE_PART_GIT_PUSH] = "git",
	};

	if (c->n_places == 0)
		return;
	jsonw_key(&t->w, "found");
	jsonw_arr(&t->w);
	for (size_t i = 0; i < c->n_places && i < DISPATCH_PLACES; i++) {
		const struct dispatch_place *p = &c->place[i];

		jsonw_obj(&t->w);
		jsonw_kstr(&t->w, "family", gate_family_info(p->family)->name);
		jsonw_kstr(&t->w, "in", kinds[p->kind]);
		jsonw_ku64(&t->w, "nth", p->nth);
		jsonw_ku64(&t->w, "offset", p->offset);
		jsonw_ku64(&t->w, "length", p->len);
		jsonw_obj_end(&t->w);
	}
	jsonw_arr_end(&t->w);
	jsonw_ku64(&t->w, "found_total", c->n_places);
}

void dispatch_log_refused(const struct dispatch_call *c, const struct err *why)
{
	struct entry t = {.data = {.max = 0}};

	begin(&t, c->d, &c->lease, c->kind->name, "denied");
	put_call(&t, c);
	put_refusal(&t, c, why);
	put_places(&t, c);
	end(&t);
	c->d->ops->note(c->d->env, &t.e);
	buf_done(&t.data);
}

void dispatch_log_denials(struct dispatch *d, const struct dispatch_job *j)
{
	struct entry t = {.data = {.max = 0}};

	begin(&t, d, &j->lease, "detection", "denials");
	jsonw_ku64(&t.w, "denials", j->n_denials);
	jsonw_ku64(&t.w, "within_seconds",
		   d->cfg.broker->containment.denials_within_usec / USEC_PER_SEC);
	jsonw_kstr(&t.w, "act", trigger_act_name(dispatch_act(d, TRIGGER_DENIALS)));
	end(&t);
	d->ops->note(d->env, &t.e);
	buf_done(&t.data);
}

void dispatch_log_unlogged(struct dispatch *d, const struct dispatch_job *j,
			   const char *first, const char *second,
			   const struct dispatch_logged *t)
{
	struct entry entry = {.data = {.max = 0}};

	begin(&entry, d, j ? &j->lease : NULL, first, second);
	if (j)
		jsonw_kstr(&entry.w, "identity", j->identity);
	jsonw_ku64(&entry.w, "not_told_one_by_one", t->unlogged);
	jsonw_ku64(&entry.w, "within_seconds",
		   (dispatch_now(d) - t->since) / USEC_PER_SEC);
	jsonw_kstr(&entry.w, "last_error_code", err_info(t->last)->text);
	end(&entry);
	d->ops->note(d->env, &entry.e);
	buf_done(&entry.data);
}

/* At most PROPOSALS_JOB_MAX of an attempt. */
void dispatch_log_proposed(const struct dispatch_call *c)
{
	struct entry t = {.data = {.max = 0}};

	begin(&t, c->d, &c->lease, "ward", "proposed");
	jsonw_ku64(&t.w, "proposal", c->proposal);
	jsonw_kstr(&t.w, "identity", c->job->identity);
	jsonw_kstr(&t.w, "method", c->ward.method);
	jsonw_kstr(&t.w, "host", c->ward.host);
	end(&t);
	c->d->ops->note(c->d->env, &t.e);
	buf_done(&t.data);
}

static void begin_canary(struct entry *t, const struct dispatch_call *c, bool is_replaced)
{
	begin(t, c->d, &c->lease, "detection", "canary");
	jsonw_ku64(&t->w, "request", c->books.seq);
	jsonw_kstr(&t->w, "target", c->target);
	jsonw_kstr(&t->w, "identity", c->job->identity);
	jsonw_kbool(&t->w, "replaced", is_replaced);
}

void dispatch_log_canary(const struct dispatch_call *c, bool is_replaced)
{
	struct entry t = {.data = {.max = 0}};

	begin_canary(&t, c, is_replaced);
	end(&t);
	c->d->ops->note(c->d->env, &t.e);
	buf_done(&t.data);
}

void dispatch_log_planted(const struct dispatch_call *c, bool is_replaced)
{
	struct entry t = {.data = {.max = 0}};

	begin_canary(&t, c, is_replaced);
	jsonw_kbool(&t.w, "planted", true);
	jsonw_kstr(&t.w, "act", trigger_act_name(dispatch_act(c->d, TRIGGER_CANARY)));
	end(&t);
	c->d->ops->note(c->d->env, &t.e);
	buf_done(&t.data);
}

void dispatch_log_odd_name(const struct dispatch_call *c, const char *host)
{
	struct entry t = {.data = {.max = 0}};

	begin(&t, c->d, &c->lease, "detection", "odd_name");
	jsonw_kstr(&t.w, "identity", c->job->identity);
	jsonw_kstr(&t.w, "below", c->verdict.rule->name);
	jsonw_kstr(&t.w, "host", host);
	end(&t);
	c->d->ops->note(c->d->env, &t.e);
	buf_done(&t.data);
}

void dispatch_log_redacted(struct dispatch *d, const char *portal, bool in_header,
			   unsigned count)
{
	struct entry t = {.data = {.max = 0}};

	begin(&t, d, NULL, "detection", "credential_echoed");
	jsonw_kstr(&t.w,
		   conf_credential_find(d->cfg.broker, portal) ? "credential" : "portal",
		   portal);
	jsonw_kbool(&t.w, "in_header", in_header);
	jsonw_ku64(&t.w, "count", count);
	end(&t);
	d->ops->note(d->env, &t.e);
	buf_done(&t.data);
}
