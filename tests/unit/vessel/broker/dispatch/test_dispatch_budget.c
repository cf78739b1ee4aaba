/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the dispatcher reserves, writes into a request and books: the cap is what was
 * granted, what is not known of a reply costs all that was reserved, and no more of it is
 * read than there is room for.
 */
#include "tests/support/dispatch_double.h"
#include "tests/unit/vessel/broker/dispatch/dispatch_client.h"
#include "vessel/broker/dispatch/dispatch.h"

TestSuite(dispatch_budget, .timeout = 60);

#define BODY(more)                                                                       \
	"{\"seq\":1,\"dialect\":\"openai\",\"stream\":false,\"request\":{\"model\":"     \
	"\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]" more "}}"
#define STREAM                                                                           \
	"{\"seq\":1,\"dialect\":\"openai\",\"stream\":true,\"request\":{\"model\":"      \
	"\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],"                   \
	"\"stream\":true,\"max_tokens\":100}}"

static void sent(const char *body, const char *want)
{
	send_to("/ask", body);
	AWAIT(has_got("\r\n0\r\n\r\n"));
	AWAIT(is_quiet());
	cr_expect(strstr(buf_str(&w.sent), want), "%s: %s", body, buf_str(&w.sent));
	cr_expect_eq(strstr(buf_str(&w.sent), "\"max_tokens\""),
		     strrchr(buf_str(&w.sent), ',') + 1, "%s", buf_str(&w.sent));
}

Test(dispatch_budget, what_was_granted_is_written_into_the_request)
{
	double_up();
	sent(BODY(""), ",\"max_tokens\":16384}");
	cr_expect(w.want.least == 16 && w.want.most == 16384);
	sent(BODY(",\"max_tokens\":100"), ",\"max_tokens\":100}");
	sent(BODY(",\"max_completion_tokens\":100,\"max_tokens\":200"),
	     ",\"max_tokens\":100}");
	w.grant = 40;
	sent(BODY(""), ",\"max_tokens\":40}");
	sent(BODY(",\"max_tokens\":100,\"n\":3"), ",\"n\":3,\"max_tokens\":40}");
	cr_expect_eq(w.want.unit.n[BUDGET_TOKENS], 3 * BUDGET_UNIT);
	w.grant = 0;
	double_model.max_output = 70;
	sent(BODY(""), ",\"max_tokens\":70}");
	sent(BODY(",\"max_tokens\":100"), ",\"max_tokens\":70}");
	double_model.max_output = 0;
	double_down();
}

Test(dispatch_budget, no_text_is_reserved_at_less_than_a_token_a_byte)
{
	size_t len = strlen(BODY(""));

	double_up();
	sent(BODY(""), "\"max_tokens\"");
	cr_expect_geq(w.want.base.n[BUDGET_TOKENS], (int64_t)len);
	cr_expect_eq(w.estimate.n[BUDGET_TOKENS], w.want.base.n[BUDGET_TOKENS] + 16384);
	/* a unit of money for a million tokens of input: a token costs one millionth */
	cr_expect_eq(w.want.base.n[BUDGET_MONEY], w.want.base.n[BUDGET_TOKENS]);
	/* sent once, and again as often as it may be tried */
	w.broker.egress.retries = 2;
	sent(BODY(""), "\"max_tokens\"");
	cr_expect_geq(w.want.base.n[BUDGET_BYTES],
		      (int64_t)(3 * len + DISPATCH_ROOM_BYTES));
	double_down();
}

Test(dispatch_budget, a_request_that_would_cost_more_is_not_sent)
{
	double_up();
	send_to("/ask", BODY(",\"service_tier\":\"priority\""));
	AWAIT(has_got("LYCH-BROKER-008"));
	AWAIT(is_quiet());
	send_to("/ask", BODY(",\"prediction\":{\"type\":\"content\",\"content\":\"x\"}"));
	AWAIT(has_got("LYCH-BROKER-008"));
	AWAIT(is_quiet());
	cr_expect_eq(w.n_sent, 0u);
	/* and who may not ask at all does not learn it */
	w.refuse_at = WARD;
	w.refuse_with = ERRID_WARD_NOT_ALLOWED;
	send_to("/ask", BODY(",\"service_tier\":\"priority\""));
	AWAIT(has_got("LYCH-WARD-001"));
	AWAIT(is_quiet());
	double_down();
}

/* ---- what is booked ---- */

static void begin_reply(unsigned status, const char *type, const char *body)
{
	const struct egress_header header = {"content-type", type};
	const struct egress_head head = {
		.status = status, .headers = &header, .n_headers = 1};

	buf_reset(&w.trace);
	w.n_sent = 0;
	w.held[ACT] = true;
	send_to("/ask", STREAM);
	AWAIT(w.n_sent == 1);
	w.worker->on_head(&head, w.worker_arg);
	cr_expect(w.worker->on_body(body, strlen(body), w.worker_arg));
}

static void end_reply(enum err_id id)
{
	struct err err = ERR_INIT;
	const struct egress_end end = {.err = id ? &err : NULL,
				       .bytes_up = 200,
				       .bytes_down = 300,
				       .sent = true};

	if (id)
		(void)err_set_id(&err, id, "why");
	w.worker->on_end(&end, w.worker_arg);
}

static void booked(bool all, int64_t tokens, const char *what)
{
	AWAIT(is_quiet());
	cr_expect_eq(w.actual.n[BUDGET_TOKENS],
		     all ? w.estimate.n[BUDGET_TOKENS] : tokens, "%s: %lld", what,
		     (long long)w.actual.n[BUDGET_TOKENS]);
	if (all)
		cr_expect_eq(w.actual.n[BUDGET_MONEY], w.estimate.n[BUDGET_MONEY], "%s",
			     what);
}

#define SSE "text/event-stream"
#define PIECE "data: {\"choices\":[{\"delta\":{\"content\":\"a word\"}}]}\n\n"
#define USAGE(n)                                                                         \
	"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":11,\"completion_tokens\":" n \
	"}}\n\n"

Test(dispatch_budget, a_stream_without_its_end_costs_all_that_was_reserved)
{
	double_up();
	begin_reply(200, SSE, PIECE PIECE);
	hang_up();
	booked(true, 0, "hung up");
	cr_expect_eq(w.actual.n[BUDGET_BYTES], w.estimate.n[BUDGET_BYTES]);

	/* usage in the middle is what was so far */
	begin_reply(200, SSE, PIECE USAGE("1") PIECE);
	hang_up();
	booked(true, 0, "hung up after a usage");

	begin_reply(200, SSE, PIECE);
	end_reply(ERRID_EGRESS_REPLY);
	booked(true, 0, "broken off");

	begin_reply(200, SSE, PIECE USAGE("1"));
	end_reply(ERRID_EGRESS_TIMEOUT);
	booked(true, 0, "broken off after a usage");

	begin_reply(200, SSE, PIECE);
	end_reply(ERRID_NONE);
	booked(true, 0, "no usage");

	begin_reply(200, SSE, PIECE USAGE("7"));
	end_reply(ERRID_NONE);
	booked(false, 18, "whole");

	begin_reply(200, SSE, PIECE USAGE("700000"));
	hang_up();
	booked(false, 700011, "more than was reserved, and hung up");

	begin_reply(200, SSE, PIECE PIECE PIECE PIECE PIECE PIECE USAGE("2"));
	end_reply(ERRID_NONE);
	booked(true, 0, "less than came");
	double_down();
}

Test(dispatch_budget, an_error_is_free_where_it_is_its_providers)
{
	static const struct {
		unsigned status;
		bool is_free;
	} all[] = {{400, true},	 {401, true},  {408, false}, {429, true},
		   {499, false}, {500, true},  {502, false}, {503, true},
		   {504, false}, {524, false}, {529, true},  {302, false}};

	double_up();
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		begin_reply(all[i].status, "application/json", "{}");
		end_reply(ERRID_NONE);
		booked(!all[i].is_free, 0, "an error");
	}
	double_down();
}

Test(dispatch_budget, a_provider_that_goes_on_beyond_the_cap_is_cut_off)
{
	static char long_piece[16384];

	double_up();
	memset(long_piece, 'x', sizeof(long_piece));
	memcpy(long_piece, "data: {\"content\":\"", 18);
	memcpy(long_piece + sizeof(long_piece) - 5, "\"}\n\n", 5);
	begin_reply(200, SSE, PIECE);
	/* 100 tokens were granted: not one of them has so many letters */
	cr_expect(w.worker->on_body(long_piece, strlen(long_piece), w.worker_arg));
	AWAIT(receive());
	AWAIT(is_quiet());
	cr_expect(!has_got("\r\n0\r\n\r\n"));
	cr_expect(strstr(w.last_event, "LYCH-BUDGET-002"), "%s", w.last_event);
	booked(false, sizeof(long_piece) / 8 - 3, "cut: what came is more");
	double_down();
}

/* ---- room ---- */

#define STEP ((int64_t)1 << 20)

Test(dispatch_budget, room_for_a_reply_grows_as_far_as_there_is_budget)
{
	double_up();
	begin_reply(200, "application/json", "{");
	cr_expect_eq(w.room, DISPATCH_ROOM_BYTES);
	w.worker->on_more(w.worker_arg);
	cr_expect_eq(w.room, DISPATCH_ROOM_BYTES + STEP);
	cr_expect(!w.room_is_last);
	w.worker->on_more(w.worker_arg);
	cr_expect_eq(w.room, DISPATCH_ROOM_BYTES + 2 * STEP + DISPATCH_ROOM_BYTES);
	/* of what it wants then a part is left */
	w.bytes_left = (uint64_t)w.estimate.n[BUDGET_BYTES] + 100;
	w.worker->on_more(w.worker_arg);
	cr_expect_eq(w.room, 2 * DISPATCH_ROOM_BYTES + 2 * STEP + 100);
	cr_expect(w.room_is_last);
	buf_reset(&w.trace);
	w.worker->on_more(w.worker_arg);
	cr_expect_str_eq(traced(), "", "nobody asks again");
	end_reply(ERRID_EGRESS_TOO_LARGE);
	AWAIT(is_quiet());
	cr_expect(strstr(w.last_event, "LYCH-BUDGET-004"), "%s", w.last_event);
	double_down();
}

Test(dispatch_budget, a_reply_that_is_too_large_by_itself_is_none_of_the_budgets)
{
	double_up();
	begin_reply(200, "application/json", "{");
	end_reply(ERRID_EGRESS_TOO_LARGE);
	AWAIT(is_quiet());
	cr_expect(strstr(w.last_event, "LYCH-EGRESS-008"), "%s", w.last_event);
	double_down();
}

Test(dispatch_budget, an_answer_about_room_finds_a_call_that_has_ended)
{
	double_up();
	begin_reply(200, "application/json", "{");
	w.room_held = true;
	w.worker->on_more(w.worker_arg);
	w.worker->on_more(w.worker_arg);
	cr_expect(strstr(traced(), "extend") && !strstr(traced(), "extend extend"));
	hang_up();
	AWAIT(is_quiet());
	buf_reset(&w.trace);
	answer_extend();
	cr_expect_str_eq(traced(), "");
	double_down();
}

Test(dispatch_budget, without_the_database_a_reply_ends_where_its_room_does)
{
	struct err err = ERR_INIT;

	double_up();
	begin_reply(200, "application/json", "{");
	w.room_held = true;
	w.worker->on_more(w.worker_arg);
	(void)err_set_id(&err, ERRID_RUN_DB, "away");
	w.extend_done(0, &err, w.extend_arg);
	cr_expect_eq(w.room, DISPATCH_ROOM_BYTES);
	cr_expect(w.room_is_last);
	end_reply(ERRID_NONE);
	AWAIT(is_quiet());
	double_down();
}

/* ---- a request that grew ---- */

Test(dispatch_budget, what_an_anonymised_request_grew_by_is_taken_from_its_answer)
{
	double_up();
	double_model.output_price = 2000000;
	w.grown = 300;
	sent(BODY(",\"max_tokens\":1000"), ",\"max_tokens\":");
	cr_expect(strstr(buf_str(&w.sent), "xxxx"));
	const char *at = strstr(buf_str(&w.sent), "\"max_tokens\":");
	uint64_t cap = 0, bytes = w.sent.len;
	struct err err = ERR_INIT;
	char text[16] = "";

	memcpy(text, at + 13, strspn(at + 13, "0123456789"));
	cr_assert_eq(parse_u64(text, 1, 1000, &cap, &err), 0, "%s", text);
	cr_expect_lt(cap, 900u);
	cr_expect_geq(w.estimate.n[BUDGET_TOKENS], (int64_t)(bytes + cap));
	buf_reset(&w.told);
	send_to("/ask", BODY(",\"max_tokens\":100"));
	AWAIT(has_got("LYCH-BUDGET-002"));
	AWAIT(is_quiet());
	double_model.output_price = 0;
	double_down();
}
