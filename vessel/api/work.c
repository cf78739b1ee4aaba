/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * The tombs' half of the attack surface: data of one job, from whoever holds
 * its lease. The bearer was compared before (auth.c); here each request is first
 * found to be of that tomb's own lease, and asks the database whether job, epoch and
 * token are those of the attempt that runs now; only then it touches a file. Nothing here settles a job: authority
 * is the database's.
 */
#include "common/cleanup.h"
#include "common/json/json.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/api/api.h"
#include "vessel/api/auth.h"
#include "vessel/api/uploads.h"
#include "vessel/store/output_order.h"
#include <assert.h>

#define REPLY_MAX_BYTES 1024

static void reply_empty(struct httpd_req *req)
{
	httpd_reply(req, 200, "application/json", "{}", 2);
}

static void reply_number(struct httpd_req *req, const char *key, uint64_t n)
{
	cleanup_buf struct buf out;
	struct jsonw w;

	buf_init(&out, REPLY_MAX_BYTES);
	jsonw_init(&w, &out);
	jsonw_obj(&w);
	jsonw_ku64(&w, key, n);
	jsonw_obj_end(&w);
	httpd_reply_json(req, 200, &out);
}

/* The refusal of a gap names where to go on. */
static void reply_refusal(struct httpd_req *req, const struct err *err, uint64_t expected)
{
	if (err->id == ERRID_RUN_GAP)
		httpd_reply_err_expected(req, err, expected);
	else
		httpd_reply_err(req, err);
}

void work_ping(struct httpd_req *req, void *arg UNUSED)
{
	struct err err = ERR_INIT;

	if (api_no_query(req, &err) < 0)
		httpd_reply_err(req, &err);
	else
		reply_number(req, "version", LYCH_API_VERSION);
}

static void output_part(struct vessel *v, struct httpd_req *req,
			const struct queue_lease *l)
{
	static const char *const allowed[] = {"stream", "offset", NULL};
	enum output_stream s;
	struct err err = ERR_INIT;
	uint64_t offset = 0, size = 0;
	size_t len;
	const void *body = httpd_req_body(req, &len);

	if (httpd_req_check_query(req, allowed, &err) < 0 ||
	    api_query_stream(req, &s, &err) < 0 ||
	    api_query_u64(req, "offset", 0, INT64_MAX, &offset, &err) < 0 ||
	    output_append(v->output, l->job, l->epoch, s, offset, body, len, &size,
			  &err) < 0) {
		reply_refusal(req, &err, size);
		return;
	}
	v->metrics.output_bytes += len;
	output_note(v->output, l->job, l->epoch, s, size,
		    v->clock->wall_usec(v->clock->ctx) / USEC_PER_SEC);
	reply_number(req, "size", size);
	events_output(v->events, l->job);
}

void work_output(struct httpd_req *req, void *arg)
{
	lease_live(arg, req, output_part);
}

static int read_end(const struct httpd_req *req, struct output_end *ret, struct err *err)
{
	static const char *const keys[] = {"stdout_bytes", "stderr_bytes",
					   "stdout_truncated", "stderr_truncated"};
	cleanup_json struct json *j = NULL;
	size_t len;
	const void *body = httpd_req_body(req, &len);

	if (api_no_query(req, err) < 0 ||
	    json_parse(body, len, JSON_DEPTH_DEFAULT, &j, err) < 0 ||
	    json_check_keys(j, keys, ARRAY_SIZE(keys), err) < 0 ||
	    json_get_u64(j, keys[0], true, 0, INT64_MAX, &ret->bytes[OUTPUT_STDOUT],
			 err) < 0 ||
	    json_get_u64(j, keys[1], true, 0, INT64_MAX, &ret->bytes[OUTPUT_STDERR],
			 err) < 0 ||
	    json_get_bool(j, keys[2], true, &ret->truncated[OUTPUT_STDOUT], err) < 0 ||
	    json_get_bool(j, keys[3], true, &ret->truncated[OUTPUT_STDERR], err) < 0)
		return -1;
	return 0;
}

static void output_ended(struct vessel *v, struct httpd_req *req,
			 const struct queue_lease *l)
{
	struct output_end end = {0};
	struct err err = ERR_INIT;
	uint64_t expected = 0;

	if (read_end(req, &end, &err) < 0 ||
	    output_finish(v->output, l->job, l->epoch, &end, &expected, &err) < 0) {
		reply_refusal(req, &err, expected);
		return;
	}
	reply_empty(req);
	events_output(v->events, l->job);
}

void work_output_end(struct httpd_req *req, void *arg)
{
	lease_live(arg, req, output_ended);
}

static void phase_done(const struct err *err, void *arg)
{
	cleanup_free struct api_call *c = arg;

	if (err) {
		httpd_reply_err(c->req, err);
		return;
	}
	reply_empty(c->req);
	events_hint(c->v->events);
}

static void set_phase(struct vessel *v, struct httpd_req *req,
		      const struct queue_lease *l)
{
	static const char *const keys[] = {"phase"};
	cleanup_json struct json *j = NULL;
	struct err err = ERR_INIT;
	const char *phase;
	size_t len;
	const void *body = httpd_req_body(req, &len);

	if (api_no_query(req, &err) < 0 ||
	    json_parse(body, len, JSON_DEPTH_DEFAULT, &j, &err) < 0 ||
	    json_check_keys(j, keys, ARRAY_SIZE(keys), &err) < 0 ||
	    json_get_str(j, "phase", true, 32, &phase, &err) < 0) {
		httpd_reply_err(req, &err);
		return;
	}
	if (!str_eq(phase, "preparing") && !str_eq(phase, "running") &&
	    !str_eq(phase, "harvesting")) {
		(void)err_set_id(&err, ERRID_SPEC_RANGE, "phase: no such phase");
		httpd_reply_err(req, &err);
		return;
	}
	/* the function checks the lease itself */
	queue_set_phase(v->queue, l, phase, phase_done, api_call_new(v, req));
}

void work_phase(struct httpd_req *req, void *arg)
{
	lease_owned(arg, req, set_phase);
}

static void blob_named(const struct err *err, void *arg)
{
	cleanup_free struct api_call *c = arg;
	struct err why = ERR_INIT;
	uint64_t size;

	if (err) {
		httpd_reply_err(c->req, err);
		return;
	}
	int fd = blobs_open(c->v->blobs, httpd_req_param(c->req, "sha256"), &size, &why);
	if (fd < 0) {
		httpd_reply_err(c->req, &why);
		return;
	}
	api_reply_range(c->req, fd, size, c->a, c->b);
}

static void blob_part(struct vessel *v, struct httpd_req *req,
		      const struct queue_lease *l)
{
	static const char *const allowed[] = {"offset", "limit", NULL};
	const char *sha = httpd_req_param(req, "sha256");
	uint64_t offset = 0, limit = UPLOAD_PART_MAX_BYTES;
	uint8_t raw[SHA256_SIZE];
	struct err err = ERR_INIT;

	if (httpd_req_check_query(req, allowed, &err) < 0 ||
	    api_query_u64(req, "offset", 0, BLOB_MAX_BYTES, &offset, &err) < 0 ||
	    api_query_u64(req, "limit", 1, UPLOAD_PART_MAX_BYTES, &limit, &err) < 0) {
		httpd_reply_err(req, &err);
		return;
	}
	if (!sha || sha256_hex_parse(sha, raw, NULL) < 0) {
		(void)err_set_id(&err, ERRID_HTTP_QUERY, "a blob's name is its sha256");
		httpd_reply_err(req, &err);
		return;
	}
	struct api_call *c = api_call_new(v, req);
	c->a = offset;
	c->b = limit;
	queue_job_has_blob(v->queue, l, sha, blob_named, c);
}

void work_blob(struct httpd_req *req, void *arg)
{
	lease_live(arg, req, blob_part);
}

/* An upload belongs to the attempt that began it. */
static const char *owner_of(const struct httpd_req *req, const struct queue_lease *l,
			    char out[UPLOAD_OWNER_SIZE])
{
	int r = str_fmt(out, UPLOAD_OWNER_SIZE, "%s.%lld.%lld", auth_principal(req)->tomb,
			(long long)l->job, (long long)l->epoch);
	assert(r == 0);
	return out;
}

static void upload_begin(struct vessel *v, struct httpd_req *req,
			 const struct queue_lease *l)
{
	char owner[UPLOAD_OWNER_SIZE];

	uploads_begin(v, req, owner_of(req, l, owner));
}

static void upload_part(struct vessel *v, struct httpd_req *req,
			const struct queue_lease *l)
{
	char owner[UPLOAD_OWNER_SIZE];

	uploads_part(v, req, owner_of(req, l, owner));
}

static void upload_commit(struct vessel *v, struct httpd_req *req,
			  const struct queue_lease *l)
{
	char owner[UPLOAD_OWNER_SIZE];

	uploads_commit(v, req, owner_of(req, l, owner));
}

void work_upload_begin(struct httpd_req *req, void *arg)
{
	lease_live(arg, req, upload_begin);
}

void work_upload_part(struct httpd_req *req, void *arg)
{
	lease_live(arg, req, upload_part);
}

void work_upload_commit(struct httpd_req *req, void *arg)
{
	lease_live(arg, req, upload_commit);
}
