/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table (seccomp_table.c) becomes classic BPF: architecture first (anything else is
 * killed, and so is x32), then a binary search over the numbers, then the clauses of one
 * call.
 *
 * libseccomp names the calls; it cannot carry the rules. It has no "not equal under a
 * mask" and takes an argument once a rule, so "every ioctl but these, on the low 32 bits"
 * cannot be said in an allow-list (CVE-2019-10063 was that mistake), nor "EPERM when no
 * condition held" where the default is ENOSYS. See docs/adr/. tests/unit/test_seccomp.c
 * runs the result in an interpreter of its own, for every number.
 */
#include "common/attr.h"
#include "common/str.h"
#include "sandbox/seccomp_table.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdlib.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OWN_ARCH AUDIT_ARCH_X86_64
#define X32_BIT 0x40000000u
#elif defined(__aarch64__)
#define OWN_ARCH AUDIT_ARCH_AARCH64
#else
#error "the filter is reviewed for x86_64 and aarch64"
#endif
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the argument offsets below are little-endian"
#endif

#define NUMBERS_MAX 512
#define CLAUSES_MAX 128
#define OFF_NR ((uint32_t)offsetof(struct seccomp_data, nr))
#define OFF_ARCH ((uint32_t)offsetof(struct seccomp_data, arch))
#define OFF_ARG_LOW(n) ((uint32_t)(offsetof(struct seccomp_data, args) + 8 * (size_t)(n)))

struct answers {
	enum sc_where where;
	uint8_t verdict[NUMBERS_MAX]; /* when no clause matched */
	bool has_clauses[NUMBERS_MAX];
	int clause_nr[CLAUSES_MAX]; /* -1: not here */
	struct sock_filter *out;
	size_t n, max;
	bool full;
};

int sc_number(const char *name)
{
	uint64_t nr;
	int number;

	if (name[0] == '#')
		return parse_u64(name + 1, 0, NUMBERS_MAX - 1, &nr, NULL) < 0 ? -1
									      : (int)nr;
	number = seccomp_syscall_resolve_name(name);
	return number < 0 ? -1 : number;
}

static void emit(struct answers *a, uint16_t code, uint32_t k, uint8_t jt, uint8_t jf)
{
	if (a->n >= a->max) {
		a->full = true;
		return;
	}
	a->out[a->n++] = (struct sock_filter){.code = code, .jt = jt, .jf = jf, .k = k};
}

static void emit_verdict(struct answers *a, unsigned verdict)
{
	static const uint32_t ret[SC_VERDICT_MAX_] = {
		[SC_ENOSYS] = SECCOMP_RET_ERRNO | ENOSYS,
		[SC_ALLOW] = SECCOMP_RET_ALLOW,
		[SC_EPERM] = SECCOMP_RET_ERRNO | EPERM,
		[SC_SUPERVISED] = SECCOMP_RET_USER_NOTIF,
	};

	emit(a, BPF_RET | BPF_K, ret[verdict], 0, 0);
}

/* A jump that goes to the end of the clause when the condition fails; patched there. */
#define JUMP_TO_NEXT 0xff

static void emit_cond(struct answers *a, const struct sc_cond *c)
{
	emit(a, BPF_LD | BPF_W | BPF_ABS, OFF_ARG_LOW(c->arg), 0, 0);
	if (c->mask != UINT32_MAX)
		emit(a, BPF_ALU | BPF_AND | BPF_K, c->mask, 0, 0);
	if (c->special == SC_OWN_UID || c->special == SC_OWN_GID) {
		emit(a, BPF_JMP | BPF_JEQ | BPF_K,
		     c->special == SC_OWN_UID ? geteuid() : getegid(), 1, 0);
		emit(a, BPF_JMP | BPF_JEQ | BPF_K, UINT32_MAX, 0, JUMP_TO_NEXT);
		return;
	}
	emit(a, BPF_JMP | BPF_JEQ | BPF_K, c->value, 0, JUMP_TO_NEXT);
	if (c->special == SC_NULL_POINTER) {
		emit(a, BPF_LD | BPF_W | BPF_ABS, OFF_ARG_LOW(c->arg) + 4, 0, 0);
		emit(a, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, JUMP_TO_NEXT);
	}
}

static void emit_clauses(struct answers *a, int nr)
{
	for (size_t i = 0; i < sc_n_clauses; i++) {
		const struct sc_clause *c = &sc_clauses[i];
		size_t start = a->n;

		if (a->clause_nr[i] != nr)
			continue;
		for (size_t k = 0; k < SC_CONDS_MAX && c->cond[k].mask; k++)
			emit_cond(a, &c->cond[k]);
		emit_verdict(a, c->verdict);
		for (size_t k = start; k < a->n; k++)
			if (a->out[k].jf == JUMP_TO_NEXT)
				a->out[k].jf = (uint8_t)(a->n - k - 1);
	}
	emit_verdict(a, a->verdict[nr]);
}

static bool same_answer(const struct answers *a, int x, int y)
{
	return !a->has_clauses[x] && !a->has_clauses[y] && a->verdict[x] == a->verdict[y];
}

/* Numbers lo..hi (inclusive); the accumulator holds the number. */
static void emit_range(struct answers *a, int lo, int hi)
{
	int mid, first;
	size_t jump;

	for (first = lo; first < hi && same_answer(a, lo, first + 1); first++)
		;
	if (first == hi) {
		if (a->has_clauses[lo])
			emit_clauses(a, lo);
		else
			emit_verdict(a, a->verdict[lo]);
		return;
	}
	/* Split at the change of answer that is nearest to the middle. */
	for (mid = lo + (hi - lo + 1) / 2; mid < hi && same_answer(a, mid - 1, mid);
	     mid++)
		;
	if (same_answer(a, mid - 1, mid))
		mid = first + 1;
	emit(a, BPF_JMP | BPF_JGE | BPF_K, (uint32_t)mid, 0, 1);
	jump = a->n;
	emit(a, BPF_JMP | BPF_JA, 0, 0, 0);
	emit_range(a, lo, mid - 1);
	if (!a->full)
		a->out[jump].k = (uint32_t)(a->n - jump - 1);
	emit_range(a, mid, hi);
}

static int collect(struct answers *a)
{
	for (size_t i = 0; i < sc_n_lists; i++) {
		if (!(sc_lists[i].where & a->where))
			continue;
		for (const char *const *n = sc_lists[i].names; *n; n++) {
			int nr = sc_number(*n);

			if (nr >= NUMBERS_MAX)
				return -1;
			if (nr >= 0)
				a->verdict[nr] = (uint8_t)sc_lists[i].verdict;
		}
	}
	if (sc_n_clauses > CLAUSES_MAX)
		return -1;
	for (size_t i = 0; i < sc_n_clauses; i++) {
		bool here = (sc_clauses[i].where & a->where) != 0;
		int nr = here ? sc_number(sc_clauses[i].name) : -1;

		if (nr >= NUMBERS_MAX)
			return -1;
		a->clause_nr[i] = nr;
		if (nr >= 0)
			a->has_clauses[nr] = true;
	}
	return 0;
}

int sc_compile(enum sc_where where, struct sock_filter *out, size_t max)
{
	struct answers a = {.where = where, .out = out, .max = max};

	if (collect(&a) < 0) {
		errno = EINVAL;
		return -1;
	}
	emit(&a, BPF_LD | BPF_W | BPF_ABS, OFF_ARCH, 0, 0);
	emit(&a, BPF_JMP | BPF_JEQ | BPF_K, OWN_ARCH, 1, 0);
	emit(&a, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
	emit(&a, BPF_LD | BPF_W | BPF_ABS, OFF_NR, 0, 0);
#ifdef X32_BIT
	emit(&a, BPF_JMP | BPF_JSET | BPF_K, X32_BIT, 0, 1);
	emit(&a, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
#endif
	emit(&a, BPF_JMP | BPF_JGE | BPF_K, NUMBERS_MAX, 0, 1);
	emit_verdict(&a, SC_ENOSYS);
	emit_range(&a, 0, NUMBERS_MAX - 1);
	if (a.full) {
		errno = ENOSPC;
		return -1;
	}
	return (int)a.n;
}
