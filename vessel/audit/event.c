/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See event.h.
 */
#include "vessel/audit/event.h"
#include "common/cleanup.h"
#include "common/crypto/sha256.h"
#include "common/json/json.h"
#include "common/jsonw.h"
#include "common/proto.h"
#include "common/str.h"
#include <stdio.h>

#define OCSF_VERSION "1.3.0"
#define DATA_DEPTH_MAX 5
#define NAME_MAX_BYTES 200

enum { SEVERITY_INFO = 1, SEVERITY_MEDIUM = 3, SEVERITY_HIGH = 4 };
enum { STATUS_SUCCESS = 1, STATUS_FAILURE = 2 };
enum { ACTION_NONE, ACTION_ALLOWED, ACTION_DENIED };

/* The class tells the category: its first digit. */
struct kind {
	const char *name;
	unsigned class_uid, activity_id;
	unsigned severity, status;
	unsigned action; /* OCSF's action and disposition: allowed 1, denied 2; 0: none */
};

static const struct kind kinds[] = {
	/* Scheduled Job Activity: create 1, update 2, delete 3, start 6 */
	{"job.enqueued", 1006, 1, SEVERITY_INFO, STATUS_SUCCESS, 0},
	{"job.claimed", 1006, 6, SEVERITY_INFO, STATUS_SUCCESS, 0},
	{"job.cancel_requested", 1006, 2, SEVERITY_INFO, STATUS_SUCCESS, 0},
	{"job.abandoned", 1006, 2, SEVERITY_INFO, STATUS_SUCCESS, 0},
	{"job.retried", 1006, 2, SEVERITY_INFO, STATUS_SUCCESS, 0},
	{"job.removed", 1006, 3, SEVERITY_INFO, STATUS_SUCCESS, 0},
	{"job.cancelled", 1006, 3, SEVERITY_INFO, STATUS_SUCCESS, 0},
	{"job.receipt", 1006, 99, SEVERITY_INFO, STATUS_SUCCESS, 0},
	{"attempt.succeeded", 1006, 2, SEVERITY_INFO, STATUS_SUCCESS, 0},
	{"attempt.failed", 1006, 2, SEVERITY_INFO, STATUS_FAILURE, 0},
	{"attempt.released", 1006, 2, SEVERITY_INFO, STATUS_SUCCESS, 0},
	{"attempt.lost", 1006, 2, SEVERITY_MEDIUM, STATUS_FAILURE, 0},
	/* Remediation Activity: isolate 1, evict 2, other 99 */
	{"attempt.revoked", 7001, 2, SEVERITY_HIGH, STATUS_SUCCESS, 0},
	{"job.contained", 7001, 1, SEVERITY_HIGH, STATUS_SUCCESS, 0},
	{"job.quarantined", 7001, 1, SEVERITY_HIGH, STATUS_SUCCESS, 0},
	/* who says so is the trigger; the job is contained behind it */
	{"containment.triggered", 7001, 99, SEVERITY_HIGH, STATUS_SUCCESS, 0},
	/* one containment, in this order (broker_closed and tree_dead in any) */
	{"containment.broker_closed", 7001, 1, SEVERITY_HIGH, STATUS_SUCCESS, 0},
	{"containment.tree_dead", 7001, 2, SEVERITY_HIGH, STATUS_SUCCESS, 0},
	{"containment.sealed", 7001, 99, SEVERITY_HIGH, STATUS_SUCCESS, 0},
	{"containment.done", 7001, 99, SEVERITY_HIGH, STATUS_SUCCESS, 0},
	/* `release_requested` is on disk before it happens; then one of the two */
	{"quarantine.release_requested", 7001, 99, SEVERITY_MEDIUM, STATUS_SUCCESS, 0},
	{"quarantine.released", 7001, 99, SEVERITY_MEDIUM, STATUS_SUCCESS, 0},
	{"quarantine.release_failed", 7001, 99, SEVERITY_MEDIUM, STATUS_FAILURE, 0},
	/* Authentication: logon 1 */
	{"peer.refused", 3002, 1, SEVERITY_MEDIUM, STATUS_FAILURE, 0},
	{"passphrase.set", 3002, 99, SEVERITY_MEDIUM, STATUS_SUCCESS, 0},
	{"passphrase.changed", 3002, 99, SEVERITY_MEDIUM, STATUS_SUCCESS, 0},
	{"passphrase.wrong", 3002, 99, SEVERITY_MEDIUM, STATUS_FAILURE, 0},
	/* Application Lifecycle: start 3, stop 4, other 99 */
	{"vessel.start", 6002, 3, SEVERITY_INFO, STATUS_SUCCESS, 0},
	{"vessel.stop", 6002, 4, SEVERITY_INFO, STATUS_SUCCESS, 0},
	{"vessel.owner", 6002, 99, SEVERITY_INFO, STATUS_SUCCESS, 0},
	{"vessel.heartbeat", 6002, 99, SEVERITY_INFO, STATUS_SUCCESS, 0},
	/* `reloaded` is on disk before it happens; `reload_failed`: perhaps there, and did not */
	{"ward.reloaded", 6002, 99, SEVERITY_MEDIUM, STATUS_SUCCESS, 0},
	{"ward.reload_failed", 6002, 99, SEVERITY_MEDIUM, STATUS_FAILURE, 0},
	{"ward.reload_refused", 6002, 99, SEVERITY_MEDIUM, STATUS_FAILURE, 0},
	/* `proposed`: a job was refused, and might be allowed; `allowed_…` is on disk before it counts */
	{"ward.proposed", 6002, 99, SEVERITY_INFO, STATUS_SUCCESS, 0},
	{"ward.allowed_once", 6002, 99, SEVERITY_MEDIUM, STATUS_SUCCESS, 0},
	{"ward.allowed_job", 6002, 99, SEVERITY_MEDIUM, STATUS_SUCCESS, 0},
	{"ward.proposal_dropped", 6002, 99, SEVERITY_INFO, STATUS_SUCCESS, 0},
	{"daemon.died", 6002, 99, SEVERITY_MEDIUM, STATUS_FAILURE, 0},
	/* Device Config State Change: log 1 */
	{"audit.restarted", 5019, 1, SEVERITY_HIGH, STATUS_SUCCESS, 0},
	/* API Activity: create 1, other 99. `allowed` is on disk before it happens */
	{"ask.allowed", 6003, 1, SEVERITY_INFO, STATUS_SUCCESS, ACTION_ALLOWED},
	{"ask.denied", 6003, 1, SEVERITY_MEDIUM, STATUS_FAILURE, ACTION_DENIED},
	{"ask.done", 6003, 99, SEVERITY_INFO, STATUS_SUCCESS, 0},
	{"ask.failed", 6003, 99, SEVERITY_INFO, STATUS_FAILURE, 0},
	{"opinion.asked", 6003, 1, SEVERITY_INFO, STATUS_SUCCESS, ACTION_ALLOWED},
	{"opinion.given", 6003, 99, SEVERITY_INFO, STATUS_SUCCESS, 0},
	{"opinion.failed", 6003, 99, SEVERITY_MEDIUM, STATUS_FAILURE, 0},
	{"broker.refusals", 6003, 99, SEVERITY_MEDIUM, STATUS_FAILURE, ACTION_DENIED},
	{"budget.recovered", 6003, 99, SEVERITY_MEDIUM, STATUS_SUCCESS, 0},
	/* HTTP Activity: other 99 */
	{"fetch.allowed", 4002, 99, SEVERITY_INFO, STATUS_SUCCESS, ACTION_ALLOWED},
	{"fetch.denied", 4002, 99, SEVERITY_MEDIUM, STATUS_FAILURE, ACTION_DENIED},
	{"fetch.done", 4002, 99, SEVERITY_INFO, STATUS_SUCCESS, 0},
	{"fetch.failed", 4002, 99, SEVERITY_INFO, STATUS_FAILURE, 0},
	{"package.allowed", 4002, 99, SEVERITY_INFO, STATUS_SUCCESS, ACTION_ALLOWED},
	{"package.denied", 4002, 99, SEVERITY_MEDIUM, STATUS_FAILURE, ACTION_DENIED},
	{"package.done", 4002, 99, SEVERITY_INFO, STATUS_SUCCESS, 0},
	{"package.failed", 4002, 99, SEVERITY_INFO, STATUS_FAILURE, 0},
	/* Detection Finding: create 1 */
	{"detection.denials", 2004, 1, SEVERITY_HIGH, STATUS_SUCCESS, 0},
	{"detection.canary", 2004, 1, SEVERITY_HIGH, STATUS_SUCCESS, 0},
	{"detection.canaries", 2004, 1, SEVERITY_HIGH, STATUS_SUCCESS, 0},
	{"detection.foreign_token", 2004, 1, SEVERITY_HIGH, STATUS_SUCCESS, 0},
	{"detection.credential_echoed", 2004, 1, SEVERITY_HIGH, STATUS_SUCCESS, 0},
	{"detection.daemon_died", 2004, 1, SEVERITY_HIGH, STATUS_SUCCESS, 0},
	{"detection.odd_name", 2004, 1, SEVERITY_HIGH, STATUS_SUCCESS, 0},
};
/* An event that is not in the table is logged all the same: base event, other. */
static const struct kind unknown_kind = {"", 0, 99, SEVERITY_INFO, STATUS_SUCCESS, 0};

static const struct kind *find_kind(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (str_eq(kinds[i].name, name))
			return &kinds[i];
	return &unknown_kind;
}

static void write_data(struct jsonw *w, const char *data, size_t len)
{
	cleanup_json struct json *j = NULL;
	cleanup_sha256 struct sha256 *h = NULL;
	cleanup_buf struct buf clean;
	char hex[SHA256_HEX_SIZE];
	struct jsonw inner;

	buf_init(&clean, AUDIT_DATA_MAX);
	if (json_parse(data, len, DATA_DEPTH_MAX, &j, NULL) == 0) {
		jsonw_init(&inner, &clean);
		json_write(j, &inner);
	}
	if (j && buf_ok(&clean)) {
		jsonw_raw(w, clean.data, clean.len);
		return;
	}
	h = sha256_new();
	sha256_add(h, data, len);
	sha256_hex(h, hex);
	jsonw_obj(w);
	jsonw_ku64(w, "left_out_bytes", len);
	jsonw_kstr(w, "left_out_sha256", hex);
	jsonw_obj_end(w);
}

static void write_number(struct jsonw *w, const char *key, int64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%lld", (long long)value);
	jsonw_kstr(w, key, text);
}

static void write_actor(struct jsonw *w, const struct audit_event *e)
{
	jsonw_key(w, "actor");
	jsonw_obj(w);
	jsonw_key(w, "user");
	jsonw_obj(w);
	jsonw_key(w, "name");
	jsonw_strn(w, e->actor, strnlen(e->actor, NAME_MAX_BYTES));
	jsonw_obj_end(w);
	if (e->job) { /* OCSF has no fence: the lease's epoch stands as a session */
		jsonw_key(w, "session");
		jsonw_obj(w);
		write_number(w, "uid", e->epoch);
		jsonw_obj_end(w);
	}
	jsonw_obj_end(w);
}

void audit_event_write(const struct audit_event *e, struct buf *out)
{
	const struct kind *k = find_kind(e->name);
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_obj(&w);
	jsonw_key(&w, "event");
	jsonw_strn(&w, e->name, strnlen(e->name, NAME_MAX_BYTES));
	jsonw_ku64(&w, "class_uid", k->class_uid);
	jsonw_ku64(&w, "category_uid", k->class_uid / 1000);
	jsonw_ku64(&w, "activity_id", k->activity_id);
	jsonw_ku64(&w, "type_uid", k->class_uid * 100 + k->activity_id);
	jsonw_ku64(&w, "time", e->time_ms);
	jsonw_ku64(&w, "severity_id", k->severity);
	jsonw_ku64(&w, "status_id", k->status);
	if (k->action != ACTION_NONE) {
		jsonw_ku64(&w, "action_id", k->action);
		jsonw_ku64(&w, "disposition_id", k->action);
	}
	jsonw_key(&w, "metadata");
	jsonw_obj(&w);
	jsonw_kstr(&w, "version", OCSF_VERSION);
	jsonw_key(&w, "product");
	jsonw_obj(&w);
	jsonw_kstr(&w, "name", "lychgate");
	jsonw_kstr(&w, "version", LYCH_VERSION);
	jsonw_obj_end(&w);
	if (e->job)
		write_number(&w, "correlation_uid", e->job);
	jsonw_obj_end(&w);
	write_actor(&w, e);
	if (e->data_len) {
		jsonw_key(&w, "unmapped");
		write_data(&w, e->data, e->data_len);
	}
	jsonw_obj_end(&w);
}
