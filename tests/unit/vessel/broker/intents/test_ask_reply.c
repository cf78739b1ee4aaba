/* SPDX-License-Identifier: Apache-2.0 */
/* What of a model's reply is understood: usage, its text, and what goes on. */
#include "common/str.h"
#include "vessel/broker/intents/ask.h"
#include "vessel/broker/intents/ask_cost.h"
#include "vessel/broker/intents/ask_reply.h"
#include "vessel/broker/intents/ask_text.h"
#include <criterion/criterion.h>
#include <string.h>

TestSuite(ask, .timeout = 30);

static struct buf out;

/* The reply in pieces of `piece` bytes. */
static struct ask_usage feed(enum portal_kind d, bool stream, bool wants,
			     const char *text, size_t piece)
{
	const struct ask a = {.dialect = d, .stream = stream, .wants_usage = wants};
	struct ask_reply *r = ask_reply_new(&a, stream);
	size_t len = strlen(text);
	struct ask_usage u;

	buf_done(&out);
	buf_init(&out, 1 << 20);
	for (size_t i = 0; i < len; i += piece)
		ask_reply_feed(r, text + i, len - i < piece ? len - i : piece, &out);
	ask_reply_end(r, &out);
	u = ask_reply_usage(r);
	ask_reply_free(r);
	return u;
}

#define CHUNK(text)                                                                      \
	"data: {\"choices\":[{\"delta\":{\"content\":\"" text "\"}}],\"usage\":null}"    \
	"\n\n"
#define USAGE                                                                            \
	"data: "                                                                         \
	"{\"choices\":[],\"usage\":{\"prompt_tokens\":11,\"completion_tokens\":7}}\n\n"
#define DONE "data: [DONE]\n\n"

Test(ask, the_usage_chunk_is_read_and_taken_out_unless_it_was_asked_for)
{
	static const char text[] = CHUNK("a") CHUNK("b") USAGE DONE;

	for (size_t piece = 1; piece < sizeof(text); piece += 3) {
		struct ask_usage u = feed(PORTAL_OPENAI, true, false, text, piece);

		cr_expect(u.is_known && u.tokens.input == 11 && u.tokens.output == 7);
		cr_expect_str_eq(buf_str(&out), CHUNK("a") CHUNK("b") DONE);
		buf_done(&out);
		u = feed(PORTAL_OPENAI, true, true, text, piece);
		cr_expect(u.is_known);
		cr_expect_str_eq(buf_str(&out), text);
		buf_done(&out);
	}
}

Test(ask, usage_in_a_chunk_with_choices_stays_and_a_broken_stream_is_not_known)
{
	static const char last[] =
		"data: {\"choices\":[{\"delta\":{}}],\"usage\":{"
		"\"prompt_tokens\":1,\"completion_tokens\":2}}\r\n\r\n";
	struct ask_usage u = feed(PORTAL_OPENAI, true, false, last, 5);

	cr_expect(u.is_known && u.tokens.output == 2);
	cr_expect_str_eq(buf_str(&out), last);
	u = feed(PORTAL_OPENAI, true, false, CHUNK("a") "data: {\"choi", 7);
	cr_expect_not(u.is_known);
	cr_expect_str_eq(buf_str(&out), CHUNK("a") "data: {\"choi");
}

Test(ask, a_streams_lines_may_end_in_any_way_and_its_data_be_several)
{
	static const char *const forms[] = {
		"data: {\"choices\":[],\ndata: \"usage\":{\"prompt_tokens\":11,\n"
		"data:\"completion_tokens\":7}}\n\n",
		"event: x\rdata: {\"choices\":[],\"usage\":{\"prompt_tokens\":11,"
		"\"completion_tokens\":7}}\r\r",
		"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":11,\r\n"
		"data: \"completion_tokens\":7}}\r\n\r\n",
		"\xef\xbb\xbf"
		"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":11,"
		"\"completion_tokens\":7}}\n\r\n",
		/* several in one line are none */
		"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":11,"
		"\"completion_tokens\":7}}data: x\n\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
		for (size_t piece = 1; piece <= strlen(forms[i]); piece += 4) {
			struct ask_usage u =
				feed(PORTAL_OPENAI, true, false, forms[i], piece);
			bool is_read = i + 1 < ARRAY_SIZE(forms);

			cr_expect_eq(u.is_known, is_read, "form %zu", i);
			cr_expect_str_eq(buf_str(&out), is_read ? "" : forms[i]);
			buf_done(&out);
			u = feed(PORTAL_OPENAI, true, true, forms[i], piece);
			cr_expect(!is_read ||
				  (u.tokens.input == 11 && u.tokens.output == 7));
			cr_expect_str_eq(buf_str(&out), forms[i], "no byte is lost");
			buf_done(&out);
		}
}

Test(ask, anthropics_running_totals)
{
	static const char start[] =
		"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{"
		"\"usage\":{\"input_tokens\":10,\"cache_read_input_tokens\":5,"
		"\"output_tokens\":1}}}\n\n";
	static const char delta[] =
		"event: message_delta\ndata: {\"type\":"
		"\"message_delta\",\"usage\":{\"output_tokens\":9}}\n\n";
	char whole[sizeof(start) + sizeof(delta)];
	struct ask_usage u = feed(PORTAL_ANTHROPIC, true, false, start, 9);

	cr_expect(!u.is_known && u.tokens.input == 15 && u.tokens.output == 1);
	(void)snprintf(whole, sizeof(whole), "%s%s", start, delta);
	u = feed(PORTAL_ANTHROPIC, true, false, whole, 9);
	cr_expect(u.is_known && u.tokens.input == 15 && u.tokens.output == 9);
	cr_expect_str_eq(buf_str(&out), whole);
}

Test(ask, usage_of_a_whole_reply)
{
	struct ask_usage u =
		feed(PORTAL_OPENAI, false, false,
		     "{\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4}}", 8);

	cr_expect(u.is_known && u.tokens.input == 3 && u.tokens.output == 4);
	u = feed(PORTAL_ANTHROPIC, false, false,
		 "{\"usage\":{\"input_tokens\":3,\"output_tokens\":4}}", 8);
	cr_expect(u.is_known && u.tokens.input == 3 && u.tokens.output == 4);
	u = feed(PORTAL_OPENAI, false, false, "{\"usage\":{\"prompt_tokens\":-3}}", 8);
	cr_expect_not(u.is_known);
	u = feed(PORTAL_OPENAI, false, false,
		 "{\"usage\":{\"prompt_tokens\":99999999999999999,\"completion_tokens\":"
		 "1}}",
		 8);
	cr_expect_not(u.is_known);
	u = feed(PORTAL_OPENAI, false, false, "<html>\"usage\"", 8);
	cr_expect_not(u.is_known);
}

/* Chars of a text, as events of `piece` letters each. */
static struct ask_usage streamed(size_t events, const char *piece, const char *usage,
				 uint64_t *ret_least)
{
	const struct ask a = {.dialect = PORTAL_OPENAI, .stream = true};
	struct ask_reply *r = ask_reply_new(&a, true);
	char event[4096];
	struct ask_usage u;

	buf_done(&out);
	buf_init(&out, (size_t)32 << 20);
	(void)snprintf(event, sizeof(event),
		       "data: {\"choices\":[{\"delta\":{\"content\":"
		       "\"%s\"}}]}\n\n",
		       piece);
	for (size_t i = 0; i < events; i++)
		ask_reply_feed(r, event, strlen(event), &out);
	ask_reply_feed(r, usage, strlen(usage), &out);
	ask_reply_end(r, &out);
	u = ask_reply_usage(r);
	*ret_least = ask_reply_least(r);
	ask_reply_free(r);
	return u;
}

Test(ask, a_usage_that_is_less_than_what_came_is_not_believed)
{
	uint64_t least;
	struct ask_usage u = streamed(14, "four", USAGE, &least);

	cr_expect(u.is_known && u.tokens.output == 7); /* half an event a token */
	cr_expect_eq(least, 0u);
	u = streamed(100, "four", USAGE, &least);
	cr_expect_not(u.is_known);
	cr_expect_eq(u.tokens.output, 50u);
	cr_expect_eq(least, 6u);
	u = streamed(10, "a much longer piece, with an \\u00e9 and a \\\" in it", USAGE,
		     &least);
	cr_expect_not(u.is_known);
	cr_expect_geq(u.tokens.output, 50u);
	u = feed(PORTAL_OPENAI, false, false,
		 "{\"choices\":[{\"message\":{\"content\":\"a text of more than three "
		 "tokens, which its provider denies\"}}],\"usage\":{\"prompt_tokens\":3,"
		 "\"completion_tokens\":1}}",
		 8);
	cr_expect_not(u.is_known);
	cr_expect_geq(u.tokens.output, 6u);
	buf_done(&out);
}

Test(ask, text_is_counted_where_a_model_has_it)
{
	static const struct {
		const char *json;
		size_t want;
	} rows[] = {
		{"", 0},
		{"\"", 0},
		{"{\"content\":\"", 0},
		{"{\"content\":\"abc", 3},
		{"{\"content\":\"abc\"}", 3},
		{"{\"content\" : \"a\\\"b\\\\\"}", 4},
		{"{\"id\":\"abc\",\"text\":\"de\",\"type\":\"text\"}", 2},
		{"{\"content\":[{\"type\":\"text\",\"text\":\"de\"}]}", 2},
		{"{\"delta\":{\"partial_json\":\"{\\\"a\\\":1\"}}", 6},
		{"{\"function\":{\"arguments\":\"{}\"},\"reasoning_content\":\"x\"}", 3},
		{"{\"content\":[\"ab\",\"c\"],\"x\":\"y\"}", 3},
		{"{\"content\":null,\"x\":\"y\"}", 0},
		{"{\"logprobs\":{\"content\":[{\"token\":\"ab\"}]}}", 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		cr_expect_eq(ask_text_chars(rows[i].json, strlen(rows[i].json)),
			     rows[i].want, "%s: %zu", rows[i].json,
			     ask_text_chars(rows[i].json, strlen(rows[i].json)));
}

Test(ask, parts_of_the_input_are_told_apart)
{
	struct ask_usage u =
		feed(PORTAL_OPENAI, false, false,
		     "{\"usage\":{\"prompt_tokens\":30,\"completion_tokens\":4,"
		     "\"prompt_tokens_details\":{\"cached_tokens\":20}}}",
		     8);

	cr_expect(u.is_known && u.tokens.input == 30 && u.tokens.cache_read == 20);
	u = feed(PORTAL_ANTHROPIC, false, false,
		 "{\"usage\":{\"input_tokens\":3,\"cache_creation_input_tokens\":40,"
		 "\"cache_read_input_tokens\":500,\"output_tokens\":4}}",
		 8);
	cr_expect(u.is_known && u.tokens.input == 543 && u.tokens.cache_write == 40 &&
		  u.tokens.cache_read == 500);
}

Test(ask, an_event_that_does_not_end_passes_unread)
{
	const struct ask a = {.dialect = PORTAL_OPENAI, .stream = true};
	struct ask_reply *r = ask_reply_new(&a, true);
	size_t sent = 0;
	char piece[4096];

	memset(piece, 'x', sizeof(piece));
	buf_init(&out, (size_t)4 << 20);
	while (sent < ASK_EVENT_MAX_BYTES + 2 * sizeof(piece)) {
		ask_reply_feed(r, piece, sizeof(piece), &out);
		sent += sizeof(piece);
	}
	ask_reply_feed(r, "\n\n" USAGE, 2 + strlen(USAGE), &out);
	ask_reply_end(r, &out);
	cr_expect_eq(out.len, sent + 2 + strlen(USAGE));
	cr_expect_not(ask_reply_usage(r).is_known);
	ask_reply_free(r);
	buf_done(&out);
}
