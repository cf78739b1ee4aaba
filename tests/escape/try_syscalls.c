/* SPDX-License-Identifier: Apache-2.0 */
/*
 *	try_syscalls full|floor
 * Inside: every system call number there is, and those that may come. What the table of
 * the filter (sandbox/walls/seccomp_table.c) refuses, the kernel must refuse with the same errno,
 * with zeros, with ones and with only the upper half of each register set; what is of
 * another architecture must kill. What the table allows is not made: that is the attempts'
 * matter. On stdout a line a kind, and how many; exit 1 at the first difference.
 */
#include "sandbox/walls/seccomp_table.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#ifdef __x86_64__
#define ARCH AUDIT_ARCH_X86_64
#else
#define ARCH AUDIT_ARCH_AARCH64
#endif
#define REVIEWED_LAST 469 /* Linux 6.18 */
#define WALK_LAST 1023
#define X32_BIT 0x40000000L
#define IA32_LAST 470
#define HARMLESS 20 /* getpid; of x32 writev, of nothing */
#define HIGH 0xdeadbeef00000000UL

static enum sc_where where;
static int is_nested; /* in a container, whose filter may refuse first, with its errno */

static const unsigned long patterns[] = {0, ~0UL, HIGH};
#define N_PATTERNS (sizeof(patterns) / sizeof(patterns[0]))

/* The errno of a refusal; 0: the table does not refuse it. */
static int table_says(long nr, unsigned long arg)
{
	struct seccomp_data d = {.nr = (int)nr, .arch = ARCH};
	enum sc_verdict verdict;

	for (int i = 0; i < 6; i++)
		d.args[i] = arg;
	verdict = sc_judge(where, &d);
	return verdict == SC_EPERM ? EPERM : verdict == SC_ENOSYS ? ENOSYS : 0;
}

/* The kernel lets its own trampolines' two calls pass every filter, and kills whoever else
 * makes them: an attempt of their own (77f). */
static int passes_every_filter(long nr)
{
#ifdef __x86_64__
	return nr == 335 || nr == 336;
#else
	return nr < 0;
#endif
}

/* 1: refused as the table says; 0: the table does not refuse it here; -1: a difference. */
static int compare(long nr, unsigned long arg)
{
	int says = table_says(nr, arg), got;
	long r;

	if (!says || passes_every_filter(nr))
		return 0;
	r = syscall(nr, arg, arg, arg, arg, arg, arg);
	got = r < 0 ? errno : 0;
	if (got == says || (is_nested && (got == EPERM || got == ENOSYS)))
		return 1;
	(void)printf("FAIL\tcall %ld with %#lx: %s, the table says %s\n", nr, arg,
		     strerrorname_np(got), strerrorname_np(says));
	return -1;
}

static int walk(long first, long last, const char *what)
{
	int refused = 0, allowed = 0;

	for (long nr = first; nr <= last; nr++) {
		int here = 0;

		for (size_t i = 0; i < N_PATTERNS; i++) {
			int r = compare(nr, patterns[i]);

			if (r < 0)
				return -1;
			here += r;
		}
		refused += here > 0;
		allowed += here == 0;
	}
	(void)printf("ok\t%s %ld..%ld: %d refused as reviewed, %d not refused\n", what,
		     first, last, refused, allowed);
	return 0;
}

/* Far away numbers: powers of two and their neighbours below the bit of x32. */
static int walk_far(void)
{
	for (int bit = 10; bit < 30; bit++)
		for (long d = -1; d <= 1; d++)
			for (size_t i = 0; i < N_PATTERNS; i++)
				if (compare((1L << bit) + d, patterns[i]) != 1)
					return -1;
	(void)printf("ok\tfar numbers are refused\n");
	return 0;
}

#ifdef __x86_64__
static void call_x32(long nr)
{
	(void)syscall(X32_BIT | nr, 0L, 0L, 0L, 0L, 0L, 0L);
}
static void call_ia32(long nr)
{
	long r;

	__asm__ volatile("int $0x80"
			 : "=a"(r)
			 : "a"(nr), "b"(0), "c"(0), "d"(0), "S"(0), "D"(0)
			 : "memory", "r8", "r9", "r10", "r11");
}

/* The signal that it died of; 0: none. */
static int killed_by(void (*call)(long), long nr)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		call(nr);
		_exit(0);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFSIGNALED(status)
		       ? WTERMSIG(status)
		       : 0;
}

/* by: what a kernel says that has no such door; then it says so to each. */
static int walk_killed(void (*call)(long), long last, int by, const char *what)
{
	const struct rlimit no_core = {0, 0};
	int all;

	(void)setrlimit(RLIMIT_CORE, &no_core);
	all = killed_by(call, HARMLESS);
	for (long nr = 0; nr <= last; nr++)
		if ((all != SIGSYS && all != by) || killed_by(call, nr) != all) {
			(void)printf("FAIL\t%s %ld: not killed\n", what, nr);
			return -1;
		}
	(void)printf("ok\t%s 0..%ld: each is killed\n", what, last);
	return 0;
}
#endif

int main(int argc, char **argv)
{
	if (argc != 2 ||
	    (strcmp(argv[1], "full") != 0 && strcmp(argv[1], "floor") != 0)) {
		(void)fputs("usage: try_syscalls full|floor\n", stderr);
		return 2;
	}
	where = strcmp(argv[1], "floor") == 0 ? SC_FLOOR : SC_FULL_LO;
	is_nested = access("nested", F_OK) == 0;
	if (walk(0, REVIEWED_LAST, "calls") < 0 ||
	    walk(REVIEWED_LAST + 1, WALK_LAST, "calls to come") < 0 || walk_far() < 0)
		return 1;
#ifdef __x86_64__
	if (walk_killed(call_x32, REVIEWED_LAST + 100, SIGSYS, "x32 calls") < 0 ||
	    walk_killed(call_ia32, IA32_LAST, SIGSEGV, "i386 calls") < 0)
		return 1;
#endif
	return 0;
}
