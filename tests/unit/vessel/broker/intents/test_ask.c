/* SPDX-License-Identifier: Apache-2.0 */
/* What of a request to a model passes, and what it is written as. */
#include "common/jsonw.h"
#include "common/str.h"
#include "tests/support/mutate.h"
#include "vessel/broker/intents/ask.h"
#include "vessel/broker/intents/ask_cost.h"
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <string.h>

TestSuite(ask, .timeout = 30);

static struct ask_cost cost;

static enum portal_api talk(enum portal_kind d)
{
	return d == PORTAL_OPENAI ? API_CHAT : API_MESSAGES;
}

static enum err_id read_api(enum portal_api api, bool stream, const char *text,
			    struct ask *ret)
{
	static struct json *j; /* until the next one: ret->model lives in it */
	struct err err = ERR_INIT;

	json_free(j);
	j = NULL;
	cr_assert(json_parse(text, strlen(text), 28, &j, &err) == 0, "%s: %s", text,
		  err.msg);
	return ask_read(j, api, stream, ret, &err) == 0 &&
			       ask_cost_read(j, api, &cost, &err) == 0
		       ? ERRID_NONE
		       : err.id;
}

static enum err_id read_as(enum portal_kind d, bool stream, const char *text,
			   struct ask *ret)
{
	return read_api(talk(d), stream, text, ret);
}

#define M "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]"
#define PARTS(part)                                                                      \
	"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":[" part "]}]}"
#define FAR "https://x.example/"
#define MM "{\"model\":\"m\"," M

struct row {
	char text[400];
	int dialect;
	int want;
};

static void expect_refused(const struct row *r)
{
	struct ask a;

	cr_expect_eq(read_as((enum portal_kind)r->dialect, false, r->text, &a),
		     (enum err_id)r->want, "%s", r->text);
}

ParameterizedTestParameters(ask, what_is_refused)
{
	static struct row rows[] = {
		{"{" M "}", PORTAL_OPENAI, ERRID_BROKER_REQUEST},
		{"{\"model\":\"\"," M "}", PORTAL_OPENAI, ERRID_BROKER_REQUEST},
		{"{\"model\":\"a\\u0007b\"," M "}", PORTAL_OPENAI, ERRID_BROKER_REQUEST},
		{"{\"model\":7," M "}", PORTAL_OPENAI, ERRID_BROKER_REQUEST},
		{"{\"model\":\"m\"}", PORTAL_OPENAI, ERRID_BROKER_REQUEST},
		{"{\"model\":\"m\",\"messages\":[]}", PORTAL_OPENAI,
		 ERRID_BROKER_REQUEST},
		{MM ",\"no_such_key\":1}", PORTAL_OPENAI, ERRID_BROKER_REQUEST},
		{MM ",\"system\":\"x\"}", PORTAL_OPENAI, ERRID_BROKER_REQUEST},
		{MM ",\"n\":0}", PORTAL_OPENAI, ERRID_BROKER_REQUEST},
		{MM ",\"n\":17}", PORTAL_OPENAI, ERRID_BROKER_REQUEST},
		{MM ",\"n\":1.5}", PORTAL_OPENAI, ERRID_BROKER_REQUEST},
		{MM ",\"n\":1}", PORTAL_ANTHROPIC, ERRID_BROKER_REQUEST},
		{MM ",\"max_tokens\":-1}", PORTAL_OPENAI, ERRID_BROKER_REQUEST},
		{MM ",\"max_tokens\":1000001}", PORTAL_OPENAI, ERRID_BROKER_REQUEST},
		{MM ",\"max_tokens\":\"5\"}", PORTAL_ANTHROPIC, ERRID_BROKER_REQUEST},
		{MM ",\"stream\":true}", PORTAL_OPENAI, ERRID_BROKER_REQUEST},
		{MM ",\"stream_options\":{}}", PORTAL_OPENAI, ERRID_BROKER_REQUEST},
		{MM ",\"store\":true}", PORTAL_OPENAI, ERRID_BROKER_FEATURE},
		{MM ",\"web_search_options\":{}}", PORTAL_OPENAI, ERRID_BROKER_FEATURE},
		{MM ",\"mcp_servers\":[{\"url\":\"https://x.example\"}]}",
		 PORTAL_ANTHROPIC, ERRID_BROKER_FEATURE},
		{MM ",\"container\":\"c\"}", PORTAL_ANTHROPIC, ERRID_BROKER_FEATURE},
		{MM ",\"tools\":[{\"type\":\"web_search_20250305\",\"name\":\"w\"}]}",
		 PORTAL_ANTHROPIC, ERRID_BROKER_FEATURE},
		{MM ",\"tools\":[{\"type\":\"web_fetch_20250910\",\"name\":\"w\"}]}",
		 PORTAL_ANTHROPIC, ERRID_BROKER_FEATURE},
		{MM ",\"tools\":[{\"type\":\"file_search\"}]}", PORTAL_OPENAI,
		 ERRID_BROKER_FEATURE},
		{MM ",\"tools\":[{}]}", PORTAL_OPENAI, ERRID_BROKER_FEATURE},
		{MM ",\"tools\":[7]}", PORTAL_OPENAI, ERRID_BROKER_REQUEST},
		{"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":[{"
		 "\"type\":"
		 "\"image_url\",\"image_url\":{\"url\":\"https://x.example/"
		 "?q=secret\"}}]}]}",
		 PORTAL_OPENAI, ERRID_BROKER_FEATURE},
		{"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":[{"
		 "\"type\":"
		 "\"file\",\"file\":{\"file_id\":\"file-1\"}}]}]}",
		 PORTAL_OPENAI, ERRID_BROKER_FEATURE},
		{"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":[{"
		 "\"type\":"
		 "\"image\",\"source\":{\"type\":\"url\",\"url\":\"https://"
		 "x.example\"}}]}]}",
		 PORTAL_ANTHROPIC, ERRID_BROKER_FEATURE},
		{"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":[{"
		 "\"type\":"
		 "\"tool_result\",\"content\":[{\"type\":\"image\",\"source\":{\"type\":"
		 "\"file\",\"file_id\":\"f\"}}]}]}]}",
		 PORTAL_ANTHROPIC, ERRID_BROKER_FEATURE},
		{"{\"model\":\"m\",\"system\":[{\"type\":\"document\",\"source\":{"
		 "\"type\":"
		 "\"url\",\"url\":\"https://x.example\"}}]," M "}",
		 PORTAL_ANTHROPIC, ERRID_BROKER_FEATURE},
	};

	return cr_make_param_array(struct row, rows, ARRAY_SIZE(rows));
}

ParameterizedTest(struct row *r, ask, what_is_refused)
{
	expect_refused(r);
}

ParameterizedTestParameters(ask, what_is_of_another_kind_than_its_place_is_refused)
{
	static struct row rows[] = {
		/* a kind that is not the one of its place */
		{"{\"model\":\"m\",\"messages\":[\"x\"]}", PORTAL_OPENAI,
		 ERRID_BROKER_REQUEST},
		{"{\"model\":\"m\",\"messages\":[1]}", PORTAL_ANTHROPIC,
		 ERRID_BROKER_REQUEST},
		{"{\"model\":\"m\",\"messages\":[null]}", PORTAL_OPENAI,
		 ERRID_BROKER_REQUEST},
		{"{\"model\":\"m\",\"messages\":[[]]}", PORTAL_OPENAI,
		 ERRID_BROKER_REQUEST},
		{"{\"model\":\"m\",\"messages\":{\"role\":\"user\"}}", PORTAL_OPENAI,
		 ERRID_BROKER_REQUEST},
		{PARTS("\"x\""), PORTAL_OPENAI, ERRID_BROKER_REQUEST},
		{PARTS("null"), PORTAL_ANTHROPIC, ERRID_BROKER_REQUEST},
		{PARTS("[]"), PORTAL_ANTHROPIC, ERRID_BROKER_REQUEST},
		{PARTS("{}"), PORTAL_OPENAI, ERRID_BROKER_REQUEST},
		{PARTS("{\"type\":[\"text\"]}"), PORTAL_OPENAI, ERRID_BROKER_REQUEST},
		{PARTS("{\"type\":\"text\",\"text\":{}}"), PORTAL_ANTHROPIC,
		 ERRID_BROKER_REQUEST},
		{"{\"model\":\"m\",\"system\":[\"x\"]," M "}", PORTAL_ANTHROPIC,
		 ERRID_BROKER_REQUEST},
		{MM ",\"tools\":[null]}", PORTAL_ANTHROPIC, ERRID_BROKER_REQUEST},
		{MM ",\"functions\":[\"x\"]}", PORTAL_OPENAI, ERRID_BROKER_REQUEST},
		{MM ",\"prediction\":{\"content\":[1]}}", PORTAL_OPENAI,
		 ERRID_BROKER_REQUEST},
		{"{\"model\":\"m\",\"messages\":[{\"role\":\"a\",\"tool_calls\":[7]}]}",
		 PORTAL_OPENAI, ERRID_BROKER_REQUEST},
	};

	return cr_make_param_array(struct row, rows, ARRAY_SIZE(rows));
}

ParameterizedTest(struct row *r, ask, what_is_of_another_kind_than_its_place_is_refused)
{
	expect_refused(r);
}

static struct row fetched_rows[] = {
	/* a URL that the provider would fetch: under every key and in every form */
	{PARTS("{\"type\":\"image_url\",\"Image_URL\":{\"url\":\"" FAR "\"}}"),
	 PORTAL_OPENAI, ERRID_BROKER_REQUEST},
	{PARTS("{\"type\":\"image_url\",\"image_url\":{\"URL\":\"" FAR "\"}}"),
	 PORTAL_OPENAI, ERRID_BROKER_REQUEST},
	{PARTS("{\"type\":\"text\",\"text\":\"\",\"image_url\":\"" FAR "\"}"),
	 PORTAL_OPENAI, ERRID_BROKER_REQUEST},
	{PARTS("{\"type\":\"image_url\",\"image_url\":\"" FAR "\"}"), PORTAL_OPENAI,
	 ERRID_BROKER_FEATURE},
	{PARTS("{\"type\":\"image_url\",\"image_url\":{\"url\":\" " FAR "\"}}"),
	 PORTAL_OPENAI, ERRID_BROKER_FEATURE},
	{PARTS("{\"type\":\"image_url\",\"image_url\":[\"" FAR "\"]}"), PORTAL_OPENAI,
	 ERRID_BROKER_REQUEST},
	{PARTS("{\"type\":\"image_url\",\"image_url\":{\"url\":[\"" FAR "\"]}}"),
	 PORTAL_OPENAI, ERRID_BROKER_REQUEST},
	{PARTS("{\"type\":\"video\",\"video\":[\"" FAR "\"]}"), PORTAL_OPENAI,
	 ERRID_BROKER_FEATURE},
	{PARTS("{\"type\":\"input_image\",\"image_url\":\"" FAR "\"}"), PORTAL_OPENAI,
	 ERRID_BROKER_FEATURE},
	{PARTS("{\"type\":\"input_file\",\"file_url\":\"" FAR "\"}"), PORTAL_OPENAI,
	 ERRID_BROKER_FEATURE},
	{PARTS("{\"type\":\"document_url\",\"document_url\":\"" FAR "\"}"), PORTAL_OPENAI,
	 ERRID_BROKER_FEATURE},
	{PARTS("{\"type\":\"input_audio\",\"input_audio\":{\"data\":\"" FAR "\"}}"),
	 PORTAL_OPENAI, ERRID_BROKER_FEATURE},
	{PARTS("{\"type\":\"file\",\"file\":{\"file_data\":\"" FAR "\"}}"), PORTAL_OPENAI,
	 ERRID_BROKER_FEATURE},
	{PARTS("{\"type\":\"file\",\"file\":{\"File_ID\":\"file-1\"}}"), PORTAL_OPENAI,
	 ERRID_BROKER_REQUEST},
	{"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"Content\":[]}]}",
	 PORTAL_OPENAI, ERRID_BROKER_REQUEST},
	{"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"images\":[\"" FAR "\"]}]}",
	 PORTAL_OPENAI, ERRID_BROKER_REQUEST},
	{PARTS("{\"type\":\"image\",\"source\":{\"type\":\"URL\",\"url\":\"" FAR "\"}}"),
	 PORTAL_ANTHROPIC, ERRID_BROKER_FEATURE},
	{PARTS("{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"url\":"
	       "\"" FAR "\"}}"),
	 PORTAL_ANTHROPIC, ERRID_BROKER_REQUEST},
	{PARTS("{\"type\":\"image\",\"source\":{\"url\":\"" FAR "\"}}"), PORTAL_ANTHROPIC,
	 ERRID_BROKER_FEATURE},
	{PARTS("{\"type\":\"image\",\"source\":[{\"type\":\"url\"}]}"), PORTAL_ANTHROPIC,
	 ERRID_BROKER_REQUEST},
	{PARTS("{\"type\":\"document\",\"source\":{\"type\":\"content\","
	       "\"content\":"
	       "[{\"type\":\"image\",\"source\":{\"type\":\"url\"}}]}}"),
	 PORTAL_ANTHROPIC, ERRID_BROKER_FEATURE},
	{PARTS("{\"type\":\"container_upload\",\"file_id\":\"f\"}"), PORTAL_ANTHROPIC,
	 ERRID_BROKER_FEATURE},
	{MM ",\"tools\":[{\"type\":\"bash_code_execution\",\"name\":\"b\"}]}",
	 PORTAL_ANTHROPIC, ERRID_BROKER_FEATURE},
	{MM ",\"tools\":[{\"type\":[\"web_search\"],\"name\":\"b\"}]}", PORTAL_ANTHROPIC,
	 ERRID_BROKER_FEATURE},
	{MM ",\"tools\":[{\"type\":\"function\",\"Type\":\"web_search\"}]}",
	 PORTAL_OPENAI, ERRID_BROKER_REQUEST},
};

ParameterizedTestParameters(ask,
			    what_the_provider_would_fetch_is_refused_however_it_is_named)
{
	return cr_make_param_array(struct row, fetched_rows, ARRAY_SIZE(fetched_rows));
}

ParameterizedTest(struct row *r, ask,
		  what_the_provider_would_fetch_is_refused_however_it_is_named)
{
	expect_refused(r);
}

ParameterizedTestParameters(ask, what_passes)
{
	static struct row rows[] = {
		{MM "}", PORTAL_OPENAI, 0},
		{MM ",\"max_tokens\":10,\"n\":3}", PORTAL_OPENAI, 30},
		{MM ",\"max_completion_tokens\":100,\"max_tokens\":null}", PORTAL_OPENAI,
		 100},
		{MM ",\"max_completion_tokens\":100,\"max_tokens\":7}", PORTAL_OPENAI, 7},
		{MM ",\"store\":false,\"temperature\":0.5,\"stop\":[\"x\"],\"seed\":1}",
		 PORTAL_OPENAI, 0},
		{MM ",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\","
		    "\"parameters\":{\"properties\":{\"file_id\":{\"type\":\"string\"}}}}"
		    "}]}",
		 PORTAL_OPENAI, 0},
		{MM ",\"max_tokens\":5,\"tools\":[{\"name\":\"f\",\"input_schema\":{}},"
		    "{\"type\":\"bash_20250124\",\"name\":\"bash\"}]}",
		 PORTAL_ANTHROPIC, 5},
		{"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":[{"
		 "\"type\":"
		 "\"image_url\",\"image_url\":{\"url\":\"data:image/"
		 "png;base64,AA==\"}}]}]}",
		 PORTAL_OPENAI, 0},
		/* what clients send again of an answer, and what they carry themselves */
		{"{\"model\":\"m\",\"messages\":[{\"role\":\"assistant\",\"content\":"
		 "null,"
		 "\"refusal\":null,\"annotations\":[],\"parsed\":{\"url\":\"" FAR "\"},"
		 "\"tool_calls\":[{\"id\":\"c\",\"type\":\"function\",\"function\":{"
		 "\"name\":\"f\",\"arguments\":\"" FAR "\"}}]}]}",
		 PORTAL_OPENAI, 0},
		{PARTS("{\"type\":\"text\",\"text\":\"a\",\"role\":\"assistant\","
		       "\"refusal\":null,\"annotations\":[],\"tool_calls\":[{\"id\":"
		       "\"c\"}]}"),
		 PORTAL_OPENAI, 0},
		{PARTS("{\"type\":\"input_audio\",\"input_audio\":{\"data\":\"AA==\","
		       "\"format\":\"wav\"}},{\"type\":\"file\",\"file\":{\"filename\":"
		       "\"a\",\"file_data\":\"data:a/b;base64,AA==\"}}"),
		 PORTAL_OPENAI, 0},
		{"{\"model\":\"m\",\"max_tokens\":7,\"system\":[{\"type\":\"text\","
		 "\"text\":"
		 "\"" FAR "\",\"cache_control\":{\"type\":\"ephemeral\"}}]," M "}",
		 PORTAL_ANTHROPIC, 7},
		{"{\"model\":\"m\",\"max_tokens\":7,\"messages\":[{\"role\":\"user\","
		 "\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"t\","
		 "\"content\":[{"
		 "\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":"
		 "\"image/png\",\"data\":\"AA==\"}}]}]}]}",
		 PORTAL_ANTHROPIC, 7},
		{"{\"model\":\"m\",\"max_tokens\":7,\"messages\":[{\"role\":"
		 "\"assistant\","
		 "\"content\":[{\"type\":\"tool_use\",\"id\":\"1\",\"name\":\"f\","
		 "\"input\":"
		 "{\"url\":\"https://x.example\",\"source\":{\"type\":\"url\"}}}]}]}",
		 PORTAL_ANTHROPIC, 7},
	};

	return cr_make_param_array(struct row, rows, ARRAY_SIZE(rows));
}

ParameterizedTest(struct row *r, ask, what_passes)
{
	struct ask a = {0};

	cr_assert_eq(read_as((enum portal_kind)r->dialect, false, r->text, &a),
		     ERRID_NONE, "%s", r->text);
	cr_expect_eq(cost.choices * cost.asked, (uint64_t)r->want);
	cr_expect_str_eq(a.model, "m");
}

/* Each value of a request of each dialect in turn: another kind there, in a list, in an
 * object, under another spelling of its key. What is not refused names nothing far. */
Test(ask, each_place_with_each_wrong_value_is_refused_or_harmless)
{
	unsigned n_refused = 0, n_taken = 0;

	for (size_t s = 0; s < ARRAY_SIZE(mutate_seeds); s++) {
		const struct mutate_seed *seed = &mutate_seeds[s];
		enum portal_api api = seed->dialect == MUTATE_OPENAI	  ? API_CHAT
				      : seed->dialect == MUTATE_RESPONSES ? API_RESPONSES
				      : seed->dialect == MUTATE_GEMINI	  ? API_GENERATE
									  : API_MESSAGES;
		struct json *j = NULL;
		struct err err = ERR_INIT;
		bool is_place = seed->dialect != MUTATE_FETCH;

		cr_assert(json_parse(seed->text, strlen(seed->text), 28, &j, &err) == 0,
			  "%s", err.msg);
		for (size_t place = 0; is_place; place++)
			for (unsigned op = 0; op < MUTATE_OPS; op++) {
				cleanup_buf struct buf text;
				struct ask a;

				buf_init(&text, MUTATE_TEXT_MAX);
				is_place = mutate(j, place, op, &text);
				if (!is_place)
					break;
				if (read_api(api, true, buf_str(&text), &a) != ERRID_NONE)
					n_refused++;
				else
					n_taken++;
			}
		json_free(j);
	}
	cr_expect_gt(n_refused, 1000u);
	cr_expect_gt(n_taken, 100u);
}

/* As the dispatcher writes it. */
static const char *written(const char *text, enum portal_kind d, enum portal_cap field)
{
	static struct buf out;
	struct json *j = NULL;
	struct err err = ERR_INIT;
	struct ask a;
	struct jsonw w;

	buf_done(&out);
	buf_init(&out, 65536);
	cr_assert(json_parse(text, strlen(text), 28, &j, &err) == 0);
	cr_assert(ask_read(j, talk(d), strstr(text, "\"stream\":true") != NULL, &a,
			   &err) == 0,
		  "%s", err.msg);
	ask_strip(&a, j);
	jsonw_init(&w, &out);
	json_write(j, &w);
	cr_assert_leq(out.len, strlen(text));
	ask_finish(&a, field, 1000, &out);
	cr_assert_leq(out.len, strlen(text) + ASK_FINISH_BYTES);
	json_free(j);
	return buf_str(&out);
}

Test(ask, usage_of_a_stream_is_asked_for_once)
{
#define S MM ",\"stream\":true"
#define OURS "\"stream_options\":{\"include_usage\":true}"
	static const char want[] = S ",\"max_tokens\":1000," OURS "}";
	struct ask a;

	cr_expect_null(
		strstr(written(MM "}", PORTAL_OPENAI, CAP_MAX_TOKENS), "stream_options"));
	cr_expect_str_eq(written(S "}", PORTAL_OPENAI, CAP_MAX_TOKENS), want);
	cr_expect_str_eq(written(S ",\"stream_options\":{\"include_usage\":false}}",
				 PORTAL_OPENAI, CAP_MAX_TOKENS),
			 want);
	cr_expect_str_eq(written(S "," OURS "}", PORTAL_OPENAI, CAP_MAX_TOKENS),
			 S "," OURS ",\"max_tokens\":1000}");
	cr_expect_eq(read_as(PORTAL_OPENAI, true, S "," OURS "}", &a), ERRID_NONE);
	cr_expect(a.wants_usage);
	/* usage in each event would be believed when the stream is cut */
	cr_expect_eq(read_as(PORTAL_OPENAI, true,
			     S ",\"stream_options\":{\"include_usage\":true,"
			       "\"continuous_usage_stats\":true}}",
			     &a),
		     ERRID_BROKER_REQUEST);
#undef OURS
#undef S
}

Test(ask, the_cap_is_ours_and_stands_there_once)
{
	static const char *const named[] = {
		MM "}", MM ",\"max_tokens\":5}", MM ",\"max_tokens\":null}",
		MM ",\"max_completion_tokens\":5}",
		MM ",\"max_completion_tokens\":5,\"max_tokens\":9}"};

	for (size_t i = 0; i < ARRAY_SIZE(named); i++) {
		cr_expect_str_eq(written(named[i], PORTAL_OPENAI, CAP_MAX_TOKENS),
				 MM ",\"max_tokens\":1000}");
		cr_expect_str_eq(
			written(named[i], PORTAL_OPENAI, CAP_MAX_COMPLETION_TOKENS),
			MM ",\"max_completion_tokens\":1000}");
		if (i < 3) /* Anthropic's has one name, whatever the portal says */
			cr_expect_str_eq(written(named[i], PORTAL_ANTHROPIC,
						 CAP_MAX_COMPLETION_TOKENS),
					 MM ",\"max_tokens\":1000}");
	}
}

static const char *target_of(enum portal_api api, const char *base_path)
{
	const struct ask a = {.api = api,
			      .dialect = portal_api_kind(api),
			      .model = "m",
			      .stream = true};
	static char target[ASK_TARGET_SIZE];
	struct err err = ERR_INIT;

	cr_assert_eq(ask_target(&a, base_path, target, &err), 0, "%s", err.msg);
	return target;
}

Test(ask, targets_of_the_dialects)
{
	cr_expect_str_eq(target_of(API_CHAT, "/v1"), "/chat/completions");
	cr_expect_str_eq(target_of(API_MESSAGES, ""), "/v1/messages");
	cr_expect_str_eq(target_of(API_MESSAGES, "/x/v1"), "/messages");
	cr_expect_str_eq(target_of(API_RESPONSES, "/v1"), "/responses");
	cr_expect_str_eq(target_of(API_EMBEDDINGS, "/v1"), "/embeddings");
	cr_expect_str_eq(target_of(API_COUNT_TOKENS, ""), "/v1/messages/count_tokens");
	cr_expect_str_eq(target_of(API_COUNT_TOKENS, "/v1"), "/messages/count_tokens");
}
