/* SPDX-License-Identifier: Apache-2.0 */
/* What a request may cost at most: its input, its answer, and the prices that hold. */
#include "common/str.h"
#include "vessel/broker/intents/ask_cost.h"
#include <criterion/criterion.h>

TestSuite(ask_cost, .timeout = 10);

#define PRICED ERRID_BROKER_PRICE
#define MESSAGE(content)                                                                 \
	"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":" content "}]}"
#define WITH(more)                                                                       \
	"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]," more "}"

static char m_name[] = "m", one[] = "beta:context-1m-2025-08-07",
	    two[] = "service_tier:priority", three[] = "audio", own[] = "own-2026-01-01";
static struct conf_extra extras[] = {
	{one, 6000000, 22500000, 1000000},
	{two, 8000000, 20000000, 0},
	{three, 40000000, 80000000, 200000},
};
static char *betas[] = {own};
static struct conf_model model = {
	.name = m_name,
	.input_price = 3000000,
	.output_price = 15000000,
	.cache_read_price = 300000,
	.cache_write_price = 3750000,
	.picture = 1600,
};
static struct conf_portal portal = {
	.kind = PORTAL_ANTHROPIC, .model = &model, .n_models = 1};

static struct ask_cost cost;
static struct ask_prices prices;

static enum err_id judge(enum portal_kind d, const char *text, const char *with_betas)
{
	struct err err = ERR_INIT;
	struct json *j = NULL;
	static struct json *kept;

	json_free(kept);
	cr_assert(json_parse(text, strlen(text), 28, &j, &err) == 0, "%s: %s", text,
		  err.msg);
	kept = j;
	portal.kind = d;
	return ask_cost_read(j, d == PORTAL_OPENAI ? API_CHAT : API_MESSAGES, &cost,
			     &err) == 0 &&
			       ask_prices_of(&cost, with_betas, &portal, &model, &prices,
					     &err) == 0
		       ? ERRID_NONE
		       : err.id;
}

static const struct {
	enum portal_kind d;
	const char *text, *betas;
} without_price[] = {
	{PORTAL_OPENAI, WITH("\"service_tier\":\"priority\""), NULL},
	{PORTAL_OPENAI, WITH("\"service_tier\":\"scale\""), NULL},
	{PORTAL_OPENAI, WITH("\"service_tier\":\"Priority\""), NULL},
	{PORTAL_OPENAI, WITH("\"service_tier\":\"\""), NULL},
	{PORTAL_ANTHROPIC, WITH("\"speed\":\"fast\""), NULL},
	{PORTAL_ANTHROPIC, WITH("\"inference_geo\":\"us\""), NULL},
	{PORTAL_ANTHROPIC, WITH("\"max_tokens\":9"), "context-1m-2025-08-07"},
	{PORTAL_ANTHROPIC, WITH("\"max_tokens\":9"), "fast-mode-2026-02-01"},
	{PORTAL_ANTHROPIC, WITH("\"max_tokens\":9"),
	 "interleaved-thinking-2025-05-14,context-1m-2025-08-07"},
	{PORTAL_ANTHROPIC, WITH("\"max_tokens\":9"), "nobody-knows-2027-01-01"},
	{PORTAL_ANTHROPIC, WITH("\"max_tokens\":9"), "effort-and-more"},
	{PORTAL_OPENAI, WITH("\"prediction\":{\"type\":\"content\"}"), NULL},
	{PORTAL_OPENAI, WITH("\"modalities\":[\"text\",\"audio\"]"), NULL},
	{PORTAL_OPENAI, WITH("\"modalities\":[7]"), NULL},
	{PORTAL_OPENAI, WITH("\"audio\":{\"voice\":\"x\"}"), NULL},
	{PORTAL_OPENAI,
	 MESSAGE("[{\"type\":\"input_audio\",\"input_audio\":{\"data\":\"AA\"}}"
		 "]"),
	 NULL},
	{PORTAL_ANTHROPIC,
	 WITH("\"context_management\":{\"edits\":[{\"type\":\"compact_20260112\"}"
	      "]}"),
	 NULL},
	{PORTAL_ANTHROPIC, WITH("\"context_management\":{\"edits\":[{\"type\":7}]}"),
	 NULL},
	/* any number of tokens in few bytes */
	{PORTAL_ANTHROPIC,
	 MESSAGE("[{\"type\":\"document\",\"source\":{\"type\":\"base64\","
		 "\"media_type\":\"application/pdf\",\"data\":\"AA\"}}]"),
	 NULL},
	{PORTAL_ANTHROPIC,
	 MESSAGE("[{\"type\":\"document\",\"citations\":{\"enabled\":true},"
		 "\"source\":{\"type\":\"text\",\"data\":\"a. b.\"}}]"),
	 NULL},
	{PORTAL_ANTHROPIC,
	 MESSAGE("[{\"type\":\"tool_result\",\"content\":[{\"type\":\"document\","
		 "\"source\":{\"type\":\"content\",\"content\":[{\"type\":"
		 "\"image\",\"source\":{\"type\":\"base64\",\"media_type\":"
		 "\"image/tiff\",\"data\":\"AA\"}}]}}]}]"),
	 NULL},
	{PORTAL_OPENAI,
	 MESSAGE("[{\"type\":\"file\",\"file\":{\"file_data\":\"data:x\"}}]"), NULL},
	{PORTAL_OPENAI,
	 MESSAGE("[{\"type\":\"image_url\",\"image_url\":{\"url\":"
		 "\"data:application/pdf;base64,AA\"}}]"),
	 NULL},
	{PORTAL_OPENAI,
	 MESSAGE("[{\"type\":\"image_url\",\"image_url\":{\"url\":"
		 "\"data:image/svg+xml;base64,AA\"}}]"),
	 NULL},
	{PORTAL_OPENAI,
	 MESSAGE("[{\"type\":\"video_url\",\"video_url\":{\"url\":\"data:x\"}}]"), NULL},
	{PORTAL_OPENAI, MESSAGE("[{\"type\":\"what_comes_next\"}]"), NULL},
	{PORTAL_OPENAI, MESSAGE("[{\"Type\":\"input_audio\"}]"), NULL},
};

Test(ask_cost, what_costs_more_and_has_no_price_is_refused)
{
	for (size_t i = 0; i < ARRAY_SIZE(without_price); i++)
		cr_expect_eq(judge(without_price[i].d, without_price[i].text,
				   without_price[i].betas),
			     PRICED, "%s %s", without_price[i].text,
			     without_price[i].betas ? without_price[i].betas : "");
}

Test(ask_cost, what_costs_no_more_passes)
{
	static const struct {
		enum portal_kind d;
		const char *text, *betas;
	} rows[] = {
		{PORTAL_OPENAI, WITH("\"service_tier\":\"auto\""), NULL},
		{PORTAL_OPENAI, WITH("\"service_tier\":\"flex\""), NULL},
		{PORTAL_OPENAI, WITH("\"service_tier\":null"), NULL},
		{PORTAL_OPENAI, WITH("\"modalities\":[\"text\"]"), NULL},
		{PORTAL_ANTHROPIC, WITH("\"service_tier\":\"standard_only\""), NULL},
		{PORTAL_ANTHROPIC, WITH("\"speed\":\"standard\""), NULL},
		{PORTAL_ANTHROPIC, WITH("\"max_tokens\":9"),
		 "claude-code-20250219,interleaved-thinking-2027-09-09,effort-2025-11-"
		 "24"},
		{PORTAL_ANTHROPIC,
		 WITH("\"context_management\":{\"edits\":[{\"type\":"
		      "\"clear_tool_uses_20250919\"}]}"),
		 NULL},
		{PORTAL_ANTHROPIC,
		 MESSAGE("[{\"type\":\"document\",\"source\":{\"type\":\"text\",\"data\":"
			 "\"a\"}},{\"type\":\"tool_result\",\"content\":\"x\"},{\"text\":"
			 "\"y\"}]"),
		 NULL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		cr_expect_eq(judge(rows[i].d, rows[i].text, rows[i].betas), ERRID_NONE,
			     "%s %s", rows[i].text, rows[i].betas ? rows[i].betas : "");
	cr_expect_eq(judge(PORTAL_ANTHROPIC, WITH("\"max_tokens\":9"), own), PRICED);
	portal.beta = betas;
	portal.n_betas = 1;
	cr_expect_eq(judge(PORTAL_ANTHROPIC, WITH("\"max_tokens\":9"), own), ERRID_NONE);
}

Test(ask_cost, what_has_prices_is_counted_at_the_highest)
{
	model.extra = extras;
	model.n_extras = ARRAY_SIZE(extras);
	model.context = 200000;
	cr_assert_eq(judge(PORTAL_ANTHROPIC, WITH("\"max_tokens\":9"), NULL), ERRID_NONE);
	cr_expect(prices.input == 3000000 && prices.output == 15000000 &&
		  prices.cache_read == 300000 && prices.context == 200000);
	cr_assert_eq(judge(PORTAL_ANTHROPIC, WITH("\"max_tokens\":9"),
			   "context-1m-2025-08-07"),
		     ERRID_NONE);
	cr_expect(prices.input == 6000000 && prices.output == 22500000 &&
		  prices.cache_read == 6000000 && prices.context == 1000000);
	cr_assert_eq(judge(PORTAL_ANTHROPIC, WITH("\"service_tier\":\"priority\""),
			   "context-1m-2025-08-07"),
		     ERRID_NONE);
	cr_expect(prices.input == 8000000 && prices.output == 22500000 &&
			  prices.context == 0,
		  "one whose context is not known leaves it unknown");
	cr_assert_eq(judge(PORTAL_OPENAI, WITH("\"audio\":{}"), NULL), ERRID_NONE);
	cr_expect(prices.input == 40000000 && prices.output == 80000000);
	cr_expect_eq(ask_input_most(&cost, &prices, &model, 100), 200000u);
	/* an extra is no other's */
	cr_expect_eq(judge(PORTAL_ANTHROPIC, WITH("\"speed\":\"priority\""), NULL),
		     PRICED);
	cr_expect_eq(judge(PORTAL_ANTHROPIC, WITH("\"max_tokens\":9"),
			   "context-1m-2025-08-08"),
		     PRICED);
}

static uint64_t input_of(enum portal_kind d, const char *text)
{
	cr_assert_eq(judge(d, text, NULL), ERRID_NONE, "%s", text);
	return ask_input_most(&cost, &prices, &model, strlen(text));
}

Test(ask_cost, no_text_has_more_tokens_than_bytes_and_a_picture_is_no_text)
{
	static const char text[] = MESSAGE("\"hello\"");
	static const char picture[] = MESSAGE(
		"[{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/png;base64,"
		"AAAAAAAAAAAAAAAAAAAA\"}}]");
	static const char two_of[] = MESSAGE(
		"[{\"type\":\"tool_result\",\"content\":[{\"type\":\"image\",\"source\":{"
		"\"type\":\"base64\",\"media_type\":\"image/png\",\"data\":\"AAAA\"}}]},"
		"{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":"
		"\"image/webp\",\"data\":\"AAAA\"}}]");
	static const char no_picture[] =
		MESSAGE("[{\"type\":\"text\",\"text\":\"x\",\"image_url\":{\"url\":"
			"\"data:image/png;base64,AAAA\"}}]");
	static const char tools[] = WITH("\"tools\":[{\"name\":\"a\"},{\"type\":"
					 "\"bash_20250124\",\"name\":\"bash\"}]");

	model.context = 0;
	cr_expect_eq(input_of(PORTAL_OPENAI, text), strlen(text) + ASK_FRAME_TOKENS);
	cr_expect_eq(input_of(PORTAL_OPENAI, picture),
		     strlen(picture) - 22 - 20 + 1600 + ASK_FRAME_TOKENS);
	cr_expect_eq(input_of(PORTAL_ANTHROPIC, two_of),
		     strlen(two_of) - 8 + 2 * 1600 + ASK_FRAME_TOKENS);
	cr_expect_eq(input_of(PORTAL_OPENAI, no_picture),
		     strlen(no_picture) + ASK_FRAME_TOKENS);
	cr_expect_eq(input_of(PORTAL_ANTHROPIC, tools),
		     strlen(tools) + ASK_FRAME_TOKENS + 2 * ASK_TOOLS_TOKENS);
	model.context = 50;
	cr_expect_eq(input_of(PORTAL_OPENAI, text), 50u);
	cr_expect_eq(input_of(PORTAL_OPENAI, MESSAGE("[{\"type\":\"file\"}]")), 50u);
}

Test(ask_cost, an_answer_is_as_long_as_asked_for_and_allowed)
{
	static const struct {
		const char *more;
		uint64_t max_output, least, most;
	} rows[] = {
		{"\"max_tokens\":100", 0, 16, 100},
		{"\"max_tokens\":100", 50, 16, 50},
		{"\"max_tokens\":5", 50, 5, 5},
		{"\"max_tokens\":null", 0, 16, ASK_OUTPUT_DEFAULT},
		{"\"max_tokens\":null", 70000, 16, 70000},
		{"\"max_tokens\":9000,\"thinking\":{\"budget_tokens\":8000}", 0, 8001,
		 9000},
		{"\"max_tokens\":9000,\"thinking\":{\"budget_tokens\":8000}", 8001, 8001,
		 8001},
		/* interleaved: of several answers together */
		{"\"max_tokens\":900,\"thinking\":{\"budget_tokens\":8000}", 0, 16, 900},
		{"\"max_tokens\":900,\"thinking\":{\"type\":\"adaptive\"}", 0, 16, 900},
	};
	struct err err = ERR_INIT;
	uint64_t least, most;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char text[400];

		cr_assert(str_fmt(text, sizeof(text), WITH("%s"), rows[i].more) == 0);
		model.max_output = rows[i].max_output;
		cr_assert_eq(judge(PORTAL_ANTHROPIC, text, NULL), ERRID_NONE, "%s", text);
		cr_assert_eq(ask_output(&cost, &model, &least, &most, &err), 0);
		cr_expect(least == rows[i].least && most == rows[i].most,
			  "%s: %llu to %llu", text, (unsigned long long)least,
			  (unsigned long long)most);
	}
	model.max_output = 8000;
	cr_assert_eq(
		judge(PORTAL_ANTHROPIC,
		      WITH("\"max_tokens\":9000,\"thinking\":{\"budget_tokens\":8000}"),
		      NULL),
		ERRID_NONE);
	cr_expect(ask_output(&cost, &model, &least, &most, &err) < 0);
	cr_expect_eq(err.id, ERRID_BROKER_REQUEST);
	cr_expect_eq(
		judge(PORTAL_ANTHROPIC, WITH("\"thinking\":{\"budget_tokens\":0}"), NULL),
		ERRID_BROKER_REQUEST);
}

Test(ask_cost, writing_to_the_cache_costs_more_and_reading_less)
{
#define HERE "{\"type\":\"text\",\"text\":\"x\",\"cache_control\":{\"type\":\"ephemeral\""
	const struct ask_tokens t = {.input = 1000000,
				     .cache_read = 300000,
				     .cache_write = 200000,
				     .output = 100000};

	model.context = 0;
	model.max_output = 0;
	cr_assert_eq(judge(PORTAL_ANTHROPIC, MESSAGE("\"x\""), NULL), ERRID_NONE);
	cr_expect_eq(ask_price_input(&cost, &prices, 1000000), 3000000u);
	cr_assert_eq(judge(PORTAL_ANTHROPIC, MESSAGE("[" HERE "}}]"), NULL), ERRID_NONE);
	cr_expect_eq(ask_price_input(&cost, &prices, 1000000), 3750000u);
	/* 0.5 at 3, 0.3 at 0.3, 0.2 at 3.75, 0.1 at 15 */
	cr_expect_eq(ask_price(&prices, &t), 1500000u + 90000 + 750000 + 1500000);
	cr_assert_eq(
		judge(PORTAL_ANTHROPIC, MESSAGE("[" HERE ",\"ttl\":\"1h\"}}]"), NULL),
		ERRID_NONE);
	cr_expect_eq(ask_price_input(&cost, &prices, 1000000), 6000000u);
	cr_assert_eq(judge(PORTAL_OPENAI, MESSAGE("[" HERE ",\"ttl\":\"5m\"}}]"), NULL),
		     ERRID_NONE);
	cr_expect_eq(ask_price_input(&cost, &prices, 1000000), 3750000u);
	cr_assert_eq(judge(PORTAL_OPENAI, MESSAGE("\"x\""), NULL), ERRID_NONE);
	cr_expect_eq(prices.cache_write, 3000000u);
	model.has_cache_write = true;
	model.cache_write_price = 3100000;
	cr_assert_eq(judge(PORTAL_ANTHROPIC, WITH("\"cache_control\":{}"), NULL),
		     ERRID_NONE);
	cr_expect_eq(ask_price_input(&cost, &prices, 1000000), 3100000u);
#undef HERE
}

Test(ask_cost, prices_are_rounded_up_and_never_wrap)
{
	const struct ask_prices p = {.input = 3000000, .output = 15000000};
	const struct ask_prices tiny = {.input = 1},
				huge = {.input = UINT64_MAX, .output = UINT64_MAX};

	cr_expect_eq(ask_price(&p, &(struct ask_tokens){.output = 0}), 0u);
	cr_expect_eq(ask_price(&p, &(struct ask_tokens){.input = 1}), 3u);
	cr_expect_eq(ask_price(&p, &(struct ask_tokens){.input = 1000, .output = 100}),
		     4500u);
	cr_expect_eq(ask_price(&tiny, &(struct ask_tokens){.input = 1}), 1u);
	cr_expect_eq(ask_price(&huge, &(struct ask_tokens){.input = UINT64_MAX >> 1,
							   .output = UINT64_MAX >> 1}),
		     (uint64_t)INT64_MAX);
	/* a provider that says nonsense of its cache is taken at the whole */
	cr_expect_eq(ask_price(&p, &(struct ask_tokens){.input = 10,
							.cache_read = 500,
							.cache_write = 500}),
		     0u);
}
