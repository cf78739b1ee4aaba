/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper and the meter.
 * The sockets of the job's own network namespace as the kernel lists them (sock_diag(7)), and
 * what they hold: also what no descriptor shows, such as what waits in connections that nobody
 * has accepted, or what a closed socket still has to deliver. Grade full.
 */
#ifndef LYCH_SANDBOX_KEEPER_DIAG_H
#define LYCH_SANDBOX_KEEPER_DIAG_H

#include "common/attr.h"
#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A socket is charged for its options and memberships; a group that it listens to is an entry of the
 * interface's own too, five times as large, which nobody is charged for. */
#define DIAG_OPTIONS_TIMES 6u

struct diag_sum {
	uint64_t bytes;
	unsigned sockets;
};

/* In that namespace. Lists once, so that a kernel which can't is met here:
 * ERRID_SANDBOX_LIMIT. */
MUST_CHECK int diag_open(struct err *err);
/* unix and UDP sockets that have an inode go to each(), if it is not NULL. queue: the most that a unix
 * socket whose sender is gone may hold (diag_queue_bytes()). -1: they could not be listed. */
typedef void diag_each(void *arg, int family, uint64_t ino);
MUST_CHECK int diag_look(int fd, uint64_t queue, diag_each *each, void *arg,
			 struct diag_sum *ret);
/* What one socket may have on its way at most: net.core.wmem_max, as the kernel doubles it. */
uint64_t diag_queue_bytes(void);

/* Pure: one message of a dump; family: of the request. false: it is malformed. */
struct diag_one {
	uint64_t bytes, ino;
};
bool diag_parse(int family, const void *msg, size_t len, uint64_t queue,
		struct diag_one *ret);

#endif
