/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * The queue over the work socket. The bearer was compared before, and the name found
 * among the registered tombs (auth.c); what is asked here is asked of the database on
 * that tomb's own connection, so that a lease of another tomb is as foreign as it would
 * be to a login of its own. Nothing is decided here, and nothing remembered: a vessel
 * that dies between the commit and its answer is asked again, and the functions give the
 * same answer.
 */
#include "common/base64.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/proto/job_spec.h"
#include "common/str.h"
#include "vessel/api/api.h"
#include "vessel/api/auth.h"
#include "vessel/api/hints.h"

/* A claim's specs in base64, and what stands around them. */
#define CLAIM_REPLY_MAX_BYTES (DOOR_CLAIM_MAX * (SPEC_MAX_BYTES / 3 * 4 + 4096))
#define SMALL_REPLY_MAX_BYTES 8192

/* One answer: an object that somebody fills. */
struct answer {
	struct httpd_req *req;
	struct buf out;
	struct jsonw w;
};

static void answer_begin(struct answer *a, struct httpd_req *req, size_t max)
{
	a->req = req;
	buf_init(&a->out, max);
	jsonw_init(&a->w, &a->out);
	jsonw_obj(&a->w);
}

static void answer_end(struct answer *a)
{
	jsonw_obj_end(&a->w);
	httpd_reply_json(a->req, 200, &a->out);
	buf_done(&a->out);
}

/* A list of objects is its only member. False: there is none, err was the answer. */
static bool list_begin(struct answer *a, struct httpd_req *req, const struct err *err,
		       const char *key, size_t max)
{
	if (err) {
		httpd_reply_err(req, err);
		return false;
	}
	answer_begin(a, req, max);
	jsonw_key(&a->w, key);
	jsonw_arr(&a->w);
	return true;
}

static void list_end(struct answer *a)
{
	jsonw_arr_end(&a->w);
	answer_end(a);
}

void work_hello(struct httpd_req *req, void *arg)
{
	struct vessel *v = arg;
	const char *name = auth_principal(req)->tomb;
	struct door_hello hello = {0};
	struct err err = ERR_INIT;
	struct answer a;
	size_t len;
	const void *body = httpd_req_body(req, &len);

	if (api_no_query(req, &err) < 0 ||
	    door_hello_parse(body, len, &hello, &err) < 0) {
		httpd_reply_err(req, &err);
		return;
	}
	if (hello.door == DOOR_VESSEL && !door_find(v->door, name)) {
		(void)err_set_id(&err, ERRID_RUN_TOMB, "'%s' is not registered", name);
		httpd_reply_err(req, &err);
		return;
	}
	tombs_hello(v->tombs, name, &hello);
	answer_begin(&a, req, SMALL_REPLY_MAX_BYTES);
	jsonw_ku64(&a.w, "protocol", v->protocol);
	jsonw_kstr(&a.w, "release", LYCH_VERSION);
	answer_end(&a);
}

static struct door_tomb *tomb_of(struct vessel *v, const struct httpd_req *req)
{
	return door_find(v->door, auth_principal(req)->tomb);
}

void work_hints(struct httpd_req *req, void *arg)
{
	static const char *const allowed[] = {"after", NULL};
	struct vessel *v = arg;
	struct err err = ERR_INIT;
	uint64_t after = 0;

	if (httpd_req_check_query(req, allowed, &err) < 0 ||
	    api_query_u64(req, "after", 0, UINT64_MAX, &after, &err) < 0) {
		httpd_reply_err(req, &err);
		return;
	}
	hints_wait(v->hints, req, tomb_of(v, req), after);
}

static void claimed(const struct door_claimed *jobs, size_t n, const struct err *err,
		    void *arg)
{
	struct answer a;

	if (!list_begin(&a, arg, err, "jobs", CLAIM_REPLY_MAX_BYTES))
		return;
	for (size_t i = 0; i < n; i++) {
		jsonw_obj(&a.w);
		jsonw_ki64(&a.w, "job", jobs[i].job);
		jsonw_ki64(&a.w, "epoch", jobs[i].epoch);
		jsonw_kstr(&a.w, "token", jobs[i].token);
		jsonw_ki64(&a.w, "attempt", jobs[i].attempt);
		jsonw_key(&a.w, "spec");
		/* Byte for byte what was accepted, so not as JSON. */
		jsonw_raw(&a.w, "\"", 1);
		base64_add(&a.out, jobs[i].spec, jobs[i].spec_len);
		buf_addc(&a.out, '"');
		jsonw_obj_end(&a.w);
	}
	list_end(&a);
}

void work_claim(struct httpd_req *req, void *arg)
{
	struct vessel *v = arg;
	struct door_claim claim = {0};
	struct err err = ERR_INIT;
	size_t len;
	const void *body = httpd_req_body(req, &len);

	if (api_no_query(req, &err) < 0 ||
	    door_claim_parse(body, len, &claim, &err) < 0) {
		httpd_reply_err(req, &err);
		return;
	}
	door_claim(tomb_of(v, req), &claim, claimed, req);
}

static void extended(const struct door_word *words, size_t n, const struct err *err,
		     void *arg)
{
	struct answer a;

	if (!list_begin(&a, arg, err, "leases", SMALL_REPLY_MAX_BYTES))
		return;
	for (size_t i = 0; i < n; i++) {
		jsonw_obj(&a.w);
		jsonw_ki64(&a.w, "job", words[i].job);
		jsonw_kstr(&a.w, "status", words[i].status);
		jsonw_obj_end(&a.w);
	}
	list_end(&a);
}

void work_extend(struct httpd_req *req, void *arg)
{
	struct vessel *v = arg;
	struct door_extend extend = {0};
	struct err err = ERR_INIT;
	size_t len;
	const void *body = httpd_req_body(req, &len);

	if (api_no_query(req, &err) < 0 ||
	    door_extend_parse(body, len, &extend, &err) < 0) {
		httpd_reply_err(req, &err);
		return;
	}
	door_extend(tomb_of(v, req), &extend, extended, req);
}

static void ended(const char *word, const struct err *err, void *arg)
{
	struct answer a;

	if (err) {
		httpd_reply_err(arg, err);
		return;
	}
	answer_begin(&a, arg, SMALL_REPLY_MAX_BYTES);
	jsonw_kstr(&a.w, "answer", word);
	answer_end(&a);
}

void work_ack(struct httpd_req *req, void *arg)
{
	struct vessel *v = arg;
	struct err err = ERR_INIT;
	size_t len;
	const void *body = httpd_req_body(req, &len);

	if (api_no_query(req, &err) < 0) {
		httpd_reply_err(req, &err);
		return;
	}
	door_ack(tomb_of(v, req), &auth_principal(req)->lease, body ? body : "", len,
		 ended, req);
}

/* NULL: it is not there. */
static int read_bool(const char *word, bool *ret)
{
	*ret = word && str_eq(word, "true");
	return *ret || (word && str_eq(word, "false")) ? 0 : -1;
}

void work_fail(struct httpd_req *req, void *arg)
{
	static const char *const allowed[] = {"class", "retry", NULL};
	struct vessel *v = arg;
	struct door_fail f = {0};
	struct err err = ERR_INIT;
	const char *why;

	if (httpd_req_check_query(req, allowed, &err) < 0) {
		httpd_reply_err(req, &err);
		return;
	}
	why = httpd_req_query(req, "class");
	if (!fail_class_from_name(why ? why : "", &f.why) ||
	    read_bool(httpd_req_query(req, "retry"), &f.retry) < 0) {
		(void)err_set_id(&err, ERRID_HTTP_QUERY,
				 "class: one of the failure classes, or left out; "
				 "retry: true or false");
		httpd_reply_err(req, &err);
		return;
	}
	f.result = httpd_req_body(req, &f.len);
	/* No body: no account of the attempt. */
	if (f.len == 0)
		f.result = NULL;
	door_fail(tomb_of(v, req), &auth_principal(req)->lease, &f, ended, req);
}

void work_release(struct httpd_req *req, void *arg)
{
	static const char *const allowed[] = {"died", NULL};
	struct vessel *v = arg;
	struct err err = ERR_INIT;
	const char *word;
	bool died = false;

	if (httpd_req_check_query(req, allowed, &err) < 0) {
		httpd_reply_err(req, &err);
		return;
	}
	word = httpd_req_query(req, "died");
	if (word && read_bool(word, &died) < 0) {
		(void)err_set_id(&err, ERRID_HTTP_QUERY, "died: true or false");
		httpd_reply_err(req, &err);
		return;
	}
	door_release(tomb_of(v, req), &auth_principal(req)->lease, died, ended, req);
}
