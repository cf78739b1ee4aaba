/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a job says to its broker: 'f' + the head of a frame, 'r' + a body to be rebuilt,
 * 'e' + what the vessel refuses with. Whatever is made of it must be one strict JSON
 * text that says the same.
 */
#include "common/attr.h"
#include "common/cleanup.h"
#include "common/json/json.h"
#include "common/jsonw.h"
#include "common/str.h"
#include "tomb/broker/proxy_floor.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_head(const char *data, size_t size)
{
	static struct floor_head h;
	struct err err = ERR_INIT;

	if (floor_head_parse(data, size, &h, &err) < 0)
		return;
	assert(h.id[0] && strlen(h.id) <= BROKER_ID_MAX);
	assert(h.body_bytes <= INTENT_REQUEST_MAX_BYTES);
	assert(!str_has_control(h.url, strlen(h.url)));
	assert(!strstr(h.url, "..") || h.route->what == FETCH || !strstr(h.url, "/../"));
	for (size_t i = 0; i < h.n_headers; i++)
		assert(!str_has_control(h.headers[i].value, strlen(h.headers[i].value)));
	if (h.route->what == FETCH) {
		const struct intent_fetch f = {
			.method = h.method,
			.url = h.url,
			.headers = h.headers,
			.n_headers = h.n_headers,
			.body = data,
			.len = size,
		};
		cleanup_buf struct buf out;

		buf_init(&out, INTENT_MAX_BYTES);
		if (intent_fetch(1, &f, &out, &err) == 0)
			assert(json_scan(out.data, out.len, 8, &err) == 0);
	}
}

static void write_again(const struct json *v, struct buf *out)
{
	struct jsonw w;

	buf_init(out, INTENT_MAX_BYTES);
	jsonw_init(&w, out);
	json_write(v, &w);
	assert(buf_ok(out));
}

static void fuzz_rebuild(const char *data, size_t size)
{
	cleanup_json struct json *was = NULL, *is = NULL;
	cleanup_buf struct buf out, a = {0}, b = {0};
	const struct json *request = NULL;
	struct err err = ERR_INIT;
	const struct intent_ask q = {.body = data, .len = size};

	buf_init(&out, INTENT_MAX_BYTES);
	if (intent_ask(7, &q, &out, &err) < 0)
		return;
	assert(!str_has_control(out.data, out.len));
	assert(json_parse(data, size, INTENT_DEPTH_MAX, &was, &err) == 0);
	assert(json_parse(out.data, out.len, INTENT_DEPTH_MAX + 2, &is, &err) == 0);
	assert(json_get_obj(is, "request", true, &request, &err) == 0);
	write_again(was, &a);
	write_again(request, &b);
	assert(a.len == b.len && memcmp(a.data, b.data, a.len) == 0);
}

static void fuzz_refusal(const char *data, size_t size)
{
	struct proxy_refusal r;
	struct err err = ERR_INIT;

	refusal_of_reply(&r, 403, data, size);
	for (int d = DIALECT_OPENAI; d <= DIALECT_PLAIN; d++) {
		cleanup_buf struct buf out;

		buf_init(&out, 16384);
		refusal_write(&r, (enum proxy_dialect)d, &out);
		assert(buf_ok(&out));
		assert(json_scan(out.data, out.len, 8, &err) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data + 1;

	if (size == 0)
		return 0;
	switch (data[0]) {
	case 'f':
		fuzz_head(text, size - 1);
		break;
	case 'r':
		fuzz_rebuild(text, size - 1);
		break;
	case 'e':
		fuzz_refusal(text, size - 1);
		break;
	default:
		break;
	}
	return 0;
}
