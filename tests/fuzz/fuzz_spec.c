/* SPDX-License-Identifier: Apache-2.0 */
/* The block that the tomb sends to the spawner: whatever comes, a spec that is taken
 * keeps the promises that the walls rely on. */
#include "common/str.h"
#include "sandbox/contract/sandbox.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = ERR_INIT;
	struct sbx_spec s;

	if (sbx_spec_parse_block((const char *)data, size, &s, &err) < 0) {
		assert(err_is_set(&err));
		assert(!s.argv && !s.env && !s.workspace && s.n_mounts == 0);
		return 0;
	}
	assert(s.argv && s.argv[0] && s.argv[0][0] && s.env && s.hostname);
	assert(s.grade < GRADE_MAX_ && s.memory_bytes && s.processes && s.cpus &&
	       s.nofile);
	for (size_t i = 0; i < s.n_mounts; i++) {
		assert(s.mounts[i].path[0] == '/' && s.mounts[i].path[1]);
		assert(!strstr(s.mounts[i].path, "/../") &&
		       !strstr(s.mounts[i].path, "//"));
	}
	if (s.workspace) {
		assert(sbx_spec_base_workspace(&s, "/jobs", &err) == 0);
		assert(s.workspace[0] == '/' && !strstr(s.workspace, "/../"));
	}
	sbx_spec_done(&s);
	return 0;
}
