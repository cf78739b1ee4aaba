/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First byte: even, a stream of events; odd, another reply. Second: how the rest is cut.
 * However it is cut the outcome is the same, and neither the key nor what an ordinary reader
 * puts together of the "content" in it holds more of it than a beginning.
 */
#include "common/mem.h"
#include "vessel/egress/redact_reply.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define KEY "sk-Zq7/R+xV2m9"
#define OUT_MAX ((size_t)64 << 20)

static int run(const struct redact *what, bool is_stream, const uint8_t *data,
	       size_t size, size_t piece, struct buf *out)
{
	struct redact_reply *r = redact_reply_new(what, is_stream);
	int done = 0;

	for (size_t at = 0; at < size && done == 0; at += piece)
		done = redact_reply_feed(
			r, data + at, size - at < piece ? size - at : piece, out, NULL);
	if (done == 0)
		done = redact_reply_end(r, out, NULL);
	redact_reply_free(r);
	return done;
}

/* The text after each `"content":"`, when all of it belongs to one choice. */
static void check_joined(const struct buf *out)
{
	static const char name[] = "\"content\":\"", index[] = "\"index\":";
	const char *at = buf_str(out), *end = at + out->len;
	cleanup_buf struct buf text;

	buf_init(&text, OUT_MAX);
	if (memmem(at, out->len, index, sizeof(index) - 1) ||
	    memmem(at, out->len, "\\", 1) || memmem(at, out->len, "choices", 7) ||
	    memmem(at, out->len, "tool_calls", 10))
		return;
	while ((at = memmem(at, (size_t)(end - at), name, sizeof(name) - 1))) {
		const char *stop;

		at += sizeof(name) - 1;
		stop = memchr(at, '"', (size_t)(end - at));
		buf_add(&text, at, (size_t)((stop ? stop : end) - at));
	}
	assert(!memmem(buf_str(&text), text.len, KEY, sizeof(KEY) - 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct redact *what;
	cleanup_buf struct buf whole, cut;
	struct err err = ERR_INIT;
	bool is_stream;
	int done;

	buf_init(&whole, OUT_MAX);
	buf_init(&cut, OUT_MAX);
	if (!what && redact_new(KEY, sizeof(KEY) - 1, &what, &err) < 0)
		abort();
	if (size < 3)
		return 0;
	is_stream = data[0] % 2 == 0;
	done = run(what, is_stream, data + 2, size - 2, size, &whole);
	assert(run(what, is_stream, data + 2, size - 2, (size_t)data[1] + 1, &cut) ==
	       done);
	assert(!memmem(buf_str(&whole), whole.len, KEY, sizeof(KEY) - 1));
	if (done < 0)
		return 0;
	assert(whole.len == cut.len &&
	       (whole.len == 0 || memcmp(whole.data, cut.data, whole.len) == 0));
	if (is_stream)
		check_joined(&whole);
	return 0;
}
