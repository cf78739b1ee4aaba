/* SPDX-License-Identifier: Apache-2.0 */
/* A credential that a provider spells out in pieces, so that its bytes never stand side by
 * side: what a reader puts together from the reply does not hold it. */
#include "tests/unit/vessel/egress/redact_reply_run.h"
#include "vessel/egress/redact_reply.h"

Test(redact_reply, a_key_over_two_events_at_every_place, .init = begin, .fini = end)
{
	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++)
		for (size_t cut = 1; cut < strlen("it is " KEY "."); cut++)
			expect_blotted(&shapes[i], "it is " KEY ".", cut, 0,
				       "it is [redacted].");
}

Test(redact_reply, a_key_over_three_events_at_every_place, .init = begin, .fini = end)
{
	for (size_t cut = 1; cut < strlen(KEY); cut++)
		for (size_t second = cut + 1; second <= strlen(KEY); second++)
			expect_blotted(&shapes[0], KEY " it is", cut, second,
				       "[redacted] it is");
}

Test(redact_reply, a_letter_an_event, .init = begin, .fini = end)
{
	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
		expect_blotted(&shapes[i], "ask: " KEY "sk-", 0, 0, "ask: [redacted]sk-");
		/* the end of the stream is in the middle of it */
		expect_blotted(&shapes[i], "sk-proj-Zq7/R+xV2", 0, 0, "[redacted]");
	}
}

static void add_base64(struct buf *b, size_t before, bool url)
{
	cleanup_buf struct buf plain;

	buf_init(&plain, 4096);
	buf_add(&plain, "\1\2", before);
	buf_adds(&plain, KEY);
	base64_add(b, plain.data, plain.len);
	for (size_t i = 0; url && i < b->len; i++)
		b->data[i] = b->data[i] == '+'	 ? '-'
			     : b->data[i] == '/' ? '_'
						 : b->data[i];
}

Test(redact_reply, in_base64_and_escaped_over_events, .init = begin, .fini = end)
{
	cleanup_buf struct buf text, reply, out, told;

	buf_init(&text, 4096);
	buf_init(&reply, BIG);
	buf_init(&out, BIG);
	buf_init(&told, BIG);
	for (size_t form = 0; form < 8; form++) {
		buf_reset(&text);
		if (form < 6)
			add_base64(&text, form % 3, form >= 3);
		for (const char *k = KEY; form >= 6 && *k; k++)
			buf_addf(&text, form == 6 ? "\\u%04x" : "%%%02X", (unsigned)*k);
		for (size_t i = 0; i < ARRAY_SIZE(shapes); i++)
			for (size_t cut = 0; cut < text.len; cut++) {
				speak(&reply, &shapes[i], text.data, cut, 0);
				cr_assert_eq(run(reply.data, true, 4096, &out, NULL), 0);
				join(buf_str(&out), shapes[i].key, "0", &told);
				cr_assert(strstr(told.data, REDACT_MARK),
					  "form %zu cut %zu: %s", form, cut, told.data);
				cr_assert(strlen(told.data) < 20, "form %zu cut %zu: %s",
					  form, cut, told.data);
			}
	}
}

/* As the wire's JSON has it: "s" is "s". */
Test(redact_reply, letters_that_are_escapes_of_the_event, .init = begin, .fini = end)
{
	cleanup_buf struct buf reply, out, told;

	buf_init(&reply, BIG);
	buf_init(&out, BIG);
	buf_init(&told, BIG);
	for (const char *k = KEY; *k; k++)
		buf_addf(&reply, "%s\"\\u%04x\"%s", shapes[0].before, (unsigned)*k,
			 shapes[0].after);
	cr_assert_eq(run(reply.data, true, 100, &out, NULL), 0);
	join(buf_str(&out), "content", "0", &told);
	cr_expect_str_eq(told.data, REDACT_MARK);
}

Test(redact_reply, choices_between_each_other, .init = begin, .fini = end)
{
	static const struct shape other = {OPENAI("1", "\"content\":"), "}}]}\n\n", "",
					   "content"};
	static const char words[] = "so it goes as so often sk";
	cleanup_buf struct buf reply, out, told;

	buf_init(&reply, BIG);
	buf_init(&out, BIG);
	buf_init(&told, BIG);
	for (size_t i = 0; i < strlen(KEY); i++) {
		add_event(&reply, &shapes[0], KEY + i, 1);
		if (i < strlen(words))
			add_event(&reply, &other, words + i, 1);
	}
	cr_assert_eq(run(reply.data, true, 64, &out, NULL), 0);
	join(buf_str(&out), "content", "0", &told);
	cr_expect_str_eq(told.data, REDACT_MARK);
	join(buf_str(&out), "content", "1", &told);
	cr_expect_str_eq(told.data, words);
}

Test(redact_reply, two_choices_in_one_event, .init = begin, .fini = end)
{
	expect("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a sk-proj-\"}},"
	       "{\"index\":1,\"delta\":{\"content\":\"b Zq7/\"}}]}\n\n"
	       "data: "
	       "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Zq7/R+xV2m9\"}},"
	       "{\"index\":1,\"delta\":{\"content\":\"R+xV\"}}]}\n\n"
	       "data: "
	       "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"LbT0c_Hs!\"}}]}\n\n",
	       true,
	       "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a \"}},"
	       "{\"index\":1,\"delta\":{\"content\":\"b Zq7/\"}}]}\n\n"
	       "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"}},"
	       "{\"index\":1,\"delta\":{\"content\":\"R+xV\"}}]}\n\n"
	       "data: "
	       "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"[redacted]!\"}}]}"
	       "\n\n");
}

Test(redact_reply, ordinary_events_are_not_delayed, .init = begin, .fini = end)
{
	struct redact_reply *r = redact_reply_new(key, true);
	static const char event[] = "data: {\"choices\":[{\"index\":0,\"delta\":"
				    "{\"content\":\"Hello\"}}]}\n\n";
	cleanup_buf struct buf out;

	buf_init(&out, BIG);
	for (unsigned i = 1; i < 4; i++) {
		cr_assert_eq(redact_reply_feed(r, event, sizeof(event) - 1, &out, NULL),
			     0);
		cr_expect_eq(out.len, i * (sizeof(event) - 1));
	}
	redact_reply_free(r);
}

/* What is held comes before the event that says it is over, in a small event of its own,
 * that repeats nothing which a reader adds up. */
Test(redact_reply, what_is_held_goes_out_before_the_end, .init = begin, .fini = end)
{
	expect("data: "
	       "{\"id\":\"c1\",\"usage\":{\"n\":1},\"choices\":[{\"index\":0,\"delta\":"
	       "{\"role\":\"assistant\",\"content\":\"yes\"},\"finish_reason\":null,"
	       "\"logprobs\":{\"content\":[]}}]}\n\n"
	       "data: "
	       "{\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
	       "data: [DONE]\n\n",
	       true,
	       "data: "
	       "{\"id\":\"c1\",\"usage\":{\"n\":1},\"choices\":[{\"index\":0,\"delta\":"
	       "{\"role\":\"assistant\",\"content\":\"ye\"},\"finish_reason\":null,"
	       "\"logprobs\":{\"content\":[]}}]}\n\n"
	       "data: "
	       "{\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"s\"},"
	       "\"finish_reason\":null}]}\n\n"
	       "data: "
	       "{\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
	       "data: [DONE]\n\n");
	/* with its end in the same event nothing need wait */
	expect("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"yes\"},"
	       "\"finish_reason\":\"stop\"}]}\n\n",
	       true,
	       "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"yes\"},"
	       "\"finish_reason\":\"stop\"}]}\n\n");
}

Test(redact_reply, a_block_of_anthropic_ends_whole, .init = begin, .fini = end)
{
	expect("event: content_block_start\ndata: "
	       "{\"type\":\"content_block_start\",\"index\":0,"
	       "\"content_block\":{\"type\":\"text\",\"text\":\"this\"}}\n\n"
	       "event: content_block_delta\ndata: "
	       "{\"type\":\"content_block_delta\",\"index\":0,"
	       "\"delta\":{\"type\":\"text_delta\",\"text\":\" is\"}}\n\n"
	       "event: ping\ndata: {\"type\":\"ping\"}\n\n" STOP,
	       true,
	       "event: content_block_start\ndata: "
	       "{\"type\":\"content_block_start\",\"index\":0,"
	       "\"content_block\":{\"type\":\"text\",\"text\":\"this\"}}\n\n"
	       "event: content_block_delta\ndata: "
	       "{\"type\":\"content_block_delta\",\"index\":0,"
	       "\"delta\":{\"type\":\"text_delta\",\"text\":\" i\"}}\n\n"
	       "event: ping\ndata: {\"type\":\"ping\"}\n\n"
	       "event: content_block_delta\ndata: "
	       "{\"type\":\"content_block_delta\",\"index\":0,"
	       "\"delta\":{\"type\":\"text_delta\",\"text\":\"s\"}}\n\n" STOP);
}

#define G_TEXT(part)                                                                     \
	"data: {\"candidates\":[{\"content\":{\"parts\":[{" part "}]},\"index\":0}"
#define G_USAGE "],\"usageMetadata\":{\"promptTokenCount\":1}}\n\n"

/* Gemini has no deltas: the text of a part goes on in the next event, what was thought apart
 * from it; an object of arguments comes whole, and a signature once. */
Test(redact_reply, a_part_of_gemini_goes_on, .init = begin, .fini = end)
{
	expect(G_TEXT("\"text\":\"yes\",\"thought\":true")
		       G_USAGE G_TEXT("\"text\":\" is\",\"thoughtSignature\":\"AA==\"")
			       G_USAGE G_TEXT("\"text\":\"k-proj-Zq7/R+xV2m9LbT0c_Hs.\"")
				       G_USAGE
	       "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"yes\"}]},"
	       "\"finishReason\":\"STOP\"}]}\n\n",
	       true,
	       G_TEXT("\"text\":\"ye\",\"thought\":true")
		       G_USAGE G_TEXT("\"text\":\"s\",\"thought\":true") "]}\n\n" G_TEXT(
			       "\"text\":\" i\",\"thoughtSignature\":\"AA==\"")
			       G_USAGE G_TEXT("\"text\":\"[redacted].\"") G_USAGE
	       "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"yes\"}]},"
	       "\"finishReason\":\"STOP\"}]}\n\n");
	/* what a function is called with is no text that goes on */
	expect(G_TEXT("\"functionCall\":{\"name\":\"f\",\"args\":{\"text\":\"yes\","
		      "\"content\":[\"is\"],\"finishReason\":\"x\",\"k\":\"" KEY "\"}}")
		       G_USAGE,
	       true,
	       G_TEXT("\"functionCall\":{\"name\":\"f\",\"args\":{\"text\":\"yes\","
		      "\"content\":[\"is\"],\"finishReason\":\"x\",\"k\":"
		      "\"[redacted]\"}}") G_USAGE);
}

/* A reader takes the second call's first piece for the end of the first call. */
Test(redact_reply, one_tool_after_the_other, .init = begin, .fini = end)
{
#define CALL(i, more, text)                                                              \
	"data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":" i more \
	",\"function\":{\"arguments\":\"" text "\"}}]}}]}\n\n"
	expect(CALL("0", ",\"id\":\"a\",\"type\":\"function\"", "{\\\"x\\\":\\\"us")
		       CALL("1", ",\"id\":\"b\"", "{}"),
	       true,
	       CALL("0", ",\"id\":\"a\",\"type\":\"function\"", "{\\\"x\\\":\\\"u")
		       CALL("0", ",\"type\":\"function\"", "s")
			       CALL("1", ",\"id\":\"b\"", "{}"));
}

/* An end in the middle of the key lets a beginning go; what follows is still seen. */
Test(redact_reply, an_end_that_is_none, .init = begin, .fini = end)
{
	static const char *const ends[] = {
		"data: "
		"{\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}"
		"\n\n",
		"data: [DONE]\n\n", "data: {}\n\n",
		"data: {\"choices\":[{\"index\":0,\"delta\":{\"refusal\":\"x\"}}]}\n\n"};
	cleanup_buf struct buf reply, out, told;

	buf_init(&reply, BIG);
	buf_init(&out, BIG);
	buf_init(&told, BIG);
	for (size_t e = 0; e < ARRAY_SIZE(ends); e++)
		for (size_t every = 1; every < 20; every++) {
			buf_reset(&reply);
			for (size_t i = 0; i < strlen(KEY); i++) {
				add_event(&reply, &shapes[0], KEY + i, 1);
				if (i % every == 0)
					buf_adds(&reply, ends[e]);
			}
			cr_assert_eq(run(reply.data, true, 64, &out, NULL), 0);
			join(buf_str(&out), "content", "0", &told);
			cr_expect(beginning_in(told.data) <= BEGINNING_MAX, "%s",
				  told.data);
			cr_expect(strstr(told.data, REDACT_MARK), "%s", told.data);
			cr_expect(strlen(told.data) <=
					  BEGINNING_MAX + strlen(REDACT_MARK),
				  "%s", told.data);
		}
}

/* Fields that nobody knows cannot wait, but are read on. */
Test(redact_reply, a_field_that_is_not_known, .init = begin, .fini = end)
{
	static const char *const fields[] = {
		"data: {\"id\":%s,\"choices\":[]}\n\n",
		"data: {\"choices\":[{\"index\":0,\"delta\":{\"new\":%s}}]}\n\n",
		"data: "
		"{\"choices\":[{\"index\":0,\"logprobs\":{\"content\":[{\"token\":%s}]}}]"
		"}\n\n",
		"data: {\"list\":[%s]}\n\n",
	};
	static const char *const names[] = {"id", "new", "token", "list"};
	cleanup_buf struct buf reply, out, told;

	buf_init(&reply, BIG);
	buf_init(&out, BIG);
	buf_init(&told, BIG);
	for (size_t f = 0; f < ARRAY_SIZE(fields); f++)
		for (size_t piece = 1; piece < strlen(KEY); piece++) {
			buf_reset(&reply);
			for (size_t i = 0; i < strlen(KEY); i += piece) {
				char text[64];

				(void)snprintf(text, sizeof(text), "\"%.*s\"", (int)piece,
					       KEY + i);
				for (const char *p = fields[f]; *p; p++)
					if (*p == '%' && p[1] == 's' && p++)
						buf_adds(&reply, text);
					else
						buf_addc(&reply, *p);
			}
			cr_assert_eq(run(reply.data, true, 64, &out, NULL), 0);
			buf_reset(&told);
			for (const char *at = out.data; (at = strstr(at, names[f]));) {
				at = strchr(at, ':') + 1;
				at += *at == '[';
				at += *at == '"';
				buf_add(&told, at, strcspn(at, "\""));
			}
			cr_expect(told.len <= BEGINNING_MAX + strlen(REDACT_MARK),
				  "%s: %s", names[f], buf_str(&told));
			cr_expect(beginning_in(buf_str(&told)) <= BEGINNING_MAX);
		}
}

/* A response says the tools of its request again: more names than there are channels. */
Test(redact_reply, a_response_with_any_number_of_tools, .init = begin, .fini = end)
{
	cleanup_buf struct buf reply, out;
	unsigned hits = 0;

	buf_init(&reply, BIG);
	buf_init(&out, BIG);
	for (int event = 0; event < 2; event++) {
		buf_adds(&reply, "event: response.created\ndata: {\"type\":"
				 "\"response.created\",\"response\":{\"id\":\"resp_1\","
				 "\"tools\":[");
		for (int i = 0; i < 2 * STREAM_TEXT_CHANNELS_MAX; i++)
			buf_addf(&reply, "{\"parameters\":{\"p%d\":{\"type\":\"x\"}}},",
				 i);
		buf_adds(&reply, "{\"description\":\"it is " KEY ".\"}]}}\n\n");
	}
	cr_assert_eq(run(buf_str(&reply), true, 1 << 20, &out, &hits), 0);
	cr_expect_eq(hits, 2u);
	cr_expect_null(strstr(buf_str(&out), KEY));
	buf_reset(&reply);
	buf_addf(&reply,
		 "{\"parameters\":{\"p%d\":{\"type\":\"x\"}}},"
		 "{\"description\":\"it is " REDACT_MARK ".\"}",
		 2 * STREAM_TEXT_CHANNELS_MAX - 1);
	cr_expect(strstr(buf_str(&out), buf_str(&reply)));
}
