/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * The attack surface of the vessel, whole: what is not in these two tables
 * does not exist. One table a socket; {method, path, who, body cap, handler}.
 * docs/PROTOCOL.md describes each line.
 */
#include "vessel/api/routes.h"
#include "common/attr.h"
#include "common/proto.h"
#include "common/proto/job_spec.h"
#include "vessel/api/api.h"
#include "vessel/api/auth.h"

#define SMALL_JSON_BYTES 4096
#define WARD_TEST_BYTES 16384
/* A path, each byte of which may be written as six. */
#define RELEASE_BODY_BYTES 32768
#define EXTEND_BODY_BYTES ((size_t)DOOR_EXTEND_MAX * 128 + 1024)
/* A request of 4 MiB and what is around it; 1 MiB in base64. */
#define ASK_BODY_BYTES (((size_t)4 << 20) + 65536)
#define FETCH_BODY_BYTES ((size_t)2 << 20)
/* A result that is too big is the database's to judge, as over the other door. */
#define RESULT_BODY_BYTES (RESULT_MAX_BYTES + 4096)

/* The api socket: the owner, by peer uid. */
const struct httpd_route routes_api[] = {
	{HTTP_M_POST, "/v1/jobs", WHO_OWNER, SPEC_MAX_BYTES, api_jobs_submit},
	{HTTP_M_GET, "/v1/jobs", WHO_OWNER, 0, api_jobs_list},
	{HTTP_M_GET, "/v1/jobs/{id}", WHO_OWNER, 0, api_jobs_show},
	{HTTP_M_POST, "/v1/jobs/{id}/cancel", WHO_OWNER, 0, api_jobs_cancel},
	{HTTP_M_POST, "/v1/jobs/{id}/retry", WHO_OWNER, 0, api_jobs_retry},
	{HTTP_M_DELETE, "/v1/jobs/{id}", WHO_OWNER, 0, api_jobs_remove},
	{HTTP_M_POST, "/v1/jobs/{id}/contain", WHO_OWNER, SMALL_JSON_BYTES, api_contain},
	{HTTP_M_GET, "/v1/jobs/{id}/containment", WHO_OWNER, 0, api_containment},
	{HTTP_M_POST, "/v1/jobs/{id}/quarantine/release", WHO_OWNER, RELEASE_BODY_BYTES,
	 api_quarantine_release},
	{HTTP_M_GET, "/v1/jobs/{id}/output", WHO_OWNER, 0, api_jobs_output},
	{HTTP_M_GET, "/v1/jobs/{id}/order", WHO_OWNER, 0, api_jobs_order},
	{HTTP_M_GET, "/v1/jobs/{id}/events", WHO_OWNER, 0, api_events},
	{HTTP_M_PUT, "/v1/jobs/{id}/stdin/{stream}", WHO_OWNER, STREAM_PART_MAX_BYTES,
	 api_stdin_part},
	{HTTP_M_PUT, "/v1/jobs/{id}/tty/{stream}", WHO_OWNER, 0, api_tty_size},
	{HTTP_M_GET, "/v1/jobs/{id}/artifacts", WHO_OWNER, 0, api_jobs_artifacts},
	{HTTP_M_GET, "/v1/jobs/{id}/artifacts/{n}", WHO_OWNER, 0, api_jobs_artifact},
	{HTTP_M_POST, "/v1/uploads", WHO_OWNER, SMALL_JSON_BYTES, api_upload_begin},
	{HTTP_M_PUT, "/v1/uploads/{upload}", WHO_OWNER, UPLOAD_PART_MAX_BYTES,
	 api_upload_part},
	{HTTP_M_POST, "/v1/uploads/{upload}/commit", WHO_OWNER, SMALL_JSON_BYTES,
	 api_upload_commit},
	{HTTP_M_POST, "/v1/intents", WHO_OWNER, SMALL_JSON_BYTES, api_intent},
	{HTTP_M_POST, "/v1/gate/scan", WHO_OWNER, GATE_INPUT_MAX_BYTES, api_gate_scan},
	{HTTP_M_GET, "/v1/private", WHO_OWNER, 0, api_private_list},
	{HTTP_M_POST, "/v1/private", WHO_OWNER, PRIVATE_FILE_MAX_BYTES, api_private_add},
	{HTTP_M_DELETE, "/v1/private/{entry}", WHO_OWNER, 0, api_private_remove},
	{HTTP_M_GET, "/v1/passphrase", WHO_OWNER, 0, api_passphrase},
	{HTTP_M_POST, "/v1/passphrase", WHO_OWNER, SMALL_JSON_BYTES, api_passphrase_set},
	{HTTP_M_GET, "/v1/ward", WHO_OWNER, 0, api_ward},
	{HTTP_M_POST, "/v1/ward/test", WHO_OWNER, WARD_TEST_BYTES, api_ward_test},
	{HTTP_M_POST, "/v1/ward/reload", WHO_OWNER, CONF_FILE_MAX_BYTES, api_ward_reload},
	{HTTP_M_GET, "/v1/proposals", WHO_OWNER, 0, api_proposals},
	{HTTP_M_POST, "/v1/proposals/{n}/allow", WHO_OWNER, SMALL_JSON_BYTES,
	 api_proposal_allow},
	{HTTP_M_DELETE, "/v1/proposals/{n}", WHO_OWNER, 0, api_proposal_drop},
	{HTTP_M_GET, "/v1/portals", WHO_OWNER, 0, api_portals},
	{HTTP_M_GET, "/v1/status", WHO_OWNER, 0, api_status},
	{HTTP_M_GET, "/v1/check", WHO_OWNER, 0, api_check},
	{HTTP_M_GET, "/v1/budget", WHO_OWNER, 0, api_budget},
	{HTTP_M_GET, "/metrics", WHO_OWNER, 0, api_metrics},
};
const size_t routes_api_n = ARRAY_SIZE(routes_api);

/* The work socket: tombs, each by its own bearer; everything about a job by its lease too. */
const struct httpd_route routes_work[] = {
	{HTTP_M_GET, "/work/v1/ping", WHO_TOMB, 0, work_ping},
	{HTTP_M_POST, "/work/v1/hello", WHO_TOMB, SMALL_JSON_BYTES, work_hello},
	{HTTP_M_GET, "/work/v1/hints", WHO_DOOR, 0, work_hints},
	{HTTP_M_POST, "/work/v1/claim", WHO_DOOR, SMALL_JSON_BYTES, work_claim},
	{HTTP_M_POST, "/work/v1/extend", WHO_DOOR, EXTEND_BODY_BYTES, work_extend},
	{HTTP_M_POST, "/work/v1/ack", WHO_DOOR_LEASE, RESULT_BODY_BYTES, work_ack},
	{HTTP_M_POST, "/work/v1/fail", WHO_DOOR_LEASE, RESULT_BODY_BYTES, work_fail},
	{HTTP_M_POST, "/work/v1/release", WHO_DOOR_LEASE, 0, work_release},
	{HTTP_M_POST, "/work/v1/output", WHO_LEASE, OUTPUT_CHUNK_MAX_BYTES, work_output},
	{HTTP_M_POST, "/work/v1/output/end", WHO_LEASE, SMALL_JSON_BYTES,
	 work_output_end},
	{HTTP_M_POST, "/work/v1/stdin", WHO_LEASE, 0, work_stdin},
	{HTTP_M_POST, "/work/v1/phase", WHO_LEASE, SMALL_JSON_BYTES, work_phase},
	{HTTP_M_POST, "/work/v1/ask", WHO_LEASE, ASK_BODY_BYTES, work_ask},
	{HTTP_M_POST, "/work/v1/fetch", WHO_LEASE, FETCH_BODY_BYTES, work_fetch},
	{HTTP_M_POST, "/work/v1/package", WHO_LEASE, SMALL_JSON_BYTES, work_package},
	{HTTP_M_GET, "/work/v1/models", WHO_LEASE, 0, work_models},
	{HTTP_M_GET, "/work/v1/blobs/{sha256}", WHO_LEASE, 0, work_blob},
	{HTTP_M_POST, "/work/v1/uploads", WHO_LEASE, SMALL_JSON_BYTES, work_upload_begin},
	{HTTP_M_PUT, "/work/v1/uploads/{upload}", WHO_LEASE, UPLOAD_PART_MAX_BYTES,
	 work_upload_part},
	{HTTP_M_POST, "/work/v1/uploads/{upload}/commit", WHO_LEASE, SMALL_JSON_BYTES,
	 work_upload_commit},
};
const size_t routes_work_n = ARRAY_SIZE(routes_work);
