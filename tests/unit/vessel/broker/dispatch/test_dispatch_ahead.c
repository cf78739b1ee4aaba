/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job whose last reservation was granted: gate and log work while the next one is under
 * way. Whatever comes first, nothing is sent before all three have said yes; the budget's
 * word is listened to before the gate's; and who was refused goes one step at a time again.
 */
#include "tests/support/dispatch_double.h"
#include "tests/unit/vessel/broker/dispatch/dispatch_client.h"
#include "vessel/broker/dispatch/dispatch.h"

TestSuite(dispatch_ahead, .timeout = 60);

#define UNTIL_GATE "ward gate reserve"
#define UNTIL_AUDIT UNTIL_GATE " audit"

static void forget_the_past(void)
{
	buf_reset(&w.trace);
	buf_reset(&w.told);
	w.n_sent = w.n_settled = 0;
}

/* A job that was granted its first request. */
static void granted_up(void)
{
	double_up();
	send_to("/ask", ASK("m"));
	AWAIT(has_got("\r\n0\r\n\r\n"));
	AWAIT(is_quiet());
	cr_assert_str_eq(traced(), "lease ward reserve gate audit act settle");
	forget_the_past();
}

/* The steps in held wait; the request came as far as trace says, and no further. */
static void comes_until(const char *trace)
{
	send_to("/ask", ASK("m"));
	AWAIT(str_eq(traced(), trace));
	turn(10000);
	cr_expect_str_eq(traced(), trace);
	cr_expect_eq(w.n_sent, 0);
}

static void goes_on(const char *rest)
{
	char all[256];

	cr_assert(str_fmt(all, sizeof(all), UNTIL_GATE "%s act settle", rest) == 0);
	AWAIT(has_got("\r\n0\r\n\r\n"));
	AWAIT(is_quiet());
	cr_expect_str_eq(traced(), all);
	cr_expect_str_eq(buf_str(&w.told), "ask.allowed ask.done");
	cr_expect_eq(w.n_sent, 1);
	cr_expect_eq(w.n_settled, 1);
	cr_expect_eq(w.d->fig.reservations_open, 0);
	double_down();
}

Test(dispatch_ahead, nothing_is_sent_before_it_is_reserved)
{
	granted_up();
	w.held[RESERVE] = true;
	comes_until(UNTIL_AUDIT);
	cr_expect_str_eq(buf_str(&w.told), "ask.allowed");
	release(RESERVE);
	goes_on(" audit");
}

Test(dispatch_ahead, nothing_is_sent_before_it_is_in_the_log)
{
	granted_up();
	w.held[AUDIT] = true;
	comes_until(UNTIL_AUDIT);
	release(AUDIT);
	goes_on(" audit");
}

Test(dispatch_ahead, nothing_is_logged_or_sent_before_the_gate_has_read_it)
{
	granted_up();
	w.held[GATE] = true;
	comes_until(UNTIL_GATE);
	cr_expect_str_eq(buf_str(&w.told), "");
	release(GATE);
	goes_on(" audit");
}

static void is_refused(const char *code, const char *trace, const char *told)
{
	AWAIT(has_got(code));
	AWAIT(is_quiet());
	cr_expect_str_eq(traced(), trace);
	cr_expect_str_eq(buf_str(&w.told), told);
	cr_expect_eq(w.n_sent, 0);
	cr_expect_eq(w.d->fig.reservations_open, 0);
	for (unsigned i = 0; w.n_settled && i < BUDGET_THINGS_; i++)
		cr_expect_eq(w.actual.n[i], 0);
	forget_the_past();
}

static void budget_refuses_with(enum err_id id)
{
	w.refuse_at = RESERVE;
	w.refuse_with = id;
}

Test(dispatch_ahead, budget_that_is_used_up_ends_it_wherever_it_is)
{
	static const struct {
		enum step held;
		const char *trace, *told;
	} all[] = {
		{GATE, UNTIL_GATE " gate_cancel", "ask.denied"},
		{AUDIT, UNTIL_AUDIT " forget", "ask.allowed ask.denied"},
		{STEPS, UNTIL_AUDIT, "ask.allowed ask.denied"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		granted_up();
		w.held[RESERVE] = true;
		if (all[i].held < STEPS)
			w.held[all[i].held] = true;
		comes_until(all[i].held == GATE ? UNTIL_GATE : UNTIL_AUDIT);
		budget_refuses_with(ERRID_BUDGET_REQUESTS);
		release(RESERVE);
		is_refused("LYCH-BUDGET-001", all[i].trace, all[i].told);
		cr_expect_eq(w.d->fig.target[0].n[VERDICT_REFUSED], 1);
		cr_expect_eq(w.d->fig.target[0].n[VERDICT_FAILED], 0);
		double_down();
	}
}

/* Else who may ask nothing more would keep gate and log busy, and fill the disk. */
Test(dispatch_ahead, who_was_refused_goes_one_step_at_a_time)
{
	granted_up();
	budget_refuses_with(ERRID_BUDGET_TOKENS);
	send_to("/ask", ASK("m"));
	AWAIT(has_got("LYCH-BUDGET-002"));
	AWAIT(is_quiet());
	forget_the_past();
	for (int i = 0; i < 3; i++) {
		send_to("/ask", ASK("m"));
		is_refused("LYCH-BUDGET-002", "ward reserve", "ask.denied");
	}
	w.refuse_at = STEPS;
	send_to("/ask", ASK("m"));
	AWAIT(has_got("\r\n0\r\n\r\n"));
	AWAIT(is_quiet());
	cr_expect_str_eq(traced(), "ward reserve gate audit act settle");
	forget_the_past();
	send_to("/ask", ASK("m"));
	goes_on(" audit");
}

/* What the gate or the log says is told only to a job whose lease stands. */
Test(dispatch_ahead, budget_and_lease_have_the_first_word)
{
	static const struct {
		enum step at;
		bool at_once;
		enum err_id id;
		const char *code, *until, *told;
	} all[] = {
		{GATE, false, ERRID_GATE_PRIVATE, "LYCH-GATE-001", UNTIL_GATE,
		 "ask.denied"},
		{GATE, true, ERRID_GATE_AWAY, "LYCH-GATE-002", UNTIL_GATE, "ask.denied"},
		{AUDIT, true, ERRID_AUDIT_AWAY, "LYCH-AUDIT-", UNTIL_AUDIT, "ask.denied"},
		{AUDIT, false, ERRID_AUDIT_WRITE, "LYCH-AUDIT-", UNTIL_AUDIT,
		 "ask.allowed"},
	};

	for (size_t i = 0; i < 2 * ARRAY_SIZE(all); i++) {
		size_t k = i / 2;
		bool is_stale = i % 2 == 0;
		char told[64], trace[128];

		granted_up();
		w.held[RESERVE] = true;
		w.refuse_at = all[k].at;
		w.refuse_with = all[k].id;
		w.at_once = all[k].at_once;
		comes_until(all[k].until);
		cr_expect(!has_got("LYCH-"));
		if (is_stale)
			budget_refuses_with(ERRID_RUN_STALE);
		release(RESERVE);
		/* begun in the log: it also says how it ended */
		cr_assert(str_fmt(told, sizeof(told), "%s%s", all[k].told,
				  str_eq(all[k].told, "ask.denied") ? ""
				  : is_stale			    ? " ask.denied"
					     : " ask.failed") == 0);
		cr_assert(str_fmt(trace, sizeof(trace), "%s%s%s", all[k].until,
				  !is_stale && all[k].id == ERRID_GATE_PRIVATE ? " denied"
									       : "",
				  is_stale ? "" : " settle") == 0);
		is_refused(is_stale ? "LYCH-RUN-003" : all[k].code, trace, told);
		double_down();
	}
}

/* How far gate and log are when the request's end comes. */
static const struct {
	enum step held;
	const char *until, *after;
} ends[] = {
	{GATE, UNTIL_GATE, UNTIL_GATE " gate_cancel settle"},
	{AUDIT, UNTIL_AUDIT, UNTIL_AUDIT " forget settle"},
	{STEPS, UNTIL_AUDIT, UNTIL_AUDIT " settle"},
};

static void tomb_hangs_up(void)
{
	hang_up();
	AWAIT(w.d->fig.gone == 1);
}

static void vessel_stops(void)
{
	dispatch_stop(w.d);
}

Test(dispatch_ahead, nothing_goes_on_after_its_end)
{
	static void (*const all[])(void) = {tomb_hangs_up, end_lease, vessel_stops};

	for (size_t i = 0; i < ARRAY_SIZE(all) * ARRAY_SIZE(ends); i++) {
		size_t k = i % ARRAY_SIZE(ends);

		granted_up();
		w.held[RESERVE] = true;
		if (ends[k].held < STEPS)
			w.held[ends[k].held] = true;
		comes_until(ends[k].until);
		all[i / ARRAY_SIZE(ends)]();
		turn(10000);
		cr_expect_eq(w.n_settled, 0, "its reservation may still be granted");
		release(RESERVE);
		AWAIT(is_quiet());
		cr_expect_str_eq(traced(), ends[k].after);
		cr_expect_eq(w.n_sent, 0);
		cr_expect_eq(w.n_settled, 1);
		cr_expect_eq(w.actual.n[BUDGET_REQUESTS], 0);
		double_down();
	}
}

Test(dispatch_ahead, nothing_is_begun_once_the_vessel_stops)
{
	granted_up();
	dispatch_stop(w.d);
	w.held[GATE] = true;
	send_to("/ask", ASK("m"));
	AWAIT(has_got("LYCH-BROKER-007"));
	AWAIT(is_quiet());
	cr_expect_str_eq(traced(), UNTIL_GATE " gate_cancel settle");
	cr_expect_eq(w.n_sent, 0);
	double_down();
}
