/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * See proxy_gemini.h.
 */
#include "tomb/broker/proxy_gemini.h"

#include "common/str.h"

#include <string.h>

static const struct {
	const char *method, *api;
	bool stream;
} methods[] = {
	{"generateContent", "generate", false},
	{"streamGenerateContent", "generate", true},
	{"countTokens", "count_tokens", false},
};

static int read_alt(const char *alt, bool stream, struct err *err)
{
	if (stream && !str_eq(alt, "sse"))
		return err_set_id(
			err, ERRID_BROKER_API,
			"a stream as one list of JSON, which can't be read before "
			"its end; ask streamGenerateContent?alt=sse, as the SDKs "
			"do");
	if (!stream && *alt && !str_eq(alt, "json"))
		return err_set_id(err, ERRID_BROKER_REQUEST,
				  "alt=%.32s: only json, and sse with "
				  "streamGenerateContent",
				  alt);
	return 0;
}

int gemini_call_read(const char *below, const char *alt, struct gemini_call *ret,
		     struct err *err)
{
	const char *colon = strrchr(below, ':'), *method = colon ? colon + 1 : "";
	size_t len = colon ? (size_t)(colon - below) : strlen(below);

	if (len == 0 || len > INTENT_MODEL_MAX_BYTES || str_has_control(below, len))
		return err_set_id(err, ERRID_BROKER_REQUEST,
				  "the path names no model: models/MODEL:METHOD");
	for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
		if (!str_eq(method, methods[i].method))
			continue;
		if (read_alt(alt, methods[i].stream, err) < 0)
			return -1;
		memcpy(ret->model, below, len);
		ret->model[len] = '\0';
		ret->api = methods[i].api;
		ret->stream = methods[i].stream;
		return 0;
	}
	return err_set_id(
		err, ERRID_BROKER_API,
		"'%.64s'; of Gemini's API there are generateContent, "
		"streamGenerateContent?alt=sse, countTokens and GET /v1beta/models",
		method);
}
