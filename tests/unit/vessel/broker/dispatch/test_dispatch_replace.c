/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other rules while a request is under way: at each step it is judged again, and cut where they would not
 * permit it, or not with what it was given. What no rule has permitted yet meets them at its own turn.
 */
#include "tests/support/dispatch_double.h"
#include "tests/unit/vessel/broker/dispatch/dispatch_client.h"
#include "vessel/broker/dispatch/dispatch.h"

TestSuite(dispatch_replace, .timeout = 60);

static char file_host[] = "a.example.org", first_address[] = "10.0.0.1",
	    second_address[] = "10.0.0.2";
static char *addresses[] = {first_address, second_address};
static struct conf_rule ask = {
	.target = WARD_PORTAL, .action = WARD_ALLOW, .name = portal_name};
static struct conf_rule fetch = {
	.target = WARD_HOST, .action = WARD_ALLOW, .name = file_host};
static struct dispatch_ops ops;
static uint64_t cut_before;
static bool is_old_there; /* when the new ones came, nothing was judged yet */

static int judge(void *env UNUSED, const struct ward_ask *a, struct ward_verdict *ret,
		 unsigned *ret_retry_sec, struct err *err)
{
	called("ward");
	*ret_retry_sec = 0;
	return ward_decide(&w.broker, a, ret, err);
}

static void replace(void *env UNUSED, struct conf_broker *next)
{
	is_old_there = w.d->fig.outlawed == cut_before;
	w.broker.rule = next->rule;
	w.broker.n_rules = next->n_rules;
}

static void up(struct conf_rule *rules, size_t n)
{
	double_up();
	ops = double_ops;
	ops.ward = judge;
	ops.replace = replace;
	w.d->ops = &ops;
	w.broker.rule = rules;
	w.broker.n_rules = n;
}

static unsigned now(struct conf_rule *rules, size_t n)
{
	struct conf_broker next = w.broker;
	unsigned cut;

	cut_before = w.d->fig.outlawed;
	next.rule = rules;
	next.n_rules = n;
	cut = dispatch_replace_ward(w.d, &next);
	cr_expect(is_old_there, "the rules come before the judgement");
	return cut;
}

/* Of those that are under way: where it is held, and what was called until then. */
static const struct {
	enum step at;
	const char *before;
} steps[] = {
	{RESERVE, "lease ward reserve"},
	{GATE, "lease ward reserve gate"},
	{AUDIT, "lease ward reserve gate audit"},
	{ACT, "lease ward reserve gate audit act"},
};

static void until(size_t i, const char *path, const char *body)
{
	w.held[steps[i].at] = true;
	send_to(path, body);
	AWAIT(str_eq(traced(), steps[i].before));
}

static void over(void)
{
	AWAIT(is_quiet());
	cr_expect_eq(w.n_settled, 1);
	cr_expect_eq(w.d->fig.reservations_open, 0);
	double_down();
}

Test(dispatch_replace, what_they_do_not_permit_is_cut_at_each_step)
{
	struct conf_rule denying[] = {ask, ask};

	denying[1].action = WARD_DENY;
	for (size_t i = 0; i < ARRAY_SIZE(steps) * 2; i++) {
		size_t at = i / 2;

		up(&ask, 1);
		until(at, "/ask", ASK("m"));
		/* no rule at all, or one that denies beside the one that was there */
		cr_expect_eq(i % 2 ? now(denying, 2) : now(NULL, 0), 1);
		cr_expect_eq(w.d->fig.outlawed, 1);
		if (steps[at].at == RESERVE)
			release(RESERVE);
		AWAIT(has_got("LYCH-WARD-009"));
		cr_expect(has_got("HTTP/1.1 410 "));
		cr_expect_eq(w.n_sent, steps[at].at == ACT ? 1 : 0);
		/* cut once */
		cr_expect_eq(now(NULL, 0), 0);
		over();
	}
}

static void cut_fetch(struct conf_rule *was, struct conf_rule *is)
{
	up(was, 1);
	until(3, "/fetch", FETCH);
	cr_expect_eq(now(is, 1), 1);
	AWAIT(has_got("LYCH-WARD-009"));
	cr_expect_eq(w.d->fig.outlawed, 1);
	over();
}

/* Permitted it is by either; with the key, or to the addresses, by the first one alone. */
Test(dispatch_replace, what_a_rule_gave_has_to_be_given_still)
{
	struct conf_rule key = fetch, near = fetch, nearer = fetch, bytes = fetch;

	key.credential = portal_name;
	near.addresses = (struct conf_addresses){.v = addresses, .n = 2};
	nearer.addresses = (struct conf_addresses){.v = addresses + 1, .n = 1};
	bytes.replies = WARD_BINARY;
	cut_fetch(&key, &fetch);
	cut_fetch(&bytes, &fetch);
	cut_fetch(&near, &fetch);
	cut_fetch(&near, &nearer);
}

Test(dispatch_replace, what_is_not_permitted_yet_meets_the_new_ones)
{
	up(&ask, 1);
	w.held[LEASE] = true;
	send_to("/ask", ASK("m"));
	AWAIT(str_eq(traced(), "lease"));
	cr_expect_eq(now(NULL, 0), 0);
	cr_expect_eq(w.d->fig.outlawed, 0);
	release(LEASE);
	AWAIT(has_got("LYCH-WARD-001"));
	AWAIT(is_quiet());
	cr_expect_eq(w.n_sent, 0);
	double_down();
}

Test(dispatch_replace, what_they_permit_goes_on)
{
	static char other[] = "other.example.org";
	struct conf_rule moved[] = {fetch, ask}, wider = fetch;

	moved[0].name = other;
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		up(&ask, 1);
		until(i, "/ask", ASK("m"));
		cr_assert_not_null(w.d->calls);
		cr_expect_eq(w.d->calls->verdict.rule, &ask);
		cr_expect_eq(now(moved, 2), 0);
		/* nothing points at the old ones, which are freed */
		cr_expect_eq(w.d->calls->verdict.rule, &moved[1]);
		cr_expect_eq(w.d->calls->verdict.number, 2);
		release(steps[i].at);
		AWAIT(has_got("HTTP/1.1 200 "));
		cr_expect_eq(w.d->fig.outlawed, 0);
		over();
	}
	/* a key more than it had is not given to what is under way */
	wider.credential = portal_name;
	wider.replies = WARD_BINARY;
	up(&fetch, 1);
	until(3, "/fetch", FETCH);
	cr_expect_eq(now(&wider, 1), 0);
	cr_expect_null(w.d->calls->verdict.credential);
	cr_expect_eq(w.d->calls->verdict.replies, WARD_TEXT);
	cr_expect_null(w.d->calls->verdict.addresses);
	release(ACT);
	AWAIT(is_quiet());
	double_down();
}
