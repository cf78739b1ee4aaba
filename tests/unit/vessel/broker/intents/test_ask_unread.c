/* SPDX-License-Identifier: Apache-2.0 */
/* Replies too large to be read: they pass, and each byte counts as a character. */
#include "vessel/broker/intents/ask_reply.h"
#include <criterion/criterion.h>
#include <string.h>

#define PIECE ((size_t)64 << 10)
#define LESS "{\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}"

static char piece[PIECE];

/* `begin`, letters up to `bytes` in all, `end`. */
static struct ask_reply *fed(bool is_stream, const char *begin, size_t bytes,
			     const char *end)
{
	const struct ask a = {.dialect = PORTAL_OPENAI, .stream = is_stream};
	struct ask_reply *r = ask_reply_new(&a, is_stream);
	size_t passed = 0, sent = strlen(begin);
	struct buf out;

	memset(piece, 'x', sizeof(piece));
	buf_init(&out, 2 * EVENT_MAX_BYTES);
	ask_reply_feed(r, begin, strlen(begin), &out);
	for (; sent < bytes; sent += PIECE) {
		ask_reply_feed(r, piece, PIECE, &out);
		passed += out.len;
		buf_done(&out);
		buf_init(&out, 2 * EVENT_MAX_BYTES);
	}
	ask_reply_feed(r, end, strlen(end), &out);
	ask_reply_end(r, &out);
	cr_expect_eq(passed + out.len, sent + strlen(end), "all of it passes");
	buf_done(&out);
	return r;
}

Test(ask_unread, an_event_without_an_end_is_counted)
{
	const char *begin = "data: {\"choices\":[{\"delta\":{\"content\":\"";
	struct ask_reply *r =
		fed(true, begin, 8 * EVENT_MAX_BYTES, "\"}}]}\n\ndata: " LESS "\n\n");
	struct ask_usage u = ask_reply_usage(r);

	cr_expect_not(u.is_known);
	cr_expect_geq(u.tokens.output, EVENT_MAX_BYTES);
	cr_expect_geq(ask_reply_least(r), EVENT_MAX_BYTES / 16,
		      "a cap is seen to be passed");
	ask_reply_free(r);
}

Test(ask_unread, what_came_before_it_counts_too)
{
	const char *event =
		"data: {\"choices\":[{\"delta\":{\"content\":\"four\"}}]}\n\n";
	const struct ask a = {.dialect = PORTAL_OPENAI, .stream = true};
	struct ask_reply *r = ask_reply_new(&a, true);
	uint64_t before;
	struct buf out;

	memset(piece, 'x', sizeof(piece));
	buf_init(&out, 4 * EVENT_MAX_BYTES);
	for (int i = 0; i < 64; i++)
		ask_reply_feed(r, event, strlen(event), &out);
	before = ask_reply_usage(r).tokens.output;
	for (size_t sent = 0; sent <= EVENT_MAX_BYTES; sent += PIECE)
		ask_reply_feed(r, piece, PIECE, &out);
	cr_expect_eq(before, 32u);
	cr_expect_geq(ask_reply_usage(r).tokens.output, EVENT_MAX_BYTES / 8 + before);
	ask_reply_free(r);
	buf_done(&out);
}

Test(ask_unread, a_whole_reply_that_cannot_be_kept_is_counted)
{
	const char *begin = "{\"choices\":[{\"message\":{\"content\":\"";
	struct ask_reply *r =
		fed(false, begin, ASK_REPLY_MAX_BYTES + PIECE, "\"}}]," LESS);
	struct ask_usage u = ask_reply_usage(r);

	cr_expect_not(u.is_known);
	cr_expect_geq(u.tokens.output, ASK_REPLY_MAX_BYTES / 8);
	cr_expect_geq(ask_reply_least(r), ASK_REPLY_MAX_BYTES / 128);
	ask_reply_free(r);
}
