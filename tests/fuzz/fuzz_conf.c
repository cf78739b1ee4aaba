/* SPDX-License-Identifier: Apache-2.0 */
/* codex.yaml: lint, libcyaml and our value parsers together. */
#include "common/attr.h"
#include "common/net/conf.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = ERR_INIT;
	struct conf c;

	if (conf_parse((const char *)data, size, &c, &err) < 0) {
		/* Every refusal is the same public error, and names a line. */
		assert(err.id == ERRID_START_CONFIG && strstr(err.msg, "line "));
		return 0;
	}
	assert(c.slots >= 1 && c.slots <= 64);
	assert(c.grade < GRADE_MAX_);
	assert(c.memory_default <= c.memory_max && c.memory_max <= LIMIT_MEMORY_MAX);
	assert(c.disk_default <= c.disk_max && c.disk_max <= LIMIT_DISK_MAX);
	assert(c.output_default <= c.output_max && c.output_max <= LIMIT_OUTPUT_MAX);
	assert(c.timeout_default_usec <= c.timeout_max_usec);
	assert(c.processes_default >= 1 && c.processes_default <= c.processes_max);
	assert(c.cpus_default >= 1 && c.cpus_default <= c.cpus_max);
	assert(!c.postgres_bin || c.postgres_bin[0] == '/');
	assert(c.pod.profile && c.pod.n_mounts <= CONF_MOUNTS_MAX);
	for (size_t i = 0; i < c.pod.n_mounts; i++)
		assert(c.pod.mount[i].path[0]);
	assert(c.pod.tomb.memory >= (uint64_t)16 << 20);
	conf_done(&c);
	return 0;
}
