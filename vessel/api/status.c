/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * GET /v1/status: what stands and who is up. It answers without a database too.
 */
#include "common/cleanup.h"
#include "common/json/json.h"
#include "common/jsonw.h"
#include "vessel/api/api.h"
#include "vessel/audit/audit.h"
#include "vessel/broker/dispatch/dispatch.h"
#include "vessel/broker/opinion/opinion.h"
#include "vessel/broker/triggers.h"
#include "vessel/egress/egress.h"
#include <unistd.h>

#define STATUS_MAX_BYTES ((size_t)2 << 20)
#define HEALTH_DEPTH_MAX 8

static void write_store(struct jsonw *w, const struct vessel *v)
{
	jsonw_key(w, "store");
	jsonw_obj(w);
	jsonw_ku64(w, "used_bytes", v->budget.used);
	jsonw_ku64(w, "max_bytes", v->budget.max);
	jsonw_ku64(w, "disk_free_bytes", blobs_disk_free(v->blobs));
	jsonw_obj_end(w);
}

static void write_database(struct jsonw *w, const struct vessel *v, const struct err *err)
{
	jsonw_key(w, "database");
	jsonw_obj(w);
	jsonw_kbool(w, "up", !err && queue_is_up(v->queue));
	jsonw_kstr(w, "detail", err ? err->msg : NULL);
	jsonw_obj_end(w);
}

/* {"wall","answer","held"} of each, as an array. */
static void write_walls(struct jsonw *w, const struct confine_report *r)
{
	jsonw_arr(w);
	for (unsigned i = 0; i < r->n; i++) {
		jsonw_obj(w);
		jsonw_kstr(w, "wall", r->line[i].wall);
		jsonw_kstr(w, "answer", r->line[i].answer);
		jsonw_kbool(w, "held", r->line[i].held);
		jsonw_obj_end(w);
	}
	jsonw_arr_end(w);
}

static void write_workers(struct jsonw *w, const struct vessel *v)
{
	jsonw_key(w, "egress_workers");
	jsonw_arr(w);
	for (size_t i = 0; i < egress_worker_count(v->egress); i++) {
		struct egress_worker_info info;

		egress_worker_info(v->egress, i, &info);
		jsonw_obj(w);
		jsonw_kstr(w, "name", info.name);
		jsonw_kbool(w, "up", info.up);
		jsonw_ku64(w, "restarts", info.restarts);
		jsonw_ku64(w, "calls", info.calls);
		jsonw_key(w, "walls");
		write_walls(w, info.walls);
		jsonw_obj_end(w);
	}
	jsonw_arr_end(w);
}

static void write_classifier(struct jsonw *w, const struct vessel *v)
{
	struct opinion_figures f;

	jsonw_key(w, "classifier");
	if (!v->opinion) {
		jsonw_null(w);
		return;
	}
	f = opinion_figures(v->opinion);
	jsonw_obj(w);
	jsonw_kstr(w, "portal", opinion_portal(v->opinion));
	jsonw_ku64(w, "passed", f.passed);
	jsonw_ku64(w, "refused", f.refused);
	jsonw_ku64(w, "failed", f.failed);
	jsonw_kbool(w, "answers", f.answers);
	jsonw_obj_end(w);
}

typedef void ask_fn(struct queue *q, queue_text_done *done, void *arg);

/* Without waiting when the database is known to be away. */
static void ask_queue(struct vessel *v, struct httpd_req *req, ask_fn *ask,
		      queue_text_done *done)
{
	struct api_call *c = api_call_new(v, req);
	struct err err = ERR_INIT;

	if (queue_is_up(v->queue)) {
		ask(v->queue, done, c);
		return;
	}
	(void)err_set_id(&err, ERRID_RUN_DB, "no connection");
	done(NULL, 0, &err, c);
}

/* Status answers also when the database does not: that is what it is for. */
static void status_done(const char *json, size_t len, const struct err *err, void *arg)
{
	cleanup_free struct api_call *c = arg;
	cleanup_json struct json *health = NULL;
	cleanup_buf struct buf out;
	struct vessel *v = c->v;
	struct err why = ERR_INIT;
	struct jsonw w;

	buf_init(&out, STATUS_MAX_BYTES);
	if (!err && json_parse(json, len, HEALTH_DEPTH_MAX, &health, &why) < 0)
		err = &why;
	jsonw_init(&w, &out);
	jsonw_obj(&w);
	jsonw_kstr(&w, "version", LYCH_VERSION);
	jsonw_ku64(&w, "api", LYCH_API_VERSION);
	jsonw_ki64(&w, "pid", getpid());
	jsonw_ku64(&w, "uptime_sec",
		   (v->clock->boot_usec(v->clock->ctx) - v->started_usec) / USEC_PER_SEC);
	write_database(&w, v, err);
	write_store(&w, v);
	jsonw_ku64(&w, "streams", events_subscribers(v->events));
	jsonw_kbool(&w, "private_root", !v->conf.unrooted);
	jsonw_key(&w, "walls");
	write_walls(&w, &v->walls);
	write_workers(&w, v);
	write_classifier(&w, v);
	jsonw_key(&w, "triggers");
	triggers_write(v->triggers, &w);
	jsonw_key(&w, "tombs");
	tombs_write(v->tombs, &w);
	audit_write_status(v->audit, &w);
	jsonw_key(&w, "queue");
	if (health)
		json_write(health, &w);
	else
		jsonw_null(&w);
	jsonw_obj_end(&w);
	httpd_reply_json(c->req, 200, &out);
}

void api_status(struct httpd_req *req, void *arg)
{
	struct vessel *v = arg;
	struct err err = ERR_INIT;

	if (api_no_query(req, &err) < 0) {
		httpd_reply_err(req, &err);
		return;
	}
	ask_queue(v, req, queue_health, status_done);
}

static void check_done(const char *json, size_t len, const struct err *err, void *arg)
{
	cleanup_free struct api_call *c = arg;
	cleanup_buf struct buf out = {.max = STATUS_MAX_BYTES};

	if (err) {
		httpd_reply_err(c->req, err);
		return;
	}
	buf_add(&out, json, len);
	httpd_reply_json(c->req, 200, &out);
}

void api_check(struct httpd_req *req, void *arg)
{
	struct vessel *v = arg;
	struct err err = ERR_INIT;

	if (api_no_query(req, &err) < 0) {
		httpd_reply_err(req, &err);
		return;
	}
	ask_queue(v, req, queue_check, check_done);
}

static void write_audit_metrics(const struct vessel *v, struct buf *out)
{
	struct audit_figures f = audit_figures(v->audit);

	metrics_gauge(out, "audit_ok", "1 when the audit log is written: claims are open",
		      f.is_good);
	metrics_gauge(out, "audit_waiting", "Events that the scribe has not acknowledged",
		      f.waiting);
	metrics_gauge(out, "audit_acked", "Number of the last outbox event in the log",
		      f.acked);
	metrics_gauge(out, "audit_scribe_events",
		      "Records written since the scribe began", f.events);
	metrics_gauge(out, "audit_scribe_batches", "fsyncs that this took", f.batches);
	metrics_gauge(out, "audit_scribe_duplicates", "Repeated events that it dropped",
		      f.duplicates);
}

static void write_gate_metrics(const struct vessel *v, struct buf *out)
{
	struct gate_client_figures f = gate_client_figures(v->gate);

	metrics_gauge(out, "gate_up", "1 when the gate's worker answers",
		      gate_client_is_up(v->gate));
	metrics_counter(out, "gate_passed", "Texts that the gate let pass", f.passed);
	metrics_counter(out, "gate_anonymised", "Texts that went on anonymised",
			f.anonymised);
	metrics_counter(out, "gate_refused", "Texts that were refused", f.refused);
	metrics_counter(out, "gate_failed",
			"Texts that were refused because there was no answer", f.failed);
	metrics_counter(out, "gate_bytes", "Bytes that the gate has read", f.bytes);
	metrics_counter(out, "gate_scan_usec", "Time of its scans", f.scan_usec);
	metrics_counter(out, "gate_restarts", "Workers that followed another",
			f.restarts);
}

static void write_classifier_metrics(const struct vessel *v, struct buf *out)
{
	struct opinion_figures f;

	if (!v->opinion)
		return;
	f = opinion_figures(v->opinion);
	metrics_counter(out, "classifier_passed", "Asks that the classifier let pass",
			f.passed);
	metrics_counter(out, "classifier_refused",
			"Asks that were refused for what it said", f.refused);
	metrics_counter(out, "classifier_failed",
			"Asks that were refused because it did not answer", f.failed);
}

static void metrics_done(const char *json, size_t len, const struct err *err, void *arg)
{
	cleanup_free struct api_call *c = arg;
	cleanup_buf struct buf out;
	struct vessel *v = c->v;
	struct err failed = ERR_INIT;

	buf_init(&out, STATUS_MAX_BYTES);
	metrics_gauge(&out, "database_up", "1 when the database answers",
		      !err && queue_is_up(v->queue));
	metrics_gauge(&out, "store_used_bytes", "Bytes of blobs, uploads and output",
		      v->budget.used);
	metrics_gauge(&out, "store_max_bytes", "Their limit", v->budget.max);
	metrics_gauge(&out, "streams", "Event streams open now",
		      events_subscribers(v->events));
	metrics_gauge(&out, "loop_longest_turn_usec",
		      "Processor time of the longest turn of the loop",
		      loop_longest_turn_usec(v->loop));
	metrics_gauge(&out, "queue_violations",
		      "Broken invariants of the queue, counted once an hour",
		      v->metrics.queue_violations);
	write_audit_metrics(v, &out);
	write_gate_metrics(v, &out);
	write_classifier_metrics(v, &out);
	dispatch_write_metrics(v->dispatch, &out);
	metrics_write(&v->metrics, err ? NULL : json, len, &out);
	if (!buf_ok(&out)) {
		(void)err_set(&failed, ERR_INTERNAL, "metrics do not fit");
		httpd_reply_err(c->req, &failed);
		return;
	}
	httpd_reply(c->req, 200, "text/plain; version=0.0.4; charset=utf-8", out.data,
		    out.len);
}

void api_metrics(struct httpd_req *req, void *arg)
{
	struct vessel *v = arg;
	struct err err = ERR_INIT;

	if (api_no_query(req, &err) < 0) {
		httpd_reply_err(req, &err);
		return;
	}
	ask_queue(v, req, queue_health, metrics_done);
}
