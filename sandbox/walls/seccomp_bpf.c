/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the spawner, the keeper and the job.
 * The table (seccomp_table.c) becomes classic BPF: architecture first (anything else is
 * killed, and so is x32), then a binary search over the numbers, then the clauses of one
 * call.
 *
 * libseccomp names the calls; it cannot carry the rules. It has no "not equal under a
 * mask" and takes an argument once a rule, so "every ioctl but these, on the low 32 bits"
 * cannot be said in an allow-list (CVE-2019-10063 was that mistake), nor "EPERM when no
 * condition held" where the default is ENOSYS. See docs/adr/. tests/unit/sandbox/walls/test_seccomp.c
 * runs the result in an interpreter of its own, for every number.
 */
#include "common/attr.h"
#include "common/str.h"
#include "sandbox/walls/seccomp_table.h"

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
#define RUN_MAX 200 /* within the reach of a jump */
#define SINGLES_MAX 3
#define CLAUSES_MAX 192
#define OFF_NR ((uint32_t)offsetof(struct seccomp_data, nr))
#define OFF_ARCH ((uint32_t)offsetof(struct seccomp_data, arch))
#define OFF_ARG_LOW(n) ((uint32_t)(offsetof(struct seccomp_data, args) + 8 * (size_t)(n)))

struct answers {
	enum sc_where where;
	uint8_t verdict[NUMBERS_MAX]; /* when no clause matched */
	bool has_clauses[NUMBERS_MAX];
	int clause_nr[CLAUSES_MAX]; /* -1: not here */
	bool observed[NUMBERS_MAX];
	bool observe; /* ... and told to the keeper */
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

/* What the kernel is told for this verdict; seen: on a call that is observed. */
static uint32_t answer_of(const struct answers *a, unsigned verdict, bool seen)
{
	static const uint32_t ret[SC_VERDICT_MAX_] = {
		[SC_ENOSYS] = SECCOMP_RET_ERRNO | ENOSYS,
		[SC_ALLOW] = SECCOMP_RET_ALLOW,
		[SC_EPERM] = SECCOMP_RET_USER_NOTIF,
		[SC_SUPERVISED] = SECCOMP_RET_USER_NOTIF,
		[SC_NOTHING] = SECCOMP_RET_ERRNO,
	};
	bool told = verdict == SC_ALLOW && seen && a->observe;

	return told ? SECCOMP_RET_USER_NOTIF : ret[verdict];
}

static void emit_verdict(struct answers *a, unsigned verdict, bool seen)
{
	emit(a, BPF_RET | BPF_K, answer_of(a, verdict, seen), 0, 0);
}

/* A jump that goes to the end of the clause when the condition fails; patched there. */
#define JUMP_TO_NEXT 0xff

static void emit_load(struct answers *a, const struct sc_cond *c)
{
	emit(a, BPF_LD | BPF_W | BPF_ABS, OFF_ARG_LOW(c->arg), 0, 0);
	if (c->mask != UINT32_MAX)
		emit(a, BPF_ALU | BPF_AND | BPF_K, c->mask, 0, 0);
}

static void emit_cond(struct answers *a, const struct sc_cond *c)
{
	bool none = !c->special && !c->value && c->mask != UINT32_MAX;

	if (none || c->special == SC_ANY_BIT) {
		emit(a, BPF_LD | BPF_W | BPF_ABS, OFF_ARG_LOW(c->arg), 0, 0);
		emit(a, BPF_JMP | BPF_JSET | BPF_K, c->mask, none ? JUMP_TO_NEXT : 0,
		     none ? 0 : JUMP_TO_NEXT);
		return;
	}
	emit_load(a, c);
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

static size_t count_conds(const struct sc_clause *c)
{
	size_t n = 0;

	while (n < SC_CONDS_MAX && c->cond[n].mask)
		n++;
	return n;
}

static bool same_cond(const struct sc_cond *x, const struct sc_cond *y)
{
	return x->mask == y->mask && x->value == y->value && x->arg == y->arg &&
	       x->special == y->special;
}

/* The same answer, and the same conditions but for the number that the last one compares
 * with. */
static bool is_sister(const struct sc_clause *x, const struct sc_clause *y)
{
	size_t n = count_conds(x);
	const struct sc_cond *p, *q;

	if (!n || count_conds(y) != n || x->verdict != y->verdict ||
	    x->unseen != y->unseen)
		return false;
	p = &x->cond[n - 1];
	q = &y->cond[n - 1];
	if (p->special || q->special || p->mask != q->mask || p->arg != q->arg)
		return false;
	for (size_t i = 0; i + 1 < n; i++)
		if (!same_cond(&x->cond[i], &y->cond[i]))
			return false;
	return true;
}

/* How many of the clauses from the first are sisters; others' clauses do not matter. */
static size_t count_run(const struct answers *a, size_t first, int nr)
{
	size_t n = 0;

	for (size_t i = first; i < sc_n_clauses && n < RUN_MAX; i++) {
		if (a->clause_nr[i] != nr)
			continue;
		if (!is_sister(&sc_clauses[first], &sc_clauses[i]))
			break;
		n++;
	}
	return n;
}

/* Where a condition failed, on to what follows. */
static void end_clause(struct answers *a, size_t start)
{
	for (size_t k = start; k < a->n; k++) {
		if (a->out[k].jf == JUMP_TO_NEXT)
			a->out[k].jf = (uint8_t)(a->n - k - 1);
		if (a->out[k].jt == JUMP_TO_NEXT)
			a->out[k].jt = (uint8_t)(a->n - k - 1);
	}
}

/* The common conditions, one load, n comparisons, one answer. Returns the last clause it
 * took. */
static size_t emit_run(struct answers *a, size_t first, size_t n, int nr)
{
	const struct sc_clause *f = &sc_clauses[first];
	size_t last = count_conds(f) - 1, start = a->n, i = first;

	for (size_t k = 0; k < last; k++)
		emit_cond(a, &f->cond[k]);
	emit_load(a, &f->cond[last]);
	for (size_t left = n; left > 0; i++) {
		if (a->clause_nr[i] != nr)
			continue;
		left--;
		emit(a, BPF_JMP | BPF_JEQ | BPF_K, sc_clauses[i].cond[last].value,
		     (uint8_t)left, left ? 0 : 1);
	}
	emit_verdict(a, f->verdict, a->observed[nr] && !f->unseen);
	end_clause(a, start);
	return i - 1;
}

static void emit_clause(struct answers *a, const struct sc_clause *c, int nr)
{
	size_t start = a->n;

	for (size_t k = 0; k < count_conds(c); k++)
		emit_cond(a, &c->cond[k]);
	emit_verdict(a, c->verdict, a->observed[nr] && !c->unseen);
	end_clause(a, start);
}

static void emit_clauses(struct answers *a, int nr)
{
	for (size_t i = 0; i < sc_n_clauses; i++) {
		size_t run;

		if (a->clause_nr[i] != nr)
			continue;
		run = count_run(a, i, nr);
		if (run > 1)
			i = emit_run(a, i, run, nr);
		else
			emit_clause(a, &sc_clauses[i], nr);
	}
	emit_verdict(a, a->verdict[nr], a->observed[nr]);
}

static bool same_answer(const struct answers *a, int x, int y)
{
	return !a->has_clauses[x] && !a->has_clauses[y] &&
	       answer_of(a, a->verdict[x], a->observed[x]) ==
		       answer_of(a, a->verdict[y], a->observed[y]);
}

/* The jump at `at` skips, when it is taken, all that was emitted after it. Its own reach
 * is 255; farther takes one more instruction, and what follows moves by one: its jumps
 * are relative and stay inside. */
static void jump_over(struct answers *a, size_t at)
{
	size_t skip = a->n - at - 1;

	if (a->full)
		return;
	if (skip <= UINT8_MAX) {
		a->out[at].jt = (uint8_t)skip;
		return;
	}
	emit(a, 0, 0, 0, 0);
	if (a->full)
		return;
	memmove(&a->out[at + 2], &a->out[at + 1], skip * sizeof(a->out[0]));
	a->out[at].jf = 1;
	a->out[at + 1] =
		(struct sock_filter){.code = BPF_JMP | BPF_JA, .k = (uint32_t)skip};
}

static void emit_answer(struct answers *a, int nr)
{
	if (a->has_clauses[nr])
		emit_clauses(a, nr);
	else
		emit_verdict(a, a->verdict[nr], a->observed[nr]);
}

/* The numbers of lo..hi that answer otherwise than `usual`; more than SINGLES_MAX when
 * there are. */
static size_t find_singles(const struct answers *a, int lo, int hi, int usual,
			   int *single)
{
	size_t n = 0;

	for (int i = lo; i <= hi && n <= SINGLES_MAX; i++)
		if (!same_answer(a, i, usual) && n++ < SINGLES_MAX)
			single[n - 1] = i;
	return n;
}

/* All of lo..hi answers the same but for a few: one comparison for each of these, where a
 * search would take two. False: it is not so. */
static bool emit_singles(struct answers *a, int lo, int hi)
{
	int single[SINGLES_MAX];
	size_t n = SINGLES_MAX + 1;
	int usual = lo;

	for (; usual <= hi && n > SINGLES_MAX; usual++)
		if (!a->has_clauses[usual])
			n = find_singles(a, lo, hi, usual, single);
	if (n > SINGLES_MAX)
		return false;
	for (size_t i = 0; i < n; i++) {
		size_t at = a->n;

		emit(a, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)single[i], 0, 0);
		emit_answer(a, single[i]);
		if (a->n - at - 1 > UINT8_MAX)
			a->full = true;
		if (!a->full)
			a->out[at].jf = (uint8_t)(a->n - at - 1);
	}
	emit_answer(a, usual - 1);
	return true;
}

/* Numbers lo..hi (inclusive); the accumulator holds the number. */
static void emit_range(struct answers *a, int lo, int hi)
{
	int mid;
	size_t jump;

	if (lo == hi) {
		emit_answer(a, lo);
		return;
	}
	if (emit_singles(a, lo, hi))
		return;
	/* Split at the change of answer that is nearest to the middle. */
	for (mid = lo + (hi - lo + 1) / 2; mid < hi && same_answer(a, mid - 1, mid);
	     mid++)
		;
	while (mid > lo + 1 && same_answer(a, mid - 1, mid))
		mid--;
	jump = a->n;
	emit(a, BPF_JMP | BPF_JGE | BPF_K, (uint32_t)mid, 0, 0);
	emit_range(a, lo, mid - 1);
	jump_over(a, jump);
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
	for (const char *const *n = sc_observed; *n; n++) {
		int nr = sc_number(*n);

		if (nr >= NUMBERS_MAX)
			return -1;
		if (nr >= 0)
			a->observed[nr] = true;
	}
	return 0;
}

int sc_compile(enum sc_where where, bool observe, struct sock_filter *out, size_t max)
{
	struct answers a = {.where = where, .observe = observe, .out = out, .max = max};

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
	emit_verdict(&a, SC_ENOSYS, false);
	emit_range(&a, 0, NUMBERS_MAX - 1);
	if (a.full) {
		errno = ENOSPC;
		return -1;
	}
	return (int)sc_shrink(out, a.n);
}

/* ---- the same without BPF ----------------------------------------------------------- */

static bool holds(const struct sc_cond *c, const struct seccomp_data *d)
{
	uint32_t low = (uint32_t)d->args[c->arg] & c->mask;

	if (c->special == SC_OWN_UID)
		return low == geteuid() || low == UINT32_MAX;
	if (c->special == SC_OWN_GID)
		return low == getegid() || low == UINT32_MAX;
	if (c->special == SC_NULL_POINTER)
		return low == 0 && d->args[c->arg] >> 32 == 0;
	if (c->special == SC_ANY_BIT)
		return low != 0;
	return low == c->value;
}

static bool all_hold(const struct sc_clause *c, const struct seccomp_data *d)
{
	for (size_t i = 0; i < SC_CONDS_MAX && c->cond[i].mask; i++)
		if (!holds(&c->cond[i], d))
			return false;
	return true;
}

/* NULL: not collected, which is a call that nobody knows. */
static const struct answers *answers_for(enum sc_where where)
{
	static struct answers kept[3];
	struct answers *a = &kept[where == SC_FULL_LO	  ? 0
				  : where == SC_FULL_NONE ? 1
							  : 2];

	if (!a->where) {
		a->where = where;
		a->full = collect(a) < 0;
	}
	return a->full ? NULL : a;
}

int sc_collect(enum sc_where where)
{
	return answers_for(where) ? 0 : -1;
}

static const struct sc_clause *first_match(const struct answers *a,
					   const struct seccomp_data *d)
{
	for (size_t i = 0; i < sc_n_clauses; i++)
		if (a->clause_nr[i] == d->nr && all_hold(&sc_clauses[i], d))
			return &sc_clauses[i];
	return NULL;
}

enum sc_verdict sc_judge(enum sc_where where, const struct seccomp_data *d)
{
	const struct answers *a = answers_for(where);
	const struct sc_clause *c;

	if (!a || d->nr < 0 || d->nr >= NUMBERS_MAX)
		return SC_ENOSYS;
	c = a->has_clauses[d->nr] ? first_match(a, d) : NULL;
	return c ? c->verdict : (enum sc_verdict)a->verdict[d->nr];
}

bool sc_is_observed(enum sc_where where, const struct seccomp_data *d)
{
	const struct answers *a = answers_for(where);
	const struct sc_clause *c;

	if (!a || d->nr < 0 || d->nr >= NUMBERS_MAX || !a->observed[d->nr])
		return false;
	c = a->has_clauses[d->nr] ? first_match(a, d) : NULL;
	return sc_judge(where, d) == SC_ALLOW && !(c && c->unseen);
}

void sc_name(int nr, char *out, size_t size)
{
	/* libseccomp 2.5.4 ends at 450. */
	static const char *const newer[] = {
		"cachestat",	     "fchmodat2",	 "map_shadow_stack",
		"futex_wake",	     "futex_wait",	 "futex_requeue",
		"statmount",	     "listmount",	 "lsm_get_self_attr",
		"lsm_set_self_attr", "lsm_list_modules", "mseal",
		"setxattrat",	     "getxattrat",	 "listxattrat",
		"removexattrat",     "open_tree_attr",	 "file_getattr",
		"file_setattr"};
	char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, nr);

	if (name)
		(void)snprintf(out, size, "%s", name);
	else if (nr > 450 && (size_t)(nr - 451) < ARRAY_SIZE(newer))
		(void)snprintf(out, size, "%s", newer[nr - 451]);
	else
		(void)snprintf(out, size, "syscall %d", nr);
	free(name);
}
