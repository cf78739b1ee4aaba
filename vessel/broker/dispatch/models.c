/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * The models that a job may ask, and one of them, in the words of a dialect.
 */
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/broker/dispatch/priv.h"
#include <stdlib.h>

#define MODELS_MAX_BYTES ((size_t)1 << 20)

bool dispatch_find_dialect(const char *name, enum portal_kind *ret)
{
	for (unsigned k = 0; k < PORTAL_KIND_MAX_; k++)
		if (str_eq(portal_kind_name((enum portal_kind)k), name)) {
			*ret = (enum portal_kind)k;
			return true;
		}
	return false;
}

struct listing {
	struct dispatch *d;
	struct httpd_req *req;
	enum portal_kind dialect;
	char *model; /* NULL: all of them */
};

static void listing_free(struct listing *l)
{
	free(l->model);
	free(l);
}

static void put_gemini(struct jsonw *w, const struct conf_portal *p,
		       const struct conf_model *m)
{
	char name[256];

	/* a name that codex.yaml takes is shorter */
	(void)!str_fmt(name, sizeof(name), "models/%s", m->name);
	jsonw_kstr(w, "name", name);
	jsonw_kstr(w, "baseModelId", m->name);
	jsonw_kstr(w, "version", "");
	jsonw_kstr(w, "displayName", m->name);
	if (m->context)
		jsonw_ku64(w, "inputTokenLimit", m->context);
	if (m->max_output)
		jsonw_ku64(w, "outputTokenLimit", m->max_output);
	jsonw_key(w, "supportedGenerationMethods");
	jsonw_arr(w);
	if (conf_portal_has(p, API_GENERATE))
		jsonw_str(w, "generateContent");
	if (conf_portal_has(p, API_COUNT_CONTENTS))
		jsonw_str(w, "countTokens");
	jsonw_arr_end(w);
}

static void put_model(struct jsonw *w, const struct conf_portal *p,
		      const struct conf_model *m)
{
	jsonw_obj(w);
	if (p->kind == PORTAL_GEMINI) {
		put_gemini(w, p, m);
		jsonw_obj_end(w);
		return;
	}
	jsonw_kstr(w, "id", m->name);
	if (p->kind == PORTAL_OPENAI) {
		jsonw_kstr(w, "object", "model");
		jsonw_ku64(w, "created", 0);
		jsonw_kstr(w, "owned_by", p->name);
	} else {
		jsonw_kstr(w, "type", "model");
		jsonw_kstr(w, "display_name", m->name);
		jsonw_kstr(w, "created_at", "1970-01-01T00:00:00Z");
	}
	jsonw_obj_end(w);
}

typedef void visit_fn(const struct conf_portal *p, const struct conf_model *m, void *arg);

/* The models that the ward lets the job ask, in the order of codex.yaml. */
static void each_model(const struct listing *l, const char *identity, visit_fn *fn,
		       void *arg)
{
	const struct conf_broker *b = l->d->cfg.broker;

	for (size_t i = 0; i < b->n_portals; i++) {
		const struct conf_portal *p = &b->portal[i];
		struct ward_verdict verdict;
		struct ward_ask ask;

		ward_ask_portal(p, identity, &ask);
		if (p->kind != l->dialect || ward_decide(b, &ask, &verdict, NULL) < 0)
			continue;
		for (size_t m = 0; m < p->n_models; m++)
			fn(p, &p->model[m], arg);
	}
}

struct writing {
	const struct listing *l;
	struct jsonw *w;
	const char *first, *last;
	bool is_found;
};

static void write_one(const struct conf_portal *p, const struct conf_model *m, void *arg)
{
	struct writing *x = arg;

	x->last = m->name;
	if (!x->first)
		x->first = m->name;
	put_model(x->w, p, m);
}

static void write_wanted(const struct conf_portal *p, const struct conf_model *m,
			 void *arg)
{
	struct writing *x = arg;

	if (x->is_found || !str_eq(m->name, x->l->model))
		return;
	x->is_found = true;
	put_model(x->w, p, m);
}

static void put_models(const struct listing *l, const char *identity, struct jsonw *w)
{
	struct writing x = {.l = l, .w = w};

	jsonw_obj(w);
	if (l->dialect == PORTAL_OPENAI)
		jsonw_kstr(w, "object", "list");
	jsonw_key(w, l->dialect == PORTAL_GEMINI ? "models" : "data");
	jsonw_arr(w);
	each_model(l, identity, write_one, &x);
	jsonw_arr_end(w);
	if (l->dialect == PORTAL_ANTHROPIC) {
		jsonw_kbool(w, "has_more", false);
		jsonw_kstr(w, "first_id", x.first);
		jsonw_kstr(w, "last_id", x.last);
	}
	jsonw_obj_end(w);
}

static int put_answer(const struct listing *l, const char *identity, struct jsonw *w,
		      struct err *err)
{
	struct writing x = {.l = l, .w = w};

	if (!l->model) {
		put_models(l, identity, w);
		return 0;
	}
	each_model(l, identity, write_wanted, &x);
	return x.is_found ? 0 : err_set_id(err, ERRID_BROKER_MODEL, "%.200s", l->model);
}

static void on_listing(const char *identity, const char *egress, const struct err *err,
		       void *arg)
{
	struct listing *l = arg;
	cleanup_buf struct buf out;
	struct err why = ERR_INIT;
	struct jsonw w;

	buf_init(&out, MODELS_MAX_BYTES);
	jsonw_init(&w, &out);
	if (!err && !str_eq(egress, "brokered") && !str_eq(egress, "registry")) {
		(void)err_set_id(&why, ERRID_BROKER_MODE, "egress: %s", egress);
		err = &why;
	}
	if (!err && put_answer(l, identity, &w, &why) < 0)
		err = &why;
	if (err) {
		httpd_reply_err(l->req, err);
	} else {
		httpd_req_add_header(l->req, "Lychgate-Upstream-Status", "200");
		httpd_reply_json(l->req, 200, &out);
	}
	listing_free(l);
}

void dispatch_models(struct dispatch *d, struct httpd_req *req,
		     const struct queue_lease *lease)
{
	static const char *const allowed[] = {"dialect", "model", NULL};
	const char *dialect = httpd_req_query(req, "dialect"),
		   *model = httpd_req_query(req, "model");
	struct err err = ERR_INIT;
	enum portal_kind kind;

	if (httpd_req_check_query(req, allowed, &err) < 0) {
		httpd_reply_err(req, &err);
		return;
	}
	if (!dialect || !dispatch_find_dialect(dialect, &kind)) {
		(void)err_set_id(&err, ERRID_HTTP_QUERY,
				 "dialect: openai, anthropic or gemini");
		httpd_reply_err(req, &err);
		return;
	}
	struct listing *l = xnew(struct listing);

	*l = (struct listing){d, req, kind, model ? xstrdup(model) : NULL};
	d->ops->lease(d->env, lease, true, on_listing, l);
}
