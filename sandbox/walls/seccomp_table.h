/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the spawner, the keeper and the job.
 * The answer to every system call, as data. Reviewed up to Linux 6.18 (number 469); a
 * number that no list names is ENOSYS.
 *
 *	clauses	first match wins; all conditions of a clause must hold. A condition
 *		compares the low 32 bits of an argument under a mask (the kernel reads an
 *		int from a 64-bit register, so the high half is the job's to play with);
 *		SC_ANY_BIT holds when a bit of the mask is set;
 *		SC_NULL compares all 64 (those of the mask, and the high half); SC_OWN_UID and SC_OWN_GID hold for our own id and
 *		for -1, "as it is".
 *	lists	the answer when no clause matched.
 */
#ifndef LYCH_SANDBOX_WALLS_SECCOMP_TABLE_H
#define LYCH_SANDBOX_WALLS_SECCOMP_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sc_verdict {
	SC_ENOSYS,
	SC_ALLOW,
	SC_EPERM,      /* always; the keeper says it, so that it can be told: notify.h */
	SC_SUPERVISED, /* the keeper acts for the job, or refuses */
	SC_NOTHING, /* success, and nothing is done: what programs do not live without */
	SC_VERDICT_MAX_
};

/* Where a clause or a list counts. */
enum sc_where { SC_FULL_LO = 1, SC_FULL_NONE = 2, SC_FLOOR = 4 };
#define SC_FULL (SC_FULL_LO | SC_FULL_NONE)
#define SC_BOTH (SC_FULL | SC_FLOOR)

#define SC_CONDS_MAX 3
/* what a condition compares with, where it is not a value */
enum sc_special { SC_VALUE, SC_ANY_BIT, SC_NULL_POINTER, SC_OWN_UID, SC_OWN_GID };

struct sc_cond {
	uint32_t mask; /* 0: no condition */
	uint32_t value;
	uint8_t arg;
	uint8_t special; /* enum sc_special */
};
struct sc_clause {
	const char *name;
	enum sc_where where;
	enum sc_verdict verdict;
	struct sc_cond cond[SC_CONDS_MAX];
	bool unseen; /* not observed, though the call is */
};
struct sc_list {
	enum sc_where where;
	enum sc_verdict verdict;
	const char *const *names; /* NULL-terminated; "#453" is a number */
};

extern const struct sc_clause sc_clauses[];
extern const size_t sc_n_clauses;
extern const struct sc_list sc_lists[];
extern const size_t sc_n_lists;

/* With --explain the keeper is told of these before the kernel does them: it notes which
 * wall will refuse, and lets the kernel decide. Only where the answer is SC_ALLOW. */
extern const char *const sc_observed[]; /* NULL-terminated */

/* Classic BPF of the whole filter for one kind of sandbox. */
struct sock_filter;
struct seccomp_data;
#define SC_PROGRAM_MAX 4096 /* BPF_MAXINSNS */
/* Returns the number of instructions, or -1 (errno: ENOSPC, EINVAL for a name unknown).
 */
int sc_compile(enum sc_where where, bool observe, struct sock_filter *out, size_t max);
/* seccomp_shrink.c: the same answers from a shorter program, in place; its new length. */
size_t sc_shrink(struct sock_filter *out, size_t n);
/* What sc_judge() answers from: looked up once, before the forks that inherit it; -1 as of sc_compile(). */
int sc_collect(enum sc_where where);
/* What the table says to one call, without the filter: for the keeper, who is asked. */
enum sc_verdict sc_judge(enum sc_where where, const struct seccomp_data *d);
bool sc_is_observed(enum sc_where where, const struct seccomp_data *d);
/* The name of a number ("openat"; "syscall 470" for what nobody knows). */
void sc_name(int nr, char *out, size_t size);
/* The number of a name of the lists on this machine; -1: this architecture has none. */
int sc_number(const char *name);

/* seccomp.c: which column of the table counts for this spec; is this descriptor a listener's? */
struct sbx_spec;
enum sc_where seccomp_where(const struct sbx_spec *spec);
bool seccomp_is_listener(int fd);

#endif
