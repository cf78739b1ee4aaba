/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * A person contains a job, and is told how far that is. The first answer comes when the job is revoked; what
 * follows is no request's (broker/containments.h).
 */
#include "common/cleanup.h"
#include "common/json/json.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/text/hazard.h"
#include "vessel/api/api.h"
#include "vessel/broker/containments.h"
#include "vessel/broker/triggers.h"

#define REASON_MAX_BYTES 200
#define REPLY_MAX_BYTES 256
#define SHOW_MAX_BYTES ((size_t)1 << 20)
static const char no_reason[] = "contained by a person, who gave no reason";

static void contained(bool is_new, const struct err *err, void *arg)
{
	cleanup_free struct api_call *c = arg;
	cleanup_buf struct buf out = {.max = REPLY_MAX_BYTES};
	struct jsonw w;

	if (err) {
		httpd_reply_err(c->req, err);
		return;
	}
	containments_hint(c->v->containments);
	events_hint(c->v->events);
	jsonw_init(&w, &out);
	jsonw_obj(&w);
	jsonw_ku64(&w, "id", c->a);
	jsonw_kbool(&w, "new", is_new);
	jsonw_obj_end(&w);
	httpd_reply_json(c->req, 200, &out);
}

/* It is shown to people for as long as the job is kept. */
static int read_reason(const struct httpd_req *req, struct json **ret_body,
		       const char **ret, struct err *err)
{
	static const char *const keys[] = {"reason"};
	size_t len;
	const void *body = httpd_req_body(req, &len);

	*ret = no_reason;
	if (len == 0)
		return 0;
	if (json_parse(body, len, JSON_DEPTH_DEFAULT, ret_body, err) < 0 ||
	    json_check_keys(*ret_body, keys, ARRAY_SIZE(keys), err) < 0 ||
	    json_get_str(*ret_body, "reason", false, REASON_MAX_BYTES, ret, err) < 0)
		return -1;
	if (!**ret)
		return err_set_id(err, ERRID_SPEC_RANGE, "reason: it is empty");
	if (str_has_control(*ret, strlen(*ret)) || !hazard_is_plain(*ret))
		return err_set_id(err, ERRID_SPEC_RANGE,
				  "reason: one line of plain text, without control "
				  "characters");
	if (str_starts(*ret, TRIGGER_REASON))
		return err_set_id(err, ERRID_SPEC_RANGE,
				  "reason: '" TRIGGER_REASON "...' is the vessel's own "
				  "word for what no person did");
	return 0;
}

void api_contain(struct httpd_req *req, void *arg)
{
	struct vessel *v = arg;
	cleanup_json struct json *body = NULL;
	const char *reason = NULL;
	struct err err = ERR_INIT;
	struct api_call *c;
	job_id_t id;

	if (!api_begin(v, req, NULL, &id, &c))
		return;
	if (read_reason(req, &body, &reason, &err) < 0) {
		httpd_reply_err(req, &err);
		free(c);
		return;
	}
	c->a = (uint64_t)id;
	queue_contain_as(v->queue, id, reason, contained, c);
}

static void shown(const char *json, size_t len, const struct err *err, void *arg)
{
	cleanup_free struct api_call *c = arg;
	cleanup_buf struct buf out = {.max = SHOW_MAX_BYTES};

	if (err) {
		httpd_reply_err(c->req, err);
		return;
	}
	buf_add(&out, json, len);
	httpd_reply_json(c->req, 200, &out);
}

void api_containment(struct httpd_req *req, void *arg)
{
	struct vessel *v = arg;
	struct api_call *c;
	job_id_t id;

	if (api_begin(v, req, NULL, &id, &c))
		queue_containment_show(v->queue, id, shown, c);
}
