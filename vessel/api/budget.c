/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * GET /v1/budget: the books beside their limits.
 */
#include "vessel/broker/budget.h"
#include "common/cleanup.h"
#include "common/jsonw.h"
#include "common/str.h"
#include "vessel/api/api.h"

#define BUDGET_MAX_BYTES ((size_t)1 << 20)

void api_put_amounts(struct jsonw *w, const char *key, const struct budget_amounts *a)
{
	jsonw_key(w, key);
	jsonw_obj(w);
	for (unsigned i = 0; i < BUDGET_THINGS_; i++) {
		jsonw_key(w, budget_thing_name((enum budget_thing)i));
		if (a->n[i] == BUDGET_NO_LIMIT)
			jsonw_null(w);
		else
			jsonw_i64(w, a->n[i]);
	}
	jsonw_obj_end(w);
}

static void put_row(struct jsonw *w, const struct budget_row *r,
		    const struct budget_limits *limits)
{
	unsigned scope = str_eq(r->scope, "job")	? 0
			 : str_eq(r->scope, "identity") ? 1
							: 2;

	jsonw_obj(w);
	jsonw_kstr(w, "scope", r->scope);
	jsonw_kstr(w, "key", r->key);
	jsonw_kstr(w, "day", scope == BUDGET_JOB ? NULL : r->day);
	api_put_amounts(w, "spent", &r->spent);
	api_put_amounts(w, "reserved", &r->reserved);
	api_put_amounts(w, "limit", &limits->scope[scope]);
	jsonw_obj_end(w);
}

static bool has_book_of_a_job(const struct budget_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(rows[i].scope, "job"))
			return true;
	return false;
}

/* c->flag: no job has the id that was asked for. */
static void shown(const struct budget_row *rows, size_t n, const struct err *err,
		  void *arg)
{
	cleanup_free struct api_call *c = arg;
	cleanup_buf struct buf out = {0};
	struct err missing = ERR_INIT;
	struct budget_limits limits;
	struct jsonw w;

	if (!err && c->flag && !has_book_of_a_job(rows, n)) {
		(void)err_set_id(&missing, ERRID_RUN_NOT_FOUND, "no such job");
		err = &missing;
	}
	if (err) {
		httpd_reply_err(c->req, err);
		return;
	}
	budget_limits_of(&c->v->conf.broker, &limits);
	buf_init(&out, BUDGET_MAX_BYTES);
	jsonw_init(&w, &out);
	jsonw_obj(&w);
	jsonw_key(&w, "limits");
	jsonw_obj(&w);
	for (unsigned s = 0; s < BUDGET_SCOPES; s++)
		api_put_amounts(&w, budget_scope_name((enum budget_scope)s),
				&limits.scope[s]);
	jsonw_obj_end(&w);
	jsonw_key(&w, "books");
	jsonw_arr(&w);
	for (size_t i = 0; i < n; i++)
		put_row(&w, &rows[i], &limits);
	jsonw_arr_end(&w);
	jsonw_obj_end(&w);
	httpd_reply_json(c->req, 200, &out);
}

/* One that used nothing has no book, nor has one that never was; one that was removed may have
 * its book still. */
static void looked_up(const struct queue_job *jobs UNUSED, size_t n,
		      const struct err *err, void *arg)
{
	struct api_call *c = arg;

	if (err && err->id != ERRID_RUN_NOT_FOUND) {
		httpd_reply_err(c->req, err);
		free(c);
		return;
	}
	c->flag = err || n == 0;
	budget_show(c->v->queue, (job_id_t)c->a, shown, c);
}

void api_budget(struct httpd_req *req, void *arg)
{
	static const char *const allowed[] = {"job", NULL};
	struct vessel *v = arg;
	struct api_call *c;
	struct err err = ERR_INIT;
	uint64_t job = 0;

	if (httpd_req_check_query(req, allowed, &err) < 0 ||
	    api_query_u64(req, "job", 1, INT64_MAX, &job, &err) < 0) {
		httpd_reply_err(req, &err);
		return;
	}
	c = api_call_new(v, req);
	c->a = job;
	if (job)
		queue_show(v->queue, (job_id_t)job, looked_up, c);
	else
		budget_show(v->queue, 0, shown, c);
}
