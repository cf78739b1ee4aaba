/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * A person takes a file out of the tomb's quarantine: the log has the wish before it happens, and
 * afterwards what became of it. The file itself is none of the vessel's: lych reads the copy, writes
 * it, and says how that ended. Who dies in between leaves a wish without an end.
 */
#include "common/cleanup.h"
#include "common/json/json.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/api/api.h"
#include "vessel/audit/audit.h"
#include "vessel/audit/event.h"

#define WHY_MAX_BYTES 200
#define SHA_HEX 64
#define REPLY_MAX_BYTES 256
/* The log has a longer one as its digest. */
#define DATA_MAX_BYTES ((size_t)65536)

struct release {
	struct vessel *v;
	struct httpd_req *req;
	job_id_t job;
	int64_t epoch;
	const char *outcome; /* an event's name; NULL: it is a wish */
	struct buf data;
};

static void release_free(struct release *r)
{
	buf_done(&r->data);
	free(r);
}

static struct audit_event event_of(const struct release *r, const char *name)
{
	const struct clock_ops *clock = r->v->clock;

	return (struct audit_event){
		.name = name,
		.time_ms = clock->wall_usec(clock->ctx) / USEC_PER_MSEC,
		.actor = "owner",
		.job = r->job,
		.epoch = r->epoch,
		.data = r->data.data,
		.data_len = r->data.len,
	};
}

static void refuse(struct release *r, const struct err *err)
{
	httpd_reply_err(r->req, err);
	release_free(r);
}

/* The wish may be in the log, or come to be, though nobody could wait for it. */
static void refuse_unlogged(struct release *r, const struct err *err)
{
	const struct audit_event e = event_of(r, "quarantine.release_failed");

	if (!r->outcome)
		audit_note(r->v->audit, &e);
	refuse(r, err);
}

static void logged(const struct err *err, void *arg)
{
	struct release *r = arg;
	cleanup_buf struct buf out = {0};
	struct jsonw w;

	if (err) {
		refuse_unlogged(r, err);
		return;
	}
	buf_init(&out, REPLY_MAX_BYTES);
	jsonw_init(&w, &out);
	jsonw_obj(&w);
	jsonw_ki64(&w, "id", r->job);
	jsonw_obj_end(&w);
	httpd_reply_json(r->req, 200, &out);
	release_free(r);
}

/* What has happened is told, whatever became of the job meanwhile. */
static int check_job(const struct release *r, const struct queue_job *jobs, size_t n,
		     struct err *err)
{
	if (n != 1)
		return err_set_id(err, ERRID_RUN_NOT_FOUND, "no such job");
	if (!r->outcome && jobs[0].taint && *jobs[0].taint)
		return err_set_id(err, ERRID_RUN_TAINTED, "%s", jobs[0].taint);
	return 0;
}

static void job_known(const struct queue_job *jobs, size_t n, const struct err *err,
		      void *arg)
{
	struct release *r = arg;
	struct err why = ERR_INIT;

	if (err || check_job(r, jobs, n, &why) < 0) {
		refuse(r, err ? err : &why);
		return;
	}
	r->epoch = jobs[0].epoch;
	const struct audit_event e =
		event_of(r, r->outcome ? r->outcome : "quarantine.release_requested");

	if (!audit_before(r->v->audit, &e, logged, r, &why))
		refuse_unlogged(r, &why);
}

static int read_outcome(const struct json *j, const char **ret, struct err *err)
{
	const char *word = NULL;

	*ret = NULL;
	if (json_get_str(j, "outcome", false, WHY_MAX_BYTES, &word, err) < 0)
		return -1;
	if (word && !str_eq(word, "released") && !str_eq(word, "failed"))
		return err_set_id(err, ERRID_SPEC_RANGE, "outcome: released or failed");
	if (word)
		*ret = str_eq(word, "released") ? "quarantine.released"
						: "quarantine.release_failed";
	return 0;
}

static int read_body(const struct httpd_req *req, const char **ret_outcome,
		     struct buf *ret, struct err *err)
{
	static const char *const keys[] = {"path",   "why", "size",
					   "sha256", "to",  "outcome"};
	cleanup_json struct json *j = NULL;
	const char *path, *why, *sha, *to;
	uint64_t size;
	size_t len;
	const void *body = httpd_req_body(req, &len);
	unsigned char sum[SHA_HEX / 2];
	struct err bad = ERR_INIT;
	struct jsonw w;

	if (json_parse(body, len, JSON_DEPTH_DEFAULT, &j, err) < 0 ||
	    json_check_keys(j, keys, ARRAY_SIZE(keys), err) < 0 ||
	    json_get_str(j, "path", true, PATH_BYTES_MAX, &path, err) < 0 ||
	    json_get_str(j, "why", true, WHY_MAX_BYTES, &why, err) < 0 ||
	    json_get_u64(j, "size", true, 0, INT64_MAX, &size, err) < 0 ||
	    json_get_str(j, "sha256", true, SHA_HEX, &sha, err) < 0 ||
	    json_get_str(j, "to", true, PATH_BYTES_MAX, &to, err) < 0 ||
	    read_outcome(j, ret_outcome, err) < 0)
		return -1;
	if (path_check_relative(path, strlen(path), &bad) < 0)
		return err_set_id(err, ERRID_SPEC_PATH, "path: %s", bad.msg);
	if (strlen(sha) != SHA_HEX || hex_decode(sha, sum, sizeof(sum)) < 0)
		return err_set_id(err, ERRID_SPEC_TYPE,
				  "sha256: 64 digits of lower case");
	if (to[0] != '/')
		return err_set_id(err, ERRID_SPEC_PATH, "to: not an absolute path");
	jsonw_init(&w, ret);
	jsonw_obj(&w);
	jsonw_kstr(&w, "path", path);
	jsonw_kstr(&w, "why", why);
	jsonw_ku64(&w, "size", size);
	jsonw_kstr(&w, "sha256", sha);
	jsonw_kstr(&w, "to", to);
	jsonw_obj_end(&w);
	return buf_ok(ret) ? 0 : err_set_id(err, ERRID_SPEC_RANGE, "path: too long");
}

void api_quarantine_release(struct httpd_req *req, void *arg)
{
	struct release *r = xnew(struct release);
	struct err err = ERR_INIT;

	r->v = arg;
	r->req = req;
	buf_init(&r->data, DATA_MAX_BYTES);
	if (api_no_query(req, &err) < 0 || api_job_id(req, &r->job, &err) < 0 ||
	    read_body(req, &r->outcome, &r->data, &err) < 0) {
		refuse(r, &err);
		return;
	}
	queue_show(r->v->queue, r->job, job_known, r);
}
