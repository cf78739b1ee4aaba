/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * See rpc.h.
 */
#include "tomb/rpc.h"

#include "common/cleanup.h"
#include "common/json/json.h"
#include "common/jsonw.h"
#include "common/str.h"

#include <inttypes.h>
#include <string.h>

#define RPC_DEPTH 8
#define RPC_ID_MAX 64

/* A string or a whole number; a request without an id would be a notification, and
 * nothing here may happen without an answer. */
static int read_id(const struct json *obj, struct rpc_request *ret, struct err *err)
{
	struct err not_text = ERR_INIT;
	const char *text = NULL;
	int64_t n = 0;

	if (json_get_str(obj, "id", true, RPC_ID_MAX, &text, &not_text) == 0) {
		cleanup_buf struct buf b = {.max = sizeof(ret->id) * 4};
		struct jsonw w;

		jsonw_init(&w, &b);
		jsonw_str(&w, text);
		if (!buf_ok(&b) || str_copy(ret->id, sizeof(ret->id), buf_str(&b)) < 0) {
			(void)snprintf(ret->id, sizeof(ret->id), "null");
			return err_set_id(err, ERRID_SPEC_RANGE, "id: too long");
		}
		return 0;
	}
	if (json_get_i64(obj, "id", true, INT64_MIN, INT64_MAX, &n, err) < 0)
		return -1;
	return str_fmt(ret->id, sizeof(ret->id), "%" PRId64, n);
}

static int read_params(const struct json *obj, bool wants_job, struct rpc_request *ret,
		       struct err *err)
{
	static const char *const keys[] = {"job"};
	const struct json *params = NULL;

	if (json_get_obj(obj, "params", wants_job, &params, err) < 0)
		return -1;
	if (!params)
		return 0;
	if (json_check_keys(params, keys, wants_job ? 1 : 0, err) < 0)
		return -1;
	if (!wants_job)
		return 0;
	return json_get_i64(params, "job", true, 1, INT64_MAX, &ret->job, err);
}

int rpc_parse(const void *line, size_t len, struct rpc_request *ret, struct err *err)
{
	static const char *const keys[] = {"jsonrpc", "id", "method", "params"};
	static const struct {
		const char *name;
		enum rpc_method method;
		bool wants_job;
	} methods[] = {
		{"healthCheck", RPC_HEALTH_CHECK, false},
		{"startStage", RPC_START_STAGE, true},
		{"cancelStage", RPC_CANCEL_STAGE, true},
	};
	cleanup_json struct json *obj = NULL;
	const char *version = NULL, *method = NULL;

	*ret = (struct rpc_request){.id = "null"};
	if (len > RPC_LINE_MAX_BYTES) {
		(void)err_set(err, ERR_TOO_LARGE, "a line of %zu bytes", len);
		return RPC_INVALID_REQUEST;
	}
	if (json_parse(line, len, RPC_DEPTH, &obj, err) < 0)
		return RPC_PARSE_ERROR;
	if (read_id(obj, ret, err) < 0 ||
	    json_check_keys(obj, keys, ARRAY_SIZE(keys), err) < 0 ||
	    json_get_str(obj, "jsonrpc", true, 8, &version, err) < 0 ||
	    json_get_str(obj, "method", true, 64, &method, err) < 0)
		return RPC_INVALID_REQUEST;
	if (!str_eq(version, "2.0")) {
		(void)err_set_id(err, ERRID_SPEC_RANGE, "jsonrpc: only \"2.0\"");
		return RPC_INVALID_REQUEST;
	}
	for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
		if (!str_eq(method, methods[i].name))
			continue;
		ret->method = methods[i].method;
		return read_params(obj, methods[i].wants_job, ret, err) < 0
			       ? RPC_INVALID_PARAMS
			       : 0;
	}
	(void)err_set_id(err, ERRID_HTTP_ROUTE, "method %.64s", method);
	return RPC_NO_METHOD;
}

void rpc_write_result(struct buf *out, const char *id, const char *result)
{
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_obj(&w);
	jsonw_kstr(&w, "jsonrpc", "2.0");
	jsonw_key(&w, "id");
	jsonw_raw(&w, id, strlen(id));
	jsonw_key(&w, "result");
	jsonw_raw(&w, result, strlen(result));
	jsonw_obj_end(&w);
	buf_addc(out, '\n');
}

void rpc_write_error(struct buf *out, const char *id, int code, const struct err *err)
{
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_obj(&w);
	jsonw_kstr(&w, "jsonrpc", "2.0");
	jsonw_key(&w, "id");
	jsonw_raw(&w, id, strlen(id));
	jsonw_key(&w, "error");
	jsonw_obj(&w);
	jsonw_ki64(&w, "code", code);
	jsonw_kstr(&w, "message", err_title(err));
	jsonw_key(&w, "data");
	jsonw_obj(&w);
	jsonw_kstr(&w, "error_code", err_text(err));
	jsonw_kstr(&w, "detail", err_code_info(err->code)->public_text ? err->msg : "");
	jsonw_kstr(&w, "hint", err_hint(err));
	jsonw_obj_end(&w);
	jsonw_obj_end(&w);
	jsonw_obj_end(&w);
	buf_addc(out, '\n');
}
