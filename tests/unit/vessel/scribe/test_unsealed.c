/* SPDX-License-Identifier: Apache-2.0 */
/* Lines that lie behind the last seal although one was due: a scribe that starts on them marks them, and a
 * log with such a mark does not verify until a person says that it is explained. */
#include "tests/unit/vessel/scribe/log_fixture.h"
#include "vessel/scribe/audit_read.h"

TestSuite(unsealed, .init = begin, .fini = end, .timeout = 60);

static usec_t boot_now = 5 * USEC_PER_SEC;

static usec_t set_boot(void *ctx UNUSED)
{
	return boot_now;
}

static usec_t set_wall(void *ctx UNUSED)
{
	return boot_now;
}

static const struct clock_ops set_clock = {.boot_usec = set_boot, .wall_usec = set_wall};

static struct audit_reading r;

/* known 0: none */
static enum audit_verdict verify(uint64_t known, struct err *err)
{
	*err = (struct err)ERR_INIT;
	r = (struct audit_reading){.known = &known, .n_known = known ? 1 : 0};
	if (audit_read(&r, dir, err) == 0)
		r.verdict = AUDIT_OK;
	audit_reading_done(&r);
	return r.verdict;
}

static void expect(enum audit_verdict verdict, uint64_t known, const char *when)
{
	struct err err;

	cr_expect_eq(verify(known, &err), verdict, "%s: %s", when, err.msg);
}

/* A log whose scribe was killed after lines that a seal had been due for, and the one that starts then. */
static struct scribe_log *go_on_after(usec_t still, unsigned lines)
{
	struct scribe_log *l = must_open_with(&set_clock, 0);
	uint64_t pseq = 1;

	seal(l, false);
	add(l, pseq++);
	boot_now += still;
	for (unsigned i = 1; i < lines; i++)
		add(l, pseq++);
	scribe_log_free(l);
	l = must_open_with(&set_clock, 0);
	seal(l, true);
	return l;
}

static void expect_marked(const char *when, uint64_t from, uint64_t mark)
{
	expect(AUDIT_UNSEALED, 0, when);
	cr_expect_eq(r.mark_at, mark, "%s: %llu", when, (unsigned long long)r.mark_at);
	cr_expect_eq(r.mark_from, from, "%s: %llu", when,
		     (unsigned long long)r.mark_from);
	expect(AUDIT_OK, mark, "it is known");
	expect(AUDIT_UNSEALED, mark - 1, "another is");
}

Test(unsealed, a_minute_and_another_without_a_seal_are_marked)
{
	struct scribe_log *l = go_on_after(121 * USEC_PER_SEC, 2);

	/* segment, start | two | the mark */
	expect_marked("two minutes", 3, 5);
	/* and the log goes on, marked as it is */
	add(l, 3);
	seal(l, false);
	expect_marked("later", 3, 5);
	scribe_log_free(l);
}

Test(unsealed, many_lines_without_a_seal_are_marked)
{
	scribe_log_free(go_on_after(11 * USEC_PER_SEC, 2100));
	expect_marked("2,100 in eleven seconds", 3, 2103);
}

Test(unsealed, what_a_scribe_may_leave_is_not_marked)
{
	scribe_log_free(go_on_after(119 * USEC_PER_SEC, 300));
	expect(AUDIT_OK, 0, "no two minutes, few lines");
	expect(AUDIT_UNKNOWN, 5, "it is no mark");
	scribe_log_free(go_on_after(0, 3000));
	expect(AUDIT_OK, 0, "many lines in one second");
}

/* One that was killed between the two: an honest end. */
Test(unsealed, a_stop_without_its_seal_is_not_marked)
{
	struct scribe_log *l = must_open_with(&set_clock, 0);
	struct err err = ERR_INIT;

	seal(l, false);
	cr_assert(scribe_log_own(l, "scribe.stop", NULL, &err) == 0 &&
		  scribe_log_commit(l, &err) == 0);
	scribe_log_free(l);
	expect(AUDIT_UNSEALED, 0, "it is seen before it goes on");
	l = must_open_with(&set_clock, 0);
	seal(l, true);
	scribe_log_free(l);
	expect(AUDIT_OK, 0, "and no more afterwards");
}

/* It was killed, nobody wrote for long, and the next one was killed before its first seal. */
Test(unsealed, two_kills_are_not_marked)
{
	struct scribe_log *l = must_open_with(&set_clock, 0);

	seal(l, false);
	add(l, 1);
	scribe_log_free(l);
	boot_now += 135 * USEC_PER_SEC;
	scribe_log_free(must_open_with(&set_clock, 0));
	expect(AUDIT_OK, 0, "dead before its seal");
	l = must_open_with(&set_clock, 0);
	seal(l, true);
	add(l, 2);
	scribe_log_free(l);
	expect(AUDIT_OK, 0, "and gone on with");
}

Test(unsealed, a_line_older_than_the_one_before_is_marked)
{
	struct scribe_log *l = must_open_with(&set_clock, 0);

	seal(l, false);
	add(l, 1);
	boot_now -= USEC_PER_SEC;
	add(l, 2);
	boot_now += USEC_PER_SEC;
	scribe_log_free(l);
	expect(AUDIT_UNSEALED, 0, "before");
	l = must_open_with(&set_clock, 0);
	seal(l, true);
	scribe_log_free(l);
	expect_marked("afterwards", 3, 5);
}

/* Killed before it could seal its mark: the next one marks again. */
Test(unsealed, a_mark_without_a_seal_is_found_too)
{
	struct scribe_log *l = go_on_after(121 * USEC_PER_SEC, 2);

	add(l, 3);
	boot_now += 121 * USEC_PER_SEC;
	add(l, 4);
	scribe_log_free(l);
	scribe_log_free(must_open_with(&set_clock, 0));
	expect(AUDIT_UNSEALED, 5, "one of two is known");
	l = must_open_with(&set_clock, 0);
	seal(l, true);
	scribe_log_free(l);
	expect(AUDIT_UNSEALED, 5, "one of the three is known");
	cr_expect_eq(r.mark_at, 9, "%llu", (unsigned long long)r.mark_at);
}
