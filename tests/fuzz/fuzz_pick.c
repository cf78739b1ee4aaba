/* SPDX-License-Identifier: Apache-2.0 */
/* What lych-ask picks out of a provider's answer: whatever that is, it stays inside it. */
#include "job/pick.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const paths[] = {
	"", "id", "choices.0.message.content", "content.1.text", "0", "a.0.b"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *json = (const char *)data;

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		cleanup_buf struct buf text = {.max = (size_t)16 << 20};
		const char *raw = NULL;
		uint64_t v = 0;
		size_t n = 0;

		if (!pick_raw(json, size, paths[i], &raw, &n))
			continue;
		assert(n > 0 && raw >= json && raw + n <= json + size);
		/* Every escape is at least as long as what it stands for. */
		if (pick_text(json, size, paths[i], &text))
			assert(*raw == '"' && n >= 2 && text.len <= n - 2);
		if (pick_u64(json, size, paths[i], 599, &v))
			assert(v <= 599);
	}
	return 0;
}
