/* SPDX-License-Identifier: Apache-2.0 */
/* A rule that forbids a path, whatever the path: what says the same bytes is within, and a
 * way there and back before it takes nothing out. The first line is the rule's. */
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/conf/priv.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/broker/ward_path.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#define PREFIX_BYTES_MAX 64
#define TRIED_BYTES_MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	const char *line = size > 0 ? memchr(text, '\n', size) : NULL;
	size_t len = line ? (size_t)(line - text) : 0;

	if (len == 0 || len > PREFIX_BYTES_MAX || size > TRIED_BYTES_MAX)
		return 0;
	cleanup_free char *prefix = xstrndup(text, len);
	cleanup_free char *path = xasprintf("/%.*s", (int)(size - len - 1), line + 1);
	cleanup_free char *same = xasprintf("%s%s", prefix, path);
	cleanup_free char *detour = xasprintf("/b/..%s", path);

	if (conf_path_check(prefix, NULL) < 0)
		return 0;
	assert(ward_path_is_within(prefix, prefix));
	assert(ward_path_is_within(same, prefix));
	if (ward_path_is_within(path, prefix))
		assert(ward_path_is_within(detour, prefix));
	return 0;
}
