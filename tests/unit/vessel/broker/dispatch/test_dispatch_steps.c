/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of the dispatcher's steps: each in turn refuses. No later one is called then,
 * what was reserved is settled, and the job is told by the right code.
 */
#include "tests/support/dispatch_double.h"
#include "tests/unit/vessel/broker/dispatch/dispatch_client.h"
#include "vessel/broker/dispatch/dispatch.h"

TestSuite(dispatch_steps, .timeout = 60);

#define UNTIL_GATE "lease ward reserve gate"
#define UNTIL_AUDIT UNTIL_GATE " audit"
#define UNTIL_ACT UNTIL_AUDIT " act"

struct refusal {
	enum step at;
	bool at_once; /* by the function itself, not by its callback */
	enum err_id id;
	const char *status, *trace, *told;
};

static void refused_at(const struct refusal *r)
{
	char code[64];

	double_up();
	w.refuse_at = r->at;
	w.refuse_with = r->id;
	w.at_once = r->at_once;
	send_to("/ask", ASK("m"));
	cr_assert(str_fmt(code, sizeof(code), "\"error_code\":\"%s\"",
			  err_info(r->id)->text) == 0);
	AWAIT(has_got(code));
	cr_expect(has_got(r->status), "%s: %s", code, buf_str(&w.got));
	AWAIT(is_quiet());
	cr_expect_str_eq(traced(), r->trace);
	cr_expect_str_eq(buf_str(&w.told), r->told);
	cr_expect_eq(w.n_sent, 0);
	for (unsigned i = 0; i < BUDGET_THINGS_; i++)
		cr_expect_eq(w.actual.n[i], 0, "%s: nothing was sent", code);
	cr_expect_eq(w.d->fig.reservations_open, 0);
	cr_expect_eq(w.d->fig.refused[r->id], 1);
	double_down();
}

static void all_refused(const struct refusal *r, size_t n)
{
	for (size_t i = 0; i < n; i++)
		refused_at(&r[i]);
}

Test(dispatch_steps, lease_that_does_not_stand_ends_it_at_the_first_step)
{
	static const struct refusal all[] = {
		{LEASE, false, ERRID_RUN_STALE, " 410 ", "lease", "ask.denied"},
		{LEASE, false, ERRID_RUN_DENIED, " 403 ", "lease", "ask.denied"},
		{LEASE, false, ERRID_RUN_DB, " 503 ", "lease", "ask.denied"},
	};

	all_refused(all, ARRAY_SIZE(all));
}

static void refused(const char *path, const char *body, const char *code,
		    const char *trace)
{
	send_to(path, body);
	AWAIT(has_got(code));
	AWAIT(is_quiet());
	cr_expect_str_eq(traced(), trace);
	cr_expect_eq(w.n_sent + w.n_settled, 0);
	buf_reset(&w.trace);
}

Test(dispatch_steps, job_without_this_egress_gets_no_further_than_its_lease)
{
	double_up();
	w.egress = "none";
	refused("/ask", ASK("m"), "LYCH-BROKER-005", "lease denied");
	refused("/fetch", FETCH, "LYCH-BROKER-005", "lease denied");
	double_down();
	double_up();
	refused("/package", "{}", "LYCH-BROKER-021", "lease denied");
	double_down();
	double_up();
	w.egress = "none+deps"; /* packages for its start, nothing else */
	refused("/ask", ASK("m"), "LYCH-BROKER-005", "lease denied");
	refused("/package", "{}", "LYCH-SPEC-", "lease");
	double_down();
}

/* The lease of a job that was seen before stands with the reservation; what is refused
 * sooner is told only to who holds it. */
Test(dispatch_steps, known_job_is_asked_for_its_lease_before_it_learns_anything)
{
	double_up();
	w.refuse_at = WARD;
	w.refuse_with = ERRID_WARD_NOT_ALLOWED;
	refused("/ask", ASK("m"), "LYCH-WARD-001", "lease ward denied");
	refused("/ask", ASK("m"), "LYCH-WARD-001", "ward lease denied");
	refused("/ask", ASK("nobody"), "LYCH-BROKER-004", "lease");
	w.refuse_at = LEASE;
	w.refuse_with = ERRID_RUN_STALE;
	refused("/ask", ASK("nobody"), "LYCH-RUN-003", "lease");
	w.refuse_at = RESERVE;
	refused("/ask", ASK("m"), "LYCH-RUN-003", "ward reserve");
	double_down();
}

/* With nothing that may be under way, nothing may wait for it either. */
Test(dispatch_steps, job_with_too_many_under_way_gets_no_further_than_its_lease)
{
	double_up();
	w.broker.egress.in_flight = 0;
	refused("/ask", ASK("m"), "LYCH-BROKER-006", "lease");
	double_down();
}

Test(dispatch_steps, request_that_cannot_be_read_does_not_come_to_the_ward)
{
	double_up();
	refused("/ask", "", "LYCH-SPEC-001", "lease");
	refused("/ask", "{\"seq\":0}", "LYCH-SPEC-004", "lease");
	refused("/ask", ASK("nobody"), "LYCH-BROKER-004", "lease");
	refused("/fetch", "{\"seq\":1,\"method\":\"GET\",\"url\":\"gopher://a\"}",
		"LYCH-FETCH-001", "lease");
	double_down();
}

#define SAY(dialect, fields)                                                             \
	"{\"seq\":1,\"dialect\":\"" dialect "\",\"stream\":false," fields                \
	"\"request\":{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":"     \
	"\"hi\"}],\"max_tokens\":100}}"

Test(dispatch_steps, version_and_beta_are_judged_again)
{
	static const char *const bad[] = {
		SAY("openai", "\"version\":\"2023-06-01\","),
		SAY("openai", "\"beta\":\"a\","),
		SAY("anthropic", "\"version\":\"2023-06-01 \","),
		SAY("anthropic", "\"version\":\"\","),
		SAY("anthropic", "\"beta\":\"a, b\","),
		SAY("anthropic", "\"beta\":\"a\\r\\nx-api-key: b\","),
		SAY("anthropic", "\"beta\":\"\","),
	};

	double_up();
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		refused("/ask", bad[i], "LYCH-BROKER-002", "lease");
	refused("/ask", SAY("anthropic", "\"beta\":[\"a\"],"), "LYCH-SPEC-", "lease");
	double_down();
}

#define SAY_GEMINI(model)                                                                \
	"{\"seq\":1,\"dialect\":\"gemini\",\"api\":\"generate\",\"stream\":false,"       \
	"\"model\":\"" model "\",\"request\":{\"contents\":[{\"parts\":[{\"text\":"      \
	"\"hi\"}]}]}}"

/* In Gemini's dialect the path named it, in the others the request does. */
Test(dispatch_steps, the_model_is_named_in_one_place)
{
	double_up();
	refused("/ask", SAY("openai", "\"model\":\"m\","), "LYCH-BROKER-002", "lease");
	refused("/ask", SAY("gemini", ""), "LYCH-BROKER-002", "lease");
	refused("/ask", SAY_GEMINI(""), "LYCH-BROKER-002", "lease");
	refused("/ask", SAY_GEMINI("none"), "LYCH-BROKER-004", "lease");
	double_down();
}

/* What a portal has is told to whom the ward lets ask it. */
Test(dispatch_steps, an_api_that_the_portal_has_not_is_refused_behind_the_ward)
{
	static const char other[] =
		"{\"seq\":1,\"dialect\":\"openai\",\"api\":\"messages\",\"stream\":false,"
		"\"request\":{}}";

	double_up();
	refused("/ask", other, "LYCH-BROKER-002", "lease");
	double_portal.lacks = 1u << API_CHAT;
	refused("/ask", SAY("openai", ""), "LYCH-BROKER-009", "ward lease");
	double_portal.lacks = 0;
	refused("/ask", SAY("anthropic", ""), "LYCH-BROKER-009", "ward lease");
	refused("/ask", SAY_GEMINI("m"), "LYCH-BROKER-009", "ward lease");
	double_down();
}

Test(dispatch_steps, version_and_beta_are_scanned_and_sent)
{
	double_up();
	double_portal.kind = PORTAL_ANTHROPIC;
	send_to("/ask",
		SAY("anthropic",
		    "\"version\":\"2024-01-31\",\"beta\":\"effort-2025-11-24,skills\","));
	AWAIT(has_got("completion_tokens"));
	AWAIT(is_quiet());
	cr_expect_eq(w.last_part, GATE_PART_HEADER);
	cr_expect(strstr(buf_str(&w.headers),
			 "anthropic-version: 2024-01-31\nanthropic-beta: "
			 "effort-2025-11-24,skills\n"),
		  "%s", buf_str(&w.headers));
	send_to("/ask", SAY("anthropic", ""));
	AWAIT(has_got("completion_tokens"));
	AWAIT(is_quiet());
	cr_expect_null(strstr(buf_str(&w.headers), "anthropic"));
	double_portal.kind = PORTAL_OPENAI;
	double_down();
}

Test(dispatch_steps, ward_that_refuses_is_the_last_that_is_asked)
{
	static const struct refusal all[] = {
		{WARD, false, ERRID_WARD_NOT_ALLOWED, " 403 ", "lease ward denied",
		 "ask.denied"},
		{WARD, false, ERRID_WARD_RATE, " 429 ", "lease ward", "ask.denied"},
	};

	all_refused(all, ARRAY_SIZE(all));
}

Test(dispatch_steps, budget_that_is_used_up_reserves_and_settles_nothing)
{
	static const struct refusal all[] = {
		{RESERVE, false, ERRID_BUDGET_REQUESTS, " 429 ", "lease ward reserve",
		 "ask.denied"},
		{RESERVE, false, ERRID_BUDGET_DENIALS, " 429 ", "lease ward reserve",
		 "ask.denied"},
		{RESERVE, false, ERRID_BROKER_REPLAY, " 409 ",
		 "lease ward reserve denied", "ask.denied"},
		{RESERVE, false, ERRID_RUN_REVOKED, " 410 ", "lease ward reserve",
		 "ask.denied"},
	};

	all_refused(all, ARRAY_SIZE(all));
}

Test(dispatch_steps, reservation_whose_answer_was_lost_is_settled_with_nothing)
{
	static const struct refusal all[] = {{RESERVE, false, ERRID_RUN_DB, " 503 ",
					      "lease ward reserve settle", "ask.denied"}};

	all_refused(all, ARRAY_SIZE(all));
}

Test(dispatch_steps, gate_that_refuses_or_is_away_gives_the_reservation_back)
{
	static const struct refusal all[] = {
		{GATE, true, ERRID_GATE_AWAY, " 503 ", UNTIL_GATE " settle",
		 "ask.denied"},
		{GATE, false, ERRID_GATE_AWAY, " 503 ", UNTIL_GATE " settle",
		 "ask.denied"},
		{GATE, false, ERRID_GATE_PRIVATE, " 403 ", UNTIL_GATE " denied settle",
		 "ask.denied"},
		{GATE, false, ERRID_GATE_UNREADABLE, " 403 ", UNTIL_GATE " denied settle",
		 "ask.denied"},
	};

	all_refused(all, ARRAY_SIZE(all));
}

Test(dispatch_steps, what_is_not_in_the_log_is_not_sent)
{
	static const struct refusal all[] = {
		{AUDIT, true, ERRID_AUDIT_AWAY, " 503 ", UNTIL_AUDIT " settle",
		 "ask.denied"},
		/* begun to be written: the log says how it ended */
		{AUDIT, false, ERRID_AUDIT_WRITE, " 503 ", UNTIL_AUDIT " settle",
		 "ask.allowed ask.failed"},
	};

	all_refused(all, ARRAY_SIZE(all));
}

Test(dispatch_steps, worker_that_is_not_there_sends_nothing_and_costs_nothing)
{
	static const struct refusal all[] = {
		{ACT, false, ERRID_EGRESS_AWAY, " 503 ", UNTIL_ACT " settle",
		 "ask.allowed ask.failed"},
		{ACT, false, ERRID_EGRESS_BUSY, " 429 ", UNTIL_ACT " settle",
		 "ask.allowed ask.failed"},
	};

	all_refused(all, ARRAY_SIZE(all));
}

/* ---- caps: what comes back is refused ---- */

Test(dispatch_steps, reply_that_is_no_text_is_cut_off_and_counts)
{
	static const struct egress_header html[] = {{"content-type", "text/html"}};
	const struct egress_head head = {.status = 500, .headers = html, .n_headers = 1};

	double_up();
	w.held[ACT] = true;
	send_to("/ask", ASK("m"));
	AWAIT(w.n_sent == 1);
	w.worker->on_head(&head, w.worker_arg);
	AWAIT(has_got("LYCH-EGRESS-009"));
	AWAIT(is_quiet());
	cr_expect_str_eq(traced(), UNTIL_ACT " cancel settle");
	cr_expect_str_eq(buf_str(&w.told), "ask.allowed ask.failed");
	cr_expect_eq(w.actual.n[BUDGET_REQUESTS], 1);
	cr_expect(!has_got("html"));
	double_down();
}

Test(dispatch_steps, page_of_a_fetch_that_is_no_text_is_cut_off_and_counts)
{
	static const struct egress_header bin[] = {{"content-type", "image/png"}};
	const struct egress_head head = {.status = 200, .headers = bin, .n_headers = 1};

	double_up();
	w.held[ACT] = true;
	send_to("/fetch", FETCH);
	AWAIT(w.n_sent == 1);
	w.worker->on_head(&head, w.worker_arg);
	AWAIT(has_got("LYCH-FETCH-006"));
	AWAIT(is_quiet());
	cr_expect_str_eq(traced(), UNTIL_ACT " cancel settle");
	cr_expect_eq(w.actual.n[BUDGET_REQUESTS], 1);
	double_down();
}

/* ---- and when nobody refuses ---- */

/* As the gate's client does: an address of the job becomes <EMAIL_1>. */
static void anonymise(const char *text)
{
	const struct gate_finding f = {.family = GATE_EMAIL,
				       .len = (uint32_t)strlen(text)};
	struct gate_parts *p = gate_parts_new();

	gate_parts_add(p, GATE_PART_TEXT, "body", text, strlen(text));
	cr_assert(gate_job_anonymise(w.gate_job, &f, 1, p, NULL) == 0);
	gate_parts_free(p);
}

static void fetch_says(const char *type, const char *const *pieces, const char *want)
{
	const struct egress_header headers[] = {{"content-type", type}};
	const struct egress_head head = {
		.status = 200, .headers = headers, .n_headers = 1};
	const struct egress_end end = {.bytes_up = 1, .bytes_down = 2, .sent = true};

	double_up();
	w.held[ACT] = true;
	send_to("/fetch", FETCH);
	AWAIT(w.n_sent == 1);
	anonymise("a\"b@corp.de");
	w.worker->on_head(&head, w.worker_arg);
	for (; *pieces; pieces++)
		(void)w.worker->on_body(*pieces, strlen(*pieces), w.worker_arg);
	w.worker->on_end(&end, w.worker_arg);
	AWAIT(has_got("\r\n0\r\n\r\n"));
	cr_expect(has_got(want), "%s: %s", type, buf_str(&w.got));
	AWAIT(is_quiet());
	double_down();
}

Test(dispatch_steps, placeholders_in_a_page_become_what_the_job_had_sent)
{
	static const char *const whole[] = {"to <EMAIL_1>, <EMAIL_2>", NULL};
	static const char *const cut[] = {"to \xe9 <EM", "AIL", "_1> now <EMAIL_1", NULL};
	static const char *const json[] = {"{\"to\":\"\\u003cEMAIL", "_1\\u003e\"}",
					   NULL};
	static const char *const stream[] = {"data: {\"a\":\"<EMAIL_1>\"}\n\n", NULL};

	fetch_says("text/plain", whole, "to a\"b@corp.de, <EMAIL_2>");
	fetch_says("text/html; charset=iso-8859-1", cut, "\r\nto \xc3\xa9 \r\n");
	fetch_says("text/html; charset=iso-8859-1", cut, "a\"b@corp.de now \r\n");
	fetch_says("application/vnd.x+json", json, "a\\\"b@corp.de\"}");
	fetch_says("text/event-stream", stream, "{\"a\":\"a\\\"b@corp.de\"}");
}

/* As what a client sends it back the gate is told of an id that the portal has said. */
static enum gate_part_kind kind_of_id(const char *back)
{
	static const char said[] = "{\"id\":\"chatcmpl-1\",\"choices\":[{\"message\":{"
				   "\"tool_calls\":[{\"id\":\"call_a8ZkQ\"}]}}]}";
	static const struct egress_header json[] = {{"content-type", "application/json"}};
	const struct egress_head head = {.status = 200, .headers = json, .n_headers = 1};
	const struct egress_end end = {.bytes_up = 1, .bytes_down = 2, .sent = true};
	enum gate_part_kind ret;
	char body[512];

	cr_assert(
		str_fmt(body, sizeof(body),
			"{\"seq\":1,\"dialect\":\"openai\",\"stream\":false,"
			"\"request\":{\"max_tokens\":100,\"model\":\"m\",\"messages\":[{"
			"\"role\":\"tool\",\"content\":\"hi\",\"tool_call_id\":\"%s\"}]}"
			"}",
			back) == 0);
	double_up();
	w.held[ACT] = true;
	send_to("/ask", ASK("m"));
	AWAIT(w.n_sent == 1);
	w.worker->on_head(&head, w.worker_arg);
	(void)w.worker->on_body(said, sizeof(said) - 1, w.worker_arg);
	w.worker->on_end(&end, w.worker_arg);
	AWAIT(has_got("\r\n0\r\n\r\n"));
	AWAIT(is_quiet());
	w.held[ACT] = false;
	send_to("/ask", body);
	AWAIT(has_got("completion_tokens"));
	AWAIT(is_quiet());
	ret = w.last_part;
	double_down();
	return ret;
}

Test(dispatch_steps, what_a_portal_issued_is_known_when_it_comes_back)
{
	cr_expect_eq(kind_of_id("call_a8ZkR"), GATE_PART_TEXT);
	cr_expect_eq(kind_of_id("call_a8ZkQ"), GATE_PART_ECHO);
}

Test(dispatch_steps, all_in_their_order_and_then_settled_with_what_it_took)
{
	double_up();
	send_to("/ask", ASK("m"));
	AWAIT(has_got("\r\n0\r\n\r\n"));
	AWAIT(is_quiet());
	cr_expect_str_eq(traced(), UNTIL_ACT " settle");
	cr_expect_str_eq(buf_str(&w.told), "ask.allowed ask.done");
	cr_expect_str_eq(w.target, "/chat/completions");
	cr_expect(w.estimate.n[BUDGET_TOKENS] > 100 &&
		  w.estimate.n[BUDGET_REQUESTS] == 1);
	cr_expect_eq(w.actual.n[BUDGET_REQUESTS], 1);
	cr_expect_eq(w.actual.n[BUDGET_TOKENS], 18);
	cr_expect_eq(w.actual.n[BUDGET_MONEY], 11);
	cr_expect(w.actual.n[BUDGET_BYTES] > 100);
	cr_expect_eq(w.d->fig.reservations_open, 0);
	double_down();
}

Test(dispatch_steps, redirect_goes_all_the_way_again_but_for_the_reservation)
{
	const struct egress_head away = {.status = 302, .location = "/two"};
	const struct egress_head far = {.status = 302,
					.location = "https://b.example.org/"};
	const struct egress_end end = {.bytes_up = 1, .bytes_down = 2, .sent = true};

	double_up();
	w.held[ACT] = true;
	send_to("/fetch", FETCH);
	AWAIT(w.n_sent == 1);
	w.worker->on_head(&away, w.worker_arg);
	AWAIT(w.n_sent == 2);
	cr_expect_str_eq(w.target, "https://a.example.org/two");
	cr_expect_str_eq(traced(), UNTIL_ACT " cancel lease ward gate audit act");
	/* ... and the third is refused by the ward; to the job's books it was one request */
	w.worker->on_head(&far, w.worker_arg);
	w.refuse_at = WARD;
	w.refuse_with = ERRID_WARD_NOT_ALLOWED;
	w.worker->on_end(&end, w.worker_arg);
	AWAIT(has_got("LYCH-WARD-001"));
	AWAIT(is_quiet());
	cr_expect(has_got("a redirect leads to https://b.example.org:443"));
	cr_expect_str_eq(traced(), UNTIL_ACT
			 " cancel lease ward gate audit act lease ward denied settle");
	cr_expect_eq(w.actual.n[BUDGET_REQUESTS], 1);
	cr_expect_str_eq(buf_str(&w.told), "fetch.allowed fetch.allowed fetch.failed");
	double_down();
}

Test(dispatch_steps, denial_is_told_no_sooner_than_its_time)
{
	usec_t began;

	double_up();
	w.refuse_at = WARD;
	w.refuse_with = ERRID_WARD_NOT_ALLOWED;
	began = clock_real.boot_usec(clock_real.ctx);
	send_to("/ask", ASK("m"));
	AWAIT(has_got("LYCH-WARD-001"));
	cr_expect_geq(clock_real.boot_usec(clock_real.ctx) - began,
		      DISPATCH_REFUSAL_USEC);
	double_down();
}
