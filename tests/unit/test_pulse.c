/* SPDX-License-Identifier: Apache-2.0 */
/* What the guard reads of its keeper: /proc/PID/status. */
#include "sandbox/guard.h"

#include <criterion/criterion.h>

#define HEAD "Name:\tlych-sandbox\nUmask:\t0077\n"
#define SIGNALS(own, shared)                                                             \
	"SigQ:\t0/95000\nSigPnd:\t" own "\nShdPnd:\t" shared                             \
	"\nSigBlk:\tfffffffe7ffbfeff\n"
#define TAIL "voluntary_ctxt_switches:\t41\nnonvoluntary_ctxt_switches:\t1\n"
#define NONE "0000000000000000"
#define KILL "0000000000000100"

Test(pulse, state_and_switches_are_read)
{
	struct pulse p;

	cr_assert_eq(
		pulse_parse(HEAD "State:\tD (disk sleep)\n" SIGNALS(NONE, NONE) TAIL, &p),
		0);
	cr_expect_eq(p.state, 'D');
	cr_expect_eq(p.switches, 42);
	cr_expect(!p.killed);
}

/* SIGKILL to a process waits with the process, to a thread with the thread. */
Test(pulse, a_kill_that_waits_is_seen)
{
	struct pulse p;

	cr_assert_eq(pulse_parse(HEAD "State:\tD\n" SIGNALS(KILL, NONE) TAIL, &p), 0);
	cr_expect(p.killed);
	cr_assert_eq(pulse_parse(HEAD "State:\tD\n" SIGNALS(NONE, KILL) TAIL, &p), 0);
	cr_expect(p.killed);
	/* SIGCHLD and SIGTERM wait often, and kill nobody. */
	cr_assert_eq(pulse_parse(HEAD "State:\tS\n" SIGNALS("0000000000010000",
							    "0000000000004000") TAIL,
				 &p),
		     0);
	cr_expect(!p.killed);
}

Test(pulse, what_is_no_status_is_refused)
{
	static const char *const texts[] = {
		"",
		HEAD,
		HEAD "State:\t",
		HEAD "State:\tS\n",
		HEAD "State:\tS\nvoluntary_ctxt_switches:\t1\n",
		"State:\tS\n" TAIL, /* the first line is the name, which may be anything */
	};
	struct pulse p;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		cr_expect_lt(pulse_parse(texts[i], &p), 0, "%s", texts[i]);
}
