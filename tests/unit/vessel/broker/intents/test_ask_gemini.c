/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to Gemini's API: what is refused and why, what passes, what it may cost, what is
 * written into it, and what of a reply is booked. */
#include "common/jsonw.h"
#include "common/str.h"
#include "vessel/broker/intents/ask.h"
#include "vessel/broker/intents/ask_cost.h"
#include "vessel/broker/intents/ask_reply.h"
#include <criterion/criterion.h>
#include <string.h>

TestSuite(ask_gemini, .timeout = 30);

#define FAR "https://far.example/x"
#define C(parts) "\"contents\":[{\"role\":\"user\",\"parts\":[" parts "]}]"
#define HI C("{\"text\":\"hi\"}")
#define PART(part) "{" C(part) "}"
#define WITH(more) "{" HI "," more "}"
#define CONFIG(more) WITH("\"generationConfig\":{" more "}")
#define BLOB(type) PART("{\"inlineData\":{\"mimeType\":\"" type "\",\"data\":\"AAAA\"}}")

static struct ask last;
static struct ask_cost cost;
static struct err why;
static struct json *kept;

static enum err_id read_as(enum portal_api api, const char *text)
{
	struct err none = ERR_INIT;

	json_free(kept);
	kept = NULL;
	why = none;
	cr_assert(json_parse(text, strlen(text), 28, &kept, &why) == 0, "%s: %s", text,
		  why.msg);
	return ask_read(kept, api, api == API_GENERATE, &last, &why) == 0 &&
			       ask_cost_read(kept, api, &cost, &why) == 0
		       ? ERRID_NONE
		       : why.id;
}

static const struct {
	enum portal_api api;
	const char *text;
	enum err_id want;
	const char *part;
} refused[] = {
	{API_GENERATE, "{}", ERRID_BROKER_REQUEST, "contents: a list"},
	{API_GENERATE, "{\"contents\":[]}", ERRID_BROKER_REQUEST, "not empty"},
	{API_GENERATE, "{\"contents\":\"hi\"}", ERRID_BROKER_REQUEST, "contents"},
	{API_GENERATE, "{\"contents\":[\"hi\"]}", ERRID_BROKER_REQUEST, "no object"},
	{API_GENERATE, "{\"contents\":[{\"parts\":{\"text\":\"hi\"}}]}",
	 ERRID_BROKER_REQUEST, "wrong type: 'parts'"},
	{API_GENERATE, PART("\"hi\""), ERRID_BROKER_REQUEST, "list of objects: 'parts'"},
	/* another spelling, another API's */
	{API_GENERATE, WITH("\"model\":\"m\""), ERRID_BROKER_REQUEST, "'model'"},
	{API_GENERATE, WITH("\"system_instruction\":{}"), ERRID_BROKER_REQUEST,
	 "unknown key 'system_instruction'"},
	{API_GENERATE, WITH("\"messages\":[]"), ERRID_BROKER_REQUEST, "'messages'"},
	{API_GENERATE, WITH("\"stream\":true"), ERRID_BROKER_REQUEST, "'stream'"},
	{API_GENERATE, PART("{\"inline_data\":{}}"), ERRID_BROKER_REQUEST,
	 "contents, entry 1: unknown key 'inline_data'"},
	{API_GENERATE, CONFIG("\"max_output_tokens\":5"), ERRID_BROKER_REQUEST,
	 "generationConfig, entry 1: unknown key 'max_output_tokens'"},
	{API_GENERATE, CONFIG("\"imageConfig\":{}"), ERRID_BROKER_REQUEST, "imageConfig"},
	{API_GENERATE, WITH("\"toolConfig\":{\"retrievalConfig\":{}}"),
	 ERRID_BROKER_REQUEST, "retrievalConfig"},
	{API_GENERATE, WITH("\"safetySettings\":[{\"x\":1}]"), ERRID_BROKER_REQUEST,
	 "safetySettings, entry 1"},
	/* what the provider would fetch, or has stored */
	{API_GENERATE, PART("{\"fileData\":{\"fileUri\":\"" FAR "\"}}"),
	 ERRID_BROKER_FEATURE, "fileData"},
	{API_GENERATE,
	 PART("{\"inlineData\":{\"mimeType\":\"a/b\",\"data\":\"" FAR "\"}}"),
	 ERRID_BROKER_FEATURE, "a URL"},
	{API_GENERATE,
	 PART("{\"functionResponse\":{\"name\":\"f\",\"parts\":[{\"fileData\":{}}]}}"),
	 ERRID_BROKER_FEATURE, "fileData"},
	{API_GENERATE, WITH("\"systemInstruction\":{\"parts\":[{\"fileData\":{}}]}"),
	 ERRID_BROKER_FEATURE, "fileData"},
	{API_GENERATE, WITH("\"cachedContent\":\"cachedContents/x\""),
	 ERRID_BROKER_FEATURE, "cachedContent (it is stored"},
	/* what it would carry out, and what that leaves behind */
	{API_GENERATE, WITH("\"tools\":[{\"googleSearch\":{}}]"), ERRID_BROKER_FEATURE,
	 "'googleSearch'"},
	{API_GENERATE,
	 WITH("\"tools\":[{\"functionDeclarations\":[],\"codeExecution\":{}}]"),
	 ERRID_BROKER_FEATURE, "'codeExecution'"},
	{API_GENERATE, WITH("\"tools\":[{\"urlContext\":{}}]"), ERRID_BROKER_FEATURE,
	 "'urlContext'"},
	{API_GENERATE, WITH("\"tools\":[{\"fileSearch\":{}}]"), ERRID_BROKER_FEATURE,
	 "'fileSearch'"},
	{API_GENERATE, WITH("\"tools\":[{\"google_search\":{}}]"), ERRID_BROKER_REQUEST,
	 "'google_search'"},
	{API_GENERATE, PART("{\"executableCode\":{\"code\":\"x\"}}"),
	 ERRID_BROKER_FEATURE, "'executableCode'"},
	{API_GENERATE, PART("{\"codeExecutionResult\":{}}"), ERRID_BROKER_FEATURE,
	 "'codeExecutionResult'"},
	/* numbers */
	{API_GENERATE, CONFIG("\"candidateCount\":0"), ERRID_BROKER_REQUEST,
	 "candidateCount: 1 to 16"},
	{API_GENERATE, CONFIG("\"candidateCount\":17"), ERRID_BROKER_REQUEST,
	 "candidateCount"},
	{API_GENERATE, CONFIG("\"maxOutputTokens\":-1"), ERRID_BROKER_REQUEST,
	 "maxOutputTokens"},
	{API_GENERATE, CONFIG("\"maxOutputTokens\":\"5\""), ERRID_BROKER_REQUEST,
	 "maxOutputTokens"},
	/* what has no price */
	{API_GENERATE, CONFIG("\"responseModalities\":[\"TEXT\",\"IMAGE\"]"),
	 ERRID_BROKER_PRICE, "responseModalities: IMAGE"},
	{API_GENERATE, CONFIG("\"responseModalities\":[2]"), ERRID_BROKER_REQUEST,
	 "a list of names"},
	/* a count */
	{API_COUNT_CONTENTS, "{}", ERRID_BROKER_REQUEST, "contents"},
	{API_COUNT_CONTENTS, WITH("\"generationConfig\":{}"), ERRID_BROKER_REQUEST,
	 "'generationConfig'"},
	{API_COUNT_CONTENTS, "{\"generateContentRequest\":{\"model\":\"models/m\"}}",
	 ERRID_BROKER_REQUEST, "'generateContentRequest'"},
	{API_COUNT_CONTENTS, PART("{\"fileData\":{}}"), ERRID_BROKER_FEATURE, "fileData"},
};

Test(ask_gemini, what_is_refused_is_named)
{
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		cr_expect_eq(read_as(refused[i].api, refused[i].text), refused[i].want,
			     "%s: %s", refused[i].text, why.msg);
		cr_expect(strstr(why.msg, refused[i].part), "%s: %s", refused[i].text,
			  why.msg);
	}
}

/* What @google/genai and gemini-cli send. */
static const char full[] =
	"{\"contents\":[{\"role\":\"user\",\"parts\":[{\"text\":\"look\"},{"
	"\"inlineData\":{"
	"\"mimeType\":\"image/"
	"png\",\"data\":\"AAAA\"}}]},{\"role\":\"model\",\"parts\":[{"
	"\"text\":\"hm\",\"thought\":true},{\"functionCall\":{\"id\":\"a1\",\"name\":"
	"\"f\","
	"\"args\":{\"url\":\"" FAR
	"\"}},\"thoughtSignature\":\"AA==\"}]},{\"role\":\"user\","
	"\"parts\":[{\"functionResponse\":{\"id\":\"a1\",\"name\":\"f\",\"response\":{"
	"\"output\":\"" FAR "\"},\"parts\":[{\"inlineData\":{\"mimeType\":\"image/jpeg\","
	"\"data\":\"AA==\"}}]}}]}],\"systemInstruction\":{\"role\":\"user\",\"parts\":[{"
	"\"text\":\"s\"}]},\"tools\":[{\"functionDeclarations\":[{\"name\":\"f\","
	"\"description\":\"d\",\"parametersJsonSchema\":{\"type\":\"object\"}}]}],"
	"\"toolConfig\":{\"functionCallingConfig\":{\"mode\":\"ANY\","
	"\"allowedFunctionNames\":[\"f\"]}},\"generationConfig\":{\"temperature\":0.5,"
	"\"topP\":0.9,\"topK\":64,\"candidateCount\":3,\"maxOutputTokens\":500,"
	"\"responseMimeType\":\"application/json\",\"responseJsonSchema\":{},"
	"\"thinkingConfig\":{\"includeThoughts\":true,\"thinkingBudget\":-1}},"
	"\"safetySettings\":[{\"category\":\"c\",\"threshold\":\"t\"}],"
	"\"serviceTier\":\"standard\"}";

static const struct conf_model model = {
	.name = (char *)(uintptr_t)"m",
	.input_price = 2000000,
	.output_price = 10000000,
	.cache_read_price = 200000,
	.cache_write_price = 2500000,
	.picture = 1000,
};
static const struct conf_portal portal = {.kind = PORTAL_GEMINI};

Test(ask_gemini, what_passes_costs_its_bytes_its_pictures_and_each_candidate)
{
	struct ask_prices p;
	uint64_t least, most;

	cr_assert_eq(read_as(API_GENERATE, full), ERRID_NONE, "%s", why.msg);
	cr_expect(last.stream && last.dialect == PORTAL_GEMINI);
	cr_expect_str_eq(last.model, "", "its path names it");
	cr_expect_eq(cost.choices, 3);
	cr_expect_eq(cost.asked, 500);
	cr_expect_eq(cost.pictures, 2);
	cr_expect(cost.has_tools && !cost.has_documents && !cost.has_audio);
	cr_assert_eq(ask_prices_of(&cost, NULL, &portal, &model, &p, &why), 0, "%s",
		     why.msg);
	/* what it writes to its cache costs no more there */
	cr_expect_eq(p.cache_write, model.input_price);
	cr_expect_eq(ask_input_most(&cost, &p, &model, 5000),
		     5000 - 8 + 2 * 1000 + ASK_FRAME_TOKENS + ASK_TOOLS_TOKENS);
	cr_assert_eq(ask_output(&cost, &model, &least, &most, &why), 0);
	cr_expect(least == ASK_OUTPUT_LEAST && most == 500);
	/* to count costs nothing */
	cr_assert_eq(read_as(API_COUNT_CONTENTS, "{" HI "}"), ERRID_NONE);
	cr_expect_eq(ask_input_most(&cost, &p, &model, 5000), 0);
	cr_assert_eq(ask_output(&cost, &model, &least, &most, &why), 0);
	cr_expect_eq(most, 0);
}

Test(ask_gemini, what_its_size_does_not_say_needs_a_price_or_a_context)
{
	static const struct {
		const char *text;
		bool has_documents, has_audio;
	} rows[] = {
		{BLOB("application/pdf"), true, false},
		{BLOB("text/plain"), true, false},
		{BLOB("IMAGE/SVG+XML"), true, false},
		{BLOB("audio/wav"), false, true},
		{BLOB("Video/mp4"), false, true},
		{BLOB("Image/PNG"), false, false},
		{PART("{\"functionResponse\":{\"parts\":[{\"inlineData\":{\"mimeType\":"
		      "\"application/pdf\"}}]}}"),
		 true, false},
		{CONFIG("\"speechConfig\":{}"), false, true},
		{CONFIG("\"responseModalities\":[\"AUDIO\"]"), false, true},
	};
	struct ask_prices p;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		bool is_plain = !rows[i].has_documents && !rows[i].has_audio;

		cr_assert_eq(read_as(API_GENERATE, rows[i].text), ERRID_NONE, "%s: %s",
			     rows[i].text, why.msg);
		cr_expect_eq(cost.has_documents, rows[i].has_documents, "%s",
			     rows[i].text);
		cr_expect_eq(cost.has_audio, rows[i].has_audio, "%s", rows[i].text);
		cr_expect_eq(ask_prices_of(&cost, NULL, &portal, &model, &p, &why) == 0,
			     is_plain, "%s", rows[i].text);
		cr_expect(is_plain || why.id == ERRID_BROKER_PRICE);
		err_clear(&why);
	}
	cr_assert_eq(read_as(API_GENERATE, WITH("\"serviceTier\":\"priority\"")),
		     ERRID_NONE);
	cr_expect(ask_prices_of(&cost, NULL, &portal, &model, &p, &why) < 0);
	cr_expect(strstr(why.msg, "service_tier:priority"), "%s", why.msg);
}

static void expect_written(const char *text, const char *want)
{
	cleanup_buf struct buf out;
	struct jsonw w;

	buf_init(&out, 65536);
	cr_assert_eq(read_as(API_GENERATE, text), ERRID_NONE, "%s", why.msg);
	ask_strip(&last, kept);
	jsonw_init(&w, &out);
	json_write(kept, &w);
	ask_finish(&last, CAP_MAX_TOKENS, 77, &out);
	cr_expect_str_eq(buf_str(&out), want);
}

Test(ask_gemini, the_cap_is_ours_whatever_the_request_says)
{
	expect_written("{" HI "}",
		       "{" HI ",\"generationConfig\":{\"maxOutputTokens\":77}}");
	expect_written(WITH("\"generationConfig\":null"),
		       "{" HI ",\"generationConfig\":{\"maxOutputTokens\":77}}");
	expect_written("{\"generationConfig\":{\"maxOutputTokens\":9,\"topK\":1,"
		       "\"thinkingConfig\":{}}," HI "}",
		       "{" HI ",\"generationConfig\":{\"topK\":1,\"thinkingConfig\":{},"
		       "\"maxOutputTokens\":77}}");
}

Test(ask_gemini, the_model_is_in_the_path)
{
	struct ask a = {.api = API_GENERATE, .dialect = PORTAL_GEMINI, .model = "m-1.5"};
	char target[ASK_TARGET_SIZE];
	char big[ASK_MODEL_MAX_BYTES + 2];

	cr_assert_eq(ask_target(&a, "", target, &why), 0);
	cr_expect_str_eq(target, "/v1beta/models/m-1.5:generateContent");
	a.stream = true;
	cr_assert_eq(ask_target(&a, "/x/v1beta", target, &why), 0);
	cr_expect_str_eq(target, "/models/m-1.5:streamGenerateContent?alt=sse");
	a.api = API_COUNT_CONTENTS;
	a.stream = false;
	cr_assert_eq(ask_target(&a, "/v1", target, &why), 0);
	cr_expect_str_eq(target, "/v1beta/models/m-1.5:countTokens");
	memset(big, 'm', sizeof(big));
	big[sizeof(big) - 1] = '\0';
	cr_expect(ask_name(&a, big, &why) < 0);
	cr_expect(ask_name(&a, "", &why) < 0);
	cr_expect(ask_name(&a, "a\nb", &why) < 0);
}

/* ---- replies ---- */

static struct ask_usage usage_of(const char *text, bool stream)
{
	const struct ask a = {
		.dialect = PORTAL_GEMINI, .api = API_GENERATE, .stream = stream};
	struct ask_reply *r = ask_reply_new(&a, stream);
	cleanup_buf struct buf out;
	struct ask_usage u;

	buf_init(&out, 65536);
	for (size_t i = 0; text[i]; i++)
		ask_reply_feed(r, text + i, 1, &out);
	ask_reply_end(r, &out);
	u = ask_reply_usage(r);
	ask_reply_free(r);
	cr_expect_str_eq(buf_str(&out), text);
	return u;
}

#define USAGE(n)                                                                         \
	"\"usageMetadata\":{\"promptTokenCount\":11,\"candidatesTokenCount\":" n         \
	",\"thoughtsTokenCount\":30,\"cachedContentTokenCount\":4"

Test(ask_gemini, thoughts_are_output_and_a_stream_is_known_at_its_end)
{
	struct ask_usage u;

	u = usage_of("{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"hi\"}]},"
		     "\"finishReason\":\"STOP\"}]," USAGE("5") "}}",
		     false);
	cr_expect(u.is_known && u.tokens.input == 11 && u.tokens.output == 35 &&
		  u.tokens.cache_read == 4);
	u = usage_of(
		"data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"h\"}]}}]"
		"," USAGE("1") "}}\r\n\r\n",
		true);
	cr_expect(!u.is_known && u.tokens.output == 31);
	u = usage_of(
		"data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"h\"}]}}]"
		"," USAGE(
			"1") "}}\r\n\r\n"
			     "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]," USAGE(
				     "7") ",\"totalTokenCount\":60}}\r\n\r\n",
		true);
	cr_expect(u.is_known && u.tokens.input == 11);
	cr_expect_eq(u.tokens.output, 49, "a total that says more is believed");
	u = usage_of("data: {\"promptFeedback\":{\"blockReason\":\"SAFETY\"},"
		     "\"usageMetadata\":{\"promptTokenCount\":11}}\r\n\r\n",
		     true);
	cr_expect(u.is_known && u.tokens.output == 0);
	u = usage_of("data: {\"usageMetadata\":7,\"candidates\":{}}\n\n", true);
	cr_expect(!u.is_known);
}
