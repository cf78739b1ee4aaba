/* SPDX-License-Identifier: Apache-2.0 */
/* A job is contained while a request of it is under way: that is cut at whatever step, and nobody else's. */
#include "tests/support/dispatch_double.h"
#include "tests/unit/vessel/broker/dispatch/dispatch_client.h"
#include "vessel/broker/dispatch/dispatch.h"

TestSuite(dispatch_cut, .timeout = 60);

static const struct {
	enum step at;
	const char *before;
} steps[] = {
	{LEASE, "lease"},
	{RESERVE, "lease ward reserve"},
	{GATE, "lease ward reserve gate"},
	{AUDIT, "lease ward reserve gate audit"},
	{ACT, "lease ward reserve gate audit act"},
};

Test(dispatch_cut, what_a_contained_job_has_under_way_is_cut_at_each_step)
{
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		job_id_t job;

		double_up();
		w.held[steps[i].at] = true;
		send_to("/ask", ASK("m"));
		AWAIT(str_eq(traced(), steps[i].before));
		job = w.d->calls->lease.job;
		cr_expect_eq(dispatch_cut(w.d, job + 1), 0);
		cr_expect_eq(w.d->fig.revoked, 0);
		cr_expect_leq(dispatch_cut(w.d, job), 1);
		cr_expect_eq(w.d->fig.revoked, 1);
		if (steps[i].at == LEASE || steps[i].at == RESERVE)
			release(steps[i].at);
		AWAIT(has_got("LYCH-RUN-003"));
		AWAIT(is_quiet());
		cr_expect_eq(dispatch_cut(w.d, job), 0);
		cr_expect_eq(w.n_sent, steps[i].at == ACT ? 1 : 0);
		cr_expect_eq(w.d->fig.reservations_open, 0);
		double_down();
	}
}

Test(dispatch_cut, who_has_nothing_under_way_has_nothing_cut)
{
	double_up();
	cr_expect_eq(dispatch_cut(w.d, 1), 0);
	cr_expect_eq(w.d->fig.revoked, 0);
	double_down();
}
