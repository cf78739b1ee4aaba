/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * The routes of a stdin that is streamed (feed.h): parts from the owner's client, the size of its
 * window, and the tomb's question for both. None waits for the database, but for what says why a
 * part is refused, and the tomb's lease.
 */
#include "vessel/api/feed.h"

#include "common/cleanup.h"
#include "common/json/json.h"
#include "common/json/tty_read.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/api/api.h"
#include "vessel/api/job.h"

#define REPLY_MAX_BYTES 1024

void stdin_place_write(struct jsonw *w, const struct feed_place *p)
{
	jsonw_obj(w);
	jsonw_ku64(w, "taken", p->taken);
	jsonw_ku64(w, "received", p->received);
	jsonw_ku64(w, "room", p->room);
	jsonw_kbool(w, "open", p->open);
	jsonw_kbool(w, "ended", p->ended);
	jsonw_kbool(w, "moved", p->moved);
	jsonw_obj_end(w);
}

/* The name that its spec has; *ret is a part of *spec, NULL: it has none. */
static void read_name(const struct queue_job *j, struct json **ret_spec, const char **ret)
{
	*ret = NULL;
	if (!j->spec ||
	    json_parse(j->spec, j->spec_len, JSON_DEPTH_DEFAULT, ret_spec, NULL) < 0 ||
	    json_get_str(*ret_spec, "stdin_stream", false, STREAM_NAME_SIZE - 1, ret,
			 NULL) < 0)
		*ret = NULL;
}

int stdin_check_name(const struct queue_job *j, const char *name, bool *ret_at_terminal,
		     struct err *err)
{
	cleanup_json struct json *spec = NULL;
	struct tty_wish tty = {0};
	const char *own;

	read_name(j, &spec, &own);
	if (!own)
		return err_set_id(err, ERRID_RUN_STREAM,
				  "the job was submitted without a stdin_stream");
	if (tty_read(spec, &tty, err) < 0)
		return -1;
	if (!tty.stays && !str_eq(own, name))
		return err_set_id(err, ERRID_RUN_STREAM, "another client feeds this job");
	if (ret_at_terminal)
		*ret_at_terminal = tty.cols > 0;
	return 0;
}

int stdin_check_kept(const struct queue_job *j, struct err *err)
{
	cleanup_json struct json *spec = NULL;
	const char *own;

	read_name(j, &spec, &own);
	return own ? err_set_id(err, ERRID_RUN_STREAMED, "job %lld", (long long)j->id)
		   : 0;
}

/* Nobody feeds the job: is it one that could be fed, by this client? */
static void refuse_part(const struct queue_job *jobs, size_t n, const struct err *err,
			void *arg)
{
	cleanup_free struct api_call *c = arg;
	struct err why = ERR_INIT;

	if (!err && n == 1 && stdin_check_name(&jobs[0], c->text, NULL, &why) == 0) {
		if (job_state_is_final(jobs[0].state))
			(void)err_set_id(&why, ERRID_RUN_STATE, "the job has ended");
		else
			(void)err_set_id(&why, ERRID_RUN_STREAM,
					 "nobody follows the job with it");
	} else if (!err && n != 1) {
		(void)err_set_id(&why, ERRID_RUN_NOT_FOUND, "no such job");
	}
	httpd_reply_err(c->req, err ? err : &why);
}

static void reply_place(struct httpd_req *req, const struct feed_place *p)
{
	cleanup_buf struct buf out;
	struct jsonw w;

	buf_init(&out, REPLY_MAX_BYTES);
	jsonw_init(&w, &out);
	stdin_place_write(&w, p);
	httpd_reply_json(req, 200, &out);
}

/* It is a part of the path, and in the form of one. */
static int read_stream(const struct httpd_req *req, char name[STREAM_NAME_SIZE],
		       struct err *err)
{
	const char *said = httpd_req_param(req, "stream");

	if (!said || !spec_stream_is_valid(said) ||
	    str_copy(name, STREAM_NAME_SIZE, said) < 0)
		return err_set_id(err, ERRID_HTTP_QUERY,
				  "a stream's name is 32 lower-case hex digits");
	return 0;
}

static int read_part(const struct httpd_req *req, char name[STREAM_NAME_SIZE],
		     uint64_t *ret_offset, uint64_t *ret_end, struct err *err)
{
	if (read_stream(req, name, err) < 0)
		return -1;
	if (api_query_u64(req, "offset", 0, INT64_MAX, ret_offset, err) < 0)
		return -1;
	return api_query_u64(req, "end", 0, 1, ret_end, err);
}

void api_stdin_part(struct httpd_req *req, void *arg)
{
	static const char *const allowed[] = {"offset", "end", NULL};
	struct vessel *v = arg;
	struct feed_place place = {0};
	char name[STREAM_NAME_SIZE];
	uint64_t offset = 0, end = 0;
	struct err err = ERR_INIT;
	struct api_call *c;
	const void *body;
	bool is_fed;
	job_id_t id;
	size_t len;

	if (!api_begin(v, req, allowed, &id, &c))
		return;
	body = httpd_req_body(req, &len);
	if (read_part(req, name, &offset, &end, &err) < 0) {
		httpd_reply_err(req, &err);
	} else if (feed_put(v->feeds, id, name, offset, body, len, end, &place, &is_fed,
			    &err) == 0) {
		v->metrics.stdin_bytes += len;
		reply_place(req, &place);
	} else if (err.id == ERRID_RUN_GAP) {
		httpd_reply_err_expected(req, &err, place.received);
	} else if (is_fed) {
		httpd_reply_err(req, &err);
	} else {
		(void)!str_copy(c->text, sizeof(c->text), name);
		queue_show(v->queue, id, refuse_part, TAKE_PTR(c));
	}
	free(c);
}

/* Both sides, or none. */
static int read_window(const struct httpd_req *req, struct feed_window *ret,
		       struct err *err)
{
	uint64_t cols = 0, rows = 0;

	if (api_query_u64(req, "cols", 1, TTY_SIDE_MAX, &cols, err) < 0 ||
	    api_query_u64(req, "rows", 1, TTY_SIDE_MAX, &rows, err) < 0)
		return -1;
	if (!cols != !rows)
		return err_set_id(err, ERRID_HTTP_QUERY, "cols and rows go together");
	*ret = (struct feed_window){(unsigned)cols, (unsigned)rows};
	return 0;
}

static int read_size(const struct httpd_req *req, char name[STREAM_NAME_SIZE],
		     struct feed_window *ret, struct err *err)
{
	if (read_stream(req, name, err) < 0 || read_window(req, ret, err) < 0)
		return -1;
	return ret->cols ? 0 : err_set_id(err, ERRID_HTTP_QUERY, "cols and rows");
}

void api_tty_size(struct httpd_req *req, void *arg)
{
	static const char *const allowed[] = {"cols", "rows", NULL};
	struct vessel *v = arg;
	struct feed_window window;
	char name[STREAM_NAME_SIZE];
	struct err err = ERR_INIT;
	struct api_call *c;
	bool is_fed;
	job_id_t id;

	if (!api_begin(v, req, allowed, &id, &c))
		return;
	if (read_size(req, name, &window, &err) < 0) {
		httpd_reply_err(req, &err);
	} else if (feed_resize(v->feeds, id, name, &window, &is_fed, &err) == 0) {
		httpd_reply(req, 200, "application/json", "{}", 2);
	} else if (is_fed) {
		httpd_reply_err(req, &err);
	} else {
		(void)!str_copy(c->text, sizeof(c->text), name);
		queue_show(v->queue, id, refuse_part, TAKE_PTR(c));
	}
	free(c);
}

static void take(struct vessel *v, struct httpd_req *req, const struct queue_lease *l)
{
	static const char *const allowed[] = {"offset", "closed", "cols",
					      "rows",	"stays",  NULL};
	uint64_t closed = 0, stays = 0;
	struct feed_question q = {0};
	struct err err = ERR_INIT;

	if (httpd_req_check_query(req, allowed, &err) < 0 ||
	    api_query_u64(req, "offset", 0, INT64_MAX, &q.offset, &err) < 0 ||
	    api_query_u64(req, "closed", 0, 1, &closed, &err) < 0 ||
	    api_query_u64(req, "stays", 0, 1, &stays, &err) < 0 ||
	    read_window(req, &q.window, &err) < 0) {
		httpd_reply_err(req, &err);
		return;
	}
	q.closed = closed;
	q.stays = stays;
	feed_take(v->feeds, req, l->job, &q);
}

void work_stdin(struct httpd_req *req, void *arg)
{
	lease_live(arg, req, take);
}
