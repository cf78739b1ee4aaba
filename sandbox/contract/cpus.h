/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-sandbox.
 * Which CPUs a job gets: as many as its limit says, those with the fewest jobs of ours.
 * Among equals the one that the parent is on: the kernel put it there because it was free,
 * and the job, which is forked there, need not move.
 */
#ifndef LYCH_SANDBOX_CONTRACT_CPUS_H
#define LYCH_SANDBOX_CONTRACT_CPUS_H

#include "common/attr.h"
#include "common/err.h"
#include <sched.h>
#include <stdint.h>
#include <sys/types.h>

struct sbx_cpus {
	unsigned
		n; /* how many are in `mine`; 0: all that the parent has, nothing to set */
	cpu_set_t mine;
};

/* In the parent; cpus_give() takes it back when the job is over. Not more than `wanted`.
 * ERRID_SANDBOX_LIMIT. */
MUST_CHECK int cpus_take(unsigned wanted, struct sbx_cpus *ret, struct err *err);
void cpus_give(struct sbx_cpus *c);
/* In the keeper: for the job's first process, which it can't widen. Read back into *ret: what it
 * has then, and may choose from. ERRID_SANDBOX_LIMIT. */
MUST_CHECK int cpus_pin(pid_t pid, const struct sbx_cpus *c, cpu_set_t *ret,
			struct err *err);

/* The pure part. jobs: how many each CPU has; here: a CPU, -1 when it is not known. */
void cpus_choose(const cpu_set_t *have, const uint16_t jobs[CPU_SETSIZE], int here,
		 unsigned wanted, struct sbx_cpus *ret);

#endif
