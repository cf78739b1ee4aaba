/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the Responses API, for embeddings and for a count of tokens: what of them
 * passes, what is written, what they may cost, and what their replies say of it. */
#include "common/jsonw.h"
#include "common/str.h"
#include "vessel/broker/intents/ask.h"
#include "vessel/broker/intents/ask_cost.h"
#include "vessel/broker/intents/ask_reply.h"
#include <criterion/criterion.h>
#include <string.h>

TestSuite(ask_apis, .timeout = 30);

static struct json *kept; /* strings of an ask live in it */
static struct ask last;
static struct ask_cost cost;
static struct err why;

static enum err_id read_as(enum portal_api api, const char *text)
{
	bool stream = strstr(text, "\"stream\":true") != NULL;

	json_free(kept);
	kept = NULL;
	why = (struct err)ERR_INIT;
	cr_assert(json_parse(text, strlen(text), 28, &kept, &why) == 0, "%s: %s", text,
		  why.msg);
	return ask_read(kept, api, stream, &last, &why) == 0 &&
			       ask_cost_read(kept, api, &cost, &why) == 0
		       ? ERRID_NONE
		       : why.id;
}

#define R(more) "{\"model\":\"m\",\"input\":\"hi\"" more "}"
#define INPUT(items) "{\"model\":\"m\",\"input\":[" items "]}"
#define PART(part) INPUT("{\"role\":\"user\",\"content\":[" part "]}")
#define TOOL(tool) R(",\"tools\":[" tool "]")
#define FAR "https://x.example/"

struct row {
	enum portal_api api;
	const char *text;
	enum err_id want;
	const char *says; /* of the detail */
};

/* ---- refusals ---- */

static const struct row refusals[] = {
	{API_RESPONSES, "{\"model\":\"m\"}", ERRID_BROKER_REQUEST, "input"},
	{API_RESPONSES, "{\"model\":\"m\",\"input\":[]}", ERRID_BROKER_REQUEST, "input"},
	{API_RESPONSES, "{\"input\":\"hi\"}", ERRID_BROKER_REQUEST, "model"},
	{API_RESPONSES, R(",\"messages\":[]"), ERRID_BROKER_REQUEST, "messages"},
	{API_RESPONSES, R(",\"max_tokens\":9"), ERRID_BROKER_REQUEST, "max_tokens"},
	{API_RESPONSES, R(",\"max_output_tokens\":0"), ERRID_BROKER_REQUEST, "1 to"},
	{API_RESPONSES, R(",\"include\":\"x\""), ERRID_BROKER_REQUEST, "include"},
	{API_RESPONSES, R(",\"stream\":true,\"stream_options\":{\"include_usage\":true}"),
	 ERRID_BROKER_REQUEST, "include_obfuscation"},
	/* what would be kept at the provider, or read from there */
	{API_RESPONSES, R(",\"store\":true"), ERRID_BROKER_FEATURE, "store (nothing"},
	{API_RESPONSES, R(",\"store\":\"false\""), ERRID_BROKER_FEATURE, "store"},
	{API_RESPONSES, R(",\"background\":true"), ERRID_BROKER_FEATURE, "background"},
	{API_RESPONSES, R(",\"previous_response_id\":\"resp_1\""), ERRID_BROKER_FEATURE,
	 "send the conversation as input"},
	{API_RESPONSES, R(",\"conversation\":\"conv_1\""), ERRID_BROKER_FEATURE,
	 "conversation"},
	{API_RESPONSES, R(",\"prompt\":{\"id\":\"pmpt_1\"}"), ERRID_BROKER_FEATURE,
	 "prompt"},
	{API_RESPONSES, R(",\"moderation\":{\"model\":\"x\"}"), ERRID_BROKER_FEATURE,
	 "moderation"},
	{API_RESPONSES, INPUT("{\"type\":\"item_reference\",\"id\":\"rs_1\"}"),
	 ERRID_BROKER_FEATURE, "stored at the provider"},
	{API_RESPONSES, INPUT("{\"id\":\"rs_1\"}"), ERRID_BROKER_FEATURE,
	 "stored at the provider"},
	{API_RESPONSES,
	 PART("{\"type\":\"input_image\",\"detail\":\"low\",\"file_id\":\"file-1\"}"),
	 ERRID_BROKER_FEATURE, "file_id"},
	{API_RESPONSES, PART("{\"type\":\"input_file\",\"file_id\":\"file-1\"}"),
	 ERRID_BROKER_FEATURE, "file_id"},
	/* what it would fetch */
	{API_RESPONSES, PART("{\"type\":\"input_image\",\"image_url\":\"" FAR "\"}"),
	 ERRID_BROKER_FEATURE, "image_url"},
	{API_RESPONSES, PART("{\"type\":\"input_file\",\"file_url\":\"" FAR "\"}"),
	 ERRID_BROKER_FEATURE, "file_url"},
	{API_RESPONSES,
	 INPUT("{\"type\":\"function_call_output\",\"call_id\":\"c\",\"output\":[{"
	       "\"type\":"
	       "\"input_image\",\"image_url\":\"" FAR "\"}]}"),
	 ERRID_BROKER_FEATURE, "image_url"},
	/* what it would carry out, and what that leaves behind */
	{API_RESPONSES, TOOL("{\"type\":\"web_search\"}"), ERRID_BROKER_FEATURE,
	 "'web_search'"},
	{API_RESPONSES, TOOL("{\"type\":\"web_search_preview_2025_03_11\"}"),
	 ERRID_BROKER_FEATURE, "web_search_preview"},
	{API_RESPONSES, TOOL("{\"type\":\"file_search\",\"vector_store_ids\":[\"v\"]}"),
	 ERRID_BROKER_FEATURE, "file_search"},
	{API_RESPONSES, TOOL("{\"type\":\"computer_use_preview\"}"), ERRID_BROKER_FEATURE,
	 "computer_use_preview"},
	{API_RESPONSES, TOOL("{\"type\":\"code_interpreter\",\"container\":\"c\"}"),
	 ERRID_BROKER_FEATURE, "code_interpreter"},
	{API_RESPONSES, TOOL("{\"type\":\"image_generation\"}"), ERRID_BROKER_FEATURE,
	 "image_generation"},
	{API_RESPONSES, TOOL("{\"type\":\"mcp\",\"server_url\":\"" FAR "\"}"),
	 ERRID_BROKER_FEATURE, "mcp"},
	{API_RESPONSES, TOOL("{\"type\":\"shell\"}"), ERRID_BROKER_FEATURE, "shell"},
	{API_RESPONSES, TOOL("{\"Type\":\"function\"}"), ERRID_BROKER_FEATURE, ""},
	{API_RESPONSES, TOOL("7"), ERRID_BROKER_REQUEST, "no object"},
	{API_RESPONSES,
	 TOOL("{\"type\":\"namespace\",\"name\":\"n\",\"tools\":[{\"type\":\"mcp\"}]}"),
	 ERRID_BROKER_FEATURE, "mcp"},
	{API_RESPONSES,
	 TOOL("{\"type\":\"namespace\",\"name\":\"n\",\"tools\":[{\"type\":"
	      "\"namespace\",\"tools\":[]}]}"),
	 ERRID_BROKER_FEATURE, "namespace"},
	{API_RESPONSES, R(",\"tool_choice\":{\"type\":\"web_search_preview\"}"),
	 ERRID_BROKER_FEATURE, "tool_choice"},
	{API_RESPONSES, INPUT("{\"type\":\"web_search_call\",\"id\":\"ws_1\"}"),
	 ERRID_BROKER_FEATURE, "web_search_call"},
	{API_RESPONSES, INPUT("{\"type\":\"mcp_call\",\"id\":\"m\"}"),
	 ERRID_BROKER_FEATURE, "mcp_call"},
	/* values that are not of their kind */
	{API_RESPONSES, INPUT("\"x\""), ERRID_BROKER_REQUEST, "no object"},
	{API_RESPONSES, INPUT("null"), ERRID_BROKER_REQUEST, "no object"},
	{API_RESPONSES, PART("\"x\""), ERRID_BROKER_REQUEST, "list of objects"},
	{API_RESPONSES, INPUT("{\"type\":\"reasoning\",\"encrypted_content\":{}}"),
	 ERRID_BROKER_REQUEST, "encrypted_content"},
	{API_RESPONSES, INPUT("{\"type\":\"function_call\",\"url\":\"" FAR "\"}"),
	 ERRID_BROKER_REQUEST, "url"},
	{API_RESPONSES, R(",\"context_management\":[{\"type\":\"compaction\"}]"),
	 ERRID_BROKER_PRICE, "context_management"},
	{API_MESSAGES,
	 "{\"model\":\"m\",\"max_tokens\":9,\"thread\":{\"type\":\"create\"},"
	 "\"messages\":[{"
	 "\"role\":\"user\",\"content\":\"hi\"}]}",
	 ERRID_BROKER_THREAD, "thread"},
	/* the other two */
	{API_EMBEDDINGS, "{\"model\":\"m\",\"input\":[[1,2,3]]}", ERRID_BROKER_REQUEST,
	 "gate"},
	{API_EMBEDDINGS, "{\"model\":\"m\",\"input\":[15,16]}", ERRID_BROKER_REQUEST,
	 "gate"},
	{API_EMBEDDINGS, "{\"model\":\"m\",\"input\":[]}", ERRID_BROKER_REQUEST, "input"},
	{API_EMBEDDINGS, R(",\"stream\":true"), ERRID_BROKER_REQUEST, "stream"},
	{API_COUNT_TOKENS, "{\"model\":\"m\"}", ERRID_BROKER_REQUEST, "messages"},
	{API_COUNT_TOKENS,
	 "{\"model\":\"m\",\"max_tokens\":9,\"messages\":[{\"role\":\"user\",\"content\":"
	 "\"hi\"}]}",
	 ERRID_BROKER_REQUEST, "max_tokens"},
	{API_COUNT_TOKENS,
	 "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":"
	 "\"image\",\"source\":{\"type\":\"url\",\"url\":\"" FAR "\"}}]}]}",
	 ERRID_BROKER_FEATURE, "lies elsewhere"},
};

Test(ask_apis, what_is_refused)
{
	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
		const struct row *r = &refusals[i];

		cr_expect_eq(read_as(r->api, r->text), r->want, "%s: %s", r->text,
			     why.msg);
		cr_expect(strstr(why.msg, r->says), "%s: %s", r->text, why.msg);
	}
}

/* ---- what passes ---- */

/* A turn of an agent: what the last answer had, as it was, and what its tools said. */
#define TURN                                                                             \
	"{\"model\":\"m\",\"instructions\":\"be short\",\"input\":["                     \
	"{\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"hi\"},"     \
	"{\"type\":\"input_image\",\"detail\":\"auto\",\"image_url\":"                   \
	"\"data:image/png;base64,AAAA\"}]},"                                             \
	"{\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[{\"type\":"                \
	"\"summary_text\",\"text\":\"so\"}],\"encrypted_content\":\"gAAAAB+/=\"},"       \
	"{\"type\":\"message\",\"id\":\"msg_1\",\"role\":\"assistant\",\"status\":"      \
	"\"completed\",\"content\":[{\"type\":\"output_text\",\"text\":\"yes\","         \
	"\"annotations\":[],\"logprobs\":[]}]},"                                         \
	"{\"type\":\"function_call\",\"id\":\"fc_1\",\"call_id\":\"call_1\",\"name\":"   \
	"\"f\",\"arguments\":\"{}\",\"status\":\"completed\"},"                          \
	"{\"type\":\"function_call_output\",\"call_id\":\"call_1\",\"output\":\"7\"},"   \
	"{\"type\":\"custom_tool_call\",\"call_id\":\"call_2\",\"name\":\"p\","          \
	"\"input\":"                                                                     \
	"\"*** Begin\"},"                                                                \
	"{\"type\":\"custom_tool_call_output\",\"call_id\":\"call_2\",\"output\":"       \
	"\"ok\"}"                                                                        \
	"],\"tools\":[{\"type\":\"function\",\"name\":\"f\",\"strict\":true,"            \
	"\"parameters\":{\"type\":\"object\"}},{\"type\":\"custom\",\"name\":\"p\","     \
	"\"format\":{\"type\":\"grammar\",\"syntax\":\"lark\",\"definition\":\"x\"}}],"  \
	"\"tool_choice\":\"auto\",\"parallel_tool_calls\":true,\"reasoning\":"           \
	"{\"effort\":\"low\",\"summary\":\"auto\"},\"include\":"                         \
	"[\"reasoning.encrypted_content\"],\"prompt_cache_key\":\"k\","                  \
	"\"client_metadata\":{\"a\":\"b\"},\"text\":{\"verbosity\":\"low\"}"

static const struct row passes[] = {
	{API_RESPONSES, R(""), ERRID_NONE, ""},
	{API_RESPONSES, R(",\"store\":false,\"background\":false"), ERRID_NONE, ""},
	{API_RESPONSES, R(",\"previous_response_id\":null,\"conversation\":null"),
	 ERRID_NONE, ""},
	{API_RESPONSES, R(",\"tool_choice\":{\"type\":\"function\",\"name\":\"f\"}"),
	 ERRID_NONE, ""},
	{API_RESPONSES, TURN "}", ERRID_NONE, ""},
	{API_RESPONSES, TURN ",\"stream\":true}", ERRID_NONE, ""},
	{API_EMBEDDINGS, R(",\"encoding_format\":\"base64\",\"dimensions\":8"),
	 ERRID_NONE, ""},
	{API_EMBEDDINGS, "{\"model\":\"m\",\"input\":[\"a\",\"b\"]}", ERRID_NONE, ""},
	{API_COUNT_TOKENS,
	 "{\"model\":\"m\",\"system\":\"s\",\"tools\":[],\"messages\":[{\"role\":"
	 "\"user\","
	 "\"content\":\"hi\"}]}",
	 ERRID_NONE, ""},
};

Test(ask_apis, what_passes)
{
	for (size_t i = 0; i < ARRAY_SIZE(passes); i++)
		cr_expect_eq(read_as(passes[i].api, passes[i].text), ERRID_NONE, "%s: %s",
			     passes[i].text, why.msg);
}

/* As the dispatcher writes it. */
static void expect_written(enum portal_api api, const char *text, const char *want)
{
	struct jsonw w;
	struct buf out;

	cr_assert_eq(read_as(api, text), ERRID_NONE, "%s: %s", text, why.msg);
	ask_strip(&last, kept);
	buf_init(&out, 65536);
	jsonw_init(&w, &out);
	json_write(kept, &w);
	ask_finish(&last, CAP_MAX_COMPLETION_TOKENS, 1000, &out);
	cr_expect_str_eq(buf_str(&out), want);
	cr_expect_leq(out.len, strlen(text) + ASK_FINISH_BYTES);
	buf_done(&out);
}

Test(ask_apis, nothing_is_stored_whatever_the_job_left_out)
{
	static const char want[] = R(",\"max_output_tokens\":1000,\"store\":false");

	expect_written(API_RESPONSES, R(""), want);
	expect_written(API_RESPONSES, R(",\"store\":false"), want);
	expect_written(API_RESPONSES, R(",\"store\":null"), want);
	expect_written(API_RESPONSES, R(",\"max_output_tokens\":50"), want);
	/* what is opaque goes on byte for byte */
	expect_written(API_RESPONSES, TURN "}",
		       TURN ",\"max_output_tokens\":1000,\"store\":false}");
	expect_written(API_EMBEDDINGS, R(""), R(""));
}

/* ---- what it may cost ---- */

static char model_name[] = "m";
static const struct conf_model model = {
	.name = model_name, .input_price = 10, .output_price = 100, .picture = 300};

static uint64_t input_most(size_t bytes)
{
	const struct ask_prices prices = {.input = 10, .output = 100};

	return ask_input_most(&cost, &prices, &model, bytes);
}

static void expect_output(uint64_t least, uint64_t most)
{
	uint64_t got_least = 7, got_most = 7;

	cr_assert_eq(ask_output(&cost, &model, &got_least, &got_most, &why), 0);
	cr_expect_eq(got_least, least);
	cr_expect_eq(got_most, most);
}

Test(ask_apis, what_they_may_cost)
{
	cr_assert_eq(read_as(API_RESPONSES, R(",\"max_output_tokens\":50")), ERRID_NONE);
	expect_output(ASK_OUTPUT_LEAST, 50);
	cr_expect_eq(input_most(100), 100 + ASK_FRAME_TOKENS);
	cr_assert_eq(read_as(API_RESPONSES, R("")), ERRID_NONE);
	expect_output(ASK_OUTPUT_LEAST, ASK_OUTPUT_DEFAULT);
	cr_assert_eq(read_as(API_RESPONSES, TURN "}"), ERRID_NONE);
	cr_expect(cost.pictures == 1 && !cost.has_documents && cost.has_tools);
	cr_assert_eq(read_as(API_RESPONSES, PART("{\"type\":\"input_file\",\"file_data\":"
						 "\"data:application/pdf;base64,A\"}")),
		     ERRID_NONE);
	cr_expect(cost.has_documents);
	cr_assert_eq(read_as(API_RESPONSES, R(",\"service_tier\":\"priority\"")),
		     ERRID_NONE);
	cr_expect_str_eq(cost.tier, "priority");
	/* no answer to pay for, and nothing at all */
	cr_assert_eq(read_as(API_EMBEDDINGS, R("")), ERRID_NONE);
	expect_output(0, 0);
	cr_expect_eq(input_most(100), 100 + ASK_FRAME_TOKENS);
	cr_assert_eq(read_as(API_COUNT_TOKENS, passes[ARRAY_SIZE(passes) - 1].text),
		     ERRID_NONE);
	expect_output(0, 0);
	cr_expect_eq(input_most(100), 0);
}

/* ---- replies ---- */

static struct ask_usage usage_of(enum portal_api api, bool stream, const char *text)
{
	const struct ask a = {
		.api = api, .dialect = portal_api_kind(api), .stream = stream};

	for (size_t piece = 1;; piece += 40) {
		struct ask_reply *r = ask_reply_new(&a, stream);
		size_t len = strlen(text);
		struct ask_usage u;
		struct buf out;

		buf_init(&out, 1 << 20);
		for (size_t i = 0; i < len; i += piece)
			ask_reply_feed(r, text + i, len - i < piece ? len - i : piece,
				       &out);
		ask_reply_end(r, &out);
		cr_expect_str_eq(buf_str(&out), text); /* nothing is taken out */
		u = ask_reply_usage(r);
		ask_reply_free(r);
		buf_done(&out);
		if (piece > len)
			return u;
	}
}

#define EVENT(type, fields)                                                              \
	"event: response." type "\ndata: {\"type\":\"response." type "\"" fields "}\n\n"
#define USAGE                                                                            \
	"\"usage\":{\"input_tokens\":11,\"input_tokens_details\":{\"cached_tokens\":4}," \
	"\"output_tokens\":3,\"output_tokens_details\":{\"reasoning_tokens\":0},"        \
	"\"total_tokens\":14}"
#define SAYS "two dozen letters of it"
#define DELTA                                                                            \
	EVENT("output_text.delta", ",\"output_index\":0,\"content_index\":0,\"delta\":"  \
				   "\"" SAYS "\"")
#define SAID EVENT("output_text.done", ",\"output_index\":0,\"text\":\"" SAYS "\"")
#define ITEM                                                                             \
	"{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"" SAYS  \
	"\"}]}"
#define OVER(type)                                                                       \
	EVENT(type,                                                                      \
	      ",\"response\":{\"object\":\"response\",\"output\":[" ITEM "]," USAGE "}")
#define CREATED EVENT("created", ",\"response\":{\"output\":[],\"usage\":null}")

Test(ask_apis, usage_of_a_response)
{
	static const char *const whole[] = {
		CREATED DELTA SAID OVER("completed"),
		CREATED DELTA SAID EVENT("output_item.done", ",\"item\":" ITEM)
			OVER("incomplete"),
	};
	struct ask_usage u;

	for (size_t i = 0; i < ARRAY_SIZE(whole); i++) {
		u = usage_of(API_RESPONSES, true, whole[i]);
		cr_expect(u.is_known && u.tokens.input == 11 && u.tokens.output == 3 &&
				  u.tokens.cache_read == 4,
			  "%zu", i);
	}
	u = usage_of(API_RESPONSES, false,
		     "{\"object\":\"response\",\"output\":[" ITEM "]," USAGE "}");
	cr_expect(u.is_known && u.tokens.input == 11 && u.tokens.output == 3);
}

Test(ask_apis, usage_that_did_not_come_or_is_too_little_is_not_believed)
{
	struct ask_usage u = usage_of(API_RESPONSES, true, CREATED DELTA DELTA);

	cr_expect(!u.is_known && u.tokens.output >= 5);
	/* text without a delta counts as well, once */
	u = usage_of(API_RESPONSES, true, CREATED SAID SAID SAID);
	cr_expect(!u.is_known && u.tokens.output == strlen(SAYS) / 8);
	/* seven times the text, by three tokens */
	u = usage_of(API_RESPONSES, true,
		     CREATED DELTA DELTA DELTA DELTA DELTA DELTA DELTA OVER("completed"));
	cr_expect(!u.is_known && u.tokens.output > 3);
}

Test(ask_apis, usage_of_embeddings_and_of_a_count)
{
	struct ask_usage u = usage_of(
		API_EMBEDDINGS, false,
		"{\"object\":\"list\",\"data\":[{\"object\":\"embedding\",\"index\":0,"
		"\"embedding\":[0.1,-2]}],\"usage\":{\"prompt_tokens\":5,"
		"\"total_tokens\":5}}");

	cr_expect(u.is_known && u.tokens.input == 5 && u.tokens.output == 0);
	u = usage_of(API_COUNT_TOKENS, false, "{\"input_tokens\":2095}");
	cr_expect(!u.is_known && u.tokens.input == 0 && u.tokens.output == 0);
}
