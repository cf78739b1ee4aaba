/* SPDX-License-Identifier: Apache-2.0 */
/* A provider's reply: first byte how it is read, second the size of its pieces. Nothing
 * is added, and without a hidden chunk nothing is lost. */
#include "vessel/broker/intents/ask_reply.h"
#include "vessel/broker/intents/ask_text.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	/* the bits above: the API, where that is not the kind's conversation */
	enum portal_api api =
		data[0] & 8   ? (enum portal_api)((data[0] >> 4) % PORTAL_API_MAX_)
		: data[0] & 1 ? API_MESSAGES
			      : API_CHAT;
	const struct ask a = {
		.api = api,
		.dialect = portal_api_kind(api),
		.stream = (data[0] & 2) != 0,
		.wants_usage = (data[0] & 4) != 0,
	};
	struct ask_reply *r = ask_reply_new(&a, a.stream);
	size_t piece = (size_t)data[1] + 1;
	struct buf out;

	buf_init(&out, (size_t)8 << 20);
	data += 2;
	size -= 2;
	if (ask_text_chars((const char *)data, size) > size)
		abort();
	for (size_t i = 0; i < size; i += piece)
		ask_reply_feed(r, data + i, size - i < piece ? size - i : piece, &out);
	ask_reply_end(r, &out);
	if (!buf_ok(&out) || out.len > size)
		abort();
	if ((a.wants_usage || !a.stream || a.api != API_CHAT) &&
	    (out.len != size || (size && memcmp(out.data, data, size) != 0)))
		abort();
	ask_reply_free(r);
	buf_done(&out);
	return 0;
}
