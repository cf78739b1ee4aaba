/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * What the owner may see of the broker's rules: the ward, a decision of it explained rule
 * by rule (nothing is sent, no rate is taken), portals and registries. Never a secret,
 * only its name.
 */
#include "vessel/broker/ward.h"
#include "common/cleanup.h"
#include "common/json/json.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/api/api.h"
#include "vessel/broker/intents/fetch_ward.h"
#include "vessel/egress/url.h"

#define WARD_JSON_MAX_BYTES ((size_t)1 << 20)
#define TARGET_MAX_BYTES 4096
#define REGISTRY_PREFIX "registry:"

static void kstr_or_null(struct jsonw *w, const char *key, const char *value)
{
	if (value) {
		jsonw_kstr(w, key, value);
		return;
	}
	jsonw_key(w, key);
	jsonw_null(w);
}

static void write_addresses(struct jsonw *w, const struct conf_addresses *a)
{
	jsonw_key(w, "addresses");
	jsonw_arr(w);
	for (size_t i = 0; a && i < a->n; i++)
		jsonw_str(w, a->v[i]);
	jsonw_arr_end(w);
}

/* ---- the rules -------------------------------------------------------------- */

static void write_host(struct jsonw *w, const struct conf_rule *rule)
{
	static const char *const schemes[] = {
		[WARD_HTTPS] = "https", [WARD_HTTP] = "http", [WARD_ANY_SCHEME] = NULL};
	cleanup_free char *host =
		xasprintf("%s%s", rule->is_suffix ? "*." : "", rule->name);

	jsonw_kstr(w, "host", host);
	kstr_or_null(w, "scheme", schemes[rule->scheme]);
	jsonw_ku64(w, "port", rule->port);
	kstr_or_null(w, "method", rule->method);
	kstr_or_null(w, "path", rule->path);
	kstr_or_null(w, "protocol", ward_protocol_name(rule->protocol));
	kstr_or_null(w, "push", rule->push ? "allow" : NULL);
	kstr_or_null(w, "credential", rule->credential);
	jsonw_kstr(w, "replies", ward_replies_name(rule->replies));
	write_addresses(w, &rule->addresses);
}

/* The keys of codex.yaml, with what was left out filled in: null and port 0 are any. */
static void write_rule(struct jsonw *w, const struct conf_rule *rule, size_t at)
{
	jsonw_ku64(w, "number", at + 1);
	jsonw_ku64(w, "line", rule->line);
	jsonw_kstr(w, "action", ward_action_name(rule->action));
	if (rule->target == WARD_HOST)
		write_host(w, rule);
	else
		jsonw_kstr(w, rule->target == WARD_PORTAL ? "portal" : "registry",
			   rule->name);
	if (rule->action == WARD_LIMIT) {
		jsonw_ku64(w, "limit", rule->limit_count);
		jsonw_ku64(w, "window_sec", rule->limit_window_usec / USEC_PER_SEC);
	}
	kstr_or_null(w, "reason", rule->reason);
}

/* An object of w is open then; false: the request was refused. */
static bool begin_reply(struct httpd_req *req, struct buf *out, struct jsonw *w)
{
	struct err err = ERR_INIT;

	if (api_no_query(req, &err) < 0) {
		httpd_reply_err(req, &err);
		return false;
	}
	buf_init(out, WARD_JSON_MAX_BYTES);
	jsonw_init(w, out);
	jsonw_obj(w);
	return true;
}

static void write_generation(struct jsonw *w, const struct codex *c)
{
	char when[RFC3339_SIZE];

	clock_rfc3339(c->reloaded_usec, when);
	jsonw_ku64(w, "generation", c->generation);
	jsonw_kstr(w, "sha256", c->sha256);
	kstr_or_null(w, "reloaded", c->reloaded_usec ? when : NULL);
}

void api_ward(struct httpd_req *req, void *arg)
{
	const struct vessel *v = arg;
	const struct conf_broker *b = &v->conf.broker;
	cleanup_buf struct buf out = {0};
	struct jsonw w;

	if (!begin_reply(req, &out, &w))
		return;
	write_generation(&w, &v->codex);
	jsonw_key(&w, "rules");
	jsonw_arr(&w);
	for (size_t i = 0; i < b->n_rules; i++) {
		jsonw_obj(&w);
		write_rule(&w, &b->rule[i], i);
		jsonw_obj_end(&w);
	}
	jsonw_arr_end(&w);
	jsonw_obj_end(&w);
	httpd_reply_json(req, 200, &out);
}

/* ---- one decision, explained ------------------------------------------------- */

struct ward_question {
	struct vessel *v;
	struct httpd_req *req;
	char *target, *method;
	struct url url; /* of a fetch */
	char *path;	/* of it, without the query */
	struct ward_ask ask;
	struct err unreadable; /* the URL is refused before the ward sees it */
	job_id_t job;	       /* 0: of no job */
	enum egress_mode egress;
};

static void question_free(struct ward_question *q)
{
	free(q->target);
	free(q->method);
	free(q->path);
	free(q);
}

static int find_registry(struct ward_question *q, const char *name, struct err *err)
{
	const struct conf_broker *b = &q->v->conf.broker;

	for (unsigned i = 0; i < REGISTRY_KIND_MAX_; i++) {
		if (!str_eq(name, registry_kind_name((enum registry_kind)i)) ||
		    !b->registry[i].url.text)
			continue;
		ward_ask_registry(b, (enum registry_kind)i, IDENTITY_OWNER, &q->ask);
		return 0;
	}
	return err_set_id(err, ERRID_WARD_TARGET, "'%.80s'", q->target);
}

static int find_target(struct ward_question *q, struct err *err)
{
	const struct conf_portal *p = conf_portal_find(&q->v->conf.broker, q->target);

	if (strstr(q->target, "://")) {
		if (url_parse(q->target, strlen(q->target), &q->url, NULL,
			      &q->unreadable) < 0)
			return 0;
		q->path = xstrndup(q->url.target, q->url.path_len);
		q->ask = (struct ward_ask){.identity = IDENTITY_OWNER,
					   .target = WARD_HOST,
					   .https = q->url.https,
					   .host = q->url.host,
					   .port = q->url.port,
					   .method = q->method,
					   .path = q->path,
					   .query = url_query(&q->url)};
		return 0;
	}
	if (p) {
		ward_ask_portal(p, IDENTITY_OWNER, &q->ask);
		return 0;
	}
	return find_registry(q,
			     str_starts(q->target, REGISTRY_PREFIX)
				     ? q->target + strlen(REGISTRY_PREFIX)
				     : q->target,
			     err);
}

static void write_match(struct jsonw *w, const struct ward_question *q, size_t at)
{
	const struct conf_rule *rule = &q->v->conf.broker.rule[at];
	enum ward_match m = ward_match(rule, &q->ask);

	jsonw_obj(w);
	write_rule(w, rule, at);
	jsonw_kbool(w, "matches", m == WARD_MATCHES);
	jsonw_kstr(w, "match", ward_match_text(m));
	jsonw_obj_end(w);
}

/* What the dispatcher asks of the job's own description, before the ward. */
static int check_egress(const struct ward_question *q, struct err *err)
{
	if (!q->job)
		return 0;
	if (q->egress == EGRESS_NONE)
		return err_set_id(err, ERRID_WARD_EGRESS,
				  "job %lld has egress none: no broker is there for it",
				  (long long)q->job);
	if (q->ask.target == WARD_REGISTRY && q->egress != EGRESS_REGISTRY)
		return err_set_id(err, ERRID_WARD_EGRESS,
				  "job %lld has egress %s: no package mirror",
				  (long long)q->job, egress_mode_name(q->egress));
	return 0;
}

static void write_verdict(struct jsonw *w, const struct ward_question *q)
{
	struct ward_verdict v = {.action = WARD_DENY};
	struct err err = q->unreadable;
	bool is_readable = !err_is_set(&err);
	enum reason why = REASON_NONE;
	int permitted = -1;

	if (is_readable && check_egress(q, &err) == 0) {
		permitted = ward_decide(&q->v->conf.broker, &q->ask, &v, &err);
		if (q->ask.target == WARD_HOST) /* in the words that a job is told */
			permitted =
				fetch_ward_judge_url(&q->url, &q->v->conf.broker, &q->ask,
						     permitted, &v, &why, &err);
	}
	jsonw_kbool(w, "permitted", permitted == 0);
	jsonw_kstr(w, "action", ward_action_name(v.action));
	jsonw_ku64(w, "rule", v.number);
	kstr_or_null(w, "credential", v.credential);
	jsonw_kstr(w, "replies", ward_replies_name(v.replies));
	write_addresses(w, v.addresses);
	kstr_or_null(w, "error_code", permitted < 0 ? err_text(&err) : NULL);
	kstr_or_null(w, "detail", permitted < 0 ? err.msg : NULL);
	kstr_or_null(w, "hint", permitted < 0 ? err_hint(&err) : NULL);
	jsonw_key(w, "rules");
	jsonw_arr(w);
	for (size_t i = 0; is_readable && i < q->v->conf.broker.n_rules; i++)
		write_match(w, q, i);
	jsonw_arr_end(w);
}

static void answer(struct ward_question *q)
{
	cleanup_buf struct buf out = {0};
	struct jsonw w;

	buf_init(&out, WARD_JSON_MAX_BYTES);
	jsonw_init(&w, &out);
	jsonw_obj(&w);
	jsonw_kstr(&w, "target", q->target);
	jsonw_kstr(&w, "method", q->ask.method ? q->ask.method : q->method);
	jsonw_kstr(&w, "identity", IDENTITY_OWNER);
	kstr_or_null(&w, "egress", q->job ? egress_mode_name(q->egress) : NULL);
	write_verdict(&w, q);
	jsonw_obj_end(&w);
	httpd_reply_json(q->req, 200, &out);
	question_free(q);
}

/* The stored text is our own; a job from before the key has egress none. */
static enum egress_mode egress_of(const struct queue_job *j)
{
	cleanup_json struct json *spec = NULL;
	enum egress_mode mode = EGRESS_NONE;
	const char *name = NULL;

	if (!j->spec ||
	    json_parse(j->spec, j->spec_len, JSON_DEPTH_DEFAULT, &spec, NULL) < 0 ||
	    json_get_str(spec, "egress", false, 16, &name, NULL) < 0 ||
	    !egress_mode_from_name(name, &mode))
		return EGRESS_NONE;
	return mode;
}

static void job_known(const struct queue_job *jobs, size_t n, const struct err *err,
		      void *arg)
{
	struct ward_question *q = arg;
	struct err missing = ERR_INIT;

	if (!err && n != 1) {
		(void)err_set_id(&missing, ERRID_RUN_NOT_FOUND, "no such job");
		err = &missing;
	}
	if (err) {
		httpd_reply_err(q->req, err);
		question_free(q);
		return;
	}
	q->egress = egress_of(&jobs[0]);
	answer(q);
}

static int read_question(struct httpd_req *req, struct ward_question *q, struct err *err)
{
	static const char *const keys[] = {"target", "method", "job"};
	cleanup_json struct json *j = NULL;
	const char *target = NULL, *method = "GET";
	uint64_t job = 0;
	const void *body;
	size_t len;

	body = httpd_req_body(req, &len);
	if (api_no_query(req, err) < 0 ||
	    json_parse(body, len, JSON_DEPTH_DEFAULT, &j, err) < 0 ||
	    json_check_keys(j, keys, ARRAY_SIZE(keys), err) < 0 ||
	    json_get_str(j, "target", true, TARGET_MAX_BYTES, &target, err) < 0 ||
	    json_get_str(j, "method", false, 16, &method, err) < 0 ||
	    json_get_u64(j, "job", false, 1, INT64_MAX, &job, err) < 0)
		return -1;
	q->target = xstrdup(target);
	q->method = xstrdup(method);
	q->job = (job_id_t)job;
	return find_target(q, err);
}

void api_ward_test(struct httpd_req *req, void *arg)
{
	struct ward_question *q = xnew(struct ward_question);
	struct err err = ERR_INIT;

	q->v = arg;
	q->req = req;
	if (read_question(req, q, &err) < 0) {
		httpd_reply_err(req, &err);
		question_free(q);
		return;
	}
	if (q->job)
		queue_show(q->v->queue, q->job, job_known, q);
	else
		answer(q);
}

/* ---- portals and registries ---------------------------------------------------- */

static void write_portal(struct jsonw *w, const struct conf_portal *p)
{
	jsonw_obj(w);
	jsonw_kstr(w, "name", p->name);
	jsonw_kstr(w, "kind", portal_kind_name(p->kind));
	jsonw_kstr(w, "url", p->url.text);
	kstr_or_null(w, "secret", p->secret);
	write_addresses(w, &p->addresses);
	jsonw_key(w, "apis");
	jsonw_arr(w);
	for (unsigned a = 0; a < PORTAL_API_MAX_; a++)
		if (conf_portal_has(p, (enum portal_api)a))
			jsonw_str(w, portal_api_name((enum portal_api)a));
	jsonw_arr_end(w);
	jsonw_key(w, "models");
	jsonw_arr(w);
	for (size_t i = 0; i < p->n_models; i++) {
		jsonw_obj(w);
		jsonw_kstr(w, "name", p->model[i].name);
		jsonw_ku64(w, "input_micro", p->model[i].input_price);
		jsonw_ku64(w, "output_micro", p->model[i].output_price);
		jsonw_obj_end(w);
	}
	jsonw_arr_end(w);
	jsonw_obj_end(w);
}

static void write_registry(struct jsonw *w, enum registry_kind kind,
			   const struct conf_registry *g)
{
	jsonw_obj(w);
	jsonw_kstr(w, "name", registry_kind_name(kind));
	jsonw_kstr(w, "url", g->url.text);
	jsonw_key(w, "file_hosts");
	jsonw_arr(w);
	for (size_t i = 0; i < g->n_file_hosts; i++)
		jsonw_str(w, g->file_host[i]);
	jsonw_arr_end(w);
	write_addresses(w, &g->addresses);
	jsonw_obj_end(w);
}

void api_portals(struct httpd_req *req, void *arg)
{
	const struct vessel *v = arg;
	const struct conf_broker *b = &v->conf.broker;
	cleanup_buf struct buf out = {0};
	struct jsonw w;

	if (!begin_reply(req, &out, &w))
		return;
	jsonw_key(&w, "portals");
	jsonw_arr(&w);
	for (size_t i = 0; i < b->n_portals; i++)
		write_portal(&w, &b->portal[i]);
	jsonw_arr_end(&w);
	jsonw_key(&w, "registries");
	jsonw_arr(&w);
	for (unsigned i = 0; i < REGISTRY_KIND_MAX_; i++)
		if (b->registry[i].url.text)
			write_registry(&w, (enum registry_kind)i, &b->registry[i]);
	jsonw_arr_end(&w);
	jsonw_obj_end(&w);
	httpd_reply_json(req, 200, &out);
}
