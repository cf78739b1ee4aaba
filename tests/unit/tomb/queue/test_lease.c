/* SPDX-License-Identifier: Apache-2.0 */
/* Leases and claims against a queue and a clock of our own. */
#include "tomb/queue/claim.h"
#include "tomb/queue/lease.h"

#include <criterion/criterion.h>
#include <stdio.h>

static usec_t now = 1000 * USEC_PER_SEC;
static unsigned extends, claims, words[LEASE_WORD_DEADLINE + 1];
static queue_extend_done *extend_done;
static void *extend_arg;
static size_t extend_n;
static queue_claim_done *claim_done;
static void *claim_arg;
static struct uuid claim_ids[8];
static unsigned claim_n[8], slots = 4, taken;
static struct err last_err;

static usec_t read_clock(void *ctx)
{
	(void)ctx;
	return now;
}
static const struct clock_ops fake_clock = {read_clock, read_clock, NULL};

static void fake_claim(void *ctx, unsigned n, const struct uuid *id,
		       queue_claim_done *done, void *arg)
{
	(void)ctx;
	claim_ids[claims % 8] = *id;
	claim_n[claims++ % 8] = n;
	claim_done = done;
	claim_arg = arg;
}

static void fake_extend(void *ctx, const struct lease_key *keys, size_t n,
			queue_extend_done *done, void *arg)
{
	(void)ctx;
	(void)keys;
	extends++;
	extend_done = done;
	extend_arg = arg;
	extend_n = n;
}

static const struct queue_ops fake_ops = {.claim = fake_claim, .extend = fake_extend};
static const struct queue fake_queue = {&fake_ops, NULL, 32};

static void on_word(enum lease_word word, void *owner)
{
	(void)owner;
	words[word]++;
}

static unsigned changes;
static void on_change(void *arg)
{
	(void)arg;
	changes++;
}

static struct lease_key key(job_id_t job)
{
	return (struct lease_key){.job = job, .epoch = 1};
}

TestSuite(lease, .timeout = 30);

Test(lease, without_an_answer_the_deadline_is_told_before_the_ttl_is_over)
{
	struct leases *l = leases_new(&fake_queue, &fake_clock, on_change, NULL);
	struct lease_key k = key(1);
	usec_t sent = now, next;

	(void)lease_add(l, &k, sent, on_word, NULL);
	for (next = leases_tick(l); next != USEC_INFINITY && !words[LEASE_WORD_DEADLINE];
	     next = leases_tick(l)) {
		cr_assert_geq(next, now);
		now = next;
	}
	cr_assert_eq(words[LEASE_WORD_DEADLINE], 1);
	cr_assert_lt(now, sent + LEASE_TTL_USEC);
	cr_assert_eq(extends, 1, "one call is under way, not more");
	leases_free(l);
	extend_done(NULL, 0, NULL, extend_arg); /* a late answer finds nobody */
}

Test(lease, an_answer_counts_from_when_the_call_was_sent)
{
	struct leases *l = leases_new(&fake_queue, &fake_clock, on_change, NULL);
	enum lease_status ok = LEASE_OK;
	struct lease_key k = key(1);
	usec_t sent, next;

	(void)lease_add(l, &k, now, on_word, NULL);
	now += LEASE_TTL_USEC / 3;
	sent = now;
	(void)leases_tick(l);
	cr_assert_eq(extends, 1);
	now += 5 * USEC_PER_SEC;
	extend_done(&ok, 1, NULL, extend_arg);
	next = leases_tick(l);
	cr_assert_eq(next, sent + LEASE_TTL_USEC / 3);
	now = sent + LEASE_TTL_USEC - LEASE_MARGIN_USEC;
	(void)leases_tick(l);
	cr_assert_eq(words[LEASE_WORD_DEADLINE], 1);
	leases_free(l);
	extend_done(NULL, 0, NULL, extend_arg);
}

Test(lease, cancel_and_lost_reach_their_owner_only)
{
	struct leases *l = leases_new(&fake_queue, &fake_clock, on_change, NULL);
	/* The list is newest first. */
	const enum lease_status status[] = {LEASE_LOST, LEASE_REVOKED, LEASE_CANCEL,
					    LEASE_OK};
	struct lease *first = NULL;

	for (job_id_t i = 1; i <= 4; i++) {
		struct lease_key k = key(i);
		struct lease *x = lease_add(l, &k, now, on_word, NULL);

		if (i == 1)
			first = x;
	}
	leases_hint(l);
	(void)leases_tick(l);
	cr_assert_eq(extend_n, 4);
	lease_drop(l, first); /* gone while the call is under way */
	extend_done(status, 4, NULL, extend_arg);
	cr_assert_eq(words[LEASE_WORD_LOST], 1);
	cr_assert_eq(words[LEASE_WORD_REVOKED], 1);
	cr_assert_eq(words[LEASE_WORD_CANCEL], 1);
	cr_assert_eq(words[LEASE_WORD_DEADLINE], 0);
	leases_free(l);
}

Test(lease, an_unknown_outcome_moves_no_deadline)
{
	struct leases *l = leases_new(&fake_queue, &fake_clock, on_change, NULL);
	struct err err = {.code = ERR_UNAVAILABLE};
	struct lease_key k = key(1);
	usec_t sent = now;

	(void)lease_add(l, &k, now, on_word, NULL);
	while (now < sent + LEASE_TTL_USEC - LEASE_MARGIN_USEC) {
		unsigned before = extends;

		now += USEC_PER_SEC / 2;
		(void)leases_tick(l);
		if (extends != before)
			extend_done(NULL, 0, &err, extend_arg);
	}
	cr_assert_eq(words[LEASE_WORD_DEADLINE], 1);
	cr_assert_gt(extends, 5, "it was tried again");
	leases_free(l);
}

Test(lease, a_storm_of_hints_is_a_few_calls)
{
	struct leases *l = leases_new(&fake_queue, &fake_clock, on_change, NULL);
	enum lease_status ok = LEASE_OK;
	struct lease_key k = key(1);

	(void)lease_add(l, &k, now, on_word, NULL);
	for (int i = 0; i < 1000; i++) {
		unsigned before = extends;

		now += USEC_PER_MSEC;
		leases_hint(l);
		(void)leases_tick(l);
		if (extends != before)
			extend_done(&ok, 1, NULL, extend_arg);
	}
	cr_assert_leq(extends, 11);
	cr_assert_geq(extends, 9);
	leases_free(l);
}

/* ---- claims ---- */

static unsigned get_slots(void *arg)
{
	(void)arg;
	return slots;
}
static void on_claimed(const struct queue_claimed *job, usec_t sent, void *arg)
{
	(void)job;
	(void)sent;
	(void)arg;
	taken++;
}
static struct uuid asking;
static void on_asking(const struct uuid *claim_id, void *arg)
{
	(void)arg;
	asking = *claim_id;
}
static void on_error(const struct err *err, void *arg)
{
	(void)arg;
	last_err = *err;
}
static void rearm(void *arg)
{
	(void)arg;
}
static bool room = true;
static bool has_room(void *arg)
{
	(void)arg;
	return room;
}
static const struct claims_world world = {
	.has_room = has_room,
	.queue = &fake_queue,
	.clock = &fake_clock,
	.rng = &random_real,
	.free_slots = get_slots,
	.on_asking = on_asking,
	.on_claimed = on_claimed,
	.on_error = on_error,
	.rearm = rearm,
};

Test(lease, the_same_claim_is_asked_again_after_an_unknown_outcome)
{
	struct claims *c = claims_new(&world);
	struct err err = {.code = ERR_UNAVAILABLE};

	(void)claims_tick(c);
	cr_assert_eq(claims, 1);
	cr_assert_str_eq(asking.s, claim_ids[0].s); /* told before it was sent */
	claim_done(NULL, 0, &err, claim_arg);
	slots = 2;
	now += CLAIM_POLL_MAX_USEC * 2;
	(void)claims_tick(c);
	cr_assert_eq(claims, 2);
	cr_assert_str_eq(claim_ids[0].s, claim_ids[1].s);
	cr_assert_eq(claim_n[0], claim_n[1]);
	claim_done(NULL, 0, NULL, claim_arg);
	now += CLAIM_POLL_MAX_USEC * 2;
	(void)claims_tick(c);
	cr_assert_str_neq(claim_ids[1].s, claim_ids[2].s);
	cr_assert_eq(claim_n[2], 2);
	claims_free(c);
	claim_done(NULL, 0, NULL, claim_arg);
}

Test(lease, nothing_is_claimed_without_a_slot_or_after_stop)
{
	struct claims *c = claims_new(&world);

	slots = 0;
	cr_assert_eq(claims_tick(c), USEC_INFINITY);
	cr_assert_eq(claims, 0);
	slots = 1;
	claims_stop(c);
	claims_hint(c);
	cr_assert_eq(claims_tick(c), USEC_INFINITY);
	cr_assert_eq(claims, 0);
	claims_free(c);
}

Test(lease, nothing_is_claimed_on_a_full_disk_but_what_may_be_ours_already)
{
	struct claims *c = claims_new(&world);
	struct err err = {.code = ERR_UNAVAILABLE};

	room = false;
	cr_assert_eq(claims_tick(c), now + CLAIM_ROOM_USEC);
	cr_assert_eq(claims, 0);
	now += CLAIM_ROOM_USEC;
	room = true;
	(void)claims_tick(c);
	cr_assert_eq(claims, 1);
	claim_done(NULL, 0, &err, claim_arg);
	room = false;
	now += CLAIM_POLL_MAX_USEC * 2;
	(void)claims_tick(c);
	cr_assert_eq(claims, 2, "its outcome was unknown");
	claim_done(NULL, 0, NULL, claim_arg);
	claims_free(c);
}

Test(lease, polling_slows_down_and_a_hint_wakes_it)
{
	struct claims *c = claims_new(&world);
	usec_t start = now, next;

	while (now < start + 60 * USEC_PER_SEC) {
		next = claims_tick(c);
		if (next == USEC_INFINITY) {
			claim_done(NULL, 0, NULL, claim_arg);
			continue;
		}
		cr_assert_leq(next, now + CLAIM_POLL_MAX_USEC * 5 / 4);
		now = next;
	}
	cr_assert_leq(claims, 60);
	claims_hint(c);
	{
		unsigned before = claims;

		(void)claims_tick(c);
		cr_assert_eq(claims, before + 1);
	}
	claim_done(NULL, 0, NULL, claim_arg);
	claims_free(c);
}

/* With every slot busy nothing else wakes the timer. */
Test(lease, a_renewal_that_failed_is_tried_again_in_a_second)
{
	struct leases *l = leases_new(&fake_queue, &fake_clock, on_change, NULL);
	struct lease_key k = key(1);
	struct err err = ERR_INIT;
	usec_t sent = now;

	(void)lease_add(l, &k, now, on_word, NULL);
	now = leases_tick(l);
	(void)leases_tick(l);
	cr_assert_eq(extends, 1u);
	changes = 0;
	(void)err_set_id(&err, ERRID_RUN_DB, "no answer");
	extend_done(NULL, 0, &err, extend_arg);
	cr_assert_eq(changes, 1u);
	cr_assert_eq(leases_tick(l), now + USEC_PER_SEC);
	now += USEC_PER_SEC;
	(void)leases_tick(l);
	cr_assert_eq(extends, 2u);
	cr_assert_lt(now, sent + LEASE_TTL_USEC / 2);
	leases_free(l);
}
