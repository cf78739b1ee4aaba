/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * The owner's jobs: submit, list, show, output, artifacts.
 */
#include "common/cleanup.h"
#include "common/json/json.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/api/api.h"
#include "vessel/api/job.h"
#include "vessel/api/spec.h"
#include "vessel/store/output_order.h"

#define LIST_MAX 500
#define LIST_DEFAULT 50
/* They are compared with their digests in the loop. */
#define OUTPUT_ANSWER_MAX ((size_t)1 << 20)
/* Notes in one answer about the order of the output. */
#define ORDER_ANSWER_MAX ((size_t)8192)
#define LIST_JSON_MAX_BYTES ((size_t)4 << 20)
/* Beyond the job's own time: fetching inputs, harvesting, uploading artifacts. */
#define RUNTIME_SLACK_SEC 900

static void reply_job(struct httpd_req *req, int status, const struct queue_job *j,
		      unsigned parts)
{
	cleanup_buf struct buf out;
	struct jsonw w;

	buf_init(&out, JOB_JSON_MAX_BYTES);
	jsonw_init(&w, &out);
	job_write(&w, j, parts);
	httpd_reply_json(req, status, &out);
}

static void submit_shown(const struct queue_job *jobs, size_t n, const struct err *err,
			 void *arg)
{
	cleanup_free struct api_call *c = arg;
	struct queue_job bare = {
		.id = (job_id_t)c->a, .request_id = c->text, .state = JOB_QUEUED};

	/* the job is accepted whatever this second question brought */
	reply_job(c->req, c->flag ? 200 : 201, !err && n == 1 ? &jobs[0] : &bare,
		  JOB_HEAD);
}

static void submit_done(job_id_t id, bool existing, const struct err *err, void *arg)
{
	struct api_call *c = arg;

	if (err) {
		httpd_reply_err(c->req, err);
		free(c);
		return;
	}
	c->v->metrics.submits += !existing;
	c->flag = existing;
	c->a = (uint64_t)id;
	if (c->what)
		attended_seen(c->v->attended, id);
	events_hint(c->v->events);
	queue_show(c->v->queue, id, submit_shown, c);
}

static int touch_blobs(struct vessel *v, const struct spec *spec, struct err *err)
{
	uint64_t size;

	for (size_t i = 0; i < spec_blobs(spec); i++) {
		if (blobs_touch(v->blobs, spec_blob(spec, i), &size, err) < 0) {
			if (err->id == ERRID_STORE_BLOB)
				return err_set_id(err, ERRID_SPEC_BLOB, "%s",
						  spec_blob(spec, i));
			return -1;
		}
	}
	return 0;
}

static int prepare(struct vessel *v, struct httpd_req *req, struct spec *spec,
		   struct buf *canonical, struct err *err)
{
	size_t len;
	const void *body = httpd_req_body(req, &len);

	if (spec_parse(body, len, &v->conf, spec, err) < 0)
		return -1;
	if (!*spec->request_id) {
		struct uuid id;

		uuid_new(v->rng, &id);
		if (spec_set_request_id(spec, id.s, err) < 0)
			return -1;
	}
	if (touch_blobs(v, spec, err) < 0)
		return -1;
	return spec_write(spec, canonical, err);
}

void api_jobs_submit(struct httpd_req *req, void *arg)
{
	static const char *const allowed[] = {"attended", NULL};
	struct vessel *v = arg;
	cleanup_spec struct spec spec = {0};
	cleanup_buf struct buf canonical;
	struct err err = ERR_INIT;
	bool attended;

	buf_init(&canonical, SPEC_MAX_BYTES);
	if (httpd_req_check_query(req, allowed, &err) < 0 ||
	    api_query_attended(req, &attended, &err) < 0 ||
	    prepare(v, req, &spec, &canonical, &err) < 0) {
		httpd_reply_err(req, &err);
		return;
	}
	struct api_call *c = api_call_new(v, req);
	/* shown only if the second question fails; longer ids are cut there */
	if (str_copy(c->text, sizeof(c->text), spec.request_id) < 0)
		c->text[0] = '\0';
	c->what = attended;
	struct queue_submit s = {
		.queue = QUEUE_NAME,
		.request_id = spec.request_id,
		.spec = canonical.data,
		.spec_len = canonical.len,
		.priority = (int)spec.priority,
		.retry_on_lost = spec.retry_on_lost,
		.max_runtime_sec = (unsigned)(spec.timeout_ms / 1000) + RUNTIME_SLACK_SEC,
		.max_waiting = v->conf.queue_max,
		.attended = attended,
	};
	queue_submit(v->queue, &s, submit_done, c);
}

static void list_done(const struct queue_job *jobs, size_t n, const struct err *err,
		      void *arg)
{
	cleanup_free struct api_call *c = arg;
	bool by_age = c->what;
	cleanup_buf struct buf out;
	struct jsonw w;

	buf_init(&out, LIST_JSON_MAX_BYTES);
	if (err) {
		httpd_reply_err(c->req, err);
		return;
	}
	jsonw_init(&w, &out);
	jsonw_obj(&w);
	jsonw_key(&w, "jobs");
	jsonw_arr(&w);
	for (size_t i = 0; i < n; i++)
		if (!by_age || (jobs[i].ended_ago_sec >= 0 &&
				(uint64_t)jobs[i].ended_ago_sec >= c->a))
			job_write(&w, &jobs[i], JOB_HEAD);
	jsonw_arr_end(&w);
	if (by_age) {
		jsonw_key(&w, "next");
		if (n == c->b)
			jsonw_i64(&w, jobs[n - 1].id);
		else
			jsonw_null(&w);
	}
	jsonw_obj_end(&w);
	httpd_reply_json(c->req, 200, &out);
}

static int read_filter(const struct httpd_req *req, struct queue_list *ret,
		       uint64_t *ret_older, struct err *err)
{
	static const char *const allowed[] = {"state", "limit", "before", "older", NULL};
	uint64_t limit = LIST_DEFAULT, before = 0;
	const char *state;

	if (httpd_req_check_query(req, allowed, err) < 0 ||
	    api_query_u64(req, "limit", 1, LIST_MAX, &limit, err) < 0 ||
	    api_query_u64(req, "before", 1, INT64_MAX, &before, err) < 0 ||
	    api_query_u64(req, "older", 0, INT64_MAX, ret_older, err) < 0)
		return -1;
	state = httpd_req_query(req, "state");
	if (state && !job_state_from_name(state, &ret->state))
		return err_set_id(err, ERRID_HTTP_QUERY, "state: no such state");
	ret->by_state = state != NULL;
	ret->limit = (unsigned)limit;
	ret->before = (job_id_t)before;
	return 0;
}

void api_jobs_list(struct httpd_req *req, void *arg)
{
	struct vessel *v = arg;
	struct queue_list f = {0};
	struct err err = ERR_INIT;
	struct api_call *c;
	uint64_t older = 0;

	if (read_filter(req, &f, &older, &err) < 0) {
		httpd_reply_err(req, &err);
		return;
	}
	c = api_call_new(v, req);
	c->what = httpd_req_query(req, "older") != NULL;
	c->a = older;
	c->b = f.limit;
	queue_list(v->queue, &f, list_done, c);
}

/* A callback's start: the one job, or the answer has been sent. */
static const struct queue_job *one(struct httpd_req *req, const struct queue_job *jobs,
				   size_t n, const struct err *err)
{
	struct err missing = ERR_INIT;

	if (!err && n == 1)
		return &jobs[0];
	if (!err) {
		(void)err_set_id(&missing, ERRID_RUN_NOT_FOUND, "no such job");
		err = &missing;
	}
	httpd_reply_err(req, err);
	return NULL;
}

/* ---- show: the job, and when it may ask what it has used so far ---- */

struct show {
	struct api_call *c;
	struct job_spent spent;
};

static void show_counted(const struct budget_row *rows, size_t n, const struct err *err,
			 void *arg);

static void show_done(const struct queue_job *jobs, size_t n, const struct err *err,
		      void *arg)
{
	struct show *s = arg;
	const struct queue_job *j = one(s->c->req, jobs, n, err);
	cleanup_buf struct buf out = {.max = JOB_JSON_MAX_BYTES};
	struct jsonw w;

	if (j && !s->spent.is_counted && job_may_ask(j)) {
		budget_of_job(s->c->v->queue, j->id, show_counted, s);
		return;
	}
	if (j) {
		jsonw_init(&w, &out);
		job_write_spent(&w, j, JOB_SPEC | JOB_RESULT, &s->spent);
		httpd_reply_json(s->c->req, 200, &out);
	}
	free(s->c);
	free(s);
}

/* The job may have gone on meanwhile: it is asked for again. */
static void show_counted(const struct budget_row *rows, size_t n, const struct err *err,
			 void *arg)
{
	struct show *s = arg;

	if (err) {
		httpd_reply_err(s->c->req, err);
		free(s->c);
		free(s);
		return;
	}
	job_spent_take(&s->spent, rows, n);
	queue_show(s->c->v->queue, (job_id_t)s->c->a, show_done, s);
}

void api_jobs_show(struct httpd_req *req, void *arg)
{
	struct vessel *v = arg;
	struct api_call *c;
	struct show *s;
	job_id_t id;

	if (!api_begin(v, req, NULL, &id, &c))
		return;
	c->a = (uint64_t)id;
	s = xnew(struct show);
	s->c = c;
	queue_show(v->queue, id, show_done, s);
}

static void output_shown(const struct queue_job *jobs, size_t n, const struct err *err,
			 void *arg)
{
	cleanup_free struct api_call *c = arg;
	const struct queue_job *j = one(c->req, jobs, n, err);
	struct err why = ERR_INIT;
	uint64_t size;
	bool final;

	if (!j)
		return;
	if (api_check_taint(j, c->flag, &why) < 0) {
		httpd_reply_err(c->req, &why);
		return;
	}
	int64_t epoch = api_output_epoch(c->v->output, j);
	enum output_stream s = (enum output_stream)c->what;
	if (output_size(c->v->output, j->id, epoch, s, &size, &final, &why) < 0) {
		httpd_reply_err(c->req, &why);
		return;
	}
	size_t room = c->b < OUTPUT_ANSWER_MAX ? (size_t)c->b : OUTPUT_ANSWER_MAX, got;
	cleanup_free char *buf = xmalloc(room);
	uint64_t next;

	if (output_read(c->v->output, j->id, epoch, s, c->a, buf, room, &got, &next,
			&why) < 0) {
		if (why.id == ERRID_STORE_DAMAGED)
			httpd_reply_err_expected(c->req, &why, next);
		else
			httpd_reply_err(c->req, &why);
		return;
	}
	/* a queued job may still print, whatever its last attempt left */
	final = (final && j->state != JOB_QUEUED && j->state != JOB_HELD) ||
		job_state_is_final(j->state);
	httpd_req_add_header(c->req, "Lychgate-Final", final ? "1" : "0");
	api_add_size(c->req, size);
	api_add_untrusted(c->req);
	httpd_reply(c->req, 200, "application/octet-stream", buf, got);
}

void api_jobs_output(struct httpd_req *req, void *arg)
{
	static const char *const allowed[] = {"stream", "offset", "limit", "tainted",
					      NULL};
	struct vessel *v = arg;
	struct err err = ERR_INIT;
	enum output_stream s;
	struct api_call *c;
	job_id_t id;

	if (!api_begin(v, req, allowed, &id, &c))
		return;
	c->b = UPLOAD_PART_MAX_BYTES;
	if (api_query_stream(req, &s, &err) < 0 ||
	    api_query_tainted(req, &c->flag, &err) < 0 ||
	    api_query_u64(req, "offset", 0, INT64_MAX, &c->a, &err) < 0 ||
	    api_query_u64(req, "limit", 1, UPLOAD_PART_MAX_BYTES, &c->b, &err) < 0) {
		httpd_reply_err(req, &err);
		free(c);
		return;
	}
	c->what = s;
	queue_show(v->queue, id, output_shown, c);
}

/* What came of one stream, one piece after the other. */
static void order_shown(const struct queue_job *jobs, size_t n, const struct err *err,
			void *arg)
{
	cleanup_free struct api_call *c = arg;
	cleanup_free struct output_piece *pieces =
		xcalloc(ORDER_ANSWER_MAX, sizeof(*pieces));
	cleanup_buf struct buf out = {.max = LIST_JSON_MAX_BYTES};
	const struct queue_job *j = one(c->req, jobs, n, err);
	struct err why = ERR_INIT;
	uint64_t size[OUTPUT_STREAM_MAX_];
	size_t got = 0;
	struct jsonw w;
	bool final;

	if (!j)
		return;
	if (api_check_taint(j, c->flag, &why) < 0) {
		httpd_reply_err(c->req, &why);
		return;
	}
	int64_t epoch = api_output_epoch(c->v->output, j);
	if (output_size(c->v->output, j->id, epoch, OUTPUT_STDOUT, &size[0], &final,
			&why) < 0 ||
	    output_size(c->v->output, j->id, epoch, OUTPUT_STDERR, &size[1], &final,
			&why) < 0 ||
	    output_notes(c->v->output, j->id, epoch, c->a, pieces, ORDER_ANSWER_MAX, &got,
			 &why) < 0) {
		httpd_reply_err(c->req, &why);
		return;
	}
	jsonw_init(&w, &out);
	jsonw_obj(&w);
	jsonw_ki64(&w, "epoch", epoch);
	jsonw_ku64(&w, "stdout_bytes", size[OUTPUT_STDOUT]);
	jsonw_ku64(&w, "stderr_bytes", size[OUTPUT_STDERR]);
	jsonw_key(&w, "pieces");
	jsonw_arr(&w);
	for (size_t i = 0; i < got; i++) {
		jsonw_obj(&w);
		jsonw_kstr(&w, "stream", output_stream_name(pieces[i].stream));
		jsonw_ku64(&w, "end", pieces[i].end);
		jsonw_ku64(&w, "sec", pieces[i].sec);
		jsonw_obj_end(&w);
	}
	jsonw_arr_end(&w);
	jsonw_obj_end(&w);
	httpd_reply_json(c->req, 200, &out);
}

void api_jobs_order(struct httpd_req *req, void *arg)
{
	static const char *const allowed[] = {"from", "tainted", NULL};
	struct vessel *v = arg;
	struct err err = ERR_INIT;
	struct api_call *c;
	job_id_t id;

	if (!api_begin(v, req, allowed, &id, &c))
		return;
	if (api_query_u64(req, "from", 0, OUTPUT_NOTES_MAX, &c->a, &err) < 0 ||
	    api_query_tainted(req, &c->flag, &err) < 0) {
		httpd_reply_err(req, &err);
		free(c);
		return;
	}
	queue_show(v->queue, id, order_shown, c);
}

static void write_artifact(struct jsonw *w, size_t n, const struct job_artifact *a)
{
	jsonw_obj(w);
	jsonw_ku64(w, "n", n);
	jsonw_kstr(w, "path", a->path);
	jsonw_ku64(w, "size", a->size);
	jsonw_kstr(w, "sha256", a->sha256);
	jsonw_kstr(w, "class", a->klass);
	jsonw_obj_end(w);
}

static void artifacts_shown(const struct queue_job *jobs, size_t n, const struct err *err,
			    void *arg)
{
	cleanup_free struct api_call *c = arg;
	cleanup_json struct json *result = NULL;
	cleanup_buf struct buf out;
	const struct queue_job *j = one(c->req, jobs, n, err);
	struct job_artifact a;
	struct jsonw w;

	buf_init(&out, JOB_JSON_MAX_BYTES);
	if (!j)
		return;
	/* A tomb is only half trusted: what it wrote amiss is left out, not an error. */
	if (job_result_parse(j, &result, NULL) < 0)
		result = NULL;
	jsonw_init(&w, &out);
	jsonw_obj(&w);
	jsonw_key(&w, "artifacts");
	jsonw_arr(&w);
	for (size_t i = 0; result && i < job_artifacts(result); i++) {
		if (job_artifact_at(result, i, &a, NULL) == 0)
			write_artifact(&w, i, &a);
	}
	jsonw_arr_end(&w);
	jsonw_obj_end(&w);
	httpd_reply_json(c->req, 200, &out);
}

void api_jobs_artifacts(struct httpd_req *req, void *arg)
{
	struct vessel *v = arg;
	struct api_call *c;
	job_id_t id;

	if (api_begin(v, req, NULL, &id, &c))
		queue_show(v->queue, id, artifacts_shown, c);
}

static void artifact_shown(const struct queue_job *jobs, size_t n, const struct err *err,
			   void *arg)
{
	cleanup_free struct api_call *c = arg;
	cleanup_json struct json *result = NULL;
	const struct queue_job *j = one(c->req, jobs, n, err);
	struct err why = ERR_INIT;
	struct job_artifact a;
	uint64_t size;
	int fd = -1;

	if (!j)
		return;
	if (api_check_taint(j, c->flag, &why) == 0 &&
	    job_result_parse(j, &result, &why) == 0 &&
	    job_artifact_at(result, (size_t)c->a, &a, &why) == 0)
		fd = blobs_open(c->v->blobs, a.sha256, &size, &why);
	if (fd < 0) {
		httpd_reply_err(c->req, &why);
		return;
	}
	api_add_untrusted(c->req);
	api_reply_range(c->req, fd, size, 0, size);
}

void api_jobs_artifact(struct httpd_req *req, void *arg)
{
	static const char *const allowed[] = {"tainted", NULL};
	struct vessel *v = arg;
	struct err err = ERR_INIT;
	struct api_call *c;
	job_id_t id;

	if (!api_begin(v, req, allowed, &id, &c))
		return;
	if (parse_u64(httpd_req_param(req, "n"), 0, ARTIFACTS_MAX, &c->a, NULL) < 0) {
		(void)err_set_id(&err, ERRID_STORE_ARTIFACT, "n is a small number");
		httpd_reply_err(req, &err);
		free(c);
		return;
	}
	if (api_query_tainted(req, &c->flag, &err) < 0) {
		httpd_reply_err(req, &err);
		free(c);
		return;
	}
	queue_show(v->queue, id, artifact_shown, c);
}
