/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cleanup.h"
#include "common/jsonw.h"
#include "common/net/json.h"
#include "vessel/api.h"
#include "vessel/uploads.h"

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
	    blobs_upload_begin(v->blobs, owner, v->rng, id, &err) < 0) {
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
	if (blobs_upload_append(v->blobs, owner, httpd_req_param(req, "upload"), offset,
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

void uploads_commit(struct vessel *v, struct httpd_req *req, const char *owner)
{
	static const char *const keys[] = {"sha256", "size"};
	cleanup_json struct json *j = NULL;
	cleanup_buf struct buf out;
	struct err err = ERR_INIT;
	const char *sha;
	uint64_t size;
	struct jsonw w;

	buf_init(&out, REPLY_MAX_BYTES);
	if (parse_body(req, keys, ARRAY_SIZE(keys), &j, &err) < 0 ||
	    json_get_str(j, "sha256", true, SHA256_HEX_SIZE - 1, &sha, &err) < 0 ||
	    json_get_u64(j, "size", true, 0, BLOB_MAX_BYTES, &size, &err) < 0 ||
	    blobs_upload_commit(v->blobs, owner, httpd_req_param(req, "upload"), sha,
				size, &err) < 0) {
		httpd_reply_err(req, &err);
		return;
	}
	v->metrics.blobs_committed++;
	jsonw_init(&w, &out);
	jsonw_obj(&w);
	jsonw_kstr(&w, "sha256", sha);
	jsonw_ku64(&w, "size", size);
	jsonw_obj_end(&w);
	httpd_reply_json(req, 201, &out);
}

void api_upload_begin(struct httpd_req *req, void *arg)
{
	uploads_begin(arg, req, "owner");
}

void api_upload_part(struct httpd_req *req, void *arg)
{
	uploads_part(arg, req, "owner");
}

void api_upload_commit(struct httpd_req *req, void *arg)
{
	uploads_commit(arg, req, "owner");
}
