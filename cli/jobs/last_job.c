/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See last_job.h.
 */
#include "cli/jobs/last_job.h"

#include "common/json/json.h"
#include "common/proto.h"
#include <inttypes.h>

int last_job_take(struct client *c, bool to_end, job_id_t *id, struct err *err)
{
	const struct client_request rq = {
		.method = "GET", .target = "/v1/jobs?limit=1", .timeout_ms = 30000};
	cleanup_json struct json *j = NULL;
	const struct json *arr = NULL, *job;
	enum job_state state;
	const char *name;
	job_id_t last;

	if (*id)
		return 0;
	if (client_json(c, &rq, &j, NULL, err) < 0 ||
	    json_get_arr(j, "jobs", true, 1, &arr, err) < 0)
		return -1;
	if (json_arr_len(arr) == 0)
		return err_set_id(err, ERRID_RUN_NOT_FOUND, "there is no job yet");
	job = json_arr_at(arr, 0);
	if (json_get_i64(job, "id", true, 1, INT64_MAX, &last, err) < 0 ||
	    json_get_str(job, "state", true, 32, &name, err) < 0)
		return -1;
	if (!job_state_from_name(name, &state))
		return err_set_id(err, ERRID_HTTP_ANSWER, "unknown state '%s'", name);
	if (to_end && job_state_is_final(state))
		return err_set_id(err, ERRID_RUN_STATE,
				  "the last job, %" PRId64
				  ", has ended (%s); to end another one, give its number",
				  last, job_state_name(state));
	(void)fprintf(stderr, "lych: the last job: %" PRId64 ", %s\n", last,
		      job_state_name(state));
	*id = last;
	return 0;
}
