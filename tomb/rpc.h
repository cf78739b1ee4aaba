/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * JSON-RPC 2.0 of the control socket: the pure part.
 */
#ifndef LYCH_TOMB_RPC_H
#define LYCH_TOMB_RPC_H

#include "common/attr.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/id.h"
#include <stddef.h>

#define RPC_LINE_MAX_BYTES 65536

#define RPC_PARSE_ERROR (-32700)
#define RPC_INVALID_REQUEST (-32600)
#define RPC_NO_METHOD (-32601)
#define RPC_INVALID_PARAMS (-32602)
#define RPC_APPLICATION (-32000) /* data.error_code says more */

enum rpc_method { RPC_HEALTH_CHECK, RPC_START_STAGE, RPC_CANCEL_STAGE };

struct rpc_request {
	enum rpc_method method;
	job_id_t job;
	char id[160]; /* the id as JSON text, to be echoed; "null" when unknown */
};

/* 0, or the code of the error with err set; ret->id is valid either way. */
MUST_CHECK int rpc_parse(const void *line, size_t len, struct rpc_request *ret,
			 struct err *err);
/* One line each, newline included. result: one JSON value. */
void rpc_write_result(struct buf *out, const char *id, const char *result);
void rpc_write_error(struct buf *out, const char *id, int code, const struct err *err);

#endif
