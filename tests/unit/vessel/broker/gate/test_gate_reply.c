/* SPDX-License-Identifier: Apache-2.0 */
#include "vessel/broker/gate/reply.h"

#include "common/buf.h"
#include "common/clock.h"
#include <criterion/criterion.h>

TestSuite(gate_reply, .timeout = 30);

static struct gate_job *job;

static void begin(void)
{
	struct gate_parts *p = gate_parts_new();
	const struct gate_finding f[] = {
		{.family = GATE_EMAIL, .offset = 0, .len = 6},
		{.family = GATE_KEYWORD, .offset = 7, .len = 4},
	};

	job = gate_job_new(&clock_real);
	gate_parts_add(p, GATE_PART_TEXT, "c", "a@b.de x\"\\y", 11);
	cr_assert_eq(gate_job_anonymise(job, f, 2, p, NULL), 0);
	gate_parts_free(p);
}

static void end(void)
{
	gate_job_free(job);
}

static void expect(bool is_stream, const char *reply, const char *want)
{
	static const size_t steps[] = {100000, 1, 7};

	for (size_t k = 0; k < sizeof(steps) / sizeof(steps[0]); k++) {
		struct gate_reply *r = gate_reply_new(job, "portal:a", is_stream);
		struct buf out;

		buf_init(&out, 1 << 20);
		for (size_t i = 0, n; i < strlen(reply); i += n) {
			n = strlen(reply) - i < steps[k] ? strlen(reply) - i : steps[k];
			gate_reply_feed(r, reply + i, n, &out);
		}
		gate_reply_end(r, &out);
		cr_expect_str_eq(buf_str(&out), want, "in steps of %zu:\n%s", steps[k],
				 buf_str(&out));
		buf_done(&out);
		gate_reply_free(r);
	}
}

Test(gate_reply, a_whole_reply, .init = begin, .fini = end)
{
	expect(false,
	       "{\"choices\":[{\"message\":{\"content\":\"to <EMAIL_1>, <SECRET_1>\"}}]}",
	       "{\"choices\":[{\"message\":{\"content\":\"to a@b.de, x\\\"\\\\y\"}}]}");
}

Test(gate_reply, a_placeholder_over_several_events, .init = begin, .fini = end)
{
	expect(true,
	       "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"to "
	       "<EM\"}}]}\n\n"
	       ": a comment\n\n"
	       "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"AIL\"}}]}\n\n"
	       "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"_1> "
	       "now\"}}]}\n\n"
	       "data: [DONE]\n\n",
	       "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"to \"}}]}\n\n"
	       ": a comment\n\n"
	       "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"}}]}\n\n"
	       "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a@b.de "
	       "now\"}}]}\n\n"
	       "data: [DONE]\n\n");
}

#define SAYS(type, item, delta)                                                          \
	"event: " type "\ndata: {\"type\":\"" type "\",\"output_index\":" item           \
	",\"content_index\":0,\"delta\":\"" delta "\"}\n\n"
#define TEXT "response.output_text.delta"
#define ARGUMENTS "response.function_call_arguments.delta"
#define DONE(text)                                                                       \
	"event: response.completed\ndata: {\"type\":\"response.completed\","             \
	"\"response\":{\"output\":[{\"content\":[{\"text\":\"" text "\"}]}]}}\n\n"

Test(gate_reply, the_events_of_the_responses_api, .init = begin, .fini = end)
{
	expect(true,
	       SAYS(TEXT, "0", "to <EMA") SAYS(TEXT, "1", "IL_1>")
		       SAYS(TEXT, "0", "IL_1>") DONE("to <EMAIL_1>"),
	       SAYS(TEXT, "0", "to ") SAYS(TEXT, "1", "IL_1>") SAYS(TEXT, "0", "a@b.de")
		       DONE("to a@b.de"));
	/* which are JSON once more in the arguments of a call */
	expect(true,
	       SAYS(ARGUMENTS, "2", "{\\\"p\\\":\\\"<SEC")
		       SAYS(ARGUMENTS, "2", "RET_1>\\\"}"),
	       SAYS(ARGUMENTS, "2", "{\\\"p\\\":\\\"")
		       SAYS(ARGUMENTS, "2", "x\\\\\\\"\\\\\\\\y\\\"}"));
	/* what is still held when all is said again goes out before that */
	expect(true, SAYS(TEXT, "0", "a <EM") DONE("a <EM"),
	       SAYS(TEXT, "0", "a ") SAYS(TEXT, "0", "<EM") DONE("a <EM"));
}

Test(gate_reply, what_is_held_goes_out_before_the_end, .init = begin, .fini = end)
{
	expect(true,
	       "event: content_block_delta\n"
	       "data: {\"index\":1,\"delta\":{\"text\":\"a <EMAIL\"}}\n\n"
	       "event: content_block_stop\n"
	       "data: {\"type\":\"content_block_stop\",\"index\":1}\n\n",
	       "event: content_block_delta\n"
	       "data: {\"index\":1,\"delta\":{\"text\":\"a \"}}\n\n"
	       "event: content_block_delta\n"
	       "data: {\"index\":1,\"delta\":{\"text\":\"<EMAIL\"}}\n\n"
	       "event: content_block_stop\n"
	       "data: {\"type\":\"content_block_stop\",\"index\":1}\n\n");
}

Test(gate_reply, channels_do_not_mix, .init = begin, .fini = end)
{
	expect(true,
	       "data: {\"index\":0,\"delta\":{\"text\":\"<EMA\"}}\n\n"
	       "data: {\"index\":1,\"delta\":{\"text\":\"IL_1>\"}}\n\n"
	       "data: {\"index\":0,\"delta\":{\"text\":\"IL_1>\"}}\n\n",
	       "data: {\"index\":0,\"delta\":{\"text\":\"\"}}\n\n"
	       "data: {\"index\":1,\"delta\":{\"text\":\"IL_1>\"}}\n\n"
	       "data: {\"index\":0,\"delta\":{\"text\":\"a@b.de\"}}\n\n");
}

Test(gate_reply, a_tools_arguments_stay_json, .init = begin, .fini = end)
{
	expect(true,
	       "data: {\"index\":0,\"delta\":{\"partial_json\":\"{\\\"p\\\": "
	       "\\\"<SEC\"}}\n\n"
	       "data: {\"index\":0,\"delta\":{\"partial_json\":\"RET_1>\\\"}\"}}\n\n",
	       "data: {\"index\":0,\"delta\":{\"partial_json\":\"{\\\"p\\\": \\\"\"}}\n\n"
	       "data: "
	       "{\"index\":0,\"delta\":{\"partial_json\":\"x\\\\\\\"\\\\\\\\y\\\"}\"}}"
	       "\n\n");
}

Test(gate_reply, what_is_no_event_passes, .init = begin, .fini = end)
{
	expect(true, "nonsense <EMAIL_1>\n\ndata: {\n\ndata: 1\ndata: 2\n\nrest",
	       "nonsense <EMAIL_1>\n\ndata: {\n\ndata: 1\ndata: 2\n\nrest");
	expect(true, "", "");
}

Test(gate_reply, lines_may_end_in_any_way, .init = begin, .fini = end)
{
	static const char want[] = "event: a\ndata: {\"text\":\"a@b.de\"}\n\n"
				   "data: {\"text\":\"a@b.de!\"}\n\n";

	expect(true,
	       "event: a\rdata: {\"text\":\"<EMAIL_1>\"}\r\r"
	       "data: {\"text\":\"<EMAIL_1>!\"}\r\r",
	       want);
	expect(true,
	       "event: a\r\ndata: {\"text\":\r\ndata: \"<EMAIL_1>\"}\r\n\r\n"
	       "data: {\"text\":\"<EMAIL_1>!\"}\r\n\r\n",
	       want);
	expect(true,
	       "\xef\xbb\xbf"
	       "event: a\ndata: {\"text\":\"<EMAIL_1>\"}\n\r\n"
	       "data: {\"text\":\"<EMAIL_1>!\"}\n\r",
	       want);
}

Test(gate_reply, without_placeholders_nothing_is_touched)
{
	job = gate_job_new(&clock_real);
	expect(true, "data: { \"text\" : \"<EMAIL_1>\" }\r\n\r\n",
	       "data: { \"text\" : \"<EMAIL_1>\" }\r\n\r\n");
	expect(false, "{ \"text\" : \"<EMAIL_1>\" }", "{ \"text\" : \"<EMAIL_1>\" }");
	gate_job_free(job);
}
