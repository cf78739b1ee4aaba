/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Other rules for the ward and other credentials, without a restart: one generation. The owner sends a
 * whole codex.yaml; it is read as the file is at a start, and must say the same as that but for
 * these. A worker for each key that is new comes to be beside the old ones. When all are up and the
 * log has it on disk, rules and keys change in one step, and what is under way is judged by them.
 * Whatever fails before leaves everything as it was. Who was shown one rule (adds=1) puts nothing else
 * into force with it.
 */
#include "vessel/api/ward_reload.h"
#include "common/cleanup.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/api/api.h"
#include "vessel/audit/audit.h"
#include "vessel/audit/event.h"
#include "vessel/broker/dispatch/dispatch.h"
#include "vessel/broker/intents/fetch_keys.h"
#include "vessel/egress/egress.h"

#define REPLY_MAX_BYTES 1024
#define EVENT_MAX_BYTES 4096
#define WARD_KEY "ward"

struct ward_reload {
	struct vessel *v;
	struct httpd_req *req;
	bool is_parsed, is_prepared;
	struct conf next;
	size_t n_new_keys;
	char sha256[SHA256_HEX_SIZE];
	char *flat;
	struct buf data; /* of the event */
};

void ward_reload_free(struct ward_reload *r)
{
	if (!r)
		return;
	if (r->is_parsed)
		conf_done(&r->next);
	buf_done(&r->data);
	free(r->flat);
	free(r);
}

void ward_reload_digest(const void *text, size_t len, char ret[SHA256_HEX_SIZE])
{
	cleanup_sha256 struct sha256 *h = sha256_new();

	sha256_add(h, text, len);
	sha256_hex(h, ret);
}

static void end(struct ward_reload *r)
{
	if (r->v->codex.reload == r)
		r->v->codex.reload = NULL;
	ward_reload_free(r);
}

static void refuse(struct ward_reload *r, const struct err *err)
{
	if (r->is_prepared)
		egress_hosts_drop(r->v->egress);
	httpd_reply_err(r->req, err);
	end(r);
}

static size_t count_denying(const struct conf_broker *b)
{
	size_t n = 0;

	for (size_t i = 0; i < b->n_rules; i++)
		n += b->rule[i].action == WARD_DENY;
	return n;
}

/* What the log and the answer say alike. */
static void put_change(struct jsonw *w, const struct ward_reload *r,
		       const struct conf_broker *b)
{
	jsonw_kstr(w, "sha256", r->sha256);
	jsonw_ku64(w, "rules", b->n_rules);
	jsonw_ku64(w, "denying", count_denying(b));
	jsonw_ku64(w, "credentials", b->n_credentials);
}

/* Whose keys are read anew, and who has none any more. */
static void put_keys(struct jsonw *w, struct ward_reload *r)
{
	const struct conf_broker *b = &r->v->conf.broker, *next = &r->next.broker;

	jsonw_key(w, "new_keys");
	jsonw_arr(w);
	for (size_t i = 0; i < next->n_credentials; i++)
		if (egress_hosts_is_new(r->v->egress, i)) {
			jsonw_str(w, next->credential[i].name);
			r->n_new_keys++;
		}
	jsonw_arr_end(w);
	jsonw_key(w, "gone_keys");
	jsonw_arr(w);
	for (size_t i = 0; i < b->n_credentials; i++)
		if (!conf_credential_find(next, b->credential[i].name))
			jsonw_str(w, b->credential[i].name);
	jsonw_arr_end(w);
}

static struct audit_event event_of(const struct ward_reload *r, const char *name)
{
	const struct clock_ops *clock = r->v->clock;

	return (struct audit_event){
		.name = name,
		.time_ms = clock->wall_usec(clock->ctx) / USEC_PER_MSEC,
		.actor = "owner",
		.data = r->data.data,
		.data_len = r->data.len,
	};
}

/* Who tries what is not let through leaves a trace; at most one a second, with how many there were. */
static void note_refused(struct ward_reload *r, const struct err *err)
{
	struct codex *c = &r->v->codex;
	usec_t now = r->v->clock->boot_usec(r->v->clock->ctx);
	struct audit_event e;
	struct jsonw w;

	c->refused++;
	if (c->refused_told && now - c->refused_told < USEC_PER_SEC)
		return;
	buf_init(&r->data, EVENT_MAX_BYTES);
	jsonw_init(&w, &r->data);
	jsonw_obj(&w);
	jsonw_kstr(&w, "error_code", err_text(err));
	jsonw_kstr(&w, "sha256", r->sha256);
	jsonw_ku64(&w, "generation", c->generation);
	jsonw_ku64(&w, "count", c->refused);
	jsonw_obj_end(&w);
	e = event_of(r, "ward.reload_refused");
	audit_note(r->v->audit, &e);
	c->refused = 0;
	c->refused_told = now;
}

static void write_event(struct ward_reload *r)
{
	const struct vessel *v = r->v;
	struct jsonw w;

	buf_init(&r->data, EVENT_MAX_BYTES);
	jsonw_init(&w, &r->data);
	jsonw_obj(&w);
	jsonw_ku64(&w, "generation", v->codex.generation + 1);
	put_change(&w, r, &r->next.broker);
	jsonw_kstr(&w, "old_sha256", v->codex.sha256);
	jsonw_ku64(&w, "old_rules", v->conf.broker.n_rules);
	jsonw_ku64(&w, "old_denying", count_denying(&v->conf.broker));
	jsonw_ku64(&w, "old_credentials", v->conf.broker.n_credentials);
	put_keys(&w, r);
	jsonw_obj_end(&w);
}

/* ---- it takes effect -------------------------------------------------------------- */

static void answer(struct ward_reload *r, unsigned cut)
{
	const struct vessel *v = r->v;
	cleanup_buf struct buf out = {.max = REPLY_MAX_BYTES};
	struct jsonw w;

	jsonw_init(&w, &out);
	jsonw_obj(&w);
	jsonw_ku64(&w, "generation", v->codex.generation);
	put_change(&w, r, &v->conf.broker);
	jsonw_ku64(&w, "new_keys", r->n_new_keys);
	jsonw_ku64(&w, "cut", cut);
	jsonw_obj_end(&w);
	httpd_reply_json(r->req, 200, &out);
	end(r);
}

/* The event may be in the log, or come to be, though nobody could wait for it. */
static void refuse_unlogged(struct ward_reload *r, const struct err *err)
{
	const struct audit_event e = event_of(r, "ward.reload_failed");

	audit_note(r->v->audit, &e);
	refuse(r, err);
}

static void logged(const struct err *err, void *arg)
{
	struct ward_reload *r = arg;
	struct vessel *v = r->v;
	unsigned cut;

	if (err) {
		refuse_unlogged(r, err);
		return;
	}
	cut = dispatch_replace_ward(v->dispatch, &r->next.broker);
	egress_hosts_commit(v->egress);
	r->is_prepared = false;
	v->codex.generation++;
	v->codex.reloaded_usec = v->clock->wall_usec(v->clock->ctx);
	memcpy(v->codex.sha256, r->sha256, sizeof(v->codex.sha256));
	free(v->codex.flat);
	v->codex.flat = TAKE_PTR(r->flat);
	answer(r, cut);
}

/* ---- may it ----------------------------------------------------------------------- */

static int read_text(struct ward_reload *r, const char *text, size_t len, struct err *err)
{
	static const char *const reloaded[] = {WARD_KEY, "credentials", NULL};
	cleanup_buf struct buf flat = {.max = CONF_FLAT_MAX_BYTES};
	cleanup_free char *key = NULL;

	ward_reload_digest(text, len, r->sha256);
	if (conf_parse(text, len, &r->next, err) < 0)
		return -1;
	r->is_parsed = true;
	if (conf_flatten(text, len, &flat, err) < 0)
		return -1;
	key = conf_flat_differs(r->v->codex.flat, buf_str(&flat), reloaded);
	if (key)
		return err_set_id(err, ERRID_WARD_RESTART, "needs a restart: %.200s",
				  key);
	r->flat = xstrdup(buf_str(&flat));
	return 0;
}

/* One rule, behind those in force, and nothing else. */
static int check_one_more(const struct ward_reload *r, struct err *err)
{
	size_t n = r->v->conf.broker.n_rules;
	cleanup_free char *last = xasprintf(WARD_KEY ".%zu", n);
	const char *const but[] = {last, NULL};
	cleanup_free char *key = conf_flat_differs(r->v->codex.flat, r->flat, but);

	if (!key && r->next.broker.n_rules == n + 1)
		return 0;
	return err_set_id(err, ERRID_WARD_OTHER, "%.200s", key ? key : WARD_KEY);
}

/* Where a passphrase is set, only a person lets out more than before, or gives a key elsewhere. */
static int check_wider(const struct ward_reload *r, struct err *err)
{
	char act[FACTOR_ACT_MAX_BYTES];

	if (!factor_is_set(r->v) ||
	    !ward_may_be_wider(&r->v->conf.broker, &r->next.broker))
		return 0;
	if (str_fmt(act, sizeof(act), "reload the ward from %s", r->sha256) < 0)
		return err_set(err, ERR_INTERNAL, "an act's words");
	return factor_check(r->v, r->req, act, err);
}

static int begin(struct ward_reload *r, struct err *err)
{
	static const char *const allowed[] = {"adds", NULL};
	const void *body;
	uint64_t adds = 0;
	size_t len;

	if (httpd_req_check_query(r->req, allowed, err) < 0 ||
	    api_query_u64(r->req, "adds", 0, 1, &adds, err) < 0)
		return -1;
	if (r->v->codex.reload)
		return err_set_id(err, ERRID_WARD_RELOADING,
				  "generation %llu is on its way",
				  (unsigned long long)r->v->codex.generation + 1);
	body = httpd_req_body(r->req, &len);
	if (read_text(r, len ? body : "", len, err) < 0 ||
	    (adds && check_one_more(r, err) < 0))
		return -1;
	return check_wider(r, err);
}

static void prepared(const struct err *why, void *arg)
{
	struct ward_reload *r = arg;
	struct err err = ERR_INIT;

	if (why) {
		refuse(r, why);
		return;
	}
	r->is_prepared = true;
	write_event(r);
	/* A client that goes away changes nothing: the reply is then a no-op. */
	const struct audit_event e = event_of(r, "ward.reloaded");

	if (!audit_before(r->v->audit, &e, logged, r, &err))
		refuse_unlogged(r, &err);
}

void api_ward_reload(struct httpd_req *req, void *arg)
{
	struct egress_portal hosts[EGRESS_HOSTS_MAX];
	struct ward_reload *r = xnew(struct ward_reload);
	struct err err = ERR_INIT;

	r->v = arg;
	r->req = req;
	if (begin(r, &err) < 0) {
		note_refused(r, &err);
		refuse(r, &err);
		return;
	}
	r->v->codex.reload = r;
	egress_hosts_prepare(r->v->egress, hosts,
			     fetch_keys_hosts(&r->next.broker, hosts), prepared, r);
}
