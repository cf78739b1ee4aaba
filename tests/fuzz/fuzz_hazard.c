/* SPDX-License-Identifier: Apache-2.0 */
/* A name that a job made: whatever its bytes, it is judged, its case does not change the
 * judgement, and what lies below a .git is never delivered. */
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/text/hazard.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#define NAME_BYTES_MAX 4095

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *swap_case(const char *s)
{
	char *copy = xstrdup(s);

	for (char *p = copy; *p; p++)
		if ((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z'))
			*p = (char)(*p ^ 0x20);
	return copy;
}

/* The one row that looks at case; in a key there is none, and nothing that a file system ignores. */
static bool is_head(const char *key)
{
	const char *slash = strrchr(key, '/');

	return str_eq(slash ? slash + 1 : key, "head");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_free char *path = xstrndup((const char *)data,
					   size < NAME_BYTES_MAX ? size : NAME_BYTES_MAX);
	cleanup_free char *other = swap_case(path);
	cleanup_free char *key = hazard_key(path);
	cleanup_free char *other_key = hazard_key(other);
	cleanup_free char *below = xasprintf(".git/%s", path);
	const char *class = hazard_class(data, size);

	assert(str_eq(class, "file") || str_eq(class, "program"));
	assert(str_eq(key, other_key));
	assert(strlen(key) <= strlen(path));
	if (!is_head(key))
		assert(!hazard_of(path) == !hazard_of(other));
	assert(!path[0] || hazard_of(below));
	if (hazard_is_plain(path))
		assert(!str_has_control(path, strlen(path)));
	return 0;
}
