/* SPDX-License-Identifier: Apache-2.0 */
/* A line of the control socket. Whatever comes in, what goes out is one line of strict
 * JSON that a peer can match to its question. */
#include "common/buf.h"
#include "common/json/json.h"
#include "tomb/rpc.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = ERR_INIT, bad = ERR_INIT;
	struct rpc_request rq;
	struct json *obj = NULL;
	struct buf out;
	int code = rpc_parse(data, size, &rq, &err);

	buf_init(&out, 65536);
	if (code == 0) {
		assert(rq.method == RPC_HEALTH_CHECK || rq.job > 0);
		rpc_write_result(&out, rq.id, "{}");
	} else {
		assert(code < 0 && err.code != ERR_NONE);
		rpc_write_error(&out, rq.id, code, &err);
	}
	assert(buf_ok(&out) && out.data[out.len - 1] == '\n');
	assert(memchr(out.data, '\n', out.len) == out.data + out.len - 1);
	assert(json_parse(out.data, out.len - 1, 8, &obj, &bad) == 0);
	json_free(obj);
	buf_done(&out);
	return 0;
}
