/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * One job as a stream of events. Output is never kept in memory for a reader: it
 * is read from the stored files at the reader's offsets, as fast as the reader
 * takes it; state changes come from events.c. When the job is final and all its
 * output has been sent, `end` with the result closes the stream. While there is
 * nothing to say a comment every few seconds says that somebody is there; a client
 * that hears nothing for longer asks again, from the id of the last event that it has
 * (attempt and offsets).
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
#include "common/str.h"
#include "common/text/sse_caps.h"
#include "vessel/api/api.h"
#include "vessel/api/job.h"
#include <assert.h>

#define EVENT_ID_SIZE 64

/* Where a reader stands: the id of an event. */
struct place {
	int64_t epoch; /* -1: of whatever attempt there is */
	uint64_t offset[OUTPUT_STREAM_MAX_];
};

struct stream {
	struct vessel *v;
	struct httpd_req *req; /* until the stream begins */
	struct httpd_stream *sse;
	struct events_sub *sub;
	struct loop_timer *idle;
	char feeds[STREAM_NAME_SIZE]; /* its reader feeds the job by this name; "": no */
	bool takes;		      /* from whoever is at the job's terminal */
	struct feed_follower *feed;
	bool place_due; /* its reader is to be told how far stdin is */
	job_id_t job;
	struct place at;
	unsigned busy;
	bool is_final, ending, gone;
	bool takes_taint;	/* its reader said tainted=1 */
	bool withheld;		/* the job was contained: no more of its output is told */
	struct job_spent spent; /* of its end */
	bool attended;		/* its reader waits for the job, and is counted */
	bool told_unreadable[OUTPUT_STREAM_MAX_];
};

static void stream_put(struct stream *s)
{
	if (s->busy > 0 || !s->gone)
		return;
	events_unsubscribe(s->sub);
	loop_timer_free(s->idle);
	free(s);
}

static void on_close(void *arg)
{
	struct stream *s = arg;

	s->sse = NULL;
	s->gone = true;
	if (s->attended)
		attended_leave(s->v->attended, s->job);
	feed_unfollow(s->feed);
	s->feed = NULL;
	loop_timer_disarm(s->idle);
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

static bool send_state(struct stream *s, const struct queue_job *j)
{
	cleanup_buf struct buf out;
	struct jsonw w;

	buf_init(&out, JOB_JSON_MAX_BYTES);
	jsonw_init(&w, &out);
	job_write(&w, j, JOB_HEAD);
	assert(buf_ok(&out));
	return httpd_sse_send(s->sse, NULL, "state", out.data, out.len);
}

static bool send_end(struct stream *s, const struct queue_job *j)
{
	cleanup_buf struct buf out;
	struct jsonw w;

	buf_init(&out, JOB_JSON_MAX_BYTES);
	jsonw_init(&w, &out);
	job_write_spent(&w, j, JOB_RESULT, &s->spent);
	assert(buf_ok(&out));
	return httpd_sse_send(s->sse, NULL, "end", out.data, out.len);
}

/* The id says where the reader stands once it has this. */
static bool send_event(struct stream *s, const char *event, const struct buf *data)
{
	char id[EVENT_ID_SIZE];
	int r = str_fmt(id, sizeof(id), "%lld-%llu-%llu", (long long)s->at.epoch,
			(unsigned long long)s->at.offset[OUTPUT_STDOUT],
			(unsigned long long)s->at.offset[OUTPUT_STDERR]);

	assert(r == 0);
	return httpd_sse_send(s->sse, id, event, data->data, data->len);
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
	jsonw_ku64(&w, "offset", s->at.offset[which]);
	jsonw_kstr(&w, "data", buf_str(&b64));
	jsonw_kbool(&w, "untrusted", true);
	jsonw_obj_end(&w);
	assert(buf_ok(&out));
	s->at.offset[which] += len;
	return send_event(s, "output", &out);
}

/* Only what is true now is told, however often it has changed meanwhile. */
static bool send_place(struct stream *s)
{
	struct feed_place p = feed_place_of(s->feed);
	cleanup_buf struct buf out;
	struct jsonw w;

	s->place_due = false;
	if (!p.known)
		return true;
	buf_init(&out, SSE_CHUNK_BYTES);
	jsonw_init(&w, &out);
	stdin_place_write(&w, &p);
	return httpd_sse_send(s->sse, NULL, "stdin", out.data, out.len);
}

static void pump(struct stream *s);

static void on_drain(void *arg)
{
	pump(arg);
}

enum pumped { PUMP_EMPTY, PUMP_SENT, PUMP_GONE };

/* Bytes that are not those that were stored are told, never shown, and passed over. When
 * it is not known where others follow, that is told once. */
static enum pumped send_damage(struct stream *s, enum output_stream which, uint64_t next,
			       const struct err *why)
{
	cleanup_buf struct buf out;
	struct jsonw w;

	if (next <= s->at.offset[which]) {
		if (s->told_unreadable[which])
			return PUMP_EMPTY;
		s->told_unreadable[which] = true;
		next = s->at.offset[which];
	}

	buf_init(&out, SSE_CHUNK_BYTES);
	jsonw_init(&w, &out);
	jsonw_obj(&w);
	jsonw_kstr(&w, "stream", output_stream_name(which));
	jsonw_ku64(&w, "offset", s->at.offset[which]);
	jsonw_ku64(&w, "bytes", next - s->at.offset[which]);
	jsonw_kstr(&w, "error_code", err_text(why));
	jsonw_kstr(&w, "detail", why->msg);
	jsonw_obj_end(&w);
	assert(buf_ok(&out));
	s->at.offset[which] = next;
	return send_event(s, "damaged", &out) ? PUMP_SENT : PUMP_GONE;
}

/* One event of what is stored of one stream. */
static enum pumped pump_one(struct stream *s, enum output_stream which)
{
	cleanup_free char *chunk = xmalloc(SSE_CHUNK_BYTES);
	uint64_t at = s->at.offset[which], next;
	struct err err = ERR_INIT;
	size_t n;

	if (output_read(s->v->output, s->job, s->at.epoch, which, at, chunk,
			SSE_CHUNK_BYTES, &n, &next, &err) < 0)
		return send_damage(s, which, err.id == ERRID_STORE_DAMAGED ? next : 0,
				   &err);
	if (n == 0)
		return PUMP_EMPTY;
	return send_output(s, which, chunk, n) ? PUMP_SENT : PUMP_GONE;
}

static void counted(const struct budget_row *rows, size_t n, const struct err *err,
		    void *arg);

static void ended(const struct queue_job *jobs, size_t n, const struct err *err,
		  void *arg)
{
	struct stream *s = arg;

	s->busy--;
	if (s->gone) {
		stream_put(s);
		return;
	}
	if (!err && n == 1 && !s->spent.is_counted && job_may_ask(&jobs[0])) {
		s->busy++;
		budget_of_job(s->v->queue, s->job, counted, s);
		return;
	}
	/* without an answer the stream just stops: the reader comes back by offsets */
	if (!err && n == 1) {
		if (s->attended)
			attended_over(s->v->attended, s->job);
		if (!send_end(s, &jobs[0]))
			return;
	}
	finish(s);
}

static void counted(const struct budget_row *rows, size_t n, const struct err *err,
		    void *arg)
{
	struct stream *s = arg;

	s->busy--;
	if (s->gone) {
		stream_put(s);
		return;
	}
	if (err) {
		finish(s);
		return;
	}
	job_spent_take(&s->spent, rows, n);
	s->busy++;
	queue_show(s->v->queue, s->job, ended, s);
}

/* An event of each stream, then whoever else is ready; the next ones when these are written.
 * Never touch s after this. */
static void pump(struct stream *s)
{
	bool sent = false;

	if (!s->sse || s->ending)
		return;
	if (httpd_stream_backlog(s->sse) > SSE_PUMP_BYTES) {
		httpd_stream_on_drain(s->sse, on_drain, s);
		return;
	}
	if (s->place_due && !send_place(s))
		return;
	for (unsigned i = 0; !s->withheld && i < OUTPUT_STREAM_MAX_; i++) {
		enum pumped r = pump_one(s, (enum output_stream)i);

		if (r == PUMP_GONE)
			return;
		sent |= r == PUMP_SENT;
	}
	httpd_stream_on_drain(s->sse, sent ? on_drain : NULL, s);
	if (sent || !s->is_final)
		return;
	s->ending = true;
	s->busy++;
	queue_show(s->v->queue, s->job, ended, s);
}

/* Another attempt begins its output anew. */
static void follow(struct stream *s, const struct queue_job *j)
{
	int64_t epoch = api_output_epoch(s->v->output, j);

	if (epoch != s->at.epoch && !(epoch == 0 && job_state_is_final(j->state))) {
		s->at.epoch = epoch;
		memset(s->at.offset, 0, sizeof(s->at.offset));
	}
	s->is_final = job_state_is_final(j->state);
	s->withheld = api_check_taint(j, s->takes_taint, NULL) < 0;
	if (s->is_final && s->feed)
		feed_over(s->feed);
}

static void on_changed(const struct queue_job *j, void *arg)
{
	struct stream *s = arg;

	if (!s->sse || s->ending)
		return;
	if (!send_state(s, j))
		return;
	follow(s, j);
	pump(s);
}

static void on_output(void *arg)
{
	pump(arg);
}

/* Nobody can be told how it ended: who comes back learns that there is no such job. */
static void on_gone(void *arg)
{
	struct stream *s = arg;

	if (s->sse && !s->ending)
		finish(s);
}

static void on_fed(void *arg)
{
	struct stream *s = arg;

	s->place_due = true;
	pump(s);
}

static const struct events_callbacks callbacks = {
	.changed = on_changed, .output = on_output, .gone = on_gone};

/* A reader that is behind hears of us anyway. */
static void on_idle(void *arg)
{
	struct stream *s = arg;

	if (httpd_stream_backlog(s->sse) == 0 && !httpd_sse_comment(s->sse))
		return;
	loop_timer_arm(s->idle, SSE_IDLE_USEC);
}

/* An offset past the end belongs to an attempt that is no more. */
static void check_offsets(struct stream *s)
{
	for (unsigned i = 0; i < OUTPUT_STREAM_MAX_; i++) {
		uint64_t size;
		bool final;

		if (output_size(s->v->output, s->job, s->at.epoch, (enum output_stream)i,
				&size, &final, NULL) < 0 ||
		    s->at.offset[i] > size)
			s->at.offset[i] = 0;
	}
}

static void begin_at(struct stream *s, int64_t epoch)
{
	if (s->at.epoch >= 0 && s->at.epoch != epoch)
		memset(s->at.offset, 0, sizeof(s->at.offset));
	s->at.epoch = epoch;
	check_offsets(s);
}

static void shown(const struct queue_job *jobs, size_t n, const struct err *err,
		  void *arg)
{
	struct stream *s = arg;
	struct httpd_req *req = TAKE_PTR(s->req);
	struct err why = ERR_INIT;
	bool at_terminal = false;

	s->busy--;
	if (!err && n != 1)
		(void)err_set_id(&why, ERRID_RUN_NOT_FOUND, "no such job");
	if (err || n != 1 || api_check_taint(&jobs[0], s->takes_taint, &why) < 0 ||
	    (s->feeds[0] &&
	     (stdin_check_name(&jobs[0], s->feeds, &at_terminal, &why) < 0 ||
	      feed_may_follow(s->v->feeds, s->job, s->feeds, s->takes, &why) < 0))) {
		s->gone = true;
		httpd_reply_err(req, err ? err : &why);
		stream_put(s);
		return;
	}
	begin_at(s, api_output_epoch(s->v->output, &jobs[0]));
	s->is_final = job_state_is_final(jobs[0].state);
	s->sse = httpd_sse_start(req, on_close, s);
	if (!s->sse) {
		s->gone = true;
		stream_put(s);
		return;
	}
	if (s->attended)
		attended_enter(s->v->attended, s->job);
	s->v->metrics.streams_opened++;
	httpd_stream_set_mark(s->sse, SSE_PUMP_BYTES);
	loop_timer_arm(s->idle, SSE_IDLE_USEC);
	events_seen(s->sub, jobs[0].version);
	if (s->feeds[0] && !s->is_final) {
		s->feed = feed_follow(s->v->feeds, s->job, s->feeds, at_terminal, on_fed,
				      s);
		s->place_due = true;
	}
	if (send_state(s, &jobs[0]))
		pump(s);
}

/* Of a client that comes back: the id of the last event that it has. */
static int read_last_id(const struct httpd_req *req, struct place *ret, struct err *err)
{
	const char *text = httpd_req_header(req, "Last-Event-ID"), *second, *third;
	uint64_t epoch;

	if (!text || !*text)
		return 0;
	second = strchr(text, '-');
	third = second ? strchr(second + 1, '-') : NULL;
	cleanup_free char *one = xstrndup(text, second ? (size_t)(second - text) : 0);
	cleanup_free char *two = xstrndup(third ? second + 1 : "",
					  third ? (size_t)(third - second - 1) : 0);

	if (!third || parse_u64(one, 0, INT64_MAX, &epoch, NULL) < 0 ||
	    parse_u64(two, 0, INT64_MAX, &ret->offset[OUTPUT_STDOUT], NULL) < 0 ||
	    parse_u64(third + 1, 0, INT64_MAX, &ret->offset[OUTPUT_STDERR], NULL) < 0)
		return err_set_id(err, ERRID_HTTP_QUERY,
				  "Last-Event-ID: not the id of an event of a job");
	ret->epoch = (int64_t)epoch;
	return 0;
}

static int read_feeds(const struct httpd_req *req, char ret[STREAM_NAME_SIZE],
		      struct err *err)
{
	const char *name = httpd_req_query(req, "stdin");

	ret[0] = '\0';
	if (name &&
	    (!spec_stream_is_valid(name) || str_copy(ret, STREAM_NAME_SIZE, name) < 0))
		return err_set_id(err, ERRID_HTTP_QUERY,
				  "stdin: a stream's name is 32 lower-case hex digits");
	return 0;
}

void api_events(struct httpd_req *req, void *arg)
{
	static const char *const allowed[] = {"stdout",	 "stderr", "attended", "stdin",
					      "tainted", "take",   NULL};
	struct vessel *v = arg;
	struct place at = {.epoch = -1};
	char feeds[STREAM_NAME_SIZE];
	struct err err = ERR_INIT;
	bool attended, takes_taint;
	uint64_t takes = 0;
	job_id_t id;

	if (api_job_id(req, &id, &err) < 0 ||
	    api_query_attended(req, &attended, &err) < 0 ||
	    api_query_tainted(req, &takes_taint, &err) < 0 ||
	    httpd_req_check_query(req, allowed, &err) < 0 ||
	    api_query_u64(req, "stdout", 0, INT64_MAX, &at.offset[OUTPUT_STDOUT], &err) <
		    0 ||
	    api_query_u64(req, "stderr", 0, INT64_MAX, &at.offset[OUTPUT_STDERR], &err) <
		    0 ||
	    api_query_u64(req, "take", 0, 1, &takes, &err) < 0 ||
	    read_feeds(req, feeds, &err) < 0 || read_last_id(req, &at, &err) < 0) {
		httpd_reply_err(req, &err);
		return;
	}
	struct stream *s = xnew(struct stream);
	s->v = v;
	s->req = req;
	s->job = id;
	s->at = at;
	s->attended = attended;
	s->takes_taint = takes_taint;
	s->takes = takes;
	memcpy(s->feeds, feeds, sizeof(feeds));
	if (attended)
		attended_seen(v->attended, id);
	s->idle = loop_timer_new(v->loop, on_idle, s);
	s->sub = events_subscribe(v->events, id, &callbacks, s);
	s->busy = 1;
	queue_show(v->queue, id, shown, s);
}
