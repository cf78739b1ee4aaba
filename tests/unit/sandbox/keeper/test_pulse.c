/* SPDX-License-Identifier: Apache-2.0 */
/* What the guard reads of keeper and meter (/proc/PID/status), and when it says that the meter is held: by
 * texts, and by processes of this machine that are held, or only wait for a processor. */
#include "sandbox/keeper/guard_priv.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* ---- is the meter held? -------------------------------------------------------------- */

static struct watch watch;

/* A guard whose job runs, and whose meter is about something since now. */
static struct guard looking_at(int meter_fd, usec_t now)
{
	atomic_store(&watch.busy_since, now);
	return (struct guard){.watch = &watch,
			      .pulse_fd = -1,
			      .proc_fd = -1,
			      .meter_fd = meter_fd,
			      .phase = GUARD_RUNNING};
}

/* What the meter's status says from now on. */
static void says(int fd, const char *state, unsigned switches)
{
	char text[512];
	int n = snprintf(text, sizeof(text),
			 HEAD "State:\t%s\n" SIGNALS(
				 NONE, NONE) "voluntary_ctxt_switches:\t%u\nnonvoluntary_"
					     "ctxt_switches:\t0\n",
			 state, switches);

	cr_assert_eq(ftruncate(fd, 0), 0);
	cr_assert_eq(pwrite(fd, text, (size_t)n, 0), n);
}

#define STEP (50 * USEC_PER_MSEC)

/* Looked at every 50 ms for so long, always the same; each look finds `more` switches more. */
static void look_for(struct guard *g, int fd, const char *state, unsigned more,
		     usec_t *now, usec_t during)
{
	static unsigned switches = 7;

	for (usec_t end = *now + during; *now < end; *now += STEP) {
		says(fd, state, switches += more);
		guard_take_pulse(g, *now);
	}
}

Test(pulse, a_meter_that_is_blocked_for_a_second_is_held)
{
	static const char *const blocked[] = {"D (disk sleep)", "S (sleeping)"};

	for (size_t i = 0; i < 2; i++) {
		int fd = (int)memfd_create("status", MFD_CLOEXEC);
		usec_t now = 100 * USEC_PER_SEC;
		struct guard g = looking_at(fd, now);

		look_for(&g, fd, blocked[i], 0, &now, 900 * USEC_PER_MSEC);
		cr_expect_not(g.held, "%s: not a second yet", blocked[i]);
		look_for(&g, fd, blocked[i], 0, &now, 400 * USEC_PER_MSEC);
		cr_expect(g.held, "%s", blocked[i]);
		cr_expect_not(g.stopped);
		(void)close(fd);
	}
}

Test(pulse, one_that_waits_for_a_processor_or_gets_on_is_not_held)
{
	int fd = (int)memfd_create("status", MFD_CLOEXEC);
	usec_t now = 100 * USEC_PER_SEC;
	struct guard g = looking_at(fd, now);

	look_for(&g, fd, "R (running)", 0, &now, 5 * USEC_PER_SEC);
	cr_expect_not(g.held, "runnable, and has not run for five seconds");
	look_for(&g, fd, "D (disk sleep)", 1, &now, 5 * USEC_PER_SEC);
	cr_expect_not(g.held, "it waits, and often: it has run in between");
	/* Blocked at times, runnable at others. */
	for (int i = 0; i < 5; i++) {
		look_for(&g, fd, "D (disk sleep)", 0, &now, 700 * USEC_PER_MSEC);
		look_for(&g, fd, "R (running)", 0, &now, 100 * USEC_PER_MSEC);
	}
	cr_expect_not(g.held);
	/* It waits for its next look: nothing that the job does. */
	atomic_store(&watch.busy_since, 0);
	look_for(&g, fd, "S (sleeping)", 0, &now, 5 * USEC_PER_SEC);
	cr_expect_not(g.held);
	(void)close(fd);
}

/* By somebody outside: the job is lost, not to blame. */
Test(pulse, one_that_is_stopped_is_not_held_but_stopped)
{
	int fd = (int)memfd_create("status", MFD_CLOEXEC);
	usec_t now = 100 * USEC_PER_SEC;
	struct guard g = looking_at(fd, now);

	look_for(&g, fd, "T (stopped)", 0, &now, 3 * USEC_PER_SEC);
	cr_expect_not(g.held);
	cr_expect(g.stopped);
	(void)close(fd);
}

/* The kernel's own word of a process, for as long as it takes. */
static struct guard look_at_process(pid_t pid, usec_t during)
{
	usec_t now = clock_boot_usec(), end = now + during;
	struct guard g;
	char path[40];

	(void)snprintf(path, sizeof(path), "/proc/%d/status", pid);
	g = looking_at(open(path, O_RDONLY | O_CLOEXEC), now);
	cr_assert_geq(g.meter_fd, 0);
	for (; now < end && !g.held; now = clock_boot_usec()) {
		guard_take_pulse(&g, now);
		(void)usleep(STEP);
	}
	(void)close(g.meter_fd);
	return g;
}

static pid_t child(void (*body)(void))
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		body();
		_exit(0);
	}
	return pid;
}

static void end(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

static void wait_for_ever(void)
{
	int p[2];
	char c;

	/* nobody will write */
	(void)!pipe(p);
	(void)!read(p[0], &c, 1);
}

static void burn(void)
{
	for (;;)
		;
}

static void burn_last(void)
{
	(void)setpriority(PRIO_PROCESS, 0, 19);
	burn();
}

#define BURNERS 24

Test(pulse, the_kernel_tells_who_is_blocked_from_who_is_starved, .timeout = 60)
{
	cpu_set_t here, one;
	pid_t blocked = child(wait_for_ever), starved, burner[BURNERS];

	(void)usleep(100000);
	cr_expect(look_at_process(blocked, 10 * USEC_PER_SEC).held);
	end(blocked);

	/* All of them on one processor, and one is the last to have it. */
	cr_assert_eq(sched_getaffinity(0, sizeof(here), &here), 0);
	CPU_ZERO(&one);
	for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
		if (CPU_ISSET(i, &here))
			CPU_SET(i, &one);
	cr_assert_eq(sched_setaffinity(0, sizeof(one), &one), 0);
	starved = child(burn_last);
	for (int i = 0; i < BURNERS; i++)
		burner[i] = child(burn);
	(void)sched_setaffinity(0, sizeof(here), &here);
	cr_expect_not(look_at_process(starved, 3 * USEC_PER_SEC).held);
	for (int i = 0; i < BURNERS; i++)
		end(burner[i]);
	end(starved);
}
