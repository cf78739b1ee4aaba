/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the spawner, the keeper, the guard and the job.
 * Messages with descriptors between our own processes: the tomb and the spawner, the
 * spawner and a warm keeper, the keeper and its job. One SOCK_SEQPACKET packet, one
 * fixed-size struct, with some of them a spec. The order of the descriptors is the same on
 * every leg; the job is given its Landlock ruleset, and in floor its end of the broker,
 * before them, and the memfd of the spec comes before all.
 */
#ifndef LYCH_SANDBOX_CONTRACT_HANDOVER_H
#define LYCH_SANDBOX_CONTRACT_HANDOVER_H

#include "common/proto/payload.h"
#include "sandbox/contract/sandbox.h"

enum {
	HANDOVER_STDIN,
	HANDOVER_STDOUT,
	HANDOVER_STDERR,
	HANDOVER_WORK, /* may be missing */
	/* keeper to job only, where they come first */
	HANDOVER_RULES,
	HANDOVER_BROKER, /* may be missing */
	HANDOVER_FDS,
};

/* fds: n_fds of them, none -1. spec: goes with it (common/proto/payload.h), and msg says its
 * bytes; NULL: none. Does not block. */
MUST_CHECK int handover_send(int sock, const void *msg, size_t size,
			     const struct payload *spec, const int *fds, unsigned n_fds,
			     struct err *err);
/*
 * Blocks for one packet: a struct of size bytes. fds (FDPASS_MAX places, -1 before) get what came
 * with it, O_CLOEXEC, theirs to close; *n_fds how many. Another length or the end of file is an
 * error.
 */
MUST_CHECK int handover_recv(int sock, void *msg, size_t size, int *fds, unsigned *n_fds,
			     struct err *err);

#endif
