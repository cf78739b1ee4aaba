/* SPDX-License-Identifier: Apache-2.0 */
/* A tomb's account of a job, as the vessel reads it: an artifact that is accepted has a
 * relative path that nothing on a person's side obeys, and a real hash. */
#include "common/id.h"
#include "common/json/json.h"
#include "common/str.h"
#include "common/text/hazard.h"
#include "vessel/api/job.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct queue_job job = {.id = 1, .result = data, .result_len = size};
	struct err err = ERR_INIT;
	struct json *result = NULL;

	if (job_result_parse(&job, &result, &err) < 0) {
		assert(err.code != ERR_NONE);
		return 0;
	}
	for (size_t i = 0; i < job_artifacts(result) && i < ARTIFACTS_MAX; i++) {
		struct job_artifact a;
		uint8_t raw[SHA256_SIZE];

		if (job_artifact_at(result, i, &a, &err) < 0)
			continue;
		assert(path_check_relative(a.path, strlen(a.path), &err) == 0);
		assert(!hazard_of(a.path) && hazard_is_plain(a.path));
		assert(sha256_hex_parse(a.sha256, raw, &err) == 0);
	}
	json_free(result);
	return 0;
}
