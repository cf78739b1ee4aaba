/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * A person takes a file out of the tomb's quarantine: the log has it before it happens. The file
 * itself is none of the vessel's: lych reads the copy, and writes it.
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
	struct buf data;
};

static void release_free(struct release *r)
{
	buf_done(&r->data);
	free(r);
}

static void logged(const struct err *err, void *arg)
{
	struct release *r = arg;
	cleanup_buf struct buf out;
	struct jsonw w;

	buf_init(&out, REPLY_MAX_BYTES);
	jsonw_init(&w, &out);
	jsonw_obj(&w);
	jsonw_ki64(&w, "id", r->job);
	jsonw_obj_end(&w);
	if (err)
		httpd_reply_err(r->req, err);
	else
		httpd_reply_json(r->req, 200, &out);
	release_free(r);
}

static int check_job(const struct queue_job *jobs, size_t n, struct err *err)
{
	if (n != 1)
		return err_set_id(err, ERRID_RUN_NOT_FOUND, "no such job");
	if (jobs[0].taint && *jobs[0].taint)
		return err_set_id(err, ERRID_RUN_TAINTED, "%s", jobs[0].taint);
	return 0;
}

static void job_known(const struct queue_job *jobs, size_t n, const struct err *err,
		      void *arg)
{
	struct release *r = arg;
	const struct clock_ops *clock = r->v->clock;
	struct err why = ERR_INIT;

	if (err || check_job(jobs, n, &why) < 0) {
		httpd_reply_err(r->req, err ? err : &why);
		release_free(r);
		return;
	}
	const struct audit_event e = {
		.name = "quarantine.released",
		.time_ms = clock->wall_usec(clock->ctx) / USEC_PER_MSEC,
		.actor = "owner",
		.job = r->job,
		.epoch = jobs[0].epoch,
		.data = r->data.data,
		.data_len = r->data.len,
	};
	if (!audit_before(r->v->audit, &e, logged, r, &why)) {
		httpd_reply_err(r->req, &why);
		release_free(r);
	}
}

static int read_body(const struct httpd_req *req, struct buf *ret, struct err *err)
{
	static const char *const keys[] = {"path", "why", "size", "sha256"};
	cleanup_json struct json *j = NULL;
	const char *path, *why, *sha;
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
	    json_get_str(j, "sha256", true, SHA_HEX, &sha, err) < 0)
		return -1;
	if (path_check_relative(path, strlen(path), &bad) < 0)
		return err_set_id(err, ERRID_SPEC_PATH, "path: %s", bad.msg);
	if (strlen(sha) != SHA_HEX || hex_decode(sha, sum, sizeof(sum)) < 0)
		return err_set_id(err, ERRID_SPEC_TYPE,
				  "sha256: 64 digits of lower case");
	jsonw_init(&w, ret);
	jsonw_obj(&w);
	jsonw_kstr(&w, "path", path);
	jsonw_kstr(&w, "why", why);
	jsonw_ku64(&w, "size", size);
	jsonw_kstr(&w, "sha256", sha);
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
	    read_body(req, &r->data, &err) < 0) {
		httpd_reply_err(req, &err);
		release_free(r);
		return;
	}
	queue_show(r->v->queue, r->job, job_known, r);
}
