/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * What a person does with a job: cancel it, have it tried again, remove it.
 */
#include "common/cleanup.h"
#include "common/jsonw.h"
#include "common/log.h"
#include "common/mem.h"
#include "vessel/api/api.h"

#define REPLY_MAX_BYTES 1024

static void reply_id(struct httpd_req *req, uint64_t id, const char *state)
{
	cleanup_buf struct buf out;
	struct jsonw w;

	buf_init(&out, REPLY_MAX_BYTES);
	jsonw_init(&w, &out);
	jsonw_obj(&w);
	jsonw_ku64(&w, "id", id);
	if (state)
		jsonw_kstr(&w, "state", state);
	jsonw_obj_end(&w);
	httpd_reply_json(req, 200, &out);
}

/* The act's state, with the job's number; NULL: it was refused, and answered. */
static struct api_call *begin(struct vessel *v, struct httpd_req *req)
{
	struct api_call *c;
	job_id_t id;

	if (!api_begin(v, req, NULL, &id, &c))
		return NULL;
	c->a = (uint64_t)id;
	return c;
}

static void cancel_done(enum job_state now, const struct err *err, void *arg)
{
	cleanup_free struct api_call *c = arg;

	if (err) {
		httpd_reply_err(c->req, err);
		return;
	}
	c->v->metrics.cancels++;
	events_hint(c->v->events);
	reply_id(c->req, c->a, job_state_name(now));
}

void api_jobs_cancel(struct httpd_req *req, void *arg)
{
	struct vessel *v = arg;
	struct api_call *c = begin(v, req);

	if (!c)
		return;
	queue_cancel(v->queue, (job_id_t)c->a, cancel_done, c);
}

static void retry_done(const struct err *err, void *arg)
{
	cleanup_free struct api_call *c = arg;

	if (err) {
		httpd_reply_err(c->req, err);
		return;
	}
	c->v->metrics.retries++;
	events_hint(c->v->events);
	reply_id(c->req, c->a, job_state_name(JOB_QUEUED));
}

static void retry_shown(const struct queue_job *jobs, size_t n, const struct err *err,
			void *arg)
{
	struct api_call *c = arg;
	struct err why = ERR_INIT;

	if (err || (n == 1 && stdin_check_kept(&jobs[0], &why) < 0)) {
		httpd_reply_err(c->req, err ? err : &why);
		free(c);
		return;
	}
	queue_retry(c->v->queue, (job_id_t)c->a, c->v->conf.queue_max, retry_done, c);
}

void api_jobs_retry(struct httpd_req *req, void *arg)
{
	struct vessel *v = arg;
	struct api_call *c = begin(v, req);

	if (!c)
		return;
	queue_show(v->queue, (job_id_t)c->a, retry_shown, c);
}

static void remove_done(const struct err *err, void *arg)
{
	cleanup_free struct api_call *c = arg;
	struct err why = ERR_INIT;

	if (err) {
		httpd_reply_err(c->req, err);
		return;
	}
	c->v->metrics.removals++;
	events_hint(c->v->events);
	/* the hourly sweep takes what could not go now */
	if (output_remove(c->v->output, (job_id_t)c->a, &why) < 0)
		log_err(LOG_WARN_, "remove the output of a removed job", &why);
	reply_id(c->req, c->a, NULL);
}

void api_jobs_remove(struct httpd_req *req, void *arg)
{
	struct vessel *v = arg;
	struct api_call *c = begin(v, req);

	if (!c)
		return;
	queue_remove(v->queue, (job_id_t)c->a, remove_done, c);
}
