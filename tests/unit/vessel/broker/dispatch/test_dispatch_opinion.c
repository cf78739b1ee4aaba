/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The classifier behind the gate: it is asked about what the gate let through, after the log has
 * that, and it can only refuse. Its egress worker is a double too.
 */
#include "tests/support/dispatch_double.h"
#include "tests/unit/vessel/broker/dispatch/dispatch_client.h"
#include "vessel/broker/opinion/opinion.h"

TestSuite(dispatch_opinion, .timeout = 60);

static struct {
	struct opinion *o;
	const struct egress_ops *ops;
	void *arg;
	char body[65536];
	unsigned n;
} k;

static char guard_name[] = "guard", judge_name[] = "judge";
static struct conf_model judge = {.name = judge_name};
static struct conf_portal guard = {.name = guard_name, .model = &judge, .n_models = 1};

static int ask_guard(void *env UNUSED, const struct egress_request *rq,
		     const struct egress_ops *ops, void *arg, struct egress_call **ret,
		     struct err *err UNUSED)
{
	called("opinion");
	cr_assert_str_eq(rq->portal, "guard");
	cr_assert_eq(rq->job, 7);
	cr_assert_lt(rq->body_len, sizeof(k.body));
	memcpy(k.body, rq->body, rq->body_len);
	k.body[rq->body_len] = '\0';
	k.ops = ops;
	k.arg = arg;
	k.n++;
	*ret = (struct egress_call *)&k;
	return 0;
}

static void leave_guard(struct egress_call *c UNUSED)
{
	called("opinion_cancel");
	k.ops = NULL;
}

static void up(void)
{
	double_up();
	dispatch_free(w.d);
	w.broker.gate = (struct conf_gate){.portal_threshold = 0.4,
					   .forbidden_threshold = 0.7,
					   .asks_classifier = true,
					   .classifier_usec = 600 * USEC_PER_SEC,
					   .classifier_max_bytes = 4096};
	k.n = 0;
	k.o = opinion_new(&(struct opinion_config){.loop = w.loop,
						   .rng = &random_real,
						   .classifier = &guard,
						   .gate = &w.broker.gate,
						   .note = &double_note,
						   .start = ask_guard,
						   .cancel = leave_guard});
	const struct dispatch_config cfg = {.loop = w.loop,
					    .clock = &double_clock,
					    .rng = &random_real,
					    .broker = &w.broker,
					    .ops = &double_ops,
					    .note = &double_note,
					    .opinion = k.o};

	w.d = dispatch_new(&cfg);
}

/* The dispatcher goes first, as in the vessel. */
static void down(void)
{
	hang_up();
	httpd_free(TAKE_PTR(w.httpd));
	dispatch_free(TAKE_PTR(w.d));
	opinion_free(k.o);
	double_down();
}

static void says(unsigned status, const char *number)
{
	const struct egress_head head = {.status = status};
	const struct egress_end end = {.sent = true};
	char body[256];

	cr_assert(k.ops);
	cr_assert(str_fmt(body, sizeof(body),
			  "{\"choices\":[{\"message\":{\"content\":\"{\\\"private\\\":%s,"
			  "\\\"why\\\":\\\"secret "
			  "words\\\"}\"},\"finish_reason\":\"stop\"}]}",
			  number) == 0);
	k.ops->on_head(&head, k.arg);
	(void)k.ops->on_body(body, strlen(body), k.arg);
	k.ops->on_end(&end, k.arg);
}

#define UNTIL_OPINION "lease ward reserve gate audit opinion"

static void refused_by(unsigned status, const char *number, const char *code,
		       const char *detail, const char *trace, const char *told)
{
	up();
	send_to("/ask", ASK("m"));
	AWAIT(k.n == 1);
	cr_expect_str_eq(traced(), UNTIL_OPINION);
	says(status, number);
	AWAIT(has_got(code));
	cr_expect(has_got(detail), "%s", buf_str(&w.got));
	cr_expect(!has_got("secret words"));
	AWAIT(is_quiet());
	cr_expect_str_eq(traced(), trace);
	cr_expect_str_eq(buf_str(&w.told), told);
	cr_expect_null(strstr(w.last_event, "secret words"));
	cr_expect_eq(w.n_sent, 0);
	cr_expect_eq(w.actual.n[BUDGET_MONEY] + w.actual.n[BUDGET_REQUESTS], 0);
	down();
}

Test(dispatch_opinion, what_it_takes_for_private_and_what_it_does_not_answer_is_refused)
{
	refused_by(200, "0.93", "LYCH-GATE-001", "score 0.93: opinion",
		   UNTIL_OPINION " denied settle",
		   "opinion.asked opinion.given ask.denied");
	refused_by(200, "0.4", "LYCH-GATE-001", "score 0.40: opinion",
		   UNTIL_OPINION " denied settle",
		   "opinion.asked opinion.given ask.denied");
	refused_by(200, "1.1", "LYCH-CLASSIFIER-001", "no answer",
		   UNTIL_OPINION " settle", "opinion.asked opinion.failed ask.denied");
	refused_by(500, "0", "LYCH-CLASSIFIER-001", "'guard': it answered 500",
		   UNTIL_OPINION " settle", "opinion.asked opinion.failed ask.denied");
}

Test(dispatch_opinion, it_is_not_asked_about_what_the_gate_or_the_log_refused)
{
	up();
	w.refuse_at = GATE;
	w.refuse_with = ERRID_GATE_PRIVATE;
	send_to("/ask", ASK("m"));
	AWAIT(has_got("LYCH-GATE-001"));
	AWAIT(is_quiet());
	cr_expect_str_eq(traced(), "lease ward reserve gate denied settle");
	down();
	up();
	w.refuse_at = AUDIT;
	w.refuse_with = ERRID_AUDIT_AWAY;
	send_to("/ask", ASK("m"));
	AWAIT(has_got(err_info(ERRID_AUDIT_AWAY)->text));
	AWAIT(is_quiet());
	cr_expect_str_eq(traced(), "lease ward reserve gate audit settle");
	down();
	up();
	w.at_once = true;
	w.refuse_at = AUDIT;
	w.refuse_with = ERRID_AUDIT_AWAY;
	send_to("/ask", ASK("m"));
	AWAIT(has_got(err_info(ERRID_AUDIT_AWAY)->text));
	AWAIT(is_quiet());
	cr_expect_eq(k.n, 0);
	down();
}

Test(dispatch_opinion, more_text_than_it_may_be_asked_about_is_refused_before_it_is_asked)
{
	up();
	w.broker.gate.classifier_max_bytes = 8;
	send_to("/ask", ASK("m"));
	AWAIT(has_got("LYCH-CLASSIFIER-002"));
	cr_expect(has_got("gate.classifier_max"));
	AWAIT(is_quiet());
	cr_expect_eq(k.n + w.n_sent, 0);
	down();
}

Test(dispatch_opinion, what_passes_is_what_it_saw_with_the_gates_own_score)
{
	up();
	w.answer.score = 0.25;
	w.grown = 3; /* the gate writes xxx for hi */
	send_to("/ask", ASK("m"));
	AWAIT(k.n == 1);
	cr_expect_not_null(strstr(k.body, "content: xxx"));
	cr_expect_null(strstr(k.body, "content: hi"));
	says(200, "0.1");
	AWAIT(has_got("\"completion_tokens\":7"));
	AWAIT(is_quiet());
	cr_expect_str_eq(traced(), UNTIL_OPINION " audit act settle");
	cr_expect_str_eq(buf_str(&w.told),
			 "opinion.asked opinion.given ask.allowed ask.done");
	cr_expect_not_null(strstr(buf_str(&w.sent), "\"content\":\"xxx\""));
	/* it was judged, and the next turn of the conversation is not asked about */
	buf_reset(&w.trace);
	buf_reset(&w.told);
	send_to("/ask", ASK("m"));
	AWAIT(has_got("\"completion_tokens\":7"));
	AWAIT(is_quiet());
	cr_expect_eq(k.n, 1);
	cr_expect_str_eq(buf_str(&w.told), "ask.allowed ask.done");
	down();
}

Test(dispatch_opinion, the_score_in_the_log_is_the_higher_one)
{
	static const struct {
		double gate;
		const char *opinion, *want;
	} rows[] = {{0.25, "0.1", "\"score\":\"0.250\""},
		    {0.1, "0.375", "\"score\":\"0.375\""}};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		up();
		w.answer.score = rows[i].gate;
		w.held[ACT] = true;
		send_to("/ask", ASK("m"));
		AWAIT(k.n == 1);
		says(200, rows[i].opinion);
		AWAIT(w.n_sent == 1);
		cr_expect(strstr(w.last_event, rows[i].want), "%s", w.last_event);
		release(ACT);
		AWAIT(is_quiet());
		down();
	}
}

Test(dispatch_opinion, a_fetch_is_not_shown_to_it)
{
	up();
	send_to("/fetch", FETCH);
	AWAIT(w.n_sent == 1);
	cr_expect_eq(k.n, 0);
	down();
}

/* Of a job that was granted before, too: what it is shown leaves the vessel. */
Test(dispatch_opinion, lease_and_budget_have_the_first_word)
{
	up();
	send_to("/ask", ASK("m"));
	AWAIT(k.n == 1);
	says(200, "0");
	AWAIT(is_quiet());
	w.refuse_at = RESERVE;
	w.refuse_with = ERRID_RUN_STALE;
	w.grown = 9; /* a text that it was not shown */
	buf_reset(&w.trace);
	send_to("/ask", ASK("m"));
	AWAIT(has_got("LYCH-RUN-003"));
	AWAIT(is_quiet());
	cr_expect_str_eq(traced(), "ward reserve");
	cr_expect_eq(k.n, 1);
	down();
}

/* Hung up, or its lease ended: while the log has it, and while it is asked. */
Test(dispatch_opinion, who_leaves_meanwhile_is_asked_about_no_more)
{
	up();
	w.held[AUDIT] = true;
	send_to("/ask", ASK("m"));
	AWAIT(str_eq(buf_str(&w.told), "opinion.asked"));
	hang_up();
	AWAIT(is_quiet());
	cr_expect_str_eq(traced(), "lease ward reserve gate audit forget settle");
	down();
	up();
	send_to("/ask", ASK("m"));
	AWAIT(k.n == 1);
	end_lease();
	AWAIT(has_got("LYCH-RUN-003"));
	AWAIT(is_quiet());
	cr_expect_str_eq(traced(), UNTIL_OPINION " opinion_cancel settle");
	cr_expect_eq(w.n_sent, 0);
	down();
	up();
	send_to("/ask", ASK("m"));
	AWAIT(k.n == 1);
	down(); /* with one under way */
}
