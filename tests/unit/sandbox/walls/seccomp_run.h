/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The seccomp filter, run by an interpreter of its own (not the assembler's idea of it),
 * and the answers by their names.
 */
#ifndef LYCH_TESTS_UNIT_SANDBOX_WALLS_SECCOMP_RUN_H
#define LYCH_TESTS_UNIT_SANDBOX_WALLS_SECCOMP_RUN_H

#include "sandbox/walls/seccomp_table.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

TestSuite(sandbox_seccomp, .timeout = 20);

#define ALLOW SECCOMP_RET_ALLOW
/* The keeper says it, and so can tell of it; what it says is in test_notify.c. */
#define E_PERM SECCOMP_RET_USER_NOTIF
#define E_NOSYS (SECCOMP_RET_ERRNO | ENOSYS)
#define KEEPER SECCOMP_RET_USER_NOTIF
#define NOTHING SECCOMP_RET_ERRNO /* with errno 0 */
#define HIGH 0xdeadbeef00000000ULL
#ifdef __x86_64__
#define ARCH AUDIT_ARCH_X86_64
#else
#define ARCH AUDIT_ARCH_AARCH64
#endif

struct program {
	struct sock_filter insn[SC_PROGRAM_MAX];
	int n;
};

static struct program full, none, floor_;

static inline void compile(void)
{
	full.n = sc_compile(SC_FULL_LO, false, full.insn, SC_PROGRAM_MAX);
	none.n = sc_compile(SC_FULL_NONE, false, none.insn, SC_PROGRAM_MAX);
	floor_.n = sc_compile(SC_FLOOR, false, floor_.insn, SC_PROGRAM_MAX);
	cr_assert_gt(full.n, 0);
	cr_assert_gt(none.n, 0);
	cr_assert_gt(floor_.n, 0);
}

static inline uint32_t run_data(const struct program *p, const struct seccomp_data *d)
{
	uint32_t a = 0;

	for (int pc = 0; pc < p->n; pc++) {
		const struct sock_filter *f = &p->insn[pc];
		int taken;

		switch (f->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			cr_assert_leq(f->k + 4, sizeof(*d));
			memcpy(&a, (const char *)d + f->k, 4);
			continue;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= f->k;
			continue;
		case BPF_JMP | BPF_JA:
			pc += (int)f->k;
			continue;
		case BPF_JMP | BPF_JEQ | BPF_K:
			taken = a == f->k;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			taken = a >= f->k;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			taken = (a & f->k) != 0;
			break;
		case BPF_RET | BPF_K:
			return f->k;
		default:
			cr_assert_fail("instruction %d: code %#x", pc, f->code);
			return 0;
		}
		pc += taken ? f->jt : f->jf;
	}
	cr_assert_fail("the program ran over its end");
	return 0;
}

static inline uint32_t run6(const struct program *p, int nr, const uint64_t args[6])
{
	struct seccomp_data d = {.nr = nr, .arch = ARCH};

	memcpy(d.args, args, sizeof(d.args));
	return run_data(p, &d);
}

#define RUN(p, nr, ...) run6(&(p), nr, (const uint64_t[6]){__VA_ARGS__})

#endif
