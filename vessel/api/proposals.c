/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * What was refused to jobs for want of a rule, and a person's word on it: allowed once, or for as long as
 * the attempt runs, which wants the second factor. It is in the log before it counts.
 */
#include "vessel/broker/proposals.h"
#include "common/cleanup.h"
#include "common/json/json.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/api/api.h"
#include "vessel/audit/audit.h"
#include "vessel/audit/event.h"

#define LIST_MAX_BYTES ((size_t)4 << 20)
#define REPLY_MAX_BYTES 4096
#define REASON_MAX_BYTES 200 /* as of a rule */

/* ---- what there is ----------------------------------------------------------- */

static void write_time(struct jsonw *w, const char *key, usec_t wall)
{
	char when[RFC3339_SIZE];

	clock_rfc3339(wall, when);
	jsonw_kstr(w, key, when);
}

/* The members of an open object. */
static void write_what(struct jsonw *w, const struct proposal *one)
{
	jsonw_ku64(w, "proposal", one->number);
	jsonw_kstr(w, "method", one->method);
	jsonw_kstr(w, "host", one->host);
	jsonw_kstr(w, "path", one->path);
}

static void write_one(struct jsonw *w, const struct proposal *one)
{
	jsonw_obj(w);
	write_what(w, one);
	jsonw_ku64(w, "job", (uint64_t)one->job);
	jsonw_ku64(w, "times", one->times);
	write_time(w, "first", one->first_usec);
	write_time(w, "last", one->last_usec);
	jsonw_kstr(w, "state", proposal_state_name(one->state));
	jsonw_obj_end(w);
}

void api_proposals(struct httpd_req *req, void *arg)
{
	const struct vessel *v = arg;
	cleanup_buf struct buf out = {.max = LIST_MAX_BYTES};
	struct err err = ERR_INIT;
	struct jsonw w;

	if (api_no_query(req, &err) < 0) {
		httpd_reply_err(req, &err);
		return;
	}
	jsonw_init(&w, &out);
	jsonw_obj(&w);
	jsonw_key(&w, "proposals");
	jsonw_arr(&w);
	for (size_t i = 0; i < proposals_count(v->proposals); i++) {
		const struct proposal *one = proposals_at(v->proposals, i);

		if (proposal_is_shown(one))
			write_one(&w, one);
	}
	jsonw_arr_end(&w);
	jsonw_obj_end(&w);
	api_add_untrusted(req);
	httpd_reply_json(req, 200, &out);
}

/* ---- a person's word --------------------------------------------------------- */

/* From the request to the log's answer. */
struct word {
	struct vessel *v;
	struct httpd_req *req;
	uint64_t number;
	enum proposal_state to;
	char reason[REASON_MAX_BYTES + 1];
};

static void refuse(struct word *word, const struct err *err)
{
	httpd_reply_err(word->req, err);
	free(word);
}

static int read_number(const struct httpd_req *req, uint64_t *ret, struct err *err)
{
	if (api_no_query(req, err) < 0)
		return -1;
	if (parse_u64(httpd_req_param(req, "n"), 1, INT64_MAX, ret, NULL) < 0)
		return err_set_id(err, ERRID_HTTP_QUERY, "a proposal's number");
	return 0;
}

static void reply(struct httpd_req *req, uint64_t number, const char *state)
{
	cleanup_buf struct buf out = {.max = REPLY_MAX_BYTES};
	struct jsonw w;

	jsonw_init(&w, &out);
	jsonw_obj(&w);
	jsonw_ku64(&w, "proposal", number);
	jsonw_kstr(&w, "state", state);
	jsonw_obj_end(&w);
	httpd_reply_json(req, 200, &out);
}

static void word_logged(const struct err *said, void *arg)
{
	struct word *word = arg;
	struct err err = ERR_INIT;

	if (said || proposals_set(word->v->proposals, word->number, word->to, &err) < 0) {
		refuse(word, said ? said : &err);
		return;
	}
	reply(word->req, word->number, proposal_state_name(word->to));
	free(word);
}

/* data: room for it, which the event points at. */
static struct audit_event event_of(const struct vessel *v, const char *name,
				   const struct proposal *one, const char *reason,
				   struct buf *data)
{
	struct jsonw w;

	jsonw_init(&w, data);
	jsonw_obj(&w);
	write_what(&w, one);
	if (reason && *reason)
		jsonw_kstr(&w, "reason", reason);
	jsonw_obj_end(&w);
	return (struct audit_event){
		.name = name,
		.time_ms = v->clock->wall_usec(v->clock->ctx) / USEC_PER_MSEC,
		.actor = "owner",
		.job = one->job,
		.epoch = one->epoch,
		.data = buf_str(data),
		.data_len = data->len,
	};
}

static int log_word(struct word *word, const struct proposal *one, struct err *err)
{
	cleanup_buf struct buf data = {.max = AUDIT_DATA_MAX};
	const struct audit_event e = event_of(
		word->v,
		word->to == PROPOSAL_ONCE ? "ward.allowed_once" : "ward.allowed_job", one,
		word->reason, &data);

	return audit_before(word->v->audit, &e, word_logged, word, err) ? 0 : -1;
}

/* Who is not there any more, or is another attempt by now, asks nothing. */
static void job_shown(const struct queue_job *jobs, size_t n, const struct err *said,
		      void *arg)
{
	struct word *word = arg;
	const struct proposal *one = NULL;
	struct err err = ERR_INIT;
	bool runs;

	if (said) {
		refuse(word, said);
		return;
	}
	if (proposals_find(word->v->proposals, word->number, &one, &err) < 0) {
		refuse(word, &err);
		return;
	}
	runs = n == 1 && jobs[0].epoch == one->epoch &&
	       (jobs[0].state == JOB_PREPARING || jobs[0].state == JOB_RUNNING);
	if (!runs)
		(void)err_set_id(&err, ERRID_PROPOSAL_ENDED, "job %lld",
				 (long long)one->job);
	if (!runs || log_word(word, one, &err) < 0)
		refuse(word, &err);
}

static int read_word(struct word *word, struct err *err)
{
	static const char *const keys[] = {"how", "reason"};
	cleanup_json struct json *j = NULL;
	const char *how = "", *reason = "";
	const void *body;
	size_t len;

	body = httpd_req_body(word->req, &len);
	if (read_number(word->req, &word->number, err) < 0 ||
	    json_parse(len ? body : "", len, JSON_DEPTH_DEFAULT, &j, err) < 0 ||
	    json_check_keys(j, keys, ARRAY_SIZE(keys), err) < 0 ||
	    json_get_str(j, "how", true, 16, &how, err) < 0 ||
	    json_get_str(j, "reason", false, REASON_MAX_BYTES, &reason, err) < 0)
		return -1;
	if (!str_eq(how, "once") && !str_eq(how, "job"))
		return err_set_id(err, ERRID_SPEC_RANGE, "how: once or job");
	word->to = str_eq(how, "once") ? PROPOSAL_ONCE : PROPOSAL_JOB;
	return str_copy(word->reason, sizeof(word->reason), reason);
}

static int may(struct word *word, const struct proposal *one, struct err *err)
{
	char act[FACTOR_ACT_MAX_BYTES];

	if (word->to == PROPOSAL_ONCE)
		return 0;
	if (str_fmt(act, sizeof(act), "allow proposal %llu to its job %lld",
		    (unsigned long long)one->number, (long long)one->job) < 0)
		return err_set(err, ERR_INTERNAL, "an act's words");
	return factor_check(word->v, word->req, act, err);
}

void api_proposal_allow(struct httpd_req *req, void *arg)
{
	struct word *word = xnew(struct word);
	const struct proposal *one = NULL;
	struct err err = ERR_INIT;

	word->v = arg;
	word->req = req;
	if (read_word(word, &err) < 0 ||
	    proposals_find(word->v->proposals, word->number, &one, &err) < 0 ||
	    may(word, one, &err) < 0) {
		refuse(word, &err);
		return;
	}
	queue_show(word->v->queue, one->job, job_shown, word);
}

/* One that was allowed is allowed no more. */
void api_proposal_drop(struct httpd_req *req, void *arg)
{
	struct vessel *v = arg;
	cleanup_buf struct buf data = {.max = AUDIT_DATA_MAX};
	const struct proposal *one = NULL;
	struct err err = ERR_INIT;
	uint64_t number = 0;

	if (read_number(req, &number, &err) < 0 ||
	    proposals_find(v->proposals, number, &one, &err) < 0 ||
	    proposals_set(v->proposals, number, PROPOSAL_DROPPED, &err) < 0) {
		httpd_reply_err(req, &err);
		return;
	}
	const struct audit_event e =
		event_of(v, "ward.proposal_dropped", one, NULL, &data);

	audit_note(v->audit, &e);
	reply(req, number, proposal_state_name(PROPOSAL_DROPPED));
}
