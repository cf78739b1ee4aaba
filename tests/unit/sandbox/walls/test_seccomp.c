/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The seccomp filter as a whole: every number has the reviewed answer, the keeper judges as
 * it does, and other architectures are killed.
 */
#include "sandbox/walls/seccomp_table.h"
#include "tests/unit/sandbox/walls/seccomp_run.h"

#include <sched.h>
#include <seccomp.h>
#include <sys/stat.h>

#define REVIEWED_LAST 469 /* Linux 6.18 */

Test(sandbox_seccomp, another_architecture_is_killed)
{
	static const uint32_t archs[] = {AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_MIPS,
					 0, UINT32_MAX};

	compile();
	for (size_t i = 0; i < sizeof(archs) / sizeof(archs[0]); i++)
		for (int nr = 0; nr < 600; nr++) {
			struct seccomp_data d = {.nr = nr, .arch = archs[i]};

			cr_assert_eq(run_data(&full, &d), SECCOMP_RET_KILL_PROCESS);
			cr_assert_eq(run_data(&floor_, &d), SECCOMP_RET_KILL_PROCESS);
		}
}

#ifdef __x86_64__
Test(sandbox_seccomp, x32_is_killed)
{
	compile();
	for (int nr = 0; nr < 600; nr++) {
		cr_assert_eq(RUN(full, nr | 0x40000000, 0), SECCOMP_RET_KILL_PROCESS);
		cr_assert_eq(RUN(floor_, nr | 0x40000000, 0), SECCOMP_RET_KILL_PROCESS);
	}
}
#endif

static int count_lists(const char *name, enum sc_where where)
{
	int n = 0;

	for (size_t i = 0; i < sc_n_lists; i++)
		for (const char *const *p = sc_lists[i].names; *p; p++)
			n += (sc_lists[i].where & where) && strcmp(*p, name) == 0;
	return n;
}

Test(sandbox_seccomp, each_call_that_has_a_number_has_one_answer)
{
	compile();
	for (int nr = 0; nr <= REVIEWED_LAST; nr++) {
		char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, nr);
		char number[16];
		int n[2];

		(void)snprintf(number, sizeof(number), "#%d", nr);
		for (int k = 0; k < 2; k++) {
			enum sc_where where = k ? SC_FLOOR : SC_FULL_LO;

			n[k] = count_lists(number, where) +
			       (name ? count_lists(name, where) : 0);
		}
		if (name || nr > 450)
			cr_assert(n[0] == 1 && n[1] == 1,
				  "%d %s: %d answers in full, %d in floor", nr,
				  name ? name : "?", n[0], n[1]);
		free(name);
	}
}

/* The other architecture that the table is written for, on whichever this is. */
Test(sandbox_seccomp, each_call_of_aarch64_has_one_answer)
{
	for (int nr = 0; nr <= REVIEWED_LAST; nr++) {
		char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_AARCH64, nr);
		char number[16];

		(void)snprintf(number, sizeof(number), "#%d", nr);
		for (int k = 0; name && k < 2; k++) {
			enum sc_where where = k ? SC_FLOOR : SC_FULL_LO;
			int n = count_lists(name, where) +
				(nr > 450 ? count_lists(number, where) : 0);

			cr_assert_eq(n, 1, "%d %s: %d answers", nr, name, n);
		}
		free(name);
	}
}

Test(sandbox_seccomp, every_name_of_the_lists_is_a_call)
{
	for (size_t i = 0; i < sc_n_lists; i++)
		for (const char *const *p = sc_lists[i].names; *p; p++)
			cr_assert((*p)[0] == '#' || seccomp_syscall_resolve_name(*p) !=
							    __NR_SCMP_ERROR,
				  "%s", *p);
	for (size_t i = 0; i < sc_n_clauses; i++)
		cr_assert(sc_clauses[i].name[0] == '#' ||
				  seccomp_syscall_resolve_name(sc_clauses[i].name) !=
					  __NR_SCMP_ERROR,
			  "%s", sc_clauses[i].name);
}

Test(sandbox_seccomp, the_program_says_what_the_lists_say)
{
	compile();
	for (size_t i = 0; i < sc_n_lists; i++)
		for (const char *const *p = sc_lists[i].names; *p; p++) {
			static const uint32_t want[] = {E_NOSYS, ALLOW, E_PERM, KEEPER,
							NOTHING};
			int nr = sc_number(*p);
			bool conditional = false;

			for (size_t k = 0; k < sc_n_clauses; k++)
				conditional |= sc_number(sc_clauses[k].name) == nr;
			if (nr < 0 || conditional)
				continue;
			if (sc_lists[i].where & SC_FULL_LO)
				cr_assert_eq(RUN(full, nr, 0), want[sc_lists[i].verdict],
					     "%s", *p);
			if (sc_lists[i].where & SC_FULL_NONE)
				cr_assert_eq(RUN(none, nr, 0), want[sc_lists[i].verdict],
					     "%s", *p);
			if (sc_lists[i].where & SC_FLOOR)
				cr_assert_eq(RUN(floor_, nr, 0),
					     want[sc_lists[i].verdict], "%s", *p);
		}
}

Test(sandbox_seccomp, what_nobody_reviewed_is_absent)
{
	compile();
	for (int nr = REVIEWED_LAST + 1; nr < 5000; nr++) {
		cr_assert_eq(RUN(full, nr, 0), E_NOSYS);
		cr_assert_eq(RUN(floor_, nr, 0), E_NOSYS);
	}
	cr_assert_eq(RUN(full, 0x3fffffff, 0), E_NOSYS);
	cr_assert_eq(RUN(full, SYS_clone3, 0), E_NOSYS);
}

/* The keeper is asked by the kernel, and must come to the filter's own answer. */
static void compare(const struct program *p, enum sc_where where, int nr,
		    const uint64_t args[6], bool observe)
{
	static const uint32_t want[] = {E_NOSYS, ALLOW, E_PERM, KEEPER, NOTHING};
	struct seccomp_data d = {.nr = nr, .arch = ARCH};
	uint32_t expected;

	memcpy(d.args, args, sizeof(d.args));
	expected = want[sc_judge(where, &d)];
	if (observe && sc_is_observed(where, &d)) {
		cr_assert_eq(expected, ALLOW, "%d: what is refused is not observed", nr);
		expected = KEEPER;
	}
	cr_assert_eq(run_data(p, &d), expected, "%d %#lx %#lx %#lx", nr, args[0], args[1],
		     args[2]);
}

Test(sandbox_seccomp, the_keeper_judges_as_the_filter_does)
{
	static const uint64_t words[] = {0,
					 1,
					 2,
					 3,
					 5,
					 7,
					 10,
					 17,
					 38,
					 40,
					 0x5412,
					 0x40086602,
					 0x5401,
					 0x8905,
					 0x8912,
					 0xb701,
					 0xff0b,
					 0x40049409,
					 0xfffffff2,
					 0xfffffff6,
					 0xfffffffa,
					 0x6601,
					 0x9409,
					 UINT32_MAX,
					 HIGH,
					 HIGH | 1,
					 S_IFCHR,
					 S_IFIFO | 0600,
					 CLONE_NEWUSER};
	const size_t n_words = sizeof(words) / sizeof(words[0]);
	static const enum sc_where wheres[] = {SC_FULL_LO, SC_FULL_NONE, SC_FLOOR};
	static struct program plain[3], observing[3];
	unsigned seed = 1;

	for (int k = 0; k < 3; k++) {
		plain[k].n = sc_compile(wheres[k], false, plain[k].insn, SC_PROGRAM_MAX);
		observing[k].n =
			sc_compile(wheres[k], true, observing[k].insn, SC_PROGRAM_MAX);
		cr_assert(plain[k].n > 0 && observing[k].n > 0);
	}
	for (int nr = 0; nr < 520; nr++)
		for (int round = 0; round < 200; round++) {
			uint64_t args[6];

			for (int i = 0; i < 6; i++) {
				seed = seed * 1103515245u + 12345u;
				args[i] = words[(seed >> 16) % n_words];
			}
			if (round % 7 == 0)
				args[0] = args[1] = geteuid();
			for (int k = 0; k < 3; k++) {
				compare(&plain[k], wheres[k], nr, args, false);
				compare(&observing[k], wheres[k], nr, args, true);
			}
		}
}

Test(sandbox_seccomp, only_what_is_allowed_is_observed)
{
	struct seccomp_data d = {.nr = SYS_connect, .arch = ARCH};

	cr_assert(sc_is_observed(SC_FULL_LO, &d));
	cr_assert_not(sc_is_observed(SC_FLOOR, &d));
	d.nr = SYS_openat;
	cr_assert(sc_is_observed(SC_FLOOR, &d));
	d.nr = SYS_sendto;
	cr_assert_not(sc_is_observed(SC_FULL_LO, &d), "without an address it is data");
	d.args[4] = 0x1000;
	cr_assert(sc_is_observed(SC_FULL_LO, &d));
	d.nr = SYS_unshare;
	cr_assert_not(sc_is_observed(SC_FULL_LO, &d));
	d.nr = 5000;
	cr_assert_not(sc_is_observed(SC_FULL_LO, &d));
	cr_assert_eq(sc_judge(SC_FULL_LO, &d), SC_ENOSYS);
}

Test(sandbox_seccomp, every_call_has_a_name)
{
	char name[24];

	sc_name(SYS_openat, name, sizeof(name));
	cr_assert_str_eq(name, "openat");
	sc_name(452, name, sizeof(name));
	cr_assert_str_eq(name, "fchmodat2");
	sc_name(469, name, sizeof(name));
	cr_assert_str_eq(name, "file_setattr");
	sc_name(4711, name, sizeof(name));
	cr_assert_str_eq(name, "syscall 4711");
}

Test(sandbox_seccomp, a_program_that_does_not_fit_is_an_error)
{
	struct sock_filter few[64];

	cr_assert_eq(sc_compile(SC_FULL_LO, false, few, 64), -1);
	cr_assert_eq(errno, ENOSPC);
}
