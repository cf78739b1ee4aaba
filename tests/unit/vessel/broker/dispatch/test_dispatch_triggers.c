/* SPDX-License-Identifier: Apache-2.0 */
/* What a job does that is a signal: it is told once, before its trigger is pulled, and not at all where it is off. */
#include "tests/support/dispatch_double.h"
#include "tests/unit/vessel/broker/dispatch/dispatch_client.h"
#include "vessel/broker/dispatch/dispatch.h"

TestSuite(dispatch_triggers, .timeout = 120);

static void refused(unsigned n)
{
	unsigned before = (unsigned)w.d->fig.denials;

	w.refuse_at = WARD;
	w.refuse_with = ERRID_WARD_NOT_ALLOWED;
	for (unsigned i = 0; i < n; i++) {
		send_to("/ask", ASK("m"));
		AWAIT(w.d->fig.denials == before + i + 1 && is_quiet());
	}
}

static bool told(const char *event)
{
	return strstr(buf_str(&w.told), event) != NULL;
}

static void up(enum trigger_act act, unsigned denials, usec_t within)
{
	double_up();
	w.broker.containment.act[TRIGGER_DENIALS] = act;
	w.broker.containment.denials = denials;
	w.broker.containment.denials_within_usec = within;
}

Test(dispatch_triggers, so_many_denials_in_such_a_time_pull_theirs_once)
{
	for (unsigned n = CONF_DENIALS_MIN; n <= CONF_DENIALS_MAX; n += 49) {
		cleanup_free char *want =
			xasprintf("denials: %u refusals within 600 s\n", n);

		up(TRIGGER_CONTAIN, n, 600 * USEC_PER_SEC);
		refused(n - 1);
		cr_expect_not(told("detection.denials"), "%u", n);
		cr_expect_str_eq(buf_str(&w.pulled), "");
		refused(1);
		cr_expect(told("detection.denials"), "%u", n);
		cr_expect_str_eq(buf_str(&w.pulled), want);
		refused(n);
		cr_expect_str_eq(buf_str(&w.pulled), want, "once in that time");
		w.ahead += 601 * USEC_PER_SEC;
		refused(n);
		cr_expect_eq(w.d->fig.signals, 2);
		double_down();
	}
}

Test(dispatch_triggers, denials_that_are_further_apart_are_none)
{
	up(TRIGGER_SIGNAL, 3, 10 * USEC_PER_SEC);
	for (unsigned i = 0; i < 12; i++) {
		refused(1);
		w.ahead += 6 * USEC_PER_SEC;
	}
	cr_expect_str_eq(buf_str(&w.pulled), "");
	cr_expect_not(told("detection.denials"));
	double_down();
}

static void asked(bool is_planted, bool is_replaced)
{
	w.answer.has_planted = is_planted;
	w.answer.is_planted_replaced = is_replaced;
	w.refuse_at = is_replaced ? STEPS : GATE;
	w.refuse_with = ERRID_GATE_PRIVATE;
	w.gate_job = NULL;
	send_to("/ask", ASK("m"));
	AWAIT(w.gate_job != NULL && w.parts == NULL && is_quiet());
}

Test(dispatch_triggers, what_was_planted_pulls_its_own_once)
{
	static const char once[] =
		"canary: what was planted in it was in a request to portal:main\n";

	up(TRIGGER_SIGNAL, 50, USEC_PER_SEC);
	w.broker.containment.act[TRIGGER_CANARY] = TRIGGER_CONTAIN;
	asked(true, true);
	cr_expect(told("detection.canary"), "it is told that it was replaced");
	cr_expect_str_eq(buf_str(&w.pulled), "", "which went nowhere");
	asked(false, false);
	cr_expect_str_eq(buf_str(&w.pulled), "");
	asked(true, false);
	cr_expect_str_eq(buf_str(&w.pulled), once);
	asked(true, false);
	cr_expect_str_eq(buf_str(&w.pulled), once);
	cr_expect_eq(w.d->fig.signals, 1);
	cr_expect_eq(w.d->fig.canaries, 3);
	double_down();
}

static unsigned times_told(const char *event)
{
	unsigned n = 0;

	for (const char *s = buf_str(&w.told); (s = strstr(s, event)); s++)
		n++;
	return n;
}

Test(dispatch_triggers, what_pulled_it_is_told_however_much_was_replaced_before)
{
	up(TRIGGER_SIGNAL, 50, USEC_PER_SEC);
	w.broker.containment.act[TRIGGER_CANARY] = TRIGGER_CONTAIN;
	for (unsigned i = 0; i < DISPATCH_LOGGED_MAX + 3; i++)
		asked(true, true);
	cr_expect_eq(times_told("detection.canary"), DISPATCH_LOGGED_MAX);
	asked(true, false);
	cr_expect_eq(times_told("detection.canary"), DISPATCH_LOGGED_MAX + 1);
	asked(true, false);
	cr_expect_eq(times_told("detection.canary"), DISPATCH_LOGGED_MAX + 1);
	double_down();
}

Test(dispatch_triggers, it_is_one_word_more_that_the_gate_looks_for_whatever_comes_of_it)
{
	for (unsigned act = 0; act < TRIGGER_ACT_MAX_; act++) {
		struct gate_input in = {0};

		up(TRIGGER_SIGNAL, 50, USEC_PER_SEC);
		w.broker.containment.act[TRIGGER_CANARY] = (enum trigger_act)act;
		asked(false, true);
		gate_job_fill(w.gate_job, "fetch", &in);
		cr_expect_eq(in.n_canaries, 2, "%u", act);
		cr_expect_not(in.canaries[0].is_planted);
		double_down();
	}
}

Test(dispatch_triggers, what_is_off_is_not_told_either)
{
	up(TRIGGER_OFF, 2, 600 * USEC_PER_SEC);
	w.broker.containment.act[TRIGGER_CANARY] = TRIGGER_OFF;
	refused(10);
	asked(true, true);
	asked(true, false);
	cr_expect_str_eq(buf_str(&w.pulled), "");
	cr_expect_not(told("detection.denials"));
	cr_expect_not(told("detection.canary"));
	cr_expect_eq(w.d->fig.signals, 0);
	cr_expect_eq(w.d->fig.denials, 11, "the books count them all the same");
	double_down();
}
