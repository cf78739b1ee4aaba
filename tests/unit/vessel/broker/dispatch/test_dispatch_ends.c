/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a request ends before its reply does, at each step: the tomb hangs up, the lease
 * ends, the vessel stops, the worker dies. Whatever was reserved is settled once, what may
 * have been sent counts, and nothing goes on afterwards.
 */
#include "tests/support/dispatch_double.h"
#include "tests/unit/vessel/broker/dispatch/dispatch_client.h"
#include "vessel/broker/dispatch/dispatch.h"

TestSuite(dispatch_ends, .timeout = 60);

#define UNTIL_GATE "lease ward reserve gate"
#define UNTIL_AUDIT UNTIL_GATE " audit"
#define UNTIL_ACT UNTIL_AUDIT " act"

/* What was called when the end comes at this step, and what then. */
static const struct {
	enum step at;
	bool in_database; /* its answer is awaited, whatever happens */
	int64_t requests; /* that are booked */
	const char *before, *after;
} ends[] = {
	{LEASE, true, 0, "lease", "lease"},
	{RESERVE, true, 0, "lease ward reserve", "lease ward reserve settle"},
	{GATE, false, 0, UNTIL_GATE, UNTIL_GATE " gate_cancel settle"},
	{AUDIT, false, 0, UNTIL_AUDIT, UNTIL_AUDIT " forget settle"},
	{ACT, false, 1, UNTIL_ACT, UNTIL_ACT " cancel settle"},
};
#define ENDS ARRAY_SIZE(ends)

static void until(size_t i)
{
	double_up();
	w.held[ends[i].at] = true;
	send_to("/ask", ASK("m"));
	AWAIT(str_eq(traced(), ends[i].before));
}

static void over(size_t i)
{
	AWAIT(is_quiet());
	cr_expect_str_eq(traced(), ends[i].after);
	cr_expect_eq(w.actual.n[BUDGET_REQUESTS], ends[i].requests);
	cr_expect_eq(w.n_settled, ends[i].at == LEASE ? 0 : 1);
	cr_expect_eq(w.d->fig.reservations_open, 0);
	if (w.d->jobs)
		cr_expect_eq(w.d->jobs->in_flight, 0);
	double_down();
}

Test(dispatch_ends, tomb_hangs_up)
{
	for (size_t i = 0; i < ENDS; i++) {
		until(i);
		hang_up();
		AWAIT(w.d->fig.gone == 1);
		if (ends[i].in_database) {
			turn(10000);
			cr_expect_str_eq(traced(), ends[i].before);
			release(ends[i].at);
		}
		over(i);
	}
}

Test(dispatch_ends, vessel_stops)
{
	for (size_t i = 0; i < ENDS; i++) {
		until(i);
		dispatch_stop(w.d);
		if (ends[i].in_database)
			release(ends[i].at);
		AWAIT(has_got("LYCH-BROKER-007"));
		over(i);
	}
}

Test(dispatch_ends, nothing_is_begun_once_it_stops)
{
	double_up();
	dispatch_stop(w.d);
	send_to("/ask", ASK("m"));
	AWAIT(has_got("LYCH-BROKER-007"));
	AWAIT(is_quiet());
	cr_expect_str_eq(traced(), "lease");
	double_down();
}

Test(dispatch_ends, lease_ends)
{
	for (size_t i = 1; i < ENDS; i++) { /* of no job yet: its answer says so itself */
		until(i);
		end_lease();
		if (ends[i].in_database)
			release(ends[i].at);
		AWAIT(has_got("LYCH-RUN-003"));
		cr_expect_eq(w.d->fig.revoked, 1);
		over(i);
	}
}

/* An answer that is on its way already when the call is cut must not bring it on. */
Test(dispatch_ends, cut_takes_back_what_is_waited_for_at_once)
{
	for (size_t i = 2; i < ENDS - 1; i++) {
		until(i);
		dispatch_stop(w.d);
		cr_expect(strstr(traced(), ends[i].at == GATE ? "gate_cancel" : "forget"),
			  "%s", traced());
		over(i);
	}
}

Test(dispatch_ends, refused_answer_whose_reader_is_gone_is_no_matter)
{
	double_up();
	w.refuse_at = GATE;
	w.refuse_with = ERRID_GATE_PRIVATE;
	send_to("/ask", ASK("m"));
	AWAIT(strstr(traced(), "denied") != NULL);
	hang_up();
	AWAIT(is_quiet());
	cr_expect_str_eq(traced(), UNTIL_GATE " denied settle");
	double_down();
}

/* The program is wrong: what cannot be happens. It costs that request, and nothing else. */
Test(dispatch_ends, what_cannot_happen_cuts_the_call)
{
	for (size_t i = 0; i < ENDS; i++) {
		until(i);
		dispatch_on(w.d->calls, ON_BEGIN, NULL);
		if (ends[i].in_database)
			release(ends[i].at);
		AWAIT(has_got("LYCH-CORE-001"));
		cr_expect_eq(w.d->fig.refused[ERRID_CORE_INTERNAL], 1);
		over(i);
	}
}

/* ---- the worker ---- */

static void worker_ends(enum err_id id, bool sent, uint64_t up, uint64_t down)
{
	struct err err = ERR_INIT;
	const struct egress_end end = {.err = &err,
				       .reason = REASON_ADDR_PRIVATE,
				       .bytes_up = up,
				       .bytes_down = down,
				       .sent = sent};

	(void)err_set_id(&err, id, "10.0.0.1 said no");
	w.worker->on_end(&end, w.worker_arg);
}

static void head_and(const char *body)
{
	static const struct egress_header json[] = {{"content-type", "application/json"}};
	const struct egress_head head = {.status = 200, .headers = json, .n_headers = 1};

	w.worker->on_head(&head, w.worker_arg);
	cr_expect(w.worker->on_body(body, strlen(body), w.worker_arg));
}

Test(dispatch_ends, worker_dies_before_a_reply)
{
	static const struct {
		enum err_id id;
		bool sent;
		const char *code;
	} all[] = {{ERRID_EGRESS_CONNECT, false, "LYCH-EGRESS-005"},
		   {ERRID_EGRESS_LOST, true, "LYCH-EGRESS-002"}};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		double_up();
		w.held[ACT] = true;
		send_to("/ask", ASK("m"));
		AWAIT(w.n_sent == 1);
		worker_ends(all[i].id, all[i].sent, all[i].sent ? 90 : 0, 0);
		AWAIT(has_got(all[i].code));
		AWAIT(is_quiet());
		cr_expect(!has_got("10.0.0.1"), "the reason is not the job's");
		cr_expect(!has_got("addr_private"));
		cr_expect(strstr(w.last_event, "\"reason\":\"addr_private\""),
			  "it is the log's: %s", w.last_event);
		cr_expect(strstr(w.last_event, "\"cause\":\"10.0.0.1 said no\""),
			  "so is this: %s", w.last_event);
		cr_expect_str_eq(traced(), UNTIL_ACT " settle");
		cr_expect_eq(w.actual.n[BUDGET_REQUESTS], all[i].sent);
		/* nobody knows what the provider counted: the estimate */
		cr_expect_eq(w.actual.n[BUDGET_TOKENS],
			     all[i].sent ? w.estimate.n[BUDGET_TOKENS] : 0);
		cr_expect_eq(w.actual.n[BUDGET_BYTES],
			     all[i].sent ? w.estimate.n[BUDGET_BYTES] : 0);
		cr_expect_str_eq(buf_str(&w.told), "ask.allowed ask.failed");
		double_down();
	}
}

Test(dispatch_ends, worker_dies_in_the_middle_of_a_reply)
{
	double_up();
	w.held[ACT] = true;
	send_to("/ask", ASK("m"));
	AWAIT(w.n_sent == 1);
	head_and("{\"half\":");
	AWAIT(has_got("half"));
	worker_ends(ERRID_EGRESS_LOST, true, 90, 8);
	AWAIT(receive());
	AWAIT(is_quiet());
	cr_expect(!has_got("\r\n0\r\n\r\n"), "its reader sees that it is not whole");
	cr_expect_str_eq(traced(), UNTIL_ACT " settle");
	cr_expect_eq(w.actual.n[BUDGET_REQUESTS], 1);
	/* what it had read beyond that is not known any more */
	cr_expect_eq(w.actual.n[BUDGET_BYTES], w.estimate.n[BUDGET_BYTES]);
	double_down();
}

Test(dispatch_ends, worker_that_ends_without_a_reply_is_broken)
{
	const struct egress_end end = {.bytes_up = 90, .sent = true};

	double_up();
	w.held[ACT] = true;
	send_to("/ask", ASK("m"));
	AWAIT(w.n_sent == 1);
	w.worker->on_end(&end, w.worker_arg);
	AWAIT(has_got("LYCH-EGRESS-009"));
	AWAIT(is_quiet());
	cr_expect_str_eq(traced(), UNTIL_ACT " settle");
	double_down();
}

/* ---- in the middle of the reply ---- */

static void in_the_middle(void)
{
	double_up();
	w.held[ACT] = true;
	send_to("/ask", ASK("m"));
	AWAIT(w.n_sent == 1);
	head_and("{\"half\":");
	AWAIT(has_got("half"));
}

static void cut_off(void)
{
	AWAIT(is_quiet());
	cr_expect_str_eq(traced(), UNTIL_ACT " cancel settle");
	cr_expect_eq(w.n_settled, 1);
	cr_expect_eq(w.actual.n[BUDGET_REQUESTS], 1);
	cr_expect_str_eq(buf_str(&w.told), "ask.allowed ask.failed");
	double_down();
}

Test(dispatch_ends, stream_ends_by_its_reader_its_lease_or_the_vessel)
{
	in_the_middle();
	hang_up();
	cut_off();

	in_the_middle();
	end_lease();
	AWAIT(receive());
	cr_expect(!has_got("\r\n0\r\n\r\n"));
	cut_off();

	in_the_middle();
	dispatch_stop(w.d);
	AWAIT(receive());
	cr_expect(!has_got("\r\n0\r\n\r\n"));
	cut_off();
}

Test(dispatch_ends, reader_that_does_not_read_holds_its_worker_up)
{
	static char piece[65536];
	const struct egress_end end = {.bytes_up = 90, .bytes_down = 1, .sent = true};
	bool goes_on = true;

	memset(piece, ' ', sizeof(piece));
	in_the_middle();
	for (int i = 0; goes_on && i < 100; i++)
		goes_on = w.worker->on_body(piece, sizeof(piece), w.worker_arg);
	cr_expect(!goes_on, "it was not held up");
	cr_expect(!strstr(traced(), "resume"));
	AWAIT(receive() || strstr(traced(), "resume"));
	w.worker->on_end(&end, w.worker_arg);
	AWAIT(has_got("\r\n0\r\n\r\n"));
	AWAIT(is_quiet());
	cr_expect_str_eq(traced(), UNTIL_ACT " resume settle");
	double_down();
}

/* ---- the books ---- */

Test(dispatch_ends, settlement_is_tried_until_the_database_has_it)
{
	double_up();
	w.settle_fails = 2;
	send_to("/ask", ASK("m"));
	AWAIT(has_got("\r\n0\r\n\r\n"));
	AWAIT(!w.d->calls);
	cr_expect_eq(w.d->fig.settles_open, 1);
	AWAIT(is_quiet());
	cr_expect_str_eq(traced(), UNTIL_ACT " settle settle settle");
	cr_expect_eq(w.n_settled, 1);
	cr_expect_eq(w.d->fig.settles_open, 0);
	double_down();
}

Test(dispatch_ends, dispatcher_that_ends_leaves_the_rest_to_the_next_start)
{
	for (size_t i = 2; i < ENDS; i++) {
		until(i);
		httpd_free(w.httpd); /* as the vessel does: listeners first */
		w.httpd = NULL;
		dispatch_free(w.d);
		w.d = NULL;
		cr_expect_eq(w.n_settled, 0);
		cr_expect(!strstr(traced(), "settle"), "%s", traced());
		double_down();
	}
}
