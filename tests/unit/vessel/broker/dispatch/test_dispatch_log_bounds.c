/* SPDX-License-Identifier: Apache-2.0 */
/* A job that is refused in a loop does not fill the log. */
#include "tests/support/dispatch_double.h"
#include "tests/unit/vessel/broker/dispatch/dispatch_client.h"
#include "vessel/broker/dispatch/dispatch.h"

TestSuite(dispatch_log_bounds, .timeout = 120);

static unsigned count(const char *event)
{
	unsigned n = 0;

	for (const char *s = buf_str(&w.told); (s = strstr(s, event)); s++)
		n++;
	return n;
}

static void refused(enum step at, enum err_id id, unsigned n)
{
	unsigned before = (unsigned)w.d->fig.refused[id];

	w.refuse_at = at;
	w.refuse_with = id;
	for (unsigned i = 0; i < n; i++) {
		send_to("/ask", ASK("m"));
		AWAIT(w.d->fig.refused[id] == before + i + 1 && is_quiet());
	}
}

static void number_is(const char *event, const char *number)
{
	cr_expect(str_starts(w.last_event, event), "%s", w.last_event);
	cr_expect(strstr(w.last_event, number), "%s", w.last_event);
}

Test(dispatch_log_bounds, after_so_many_refusals_there_is_a_number_a_minute)
{
	double_up();
	dispatch_owned(w.d);
	refused(RESERVE, ERRID_BUDGET_REQUESTS, DISPATCH_LOGGED_MAX + 44);
	cr_expect_eq(count("ask.denied"), DISPATCH_LOGGED_MAX);
	cr_expect_eq(count("broker.refusals"), 0, "a minute has not gone");
	w.ahead += DISPATCH_UNLOGGED_USEC;
	AWAIT(count("broker.refusals") == 1);
	number_is("broker.refusals ", "\"not_told_one_by_one\":44,");
	number_is("broker.refusals ", "\"last_error_code\":\"LYCH-BUDGET-001\"");
	w.ahead += 2 * DISPATCH_UNLOGGED_USEC;
	turn(1500000); /* there is nothing to tell */
	cr_expect_eq(count("broker.refusals"), 1);
	/* what has come since is told at the end */
	refused(RESERVE, ERRID_BUDGET_TOKENS, 3);
	cr_expect_eq(count("ask.denied"), DISPATCH_LOGGED_MAX);
	dispatch_stop(w.d);
	cr_expect_eq(count("broker.refusals"), 2);
	number_is("broker.refusals ", "\"not_told_one_by_one\":3,");
	double_down();
}

Test(dispatch_log_bounds, denials_and_other_refusals_are_one_number)
{
	double_up();
	refused(WARD, ERRID_WARD_RATE, DISPATCH_LOGGED_MAX - 1);
	refused(WARD, ERRID_WARD_NOT_ALLOWED, 21);
	cr_expect_eq(count("ask.denied"), DISPATCH_LOGGED_MAX);
	cr_expect_eq(count("detection.denials"), 1, "the signal is its own");
	dispatch_stop(w.d);
	number_is("broker.refusals ", "\"not_told_one_by_one\":20,");
	double_down();
}

Test(dispatch_log_bounds, requests_with_no_lease_share_one_number)
{
	double_up();
	refused(LEASE, ERRID_RUN_STALE, DISPATCH_LOGGED_MAX + 5);
	cr_expect_eq(count("ask.denied"), DISPATCH_LOGGED_MAX);
	dispatch_stop(w.d);
	number_is("broker.refusals ", "\"not_told_one_by_one\":5,");
	double_down();
}

Test(dispatch_log_bounds, canaries_are_told_one_by_one_and_then_as_a_number)
{
	double_up();
	w.answer.has_canary = true;
	refused(GATE, ERRID_GATE_AWAY, DISPATCH_LOGGED_MAX + 2);
	cr_expect_eq(count("detection.canary"), DISPATCH_LOGGED_MAX);
	dispatch_stop(w.d);
	cr_expect_eq(count("detection.canaries"), 1);
	number_is("detection.canaries ", "\"not_told_one_by_one\":2,");
	double_down();
}
