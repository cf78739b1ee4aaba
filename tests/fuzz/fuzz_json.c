/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON scan, json-c behind it, and the encoder: what is accepted survives a round
 * trip. */
#include "common/attr.h"
#include "common/buf.h"
#include "common/json/json.h"
#include "common/jsonw.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void encode(const struct json *j, struct buf *out)
{
	struct jsonw w;

	buf_init(out, (size_t)1 << 24);
	jsonw_init(&w, out);
	json_write(j, &w);
	assert(buf_ok(out));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct json *j = NULL, *again = NULL;
	struct err err = ERR_INIT;
	struct buf first, second;
	int scanned = json_scan(data, size, JSON_DEPTH_DEFAULT, &err);

	/* json-c must agree with the scan, in both directions. */
	if (json_parse(data, size, JSON_DEPTH_DEFAULT, &j, &err) < 0) {
		assert(scanned < 0);
		return 0;
	}
	assert(scanned == 0);
	encode(j, &first);
	if (json_parse(first.data, first.len, JSON_DEPTH_DEFAULT, &again, &err) < 0)
		abort();
	encode(again, &second);
	assert(first.len == second.len &&
	       memcmp(first.data, second.data, first.len) == 0);
	buf_done(&first);
	buf_done(&second);
	json_free(j);
	json_free(again);
	return 0;
}
