/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Theory of operation. Two clocks tick: `beat` (fencing row; until it is owned
 * nothing else happens and nothing is served) and, from then on, `reap`, at which containments that are not
 * done are looked at too (broker/containments.h). Before the
 * first beat, and before the first one after the database was away, its schema is
 * compared with ours: another one ends the vessel before it changes a row. Once an
 * hour the sweep walks its steps one after the other, each step the callback of
 * the one before: retire old jobs and remove their output, drop forgotten
 * uploads, collect blobs that no job names, remove output that no job owns, count
 * the queue's broken invariants. A step that fails is logged and ends this sweep; the
 * next one begins anew, for every step may be repeated. Whatever there are many of is
 * gone through a few at a turn of the loop, which serves people in between.
 */
#include "vessel/reconcile.h"
#include "common/json/json.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/broker/containments.h"
#include "vessel/db/migrate.h"

#define BEAT_USEC (5 * USEC_PER_SEC)
#define BEAT_RETRY_USEC (250 * USEC_PER_MSEC)
#define FIRST_BEAT_LIMIT_USEC (60 * USEC_PER_SEC)
#define REAP_USEC USEC_PER_SEC
#define REAP_MAX 100
#define SWEEP_USEC (3600 * USEC_PER_SEC)
/* retention: keep. Longer than any clock has run. */
#define KEEP_ALL_SEC ((unsigned)INT32_MAX)
#define RETIRE_MAX 500
#define UNNAMED_AGE_USEC (3600 * USEC_PER_SEC)
#define ORPHANS_MAX 64
#define SLICE_JOBS 8 /* whose output is removed in one turn: some milliseconds */

struct reconcile {
	struct vessel *v;
	struct reconcile_config cfg;
	struct loop_timer *beat, *reap, *sweep, *slice;
	usec_t give_up; /* boot clock: when the first beat must have come */
	bool beating, reaping, sweeping, said_bye, schema_checked;
	bool stopped;	  /* answers that still come change nothing */
	bool reap_failed; /* logged once, until it works again */
	job_id_t orphans[ORPHANS_MAX];
	size_t n_orphans, at_orphan;
	job_id_t orphan_cursor;
	job_id_t retired[RETIRE_MAX];
	size_t n_retired, at_retired;
	unsigned fan; /* of the blob store: the one that is collected */
};

static usec_t now_boot(const struct reconcile *r)
{
	return r->v->clock->boot_usec(r->v->clock->ctx);
}

static usec_t hour_ago_wall(const struct reconcile *r)
{
	usec_t now = r->v->clock->wall_usec(r->v->clock->ctx);

	return now > UNNAMED_AGE_USEC ? now - UNNAMED_AGE_USEC : 0;
}

/* ---- the fencing row ---- */

static void beat_failed(struct reconcile *r, const struct err *err)
{
	if (err->id == ERRID_START_TWO || err->id == ERRID_START_SCHEMA ||
	    err->id == ERRID_START_SCHEMA_OLD || err->id == ERRID_START_SCHEMA_GONE) {
		r->v->owned = false;
		r->cfg.ended(err, r->cfg.arg);
		return;
	}
	if (!r->v->owned && now_boot(r) >= r->give_up) {
		r->cfg.ended(err, r->cfg.arg);
		return;
	}
	/* away for a while: the row is renewed when it is back */
	loop_timer_arm(r->beat, r->v->owned ? USEC_PER_SEC : BEAT_RETRY_USEC);
}

static void beat_done(const struct err *err, void *arg)
{
	struct reconcile *r = arg;

	r->beating = false;
	if (r->stopped)
		return;
	if (err) {
		beat_failed(r, err);
		return;
	}
	loop_timer_arm(r->beat, BEAT_USEC);
	if (r->v->owned)
		return;
	r->v->owned = true;
	loop_timer_arm(r->reap, REAP_USEC);
	loop_timer_arm(r->sweep, r->cfg.sweep_after);
	r->cfg.owned(r->cfg.arg);
}

static void remember_and_beat(struct reconcile *r)
{
	struct err err = ERR_INIT;

	if (r->cfg.remember(r->cfg.arg, &err) < 0) {
		r->beating = false;
		r->cfg.ended(&err, r->cfg.arg);
		return;
	}
	r->said_bye = true;
	queue_vessel_beat(r->v->queue, &r->v->boot, beat_done, r);
}

static void bye_done(const struct err *err, void *arg)
{
	struct reconcile *r = arg;

	if (r->stopped)
		return;
	if (err) {
		r->beating = false;
		beat_failed(r, err);
		return;
	}
	remember_and_beat(r);
}

static void beat(struct reconcile *r)
{
	if (r->said_bye)
		queue_vessel_beat(r->v->queue, &r->v->boot, beat_done, r);
	else if (*r->cfg.previous.s)
		queue_vessel_bye(r->v->queue, &r->cfg.previous, bye_done, r);
	else
		remember_and_beat(r);
}

static void schema_checked(const struct err *err, void *arg)
{
	struct reconcile *r = arg;

	if (r->stopped)
		return;
	if (err) {
		r->beating = false;
		beat_failed(r, err);
		return;
	}
	r->schema_checked = true;
	beat(r);
}

static void on_beat(void *arg)
{
	struct reconcile *r = arg;

	if (r->beating)
		return;
	r->beating = true;
	if (r->schema_checked)
		beat(r);
	else
		queue_schema_check(r->v->queue, migrate_schema_first(),
				   migrate_schema_version(), schema_checked, r);
}

void reconcile_db_up(struct reconcile *r)
{
	if (!r || r->stopped)
		return;
	/* It may have been migrated meanwhile. */
	r->schema_checked = false;
	if (!r->beating)
		loop_timer_arm(r->beat, 0);
	if (r->v->owned && !r->sweeping)
		loop_timer_arm(r->sweep, r->cfg.sweep_after);
}

/* ---- leases ---- */

static void reap_done(unsigned n, const struct err *err, void *arg)
{
	struct reconcile *r = arg;

	r->reaping = false;
	if (err && !r->reap_failed)
		log_err(LOG_WARN_, "reap", err);
	r->reap_failed = err != NULL;
	if (!err && n > 0) {
		log_info("took back %u expired leases", n);
		r->v->metrics.leases_reaped += n;
		events_hint(r->v->events);
	}
	loop_timer_arm(r->reap, !err && n >= REAP_MAX ? 0 : REAP_USEC);
}

static void on_reap(void *arg)
{
	struct reconcile *r = arg;

	if (r->reaping)
		return;
	if (!r->v->owned) {
		loop_timer_arm(r->reap, REAP_USEC);
		return;
	}
	containments_hint(r->v->containments);
	r->reaping = true;
	queue_reap(r->v->queue, REAP_MAX, reap_done, r);
}

/* ---- the hourly sweep ---- */

static void sweep_end(struct reconcile *r, const char *step, const struct err *err)
{
	if (err)
		log_err(LOG_WARN_, step, err);
	r->sweeping = false;
	loop_timer_arm(r->sweep, SWEEP_USEC);
}

static void checked(const char *json, size_t len, const struct err *err, void *arg)
{
	struct reconcile *r = arg;
	cleanup_json struct json *j = NULL;
	uint64_t broken = 0;
	struct err why = ERR_INIT;

	if (!err && json_parse(json, len, JSON_DEPTH_DEFAULT, &j, &why) == 0 &&
	    json_get_u64(j, "violations", true, 0, INT64_MAX, &broken, &why) == 0 &&
	    broken)
		(void)err_set(&why, ERR_INTERNAL,
			      "%llu violations of the queue's invariants ('lych doctor' "
			      "names them)",
			      (unsigned long long)broken);
	if (!err && err_is_set(&why))
		err = &why;
	r->v->metrics.queue_violations = broken;
	r->v->metrics.sweeps++;
	sweep_end(r, "check the queue", err);
}

static void next_orphan(struct reconcile *r);

static void orphan_checked(const struct queue_job *jobs, size_t n, const struct err *err,
			   void *arg)
{
	struct reconcile *r = arg;
	struct err why = ERR_INIT;
	job_id_t id = r->orphans[r->at_orphan];

	if (err) {
		sweep_end(r, "look for the owner of output", err);
		return;
	}
	/* the newest job up to this id: the job itself, unless it is gone */
	if (n == 0 || jobs[0].id != id) {
		if (output_remove(r->v->output, id, &why) < 0) {
			sweep_end(r, "remove output that no job owns", &why);
			return;
		}
	}
	r->orphan_cursor = id;
	r->at_orphan++;
	next_orphan(r);
}

static void next_orphan(struct reconcile *r)
{
	struct queue_list f = {.limit = 1};

	if (r->at_orphan >= r->n_orphans) {
		/* at the end: begin at the smallest id next time */
		if (r->n_orphans == 0)
			r->orphan_cursor = 0;
		queue_check(r->v->queue, checked, r);
		return;
	}
	f.before = r->orphans[r->at_orphan] + 1;
	queue_list(r->v->queue, &f, orphan_checked, r);
}

static void sweep_output(struct reconcile *r)
{
	struct err err = ERR_INIT;

	r->at_orphan = 0;
	if (output_jobs(r->v->output, r->orphan_cursor, r->orphans, ORPHANS_MAX,
			&r->n_orphans, &err) < 0) {
		sweep_end(r, "list output", &err);
		return;
	}
	next_orphan(r);
}

static void collect_fan(struct reconcile *r);

static void fan_name(const struct reconcile *r, char out[4])
{
	(void)snprintf(out, 4, "%02x", r->fan);
}

static void live_blobs_known(const char *const *hex, size_t n, const struct err *err,
			     void *arg)
{
	struct reconcile *r = arg;
	struct err why = ERR_INIT;
	unsigned removed = 0;
	char fan[4];

	if (err) {
		sweep_end(r, "ask for the blobs in use", err);
		return;
	}
	fan_name(r, fan);
	if (blobs_collect(r->v->blobs, fan, hex, n, hour_ago_wall(r), &removed, &why) <
	    0) {
		sweep_end(r, "collect blobs", &why);
		return;
	}
	r->v->metrics.blobs_collected += removed;
	if (++r->fan < BLOBS_FANS)
		collect_fan(r);
	else
		sweep_output(r);
}

static void collect_fan(struct reconcile *r)
{
	char fan[4];

	fan_name(r, fan);
	queue_live_blobs(r->v->queue, fan, live_blobs_known, r);
}

static void sweep_uploads(struct reconcile *r)
{
	unsigned n;

	incoming_reap(r->v->incoming, hour_ago_wall(r), &n);
	r->fan = 0;
	collect_fan(r);
}

static void retired(const job_id_t *ids, size_t n, const struct err *err, void *arg)
{
	struct reconcile *r = arg;

	if (err) {
		sweep_end(r, "retire old jobs", err);
		return;
	}
	r->n_retired = n < RETIRE_MAX ? n : RETIRE_MAX;
	r->at_retired = 0;
	if (n)
		memcpy(r->retired, ids, r->n_retired * sizeof(*ids));
	loop_timer_arm(r->slice, 0);
}

static void retire(struct reconcile *r)
{
	usec_t keep = r->v->conf.retention_usec;

	queue_retain(r->v->queue, keep ? (unsigned)(keep / USEC_PER_SEC) : KEEP_ALL_SEC,
		     RETIRE_MAX, retired, r);
}

/* The output of some jobs that the database has forgotten. */
static void on_slice(void *arg)
{
	struct reconcile *r = arg;
	struct err why = ERR_INIT;

	for (unsigned i = 0; i < SLICE_JOBS && r->at_retired < r->n_retired; i++)
		if (output_remove(r->v->output, r->retired[r->at_retired++], &why) < 0) {
			sweep_end(r, "remove output of a retired job", &why);
			return;
		}
	if (r->at_retired < r->n_retired) {
		loop_timer_arm(r->slice, 0);
		return;
	}
	r->v->metrics.jobs_retired += r->n_retired;
	if (r->n_retired >= RETIRE_MAX)
		retire(r);
	else
		sweep_uploads(r);
}

static void on_sweep(void *arg)
{
	struct reconcile *r = arg;

	if (r->sweeping)
		return;
	if (!r->v->owned) {
		loop_timer_arm(r->sweep, r->cfg.sweep_after);
		return;
	}
	r->sweeping = true;
	retire(r);
}

struct reconcile *reconcile_new(struct vessel *v, const struct reconcile_config *cfg)
{
	struct reconcile *r = xnew(struct reconcile);

	r->v = v;
	r->cfg = *cfg;
	r->give_up = now_boot(r) + FIRST_BEAT_LIMIT_USEC;
	r->beat = loop_timer_new(v->loop, on_beat, r);
	r->reap = loop_timer_new(v->loop, on_reap, r);
	r->sweep = loop_timer_new(v->loop, on_sweep, r);
	r->slice = loop_timer_new(v->loop, on_slice, r);
	loop_timer_arm(r->beat, 0);
	return r;
}

void reconcile_stop(struct reconcile *r)
{
	r->stopped = true;
	r->v->owned = false;
	loop_timer_disarm(r->beat);
	loop_timer_disarm(r->reap);
	loop_timer_disarm(r->sweep);
}

void reconcile_free(struct reconcile *r)
{
	if (!r)
		return;
	loop_timer_free(r->beat);
	loop_timer_free(r->reap);
	loop_timer_free(r->sweep);
	loop_timer_free(r->slice);
	free(r);
}
