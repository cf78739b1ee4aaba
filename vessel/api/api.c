/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See api.h.
 */
#include "vessel/api/api.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"

struct api_call *api_call_new(struct vessel *v, struct httpd_req *req)
{
	struct api_call *c = xnew(struct api_call);

	c->v = v;
	c->req = req;
	return c;
}

int api_job_id(const struct httpd_req *req, job_id_t *ret, struct err *err)
{
	const char *id = httpd_req_param(req, "id");

	if (!id || job_id_parse(id, ret, NULL) < 0)
		return err_set_id(err, ERRID_HTTP_QUERY,
				  "a job id is a positive integer");
	return 0;
}

int api_query_u64(const struct httpd_req *req, const char *name, uint64_t min,
		  uint64_t max, uint64_t *ret, struct err *err)
{
	const char *s = httpd_req_query(req, name);

	if (!s)
		return 0;
	if (parse_u64(s, min, max, ret, NULL) < 0)
		return err_set_id(err, ERRID_HTTP_QUERY, "%s: %llu to %llu", name,
				  (unsigned long long)min, (unsigned long long)max);
	return 0;
}

int api_no_query(const struct httpd_req *req, struct err *err)
{
	static const char *const none[] = {NULL};

	return httpd_req_check_query(req, none, err);
}

int api_query_attended(const struct httpd_req *req, bool *ret, struct err *err)
{
	uint64_t attended = 0;

	if (api_query_u64(req, "attended", 0, 1, &attended, err) < 0)
		return -1;
	*ret = attended;
	return 0;
}

int api_query_tainted(const struct httpd_req *req, bool *ret, struct err *err)
{
	uint64_t said = 0;

	if (api_query_u64(req, "tainted", 0, 1, &said, err) < 0)
		return -1;
	*ret = said;
	return 0;
}

int api_check_taint(const struct queue_job *j, bool is_said, struct err *err)
{
	if (is_said || !j->taint || !*j->taint)
		return 0;
	return err_set_id(err, ERRID_RUN_TAINTED, "%s", j->taint);
}

int api_query_stream(const struct httpd_req *req, enum output_stream *ret,
		     struct err *err)
{
	const char *s = httpd_req_query(req, "stream");

	if (!s || !output_stream_from_name(s, ret))
		return err_set_id(err, ERRID_HTTP_QUERY, "stream: stdout or stderr");
	return 0;
}

void api_add_size(struct httpd_req *req, uint64_t size)
{
	char text[24];
	int r = str_fmt(text, sizeof(text), "%llu", (unsigned long long)size);

	if (r == 0)
		httpd_req_add_header(req, "Lychgate-Size", text);
}

void api_add_untrusted(struct httpd_req *req)
{
	httpd_req_add_header(req, "Lychgate-Untrusted", "1");
}

void api_reply_range(struct httpd_req *req, int fd, uint64_t size, uint64_t offset,
		     uint64_t limit)
{
	api_add_size(req, size);
	uint64_t left = offset < size ? size - offset : 0;
	uint64_t n = left < limit ? left : limit;

	if (n == 0 || fd < 0) {
		fd_close(&fd);
		httpd_reply(req, 200, "application/octet-stream", "", 0);
		return;
	}
	httpd_reply_file(req, 200, "application/octet-stream", fd, offset, n);
}

int64_t api_output_epoch(const struct output *o, const struct queue_job *j)
{
	return job_state_is_final(j->state) ? output_latest(o, j->id, j->epoch)
					    : j->epoch;
}

bool api_begin(struct vessel *v, struct httpd_req *req, const char *const *allowed,
	       job_id_t *ret_id, struct api_call **ret)
{
	struct err err = ERR_INIT;

	if (api_job_id(req, ret_id, &err) < 0 ||
	    (allowed ? httpd_req_check_query(req, allowed, &err)
		     : api_no_query(req, &err)) < 0) {
		httpd_reply_err(req, &err);
		return false;
	}
	*ret = api_call_new(v, req);
	return true;
}
