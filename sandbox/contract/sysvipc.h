/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper and the meter.
 * The System V objects of the job's own ipc namespace, as the kernel counts them: segments,
 * semaphores and messages, whether a process uses them or not. Grade full; in floor a job
 * makes none.
 */
#ifndef LYCH_SANDBOX_CONTRACT_SYSVIPC_H
#define LYCH_SANDBOX_CONTRACT_SYSVIPC_H

#include "common/attr.h"
#include "common/err.h"
#include <stdint.h>

struct sysvipc_counts {
	uint64_t segments, sets, semaphores, queues, messages, message_bytes;
};
struct sysvipc_sum {
	uint64_t shared_bytes;	/* in memory: a part of the machine's shared memory */
	uint64_t swapped_bytes; /* of segments too */
	uint64_t kernel_bytes;	/* the rest */
};

/* Is the namespace that of our own user namespace, and can its objects be counted? The first is the only
 * wall between the objects of two jobs. proc_fd: a /proc that shows us. ERRID_SANDBOX_NS. */
MUST_CHECK int sysvipc_check(int proc_fd, struct err *err);
/* tasks: how many could have something to undo. */
MUST_CHECK int sysvipc_look(unsigned tasks, struct sysvipc_sum *ret, struct err *err);

/* Pure: what the kernel keeps for so many objects at most, but for the pages of segments. */
uint64_t sysvipc_kernel_bytes(const struct sysvipc_counts *c, unsigned tasks);

#endif
