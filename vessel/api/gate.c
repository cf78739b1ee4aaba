/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * The owner's side of the gate: scan a text, register what is private. Texts come in and
 * never go out again: answers hold families, places and digests.
 */
#include "common/cleanup.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/api/api.h"
#include "vessel/broker/gate/private_store.h"

#define ANSWER_MAX_BYTES ((size_t)2 << 20)
#define SCAN_DESTINATION "owner"

/* ---- scan ---- */

struct scan {
	struct httpd_req *req;
	struct gate_ask *ask; /* NULL: answered */
};

static uint64_t thousandths(double share)
{
	return (uint64_t)(share * 1000 + 0.5);
}

/* "0.850": jsonw knows no fractions. */
static void write_share(struct jsonw *w, const char *key, double share)
{
	char text[16];
	uint64_t t = thousandths(share);
	int n = snprintf(text, sizeof(text), "%u.%03u", (unsigned)(t / 1000),
			 (unsigned)(t % 1000));

	jsonw_key(w, key);
	jsonw_raw(w, text, n > 0 ? (size_t)n : 0);
}

static void write_finding(struct jsonw *w, const struct gate_finding *f)
{
	char mac[2 * GATE_MAC_SIZE + 1];

	hex_encode(f->mac, sizeof(f->mac), mac);
	jsonw_obj(w);
	jsonw_kstr(w, "family", gate_family_info(f->family)->name);
	jsonw_kstr(w, "rule", f->rule);
	write_share(w, "severity", f->severity);
	jsonw_ku64(w, "offset", f->offset);
	jsonw_ku64(w, "length", f->len);
	jsonw_ku64(w, "depth", f->depth);
	jsonw_kstr(w, "mac", mac);
	jsonw_obj_end(w);
}

static void scan_done(const struct gate_answer *a, void *arg)
{
	cleanup_free struct scan *s = arg;
	cleanup_buf struct buf out;
	struct jsonw w;

	/* Too private is an answer here; no answer at all is an error. */
	if (a->err && a->err->id != ERRID_GATE_PRIVATE &&
	    a->err->id != ERRID_GATE_UNREADABLE) {
		httpd_reply_err(s->req, a->err);
		return;
	}
	buf_init(&out, ANSWER_MAX_BYTES);
	jsonw_init(&w, &out);
	jsonw_obj(&w);
	write_share(&w, "score", a->score);
	jsonw_kstr(&w, "verdict", gate_verdict_name(a->verdict));
	jsonw_key(&w, "findings");
	jsonw_arr(&w);
	for (size_t i = 0; i < a->n_findings; i++)
		write_finding(&w, &a->findings[i]);
	jsonw_arr_end(&w);
	jsonw_obj_end(&w);
	httpd_reply_json(s->req, 200, &out);
}

void api_gate_scan(struct httpd_req *req, void *arg)
{
	struct vessel *v = arg;
	struct gate_parts *parts;
	struct err err = ERR_INIT;
	struct scan *s;
	const void *body;
	size_t len;

	if (api_no_query(req, &err) < 0) {
		httpd_reply_err(req, &err);
		return;
	}
	body = httpd_req_body(req, &len);
	parts = gate_parts_new();
	gate_parts_add(parts, GATE_PART_TEXT, NULL, body, len);
	s = xnew(struct scan);
	s->req = req;
	/* A client that goes away is no reason to stop: the reply is then a no-op. */
	if (gate_client_ask(v->gate, NULL, SCAN_DESTINATION, parts, scan_done, s, &s->ask,
			    &err) < 0) {
		free(s);
		httpd_reply_err(req, &err);
	}
}

/* ---- what is private ---- */

static void write_entry(struct jsonw *w, const struct private_entry *e)
{
	char when[RFC3339_SIZE];

	clock_rfc3339(e->created_usec, when);
	jsonw_obj(w);
	jsonw_ku64(w, "id", e->id);
	jsonw_kstr(w, "kind", e->kind == PRIVATE_TERM ? "term" : "file");
	jsonw_kstr(w, "name", e->name);
	jsonw_kstr(w, "created", when);
	jsonw_ku64(w, "bytes", e->bytes);
	jsonw_ku64(w, "fingerprints", e->prints);
	jsonw_obj_end(w);
}

void api_private_list(struct httpd_req *req, void *arg)
{
	const struct vessel *v = arg;
	const struct gate_private *p = private_store_get(v->terms);
	cleanup_buf struct buf out;
	struct err err = ERR_INIT;
	struct jsonw w;

	if (api_no_query(req, &err) < 0) {
		httpd_reply_err(req, &err);
		return;
	}
	buf_init(&out, (size_t)8 << 20);
	jsonw_init(&w, &out);
	jsonw_obj(&w);
	jsonw_key(&w, "entries");
	jsonw_arr(&w);
	for (size_t i = 0; i < gate_private_count(p); i++) {
		struct private_entry e;

		gate_private_at(p, i, &e);
		write_entry(&w, &e);
	}
	jsonw_arr_end(&w);
	jsonw_obj_end(&w);
	httpd_reply_json(req, 200, &out);
}

static void reply_id(struct httpd_req *req, int status, uint64_t id)
{
	cleanup_buf struct buf out;
	struct jsonw w;

	buf_init(&out, 256);
	jsonw_init(&w, &out);
	jsonw_obj(&w);
	jsonw_ku64(&w, "id", id);
	jsonw_obj_end(&w);
	httpd_reply_json(req, status, &out);
}

static int add(struct vessel *v, struct httpd_req *req, uint64_t *ret_id, struct err *err)
{
	static const char *const allowed[] = {"kind", "name", NULL};
	const char *kind = httpd_req_query(req, "kind");
	const char *name = httpd_req_query(req, "name");
	const void *body;
	size_t len;

	if (httpd_req_check_query(req, allowed, err) < 0)
		return -1;
	if (!kind || !name || !(str_eq(kind, "term") || str_eq(kind, "file")))
		return err_set_id(err, ERRID_HTTP_QUERY, "kind (term or file) and name");
	body = httpd_req_body(req, &len);
	return private_store_add(v->terms,
				 str_eq(kind, "term") ? PRIVATE_TERM : PRIVATE_FILE, name,
				 body, len, ret_id, err);
}

void api_private_add(struct httpd_req *req, void *arg)
{
	struct err err = ERR_INIT;
	uint64_t id;

	if (add(arg, req, &id, &err) < 0)
		httpd_reply_err(req, &err);
	else
		reply_id(req, 201, id);
}

/* What is registered no more may leave: not by a program of the owner's alone. */
static int remove_entry(struct vessel *v, struct httpd_req *req, uint64_t id,
			struct err *err)
{
	char act[FACTOR_ACT_MAX_BYTES];

	if (!gate_private_has(private_store_get(v->terms), id))
		return err_set_id(err, ERRID_GATE_NO_TERM, "%llu",
				  (unsigned long long)id);
	if (str_fmt(act, sizeof(act), "remove entry %llu of what is private",
		    (unsigned long long)id) < 0)
		return err_set(err, ERR_INTERNAL, "an act's words");
	if (factor_check(v, req, act, err) < 0)
		return -1;
	return private_store_remove(v->terms, id, err);
}

void api_private_remove(struct httpd_req *req, void *arg)
{
	struct vessel *v = arg;
	struct err err = ERR_INIT;
	uint64_t id;

	if (api_no_query(req, &err) < 0 ||
	    parse_u64(httpd_req_param(req, "entry"), 1, INT64_MAX, &id, &err) < 0 ||
	    remove_entry(v, req, id, &err) < 0)
		httpd_reply_err(req, &err);
	else
		reply_id(req, 200, id);
}
