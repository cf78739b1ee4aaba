/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See uploads.h.
 */
#include "vessel/api/uploads.h"
#include "common/cleanup.h"
#include "common/json/json.h"
#include "common/jsonw.h"
#include "common/str.h"
#include "vessel/api/api.h"

#define REPLY_MAX_BYTES 1024

static int parse_body(const struct httpd_req *req, const char *const *keys, size_t n,
		      struct json **ret, struct err *err)
{
	cleanup_json struct json *j = NULL;
	size_t len;
	const void *body = httpd_req_body(req, &len);

	if (api_no_query(req, err) < 0 ||
	    json_parse(body, len, JSON_DEPTH_DEFAULT, &j, err) < 0 ||
	    json_check_keys(j, keys, n, err) < 0)
		return -1;
	*ret = TAKE_PTR(j);
	return 0;
}

void uploads_begin(struct vessel *v, struct httpd_req *req, const char *owner)
{
	cleanup_json struct json *j = NULL;
	cleanup_buf struct buf out;
	char id[UPLOAD_ID_SIZE];
	struct err err = ERR_INIT;
	struct jsonw w;

	buf_init(&out, REPLY_MAX_BYTES);
	if (parse_body(req, NULL, 0, &j, &err) < 0 ||
	    incoming_begin(v->incoming, owner, v->rng, id, &err) < 0) {
		httpd_reply_err(req, &err);
		return;
	}
	jsonw_init(&w, &out);
	jsonw_obj(&w);
	jsonw_kstr(&w, "upload", id);
	jsonw_obj_end(&w);
	httpd_reply_json(req, 201, &out);
}

void uploads_part(struct vessel *v, struct httpd_req *req, const char *owner)
{
	static const char *const allowed[] = {"offset", NULL};
	cleanup_buf struct buf out;
	struct err err = ERR_INIT;
	uint64_t offset = 0, size = 0;
	struct jsonw w;
	size_t len;
	const void *body = httpd_req_body(req, &len);

	buf_init(&out, REPLY_MAX_BYTES);
	if (httpd_req_check_query(req, allowed, &err) < 0 ||
	    api_query_u64(req, "offset", 0, BLOB_MAX_BYTES, &offset, &err) < 0) {
		httpd_reply_err(req, &err);
		return;
	}
	if (incoming_append(v->incoming, owner, httpd_req_param(req, "upload"), offset,
			    body, len, &size, &err) < 0) {
		if (err.id == ERRID_RUN_GAP)
			httpd_reply_err_expected(req, &err, size);
		else
			httpd_reply_err(req, &err);
		return;
	}
	v->metrics.upload_bytes += len;
	jsonw_init(&w, &out);
	jsonw_obj(&w);
	jsonw_ku64(&w, "received", size);
	jsonw_obj_end(&w);
	httpd_reply_json(req, 200, &out);
}

static void committed(const struct err *err, void *arg)
{
	cleanup_free struct api_call *c = arg;
	cleanup_buf struct buf out;
	struct jsonw w;

	if (err) {
		httpd_reply_err(c->req, err);
		return;
	}
	c->v->metrics.blobs_committed++;
	buf_init(&out, REPLY_MAX_BYTES);
	jsonw_init(&w, &out);
	jsonw_obj(&w);
	jsonw_kstr(&w, "sha256", c->text);
	jsonw_ku64(&w, "size", c->a);
	jsonw_obj_end(&w);
	httpd_reply_json(c->req, 201, &out);
}

void uploads_commit(struct vessel *v, struct httpd_req *req, const char *owner)
{
	static const char *const keys[] = {"sha256", "size"};
	struct api_call *c = api_call_new(v, req);
	cleanup_json struct json *j = NULL;
	struct err err = ERR_INIT;
	const char *sha;

	if (parse_body(req, keys, ARRAY_SIZE(keys), &j, &err) < 0 ||
	    json_get_str(j, "sha256", true, SHA256_HEX_SIZE - 1, &sha, &err) < 0 ||
	    json_get_u64(j, "size", true, 0, BLOB_MAX_BYTES, &c->a, &err) < 0 ||
	    str_copy(c->text, sizeof(c->text), sha) < 0 ||
	    incoming_commit(v->incoming, owner, httpd_req_param(req, "upload"), c->text,
			    c->a, committed, c, &err) < 0) {
		httpd_reply_err(req, &err);
		free(c);
	}
}

void api_upload_begin(struct httpd_req *req, void *arg)
{
	uploads_begin(arg, req, UPLOAD_OWNER);
}

void api_upload_part(struct httpd_req *req, void *arg)
{
	uploads_part(arg, req, UPLOAD_OWNER);
}

void api_upload_commit(struct httpd_req *req, void *arg)
{
	uploads_commit(arg, req, UPLOAD_OWNER);
}
