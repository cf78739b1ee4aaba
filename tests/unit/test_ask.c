/* SPDX-License-Identifier: Apache-2.0 */
/* What of a request to a model passes, and what of its reply is understood. */
#include "common/jsonw.h"
#include "common/str.h"
#include "vessel/ask.h"
#include "vessel/ask_reply.h"
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <string.h>

TestSuite(ask, .timeout = 5);

static enum err_id read_as(enum portal_kind d, bool stream, const char *text,
			   struct ask *ret)
{
	static struct json *j; /* until the next one: ret->model lives in it */
	struct err err = ERR_INIT;

	json_free(j);
	j = NULL;
	cr_assert(json_parse(text, strlen(text), 28, &j, &err) == 0, "%s: %s", text,
		  err.msg);
	return ask_read(j, d, stream, ret, &err) == 0 ? ERRID_NONE : err.id;
}

#define M "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]"
#define MM "{\"model\":\"m\"," M

struct row {
	char text[300];
	int dialect;
	int want;
};

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
	struct ask a;

	cr_expect_eq(read_as((enum portal_kind)r->dialect, false, r->text, &a),
		     (enum err_id)r->want, "%s", r->text);
}

ParameterizedTestParameters(ask, what_passes)
{
	static struct row rows[] = {
		{MM "}", PORTAL_OPENAI, 4096},
		{MM ",\"max_tokens\":10,\"n\":3}", PORTAL_OPENAI, 30},
		{MM ",\"max_completion_tokens\":100,\"max_tokens\":null}", PORTAL_OPENAI,
		 100},
		{MM ",\"store\":false,\"temperature\":0.5,\"stop\":[\"x\"],\"seed\":1}",
		 PORTAL_OPENAI, 4096},
		{MM ",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\","
		    "\"parameters\":{\"properties\":{\"file_id\":{\"type\":\"string\"}}}}"
		    "}]}",
		 PORTAL_OPENAI, 4096},
		{MM ",\"max_tokens\":5,\"tools\":[{\"name\":\"f\",\"input_schema\":{}},"
		    "{\"type\":\"bash_20250124\",\"name\":\"bash\"}]}",
		 PORTAL_ANTHROPIC, 5},
		{"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":[{"
		 "\"type\":"
		 "\"image_url\",\"image_url\":{\"url\":\"data:image/"
		 "png;base64,AA==\"}}]}]}",
		 PORTAL_OPENAI, 4096},
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
	cr_expect_eq(a.max_output, (uint64_t)r->want);
	cr_expect_str_eq(a.model, "m");
}

/* As the dispatcher writes it. */
static const char *written(const char *text, bool *ret_wants)
{
	static struct buf out;
	struct json *j = NULL, *other = NULL;
	struct err err = ERR_INIT;
	struct ask a;
	struct jsonw w;

	buf_done(&out);
	buf_init(&out, 65536);
	cr_assert(json_parse(text, strlen(text), 28, &j, &err) == 0);
	cr_assert(ask_read(j, PORTAL_OPENAI, strstr(text, "\"stream\":true") != NULL, &a,
			   &err) == 0,
		  "%s", err.msg);
	cr_assert(ask_rebuild(&a, j, &other, &err) == 0);
	jsonw_init(&w, &out);
	json_write(other ? other : j, &w);
	ask_finish(&a, &out);
	*ret_wants = a.wants_usage;
	json_free(j);
	json_free(other);
	return buf_str(&out);
}

Test(ask, usage_of_a_stream_is_asked_for_once)
{
	static const char ours[] = "\"stream_options\":{\"include_usage\":true}}";
	bool wants;

	cr_expect_null(strstr(written(MM "}", &wants), "stream_options"));
	cr_expect(strstr(written(MM ",\"stream\":true}", &wants), ours) && !wants);
	cr_expect(
		strstr(written(MM ",\"stream\":true,\"stream_options\":{\"include_usage\""
				  ":false}}",
			       &wants),
		       ours) &&
		!wants);
	const char *got = written(
		MM ",\"stream\":true,\"stream_options\":{\"include_usage\":true}}",
		&wants);
	cr_expect(wants);
	cr_expect_str_eq(got, MM
			 ",\"stream\":true,\"stream_options\":{\"include_usage\":true}}");
}

Test(ask, prices_are_rounded_up_and_never_wrap)
{
	const struct conf_model m = {.input_price = 3000000, .output_price = 15000000};
	const struct conf_model huge = {.input_price = UINT64_MAX,
					.output_price = UINT64_MAX};

	cr_expect_eq(ask_price(&m, 0, 0), 0u);
	cr_expect_eq(ask_price(&m, 1, 0), 3u);
	cr_expect_eq(ask_price(&m, 1000, 100), 4500u);
	cr_expect_eq(ask_price(&(struct conf_model){.input_price = 1}, 1, 0), 1u);
	cr_expect_eq(ask_price(&huge, UINT64_MAX, UINT64_MAX), (uint64_t)INT64_MAX);
	cr_expect_eq(ask_input_estimate(10), 4u);
	cr_expect_str_eq(ask_target(PORTAL_OPENAI, "/v1"), "/chat/completions");
	cr_expect_str_eq(ask_target(PORTAL_ANTHROPIC, ""), "/v1/messages");
	cr_expect_str_eq(ask_target(PORTAL_ANTHROPIC, "/x/v1"), "/messages");
}

/* ---- replies ---- */

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

		cr_expect(u.is_known && u.input == 11 && u.output == 7);
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

	cr_expect(u.is_known && u.output == 2);
	cr_expect_str_eq(buf_str(&out), last);
	u = feed(PORTAL_OPENAI, true, false, CHUNK("a") "data: {\"choi", 7);
	cr_expect_not(u.is_known);
	cr_expect_str_eq(buf_str(&out), CHUNK("a") "data: {\"choi");
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

	cr_expect(!u.is_known && u.input == 15 && u.output == 1);
	(void)snprintf(whole, sizeof(whole), "%s%s", start, delta);
	u = feed(PORTAL_ANTHROPIC, true, false, whole, 9);
	cr_expect(u.is_known && u.input == 15 && u.output == 9);
	cr_expect_str_eq(buf_str(&out), whole);
}

Test(ask, usage_of_a_whole_reply)
{
	struct ask_usage u =
		feed(PORTAL_OPENAI, false, false,
		     "{\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4}}", 8);

	cr_expect(u.is_known && u.input == 3 && u.output == 4);
	u = feed(PORTAL_ANTHROPIC, false, false,
		 "{\"usage\":{\"input_tokens\":3,\"output_tokens\":4}}", 8);
	cr_expect(u.is_known && u.input == 3 && u.output == 4);
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
