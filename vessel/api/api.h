/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * The handlers behind the route tables (routes.c), and what they share.
 */
#ifndef LYCH_VESSEL_API_API_H
#define LYCH_VESSEL_API_API_H

#include "common/attr.h"
#include "common/err.h"
#include "common/jsonw.h"
#include "common/net/httpd.h"
#include "vessel/api/vessel.h"
#include "vessel/broker/budget.h"

/* jobs.c */
httpd_handler api_jobs_submit, api_jobs_list, api_jobs_show, api_jobs_output,
	api_jobs_order, api_jobs_artifacts, api_jobs_artifact;
/* acts.c */
httpd_handler api_jobs_cancel, api_jobs_retry, api_jobs_remove;
/* contain.c */
httpd_handler api_contain, api_containment;
/* release.c */
httpd_handler api_quarantine_release;
/* job_stream.c */
httpd_handler api_events;
/* stdin.c */
httpd_handler api_stdin_part, api_tty_size, work_stdin;
/* uploads.c: the same for the owner and for a tomb */
httpd_handler api_upload_begin, api_upload_part, api_upload_commit;
/* status.c */
httpd_handler api_status, api_check, api_metrics;
/* gate.c */
httpd_handler api_gate_scan, api_private_list, api_private_add, api_private_remove;
/* ward.c */
httpd_handler api_ward, api_ward_test, api_portals;
/* ward_reload.c */
httpd_handler api_ward_reload;
/* factor.c */
httpd_handler api_passphrase, api_passphrase_set;
/* proposals.c */
httpd_handler api_proposals, api_proposal_allow, api_proposal_drop;
/* budget.c */
httpd_handler api_budget;
void api_put_amounts(struct jsonw *w, const char *key, const struct budget_amounts *a);
/* reactor.c */
httpd_handler api_intent;
/* work.c */
httpd_handler work_ping, work_output, work_output_end, work_phase, work_blob,
	work_upload_begin, work_upload_part, work_upload_commit;
/* broker.c */
httpd_handler work_ask, work_fetch, work_package, work_models;
/* door.c */
httpd_handler work_hello, work_hints, work_claim, work_extend, work_ack, work_fail,
	work_release;

/* A request that waits for the database: made by a handler, freed by its callback. */
struct api_call {
	struct vessel *v;
	struct httpd_req *req;
	uint64_t a, b; /* the handler's own numbers */
	unsigned what;
	bool flag;
	char text[80];
};
struct api_call *api_call_new(struct vessel *v, struct httpd_req *req);

/* api.c */
MUST_CHECK int api_job_id(const struct httpd_req *req, job_id_t *ret, struct err *err);
/* The start of every handler of one job: its id, no query but `allowed` (NULL: none).
 * False: it was refused, and answered. */
bool api_begin(struct vessel *v, struct httpd_req *req, const char *const *allowed,
	       job_id_t *ret_id, struct api_call **ret);
/* A decimal query parameter; absent leaves *ret. ERRID_HTTP_QUERY. */
MUST_CHECK int api_query_u64(const struct httpd_req *req, const char *name, uint64_t min,
			     uint64_t max, uint64_t *ret, struct err *err);
/* Refuse any query parameter. */
MUST_CHECK int api_no_query(const struct httpd_req *req, struct err *err);
MUST_CHECK int api_query_stream(const struct httpd_req *req, enum output_stream *ret,
				struct err *err);
/* attended=1: the client waits for the job (attended.h). */
MUST_CHECK int api_query_attended(const struct httpd_req *req, bool *ret,
				  struct err *err);
/* Of a contained job nothing that it printed or made is given out, but to who says tainted=1 (a query):
 * ERRID_RUN_TAINTED. *ret: it was said. */
MUST_CHECK int api_query_tainted(const struct httpd_req *req, bool *ret, struct err *err);
MUST_CHECK int api_check_taint(const struct queue_job *j, bool is_said, struct err *err);
/* The header Lychgate-Size. */
void api_add_size(struct httpd_req *req, uint64_t size);
/* The header that says that a job chose these bytes. */
void api_add_untrusted(struct httpd_req *req);
/* Bytes [offset, offset+limit) of a file of `size` bytes, with Lychgate-Size. Takes fd
 * (-1: empty). */
void api_reply_range(struct httpd_req *req, int fd, uint64_t size, uint64_t offset,
		     uint64_t limit);
/* How far a streamed stdin is, as people see it. */
void stdin_place_write(struct jsonw *w, const struct feed_place *p);
/* Is the job, which was shown with its spec, fed by this name? ERRID_RUN_STREAM. *ret_at_terminal
 * (or NULL): it has one. */
MUST_CHECK int stdin_check_name(const struct queue_job *j, const char *name,
				bool *ret_at_terminal, struct err *err);
/* Is its stdin kept, or gone once it was given? ERRID_RUN_STREAMED. */
MUST_CHECK int stdin_check_kept(const struct queue_job *j, struct err *err);
/* Which attempt's output is the job's: the present one, or the last one of a finished
 * job. */
int64_t api_output_epoch(const struct output *o, const struct queue_job *j);

#endif
