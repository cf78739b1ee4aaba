/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One job as a stream of events. Output is never kept in memory for a reader: it
 * is read from the stored files at the reader's offsets, as fast as the reader
 * takes it; state changes come from events.c. When the job is final and all its
 * output has been sent, `end` with the result closes the stream.
 *
 * Life of struct stream: `busy` counts database calls under way, `sse` is NULL
 * before the first answer and after the reader has gone. It is freed when both
 * are over, by stream_put() only; after httpd_sse_send() said false nothing of
 * it may be touched.
 */
#include "common/base64.h"
#include "common/cleanup.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "vessel/api.h"
#include "vessel/job.h"
#include "vessel/sse_caps.h"
#include <assert.h>

struct stream {
	struct vessel *v;
	struct httpd_req *req; /* until the stream begins */
	struct httpd_stream *sse;
	struct events_sub *sub;
	job_id_t job;
	int64_t epoch;
	uint64_t offset[OUTPUT_STREAM_MAX_];
	unsigned busy;
	bool is_final, ending, gone;
};

static void stream_put(struct stream *s)
{
	if (s->busy > 0 || !s->gone)
		return;
	events_unsubscribe(s->sub);
	free(s);
}

static void on_close(void *arg)
{
	struct stream *s = arg;

	s->sse = NULL;
	s->gone = true;
	events_unsubscribe(s->sub);
	s->sub = NULL;
	stream_put(s);
}

static void finish(struct stream *s)
{
	struct httpd_stream *sse = s->sse;

	on_close(s);
	httpd_stream_end(sse);
}

static bool send_job(struct stream *s, const char *event, const struct queue_job *j,
		     unsigned parts)
{
	cleanup_buf struct buf out;
	struct jsonw w;

	buf_init(&out, JOB_JSON_MAX_BYTES);
	jsonw_init(&w, &out);
	job_write(&w, j, parts);
	assert(buf_ok(&out));
	return httpd_sse_send(s->sse, NULL, event, out.data, out.len);
}

static bool send_output(struct stream *s, enum output_stream which, const void *data,
			size_t len)
{
	cleanup_buf struct buf b64, out;
	struct jsonw w;

	buf_init(&b64, SSE_CHUNK_BYTES * 2);
	buf_init(&out, SSE_CHUNK_BYTES * 2);
	base64_add(&b64, data, len);
	jsonw_init(&w, &out);
	jsonw_obj(&w);
	jsonw_kstr(&w, "stream", output_stream_name(which));
	jsonw_ku64(&w, "offset", s->offset[which]);
	jsonw_kstr(&w, "data", buf_str(&b64));
	jsonw_obj_end(&w);
	assert(buf_ok(&out));
	return httpd_sse_send(s->sse, NULL, "output", out.data, out.len);
}

static void pump(struct stream *s);

static void on_drain(void *arg)
{
	pump(arg);
}

enum pumped { PUMP_EMPTY, PUMP_SENT, PUMP_GONE };

/* One event of what is stored of one stream. */
static enum pumped pump_one(struct stream *s, enum output_stream which)
{
	cleanup_close int fd = output_open(s->v->output, s->job, s->epoch, which, NULL);
	if (fd < 0)
		return PUMP_EMPTY;
	cleanup_free char *chunk = xmalloc(SSE_CHUNK_BYTES);
	ssize_t n = pread(fd, chunk, SSE_CHUNK_BYTES, (off_t)s->offset[which]);

	if (n <= 0)
		return PUMP_EMPTY;
	if (!send_output(s, which, chunk, (size_t)n))
		return PUMP_GONE;
	s->offset[which] += (uint64_t)n;
	return PUMP_SENT;
}

static void ended(const struct queue_job *jobs, size_t n, const struct err *err,
		  void *arg)
{
	struct stream *s = arg;

	s->busy--;
	if (s->gone) {
		stream_put(s);
		return;
	}
	/* without an answer the stream just stops: the reader comes back by offsets */
	if (!err && n == 1 && !send_job(s, "end", &jobs[0], JOB_RESULT))
		return;
	finish(s);
}

/* Never touch s after this. */
static void pump(struct stream *s)
{
	if (!s->sse || s->ending)
		return;
	/* in turns, so that neither stream waits for the other's end */
	for (bool more = true; more;) {
		more = false;
		for (unsigned i = 0; i < OUTPUT_STREAM_MAX_; i++) {
			if (httpd_stream_backlog(s->sse) > SSE_PUMP_BYTES) {
				httpd_stream_on_drain(s->sse, on_drain, s);
				return;
			}
			enum pumped r = pump_one(s, (enum output_stream)i);
			if (r == PUMP_GONE)
				return;
			more |= r == PUMP_SENT;
		}
	}
	if (!s->is_final)
		return;
	s->ending = true;
	s->busy++;
	queue_show(s->v->queue, s->job, ended, s);
}

/* Another attempt begins its output anew. */
static void follow(struct stream *s, const struct queue_job *j)
{
	int64_t epoch = api_output_epoch(s->v->output, j);

	if (epoch != s->epoch && !(epoch == 0 && job_state_is_final(j->state))) {
		s->epoch = epoch;
		memset(s->offset, 0, sizeof(s->offset));
	}
	s->is_final = job_state_is_final(j->state);
}

static void on_changed(const struct queue_job *j, void *arg)
{
	struct stream *s = arg;

	if (!s->sse || s->ending)
		return;
	if (!send_job(s, "state", j, JOB_HEAD))
		return;
	follow(s, j);
	pump(s);
}

static void on_output(void *arg)
{
	pump(arg);
}

static const struct events_callbacks callbacks = {.changed = on_changed,
						  .output = on_output};

/* An offset past the end belongs to an attempt that is no more. */
static void check_offsets(struct stream *s)
{
	for (unsigned i = 0; i < OUTPUT_STREAM_MAX_; i++) {
		uint64_t size;
		bool final;

		if (output_size(s->v->output, s->job, s->epoch, (enum output_stream)i,
				&size, &final, NULL) < 0 ||
		    s->offset[i] > size)
			s->offset[i] = 0;
	}
}

static void shown(const struct queue_job *jobs, size_t n, const struct err *err,
		  void *arg)
{
	struct stream *s = arg;
	struct httpd_req *req = TAKE_PTR(s->req);
	struct err missing = ERR_INIT;

	s->busy--;
	if (err || n != 1) {
		if (!err)
			(void)err_set_id(&missing, ERRID_RUN_NOT_FOUND, "no such job");
		s->gone = true;
		httpd_reply_err(req, err ? err : &missing);
		stream_put(s);
		return;
	}
	s->epoch = api_output_epoch(s->v->output, &jobs[0]);
	s->is_final = job_state_is_final(jobs[0].state);
	check_offsets(s);
	s->sse = httpd_sse_start(req, on_close, s);
	if (!s->sse) {
		s->gone = true;
		stream_put(s);
		return;
	}
	s->v->metrics.streams_opened++;
	events_seen(s->sub, jobs[0].change_seq);
	if (send_job(s, "state", &jobs[0], JOB_HEAD))
		pump(s);
}

void api_events(struct httpd_req *req, void *arg)
{
	static const char *const allowed[] = {"stdout", "stderr", NULL};
	struct vessel *v = arg;
	uint64_t offset[OUTPUT_STREAM_MAX_] = {0};
	struct err err = ERR_INIT;
	job_id_t id;

	if (api_job_id(req, &id, &err) < 0 ||
	    httpd_req_check_query(req, allowed, &err) < 0 ||
	    api_query_u64(req, "stdout", 0, INT64_MAX, &offset[OUTPUT_STDOUT], &err) <
		    0 ||
	    api_query_u64(req, "stderr", 0, INT64_MAX, &offset[OUTPUT_STDERR], &err) <
		    0) {
		httpd_reply_err(req, &err);
		return;
	}
	struct stream *s = xnew(struct stream);
	s->v = v;
	s->req = req;
	s->job = id;
	memcpy(s->offset, offset, sizeof(offset));
	s->sub = events_subscribe(v->events, id, &callbacks, s);
	s->busy = 1;
	queue_show(v->queue, id, shown, s);
}
