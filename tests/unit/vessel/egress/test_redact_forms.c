/* SPDX-License-Identifier: Apache-2.0 */
/* Forms of a reply that spells a credential out: what is no stream, lines, whole messages. */
#include "tests/unit/vessel/egress/redact_reply_run.h"
#include "vessel/egress/redact_reply.h"

Test(redact_reply, a_stream_that_is_none_is_refused, .init = begin, .fini = end)
{
	static const char *const bad[] = {
		"data: sk-pr\n\n",	  "data: {\n\n",
		"data: [1]\n\n",	  "data: {}{}\n\n",
		"data: {}\rdata: {}\n\n", "data: {\"a\":1,\"a\":2}\n\n",
		"data: \"x\"\n\n",	  "data: {\"half\":",
	};
	cleanup_buf struct buf out;

	buf_init(&out, BIG);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		for (size_t k = 0; k < ARRAY_SIZE(steps); k++)
			cr_expect_eq(run(bad[i], true, steps[k], &out, NULL), -1, "%s",
				     bad[i]);
}

Test(redact_reply, what_is_too_much_is_refused, .init = begin, .fini = end)
{
	cleanup_buf struct buf reply, out;

	buf_init(&reply, BIG);
	buf_init(&out, BIG);
	buf_adds(&reply, "data: {\"x\":\"");
	for (size_t i = 0; i < STREAM_TEXT_EVENT_MAX_BYTES; i++)
		buf_addc(&reply, 'a');
	buf_adds(&reply, "\"}\n\n");
	cr_expect_eq(run(reply.data, true, 65536, &out, NULL), -1);
	cr_expect_eq(out.len, 0u);
	buf_reset(&reply);
	for (unsigned i = 0; i <= STREAM_TEXT_CHANNELS_MAX; i++)
		buf_addf(&reply, "data: {\"x%u\":\"a\"}\n\n", i);
	cr_expect_eq(run(reply.data, true, 65536, &out, NULL), -1);
}

/* Each is up to six texts with places of their own; in the last one the key comes in two pieces. */
Test(redact_reply, hundreds_of_tool_calls_go_by, .init = begin, .fini = end)
{
	cleanup_buf struct buf anthropic, openai, out;
	const char *half = KEY + strlen(KEY) / 2;
	unsigned hits = 0;

	buf_init(&anthropic, BIG);
	buf_init(&openai, BIG);
	buf_init(&out, BIG);
	for (int i = 0; i < 300; i++) {
		buf_addf(&anthropic,
			 "data: {\"type\":\"content_block_start\",\"index\":%d,"
			 "\"content_block\":{\"type\":\"tool_use\",\"id\":\"toolu_%d\","
			 "\"name\":\"f\",\"input\":{}}}\n\n",
			 i, i);
		buf_addf(&openai,
			 "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{"
			 "\"index\":%d,\"id\":\"call_%d\",\"type\":\"function\","
			 "\"function\":{\"name\":\"f\",\"arguments\":\"\"}}]}}]}\n\n",
			 i, i);
		for (int k = 0; k < 2; k++) {
			int n = k ? (int)strlen(half) : (int)(half - KEY);
			const char *piece = k ? half : KEY;

			if (i < 299)
				n = 1;
			buf_addf(&anthropic,
				 "data: {\"type\":\"content_block_delta\",\"index\":%d,"
				 "\"delta\":{\"type\":\"input_json_delta\","
				 "\"partial_json\":\"%.*s\"}}\n\n",
				 i, n, piece);
			buf_addf(&openai,
				 "data: {\"choices\":[{\"index\":0,\"delta\":{"
				 "\"tool_calls\":[{\"index\":%d,\"function\":{"
				 "\"arguments\":\"%.*s\"}}]}}]}\n\n",
				 i, n, piece);
		}
		buf_addf(&anthropic,
			 "data: {\"type\":\"content_block_stop\",\"index\":%d}\n\n", i);
	}
	cr_assert_eq(run(anthropic.data, true, 777, &out, &hits), 0);
	cr_expect_eq(hits, 1u);
	cr_expect(strstr(buf_str(&out), REDACT_MARK));
	buf_reset(&out);
	cr_assert_eq(run(openai.data, true, 777, &out, &hits), 0);
	cr_expect(strstr(buf_str(&out), REDACT_MARK));
	cr_expect(strstr(buf_str(&out), "call_299"));
}

Test(redact_reply, lines_that_are_no_data_say_nothing, .init = begin, .fini = end)
{
	expect(": sk-proj-\n\nid: Zq7\nretry: 7\nevent: a b\nevent: ok_1\nodd\n"
	       "data: {}\n\n:\r\n\r\ndata:{}\r\n\r\ndata\n\ndata: "
	       "[DONE]",
	       true,
	       ":\n\nevent: ok_1\ndata: {}\n\n:\n\ndata: {}\n\ndata: \n\n"
	       "data: [DONE]\n\n");
}

Test(redact_reply, several_lines_of_data_are_one, .init = begin, .fini = end)
{
	expect("data: {\"a\":\ndata: 1}\n\n", true, "data: {\"a\":1}\n\n");
}

Test(redact_reply, lines_may_end_in_any_way, .init = begin, .fini = end)
{
	static const char *const ends[] = {"\n", "\r", "\r\n"};
	cleanup_buf struct buf reply, out;
	unsigned hits = 0;

	buf_init(&reply, BIG);
	buf_init(&out, BIG);
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		for (size_t k = 0; k < ARRAY_SIZE(steps); k++) {
			const char *e = ends[i];

			buf_reset(&reply);
			buf_addf(&reply,
				 "event: d%sdata: {\"delta\":{\"text\":\"it is "
				 "sk-proj-\"}}%s%s",
				 e, e, e);
			buf_addf(&reply,
				 "data: {\"delta\":%sdata: {\"text\":\"Zq7/R+xV2m9"
				 "LbT0c_Hs!\"}}%s%s",
				 e, e, e);
			cr_expect_eq(run(buf_str(&reply), true, steps[k], &out, &hits),
				     0);
			cr_expect_eq(hits, 1u, "line end %zu", i);
			cr_expect_null(strchr(buf_str(&out), '\r'));
			cr_expect_not_null(strstr(buf_str(&out), "event: d\ndata: {"));
			cr_expect_null(strstr(buf_str(&out), "Zq7"));
		}
}

/* ---- a whole reply ---- */

Test(redact_reply, parts_of_a_message, .init = begin, .fini = end)
{
	expect("{\"content\":[{\"type\":\"text\",\"text\":\"it is sk-proj-\"},"
	       "{\"type\":\"text\",\"text\":\"Zq7/R+xV2m9\"},{\"type\":\"text\",\"text\":"
	       "\"LbT0c_Hs!\"}],\"id\":\"m\"}",
	       false,
	       "{\"content\":[{\"type\":\"text\",\"text\":\"it is sk-proj-\"},"
	       "{\"type\":\"text\",\"text\":\"[redacted]\"},{\"type\":\"text\",\"text\":"
	       "\"!\"}],\"id\":\"m\"}");
	expect("[\"sk-proj-Zq7\", {\"b\" : [\"x\"], \"c\":\"\\\"\"}, "
	       "\"/R+xV2m9LbT0c_Hs\"]",
	       false,
	       "[\"sk-proj-Zq7\", {\"b\" : [\"x\"], \"c\":\"\\\"\"}, \"[redacted]\"]");
}

Test(redact_reply, a_whole_reply_cut_everywhere, .init = begin, .fini = end)
{
	cleanup_buf struct buf reply, out;

	buf_init(&reply, BIG);
	buf_init(&out, BIG);
	for (size_t cut = 1; cut < strlen(KEY); cut++) {
		buf_reset(&reply);
		buf_addf(&reply, "{\"a\":{\"text\":\"%.*s\"},\"b\":{\"text\":\"%s\"}}",
			 (int)cut, KEY, KEY + cut);
		for (size_t k = 0; k < ARRAY_SIZE(steps); k++) {
			cr_assert_eq(run(reply.data, false, steps[k], &out, NULL), 0);
			cr_expect(beginning_in(out.data) <= BEGINNING_MAX, "%s",
				  out.data);
			cr_expect(!strstr(out.data, KEY + cut), "%s", out.data);
		}
	}
}

/* An SDK that asked for a stream reads one whatever the reply says that it is. */
Test(redact_reply, a_stream_under_another_name, .init = begin, .fini = end)
{
	cleanup_buf struct buf reply, out, told;

	buf_init(&reply, BIG);
	buf_init(&out, BIG);
	buf_init(&told, BIG);
	speak(&reply, &shapes[0], KEY, 0, 0);
	cr_assert_eq(run(reply.data, false, 50, &out, NULL), 0);
	join(buf_str(&out), "content", "0", &told);
	cr_expect(beginning_in(told.data) <= BEGINNING_MAX, "%s", told.data);
}

Test(redact_reply, what_is_no_json_passes, .init = begin, .fini = end)
{
	expect("an \"open\nquote\" [[}}]] \"\\", false, "an \"open\nquote\" [[}}]] \"\\");
	expect("", false, "");
	expect("", true, "");
}

Test(redact_reply, deep_and_of_many_keys, .init = begin, .fini = end)
{
	cleanup_buf struct buf reply, out;

	buf_init(&reply, BIG);
	buf_init(&out, BIG);
	for (unsigned i = 0; i < 1000; i++)
		buf_addf(&reply, "{\"k%u\":[\"v\",", i);
	for (unsigned i = 0; i < 1000; i++)
		buf_adds(&reply, "\"\"]}");
	cr_assert_eq(run(reply.data, false, 64, &out, NULL), 0);
	cr_expect_str_eq(out.data, reply.data);
}

Test(redact_reply, without_a_credential_all_goes_through)
{
	key = NULL;
	expect("data: " KEY "\n", true, "data: " KEY "\n");
	expect("{\"a\":\"" KEY "\"}", false, "{\"a\":\"" KEY "\"}");
}
