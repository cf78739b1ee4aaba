/* SPDX-License-Identifier: Apache-2.0 */
/* A job's description from outside: what is accepted must survive its own canonical form.
 */
#include "common/buf.h"
#include "common/proto.h"
#include "vessel/api/spec.h"
#include <assert.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char codex[] = "version: \"1\"\n"
			    "registries: {npm: {url: \"https://npm.example.org\"}}\n"
			    "ward:\n- {host: a.example, action: allow}\n"
			    "- {registry: npm, action: allow}\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_spec struct spec first = {0}, second = {0};
	cleanup_buf struct buf a, b;
	struct err err = ERR_INIT;
	struct conf conf;

	buf_init(&a, SPEC_MAX_BYTES);
	buf_init(&b, SPEC_MAX_BYTES);
	if (conf_parse(codex, strlen(codex), &conf, &err) < 0)
		abort();
	if (spec_parse(data, size, &conf, &first, &err) == 0) {
		if (!*first.request_id && spec_set_request_id(&first, "fuzz", &err) < 0)
			abort();
		for (size_t i = 0; i < spec_blobs(&first); i++)
			assert(spec_blob(&first, i));
		if (spec_write(&first, &a, &err) == 0) {
			if (spec_parse(a.data, a.len, &conf, &second, &err) < 0 ||
			    spec_write(&second, &b, &err) < 0)
				abort();
			assert(a.len == b.len && memcmp(a.data, b.data, a.len) == 0);
		}
	} else {
		assert(err_is_set(&err) && err.id != ERRID_NONE);
	}
	conf_done(&conf);
	return 0;
}
